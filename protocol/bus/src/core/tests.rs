//! The rules one by one, and all together against a simple model, a virtual clock and a disk that fails
//! (`simulation`).

mod administering;
mod bank;
mod consuming;
mod destroying;
mod draining;
mod durable;
mod failing;
mod invariants;
mod keyed;
mod limits;
mod ordering;
mod overdue;
mod pulling;
mod repeating;
mod reported;
mod routing;
mod shared;
mod simulation;
mod transactions;

use std::sync::Arc;

use bytes::Bytes;
use pillarbox_messages::Destination;

use super::{
    Core, Effects, Input, Limits, Wanted,
    backout::PoisonMoved,
    durable::SubscriptionRule,
    message::{Addresses, NewMessage, QueuedMessage},
    notice::Notice,
    overflow::SubscriptionTrouble,
};
use crate::{
    BusError, ClientTemplates, QueueAttributes, QueueDefinition,
    embedded::connection::{
        AckMode, Command, ConnectionId, DeliveryId, Event, MessageId, SubscribeOptions, Token,
    },
    log::codec,
};

/// A state machine, its clock, and what it has told its connections.
pub(super) struct World {
    core: Core,
    now: i64,
    token: Token,
    /// Everything told, in order.
    told: Vec<(ConnectionId, Event)>,
    /// Units written, with their entries' number.
    units: Vec<(bool, usize)>,
    /// Everything written, as the log has it.
    written: Vec<u8>,
    limits: Limits,
    queues: Vec<QueueDefinition>,
    /// What people were told of.
    moved: Vec<PoisonMoved>,
    troubles: Vec<SubscriptionTrouble>,
    /// What an administrator says about durable subscriptions.
    rules: Vec<SubscriptionRule>,
    durable_topics: Vec<Destination>,
    /// Those that he has registered.
    registered: Vec<(String, String, Destination)>,
}

impl World {
    fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    /// With the queue `work`, the topic `news`, and client topics made on demand.
    fn with_limits(limits: Limits) -> Self {
        Self::build(limits, &[])
    }

    /// The same, but the queue `work` is like this.
    fn with_work(attributes: QueueAttributes) -> Self {
        let name = "work".to_owned();
        Self::build(
            Limits::default(),
            &[QueueDefinition {
                name,
                attributes,
                drain: false,
            }],
        )
    }

    fn build(limits: Limits, queues: &[QueueDefinition]) -> Self {
        let mut world = Self {
            core: Core::new(limits.clone(), ClientTemplates::none()),
            now: 0,
            token: 0,
            told: Vec::new(),
            units: Vec::new(),
            written: Vec::new(),
            limits,
            queues: queues.to_vec(),
            moved: Vec::new(),
            troubles: Vec::new(),
            rules: Vec::new(),
            registered: Vec::new(),
            durable_topics: Vec::new(),
        };
        world.start().unwrap();
        world.units.clear();
        world
    }

    /// A new process, after this one has crashed with everything written.
    fn restart(&mut self) {
        self.told.clear();
        self.start().unwrap();
    }

    fn start(&mut self) -> Result<(), BusError> {
        let templates = ClientTemplates::new(|d| d.name().starts_with("client."));
        let mut core = Core::new(self.limits.clone(), templates);
        let entries =
            codec::decode(&self.written, &mut Addresses::default()).expect("what was written");
        entries.into_iter().for_each(|entry| core.replay(entry));
        let destinations = [Destination::queue("work"), Destination::topic("news")];
        let wanted = Wanted {
            destinations: &destinations,
            queues: &self.queues,
            durable_subscriptions: &self.registered,
            durable_topics: &self.durable_topics,
            subscription_rules: &self.rules,
        };
        let effects = core.start(self.now, &wanted)?;
        self.core = core;
        self.take(effects);
        Ok(())
    }

    fn step(&mut self, input: Input) {
        let effects = self.core.step(self.now, input);
        self.take(effects);
    }

    fn take(&mut self, effects: Effects) {
        let Effects {
            unit,
            events,
            notices,
            ..
        } = effects;
        for notice in notices {
            match notice {
                Notice::Moved(moved) => self.moved.push(moved),
                Notice::Subscription(trouble) => self.troubles.push(trouble),
            }
        }
        if let Some(unit) = unit {
            self.units.push((unit.sync, unit.entries.len()));
            for entry in &unit.entries {
                codec::encode(entry, &mut self.written);
            }
        }
        self.told.extend(
            events
                .into_iter()
                .map(|posted| (posted.connection, posted.event)),
        );
        invariants::check(&self.core);
    }

    fn open(&mut self, number: u64, client_id: &str) -> ConnectionId {
        self.open_as(number, client_id, false)
    }

    fn open_as(&mut self, number: u64, client_id: &str, in_process: bool) -> ConnectionId {
        let connection = ConnectionId(number);
        self.step(Input::Open {
            connection,
            client_id: client_id.to_owned(),
            in_process,
        });
        connection
    }

    /// Asks for something, and returns the answer.
    fn ask(
        &mut self,
        connection: ConnectionId,
        command: impl FnOnce(Token) -> Command,
    ) -> Result<bool, BusError> {
        self.token += 1;
        let token = self.token;
        self.step(Input::Command {
            connection,
            command: command(token),
        });
        let answer = self.told.iter().find_map(|(_, event)| match event {
            Event::Done {
                token: of,
                unroutable,
                ..
            } if *of == token => Some(Ok(*unroutable)),
            Event::Failed { token: of, error } if *of == token => Some(Err(error.clone())),
            _ => None,
        });
        answer.expect("no answer")
    }

    fn send(&mut self, connection: ConnectionId, message: NewMessage) -> Result<bool, BusError> {
        self.ask(connection, |token| Command::Send {
            message,
            transaction: None,
            token,
        })
    }

    /// Sends, and returns the message's identity.
    fn send_id(&mut self, connection: ConnectionId, message: NewMessage) -> MessageId {
        self.send(connection, message).unwrap();
        let last = self.token;
        let id = self.told.iter().find_map(|(_, event)| match event {
            Event::Done {
                token, message_id, ..
            } if *token == last => *message_id,
            _ => None,
        });
        id.expect("no identity")
    }

    fn subscribe(
        &mut self,
        connection: ConnectionId,
        subscription: u64,
        destination: Destination,
        prefetch: u32,
    ) -> Result<bool, BusError> {
        self.ask(connection, |token| Command::Subscribe {
            options: SubscribeOptions::default(),
            ack_timeout: None,
            selector: None,
            subscription,
            destination,
            durable: None,
            ack: AckMode::Individual,
            prefetch,
            token,
        })
    }

    fn subscribe_durable(
        &mut self,
        connection: ConnectionId,
        topic: &str,
        name: &str,
    ) -> Result<bool, BusError> {
        self.ask(connection, |token| Command::Subscribe {
            options: SubscribeOptions::default(),
            ack_timeout: None,
            selector: None,
            subscription: 900,
            destination: Destination::topic(topic),
            durable: Some(name.to_owned()),
            ack: AckMode::Individual,
            prefetch: 10,
            token,
        })
    }

    fn ack(&mut self, connection: ConnectionId, delivery: DeliveryId) -> Result<bool, BusError> {
        self.ask(connection, |token| Command::Ack {
            delivery,
            transaction: None,
            token,
        })
    }

    fn nack(&mut self, connection: ConnectionId, delivery: DeliveryId) -> Result<bool, BusError> {
        self.ask(connection, |token| Command::Nack {
            delivery,
            reject: false,
            transaction: None,
            token,
        })
    }

    fn pass(&mut self, milliseconds: i64) {
        self.now += milliseconds;
        self.step(Input::Tick);
    }

    fn lose(&mut self, connection: ConnectionId) {
        self.step(Input::Lost {
            connection,
            reason: BusError::Closed,
        });
    }

    /// The deliveries since the last call: body, delivery, delivery count, backout count.
    fn delivered(&mut self) -> Vec<(String, DeliveryId, u32, u32)> {
        self.take_deliveries(|_| true)
    }

    /// The same to one connection; others' stay for a later call.
    fn delivered_to(&mut self, connection: ConnectionId) -> Vec<(String, DeliveryId, u32, u32)> {
        self.take_deliveries(|to| to == connection)
    }

    fn take_deliveries(
        &mut self,
        wanted: impl Fn(ConnectionId) -> bool,
    ) -> Vec<(String, DeliveryId, u32, u32)> {
        let mut deliveries = Vec::new();
        self.told.retain(|(to, event)| {
            let Event::Deliver {
                delivery,
                message,
                delivery_count,
                backout_count,
                redelivered,
                ..
            } = event
            else {
                return true;
            };
            if !wanted(*to) {
                return true;
            }
            assert_eq!(*redelivered, *delivery_count > 1);
            let body = String::from_utf8(message.body().to_vec()).unwrap();
            deliveries.push((body, *delivery, *delivery_count, *backout_count));
            false
        });
        deliveries
    }

    /// The messages delivered since the last call.
    fn delivered_messages(&mut self) -> Vec<Arc<QueuedMessage>> {
        let told = std::mem::take(&mut self.told).into_iter();
        let messages = told.filter_map(|(_, event)| match event {
            Event::Deliver { message, .. } => Some(message),
            _ => None,
        });
        messages.collect()
    }

    fn bodies(&mut self) -> Vec<String> {
        self.delivered()
            .into_iter()
            .map(|(body, ..)| body)
            .collect()
    }
}

pub(super) fn message(destination: Destination, body: &str) -> NewMessage {
    NewMessage::new(destination, Bytes::copy_from_slice(body.as_bytes()))
}

pub(super) fn work(body: &str) -> NewMessage {
    message(Destination::queue("work"), body)
}

pub(super) fn news(body: &str) -> NewMessage {
    message(Destination::topic("news"), body)
}

pub(super) fn queue() -> Destination {
    Destination::queue("work")
}
