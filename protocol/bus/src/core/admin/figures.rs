//! Queues as an operator sees them.

use std::ops::Bound;

use super::{MOST_BYTES, rows};
use crate::{
    admin::{
        Answer, Attributes, ConsumerRow, DrainRow, Kind, QueueDetail, QueueRow, Queues,
        SubscriptionRow,
    },
    core::{
        Core, ERROR_QUEUE,
        attributes::{Criterion, OnExpiry, OnLanePoison, QueueAttributes},
        durable::Subscriber,
        queue::{Consumer, Queue, QueueKind},
        unit::QueueId,
    },
    error::BusError,
    spelling,
};

use pillarbox_messages::Destination;

/// How many lanes, and how many consumers, of a queue are shown.
const MOST_PARTS: usize = 100;
/// What a row takes besides its texts, in bytes (about).
const ROW: usize = 512;

impl Core {
    pub(super) fn list_queues(
        &self,
        after: Option<u64>,
        limit: Option<usize>,
    ) -> Result<Answer, BusError> {
        let limit = rows(limit)?;
        let from = after.map_or(Bound::Unbounded, |after| Bound::Excluded(QueueId(after)));
        let mut queues = self.queues.range((from, Bound::Unbounded)).peekable();
        let (mut listed, mut bytes) = (Queues::default(), 0);
        while let Some((id, queue)) = queues.next() {
            let row = self.figures(*id, queue);
            bytes += ROW + row.name.len() + row.topic.as_ref().map_or(0, String::len);
            listed.queues.push(row);
            if listed.queues.len() >= limit || bytes >= MOST_BYTES {
                listed.after = queues.peek().map(|_| id.0);
                break;
            }
        }
        Ok(Answer::Queues(listed))
    }

    pub(super) fn show_queue(&self, name: &str) -> Result<Answer, BusError> {
        let id = self.queue_meant(name)?;
        let queue = self.queues.get(&id).ok_or(BusError::NoMessage)?;
        let (lanes, more_lanes) = match &queue.lanes {
            Some(lanes) => lanes.shown(MOST_PARTS, |(connection, _)| {
                self.client_id(connection).to_owned()
            }),
            None => (Vec::new(), 0),
        };
        let consumers = queue.consumers.iter().take(MOST_PARTS);
        let consumers: Vec<_> = consumers.map(|it| self.consumer_row(it)).collect();
        Ok(Answer::Queue(Box::new(QueueDetail {
            more_consumers: queue.consumers.len().saturating_sub(consumers.len()) as u64,
            queue: self.figures(id, queue),
            attributes: attributes(&queue.attributes),
            drain: queue.drain().map(|drain| DrainRow {
                lanes: drain.old.in_words(),
                messages: queue.undrained() as u64,
            }),
            subscription: queue.subscriber.as_ref().map(|it| self.subscription(it)),
            lanes,
            more_lanes: more_lanes as u64,
            consumers,
        })))
    }

    fn figures(&self, id: QueueId, queue: &Queue) -> QueueRow {
        let (kind, topic) = match &queue.kind {
            QueueKind::Named { .. } => (Kind::Queue, None),
            QueueKind::Durable { topic, .. } => (Kind::DurableSubscription, Some(topic)),
            QueueKind::Plain { topic } => (Kind::Subscription, Some(topic)),
            QueueKind::Temporary { .. } => (Kind::Temporary, None),
        };
        let oldest = queue.messages.values().next();
        let oldest = oldest.map(|held| held.message.enqueued_at);
        let (scheduled, in_flight) = (queue.scheduled, queue.in_flight);
        let backout_limit = self.backout_limit(id);
        let target = queue.attributes.backout_queue.as_deref();
        let backout_queue = backout_limit.map(|_| spelled(target.unwrap_or(ERROR_QUEUE)));
        QueueRow {
            number: id.0,
            name: self.name_of(id),
            kind,
            topic: topic.map(|topic| spelling::to_stomp(&Destination::topic(topic))),
            lasting: queue.kind.is_lasting(),
            messages: queue.messages.len() as u64,
            ready: queue.messages.len().saturating_sub(scheduled + in_flight) as u64,
            scheduled: scheduled as u64,
            in_flight: in_flight as u64,
            bytes: queue.bytes,
            consumers: queue.consumers.len() as u64,
            lanes: queue.lanes.as_ref().map(|lanes| lanes.count() as u64),
            oldest_at: oldest,
            oldest_age_ms: oldest.map(|at| self.now.saturating_sub(at)),
            backout_limit,
            backout_queue,
            backed_out: queue.backed_out,
            expired: queue.expired,
        }
    }

    fn subscription(&self, subscriber: &Subscriber) -> SubscriptionRow {
        let limits = &subscriber.limits;
        SubscriptionRow {
            max_messages: limits.max_messages,
            max_bytes: limits.bytes_of(self.limits.capacity_bytes),
            max_offline_ms: limits.max_offline_ms,
            on_limit: limits.on_limit.as_str().to_owned(),
            away_since: subscriber.away_since,
            missed: subscriber.gap.map_or(0, |gap| gap.count),
            missed_since: subscriber.gap.map(|gap| gap.since),
        }
    }

    fn consumer_row(&self, consumer: &Consumer) -> ConsumerRow {
        let wants = consumer.wants.as_ref();
        ConsumerRow {
            client: self.client_id(consumer.connection).to_owned(),
            connection: consumer.connection.0,
            prefetch: consumer.prefetch,
            in_flight: consumer.in_flight,
            selector: wants.map(|wants| super::look::cut(wants.selector.as_str())),
        }
    }
}

fn spelled(queue: &str) -> String {
    spelling::to_stomp(&Destination::queue(queue))
}

/// In the words of node.toml.
fn attributes(of: &QueueAttributes) -> Attributes {
    let criteria = of.order.criteria.iter().map(|criterion| match criterion {
        Criterion::Time => "time",
        Criterion::Expiration => "expiration",
        Criterion::Priority => "priority",
    });
    let last = if of.order.latest_first {
        "lifo"
    } else {
        "fifo"
    };
    let jumps = [
        (of.out_of_order.top, "top"),
        (of.out_of_order.before, "msgid"),
    ];
    let jumps = jumps.into_iter().filter(|(may, _)| *may);
    let lane_hash = of.lanes.hash_in_words().map(str::to_owned);
    Attributes {
        order: criteria.chain([last]).map(str::to_owned).collect(),
        out_of_order: jumps.map(|(_, jump)| jump.to_owned()).collect(),
        lanes: of.lanes.in_words(),
        lane_hash,
        require_key: of.require_key,
        on_lane_poison: match of.on_lane_poison {
            OnLanePoison::Skip => "skip".to_owned(),
            OnLanePoison::Park => "park".to_owned(),
        },
        retry_delay_ms: of.retry_delay.initial_ms,
        retry_delay_max_ms: of.retry_delay.max_ms,
        expiry_queue: match &of.on_expiry {
            OnExpiry::Drop => None,
            OnExpiry::Move(target) => Some(spelled(target)),
        },
    }
}
