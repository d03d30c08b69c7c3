//! Result documents: what is uploaded to a result address instead of being sent in a message.
//!
//! A document of unknown length is written with [`FileIdsWriter`], [`ChecksumsWriter`] or [`AuditTrailsWriter`],
//! which keep none of it.

mod stream;

pub use self::stream::{AuditTrailsWriter, ChecksumsWriter, FileIdsWriter};
use crate::{
    elements::{AuditTrailEvent, AuditTrailEvents, ChecksumDataItem, FileIdsData, ResultingStatus},
    error::{DecodeError, DecodeReason, shown},
    ids::{CollectionId, ComponentId, CorrelationId, FileId},
    limits::MAX_MESSAGE_BYTES,
    version::ProtocolVersion,
    xml::{
        self,
        content::Content,
        reader::{Read, Reader},
        writer::Writer,
    },
};

/// Everything inside a result document's root.
trait Body: Sized {
    fn read(reader: &mut Reader<'_>, version: ProtocolVersion) -> Read<Self>;
    fn write(&self, writer: &mut Writer);
    fn version(&self) -> ProtocolVersion;
}

macro_rules! result_documents {
    ($(
        $(#[$doc:meta])*
        $name:ident = $root:literal {
            $( $(#[$field_doc:meta])* $field:ident: $card:ident $type:ty = $element:literal, )*
        }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $name {
                /// Attributes `version` and `minVersion` of the root.
                pub version: ProtocolVersion,
                $( $(#[$field_doc])* pub $field: child_type!($card $type), )*
            }

            impl Body for $name {
                fn read(reader: &mut Reader<'_>, version: ProtocolVersion) -> Read<Self> {
                    Ok(Self { version, $( $field: reader.$card($element)?, )* })
                }

                fn write(&self, writer: &mut Writer) {
                    $( writer.$card(tags!($element), &self.$field); )*
                }

                fn version(&self) -> ProtocolVersion {
                    self.version
                }
            }

            #[cfg(test)]
            impl crate::sample::Sample for $name {
                fn sample(source: &mut crate::sample::Source) -> Self {
                    Self {
                        version: crate::sample::required(source),
                        $( $field: crate::sample::$card(source), )*
                    }
                }
            }

            impl From<$name> for ResultDocument {
                fn from(document: $name) -> Self {
                    Self::$name(document)
                }
            }
        )*

        /// Any result document.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum ResultDocument {
            $( #[doc = concat!("Root element `", $root, "`.")] $name($name), )*
        }

        #[cfg(test)]
        impl crate::sample::Sample for ResultDocument {
            fn sample(source: &mut crate::sample::Source) -> Self {
                let roots = [$($root),*];
                match source.pick(&roots) {
                    $( $root => Self::$name(crate::sample::required(source)), )*
                    _ => panic!("one of the roots"),
                }
            }
        }

        impl ResultDocument {
            /// The local name of its root element.
            #[must_use]
            pub const fn root_name(&self) -> &'static str {
                match self {
                    $( Self::$name(_) => $root, )*
                }
            }

            /// The protocol version on its root element, which readers do not judge.
            #[must_use]
            pub fn version(&self) -> ProtocolVersion {
                match self {
                    $( Self::$name(document) => document.version(), )*
                }
            }

            fn read_body(root: &str, reader: &mut Reader<'_>, version: ProtocolVersion) -> Read<Self> {
                match root {
                    $( $root => Ok(Self::$name(Body::read(reader, version)?)), )*
                    other => Err(Box::new(DecodeReason::UnknownRoot(shown(other)))),
                }
            }

            fn write_body(&self, writer: &mut Writer) {
                match self {
                    $( Self::$name(document) => document.write(writer), )*
                }
            }
        }
    };
}

result_documents! {
    /// Which files there are (root element `GetFileIDsResults`).
    GetFileIdsResults = "GetFileIDsResults" {
        /// The collection (`CollectionID`).
        collection_id: required CollectionId = "CollectionID",
        /// The pillar that has them (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// The files (`FileIDsData`).
        file_ids_data: required FileIdsData = "FileIDsData",
    }

    /// Checksums of files (root element `GetChecksumsResults`).
    GetChecksumsResults = "GetChecksumsResults" {
        /// The collection (`CollectionID`).
        collection_id: required CollectionId = "CollectionID",
        /// The pillar that has the files (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// The checksums (`ChecksumDataItems`).
        checksum_data_items: repeated ChecksumDataItem = "ChecksumDataItems",
    }

    /// What was done to files (root element `GetAuditTrailsResults`).
    GetAuditTrailsResults = "GetAuditTrailsResults" {
        /// The collection (`CollectionID`).
        collection_id: required CollectionId = "CollectionID",
        /// The first list of events (`AuditTrailEvents`).
        audit_trail_events: required AuditTrailEvents = "AuditTrailEvents",
        /// More lists, which the schema allows and nobody writes (`AuditTrailEvents` again).
        more_audit_trail_events: repeated AuditTrailEvents = "AuditTrailEvents",
    }

    /// How a component was (root element `GetStatusResults`).
    GetStatusResults = "GetStatusResults" {
        /// The collection (`CollectionID`).
        collection_id: required CollectionId = "CollectionID",
        /// The component (`Contributor`).
        contributor: optional ComponentId = "Contributor",
        /// How it was (`ResultingStatus`).
        resulting_status: required ResultingStatus = "ResultingStatus",
    }

    /// A list of files to go with a request (root element `FileIDsParameters`).
    FileIdsParameters = "FileIDsParameters" {
        /// The conversation that it belongs to (`CorrelationID`).
        correlation_id: required CorrelationId = "CorrelationID",
        /// The collection (`CollectionID`).
        collection_id: required CollectionId = "CollectionID",
        /// The pillar that it is for (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// The files (`FileIDsParameterData`).
        file_ids_parameter_data: required FileIdsParameterData = "FileIDsParameterData",
    }
}

impl GetAuditTrailsResults {
    /// All events, from every list.
    pub fn events(&self) -> impl Iterator<Item = &AuditTrailEvent> {
        let more = self
            .more_audit_trail_events
            .iter()
            .flat_map(|list| &list.events);
        self.audit_trail_events.events.iter().chain(more)
    }
}

impl ResultDocument {
    /// Reads a document of at most [`MAX_MESSAGE_BYTES`], as strictly as a message.
    ///
    /// # Errors
    ///
    /// If the text is not well-formed, not such a document, or too large.
    pub fn from_xml(text: &str) -> Result<Self, DecodeError> {
        Self::from_xml_within(text, MAX_MESSAGE_BYTES)
    }

    /// Reads a document of at most so many bytes.
    ///
    /// # Errors
    ///
    /// If the text is not well-formed, not such a document, or too large.
    pub fn from_xml_within(text: &str, max_bytes: usize) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(text, max_bytes)?;
        Self::read(&mut reader).map_err(|reason| reader.into_error(*reason))
    }

    /// The document as XML, in one line.
    #[must_use]
    pub fn to_xml(&self) -> String {
        let ProtocolVersion {
            version,
            min_version,
        } = self.version();
        let mut writer = Writer::new();
        writer.open_root(xml::DATA, self.root_name(), version, min_version);
        self.write_body(&mut writer);
        writer.close_root(self.root_name());
        writer.into_string()
    }

    fn read(reader: &mut Reader<'_>) -> Read<Self> {
        let root = reader.root(xml::DATA)?;
        let version = root.version.map_err(|fault| reader.fail(fault))?;
        let document = Self::read_body(&root.name, reader, version)?;
        reader.finish()?;
        Ok(document)
    }
}

/// A list of files (element `FileIDsParameterData`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileIdsParameterData {
    /// The files (`FileID`, inside `FileIDsItems`).
    pub file_ids: Vec<FileId>,
}

impl Content for FileIdsParameterData {
    fn read(reader: &mut Reader<'_>) -> Read<Self> {
        let file_ids = reader.list("FileIDsItems", "FileID")?;
        reader.expect_end()?;
        Ok(Self { file_ids })
    }

    fn write(&self, writer: &mut Writer) {
        writer.open(tags!("FileIDsItems"));
        writer.repeated(tags!("FileID"), &self.file_ids);
        writer.close(tags!("FileIDsItems"));
    }
}

#[cfg(test)]
mod tests;
