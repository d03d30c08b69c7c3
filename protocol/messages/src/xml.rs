//! XML in and out: a strict, bounded pull reader and a writer that puts text straight into a string.

pub(crate) mod characters;
pub(crate) mod content;
pub(crate) mod declaration;
pub(crate) mod reader;
pub(crate) mod tag;
pub(crate) mod value;
pub(crate) mod writer;

/// Namespace of the message root elements.
pub(crate) const MESSAGES: &str = "http://bitrepository.org/BitRepositoryMessages.xsd";
/// Namespace of every element below a root.
pub(crate) const ELEMENTS: &str = "http://bitrepository.org/BitRepositoryElements.xsd";
/// Namespace of the result documents' root elements.
pub(crate) const DATA: &str = "http://bitrepository.org/BitRepositoryData.xsd";
/// Namespace of the schema hints that a document may carry anywhere.
pub(crate) const SCHEMA_INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
