//! What texts for people need: numbers with what they count, and names with their article.

use std::fmt;

/// A number of things: `1 file`, `2 files`, `0 directory entries`.
#[derive(Clone, Copy, Debug)]
pub struct Count<'a, N> {
    number: N,
    noun: &'a str,
}

/// So many of what `noun` names: an English noun in the singular whose plural is regular.
pub const fn count<N>(number: N, noun: &str) -> Count<'_, N> {
    Count { number, noun }
}

impl<N: fmt::Display + PartialEq + From<u8>> fmt::Display for Count<'_, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, noun } = self;
        if *number == N::from(1) {
            return write!(f, "{number} {noun}");
        }
        let vowel = |stem: &str| stem.ends_with(['a', 'e', 'i', 'o', 'u']);
        match noun.strip_suffix('y').filter(|stem| !vowel(stem)) {
            Some(stem) => write!(f, "{number} {stem}ies"),
            None => write!(f, "{number} {noun}s"),
        }
    }
}

/// The name of a checksum type with its indefinite article: `an MD5`, `a SHA1`.
#[must_use]
pub fn with_article(checksum_type: crate::ChecksumType) -> String {
    let name = checksum_type.as_str();
    // By its sound: those are spelled, SHA and OTHER are words.
    let spelled_with_vowel = ["MD", "HMAC", "O"]
        .iter()
        .any(|start| name.starts_with(start));
    let article = if spelled_with_vowel { "an" } else { "a" };
    format!("{article} {name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChecksumType;

    #[test]
    fn numbers_and_articles() {
        for (number, told) in [(0, "0 files"), (1, "1 file"), (2, "2 files")] {
            assert_eq!(count(number, "file").to_string(), told);
        }
        assert_eq!(count(1_usize, "full copy").to_string(), "1 full copy");
        assert_eq!(
            count(3_u64, "directory entry").to_string(),
            "3 directory entries"
        );
        assert_eq!(count(2_u64, "day").to_string(), "2 days");
        assert_eq!(count(1.0, "second").to_string(), "1 second");
        assert_eq!(count(0.5, "second").to_string(), "0.5 seconds");
        assert_eq!(with_article(ChecksumType::Md5), "an MD5");
        assert_eq!(with_article(ChecksumType::Sha256), "a SHA256");
        assert_eq!(with_article(ChecksumType::HmacSha1), "an HMAC_SHA1");
    }
}
