//! Who sent a message where: the same for all messages that somebody sends to one place.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use pillarbox_messages::{Destination, DestinationKind};

/// Who sent a message where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The client id of the connection that sent it.
    pub(crate) origin: Box<str>,
    pub(crate) destination: Destination,
    /// How the sender spelled the destination.
    pub(crate) text: Box<str>,
}

/// Addresses lately used, so that messages can share them: each has one place that it can be in, where the next one
/// takes over.
#[derive(Debug, Default)]
pub(crate) struct Addresses {
    known: Vec<Option<Arc<Address>>>,
}

/// A power of two.
const PLACES: usize = 256;

impl Addresses {
    /// The address, shared with earlier messages if they are not too long ago.
    pub(crate) fn share(
        &mut self,
        origin: &str,
        (kind, name): (DestinationKind, &str),
        text: &str,
    ) -> Arc<Address> {
        let mut hasher = DefaultHasher::new();
        (origin, name, text).hash(&mut hasher);
        let place = usize::try_from(hasher.finish() % (PLACES as u64)).unwrap_or_default();
        if self.known.len() <= place {
            self.known.resize(PLACES, None);
        }
        let is_it = |known: &&Arc<Address>| {
            let destination = &known.destination;
            (&*known.origin, &*known.text) == (origin, text)
                && (destination.kind(), destination.name()) == (kind, name)
        };
        let known = self.known.get(place).and_then(Option::as_ref);
        if let Some(address) = known.filter(is_it) {
            return Arc::clone(address);
        }
        let address = Arc::new(Address {
            origin: origin.into(),
            destination: Destination::new(kind, name),
            text: text.into(),
        });
        if let Some(known) = self.known.get_mut(place) {
            *known = Some(Arc::clone(&address));
        }
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_is_shared_and_another_is_not() {
        let mut addresses = Addresses::default();
        let queue = (DestinationKind::Queue, "q");
        let first = addresses.share("a", queue, "/queue/q");
        assert!(Arc::ptr_eq(
            &first,
            &addresses.share("a", queue, "/queue/q")
        ));
        for (origin, destination, text) in [
            ("b", queue, "/queue/q"),
            ("a", queue, "queue://q"),
            ("a", (DestinationKind::Queue, "p"), "/queue/q"),
            ("a", (DestinationKind::Topic, "q"), "/queue/q"),
        ] {
            let other = addresses.share(origin, destination, text);
            assert_ne!(other, first);
            assert_eq!((&*other.origin, &*other.text), (origin, text));
            let known = &other.destination;
            assert_eq!((known.kind(), known.name()), destination);
        }
    }

    #[test]
    fn any_number_of_them_takes_a_bounded_room() {
        let mut addresses = Addresses::default();
        for number in 0..10_000 {
            let name = number.to_string();
            let made = addresses.share(&name, (DestinationKind::Topic, &name), &name);
            assert_eq!(*made.text, *name);
        }
        assert_eq!(addresses.known.len(), PLACES);
    }
}
