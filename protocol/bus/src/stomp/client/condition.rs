//! What the owner of a connection lets the handles know, without being asked.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::dialect::{Dialect, PILLARBOX};
use crate::error::BusError;

/// How the connection is. Locked for a look only.
#[derive(Debug)]
pub(super) struct Condition(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Why there is no connection, in the words of the last attempt.
    trouble: Option<BusError>,
    /// Of the broker of the last connection.
    dialect: &'static Dialect,
}

impl Default for Condition {
    fn default() -> Self {
        Self(Mutex::new(State {
            trouble: None,
            dialect: &PILLARBOX,
        }))
    }
}

impl Condition {
    /// A connection stands.
    pub(super) fn connected(&self, dialect: &'static Dialect) {
        let mut state = self.lock();
        state.trouble = None;
        state.dialect = dialect;
    }

    /// There is no connection, and why.
    pub(super) fn set_trouble(&self, error: BusError) {
        self.lock().trouble = Some(error);
    }

    /// The last reason why there is no connection.
    pub(super) fn trouble(&self) -> Option<BusError> {
        self.lock().trouble.clone()
    }

    /// Of the broker of the last connection; before the first as if it were one of ours.
    pub(super) fn dialect(&self) -> &'static Dialect {
        self.lock().dialect
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
