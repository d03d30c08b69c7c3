//! The alarm service: keeps every alarm of a repository.
//!
//! Owns: the durable subscriptions to the alarm topics, and the SQLite database that alarms are kept in.
//! Refuses: to acknowledge what is not on the disk, and to decide what an alarm means.
//!
//! Invariants
//! * An alarm is acknowledged only after the transaction that holds it has been synced.
//! * One alarm counts once, however often and on however many topics it arrives.
//! * Identical alarms are one row with a count; whatever can't be read is a row too, so that nothing
//!   that arrives can block what comes behind it.
//!
//! Modules: [`store`] the database, also for other processes to read; [`service`] what fills it.

mod reading;
pub mod service;
pub mod store;

pub use crate::{
    service::{AlarmService, AlarmServiceError, AlarmServiceOptions},
    store::{AlarmFilter, AlarmStore, Entry, EntryKind, StoreError, StoredAlarm},
};
