//! Whether the index can be written: a full or failing disk is known until a write has worked again.

use tokio::sync::watch;

use super::IndexError;

/// What a group of writes has come to, as far as the disk is concerned.
#[derive(Debug, Default)]
pub(super) enum Written {
    /// There was nothing to write.
    #[default]
    Nothing,
    /// Something was, and it is on the disk once the group is.
    Something,
    /// It could not be.
    Refused(IndexError),
}

impl Written {
    /// Takes note of one of the writes. That one was refused outweighs that others were not.
    pub(super) fn note(&mut self, written: Self) {
        match (&self, &written) {
            (Self::Refused(_), _) | (_, Self::Nothing) => {}
            _ => *self = written,
        }
    }
}

/// Tells when the state changes: the error of the first write that failed, or `None`.
#[derive(Debug)]
pub(super) struct Writing(watch::Sender<Option<IndexError>>);

impl Writing {
    pub(super) fn new() -> (Self, watch::Receiver<Option<IndexError>>) {
        let (sender, receiver) = watch::channel(None);
        (Self(sender), receiver)
    }

    /// Takes note of what a group has come to.
    pub(super) fn note(&self, written: Written) {
        let now = match written {
            Written::Nothing => return,
            Written::Something => None,
            Written::Refused(error) => Some(error),
        };
        self.0.send_if_modified(|state| {
            let changes = state.is_some() != now.is_some();
            if changes {
                *state = now;
            }
            changes
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> Written {
        Written::Refused(IndexError::Closed)
    }

    #[test]
    fn each_state_is_told_once() {
        let (writing, mut state) = Writing::new();
        writing.note(Written::Something);
        assert!(!state.has_changed().unwrap());
        for _ in 0..3 {
            writing.note(refused());
            writing.note(Written::Nothing);
        }
        assert!(state.has_changed().unwrap());
        assert!(state.borrow_and_update().is_some());
        writing.note(refused());
        assert!(!state.has_changed().unwrap());
        writing.note(Written::Something);
        assert!(state.borrow_and_update().is_none());
    }

    #[test]
    fn of_a_group_the_refused_write_counts() {
        let mut group = Written::default();
        group.note(Written::Something);
        group.note(refused());
        group.note(Written::Something);
        assert!(matches!(group, Written::Refused(_)));
    }
}
