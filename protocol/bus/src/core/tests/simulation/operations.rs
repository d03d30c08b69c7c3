//! What random users do.

use pillarbox_messages::Destination;

use super::{Asked, Delivered, Expected, Fate, Original, Simulation};
use crate::{
    BusError, LaneHash, Lanes,
    core::{Browsed, Input, durable::OnLimit, message::NewMessage, queue::State, tests::message},
    embedded::connection::{
        AckMode, Command, ConnectionId, Event, MessageId, SubscribeOptions, Token, Wait,
    },
};

impl Simulation {
    pub(super) fn connect(&mut self) {
        let free: Vec<&str> = ["a", "b", "d"]
            .into_iter()
            .filter(|name| !self.connections.values().any(|taken| taken == name))
            .collect();
        let Some(name) = self.pick(&free) else { return };
        let number = self.fresh();
        let connection = ConnectionId(number);
        self.connections.insert(connection, name.to_owned());
        self.step(Input::Open {
            connection,
            client_id: name.to_owned(),
            in_process: number.is_multiple_of(3),
        });
    }

    pub(super) fn connection(&mut self) -> Option<ConnectionId> {
        let connections: Vec<_> = self.connections.keys().copied().collect();
        self.pick(&connections)
    }

    pub(super) fn subscribe(&mut self) {
        let Some(connection) = self.connection() else {
            return;
        };
        let is_d = self.connections[&connection] == "d";
        let durable = is_d && self.below(2) == 0;
        if durable && self.subscriptions.values().any(|place| *place == "d") {
            return;
        }
        let subscription = self.fresh();
        let (place, destination) = match self.below(4) {
            _ if durable => ("d", Destination::topic("news")),
            0 => ("work", self.work()),
            1 => ("other", Destination::queue("other")),
            2 => ("extra", Destination::queue("extra")),
            _ => ("plain", Destination::topic("news")),
        };
        if place != "plain" {
            self.subscriptions.insert((connection, subscription), place);
        }
        let ack = if self.below(6) == 0 {
            AckMode::Auto
        } else {
            AckMode::Individual
        };
        let prefetch = u32::try_from(1 + self.below(5)).unwrap();
        let limited = self.below(3) == 0;
        let ack_timeout = limited.then(|| 1 + i64::try_from(self.below(6000)).unwrap());
        let (durable, token) = (durable.then(|| "n".to_owned()), self.fresh());
        // A plain subscription may want not everything; what it does not want never comes to it.
        let options = SubscribeOptions {
            no_local: place == "plain" && self.below(3) == 0,
            ..SubscribeOptions::default()
        };
        let selector =
            (place == "plain" && self.below(3) == 0).then(|| "JMSPriority > 4".parse().unwrap());
        let command = Command::Subscribe {
            options,
            ack_timeout: ack_timeout.filter(|_| ack == AckMode::Individual),
            selector,
            subscription,
            destination,
            durable,
            ack,
            prefetch,
            token,
        };
        self.command(connection, command);
    }

    /// Takes one message, perhaps a certain one, perhaps waiting.
    pub(super) fn get(&mut self) {
        let Some(connection) = self.connection() else {
            return;
        };
        let (place, wanted) = match self.below(4) {
            0 => ("work", None),
            1 => ("other", None),
            2 => ("other", Some("JMSPriority > 4".to_owned())),
            _ => (
                "other",
                self.waiting().map(|id| format!("JMSMessageID = '{id}'")),
            ),
        };
        let wait = match self.below(3) {
            0 => Wait::No,
            1 => Wait::For(i64::try_from(self.below(2000)).unwrap()),
            _ => Wait::Forever,
        };
        let destination = match place {
            "work" => self.work(),
            other => Destination::queue(other),
        };
        let (subscription, token) = (self.fresh(), self.fresh());
        self.subscriptions.insert((connection, subscription), place);
        if wanted.is_some() {
            self.picky.insert((connection, subscription));
        }
        let command = Command::Get {
            subscription,
            destination,
            selector: wanted.map(|text| text.parse().unwrap()),
            wait,
            ack: AckMode::Individual,
            token,
        };
        self.command(connection, command);
    }

    /// A new message, and the places that must keep it.
    pub(super) fn new_message(&mut self, together: u64) -> (NewMessage, Vec<(&'static str, u64)>) {
        let marker = self.fresh();
        let (destination, place) = match self.below(5) {
            0 => (self.work(), "work"),
            1 => (Destination::queue("other"), "other"),
            2 => (Destination::topic("news"), "d"),
            // What is in it may be lost.
            3 => (Destination::queue("extra"), ""),
            _ => (Destination::topic("nowhere"), ""),
        };
        let persistent = self.below(4) > 0;
        // Where a message may find nobody at all, nobody remembers it.
        let is_lost = place.is_empty() || (place == "d" && self.can_vanish());
        let named = !is_lost && self.below(4) == 0;
        let dedup = named.then(|| self.fresh().to_string().into());
        let expires = dedup.is_none() && self.below(4) == 0;
        let lifetime = 1 + i64::try_from(self.below(4000)).unwrap();
        let expires_at = expires.then_some(self.now + lifetime);
        let scheduled = !expires && self.below(5) == 0;
        let not_before = scheduled.then_some(self.now + lifetime);
        let priority = if self.below(3) == 0 { 9 } else { 4 };
        let mut keys = Vec::new();
        if persistent && !place.is_empty() {
            let expected = Expected {
                fate: Fate::Sent,
                expires_at,
                together,
            };
            self.expected.insert((place, marker), expected);
            keys.push((place, marker));
        } else {
            self.volatile.insert(marker);
        }
        if expires {
            self.mortal.insert(marker);
        }
        let is_lane = place == "work" && destination.name() != place;
        let group = (place == "work" && !is_lane && self.below(4) > 0)
            .then(|| ["a", "b", "c"][usize::try_from(marker % 3).unwrap()].to_owned());
        let can_jump = place == "other" && dedup.is_none();
        let top = can_jump && self.below(8) == 0;
        let before = (can_jump && !top && self.below(8) == 0)
            .then(|| self.waiting())
            .flatten();
        if top || before.is_some() || is_lane {
            self.jumped.insert(marker);
        }
        let message = message(destination, &marker.to_string());
        let persistent = Some(persistent);
        (
            NewMessage {
                persistent,
                priority,
                not_before,
                expires_at,
                group,
                top,
                before,
                // A lane may be gone when it is named again.
                dedup: dedup.filter(|_| !is_lane),
                ..message
            },
            keys,
        )
    }

    /// A message of the queue `other` that one may go before, for now.
    fn waiting(&mut self) -> Option<MessageId> {
        let id = self.core.directory.queue("other")?;
        let held = self.core.queues[&id].messages.values();
        let ids: Vec<_> = held
            .filter(|held| !matches!(held.state, State::InFlight(_)))
            .map(|held| held.message.id)
            .collect();
        self.pick(&ids)
    }

    /// Sends, now and then what seems to its sender not to have arrived.
    pub(super) fn send(&mut self) {
        let Some(connection) = self.connection() else {
            return;
        };
        let together = self.fresh();
        let again = self.below(5) == 0;
        let repetition = again.then(|| self.repetition(together)).flatten();
        let (message, sent) = repetition.unwrap_or_else(|| self.new_message(together));
        let named = self.original(&message, &sent);
        let id = named.as_ref().map(|(id, _)| *id);
        let before = id.and_then(|id| self.originals.get(&id).cloned());
        let mut asked = Asked {
            sent,
            ..Asked::default()
        };
        if let Some((id, original)) = named {
            self.settle(&mut asked, id, original);
            self.originals.extend(std::mem::take(&mut asked.fresh));
        }
        let token = self.fresh();
        self.asked.insert(token, asked);
        self.command(
            connection,
            Command::Send {
                message,
                transaction: None,
                token,
            },
        );
        if let Some(id) = id.filter(|_| self.has_failed(token)) {
            // A full subscription has not let it pass: it was never sent.
            self.originals.remove(&id);
            self.originals.extend(before.map(|before| (id, before)));
        }
    }

    /// Whether the durable subscription may end by itself.
    fn can_vanish(&self) -> bool {
        self.rules
            .iter()
            .any(|rule| rule.on_limit == Some(OnLimit::Cancel) || rule.max_offline_ms.is_some())
    }

    fn has_failed(&self, asked: Token) -> bool {
        let failed =
            |event: &Event| matches!(event, Event::Failed { token, .. } if *token == asked);
        self.latest_failure == asked || self.unreleased.iter().any(|it| failed(&it.event))
    }

    fn original(
        &self,
        message: &NewMessage,
        sent: &[(&'static str, u64)],
    ) -> Option<(u64, Original)> {
        let id = message.dedup.as_ref()?.parse().unwrap();
        let original = Original {
            destination: message.destination.clone(),
            sent: sent.to_vec(),
            marker: std::str::from_utf8(&message.body).unwrap().parse().unwrap(),
            at: self.now,
            message: None,
            promised: false,
        };
        Some((id, original))
    }

    /// A message that has the id of an earlier one.
    fn repetition(&mut self, together: u64) -> Option<(NewMessage, Vec<(&'static str, u64)>)> {
        let ids: Vec<_> = self.originals.keys().copied().collect();
        let id = self.pick(&ids)?;
        let destination = self.originals[&id].destination.clone();
        let (mut message, sent) = loop {
            let (message, sent) = self.new_message(together);
            let jumps = message.top || message.before.is_some();
            if message.destination == destination && message.expires_at.is_none() && !jumps {
                break (message, sent);
            }
            self.expected.retain(|key, _| !sent.contains(key));
        };
        message.dedup = Some(id.to_string().into());
        Some((message, sent))
    }

    /// What the bus makes of a message whose sender has named it: nobody may ever see a repetition.
    fn settle(&mut self, asked: &mut Asked, id: u64, original: Original) {
        let now = self.now;
        let known = self.originals.get(&id);
        let known = known.filter(|it| it.is_remembered(now));
        let mut fresh = asked.fresh.iter();
        let fresh = fresh.find_map(|(other, it)| (*other == id).then_some(it));
        let known = known.or(fresh).map(|it| it.marker);
        asked.named.push((id, known.unwrap_or(original.marker)));
        if known.is_some() {
            asked.sent.retain(|key| !original.sent.contains(key));
            self.expected.retain(|key, _| !original.sent.contains(key));
            self.repetitions.insert(original.marker);
            asked.again = true;
        } else {
            self.originals.remove(&id);
            asked.fresh.push((
                id,
                Original {
                    at: now,
                    ..original
                },
            ));
        }
    }

    /// Looks at a queue, which changes nothing.
    pub(super) fn browse(&mut self) {
        let Some(connection) = self.connection() else {
            return;
        };
        let places = ["work", "other", "aside", "~error"];
        let place = self.pick(&places).unwrap();
        let all = self.below(2) == 0;
        let (subscription, token) = (self.fresh(), self.fresh());
        let before = self.pending.len();
        let command = Command::Browse {
            subscription,
            destination: Destination::queue(place),
            selector: None,
            limit: 5,
            all,
            token,
        };
        self.command(connection, command);
        assert_eq!(self.pending.len(), before, "looking has changed something");
    }

    /// What is seen is there, and known to be for good.
    pub(super) fn browsed(&self, messages: &[Browsed]) {
        for seen in messages {
            let marker = std::str::from_utf8(&seen.message.body())
                .unwrap()
                .parse()
                .unwrap();
            assert!(
                !self.repetitions.contains(&marker),
                "{marker} was a repetition"
            );
        }
    }

    /// Takes something out of somebody's hands.
    pub(super) fn hand(&mut self) -> Option<Delivered> {
        let free: Vec<_> = (0..self.hands.len())
            .filter(|at| !self.hands[*at].staged)
            .collect();
        let at = self.pick(&free)?;
        Some(self.hands.swap_remove(at))
    }

    pub(super) fn going(&mut self, delivered: &Delivered) -> Vec<(&'static str, u64)> {
        let Some(place) = delivered.place else {
            return Vec::new();
        };
        let key = (place, delivered.marker);
        if let Some(expected) = self.expected.get_mut(&key)
            && expected.fate != Fate::Consumed
        {
            expected.fate = Fate::Going;
        }
        vec![key]
    }

    pub(super) fn acknowledge(&mut self) {
        let Some(delivered) = self.hand() else { return };
        let acked = self.going(&delivered);
        let token = self.fresh();
        self.asked.insert(
            token,
            Asked {
                acked,
                ..Asked::default()
            },
        );
        let Delivered {
            connection,
            delivery,
            ..
        } = delivered;
        self.command(
            connection,
            Command::Ack {
                delivery,
                transaction: None,
                token,
            },
        );
    }

    pub(super) fn refuse(&mut self) {
        let Some(Delivered {
            connection,
            delivery,
            ..
        }) = self.hand()
        else {
            return;
        };
        let (reject, token) = (self.below(6) == 0, self.fresh());
        let command = Command::Nack {
            delivery,
            reject,
            transaction: None,
            token,
        };
        self.command(connection, command);
    }

    /// Opens a transaction with an acknowledgement and a send or two.
    pub(super) fn transaction(&mut self) {
        let Some(connection) = self.connection() else {
            return;
        };
        let number = self.fresh();
        self.command(
            connection,
            Command::Begin {
                transaction: number,
                token: 0,
            },
        );
        let transaction = Some(number);
        let mut asked = Asked::default();
        for _ in 0..=self.below(2) {
            let again = self.below(4) == 0;
            let repetition = again.then(|| self.repetition(number)).flatten();
            let (message, sent) = repetition.unwrap_or_else(|| self.new_message(number));
            asked.staged.extend(self.original(&message, &sent));
            asked.sent.extend(sent);
            self.command(
                connection,
                Command::Send {
                    message,
                    transaction,
                    token: 0,
                },
            );
        }
        let own = self
            .hands
            .iter()
            .position(|d| d.connection == connection && !d.staged);
        if let Some(position) = own {
            self.hands[position].staged = true;
            let delivered = self.hands[position].clone();
            if let Some(place) = delivered.place {
                asked.acked.push((place, delivered.marker));
            }
            let delivery = delivered.delivery;
            self.command(
                connection,
                Command::Ack {
                    delivery,
                    transaction,
                    token: 0,
                },
            );
        }
        self.transactions.insert((connection, number), asked);
    }

    pub(super) fn finish_transaction(&mut self) {
        let open: Vec<_> = self.transactions.keys().copied().collect();
        let Some((connection, number)) = self.pick(&open) else {
            return;
        };
        let Some(mut asked) = self.transactions.remove(&(connection, number)) else {
            return;
        };
        self.hands
            .retain(|d| d.connection != connection || !d.staged);
        let token = self.fresh();
        let others = self.transactions.keys().any(|(of, _)| *of == connection);
        if others || self.below(4) == 0 {
            // With several open the model would lose track of whose the staged ones are.
            asked.acked.clear();
            self.undone(&asked);
            self.command(
                connection,
                Command::Abort {
                    transaction: number,
                    token,
                },
            );
            return;
        }
        for key in &asked.acked {
            if let Some(expected) = self.expected.get_mut(key)
                && expected.fate != Fate::Consumed
            {
                expected.fate = Fate::Going;
            }
        }
        for (id, original) in std::mem::take(&mut asked.staged) {
            self.settle(&mut asked, id, original);
        }
        self.asked.insert(token, asked);
        self.command(
            connection,
            Command::Commit {
                transaction: number,
                token,
            },
        );
        if !self.has_failed(token)
            && let Some(asked) = self.asked.get_mut(&token)
        {
            // Decided, though nobody has been told: the next commit finds it so.
            self.originals.extend(std::mem::take(&mut asked.fresh));
        }
    }

    pub(super) fn leave(&mut self) {
        let Some(connection) = self.connection() else {
            return;
        };
        let subscriptions: Vec<_> = self
            .subscriptions
            .keys()
            .filter(|(of, _)| *of == connection)
            .copied()
            .collect();
        match (self.below(3), self.pick(&subscriptions)) {
            (0, Some((_, subscription))) => {
                self.command(
                    connection,
                    Command::Unsubscribe {
                        subscription,
                        token: 0,
                    },
                );
                self.subscriptions.remove(&(connection, subscription));
                let hands = self.hands.iter_mut();
                for hand in hands
                    .filter(|it| (it.connection, it.subscription) == (connection, subscription))
                {
                    hand.stale = true;
                }
            }
            (1, _) => self.command(connection, Command::Disconnect { token: 0 }),
            _ => self.step(Input::Lost {
                connection,
                reason: BusError::Closed,
            }),
        }
    }

    /// The queue with lanes, or one of its lanes if they have numbers.
    fn work(&mut self) -> Destination {
        let lane = format!("work.{}", self.below(5));
        let known = self.core.directory.resolve(&lane).is_some();
        let name = if known && self.below(4) == 0 {
            &lane
        } else {
            "work"
        };
        Destination::queue(name)
    }

    pub(super) fn lanes(&mut self) -> Lanes {
        let hash = LaneHash::JavaString;
        match self.below(5) {
            0 => Lanes::Key,
            1 => Lanes::Single,
            count => {
                let count = u32::try_from(count).unwrap();
                Lanes::Hashed { count, hash }
            }
        }
    }

    /// Changes the lanes of the queue `work`.
    pub(super) fn alter(&mut self) {
        let Some(connection) = self.connection() else {
            return;
        };
        let (lanes, drain) = (self.lanes(), self.below(4) > 0);
        let command = Command::Alter {
            queue: Destination::queue("work"),
            lanes,
            drain,
            token: 0,
        };
        self.command(connection, command);
        self.note_change();
    }

    /// Ends the queue `extra`, whoever uses it; the next start makes it again.
    pub(super) fn destroy(&mut self) {
        let Some(connection) = self.connection() else {
            return;
        };
        let force = self.below(3) > 0;
        let command = Command::Destroy {
            queue: Destination::queue("extra"),
            force,
            token: 0,
        };
        self.command(connection, command);
        let left = self.core.directory.queue("extra");
        assert!(left.is_none() || !force, "it is still there");
    }

    /// Takes note of a change of lanes that has begun, and of what was there then.
    pub(super) fn note_change(&mut self) {
        let id = self.core.directory.queue("work").unwrap();
        let queue = &self.core.queues[&id];
        let border = queue.drain().map(|drain| drain.border);
        if border == self.change.as_ref().map(|(border, _)| *border) {
            return;
        }
        let there = queue.messages.keys();
        self.change = border.map(|border| (border, there.filter(|id| *id < border).collect()));
    }

    /// What has left the queue is waited for no more, though it may come back from where it was moved to.
    pub(super) fn note_left(&mut self) {
        if let Some((_, before)) = &mut self.change {
            let id = self.core.directory.queue("work").unwrap();
            let queue = &self.core.queues[&id];
            before.retain(|id| queue.messages.get(id).is_some());
        }
    }

    /// Whatever comes after a change waits until everything that was there before it is gone.
    pub(super) fn check_change(&self, delivered: MessageId) {
        let Some((_, before)) = self.change.as_ref().filter(|it| delivered >= it.0) else {
            return;
        };
        let id = self.core.directory.queue("work").unwrap();
        let queue = &self.core.queues[&id];
        let left = queue.messages.keys().find(|id| before.contains(id));
        assert_eq!(left, None, "{delivered} came too early");
    }
}
