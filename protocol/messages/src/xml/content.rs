//! What an element may hold: one simple value, or elements in a fixed order.

use super::{
    reader::{Read, Reader},
    value::{Value, parse},
    writer::Writer,
};
use crate::ids::FileId;

/// A type that is the content of an element.
pub(crate) trait Content: Sized {
    /// Reads the content after the start tag, through the end tag.
    fn read(reader: &mut Reader<'_>) -> Read<Self>;

    /// Writes the content between the tags.
    fn write(&self, writer: &mut Writer);

    /// The one file it names, if it names one.
    fn file(&self) -> Option<&FileId> {
        None
    }
}

impl<T: Value> Content for T {
    #[inline]
    fn read(reader: &mut Reader<'_>) -> Read<Self> {
        let text = reader.text()?;
        parse(&text, reader.options())
    }

    #[inline]
    fn write(&self, writer: &mut Writer) {
        Value::write(self, writer.out());
    }

    fn file(&self) -> Option<&FileId> {
        Value::file(self)
    }
}
