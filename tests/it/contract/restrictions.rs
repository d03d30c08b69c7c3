//! What a bus does not do, and why: an entry for each contract that it does not keep.

use super::{handling::Broken, site::Kind};

/// A contract that a bus does not keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restriction {
    pub(super) bus: Kind,
    /// As the table names it.
    pub(super) contract: &'static str,
    pub(super) breaks: Breaks,
    /// How what is found then begins: anything else is a fault.
    pub(super) found: &'static [&'static str],
    pub(super) reason: &'static str,
}

impl Restriction {
    /// Whether this is how the contract is not kept.
    pub(super) fn covers(&self, broken: &Broken) -> bool {
        let broken = broken.to_string();
        self.found.iter().any(|found| broken.starts_with(found))
    }
}

/// When a contract is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Breaks {
    Always,
    /// As moments fall.
    Sometimes,
}

pub(super) const RESTRICTIONS: &[Restriction] = &[
    Restriction {
        bus: Kind::Embedded,
        contract: "restarts::clients_come_back",
        breaks: Breaks::Always,
        found: &["what was in hand: Err(Closed)"],
        reason: "a bus in the client's process ends with the client",
    },
    Restriction {
        bus: Kind::Embedded,
        contract: "restarts::clients_listen_again",
        breaks: Breaks::Always,
        found: &["the subscription has ended"],
        reason: "a bus in the client's process ends with the client",
    },
    Restriction {
        bus: Kind::ActiveMq,
        contract: "queues::the_group_arrives",
        breaks: Breaks::Always,
        found: &["the group: None"],
        reason: "it gives a group to one consumer and does not tell the group",
    },
    Restriction {
        bus: Kind::RabbitMq,
        contract: "queues::a_message_keeps_its_id",
        breaks: Breaks::Always,
        found: &["the id: "],
        reason: "it names deliveries and not messages",
    },
    Restriction {
        bus: Kind::RabbitMq,
        contract: "units::who_vanishes_has_sent_nothing",
        breaks: Breaks::Always,
        found: &["the next message: \"the answer\""],
        reason: "its acknowledgements are no part of transactions, so answers go first: two may come, or one, never none",
    },
    Restriction {
        bus: Kind::RabbitMq,
        contract: "clients::a_live_id_is_refused",
        breaks: Breaks::Always,
        found: &["the second client: \"connected\""],
        reason: "it does not look at client ids",
    },
    Restriction {
        bus: Kind::RabbitMq,
        contract: "restarts::acknowledged_stays_gone",
        breaks: Breaks::Sometimes,
        found: &["the next message: ", "no message comes"],
        reason: "it confirms an acknowledgement, and a persistent message, before that is on the disk",
    },
    Restriction {
        bus: Kind::RabbitMq,
        contract: "restarts::persistent_messages_survive",
        breaks: Breaks::Sometimes,
        found: LOST,
        reason: CONFIRMED_EARLY,
    },
    Restriction {
        bus: Kind::RabbitMq,
        contract: "restarts::clients_come_back",
        breaks: Breaks::Sometimes,
        found: LOST,
        reason: CONFIRMED_EARLY,
    },
];

const CONFIRMED_EARLY: &str =
    "it confirms a persistent message of a classic queue before that is on the disk";

/// Messages that are not there, or not all of them.
const LOST: &[&str] = &[
    "no message comes",
    "the next message: ",
    "what comes then: ",
];
