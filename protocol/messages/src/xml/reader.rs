//! The strict pull reader: each type asks for its children in schema order, and anything else is an error.
//!
//! Depth needs no limit of its own: an element that the schema does not have in its place ends the reading,
//! so nothing is nested deeper than the schema nests it.

mod known;
mod scan;
mod start;
mod text;

use quick_xml::{
    NsReader,
    events::{BytesStart, Event},
};

use self::{known::Known, scan::Scan, text::reference_as_byte};
use super::{ELEMENTS, characters, content::Content, declaration};
use crate::{
    error::{DecodeError, DecodeReason, Expected, shown},
    limits::MAX_NAMESPACES,
    message::ReadOptions,
    version::ProtocolVersion,
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
    options: ReadOptions,
}

/// The next tag, read but not yet taken.
enum Ahead<'x> {
    Nothing,
    Start(Start<'x>),
    End,
}

/// A start tag.
struct Start<'x> {
    tag: BytesStart<'x>,
    /// Where the local name begins in the tag: after the prefix.
    local: usize,
}

impl Start<'_> {
    #[inline]
    fn local_name(&self) -> &str {
        self.tag.name().0.get(self.local..).unwrap_or_default()
    }
}

/// The root element: what it is called and the versions on it.
pub(crate) struct Root {
    /// Local name.
    pub(crate) name: String,
    /// Attributes `version` and `minVersion`.
    pub(crate) version: Result<ProtocolVersion, Fault>,
}

/// Something wrong that need not end the reading at once; see [`Reader::fail`].
pub(crate) struct Fault {
    reason: Box<DecodeReason>,
    offset: u64,
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
            scan: Scan::default(),
            known: Known::default(),
            options: ReadOptions::default(),
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

    /// Reads with these options.
    pub(crate) const fn set_options(&mut self, options: ReadOptions) {
        self.options = options;
    }

    pub(crate) const fn options(&self) -> ReadOptions {
        self.options
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
        let offset = self.offset;
        let version = self.versions(&start)?;
        Ok(Root {
            name,
            version: version.map_err(|reason| Fault { reason, offset }),
        })
    }

    /// Ends the reading with a fault of the root, with what was read meanwhile.
    pub(crate) fn fail(&mut self, fault: Fault) -> Box<DecodeReason> {
        self.offset = fault.offset;
        fault.reason
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

    /// Reads the element that must come next and holds nothing but a list.
    pub(crate) fn list<T: Content>(
        &mut self,
        name: &'static str,
        item: &'static str,
    ) -> Read<Vec<T>> {
        if !self.at(name)? {
            return Err(self.instead_of(Expected::Element(name)));
        }
        self.ahead = Ahead::Nothing;
        self.path.push(name);
        let items = self.repeated(item)?;
        self.expect_end()?;
        self.path.pop();
        Ok(items)
    }

    /// Whether the element comes next.
    #[inline]
    pub(crate) fn at(&mut self, name: &str) -> Read<bool> {
        if matches!(self.ahead, Ahead::Nothing) {
            self.look_ahead()?;
        }
        Ok(match &self.ahead {
            Ahead::Start(start) => start.local_name() == name,
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
                found: shown(start.local_name()),
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
                    let local = self.check_namespace(&start, ELEMENTS)?;
                    self.check_attributes(&start)?;
                    self.ahead = Ahead::Start(Start { tag: start, local });
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
