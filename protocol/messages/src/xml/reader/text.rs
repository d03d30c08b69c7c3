//! Text in pieces: plain stretches, references, sections, comments between them.

use std::borrow::Cow;

use quick_xml::events::{BytesRef, BytesText, Event};

use super::{Read, Reader, unexpected_content};
use crate::{
    error::{DecodeReason, Expected, shown},
    limits::MAX_TEXT_BYTES,
    xml::characters,
};

impl<'x> Reader<'x> {
    /// The text up to the end tag, references and line ends resolved.
    #[inline]
    pub(crate) fn text(&mut self) -> Read<Cow<'x, str>> {
        let first = match self.event()? {
            Event::Text(text) => self.plain(text)?,
            Event::End(_) => return Ok(Cow::Borrowed("")),
            other => return self.rest_of_text(String::new(), other),
        };
        match self.event()? {
            Event::End(_) => Ok(first),
            other => self.rest_of_text(first.into_owned(), other),
        }
    }

    /// The rest of an element's text, from an event that is not its only one.
    fn rest_of_text(&mut self, mut text: String, first: Event<'x>) -> Read<Cow<'x, str>> {
        let mut event = first;
        loop {
            match event {
                Event::End(_) => return Ok(Cow::Owned(text)),
                Event::Text(part) => text.push_str(&self.plain(part)?),
                Event::CData(part) => text.push_str(&part.xml10_content()),
                Event::GeneralRef(reference) => text.push(resolve(&reference)?),
                Event::Comment(_) => {}
                Event::Start(start) => {
                    return Err(Box::new(DecodeReason::UnexpectedElement {
                        found: shown(start.local_name().as_ref()),
                        expected: Expected::Text,
                    }));
                }
                other => return Err(unexpected_content(&other)),
            }
            if text.len() > MAX_TEXT_BYTES {
                return Err(Box::new(DecodeReason::TextTooLong {
                    limit: MAX_TEXT_BYTES,
                }));
            }
            event = self.event()?;
        }
    }

    /// One stretch of text without references.
    #[inline]
    fn plain(&self, text: BytesText<'x>) -> Read<Cow<'x, str>> {
        if text.len() > MAX_TEXT_BYTES {
            return Err(Box::new(DecodeReason::TextTooLong {
                limit: MAX_TEXT_BYTES,
            }));
        }
        if self.scan.section_ends && text.contains("]]>") {
            return Err(DecodeReason::not_well_formed("']]>' in text"));
        }
        Ok(if self.scan.returns {
            text.xml10_content()
        } else {
            text.into_inner()
        })
    }
}

/// The character that a reference stands for.
fn resolve(reference: &BytesRef<'_>) -> Read<char> {
    if reference.is_char_ref() {
        return reference
            .resolve_char_ref()
            .ok()
            .flatten()
            .filter(|&character| characters::is_allowed(character))
            .ok_or_else(|| Box::new(DecodeReason::IllegalCharacter));
    }
    match &**reference {
        "amp" => Ok('&'),
        "lt" => Ok('<'),
        "gt" => Ok('>'),
        "quot" => Ok('"'),
        "apos" => Ok('\''),
        other => Err(Box::new(DecodeReason::UnknownEntity(shown(other)))),
    }
}

/// The referenced character if it is ASCII, else zero, which is nothing.
pub(super) fn reference_as_byte(reference: &BytesRef<'_>) -> u8 {
    resolve(reference)
        .ok()
        .and_then(|character| u8::try_from(character).ok())
        .unwrap_or_default()
}
