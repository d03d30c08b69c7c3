//! What a message has besides its body, one after the other in a few bytes.

use super::{Cause, Failure, Parts, Reason};

/// Something that a message may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field<'a> {
    NotBefore(i64),
    ExpiresAt(i64),
    Group(&'a str),
    CorrelationId(&'a str),
    ReplyTo(&'a str),
    OriginalDestination(&'a str),
    Reason(Reason),
    Failure(Failure),
    /// A header of the sender's own.
    Header(&'a str, &'a str),
}

// These are never written anywhere but in memory.
const NOT_BEFORE: u8 = 1;
const EXPIRES_AT: u8 = 2;
const GROUP: u8 = 3;
const CORRELATION_ID: u8 = 4;
const REPLY_TO: u8 = 5;
const ORIGINAL_DESTINATION: u8 = 6;
const REASON: u8 = 7;
const FAILURE: u8 = 8;
const HEADER: u8 = 9;

/// A length before a text, in bytes.
const LENGTH: usize = 4;

impl Field<'_> {
    /// What the field takes, in bytes.
    pub(super) const fn length(&self) -> usize {
        let value = match self {
            Self::NotBefore(_) | Self::ExpiresAt(_) => 8,
            Self::Group(text)
            | Self::CorrelationId(text)
            | Self::ReplyTo(text)
            | Self::OriginalDestination(text) => LENGTH + text.len(),
            Self::Reason(_) => 1,
            Self::Failure(_) => 9,
            Self::Header(name, value) => 2 * LENGTH + name.len() + value.len(),
        };
        1 + value
    }

    fn put(self, out: &mut Vec<u8>) {
        match self {
            Self::NotBefore(at) => put_time(out, NOT_BEFORE, at),
            Self::ExpiresAt(at) => put_time(out, EXPIRES_AT, at),
            Self::Group(text) => put_tagged(out, GROUP, text),
            Self::CorrelationId(text) => put_tagged(out, CORRELATION_ID, text),
            Self::ReplyTo(text) => put_tagged(out, REPLY_TO, text),
            Self::OriginalDestination(text) => put_tagged(out, ORIGINAL_DESTINATION, text),
            Self::Reason(reason) => {
                out.extend([REASON, number_of(&Reason::ALL, reason)]);
            }
            Self::Failure(Failure { failed_at, cause }) => {
                put_time(out, FAILURE, failed_at);
                out.push(number_of(&Cause::ALL, cause));
            }
            Self::Header(name, value) => {
                put_tagged(out, HEADER, name);
                put_text(out, value);
            }
        }
    }
}

/// Appends the fields of a message.
pub(super) fn put_fields(out: &mut Vec<u8>, parts: &Parts<'_>) {
    parts.each_field(&mut |field| field.put(out));
}

fn put_time(out: &mut Vec<u8>, tag: u8, at: i64) {
    out.push(tag);
    out.extend_from_slice(&at.to_le_bytes());
}

fn put_tagged(out: &mut Vec<u8>, tag: u8, text: &str) {
    out.push(tag);
    put_text(out, text);
}

/// Messages are limited to a fraction of 4 GiB.
fn put_text(out: &mut Vec<u8>, text: &str) {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn number_of<T: PartialEq>(all: &[T], one: T) -> u8 {
    let position = all.iter().position(|it| *it == one);
    position.and_then(|it| u8::try_from(it).ok()).unwrap_or(0)
}

/// The fields of a message, in their order.
#[derive(Clone, Debug)]
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*taken)
    }

    fn time(&mut self) -> Option<i64> {
        self.take().map(i64::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(u32::from_le_bytes(self.take()?)).ok()?;
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        str::from_utf8(text).ok()
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        let [number] = self.take()?;
        all.get(usize::from(number)).copied()
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        let [tag] = self.take()?;
        Some(match tag {
            NOT_BEFORE => Field::NotBefore(self.time()?),
            EXPIRES_AT => Field::ExpiresAt(self.time()?),
            GROUP => Field::Group(self.text()?),
            CORRELATION_ID => Field::CorrelationId(self.text()?),
            REPLY_TO => Field::ReplyTo(self.text()?),
            ORIGINAL_DESTINATION => Field::OriginalDestination(self.text()?),
            REASON => Field::Reason(self.one_of(&Reason::ALL)?),
            FAILURE => Field::Failure(Failure {
                failed_at: self.time()?,
                cause: self.one_of(&Cause::ALL)?,
            }),
            HEADER => Field::Header(self.text()?, self.text()?),
            _ => return None,
        })
    }
}
