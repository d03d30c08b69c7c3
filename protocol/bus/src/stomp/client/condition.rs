//! What the owner of a connection lets the handles know, without being asked.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::dialect::{Dialect, PILLARBOX};
use crate::error::BusError;

/// How the connection is. Locked for a look only.
#[derive(Debug)]
pub(super) struct Condition(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Why there is no connection, in the words of the last attempt.
    trouble: Option<BusError>,
    /// Where nobody has answered since the last connection.
    silent: Vec<String>,
    /// Where an answer is waited for, or was last.
    trying: String,
    /// Of the broker of the last connection.
    dialect: &'static Dialect,
    /// Whether that broker says that it has an administration.
    administration: bool,
}

impl Default for Condition {
    fn default() -> Self {
        Self(Mutex::new(State {
            trouble: None,
            silent: Vec::new(),
            trying: String::new(),
            dialect: &PILLARBOX,
            administration: false,
        }))
    }
}

impl Condition {
    /// A connection stands.
    pub(super) fn connected(&self, dialect: &'static Dialect, administration: bool) {
        let mut state = self.lock();
        state.trouble = None;
        state.silent.clear();
        state.dialect = dialect;
        state.administration = administration;
    }

    /// There is no connection, and why.
    pub(super) fn set_trouble(&self, error: BusError) {
        let mut state = self.lock();
        if let BusError::Unreachable { address, .. } = &error
            && !state.silent.contains(address)
        {
            state.silent.push(address.clone());
        }
        state.trouble = Some(error);
    }

    /// This address is tried now.
    pub(super) fn trying(&self, address: &str) {
        address.clone_into(&mut self.lock().trying);
    }

    /// Why there was no connection for so long: the last reason, and all addresses where nobody has answered.
    pub(super) fn unreachable(&self, deadline: Duration) -> BusError {
        let state = self.lock();
        match &state.trouble {
            Some(BusError::Unreachable { address, reason }) if state.silent.len() > 1 => {
                BusError::Unreachable {
                    reason: format!("at {address}, {reason}"),
                    address: state.silent.join(", "),
                }
            }
            Some(error) => error.clone(),
            None => BusError::Unreachable {
                address: state.trying.clone(),
                reason: format!("no answer within {} ms", deadline.as_millis()),
            },
        }
    }

    /// The last reason why there is no connection.
    pub(super) fn trouble(&self) -> Option<BusError> {
        self.lock().trouble.clone()
    }

    /// Of the broker of the last connection; before the first as if it were one of ours.
    pub(super) fn dialect(&self) -> &'static Dialect {
        self.lock().dialect
    }

    /// Whether the broker of the last connection has said that it has an administration.
    pub(super) fn has_administration(&self) -> bool {
        self.lock().administration
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
