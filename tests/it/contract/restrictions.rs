//! What a bus does not do, and why: an entry for each contract that it does not keep.

use super::site::Kind;

/// A contract that a bus does not keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Restriction {
    pub(super) bus: Kind,
    /// As the table names it.
    pub(super) contract: &'static str,
    pub(super) breaks: Breaks,
    pub(super) reason: &'static str,
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
        reason: "a bus in the client's process ends with the client",
    },
    Restriction {
        bus: Kind::ActiveMq,
        contract: "queues::the_group_arrives",
        breaks: Breaks::Always,
        reason: "it gives a group to one consumer and does not tell the group",
    },
    Restriction {
        bus: Kind::RabbitMq,
        contract: "queues::a_message_keeps_its_id",
        breaks: Breaks::Always,
        reason: "it names deliveries and not messages",
    },
    Restriction {
        bus: Kind::RabbitMq,
        contract: "units::who_vanishes_has_sent_nothing",
        breaks: Breaks::Always,
        reason: "its acknowledgements are no part of transactions, so answers go first: two may come, or one, never none",
    },
    Restriction {
        bus: Kind::RabbitMq,
        contract: "clients::a_live_id_is_refused",
        breaks: Breaks::Always,
        reason: "it does not look at client ids",
    },
    Restriction {
        bus: Kind::RabbitMq,
        contract: "restarts::acknowledged_stays_gone",
        breaks: Breaks::Sometimes,
        reason: "it confirms an acknowledgement before that is on the disk",
    },
    Restriction {
        bus: Kind::RabbitMq,
        contract: "restarts::persistent_messages_survive",
        breaks: Breaks::Sometimes,
        reason: CONFIRMED_EARLY,
    },
    Restriction {
        bus: Kind::RabbitMq,
        contract: "restarts::clients_come_back",
        breaks: Breaks::Sometimes,
        reason: CONFIRMED_EARLY,
    },
];

const CONFIRMED_EARLY: &str =
    "it confirms a persistent message of a classic queue before that is on the disk";
