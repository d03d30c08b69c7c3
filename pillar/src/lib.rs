//! The pillar: archive, index, audit trail and one handler per operation.
//!
//! Owns the bytes of archived files ([`archive`]), what is known about them ([`index`]) and their
//! checksums ([`digests`]).
//!
//! Invariants
//! * Nothing is listed that is not complete on disk: a file's bytes are synced before its name is
//!   made, the name is synced before its row is written, and the row is committed before anybody is
//!   told. What a crash leaves is at most a file without a row, which nobody was promised and which
//!   the next put of the same id replaces.
//! * An archived file's bytes are never written to. A name is given to complete bytes, or taken away.
//! * Text from peers becomes a path only in [`archive`], component by component.

pub mod archive;
pub mod digests;
pub mod index;
