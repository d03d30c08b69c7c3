//! Durable subscriptions: which one is meant, and making, replacing and cancelling them.

use std::collections::BTreeSet;

use pillarbox_messages::Destination;

use super::{Wish, limit};
use crate::{
    core::{
        Core,
        directory::check_name,
        durable::{Nature, limits_by},
        queue::QueueKind,
        selector::Selector,
        unit::QueueId,
    },
    embedded::connection::ConnectionId,
    error::BusError,
};

/// The longest name of a durable subscription, in bytes: it may have an id and the name of a destination in it.
pub(in crate::core) const MAX_DURABLE_NAME: usize = 1024;
/// The longest selector of a durable subscription, in bytes: the definitions of all of them fit a segment of the log.
const MAX_DURABLE_SELECTOR: usize = 1024;

impl Core {
    /// A connection that has taken from a shared subscription may cancel it, until it has had too many others.
    pub(super) fn note_shared(&mut self, connection: ConnectionId, queue: QueueId) {
        let Some(session) = self.sessions.get_mut(&connection) else {
            return;
        };
        session.shared.insert(queue);
        if session.shared.len() > self.limits.subscriptions {
            session.shared.retain(|id| self.queues.contains_key(id));
        }
        if session.shared.len() > self.limits.subscriptions {
            session.shared.pop_first();
        }
    }

    /// Deletes a durable subscription of this client, or a shared one that this connection has taken from.
    pub(in crate::core) fn cancel_durable(
        &mut self,
        connection: ConnectionId,
        name: String,
    ) -> Result<(), BusError> {
        let session = self.sessions.get(&connection).ok_or(BusError::Closed)?;
        let client_id = session.client_id.clone();
        let own = self.directory.durable(&client_id, &name);
        // A shared one of this name is not meant by who has never taken from it.
        let shared = self.directory.durable("", &name);
        let shared = shared.filter(|id| session.shared.contains(id));
        let Some(queue_id) = own.or(shared) else {
            let detail = format!("client '{client_id}' has no durable subscription '{name}'");
            return Err(BusError::invalid(detail));
        };
        let consumers = self
            .queues
            .get(&queue_id)
            .map(|queue| queue.consumers.clone());
        let consumers = consumers.unwrap_or_default();
        if consumers
            .iter()
            .any(|consumer| consumer.connection != connection)
        {
            return Err(BusError::SubscriptionInUse { client_id, name });
        }
        for consumer in consumers {
            self.detach(connection, consumer.subscription, &BTreeSet::new());
        }
        self.drop_queue(queue_id);
        Ok(())
    }

    /// Makes a durable subscription before its client comes, so that it misses nothing.
    pub(in crate::core) fn register_durable(
        &mut self,
        client_id: &str,
        name: &str,
        destination: &Destination,
    ) -> Result<QueueId, BusError> {
        if let Some(id) = self.directory.durable(client_id, name) {
            self.check_topic(id, destination)?;
            return Ok(id);
        }
        check_name(destination.name())?;
        check_durable_name(name)?;
        let limits = limits_by(&self.rules, client_id, name, true);
        let kind = QueueKind::Durable {
            client_id: client_id.to_owned(),
            name: name.to_owned(),
            topic: destination.name().to_owned(),
        };
        Ok(self.make_subscriber(kind, limits, Nature::default()))
    }

    pub(super) fn durable_queue(
        &mut self,
        connection: ConnectionId,
        name: &str,
        wish: &Wish,
    ) -> Result<QueueId, BusError> {
        let session = self.sessions.get(&connection).ok_or(BusError::Closed)?;
        let client_id = session.client_id.clone();
        let shared = wish.options.shared;
        if client_id.is_empty() && !shared {
            return Err(BusError::invalid(
                "a durable subscription needs a client id",
            ));
        }
        self.check_shared(&client_id, name, shared)?;
        let owner = if shared { "" } else { client_id.as_str() };
        let known = self.directory.durable(owner, name);
        if let Some(id) = known {
            if self
                .queues
                .get(&id)
                .is_some_and(|it| !shared && !it.consumers.is_empty())
            {
                let name = name.to_owned();
                return Err(BusError::SubscriptionInUse { client_id, name });
            }
            match self.check_same(id, wish) {
                Ok(()) => {
                    // Whoever made it may still wait for it to be on the disk.
                    self.draft.need_barrier();
                    return Ok(id);
                }
                Err(_) if wish.options.replace => self.check_replaced(id)?,
                Err(error) => return Err(error),
            }
        } else if shared {
            self.check_nobodys(&client_id, name)?;
        }
        self.check_new_durable(name, wish, usize::from(known.is_some()))?;
        if let Some(replaced) = known {
            self.drop_queue(replaced);
        }
        let limits = limits_by(&self.rules, owner, name, false);
        let kind = QueueKind::Durable {
            client_id: owner.to_owned(),
            name: name.to_owned(),
            topic: wish.destination.name().to_owned(),
        };
        Ok(self.make_subscriber(kind, limits, Nature::of(wish)))
    }

    /// Whether such a durable subscription may be made, when so many others have ended for it.
    fn check_new_durable(&self, name: &str, wish: &Wish, ended: usize) -> Result<(), BusError> {
        self.check_new_queue(&wish.destination, ended)?;
        self.check_durables(ended)?;
        self.check_room()?;
        check_name(wish.destination.name())?;
        check_durable_name(name)?;
        check_durable_selector(wish.selector.as_ref())
    }

    /// Refuses to make a shared subscription whose name is that of somebody's own.
    fn check_nobodys(&self, client_id: &str, name: &str) -> Result<(), BusError> {
        if !self.directory.is_owned(name) {
            return Ok(());
        }
        Err(BusError::SubscriptionDiffers {
            client_id: client_id.to_owned(),
            name: name.to_owned(),
            detail: "is a client's own, not shared".to_owned(),
        })
    }

    /// Refuses whoever takes a shared subscription for his own, or his own for a shared one.
    fn check_shared(&self, client_id: &str, name: &str, shared: bool) -> Result<(), BusError> {
        let own = !client_id.is_empty() && self.directory.durable(client_id, name).is_some();
        let detail = match shared {
            true if own => "is its own, not shared",
            false if !own && self.directory.durable("", name).is_some() => "is shared, not its own",
            _ => return Ok(()),
        };
        Err(BusError::SubscriptionDiffers {
            client_id: client_id.to_owned(),
            name: name.to_owned(),
            detail: detail.to_owned(),
        })
    }

    fn check_topic(&self, id: QueueId, requested: &Destination) -> Result<(), BusError> {
        match self.queues.get(&id).map(|queue| &queue.kind) {
            Some(QueueKind::Durable {
                client_id,
                name,
                topic,
            }) if topic != requested.name() => Err(BusError::SubscriptionMismatch {
                client_id: client_id.clone(),
                name: name.clone(),
                existing: Destination::topic(topic),
                requested: requested.clone(),
            }),
            _ => Ok(()),
        }
    }

    /// Refuses whoever wants another subscription than the one of this name is.
    fn check_same(&self, id: QueueId, wish: &Wish) -> Result<(), BusError> {
        self.check_topic(id, &wish.destination)?;
        let Some(queue) = self.queues.get(&id) else {
            return Ok(());
        };
        let (
            Some(subscriber),
            QueueKind::Durable {
                client_id, name, ..
            },
        ) = (&queue.subscriber, &queue.kind)
        else {
            return Ok(());
        };
        let (existing, requested) = (subscriber.nature(), Nature::of(wish));
        existing.difference(&requested).map_or(Ok(()), |detail| {
            Err(BusError::SubscriptionDiffers {
                client_id: client_id.clone(),
                name: name.clone(),
                detail,
            })
        })
    }

    /// Whether another subscription may take the name of this one.
    fn check_replaced(&self, id: QueueId) -> Result<(), BusError> {
        let queue = self.queues.get(&id);
        if let Some(QueueKind::Durable {
            client_id, name, ..
        }) = queue.map(|queue| &queue.kind)
            && queue.is_some_and(|queue| !queue.consumers.is_empty())
        {
            return Err(BusError::SubscriptionInUse {
                client_id: client_id.clone(),
                name: name.clone(),
            });
        }
        if queue
            .and_then(|it| it.subscriber.as_ref())
            .is_some_and(|it| it.registered)
        {
            return Err(BusError::invalid(
                "this durable subscription is the settings' own: change it there",
            ));
        }
        Ok(())
    }

    /// Each is kept until its client has been away for too long: whoever makes up new names all the time must not fill
    /// the memory.
    fn check_durables(&self, ended: usize) -> Result<(), BusError> {
        let most = self.limits.durables;
        if self.directory.durable_count().saturating_sub(ended) < most {
            return Ok(());
        }
        Err(limit("the bus", "durable subscriptions", most))
    }
}

fn check_durable_name(name: &str) -> Result<(), BusError> {
    if name.len() <= MAX_DURABLE_NAME {
        return Ok(());
    }
    Err(BusError::TooLarge {
        what: "the name of a durable subscription".to_owned(),
        limit: MAX_DURABLE_NAME as u64,
    })
}

fn check_durable_selector(selector: Option<&Selector>) -> Result<(), BusError> {
    if selector.is_none_or(|it| it.as_str().len() <= MAX_DURABLE_SELECTOR) {
        return Ok(());
    }
    Err(limit(
        "the selector of a durable subscription",
        "bytes",
        MAX_DURABLE_SELECTOR,
    ))
}
