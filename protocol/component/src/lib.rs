//! What every component shares: the path a message takes out and in, and raising alarms.
//!
//! Owns: the one place where message text is signed and verified ([`security`]); how a message becomes a
//! bus message and how it is delivered ([`outgoing`]); everything that is checked before a handler sees a
//! message ([`incoming`], [`reading`]); one-at-a-time-per-key dispatch ([`dispatch`]); the table of failures and the one
//! function that raises an alarm ([`alarms`]); the record of the bus connection ([`link`]); and [`Component`], which ties them to an identity.
//!
//! Refuses: to know any operation. What a request means is the handler's business.
//!
//! Invariants
//! * Text is verified before it is parsed, and signed after it is written; the same text crosses the bus.
//! * Nothing a peer sends panics or is held without bound; a message that is refused says who sent it, as
//!   far as it could be read.
//! * Only requests are answered when refused, so two components never answer each other's answers.

pub mod alarms;
pub mod asked;
pub mod component;
pub mod dispatch;
pub mod incoming;
pub mod link;
pub mod modified_utf8;
pub mod outgoing;
pub mod reading;
pub mod rejection;
pub mod responses;
pub mod security;

pub use crate::{
    alarms::{AlarmRequest, AlarmSender, Raised},
    asked::Asked,
    component::{Component, ComponentOptions},
    dispatch::KeyedWorkers,
    incoming::{Received, Refusal},
    link::{LinkMonitor, LinkRecord, Outage},
    outgoing::{DeliveryOptions, delivery_for},
    rejection::{Rejection, RejectionReason},
    security::MessageSecurity,
};
