//! How destinations are spelled on a STOMP bus: `/queue/name`, `/topic/name`, `/temp-queue/name`, and
//! `/remote-temp-queue/id` for somebody else's temporary queue. Also understood: `queue://name` and its
//! siblings, and a bare name, which is a topic.

pub use pillarbox_messages::destination::fault_of_name;
use pillarbox_messages::{Destination, DestinationKind};

const PREFIXES: [(&str, DestinationKind); 4] = [
    ("/queue/", DestinationKind::Queue),
    ("/topic/", DestinationKind::Topic),
    ("/temp-queue/", DestinationKind::TemporaryQueue),
    ("/remote-temp-queue/", DestinationKind::TemporaryQueue),
];

/// The destination that a STOMP header value names; `None` if it names none.
#[must_use]
pub fn from_stomp(text: &str) -> Option<Destination> {
    for (prefix, kind) in PREFIXES {
        if let Some(name) = text.strip_prefix(prefix) {
            return (!name.is_empty()).then(|| Destination::new(kind, name));
        }
    }
    if text.starts_with('/') {
        None
    } else {
        text.parse().ok()
    }
}

/// The destination as a STOMP header value. A temporary queue is spelled as everybody but its owner must spell it.
#[must_use]
pub fn to_stomp(destination: &Destination) -> String {
    let prefix = match destination.kind() {
        DestinationKind::Queue => "/queue/",
        DestinationKind::Topic => "/topic/",
        DestinationKind::TemporaryQueue => "/remote-temp-queue/",
    };
    format!("{prefix}{}", destination.name())
}

/// Whether a temporary queue's name is one that others use: `<boot>.<connection>.<name>`, as the queue manager
/// names a connection's own, or ActiveMQ's `ID:<host>...`. Any other is a connection's own name for its own.
fn is_remote_id(name: &str) -> bool {
    if name.contains(':') {
        return true;
    }
    let number = |part: Option<&str>| {
        part.is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut parts = name.splitn(3, '.');
    number(parts.next()) && number(parts.next()) && parts.next().is_some()
}

/// Whether this is a temporary queue by the name that its own connection has for it.
pub(crate) fn is_own_temporary(destination: &Destination) -> bool {
    destination.kind() == DestinationKind::TemporaryQueue && !is_remote_id(destination.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_lead_to_one_destination() {
        for text in ["/topic/a b", "topic://a b", "a b"] {
            assert_eq!(from_stomp(text), Some(Destination::topic("a b")), "{text}");
        }
        assert_eq!(from_stomp("/queue/a.b"), Some(Destination::queue("a.b")));
        assert_eq!(from_stomp("/queue/"), None);
        assert_eq!(from_stomp("/exchange/a"), None);
        let temporary = Destination::new(DestinationKind::TemporaryQueue, "1.2.x");
        assert_eq!(from_stomp(&to_stomp(&temporary)), Some(temporary));
    }
}
