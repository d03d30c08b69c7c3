//! What one look over the whole text tells before any of it is read.

use memchr::memmem;

use crate::xml::characters;

/// What one look over the whole text told.
#[derive(Default)]
pub(super) struct Scan {
    /// Where the first character stands that XML 1.0 does not have.
    pub(super) illegal: Option<u64>,
    /// Whether there are carriage returns, so that line ends need resolving.
    pub(super) returns: bool,
    /// Whether `]]>` occurs, which plain text must not hold.
    pub(super) section_ends: bool,
}

impl Scan {
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let illegal = characters::first_illegal(text).and_then(|at| u64::try_from(at).ok());
        let either = memchr::memchr2(b'\r', b']', bytes).is_some();
        Self {
            illegal,
            returns: either && memchr::memchr(b'\r', bytes).is_some(),
            section_ends: either && memmem::find(bytes, b"]]>").is_some(),
        }
    }
}
