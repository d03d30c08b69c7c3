//! The one seam through which the exact text of every message passes: signed on the way out, verified on
//! the way in, before anything is parsed.

use thiserror::Error;

/// How this component signs and verifies messages.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum MessageSecurity {
    /// Nothing is signed; a signature that arrives is not looked at. This is the protocol with message
    /// authentication off, where a missing, null and any other signature count alike.
    #[default]
    Unsigned,
}

/// What is known of a message whose text has been accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Fingerprint of the signer's certificate; none if the message isn't authenticated.
    pub certificate: Option<String>,
}

/// Why a text was not accepted. An unsigned repository accepts every text, so there is no reason yet.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SecurityError {}

impl MessageSecurity {
    /// The value of the signature property for this text, or none if messages aren't signed.
    #[must_use]
    pub fn sign(&self, _text: &str) -> Option<String> {
        match self {
            Self::Unsigned => None,
        }
    }

    /// Checks the text against its signature property. The literal `null`, which is how a JMS null
    /// arrives over STOMP, must already have been read as none.
    ///
    /// # Errors
    /// [`SecurityError`] if the text may not be believed.
    pub fn verify(&self, _text: &str, _signature: Option<&str>) -> Result<Verified, SecurityError> {
        match self {
            Self::Unsigned => Ok(Verified::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsigned_signs_nothing_and_accepts_any_signature() {
        assert_eq!(MessageSecurity::Unsigned.sign("<a/>"), None);
        for signature in [None, Some("MIIC"), Some("no base64 at all")] {
            let verified = MessageSecurity::Unsigned.verify("<a/>", signature).unwrap();
            assert_eq!(verified.certificate, None);
        }
    }
}
