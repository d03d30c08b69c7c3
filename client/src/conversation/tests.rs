//! The machines against tables of what may come, and against whatever comes.

mod audit_trails;
mod common;
mod delete_file;
mod examining;
mod get_file;
mod listing;
mod put_file;
mod random;
mod repeating;
mod replace_file;
mod resuming;
mod retrying;
mod status;
mod support;
mod timing;
mod unreadable;
mod wire_text;
