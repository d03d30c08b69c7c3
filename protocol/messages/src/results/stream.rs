//! Result documents written item by item.

use std::io::{self, Write};

use crate::{
    elements::{AuditTrailEvent, ChecksumDataItem, FileIdsDataItem},
    ids::{CollectionId, ComponentId},
    version::ProtocolVersion,
    xml::{
        self,
        content::Content,
        writer::{Tags, Writer},
    },
};

/// Writes a `GetFileIDsResults` document, one file after another.
///
/// Without [`FileIdsWriter::finish`] the document is cut off.
#[derive(Debug)]
pub struct FileIdsWriter<W: Write>(Stream<W>);

/// Writes a `GetChecksumsResults` document, one checksum after another.
///
/// Without [`ChecksumsWriter::finish`] the document is cut off.
#[derive(Debug)]
pub struct ChecksumsWriter<W: Write>(Stream<W>);

/// Writes a `GetAuditTrailsResults` document, one event after another.
///
/// Without [`AuditTrailsWriter::finish`] the document is cut off.
#[derive(Debug)]
pub struct AuditTrailsWriter<W: Write>(Stream<W>);

impl<W: Write> FileIdsWriter<W> {
    /// Begins the document.
    ///
    /// # Errors
    ///
    /// What `out` fails with.
    pub fn start(
        out: W,
        collection: &CollectionId,
        pillar: Option<&ComponentId>,
    ) -> io::Result<Self> {
        let mut stream = Stream::start(out, "GetFileIDsResults", collection, pillar)?;
        stream.buffer.open(tags!("FileIDsData"));
        stream.buffer.open(tags!("FileIDsDataItems"));
        Ok(Self(stream))
    }

    /// Adds a file.
    ///
    /// # Errors
    ///
    /// What the output fails with.
    pub fn item(&mut self, item: &FileIdsDataItem) -> io::Result<()> {
        self.0.item(tags!("FileIDsDataItem"), item)
    }

    /// Ends the document, flushes the output and gives it back.
    ///
    /// # Errors
    ///
    /// What the output fails with.
    pub fn finish(mut self) -> io::Result<W> {
        self.0.buffer.close(tags!("FileIDsDataItems"));
        self.0.buffer.close(tags!("FileIDsData"));
        self.0.finish("GetFileIDsResults")
    }
}

impl<W: Write> ChecksumsWriter<W> {
    /// Begins the document.
    ///
    /// # Errors
    ///
    /// What `out` fails with.
    pub fn start(
        out: W,
        collection: &CollectionId,
        pillar: Option<&ComponentId>,
    ) -> io::Result<Self> {
        Stream::start(out, "GetChecksumsResults", collection, pillar).map(Self)
    }

    /// Adds a checksum.
    ///
    /// # Errors
    ///
    /// What the output fails with.
    pub fn item(&mut self, item: &ChecksumDataItem) -> io::Result<()> {
        self.0.item(tags!("ChecksumDataItems"), item)
    }

    /// Ends the document, flushes the output and gives it back.
    ///
    /// # Errors
    ///
    /// What the output fails with.
    pub fn finish(self) -> io::Result<W> {
        self.0.finish("GetChecksumsResults")
    }
}

impl<W: Write> AuditTrailsWriter<W> {
    /// Begins the document.
    ///
    /// # Errors
    ///
    /// What `out` fails with.
    pub fn start(out: W, collection: &CollectionId) -> io::Result<Self> {
        let mut stream = Stream::start(out, "GetAuditTrailsResults", collection, None)?;
        stream.buffer.open(tags!("AuditTrailEvents"));
        Ok(Self(stream))
    }

    /// Adds an event.
    ///
    /// # Errors
    ///
    /// What the output fails with.
    pub fn item(&mut self, event: &AuditTrailEvent) -> io::Result<()> {
        self.0.item(tags!("AuditTrailEvent"), event)
    }

    /// Ends the document, flushes the output and gives it back.
    ///
    /// # Errors
    ///
    /// What the output fails with.
    pub fn finish(mut self) -> io::Result<W> {
        self.0.buffer.close(tags!("AuditTrailEvents"));
        self.0.finish("GetAuditTrailsResults")
    }
}

/// A document of which only the last part is in memory.
#[derive(Debug)]
struct Stream<W> {
    out: W,
    buffer: Writer,
}

impl<W: Write> Stream<W> {
    fn start(
        out: W,
        root: &str,
        collection: &CollectionId,
        pillar: Option<&ComponentId>,
    ) -> io::Result<Self> {
        let ProtocolVersion {
            version,
            min_version,
        } = ProtocolVersion::CURRENT;
        let mut buffer = Writer::new();
        buffer.open_root(xml::DATA, root, version, min_version);
        buffer.required(tags!("CollectionID"), collection);
        if let Some(pillar) = pillar {
            buffer.required(tags!("PillarID"), pillar);
        }
        let mut stream = Self { out, buffer };
        stream.flush()?;
        Ok(stream)
    }

    fn item<T: Content>(&mut self, tags: Tags, item: &T) -> io::Result<()> {
        self.buffer.required(tags, item);
        if self.buffer.out().len() < BUFFER_BYTES {
            Ok(())
        } else {
            self.flush()
        }
    }

    fn finish(mut self, root: &str) -> io::Result<W> {
        self.buffer.close_root(root);
        self.flush()?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn flush(&mut self) -> io::Result<()> {
        let buffer = self.buffer.out();
        self.out.write_all(buffer.as_bytes())?;
        buffer.clear();
        Ok(())
    }
}

/// How much is gathered before it is written on.
const BUFFER_BYTES: usize = 64 * 1024;
