//! How much is read of what a peer sends.

/// The longest message that [`Message::from_xml`](crate::Message::from_xml) reads, in bytes (16 MiB).
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// The longest text of one element, in bytes (1 MiB).
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;

/// The most attributes of one element, namespace declarations included.
pub const MAX_ATTRIBUTES: usize = 32;

/// The most namespace declarations in scope at one time.
pub const MAX_NAMESPACES: usize = 64;
