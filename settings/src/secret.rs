//! Texts that nobody must see.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

/// A text that is not shown: not by `Debug`, and in no error about the settings that it stands in.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for whoever has to say it to a peer.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SecretVisitor;

        /// What is found instead of a text is not told either: it is the secret, without quotes.
        fn no_text<E: Error>() -> Result<Secret, E> {
            Err(E::custom("a secret is a text; put it in quotes"))
        }

        impl Visitor<'_> for SecretVisitor {
            type Value = Secret;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Secret, E> {
                Ok(Secret::new(text))
            }

            fn visit_bool<E: Error>(self, _: bool) -> Result<Secret, E> {
                no_text()
            }

            fn visit_i64<E: Error>(self, _: i64) -> Result<Secret, E> {
                no_text()
            }

            fn visit_i128<E: Error>(self, _: i128) -> Result<Secret, E> {
                no_text()
            }

            fn visit_u64<E: Error>(self, _: u64) -> Result<Secret, E> {
                no_text()
            }

            fn visit_u128<E: Error>(self, _: u128) -> Result<Secret, E> {
                no_text()
            }

            fn visit_f64<E: Error>(self, _: f64) -> Result<Secret, E> {
                no_text()
            }
        }

        deserializer.deserialize_string(SecretVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new("sesame");
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert_eq!(secret.reveal(), "sesame");
    }

    #[test]
    fn nor_is_what_should_have_been_one() {
        #[derive(Debug, Deserialize)]
        struct Table {
            #[expect(dead_code, reason = "it is only read")]
            secret: Secret,
        }
        for value in [
            "271828",
            "2.71828",
            "true",
            "[\"271828\"]",
            "{ a = 271828 }",
            "2718-02-08",
        ] {
            let error = toml::from_str::<Table>(&format!("secret = {value}")).unwrap_err();
            let said = error.message();
            assert!(!said.contains("2718") && !said.contains("true"), "{said}");
        }
    }
}
