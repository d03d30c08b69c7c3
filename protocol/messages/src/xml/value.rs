//! Simple values: the text of a leaf element or an attribute.

use std::{fmt::Write as _, num::NonZeroU64};

use super::{characters::collapsed, reader::Read, writer::escape};
use crate::{
    destination::Destination,
    error::DecodeReason,
    ids::{CollectionId, ComponentId, CorrelationId, FileId},
    message::ReadOptions,
};

/// A type whose XML form is plain text.
pub(crate) trait Value: Sized {
    /// What to call the type when a text is not one.
    const EXPECTED: &'static str;

    /// The value of the text, references and line ends already resolved.
    fn from_text(text: &str) -> Option<Self>;

    /// The value of the text, where the options allow more than [`Value::from_text`] does.
    #[inline]
    fn from_text_with(text: &str, _options: ReadOptions) -> Option<Self> {
        Self::from_text(text)
    }

    /// Appends the text, escaped.
    fn write(&self, out: &mut String);

    /// The file it names, if it names one.
    fn file(&self) -> Option<&FileId> {
        None
    }
}

/// The value of the text.
#[inline]
pub(crate) fn parse<T: Value>(text: &str, options: ReadOptions) -> Read<T> {
    T::from_text_with(text, options).ok_or_else(|| DecodeReason::bad_value(text, T::EXPECTED))
}

impl Value for String {
    const EXPECTED: &'static str = "text";

    #[inline]
    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    #[inline]
    fn write(&self, out: &mut String) {
        escape(self, out);
    }
}

macro_rules! identifier_value {
    ($($name:ident),*) => {
        $(impl Value for $name {
            const EXPECTED: &'static str = "text";

            #[inline]
            fn from_text(text: &str) -> Option<Self> {
                Some(text.into())
            }

            #[inline]
            fn write(&self, out: &mut String) {
                escape(self.as_str(), out);
            }
        })*
    };
}

identifier_value!(CollectionId, ComponentId, CorrelationId);

impl Value for FileId {
    const EXPECTED: &'static str = "text";

    #[inline]
    fn from_text(text: &str) -> Option<Self> {
        Some(text.into())
    }

    #[inline]
    fn write(&self, out: &mut String) {
        escape(self.as_str(), out);
    }

    fn file(&self) -> Option<&FileId> {
        Some(self)
    }
}

impl Value for Destination {
    const EXPECTED: &'static str = "a destination (topic://NAME, queue://NAME)";

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn write(&self, out: &mut String) {
        out.push_str(self.kind().scheme());
        out.push_str("://");
        escape(self.name(), out);
    }
}

impl Value for bool {
    const EXPECTED: &'static str = "a boolean (true, false, 1, 0)";

    fn from_text(text: &str) -> Option<Self> {
        match collapsed(text) {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        }
    }

    fn write(&self, out: &mut String) {
        out.push_str(if *self { "true" } else { "false" });
    }
}

/// An `xs:nonNegativeInteger`; the schema sets no upper bound, so what doesn't fit is the largest that does.
impl Value for u64 {
    const EXPECTED: &'static str = "a non-negative integer";

    fn from_text(text: &str) -> Option<Self> {
        let text = collapsed(text);
        let (negative, digits) = match text.as_bytes() {
            [b'-', digits @ ..] => (true, digits),
            [b'+', digits @ ..] | digits => (false, digits),
        };
        if digits.is_empty() {
            return None;
        }
        let value = digits.iter().try_fold(0, |value: Self, digit| {
            digit.is_ascii_digit().then(|| {
                value
                    .saturating_mul(10)
                    .saturating_add(Self::from(digit - b'0'))
            })
        })?;
        (!negative || value == 0).then_some(value)
    }

    fn write(&self, out: &mut String) {
        // Writing to a String cannot fail.
        let _ = write!(out, "{self}");
    }
}

/// An `xs:positiveInteger`; what doesn't fit is the largest that does.
impl Value for NonZeroU64 {
    const EXPECTED: &'static str = "a positive integer";

    fn from_text(text: &str) -> Option<Self> {
        u64::from_text(text).and_then(Self::new)
    }

    fn write(&self, out: &mut String) {
        Value::write(&self.get(), out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_as_the_schema_has_them() {
        for (text, value) in [
            ("0", Some(0)),
            (" \r\n\t+0007 ", Some(7)),
            ("-0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("184467440737095516160", Some(u64::MAX)),
            ("-1", None),
            ("", None),
            ("+", None),
            ("1 2", None),
            ("1.0", None),
            ("\u{A0}1", None),
            ("٣", None),
        ] {
            assert_eq!(u64::from_text(text), value, "{text:?}");
        }
        assert_eq!(NonZeroU64::from_text("0"), None);
        assert_eq!(NonZeroU64::from_text("9"), NonZeroU64::new(9));
    }

    #[test]
    fn booleans_as_the_schema_has_them() {
        assert_eq!(bool::from_text(" true\n"), Some(true));
        assert_eq!(bool::from_text("0"), Some(false));
        for text in ["True", "", "yes", "00"] {
            assert_eq!(bool::from_text(text), None, "{text:?}");
        }
    }
}
