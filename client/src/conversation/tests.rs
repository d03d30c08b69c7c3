//! The machines against tables of what may come, and against whatever comes.

mod common;
mod examining;
mod get_file;
mod listing;
mod put_file;
mod random;
mod support;
mod wire_text;
