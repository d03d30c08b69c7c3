//! Sending messages back to where they stood, and deleting them: as many as one unit takes.

use std::collections::VecDeque;

use super::MOST_EXAMINED;
use crate::{
    admin::{Answer, Done, Filter, MAX_IDS},
    core::{Core, message::MessageId, moving::Way, queue::State, unit::QueueId},
    error::BusError,
};

/// How much of messages one request moves, in bytes; one message at least.
const MOST_MOVED: u64 = 8 << 20;

/// Which messages a request is about: ids, or a filter.
type Which<'a> = (Option<&'a [MessageId]>, Option<&'a Filter>);

impl Core {
    pub(super) fn retry_some(
        &mut self,
        queue: &str,
        which: Which<'_>,
        after: Option<MessageId>,
    ) -> Result<Answer, BusError> {
        let queue = self.queue_meant(queue)?;
        let (mut ids, rest) = self.chosen(queue, which, after)?;
        let (mut done, mut moved, mut last) = (Done::default(), 0_u64, None);
        while let Some(id) = ids.pop_front() {
            let size = self.held_size(queue, id);
            if moved > 0 && moved.saturating_add(size) > MOST_MOVED {
                done.after = last;
                return Ok(Answer::Done(done));
            }
            last = Some(id);
            match self.way_back(queue, id) {
                Way::To(target) => {
                    if self.send_back(queue, id, target) {
                        moved = moved.saturating_add(size);
                        done.done += 1;
                    }
                }
                Way::NotThere => done.skipped.not_there += 1,
                Way::InHand => done.skipped.in_hand += 1,
                Way::NotMoved => done.skipped.not_moved += 1,
                Way::Gone(_) => done.skipped.no_way_back += 1,
            }
        }
        done.after = rest;
        Ok(Answer::Done(done))
    }

    pub(super) fn delete_some(
        &mut self,
        queue: &str,
        which: Which<'_>,
        after: Option<MessageId>,
    ) -> Result<Answer, BusError> {
        let queue = self.queue_meant(queue)?;
        let (ids, rest) = self.chosen(queue, which, after)?;
        let mut done = Done {
            after: rest,
            ..Done::default()
        };
        for id in ids {
            let held = self.queues.get(&queue).and_then(|it| it.messages.get(&id));
            match held.map(|held| held.state) {
                Some(State::InFlight(_)) => done.skipped.in_hand += 1,
                Some(State::Ready | State::Scheduled(_)) => {
                    done.done += u64::from(self.discard(queue, id).is_some());
                }
                None => done.skipped.not_there += 1,
            }
        }
        Ok(Answer::Done(done))
    }

    /// The messages that are meant, and behind which one no more were looked for.
    fn chosen(
        &self,
        queue: QueueId,
        which: Which<'_>,
        after: Option<MessageId>,
    ) -> Result<(VecDeque<MessageId>, Option<MessageId>), BusError> {
        match which {
            (Some(ids), None) if ids.len() > MAX_IDS => {
                let detail = format!("a request names {MAX_IDS} messages at most");
                Err(BusError::invalid(detail))
            }
            (Some(ids), None) => Ok((behind(ids, after)?, None)),
            (None, Some(filter)) => Ok(self.selected(queue, filter, after)),
            (Some(_), Some(_)) | (None, None) => Err(BusError::invalid(
                "give either 'ids' or 'filter'; an empty filter means all messages",
            )),
        }
    }

    fn selected(
        &self,
        queue: QueueId,
        filter: &Filter,
        after: Option<MessageId>,
    ) -> (VecDeque<MessageId>, Option<MessageId>) {
        let mut ids = VecDeque::new();
        let Some(queue) = self.queues.get(&queue) else {
            return (ids, None);
        };
        let mut last = None;
        for (id, held) in queue.messages.behind(after).take(MOST_EXAMINED) {
            last = Some(id);
            if filter.selects(&held.message) {
                ids.push_back(id);
            }
            if ids.len() >= MAX_IDS {
                break;
            }
        }
        let more = |id: &MessageId| queue.messages.behind(Some(*id)).next().is_some();
        (ids, last.filter(more))
    }
}

fn behind(ids: &[MessageId], after: Option<MessageId>) -> Result<VecDeque<MessageId>, BusError> {
    let Some(after) = after else {
        return Ok(ids.iter().copied().collect());
    };
    let at = ids.iter().position(|id| *id == after);
    let at =
        at.ok_or_else(|| BusError::invalid(format!("'after' is {after}, not one of 'ids'")))?;
    Ok(ids.iter().skip(at + 1).copied().collect())
}
