//! The bus: one handle for every component ([`Bus`]), the embedded queue manager ([`embedded::Broker`]), and
//! STOMP 1.2.
//!
//! Owns destinations, queues, subscriptions, acknowledgement, transactions, expiry and the log they are kept in.
//! Carries message text unchanged and never looks into it. Refuses to open a queue space twice, to go on after a
//! failed write, and to drop anything without counting it.
//!
//! Invariants
//! * A topic only routes; whatever keeps messages is a queue: a subscription and a temporary queue are queues too.
//! * A persistent message whose sender has been told so is in exactly one place per subscription until it is
//!   acknowledged or expires, whatever crashes.
//! * What belongs together (a send to several subscriptions, a transaction) is one record of the log.
//! * A message that returns, returns to its old place in the order.
//! * Nothing is delivered after it has expired.
//!
//! Modules
//! * [`handle`]: [`Bus`], [`Subscription`], [`Delivery`], [`Transaction`]
//! * [`embedded`]: the queue manager in this process, and the seam that the STOMP server uses too
//! * [`admin`]: what an operator asks of queues and messages, in process or with messages to `/queue/~admin`
//! * `core`: the queue manager's rules, as a state machine without I/O and clock
//! * `log`: the segment log under it
//! * [`stomp`]: STOMP 1.2, server and client
//! * [`spelling`]: destinations in STOMP headers
//! * [`error`]: everything that can go wrong

pub mod admin;
mod core;
pub mod embedded;
pub mod error;
pub mod handle;
mod log;
mod paged;
pub mod spelling;
pub mod stomp;

pub use self::{
    core::{
        attributes::{
            Criterion, LaneHash, Lanes, OnExpiry, OnLanePoison, Order, OutOfOrder, QueueAttributes,
            QueueDefinition, RetryDelay,
        },
        durable::{OnLimit, SubscriptionRule},
    },
    embedded::{Broker, BrokerOptions, ClientTemplates, Stats, connection::SubscribeOptions},
    error::BusError,
    handle::{
        AckMode, Bus, BusState, ConnectOptions, Delivery, GetRequest, Incoming, Outgoing, Selector,
        SubscribeRequest, Subscription, Transaction, Wait,
    },
    stomp::{Passcode, StompLimits, StompOptions, StompServer},
};
