//! What an operator does meanwhile, in process and with messages.

use pillarbox_messages::{Destination, DestinationKind};

use super::{Asked, Simulation, place_of};
use crate::{
    admin::{Answer, Filter, Request},
    core::{
        message::{NewMessage, QueuedMessage},
        queue::State,
        tests::message,
    },
    embedded::connection::{
        AckMode, Command, ConnectionId, DeliveryId, MessageId, SubscribeOptions,
    },
    spelling,
};

impl Simulation {
    /// Whoever asks with messages has a queue for the answers.
    pub(super) fn subscribe_to_answers(&mut self) {
        let Some(connection) = self.connection() else {
            return;
        };
        if !self.asking.insert(connection) {
            return;
        }
        let subscription = self.fresh();
        let command = Command::Subscribe {
            options: SubscribeOptions::default(),
            ack_timeout: None,
            selector: None,
            subscription,
            destination: self.answers(connection),
            durable: None,
            ack: AckMode::Auto,
            prefetch: 3,
            token: 0,
        };
        self.command(connection, command);
    }

    fn answers(&self, connection: ConnectionId) -> Destination {
        let name = format!("{}.{}.answers", self.core.boot(), connection.0);
        Destination::new(DestinationKind::TemporaryQueue, &name)
    }

    pub(super) fn administer(&mut self) {
        let Some(connection) = self.connection() else {
            return;
        };
        let queues = ["work", "other", "aside", "~error", "~sub.d.n", "none"];
        let Some(name) = self.pick(&queues) else {
            return;
        };
        let queue = name.to_owned();
        let (ids, filter) = self.choice(name);
        let mut asked = Asked::default();
        let request = match self.below(4) {
            0 => Request::QueueList {
                after: None,
                limit: None,
            },
            1 => {
                asked.acked = self.about_to_go(name, ids.as_deref());
                Request::MsgDelete {
                    queue,
                    ids,
                    filter,
                    after: None,
                }
            }
            _ => {
                self.about_to_return(name);
                Request::MsgRetry {
                    queue,
                    ids,
                    filter,
                    after: None,
                }
            }
        };
        let token = self.fresh();
        self.asked.insert(token, asked);
        let command = if self.asking.contains(&connection) {
            let to = spelling::to_stomp(&self.answers(connection));
            let text = String::from_utf8(request.write()).unwrap();
            let message = NewMessage {
                reply_to: Some(to),
                correlation_id: Some(token.to_string()),
                ..message(Destination::queue("~admin"), &text)
            };
            Command::Send {
                message,
                transaction: None,
                token: 0,
            }
        } else {
            let request = Box::new(request);
            Command::Administer { request, token }
        };
        self.command(connection, command);
    }

    /// One message that is there, or all.
    fn choice(&mut self, name: &str) -> (Option<Vec<MessageId>>, Option<Filter>) {
        let there: Vec<MessageId> = self.standing(name).iter().map(|it| it.0).collect();
        match self.pick(&there) {
            Some(id) if self.below(3) > 0 => (Some(vec![id]), None),
            _ => (None, Some(Filter::default())),
        }
    }

    /// The messages of a queue that are in nobody's hands: their ids, places and markers.
    fn standing(&self, name: &str) -> Vec<(MessageId, Option<&'static str>, u64)> {
        let directory = &self.core.directory;
        let id = directory
            .queue(name)
            .or_else(|| directory.durable("d", "n").filter(|_| name == "~sub.d.n"));
        let queue = id.and_then(|id| self.core.queues.get(&id));
        let held = queue.into_iter().flat_map(|queue| queue.messages.values());
        let free = held.filter(|held| !matches!(held.state, State::InFlight(_)));
        free.map(|held| {
            let message = &held.message;
            let own = match name {
                "work" => Some("work"),
                "other" => Some("other"),
                "~sub.d.n" => Some("d"),
                _ => None,
            };
            let place = message.original_destination().map_or(own, place_of);
            let marker = String::from_utf8(message.body().to_vec()).unwrap();
            (message.id, place, marker.parse().unwrap())
        })
        .collect()
    }

    /// The promises that end with the deletion of these messages.
    fn about_to_go(&mut self, name: &str, ids: Option<&[MessageId]>) -> Vec<(&'static str, u64)> {
        let mut keys = Vec::new();
        for (id, place, marker) in self.standing(name) {
            let meant = ids.is_none_or(|ids| ids.contains(&id));
            if let Some(place) = place.filter(|_| meant && !self.volatile.contains(&marker)) {
                keys.push((place, marker));
                if let Some(expected) = self.expected.get_mut(&(place, marker)) {
                    expected.fate = super::Fate::Going;
                }
            }
        }
        keys
    }

    /// What returns stands before what was sent after it, and has been handed out already.
    fn about_to_return(&mut self, name: &str) {
        let markers = self.standing(name).into_iter().map(|(.., marker)| marker);
        self.jumped.extend(markers);
    }

    /// An answer has come as a message.
    pub(super) fn answered(
        &mut self,
        connection: ConnectionId,
        subscription: u64,
        delivery: DeliveryId,
        message: &QueuedMessage,
    ) {
        let answer: Answer = serde_json::from_slice(message.body_bytes()).unwrap();
        assert!(!self.subscriptions.contains_key(&(connection, subscription)));
        let token = message.correlation_id().unwrap().parse().unwrap();
        let asked: Asked = self.asked.remove(&token).expect("nobody has asked");
        match answer {
            Answer::Error { .. } => self.undone(&asked),
            _ => self.done(&asked),
        }
        self.step(crate::core::Input::Handed {
            connection,
            delivery,
        });
    }
}
