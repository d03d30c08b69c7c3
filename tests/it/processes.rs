//! Each part of a repository in a process of its own.

mod absent;
mod addresses;
mod alarms;
mod changes;
mod columns;
mod crash;
mod differing;
pub(crate) mod json;
mod operating;
mod order;
mod parts;
mod pipes;
mod replacing;
mod reports;
mod stopping;
mod terminal;
mod together;
mod up;
