//! The Range header (RFC 9110 section 14.2), as far as one range of bytes goes.

/// What a request asks for of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it.
    Whole,
    /// `length` bytes from `first` on; at least one.
    Part {
        /// The first byte, counted from 0.
        first: u64,
        /// How many bytes.
        length: u64,
    },
    /// A part that the file doesn't have.
    Nothing,
}

impl Wanted {
    /// Reads the header for a file of `size` bytes. Anything but one well-formed range of bytes is
    /// ignored, as the RFC allows.
    pub(crate) fn parse(header: &str, size: u64) -> Self {
        parse(header, size).unwrap_or(Self::Whole)
    }

    /// How many bytes that is, of a file of `size`.
    pub(crate) const fn length(self, size: u64) -> u64 {
        match self {
            Self::Whole => size,
            Self::Part { length, .. } => length,
            Self::Nothing => 0,
        }
    }
}

fn parse(header: &str, size: u64) -> Option<Wanted> {
    let (unit, range) = header.trim().split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = range.trim().split_once('-')?;
    if first.is_empty() {
        return Some(part(size.saturating_sub(number(last)?), size, size));
    }
    let first = number(first)?;
    let last = if last.is_empty() {
        u64::MAX
    } else {
        number(last)?
    };
    (first <= last).then(|| part(first, last.saturating_add(1), size))
}

/// The part from `first` to before `end`.
fn part(first: u64, end: u64, size: u64) -> Wanted {
    if first >= size {
        return Wanted::Nothing;
    }
    Wanted::Part {
        first,
        length: end.min(size) - first,
    }
}

/// A number of digits only; one too large is as large as can be.
fn number(digits: &str) -> Option<u64> {
    let valid = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    valid.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};

    use super::*;

    fn part(first: u64, length: u64) -> Wanted {
        Wanted::Part { first, length }
    }

    #[test]
    fn one_range_is_understood() {
        for (header, wanted) in [
            ("bytes=0-0", part(0, 1)),
            ("bytes=2-5", part(2, 4)),
            ("Bytes=2-", part(2, 8)),
            ("bytes=9-99999999999999999999999", part(9, 1)),
            ("bytes=-3", part(7, 3)),
            ("bytes=-30", part(0, 10)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=18446744073709551615-", Wanted::Nothing),
        ] {
            assert_eq!(Wanted::parse(header, 10), wanted, "{header}");
        }
        assert_eq!(Wanted::parse("bytes=0-", 0), Wanted::Nothing);
    }

    #[test]
    fn anything_else_means_the_whole() {
        for header in [
            "",
            "bytes",
            "bytes=",
            "bytes=-",
            "bytes=5-2",
            "bytes=0-1,3-4",
            "lines=0-1",
            "bytes=+1-2",
        ] {
            assert_eq!(Wanted::parse(header, 10), Wanted::Whole, "{header}");
        }
    }

    proptest! {
        #[test]
        fn no_header_leads_beyond_the_file(header in "bytes=[0-9]{0,22}-[0-9]{0,22}", size: u64) {
            if let Wanted::Part { first, length } = Wanted::parse(&header, size) {
                prop_assert!(length > 0);
                prop_assert!(first.checked_add(length).is_some_and(|end| end <= size));
            }
        }
    }
}
