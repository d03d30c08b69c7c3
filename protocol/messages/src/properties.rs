//! Names of the properties that travel beside a message on the bus.

/// The message type: the local name of the root element.
pub const TYPE: &str = "org.bitrepository.messages.type";
/// The signature over the text: base64 of a detached CMS signature.
pub const SIGNATURE: &str = "org.bitrepository.messages.signature";
/// The collection, as in the header.
pub const COLLECTION_ID: &str = "org.bitrepository.messages.collectionid";
/// The intended receiver, as in the header.
pub const TO: &str = "org.bitrepository.messages.to";
