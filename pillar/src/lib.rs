//! The pillar: archive, index, audit trail and one handler per operation.
//!
//! Owns the bytes of archived files ([`archive`]), what is known about them ([`index`]), their
//! checksums ([`digests`]), the answers to requests ([`desk`]), and the node that gives them on the bus
//! ([`service`]). Internal:
//! `handlers` (one per operation: check, then perform; none knows the bus), `checks`, `refusal`,
//! `download`, `existing`, `change`, `listing`, `result_document`, `disk_checksum`, `in_place`, `noticing`, `presence`,
//! `shortage`, `take_over`, `text`, `untold` and `context`, which they share. [`workers`] do unasked what keeps index and disk in
//! agreement.
//!
//! Refuses: to know any client, and to fetch from or deliver to an address that the exchange's rules
//! do not allow.
//!
//! Invariants
//! * Nothing is listed that is not complete on disk: a file's bytes are synced before its name is
//!   made, the name is synced before its row is written, and the row is committed before anybody is
//!   told. What a crash leaves is at most a file without a row, which nobody was promised and which
//!   the next put of the same id replaces, or which is listed if none comes; or a replace or delete that the index has as an open operation,
//!   which is finished at the next start or before the file's next change, or was never begun.
//! * An archived file's bytes are never written to. A name is given to complete bytes, or taken away.
//! * Whoever reads an archived file to its end, a worker or for a request, makes known what it finds: bytes that are
//!   not the expected ones are never passed over in silence.
//! * Text from peers becomes a path only in [`archive`], component by component.

pub mod archive;
mod change;
mod checks;
mod context;
pub mod desk;
pub mod digests;
mod disk_checksum;
mod download;
mod existing;
mod handlers;
mod health;
mod in_place;
pub mod index;
mod listing;
mod noticing;
mod presence;
mod refusal;
mod result_document;
pub mod service;
mod shortage;
mod take_over;
mod text;
mod untold;
mod walk;
pub mod workers;

pub use desk::Desk;
pub use service::{Pillar, PillarError, PillarOptions};
