//! Sizes as people write them: `10 GiB`, `500 MB`, or plain bytes.

use std::str::FromStr;

use thiserror::Error;

use crate::duration::split_while;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSize(pub u64);

/// Why a text is no size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SizeError {
    /// The text is no whole number with a unit.
    #[error(
        "`{0}` is no size; write a whole number of bytes, or one with a unit, as in \"10 GiB\""
    )]
    Malformed(String),
    /// A unit that is not known.
    #[error("`{text}` has the unknown unit `{unit}`; use B, kB, MB, GB, TB, KiB, MiB, GiB or TiB")]
    UnknownUnit {
        /// The whole text.
        text: String,
        /// What stands behind the number.
        unit: String,
    },
    /// More bytes than 64 bits can count.
    #[error("`{0}` is too large; a size is at most 18446744073709551615 bytes")]
    TooLarge(String),
}

impl FromStr for ByteSize {
    type Err = SizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (digits, unit) = split_while(text.trim(), |c| c.is_ascii_digit());
        let unit = unit.trim_start();
        if digits.is_empty() || !unit.chars().all(char::is_alphabetic) {
            return Err(SizeError::Malformed(text.to_owned()));
        }
        let factor = factor(unit).ok_or_else(|| SizeError::UnknownUnit {
            text: text.to_owned(),
            unit: unit.to_owned(),
        })?;
        let number: Option<u64> = digits.parse().ok();
        number
            .and_then(|number| number.checked_mul(factor))
            .map(Self)
            .ok_or_else(|| SizeError::TooLarge(text.to_owned()))
    }
}

fn factor(unit: &str) -> Option<u64> {
    match unit {
        "" | "B" => Some(1),
        "kB" | "KB" => Some(1_000),
        "MB" => Some(1_000_000),
        "GB" => Some(1_000_000_000),
        "TB" => Some(1_000_000_000_000),
        "KiB" => Some(1 << 10),
        "MiB" => Some(1 << 20),
        "GiB" => Some(1 << 30),
        "TiB" => Some(1 << 40),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(text: &str) -> Result<u64, SizeError> {
        text.parse::<ByteSize>().map(|size| size.0)
    }

    #[test]
    fn sizes_people_write() {
        for (text, expected) in [
            ("0", 0),
            ("123", 123),
            ("7 B", 7),
            ("10 GiB", 10 << 30),
            ("10GiB", 10 << 30),
            ("500 MB", 500_000_000),
            ("1 kB", 1_000),
            ("9223372036854775807", u64::MAX / 2),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_size() {
        for text in ["", "GiB", "-1", "1.5 GiB", "1 GiB 2"] {
            assert_eq!(
                bytes(text),
                Err(SizeError::Malformed(text.to_owned())),
                "{text}"
            );
        }
        assert!(
            matches!(bytes("3 gigs"), Err(SizeError::UnknownUnit { unit, .. }) if unit == "gigs")
        );
        for text in ["18446744073709551616", "18014398509481984 KiB"] {
            assert_eq!(
                bytes(text),
                Err(SizeError::TooLarge(text.to_owned())),
                "{text}"
            );
        }
    }
}
