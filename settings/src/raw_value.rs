//! What both files spell alike: values written as text, read while the file is read, so that errors know their
//! line.

use std::{fmt, marker::PhantomData, str::FromStr};

use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

use crate::size::ByteSize;

/// A value written as a quoted text in the form of its [`FromStr`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text<T>(pub(crate) T);

impl<'de, T: FromStr<Err: fmt::Display>> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor<T>(PhantomData<T>);

        impl<T: FromStr<Err: fmt::Display>> Visitor<'_> for TextVisitor<T> {
            type Value = Text<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
                text.parse().map(Text).map_err(E::custom)
            }
        }

        deserializer.deserialize_string(TextVisitor(PhantomData))
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SizeVisitor;

        impl Visitor<'_> for SizeVisitor {
            type Value = ByteSize;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of bytes or a string")
            }

            fn visit_i64<E: Error>(self, bytes: i64) -> Result<ByteSize, E> {
                match u64::try_from(bytes) {
                    Ok(bytes) => Ok(ByteSize(bytes)),
                    Err(_) => self.visit_str(&bytes.to_string()),
                }
            }

            fn visit_u64<E: Error>(self, bytes: u64) -> Result<ByteSize, E> {
                Ok(ByteSize(bytes))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ByteSize, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_any(SizeVisitor)
    }
}

/// One word out of few, as in `"FILE"`.
pub(crate) trait Word: Copy + Sized + 'static {
    /// What the words are for, as in `pillar type`.
    const WHAT: &'static str;
    /// All of them, with their spelling.
    const ALL: &'static [(&'static str, Self)];
}

/// A value of a [`Word`] type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct OneOf<T>(pub(crate) T);

impl<'de, T: Word> Deserialize<'de> for OneOf<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Text(word) = Text::<String>::deserialize(deserializer)?;
        let found = T::ALL.iter().find(|(spelling, _)| *spelling == word);
        found.map(|(_, value)| Self(*value)).ok_or_else(|| {
            let known: Vec<&str> = T::ALL.iter().map(|(spelling, _)| *spelling).collect();
            let next_step = crate::reading::did_you_mean(&word, &known);
            D::Error::custom(format_args!("`{word}` is no {}; {next_step}", T::WHAT))
        })
    }
}
