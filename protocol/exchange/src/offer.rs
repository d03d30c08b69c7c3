//! The addresses under which this process offers files to others, or asks for them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use uuid::Uuid;

/// A place on an exchange in which every offer gets an address of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferSpace {
    base: String,
}

impl OfferSpace {
    /// The space below `base_url`, with or without a slash at its end.
    #[must_use]
    pub fn new(base_url: &str) -> Self {
        Self {
            base: format!("{}/", base_url.trim_end_matches('/')),
        }
    }

    /// A new address for a file: the base, and in one path segment a random token that nobody
    /// guesses and the last part of `file_name`, for people to recognize; a long one is cut. Every
    /// call gives another one, so that two operations on one file don't meet.
    ///
    /// One segment, since a `WebDAV` server takes nothing below a collection that nobody has made
    /// (RFC 4918 section 9.7.1), and whoever is given an address only puts to it.
    ///
    /// Encoded as a path segment (RFC 3986 section 3.3), never as a form: a space is `%20` and a
    /// plus is `%2B`.
    #[must_use]
    pub fn address_for(&self, file_name: &str) -> String {
        let last = file_name.rsplit('/').next().unwrap_or_default();
        let shown = match beginning(last) {
            "" => UNNAMED,
            shown => shown,
        };
        format!("{}{}-{}", self.base, Uuid::new_v4(), encode_segment(shown))
    }
}

/// As much of a name as is shown.
fn beginning(name: &str) -> &str {
    let end = (0..=LONGEST_NAME)
        .rev()
        .find(|end| name.is_char_boundary(*end));
    name.split_at(end.unwrap_or_default()).0
}

/// One path segment of an address: RFC 3986's unreserved characters are kept, everything else
/// (including `/`) is percent-encoded, once, as UTF-8.
#[must_use]
pub fn encode_segment(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

const UNNAMED: &str = "file";

/// In bytes, not encoded. Servers make files of these names, which may have 255 bytes with the token
/// and what a server adds while a file comes.
const LONGEST_NAME: usize = 180;

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

    use super::*;
    use crate::address::{Address, decode};

    #[test]
    fn names_are_encoded_as_path_segments() {
        let space = OfferSpace::new("http://127.0.0.1:8181/");
        let address = space.address_for("a b+c%41#1?x&y.tif");
        assert!(address.starts_with("http://127.0.0.1:8181/"));
        assert!(
            address.ends_with("-a%20b%2Bc%2541%231%3Fx%26y.tif"),
            "{address}"
        );
        assert_eq!(
            encode_segment("Ærø 1%#?.tif"),
            "%C3%86r%C3%B8%201%25%23%3F.tif"
        );
        assert_eq!(encode_segment("a/b-c_d~e.f*"), "a%2Fb-c_d~e.f%2A");
    }

    #[test]
    fn every_offer_is_new_and_carries_a_token() {
        let space = OfferSpace::new("https://h/dav");
        let (one, other) = (space.address_for("x"), space.address_for("x"));
        assert_ne!(one, other);
        let token = one
            .strip_prefix("https://h/dav/")
            .unwrap()
            .strip_suffix("-x")
            .unwrap();
        assert!(crate::address::is_token(token), "{token}");
    }

    #[test]
    fn only_the_last_part_of_a_name_shows() {
        let space = OfferSpace::new("http://h");
        for (name, shown) in [
            ("folder/name", "-name"),
            ("", "-file"),
            ("folder/", "-file"),
            (".", "-."),
            ("..", "-.."),
        ] {
            let address = space.address_for(name);
            assert!(address.ends_with(shown), "{address}");
            assert_eq!(address.matches('/').count(), 3, "{address}");
        }
    }

    #[test]
    fn a_long_name_is_cut_between_two_characters() {
        assert_eq!(beginning(&"x".repeat(180)), "x".repeat(180));
        assert_eq!(beginning(&"x".repeat(300)), "x".repeat(180));
        assert_eq!(
            beginning(&format!("x{}", "\u{20AC}".repeat(300))),
            format!("x{}", "\u{20AC}".repeat(59))
        );
    }

    proptest! {
        #[test]
        fn every_name_survives_the_way(name in any::<String>()) {
            let encoded = encode_segment(&name);
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte);
            prop_assert!(encoded.bytes().all(plain));
            prop_assert_eq!(decode(&encoded), Some(name.clone().into_bytes()));

            let address = OfferSpace::new("http://h/").address_for(&name);
            let Address::Http(url) = Address::parse(&address).unwrap() else { panic!("{address}") };
            prop_assert_eq!(url.as_str(), address);
        }
    }
}
