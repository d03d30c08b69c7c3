//! Bytes as hexadecimal text.

use std::{fmt, str::FromStr};

use thiserror::Error;

use crate::xml::{characters::collapsed, value::Value};

/// Bytes written as hexadecimal digits (`xs:hexBinary`): checksums and salts.
///
/// Read in either case; shown and stored in lower case; written to XML in upper case. Equal if the bytes are.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HexBinary(Vec<u8>);

/// Why a text is no hexadecimal number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HexBinaryError {
    /// An odd number of digits.
    #[error("odd number of hexadecimal digits ({0})")]
    OddLength(usize),
    /// A character that is no hexadecimal digit.
    #[error("'{0}' is not a hexadecimal digit")]
    NotADigit(char),
}

impl HexBinary {
    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for HexBinary {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&[u8]> for HexBinary {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl FromStr for HexBinary {
    type Err = HexBinaryError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(bytes) = decode(text) {
            return Ok(Self(bytes));
        }
        Err(
            match text
                .chars()
                .find(|character| !character.is_ascii_hexdigit())
            {
                Some(other) => HexBinaryError::NotADigit(other),
                None => HexBinaryError::OddLength(text.len()),
            },
        )
    }
}

serde_as_text! { HexBinary }

impl fmt::Display for HexBinary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(self.0.len() * 2);
        encode(&self.0, b'a', &mut text);
        f.write_str(&text)
    }
}

impl fmt::Debug for HexBinary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Value for HexBinary {
    const EXPECTED: &'static str = "an even number of hexadecimal digits";

    fn from_text(text: &str) -> Option<Self> {
        decode(collapsed(text)).map(Self)
    }

    fn write(&self, out: &mut String) {
        encode(&self.0, b'A', out);
    }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs
        .iter()
        .map(|&[high, low]| Some(digit(high)? << 4 | digit(low)?))
        .collect()
}

const fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'A'..=b'F' => Some(byte - b'A' + 10),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// Appends two digits for each byte; letters begin at `letter`.
fn encode(bytes: &[u8], letter: u8, out: &mut String) {
    let digit = |nibble: u8| {
        if nibble < 10 {
            b'0' + nibble
        } else {
            letter + (nibble - 10)
        }
    };
    let mut buffer = [0; 2 * CHUNK];
    for chunk in bytes.chunks(CHUNK) {
        let (pairs, _) = buffer.as_chunks_mut::<2>();
        for (pair, byte) in pairs.iter_mut().zip(chunk) {
            *pair = [digit(byte >> 4), digit(byte & 0xF)];
        }
        let text = buffer.get(..2 * chunk.len()).unwrap_or_default();
        out.push_str(str::from_utf8(text).unwrap_or_default());
    }
}

/// Bytes encoded at a time: the longest checksum.
const CHUNK: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_case_in_one_case_out() {
        let value: HexBinary = "00fFaB".parse().unwrap();
        assert_eq!(value.as_bytes(), [0x00, 0xFF, 0xAB]);
        assert_eq!(value.to_string(), "00ffab");
        let mut wire = String::new();
        value.write(&mut wire);
        assert_eq!(wire, "00FFAB");
        assert_eq!("".parse::<HexBinary>().unwrap().as_bytes(), []);
        assert_eq!(
            "abc".parse::<HexBinary>(),
            Err(HexBinaryError::OddLength(3))
        );
        assert_eq!(
            "ag".parse::<HexBinary>(),
            Err(HexBinaryError::NotADigit('g'))
        );
        assert_eq!(
            "ä".parse::<HexBinary>(),
            Err(HexBinaryError::NotADigit('ä'))
        );
        assert_eq!(HexBinary::from_text(" \n0a\t"), Some(HexBinary(vec![10])));
        assert_eq!(HexBinary::from_text("0 a"), None);
    }
}
