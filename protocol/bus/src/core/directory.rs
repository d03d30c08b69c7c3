//! Which names there are, and what they lead to.

use std::collections::{BTreeMap, BTreeSet};

use pillarbox_messages::{Destination, DestinationKind};

use super::{
    Core, ERROR_QUEUE,
    attributes::{Lanes, QueueAttributes, QueueDefinition},
    durable::{Nature, Subscriber, SubscriptionLimits, lanes_by},
    queue::{Queue, QueueKind, part_number},
    unit::{Definition, Entry, QueueId},
};
use crate::{error::BusError, spelling};

/// Names and what they lead to.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    /// Topics that exist by definition. Others exist while they have a subscription.
    pub(super) topics: BTreeMap<String, QueueId>,
    queues: BTreeMap<String, QueueId>,
    temporary: BTreeMap<String, QueueId>,
    durables: BTreeMap<(String, String), QueueId>,
    /// Topics' subscriptions.
    routes: BTreeMap<String, BTreeSet<QueueId>>,
    /// Queues that others move messages to and that nobody has described. They move none themselves.
    sinks: BTreeSet<String>,
    /// Queues that are described for this life: what is said of them holds.
    described: BTreeSet<String>,
    /// Queues whose lanes can be addressed, with how many they have.
    parts: BTreeMap<String, u32>,
}

impl Directory {
    /// Whether messages may be sent there.
    pub(super) fn knows(&self, destination: &Destination) -> bool {
        let name = destination.name();
        match destination.kind() {
            DestinationKind::Topic => {
                self.topics.contains_key(name) || self.routes.contains_key(name)
            }
            DestinationKind::Queue => !name.starts_with('~') && self.resolve(name).is_some(),
            DestinationKind::TemporaryQueue => self.temporary.contains_key(name),
        }
    }

    /// The queues that a message sent there comes to.
    pub(super) fn targets(&self, destination: &Destination) -> Vec<QueueId> {
        let name = destination.name();
        match destination.kind() {
            DestinationKind::Topic => self
                .routes
                .get(name)
                .into_iter()
                .flatten()
                .copied()
                .collect(),
            DestinationKind::Queue => self.resolve(name).map(|(id, _)| id).into_iter().collect(),
            DestinationKind::TemporaryQueue => self.temporary(name).into_iter().collect(),
        }
    }

    pub(super) fn queue(&self, name: &str) -> Option<QueueId> {
        self.queues.get(name).copied()
    }

    /// The queue of a name, or the one that it names a lane of.
    pub(super) fn resolve(&self, name: &str) -> Option<(QueueId, Option<u32>)> {
        if let Some(id) = self.queue(name) {
            return Some((id, None));
        }
        let (queue, part) = name.rsplit_once('.')?;
        let part = part_number(part, *self.parts.get(queue)?)?;
        Some((self.queue(queue)?, Some(part)))
    }

    pub(super) fn temporary(&self, name: &str) -> Option<QueueId> {
        self.temporary.get(name).copied()
    }

    pub(super) fn durable(&self, client_id: &str, name: &str) -> Option<QueueId> {
        self.durables
            .get(&(client_id.to_owned(), name.to_owned()))
            .copied()
    }

    /// Whether a durable subscription of this name is some client's own.
    pub(super) fn is_owned(&self, name: &str) -> bool {
        let mut durables = self.durables.keys();
        durables.any(|(owner, known)| !owner.is_empty() && known == name)
    }

    pub(super) fn durable_count(&self) -> usize {
        self.durables.len()
    }

    fn insert(&mut self, id: QueueId, kind: &QueueKind) {
        match kind {
            QueueKind::Named { name, .. } => {
                self.queues.insert(name.clone(), id);
            }
            QueueKind::Temporary { name } => {
                self.temporary.insert(name.clone(), id);
            }
            QueueKind::Plain { topic } => self.add_route(topic, id),
            QueueKind::Durable {
                client_id,
                name,
                topic,
            } => {
                self.durables.insert((client_id.clone(), name.clone()), id);
                self.add_route(topic, id);
            }
        }
    }

    fn remove(&mut self, id: QueueId, kind: &QueueKind) {
        match kind {
            QueueKind::Named { name, .. } => {
                self.queues.remove(name);
            }
            QueueKind::Temporary { name } => {
                self.temporary.remove(name);
            }
            QueueKind::Plain { topic } => self.remove_route(topic, id),
            QueueKind::Durable {
                client_id,
                name,
                topic,
            } => {
                self.durables.remove(&(client_id.clone(), name.clone()));
                self.remove_route(topic, id);
            }
        }
    }

    fn add_route(&mut self, topic: &str, id: QueueId) {
        self.routes.entry(topic.to_owned()).or_default().insert(id);
    }

    fn remove_route(&mut self, topic: &str, id: QueueId) {
        if let Some(route) = self.routes.get_mut(topic) {
            route.remove(&id);
            if route.is_empty() {
                self.routes.remove(topic);
            }
        }
    }
}

impl Core {
    /// Makes a queue that nothing special is known about; a lasting one is journaled.
    pub(super) fn make_queue(&mut self, kind: QueueKind) -> QueueId {
        self.make_queue_with(kind, QueueAttributes::plain())
    }

    fn make_queue_with(&mut self, kind: QueueKind, attributes: QueueAttributes) -> QueueId {
        self.make(Queue::new(kind, attributes))
    }

    /// Makes a durable subscription that nobody takes from yet.
    pub(super) fn make_subscriber(
        &mut self,
        kind: QueueKind,
        limits: SubscriptionLimits,
        nature: Nature,
    ) -> QueueId {
        let lanes = match &kind {
            QueueKind::Durable {
                client_id, name, ..
            } => lanes_by(&self.rules, client_id, name),
            _ => Lanes::None,
        };
        let attributes = QueueAttributes {
            lanes,
            ..QueueAttributes::plain()
        };
        let mut queue = Queue::new(kind, attributes);
        queue.subscriber = Some(Box::new(Subscriber::new(limits, &nature)));
        let id = self.make(queue);
        self.note_away(id);
        id
    }

    fn make(&mut self, queue: Queue) -> QueueId {
        let id = self.next_queue_id();
        if let Some(definition) = definition_of(&queue) {
            self.draft.write_synced(Entry::Define {
                queue: id,
                definition,
            });
        }
        self.insert_queue(id, queue);
        id
    }

    pub(super) fn insert_queue(&mut self, id: QueueId, queue: Queue) {
        let is_named = matches!(queue.kind, QueueKind::Named { .. });
        self.insert_known(id, queue);
        if is_named {
            self.note_names();
        }
    }

    pub(super) fn insert_known(&mut self, id: QueueId, queue: Queue) {
        self.directory.insert(id, &queue.kind);
        self.queues.insert(id, queue);
    }

    /// Takes note of the queues that are described.
    ///
    /// # Errors
    /// [`BusError::QueueCircle`].
    pub(super) fn note_described(
        &mut self,
        definitions: &[QueueDefinition],
    ) -> Result<(), BusError> {
        if let Some(queues) = circle(definitions) {
            return Err(BusError::QueueCircle { queues });
        }
        let names = definitions.iter().map(|it| it.name.clone());
        self.directory.described = names.collect();
        self.note_names();
        Ok(())
    }

    /// The queue of this name, to be changed.
    ///
    /// # Errors
    /// [`BusError::UnknownDestination`]; that it is the bus's own, and nobody's to change.
    pub(super) fn named_queue(&self, destination: &Destination) -> Result<QueueId, BusError> {
        let known = self.directory.queue(destination.name());
        let queue = known.filter(|_| destination.kind() == DestinationKind::Queue);
        let id = queue.ok_or_else(|| BusError::UnknownDestination {
            destination: destination.clone(),
            remedy: "name a queue that is there".to_owned(),
        })?;
        check_name(destination.name())?;
        Ok(id)
    }

    /// Whether this is the error queue, or one that is there only because others move messages to it.
    pub(super) fn is_sink(&self, id: QueueId) -> bool {
        match self.queues.get(&id).map(|queue| &queue.kind) {
            Some(QueueKind::Named { name, .. }) => {
                name == ERROR_QUEUE || self.directory.sinks.contains(name)
            }
            _ => false,
        }
    }

    /// Takes note of what queues' attributes say about names.
    pub(super) fn note_names(&mut self) {
        let targets = self.queues.values().flat_map(|it| it.attributes.targets());
        let described = &self.directory.described;
        let sinks = targets.filter(|target| !described.contains(*target));
        self.directory.sinks = sinks.map(str::to_owned).collect();
        let parts = self.queues.values().filter_map(|queue| {
            let QueueKind::Named { name, .. } = &queue.kind else {
                return None;
            };
            let count = queue.numbered_lanes();
            (count > 0).then(|| (name.clone(), count))
        });
        self.directory.parts = parts.collect();
    }

    /// Refuses a name that would mean two things.
    pub(super) fn check_parts(
        &self,
        name: &str,
        attributes: &QueueAttributes,
    ) -> Result<(), BusError> {
        if let Some((_, Some(part))) = self.directory.resolve(name) {
            let detail = format!("'{name}' is lane {part} of another queue");
            return Err(BusError::invalid(detail));
        }
        let Lanes::Hashed { count, .. } = attributes.lanes else {
            return Ok(());
        };
        let names = self.directory.queues.keys();
        let mut parts = names.filter(|other| {
            let part = other.strip_prefix(name).and_then(|it| it.strip_prefix('.'));
            part.is_some_and(|part| part_number(part, count).is_some())
        });
        match parts.next() {
            Some(other) => Err(BusError::invalid(format!(
                "there is a queue '{other}', which would be a lane of '{name}'"
            ))),
            None => Ok(()),
        }
    }

    /// Ends a queue with everything in it.
    pub(super) fn drop_queue(&mut self, id: QueueId) {
        let Some(queue) = self.queues.get(&id) else {
            return;
        };
        let messages: Vec<_> = queue.messages.keys().collect();
        self.forget_place(id);
        for message in messages {
            self.remove_message(id, message);
        }
        self.draining.remove(&id);
        self.forget_subscriber(id);
        if let Some(queue) = self.queues.remove(&id) {
            self.directory.remove(id, &queue.kind);
            if queue.kind.is_lasting() {
                self.draft.write_synced(Entry::Remove { queue: id });
            }
        }
    }

    /// Makes a lasting destination if it isn't there.
    pub(super) fn define(&mut self, destination: &Destination) -> Result<(), BusError> {
        let name = destination.name();
        check_name(name)?;
        match destination.kind() {
            DestinationKind::Topic if !self.directory.topics.contains_key(name) => {
                let queue = self.next_queue_id();
                let definition = Definition::Topic {
                    name: name.to_owned(),
                };
                self.draft.write_synced(Entry::Define { queue, definition });
                self.directory.topics.insert(name.to_owned(), queue);
            }
            DestinationKind::Queue if self.directory.resolve(name).is_none() => {
                self.make_queue(QueueKind::Named {
                    name: name.to_owned(),
                    passing: false,
                });
            }
            DestinationKind::Topic | DestinationKind::Queue => {}
            DestinationKind::TemporaryQueue => {
                return Err(BusError::invalid(format!(
                    "{destination} can only be made by its owner"
                )));
            }
        }
        Ok(())
    }

    /// Makes a queue as it must be, or makes it so.
    pub(super) fn define_queue(
        &mut self,
        QueueDefinition {
            name,
            attributes,
            drain,
        }: &QueueDefinition,
    ) -> Result<(), BusError> {
        check_name(name)?;
        attributes.check(name)?;
        self.check_parts(name, attributes)?;
        match self.directory.queue(name) {
            Some(id) => self.alter_queue(id, name, attributes, *drain)?,
            None => {
                let kind = QueueKind::Named {
                    name: name.clone(),
                    passing: false,
                };
                self.make_queue_with(kind, attributes.clone());
            }
        }
        for target in attributes.targets() {
            if self.directory.queue(target).is_none() {
                self.make_queue(QueueKind::Named {
                    name: target.to_owned(),
                    passing: false,
                });
            }
        }
        Ok(())
    }

    /// The error queue, made if it isn't there.
    pub(super) fn error_queue(&mut self) -> QueueId {
        match self.directory.queue(ERROR_QUEUE) {
            Some(id) => id,
            None => self.make_queue(QueueKind::Named {
                name: ERROR_QUEUE.to_owned(),
                passing: false,
            }),
        }
    }

    fn next_queue_id(&mut self) -> QueueId {
        let id = QueueId(self.next_queue);
        self.next_queue += 1;
        id
    }
}

/// What the log must know of a queue; `None` if it must know nothing.
pub(super) fn definition_of(queue: &Queue) -> Option<Definition> {
    match &queue.kind {
        QueueKind::Named {
            name,
            passing: false,
        } => Some(Definition::Queue {
            name: name.clone(),
            attributes: queue.attributes.clone(),
            drain: queue.drain(),
        }),
        QueueKind::Durable {
            client_id,
            name,
            topic,
        } => Some(Definition::Durable {
            client_id: client_id.clone(),
            name: name.clone(),
            topic: topic.clone(),
            limits: queue
                .subscriber
                .as_ref()
                .map(|it| it.limits)
                .unwrap_or_default(),
            nature: queue
                .subscriber
                .as_ref()
                .map(|it| it.nature())
                .unwrap_or_default(),
        }),
        QueueKind::Named { .. } | QueueKind::Plain { .. } | QueueKind::Temporary { .. } => None,
    }
}

/// Queues that move messages from one to the next, and from the last to the first, if there are such. What is not
/// described moves none.
fn circle(definitions: &[QueueDefinition]) -> Option<Vec<String>> {
    let mut left: BTreeMap<&str, Vec<&str>> = definitions
        .iter()
        .map(|it| (it.name.as_str(), it.attributes.targets().collect()))
        .collect();
    // Without circles there is always a queue that leads to none of those left.
    loop {
        let ends = |targets: &Vec<&str>| !targets.iter().any(|it| left.contains_key(it));
        let found = left.iter().find(|(_, targets)| ends(targets));
        let Some(name) = found.map(|(name, _)| *name) else {
            break;
        };
        left.remove(name);
    }
    let mut way = vec![*left.keys().next()?];
    loop {
        let targets = left.get(way.last()?)?;
        let next = *targets.iter().find(|it| left.contains_key(*it))?;
        if let Some(at) = way.iter().position(|it| *it == next) {
            return Some(way.iter().skip(at).map(|it| (*it).to_owned()).collect());
        }
        way.push(next);
    }
}

/// Refuses names that are none, and names of the system's own.
pub(super) fn check_name(name: &str) -> Result<(), BusError> {
    let fault = if name.starts_with('~') {
        Some("starts with '~', which is the bus's own")
    } else {
        spelling::fault_of_name(name)
    };
    match fault {
        Some(fault) => Err(BusError::invalid(format!(
            "destination name '{name}' {fault}"
        ))),
        None => Ok(()),
    }
}
