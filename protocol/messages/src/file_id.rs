//! Which file ids are acceptable: the archive's own limits, and the pattern that a repository may add.
//!
//! A [`FileId`] is whatever a message says; an [`ArchiveFileId`] has passed these rules and can become a path
//! below the archive's directory.

mod java_regex;

use std::{fmt, str::FromStr};

use regex::{Regex, RegexBuilder};
use thiserror::Error;

pub use self::java_regex::PatternError;
use crate::{ids::FileId, wording::count};

/// The pattern that file ids of a repository must match: a Java regular expression over the whole id.
///
/// It is translated so that it means what it means in Java: `\s`, `\d`, `\w`, `\p{Alpha}` and their like are
/// ASCII, `.` stops at every Java line terminator. Matching takes time linear in the id. What cannot be
/// matched that way (look-around, back-references, possessive quantifiers) is refused by name.
#[derive(Clone)]
pub struct FileIdPattern {
    source: Box<str>,
    regex: Regex,
}

impl FileIdPattern {
    /// Compiles a Java regular expression.
    ///
    /// # Errors
    ///
    /// If it is no Java regular expression, uses a construct that is not supported, or is too large.
    pub fn compile(java_regex: &str) -> Result<Self, PatternError> {
        let translated = java_regex::translate(java_regex)?;
        let regex = RegexBuilder::new(&format!(r"\A(?:{translated})\z"))
            .size_limit(MAX_COMPILED_BYTES)
            .nest_limit(MAX_NESTING)
            .build()
            .map_err(|error| match error {
                regex::Error::CompiledTooBig(limit) => PatternError::TooLarge { limit },
                other => PatternError::Invalid {
                    what: other.to_string().into(),
                    at: 0,
                },
            })?;
        Ok(Self {
            source: java_regex.into(),
            regex,
        })
    }

    /// Whether the whole text matches.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// The Java regular expression.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }
}

impl FromStr for FileIdPattern {
    type Err = PatternError;

    fn from_str(java_regex: &str) -> Result<Self, Self::Err> {
        Self::compile(java_regex)
    }
}

impl PartialEq for FileIdPattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for FileIdPattern {}

impl fmt::Display for FileIdPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

impl fmt::Debug for FileIdPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.source, f)
    }
}

/// The id of a file that an archive accepts: relative, inside the archive, no longer than file systems take.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ArchiveFileId(FileId);

/// Why an archive does not accept a file id.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FileIdError {
    /// Shorter or longer than allowed, counted in UTF-16 units.
    #[error(
        "the file id has {}, allowed are {min} to {max}",
        count(*.0, "character"),
        min = ArchiveFileId::MIN_UNITS,
        max = ArchiveFileId::MAX_UNITS
    )]
    Length(usize),
    /// Begins with a space, a dot or a slash.
    #[error("the file id must not begin with '{0}'")]
    Beginning(char),
    /// Ends in white space.
    #[error("the file id must not end in white space")]
    End,
    /// Holds a control character.
    #[error("the file id must not hold control characters")]
    Control,
    /// Holds `/..` or `../`.
    #[error("the file id must not hold '/..' or '../'")]
    Traversal,
    /// A part between slashes is empty or only dots.
    #[error("the file id must not hold the part '{0}' between slashes")]
    Component(Box<str>),
    /// A part between slashes is longer than file systems take.
    #[error(
        "a part of the file id has {}, at most {max} are allowed between slashes",
        count(*.0, "byte"),
        max = ArchiveFileId::MAX_COMPONENT_BYTES
    )]
    ComponentLength(usize),
    /// Does not match the repository's pattern.
    #[error("the file id does not match the repository's pattern {0}")]
    Pattern(Box<str>),
}

impl ArchiveFileId {
    /// The shortest id, in UTF-16 units.
    pub const MIN_UNITS: usize = 2;
    /// The longest id, in UTF-16 units.
    pub const MAX_UNITS: usize = 252;
    /// The longest part between slashes, in bytes of UTF-8.
    pub const MAX_COMPONENT_BYTES: usize = 255;

    /// The id, if it is acceptable to every archive and to the repository's pattern.
    ///
    /// # Errors
    ///
    /// Which rule it breaks; the archive's own come first.
    pub fn new(id: &FileId, pattern: Option<&FileIdPattern>) -> Result<Self, FileIdError> {
        let text = id.as_str();
        check_text(text)?;
        check_components(text)?;
        match pattern.filter(|pattern| !pattern.matches(text)) {
            Some(pattern) => Err(FileIdError::Pattern(pattern.as_str().into())),
            None => Ok(Self(id.clone())),
        }
    }

    /// The id's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The id as messages have it.
    #[must_use]
    pub const fn file_id(&self) -> &FileId {
        &self.0
    }

    /// The parts between slashes: directories, then the file name.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.as_str().split('/')
    }

    /// Whether there are directories before the file name.
    #[must_use]
    pub fn is_in_folder(&self) -> bool {
        self.as_str().contains('/')
    }
}

impl fmt::Display for ArchiveFileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for ArchiveFileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

fn check_text(text: &str) -> Result<(), FileIdError> {
    let units = text.chars().map(char::len_utf16).sum();
    if !(ArchiveFileId::MIN_UNITS..=ArchiveFileId::MAX_UNITS).contains(&units) {
        return Err(FileIdError::Length(units));
    }
    if text.chars().any(|character| character.is_ascii_control()) {
        return Err(FileIdError::Control);
    }
    if let Some(first) = text
        .chars()
        .next()
        .filter(|first| matches!(first, ' ' | '.' | '/'))
    {
        return Err(FileIdError::Beginning(first));
    }
    // Of ASCII white space only the space is no control character.
    if text.ends_with(' ') {
        return Err(FileIdError::End);
    }
    Ok(())
}

fn check_components(text: &str) -> Result<(), FileIdError> {
    if text.contains("/..") || text.contains("../") {
        return Err(FileIdError::Traversal);
    }
    for component in text.split('/') {
        if matches!(component, "" | "." | "..") {
            return Err(FileIdError::Component(component.into()));
        }
        if component.len() > ArchiveFileId::MAX_COMPONENT_BYTES {
            return Err(FileIdError::ComponentLength(component.len()));
        }
    }
    Ok(())
}

/// How large a compiled pattern may be: nested repetitions grow without bound.
const MAX_COMPILED_BYTES: usize = 4 * 1024 * 1024;
/// How deep groups and classes may nest.
const MAX_NESTING: u32 = 50;

#[cfg(test)]
mod tests;
