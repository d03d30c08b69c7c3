//! The client against stand-in pillars on a bus in this process, and the checks that need none.

mod asking;
mod cases;
mod changes;
mod operations;
mod reading;
mod redelivered;
mod reports;
mod resuming;
mod site;
mod stand_in;
mod trouble;
mod unwritten;
mod validation;
