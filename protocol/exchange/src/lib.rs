//! File bytes between components.
//!
//! Messages carry addresses, never file contents. Owned here: fetching from and sending to such an
//! address ([`ExchangeClient`]), the addresses under which this process offers files
//! ([`OfferSpace`]), and a small HTTP server for them, so that a repository needs no other
//! ([`ExchangeServer`]).
//!
//! Refused here: looking into the bytes (checksums are the caller's), addresses that no rule of
//! [`AddressPolicy`] allows, following redirects, listing what a server holds, and storing anything
//! for good: what an exchange server holds expires, and is not synced to disk.
//!
//! What holds throughout:
//! * An address is used as it was sent: its path is neither re-encoded nor normalized; one that
//!   would change on the way is refused.
//! * Every wait on a peer has a limit, but no transfer as a whole has one: a large file may take as
//!   long as it makes progress.
//! * Memory per transfer is a few buffers, whatever the size of the file. Disk work runs on a
//!   thread of its own per transfer.
//! * A file appears under its name when it is complete, or not at all.
//! * Errors tell a peer's fault and the network ([`ExchangeError::Transfer`]) from our own disk
//!   ([`ExchangeError::Local`]).
//!
//! * An offer that was ended is over: where a server knows of ends, as the one here, nothing is put at its address
//!   any more.
//!
//! Modules: [`client`], [`error`], [`offer`], [`policy`], [`server`]; internal: `address` (an
//! address taken apart), `disk` (files read and written beside the async workers).

mod address;
pub mod client;
mod disk;
pub mod error;
pub mod offer;
pub mod policy;
pub mod server;
#[cfg(test)]
mod tests;

pub use client::{ClientOptions, Download, ExchangeClient};
pub use error::{ExchangeError, TransferError};
pub use offer::OfferSpace;
pub use policy::AddressPolicy;
pub use server::{ExchangeServer, ServerOptions};

/// The header of a DELETE after which nothing is to be put at the address any more, and of the answer of a server
/// that sees to it.
const OFFER_OVER: &str = "pillarbox-offer-over";
