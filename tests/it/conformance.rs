//! The rules of the protocol as tables, one row each, printed when they are run.

mod client;
mod pillar;
