//! What happens to the process and its disk.

use std::collections::BTreeSet;

use super::{Simulation, open};
use crate::core::{Core, Input, unit::Place};

impl Simulation {
    /// The disk fills up, or has room again; the log looks for it now and then.
    pub(super) fn fill(&mut self) {
        let full = self.below(3) == 0;
        self.disk.set_full(full);
        self.log.make_room();
        self.note_room();
    }

    /// Whether there is room is known by the state machine as soon as by anybody.
    pub(super) fn note_room(&mut self) {
        let room = self.log.has_room();
        if room != self.core.room {
            self.step(Input::Room(room));
        }
    }

    /// The process is killed, or the machine with it.
    pub(super) fn crash(&mut self) {
        let survivors = self.below(1000);
        self.disk = match self.below(3) {
            0 => self.disk.after_crash(),
            1 => {
                let survivors = usize::try_from(survivors).unwrap();
                self.disk.after_power_loss(survivors)
            }
            _ => self.disk.after_scattered_power_loss(survivors + 1),
        };
        self.begin_again();
        self.compare();
    }

    /// The process ends as it should, and the next one finds everything as it was.
    pub(super) fn stop(&mut self) {
        self.step(Input::Shutdown);
        let units = std::mem::take(&mut self.pending);
        if self
            .log
            .append(&units)
            .and_then(|()| self.log.close())
            .is_err()
        {
            return self.crash();
        }
        let before = dump(&self.core);
        let had_ended = self.core.directory.durable("d", "n").is_none();
        let destroyed = self.core.directory.queue("extra").is_none();
        self.disk = self.disk.after_scattered_power_loss(1);
        let (_, core) = open(&self.disk, self.now, None, &self.rules);
        let mut after = dump(&core);
        // What is made anew, as at every start.
        let anew = |line: &str| {
            (had_ended && line.contains(" Durable {"))
                || (destroyed && line.contains("name: \"extra\""))
        };
        after.retain(|line| before.contains(line) || !anew(line));
        let gone: Vec<_> = before.difference(&after).collect();
        let new: Vec<_> = after.difference(&before).collect();
        assert!(
            gone.is_empty() && new.is_empty(),
            "a stop changed {gone:#?} to {new:#?}"
        );
        self.begin_again();
        self.compare();
    }
}

/// Everything that is to last, as text.
fn dump(core: &Core) -> BTreeSet<String> {
    let lasting = core.queues.iter().filter(|(_, it)| it.kind.is_lasting());
    let mut all: BTreeSet<String> = BTreeSet::new();
    for (id, queue) in lasting {
        all.insert(format!("{id:?} {:?} {:?}", queue.kind, queue.attributes));
        for held in queue.messages.values().filter(|held| held.is_stored()) {
            let place = held.place(*id);
            // A pause that is over is none.
            let retry_at = place.retry_at.filter(|at| *at > core.now);
            let place = Place { retry_at, ..place };
            all.insert(format!("{:?} {place:?}", held.message));
        }
    }
    let remembered = core.remembered.sends.iter();
    all.extend(
        remembered
            .filter(|(_, it)| it.stored)
            .map(|it| format!("{it:?}")),
    );
    all
}
