//! The strict pull reader: each type asks for its children in schema order, and anything else is an error.
//!
//! Depth needs no limit of its own: an element that the schema does not have in its place ends the reading,
//! so nothing is nested deeper than the schema nests it.

use std::borrow::Cow;

use memchr::memmem;
use quick_xml::{
    NsReader,
    events::{BytesRef, BytesStart, BytesText, Event},
    name::{Namespace, ResolveResult},
};

use super::{
    ELEMENTS, SCHEMA_INSTANCE, characters, content::Content, declaration, tag::Attributes,
    value::Value,
};
use crate::{
    error::{DecodeError, DecodeReason, Expected, KnownHeader, shown},
    limits::{MAX_ATTRIBUTES, MAX_NAMESPACES, MAX_TEXT_BYTES},
};

/// What reading gives: the place of a fault is the reader's state at that time.
pub(crate) type Read<T> = Result<T, Box<DecodeReason>>;

/// A document being read.
pub(crate) struct Reader<'x> {
    source: NsReader<&'x [u8]>,
    ahead: Ahead<'x>,
    path: Vec<&'static str>,
    /// Where the event last read begins.
    offset: u64,
    scan: Scan,
    known: Known<'x>,
}

/// What one look over the whole text told.
struct Scan {
    /// Where the first character stands that XML 1.0 does not have.
    illegal: Option<u64>,
    /// Whether there are carriage returns, so that line ends need resolving.
    returns: bool,
    /// Whether `]]>` occurs, which plain text must not hold.
    section_ends: bool,
}

/// The next tag, read but not yet taken.
enum Ahead<'x> {
    Nothing,
    Start(BytesStart<'x>),
    End,
}

/// Header texts already read, borrowed so that remembering them costs nothing.
#[derive(Default)]
struct Known<'x> {
    root: Option<String>,
    from: Option<Cow<'x, str>>,
    reply_to: Option<Cow<'x, str>>,
    correlation: Option<Cow<'x, str>>,
    collection: Option<Cow<'x, str>>,
}

/// The root element: what it is called and the versions on it.
pub(crate) struct Root {
    /// Local name.
    pub(crate) name: String,
    /// Attribute `version`.
    pub(crate) version: u64,
    /// Attribute `minVersion`.
    pub(crate) min_version: u64,
}

impl<'x> Reader<'x> {
    /// A reader of the text, which must be no longer than `limit` bytes.
    pub(crate) fn new(text: &'x str, limit: usize) -> Result<Self, DecodeError> {
        let mut source = NsReader::from_str(text);
        let config = source.config_mut();
        config.expand_empty_elements = true;
        config.check_comments = true;
        source
            .resolver_mut()
            .set_max_namespace_bindings(MAX_NAMESPACES);
        let mut reader = Self {
            source,
            ahead: Ahead::Nothing,
            path: Vec::with_capacity(8),
            offset: 0,
            scan: Scan {
                illegal: None,
                returns: false,
                section_ends: false,
            },
            known: Known::default(),
        };
        if text.len() > limit {
            let reason = DecodeReason::TooLarge {
                bytes: text.len(),
                limit,
            };
            return Err(reader.into_error(reason));
        }
        reader.scan = Scan::of(text);
        Ok(reader)
    }

    /// The reason with where it happened and what was known.
    pub(crate) fn into_error(self, reason: DecodeReason) -> DecodeError {
        let mut path = String::new();
        for name in self
            .known
            .root
            .as_deref()
            .into_iter()
            .chain(self.path.iter().copied())
        {
            path.push('/');
            path.push_str(name);
        }
        DecodeError {
            reason,
            path: path.into(),
            offset: self.offset,
            known: Box::new(self.known.into_header()),
        }
    }

    /// Reads the prolog and the root's start tag; the root must be in the namespace.
    pub(crate) fn root(&mut self, namespace: &str) -> Read<Root> {
        let start = self.prolog()?;
        let name = start.local_name().as_ref().to_owned();
        self.known.root = Some(shown(&name).into());
        self.check_namespace(&start, namespace)?;
        let (version, min_version) = self.versions(&start)?;
        Ok(Root {
            name,
            version,
            min_version,
        })
    }

    /// Checks that the root ends here and nothing follows it.
    pub(crate) fn finish(&mut self) -> Read<()> {
        self.expect_end()?;
        loop {
            match self.event()? {
                Event::Eof => return Ok(()),
                Event::Comment(_) => {}
                Event::Text(text) if characters::is_blank(&text) => {}
                Event::PI(_) => return Err(Box::new(DecodeReason::ProcessingInstruction)),
                Event::DocType(_) => return Err(Box::new(DecodeReason::DocumentType)),
                _ => return Err(Box::new(DecodeReason::AfterRoot)),
            }
        }
    }

    /// Reads the element that must come next.
    #[inline]
    pub(crate) fn required<T: Content>(&mut self, name: &'static str) -> Read<T> {
        if self.at(name)? {
            self.take(name)
        } else {
            Err(self.instead_of(Expected::Element(name)))
        }
    }

    /// Reads the element if it comes next.
    #[inline]
    pub(crate) fn optional<T: Content>(&mut self, name: &'static str) -> Read<Option<T>> {
        if self.at(name)? {
            self.take(name).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Reads the element as often as it comes.
    pub(crate) fn repeated<T: Content>(&mut self, name: &'static str) -> Read<Vec<T>> {
        let mut contents = Vec::new();
        while self.at(name)? {
            contents.push(self.take(name)?);
        }
        Ok(contents)
    }

    /// Whether the element comes next.
    #[inline]
    pub(crate) fn at(&mut self, name: &str) -> Read<bool> {
        if matches!(self.ahead, Ahead::Nothing) {
            self.look_ahead()?;
        }
        Ok(match &self.ahead {
            Ahead::Start(start) => start.local_name().as_ref() == name,
            Ahead::Nothing | Ahead::End => false,
        })
    }

    /// Checks that the enclosing element ends here.
    pub(crate) fn expect_end(&mut self) -> Read<()> {
        if matches!(self.ahead, Ahead::Nothing) {
            self.look_ahead()?;
        }
        match self.ahead {
            Ahead::End => {
                self.ahead = Ahead::Nothing;
                Ok(())
            }
            Ahead::Start(_) | Ahead::Nothing => Err(self.instead_of(Expected::End)),
        }
    }

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

    /// The value of the text.
    #[inline]
    #[expect(
        clippy::unused_self,
        reason = "one way to make a value wherever a reader is at hand"
    )]
    pub(crate) fn parse<T: Value>(&self, text: &str) -> Read<T> {
        T::from_text(text).ok_or_else(|| DecodeReason::bad_value(text, T::EXPECTED))
    }

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
        let value = self.parse(&text)?;
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

    /// Reads the element whose start tag was looked at.
    #[inline]
    fn take<T: Content>(&mut self, name: &'static str) -> Read<T> {
        self.ahead = Ahead::Nothing;
        self.path.push(name);
        let content = T::read(self)?;
        self.path.pop();
        Ok(content)
    }

    /// The error for what comes next instead of what is due.
    fn instead_of(&self, expected: Expected) -> Box<DecodeReason> {
        Box::new(match (&self.ahead, expected) {
            (Ahead::Start(start), _) => DecodeReason::UnexpectedElement {
                found: shown(start.local_name().as_ref()),
                expected,
            },
            (_, Expected::Element(name)) => DecodeReason::MissingElement(name),
            (_, Expected::End | Expected::Text) => DecodeReason::CutOff,
        })
    }

    /// Reads up to the next tag, between elements.
    fn look_ahead(&mut self) -> Read<()> {
        loop {
            match self.event()? {
                Event::Start(start) => {
                    self.check_namespace(&start, ELEMENTS)?;
                    self.check_attributes(&start)?;
                    self.ahead = Ahead::Start(start);
                    return Ok(());
                }
                Event::End(_) => {
                    self.ahead = Ahead::End;
                    return Ok(());
                }
                Event::Text(text) if characters::is_blank(&text) => {}
                Event::GeneralRef(reference)
                    if characters::is_space(reference_as_byte(&reference)) => {}
                Event::Comment(_) => {}
                other => return Err(unexpected_content(&other)),
            }
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

    /// Everything before the root's content.
    fn prolog(&mut self) -> Read<BytesStart<'x>> {
        let mut first = true;
        loop {
            match self.event()? {
                Event::Start(start) => return Ok(start),
                Event::Decl(decl) if first => {
                    declaration::check(decl.strip_prefix("xml").unwrap_or_default())?;
                }
                Event::Decl(_) => return Err(Box::new(DecodeReason::Declaration)),
                Event::Comment(_) | Event::PI(_) => {}
                Event::Text(text) if characters::is_blank(&text) => {}
                Event::DocType(_) => return Err(Box::new(DecodeReason::DocumentType)),
                Event::Eof => return Err(Box::new(DecodeReason::CutOff)),
                _ => return Err(Box::new(DecodeReason::UnexpectedText)),
            }
            first = false;
        }
    }

    /// The root's `version` and `minVersion`.
    fn versions(&self, start: &BytesStart<'_>) -> Read<(u64, u64)> {
        let (mut version, mut min_version) = (None, None);
        self.each_attribute(start, |name, text| {
            match name {
                "version" => version = Some(self.parse::<std::num::NonZeroU64>(text)?.get()),
                "minVersion" => min_version = Some(self.parse(text)?),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let missing = |name| Box::new(DecodeReason::MissingAttribute(name));
        Ok((
            version.ok_or_else(|| missing("version"))?,
            min_version.ok_or_else(|| missing("minVersion"))?,
        ))
    }

    /// Refuses attributes other than namespace declarations and schema hints.
    #[inline]
    fn check_attributes(&self, start: &BytesStart<'_>) -> Read<()> {
        if start.attributes_raw().is_empty() {
            return Ok(());
        }
        self.each_attribute(start, |_, _| Ok(false))
    }

    /// Goes through the attributes; `own` says whether it knows one by its name and value.
    fn each_attribute(
        &self,
        start: &BytesStart<'_>,
        mut own: impl FnMut(&str, &str) -> Read<bool>,
    ) -> Read<()> {
        let mut attributes = Attributes::new(start.attributes_raw(), MAX_ATTRIBUTES);
        let mut seen = Vec::new();
        while let Some(attribute) = attributes.next()? {
            if seen.contains(&attribute.name) {
                return Err(DecodeReason::not_well_formed("attribute given twice"));
            }
            seen.push(attribute.name);
            let text = attribute.text()?;
            if !text.chars().all(characters::is_allowed) {
                return Err(Box::new(DecodeReason::IllegalCharacter));
            }
            if attribute.declares().is_none()
                && !own(attribute.name, &text)?
                && !self.is_schema_hint(attribute.name)?
            {
                return Err(Box::new(DecodeReason::UnknownAttribute(shown(
                    attribute.name,
                ))));
            }
        }
        Ok(())
    }

    fn is_schema_hint(&self, name: &str) -> Read<bool> {
        let name = quick_xml::name::QName(name);
        match self.source.resolver().resolve_attribute(name) {
            (ResolveResult::Bound(Namespace(SCHEMA_INSTANCE)), local) => Ok(matches!(
                local.as_ref(),
                "schemaLocation" | "noNamespaceSchemaLocation"
            )),
            (ResolveResult::Unknown(prefix), _) => {
                Err(Box::new(DecodeReason::UndeclaredPrefix(shown(&prefix))))
            }
            _ => Ok(false),
        }
    }

    #[inline]
    fn check_namespace(&self, start: &BytesStart<'_>, expected: &str) -> Read<()> {
        match self.source.resolver().resolve_element(start.name()) {
            (ResolveResult::Bound(Namespace(found)), _) if found == expected => Ok(()),
            (ResolveResult::Unknown(prefix), _) => {
                Err(Box::new(DecodeReason::UndeclaredPrefix(shown(&prefix))))
            }
            (_, local) => Err(Box::new(DecodeReason::WrongNamespace(shown(
                local.as_ref(),
            )))),
        }
    }

    #[inline]
    fn event(&mut self) -> Read<Event<'x>> {
        self.offset = self.source.buffer_position();
        let event = self.source.read_event();
        if let Some(illegal) = self.scan.illegal
            && (self.source.buffer_position() > illegal || event.is_err())
        {
            self.offset = illegal;
            return Err(Box::new(DecodeReason::IllegalCharacter));
        }
        event.map_err(|error| match error {
            quick_xml::Error::Syntax(_) => Box::new(DecodeReason::CutOff),
            error => DecodeReason::not_well_formed(error),
        })
    }
}

impl Scan {
    fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        Self {
            illegal: characters::first_illegal(text).and_then(|at| u64::try_from(at).ok()),
            returns: memchr::memchr(b'\r', bytes).is_some(),
            section_ends: memmem::find(bytes, b"]]>").is_some(),
        }
    }
}

impl Known<'_> {
    fn into_header(self) -> KnownHeader {
        KnownHeader {
            message_type: self.root,
            from: self.from.map(|text| text.as_ref().into()),
            reply_to: self.reply_to.and_then(|text| text.parse().ok()),
            correlation_id: self.correlation.map(|text| text.as_ref().into()),
            collection_id: self.collection.map(|text| text.as_ref().into()),
        }
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
fn reference_as_byte(reference: &BytesRef<'_>) -> u8 {
    resolve(reference)
        .ok()
        .and_then(|character| u8::try_from(character).ok())
        .unwrap_or_default()
}

/// The error for an event that no element content may hold.
fn unexpected_content(event: &Event<'_>) -> Box<DecodeReason> {
    Box::new(match event {
        Event::PI(_) => DecodeReason::ProcessingInstruction,
        Event::Decl(_) => DecodeReason::Declaration,
        Event::DocType(_) => DecodeReason::DocumentType,
        Event::Eof => DecodeReason::CutOff,
        _ => DecodeReason::UnexpectedText,
    })
}
