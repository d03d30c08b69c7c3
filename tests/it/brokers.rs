//! On brokers that were not written here: a repository joins them by its settings alone.

mod blips;
mod clients;
mod operations;
mod outages;
mod peers;
mod refusals;
mod strangers;
mod text;
