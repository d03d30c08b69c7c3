//! Durations as people write them: `500ms`, `1s`, `3m`, `1h 30m`, `90d`.

use std::{str::FromStr, time::Duration};

use thiserror::Error;

/// A span of time written as whole numbers with units, from the longest unit to the shortest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HumaneDuration(pub Duration);

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DurationError {
    /// The text does not consist of numbers with units.
    #[error(
        "`{0}` is no duration; write a whole number with ms, s, m, h or d, as in \"90s\" or \"1h 30m\""
    )]
    Malformed(String),
    /// A unit that is not known.
    #[error("`{text}` has the unknown unit `{unit}`; use ms, s, m (minutes), h or d")]
    UnknownUnit {
        /// The whole text.
        text: String,
        /// What stands behind the number.
        unit: String,
    },
    /// Longer than a hundred years, beyond which clocks can't be trusted to add.
    #[error("`{0}` is too long; a duration is at most 36500d")]
    TooLong(String),
}

const LONGEST_MS: u64 = 36_500 * 86_400_000;

impl FromStr for HumaneDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || DurationError::Malformed(text.to_owned());
        let too_long = || DurationError::TooLong(text.to_owned());
        let (mut rest, mut sum, mut last_unit) = (text.trim(), 0_u64, u64::MAX);
        if rest.is_empty() {
            return Err(malformed());
        }
        while !rest.is_empty() {
            let (digits, after) = split_while(rest, |c| c.is_ascii_digit());
            let (unit, after) = split_while(after.trim_start(), char::is_alphabetic);
            if digits.is_empty() || unit.is_empty() {
                return Err(malformed());
            }
            let unit_ms = unit_ms(unit).ok_or_else(|| DurationError::UnknownUnit {
                text: text.to_owned(),
                unit: unit.to_owned(),
            })?;
            if unit_ms >= last_unit {
                return Err(malformed());
            }
            let number: u64 = digits.parse().map_err(|_| too_long())?;
            sum = number
                .checked_mul(unit_ms)
                .and_then(|ms| sum.checked_add(ms))
                .filter(|sum| *sum <= LONGEST_MS)
                .ok_or_else(too_long)?;
            (rest, last_unit) = (after.trim_start(), unit_ms);
        }
        Ok(Self(Duration::from_millis(sum)))
    }
}

fn unit_ms(unit: &str) -> Option<u64> {
    match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    }
}

/// The text up to the first character that does not fit, and the rest.
pub(crate) fn split_while(text: &str, fits: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !fits(c)).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> Result<u128, DurationError> {
        text.parse::<HumaneDuration>()
            .map(|duration| duration.0.as_millis())
    }

    #[test]
    fn durations_people_write() {
        for (text, expected) in [
            ("500ms", 500),
            ("1s", 1_000),
            ("3m", 180_000),
            ("1h", 3_600_000),
            ("90d", 7_776_000_000),
            ("0s", 0),
            (" 1h 30m ", 5_400_000),
            ("1h30m", 5_400_000),
            ("10 s", 10_000),
            ("36500d", 3_153_600_000_000),
        ] {
            assert_eq!(ms(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration() {
        for text in [
            "", " ", "5", "m", "-1s", "1.5h", "1m 1h", "1s 1s", "s1", "1h,30m",
        ] {
            assert_eq!(
                ms(text),
                Err(DurationError::Malformed(text.to_owned())),
                "{text}"
            );
        }
        assert!(
            matches!(ms("3 parsecs"), Err(DurationError::UnknownUnit { unit, .. }) if unit == "parsecs")
        );
        for text in ["36501d", "99999999999999999999ms", "18446744073709551615d"] {
            assert_eq!(
                ms(text),
                Err(DurationError::TooLong(text.to_owned())),
                "{text}"
            );
        }
    }
}
