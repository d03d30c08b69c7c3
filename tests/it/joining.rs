//! Joining a collection of the Java system by settings alone: its bus addresses, its names and its file exchange.

mod absence;
mod addresses;
mod example;
mod exchange;
mod login;
mod names;
