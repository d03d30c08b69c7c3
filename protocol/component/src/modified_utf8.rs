//! Text as Java peers send it.
//!
//! The reference broker's own wire format writes a character above U+FFFF as two surrogates of three bytes
//! each (CESU-8, Unicode Technical Report 26), and U+0000 as `C0 80`. A subscriber over STOMP gets those
//! bytes. They are no UTF-8, so they are put together again here; anything else that isn't UTF-8 is an error.

use std::borrow::Cow;

use thiserror::Error;

/// The body is neither UTF-8 nor UTF-8 with paired surrogates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the text is not UTF-8 (byte {offset})")]
pub struct EncodingError {
    /// Where the first wrong byte stands, from 0.
    pub offset: usize,
}

/// Reads the bytes as UTF-8; surrogate pairs of three bytes each become the character they mean.
///
/// # Errors
/// [`EncodingError`] at the first byte that can't be understood, a lone surrogate included.
pub fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, EncodingError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(Cow::Borrowed(text)),
        Err(_) => decode_pairs(bytes).map(Cow::Owned),
    }
}

fn decode_pairs(bytes: &[u8]) -> Result<String, EncodingError> {
    let mut text = String::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        let error = match std::str::from_utf8(rest) {
            Ok(valid) => {
                text.push_str(valid);
                return Ok(text);
            }
            Err(error) => error,
        };
        let (valid, wrong) = rest.split_at(error.valid_up_to());
        text.push_str(std::str::from_utf8(valid).unwrap_or_default());
        let offset = bytes.len() - wrong.len();
        let (character, length) = leading_pair(wrong).ok_or(EncodingError { offset })?;
        text.push(character);
        rest = wrong.get(length..).unwrap_or_default();
    }
}

/// The character that the bytes begin with in Java's way, and how many bytes it takes.
fn leading_pair(bytes: &[u8]) -> Option<(char, usize)> {
    match *bytes {
        [
            0xED,
            h1 @ 0xA0..=0xAF,
            h2 @ 0x80..=0xBF,
            0xED,
            l1 @ 0xB0..=0xBF,
            l2 @ 0x80..=0xBF,
            ..,
        ] => {
            let high = (u32::from(h1 & 0x0F) << 6) | u32::from(h2 & 0x3F);
            let low = (u32::from(l1 & 0x0F) << 6) | u32::from(l2 & 0x3F);
            char::from_u32(0x1_0000 + ((high << 10) | low)).map(|character| (character, 6))
        }
        [0xC0, 0x80, ..] => Some(('\0', 2)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The text as Java writes it.
    fn encode(text: &str) -> Vec<u8> {
        let byte = |marker: u16, bits: u16| u8::try_from(marker | bits).unwrap();
        let mut bytes = Vec::new();
        for unit in text.encode_utf16() {
            let last = byte(0x80, unit & 0x3F);
            match unit {
                0x01..=0x7F => bytes.push(byte(0, unit)),
                0 | 0x80..=0x7FF => bytes.extend([byte(0xC0, unit >> 6), last]),
                _ => bytes.extend([byte(0xE0, unit >> 12), byte(0x80, (unit >> 6) & 0x3F), last]),
            }
        }
        bytes
    }

    #[test]
    fn plain_utf8_is_borrowed() {
        assert!(matches!(
            decode("Ærø 💾".as_bytes()),
            Ok(Cow::Borrowed("Ærø 💾"))
        ));
    }

    #[test]
    fn pairs_become_one_character() {
        let java = [b'a', 0xED, 0xA0, 0xBD, 0xED, 0xB2, 0xBE, b'z'];
        assert_eq!(decode(&java).unwrap(), "a💾z");
    }

    #[test]
    fn anything_else_is_an_error_with_its_place() {
        for (bytes, offset) in [
            (&b"ab\xFFcd"[..], 2),
            (b"a\xED\xA0\xBD", 1),
            (b"a\xED\xA0\xBDb", 1),
            (b"a\xED\xB2\xBE\xED\xA0\xBD", 1),
            (b"\xED\xA0\xBD\xED\xB2\xBE\xC3", 6),
            (b"\xC1\xBF", 0),
        ] {
            assert_eq!(decode(bytes), Err(EncodingError { offset }), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn javas_spelling_of_any_text_reads_as_that_text(text in any::<String>()) {
            let java = encode(&text);
            prop_assert_eq!(decode(&java).unwrap(), text);
        }

        #[test]
        fn utf8_and_javas_spelling_may_be_mixed(a in any::<String>(), b in any::<String>()) {
            let mut bytes = encode(&a);
            bytes.extend(b.as_bytes());
            prop_assert_eq!(decode(&bytes).unwrap(), a + &b);
        }

        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Err(error) = decode(&bytes) {
                prop_assert!(error.offset < bytes.len());
            }
        }

        #[test]
        fn near_surrogates_never_make_surrogates(
            bytes in prop::collection::vec(prop::sample::select(vec![0xEDu8, 0xA0, 0xBF, 0xB0, 0x80, 0xC0, b'a']), 0..40)
        ) {
            if let Ok(text) = decode(&bytes) {
                prop_assert!(text.chars().count() <= bytes.len());
            }
        }
    }
}
