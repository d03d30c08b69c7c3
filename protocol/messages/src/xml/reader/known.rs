//! What is known of a message's header while the rest is read.

use std::borrow::Cow;

use super::{Ahead, Read, Reader};
use crate::{
    error::{DecodeReason, Expected, KnownHeader},
    ids::ComponentId,
    xml::value::{Value, parse},
};

/// Header texts already read, borrowed so that remembering them costs nothing.
#[derive(Default)]
pub(super) struct Known<'x> {
    pub(super) root: Option<String>,
    from: Option<Cow<'x, str>>,
    reply_to: Option<Cow<'x, str>>,
    correlation: Option<Cow<'x, str>>,
    collection: Option<Cow<'x, str>>,
}

impl<'x> Reader<'x> {
    /// Reads a header element, keeping its text for error reports.
    fn known<T: Value>(
        &mut self,
        name: &'static str,
        keep: impl FnOnce(&mut Known<'x>, Cow<'x, str>),
    ) -> Read<T> {
        if !self.at(name)? {
            return Err(self.instead_of(Expected::Element(name)));
        }
        self.ahead = Ahead::Nothing;
        self.path.push(name);
        let text = self.text()?;
        let value = parse(&text, self.options())?;
        keep(&mut self.known, text);
        self.path.pop();
        Ok(value)
    }

    /// Reads `From`.
    pub(crate) fn from<T: Value>(&mut self) -> Read<T> {
        self.known("From", |known, text| known.from = Some(text))
    }

    /// Reads `ReplyTo`.
    pub(crate) fn reply_to<T: Value>(&mut self) -> Read<T> {
        self.known("ReplyTo", |known, text| known.reply_to = Some(text))
    }

    /// Reads `ReplyTo`. If it is no address, `From` behind it is read for error reports.
    pub(crate) fn reply_to_of_known_sender<T: Value>(&mut self) -> Read<T> {
        let read = self.reply_to();
        if let Err(reason) = &read
            && matches!(**reason, DecodeReason::BadValue { .. })
        {
            let (offset, path) = (self.offset, self.path.clone());
            // The fault is the address, whatever is wrong with the rest.
            let _ = self.from::<ComponentId>();
            (self.offset, self.path) = (offset, path);
        }
        read
    }

    /// Reads `CorrelationID`.
    pub(crate) fn correlation<T: Value>(&mut self) -> Read<T> {
        self.known("CorrelationID", |known, text| {
            known.correlation = Some(text);
        })
    }

    /// Reads `CollectionID`, if it comes next.
    pub(crate) fn collection<T: Value>(&mut self) -> Read<Option<T>> {
        if self.at("CollectionID")? {
            self.known("CollectionID", |known, text| known.collection = Some(text))
                .map(Some)
        } else {
            Ok(None)
        }
    }
}

impl Known<'_> {
    pub(super) fn into_header(self) -> KnownHeader {
        KnownHeader {
            message_type: self.root,
            from: self.from.map(|text| text.as_ref().into()),
            reply_to: self.reply_to.and_then(|text| text.parse().ok()),
            correlation_id: self.correlation.map(|text| text.as_ref().into()),
            collection_id: self.collection.map(|text| text.as_ref().into()),
        }
    }
}
