//! STOMP 1.2 over TCP: the server that lets other processes use the embedded queue manager, and the client
//! that is one kind of [`Bus`](crate::Bus).
//!
//! * `frame`, `codec`: frames and their bytes, one codec for both sides
//! * `wire`, `heart_beat`: one connection's bytes in and out, its heart-beats and deadlines
//! * `destination`: names on the wire
//! * `server`: sessions of the queue manager's clients
//! * `client`: the owner of one connection to a bus elsewhere, and its reconnecting

pub mod client;
pub mod codec;
pub(crate) mod destination;
pub mod frame;
mod heart_beat;
pub mod server;
#[cfg(test)]
mod testing;
mod wire;

pub use self::{
    client::{Passcode, StompOptions},
    server::{StompLimits, StompServer},
};
