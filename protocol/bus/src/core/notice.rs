//! What people are told of while the queue manager runs.

use super::{backout::PoisonMoved, overflow::SubscriptionTrouble};

/// Something that a person should look at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// A message was moved aside.
    Moved(PoisonMoved),
    /// A durable subscription is full, or was given up.
    Subscription(SubscriptionTrouble),
}

impl From<PoisonMoved> for Notice {
    fn from(moved: PoisonMoved) -> Self {
        Self::Moved(moved)
    }
}

impl From<SubscriptionTrouble> for Notice {
    fn from(trouble: SubscriptionTrouble) -> Self {
        Self::Subscription(trouble)
    }
}
