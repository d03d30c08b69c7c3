//! Each part of a repository in a process of its own.

mod addresses;
mod alarms;
mod changes;
mod columns;
mod crash;
mod json;
mod order;
mod reports;
mod stopping;
mod together;
mod up;
