//! Message types, XML codec, versions, identifiers and destinations of the BitRepository protocol.

pub mod clock;
pub mod destination;
pub mod ids;
