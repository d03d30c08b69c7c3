//! What every message has, and what every response has.

use crate::{
    destination::Destination,
    enums::ResponseCode,
    ids::{CollectionId, ComponentId, CorrelationId},
    version::ProtocolVersion,
    xml::{
        reader::{Read, Reader},
        writer::Writer,
    },
};

/// The versions on the root element and the elements that every message begins with (schema type `Message`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Attributes `version` and `minVersion` of the root.
    pub version: ProtocolVersion,
    /// The conversation this message belongs to (`CorrelationID`).
    pub correlation_id: CorrelationId,
    /// The collection it is about (`CollectionID`); absent for status messages and alarms about no collection.
    pub collection_id: Option<CollectionId>,
    /// Where it was sent (`Destination`).
    pub destination: Destination,
    /// Where answers go (`ReplyTo`).
    pub reply_to: Destination,
    /// Who sent it (`From`).
    pub from: ComponentId,
    /// Who alone shall handle it (`To`); absent if every receiver shall.
    pub to: Option<ComponentId>,
}

impl Header {
    pub(crate) fn read(reader: &mut Reader<'_>, version: ProtocolVersion) -> Read<Self> {
        Ok(Self {
            version,
            correlation_id: reader.correlation()?,
            collection_id: reader.collection()?,
            destination: reader.required("Destination")?,
            reply_to: reader.reply_to_of_known_sender()?,
            from: reader.from()?,
            to: reader.optional("To")?,
        })
    }

    pub(crate) fn write(&self, writer: &mut Writer) {
        writer.required(tags!("CorrelationID"), &self.correlation_id);
        writer.optional(tags!("CollectionID"), &self.collection_id);
        writer.required(tags!("Destination"), &self.destination);
        writer.required(tags!("ReplyTo"), &self.reply_to);
        writer.required(tags!("From"), &self.from);
        writer.optional(tags!("To"), &self.to);
    }
}

#[cfg(test)]
impl crate::sample::Sample for Header {
    fn sample(source: &mut crate::sample::Source) -> Self {
        use crate::sample::{optional, required};

        Self {
            version: required(source),
            correlation_id: required(source),
            collection_id: optional(source),
            destination: required(source),
            reply_to: required(source),
            from: required(source),
            to: optional(source),
        }
    }
}

elements! {
    /// How an operation went (element `ResponseInfo`).
    ResponseInfo {
        /// The outcome (`ResponseCode`).
        response_code: required ResponseCode = "ResponseCode",
        /// For people to read (`ResponseText`).
        response_text: optional String = "ResponseText",
    }
}

impl ResponseInfo {
    /// The code with a text for people.
    #[must_use]
    pub fn new(response_code: ResponseCode, response_text: impl Into<String>) -> Self {
        Self {
            response_code,
            response_text: Some(response_text.into()),
        }
    }
}

impl From<ResponseCode> for ResponseInfo {
    fn from(response_code: ResponseCode) -> Self {
        Self {
            response_code,
            response_text: None,
        }
    }
}
