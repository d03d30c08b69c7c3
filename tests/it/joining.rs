//! Joining a collection of the Java system by settings alone: its bus addresses and its names.

mod absence;
mod addresses;
mod example;
mod login;
mod names;
