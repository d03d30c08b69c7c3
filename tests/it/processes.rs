//! Each part of a repository in a process of its own.

mod alarms;
mod columns;
mod crash;
mod order;
mod stopping;
mod together;
mod up;
