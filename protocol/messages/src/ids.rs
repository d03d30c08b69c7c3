//! Identifiers of the protocol, each its own type so that one can't be passed for another.
//!
//! On the wire every identifier is an `xs:string` without pattern or length limit; a bad one must be
//! answerable, so these types hold any text. What the archive accepts is checked where it is used.

use std::{borrow::Borrow, fmt};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Box<str>);

        impl $name {
            /// The identifier's text, exactly as given.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0.into()
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

identifier! {
    /// Id of a collection (schema element `CollectionID`).
    CollectionId
}

identifier! {
    /// Id of a component: a pillar, a service or a client (schema elements `PillarID`, `From`, `To`, `Contributor`).
    ComponentId
}

identifier! {
    /// Id of a file within a collection (schema element `FileID`): opaque text, never normalized.
    FileId
}

identifier! {
    /// Id that joins all messages of one conversation (schema element `CorrelationID`); any text, by custom a UUID.
    CorrelationId
}

impl CorrelationId {
    /// A new random id: the text of a version 4 UUID (RFC 9562 section 5.4).
    #[must_use]
    pub fn random() -> Self {
        Self(Uuid::new_v4().to_string().into())
    }

    /// The id up to its first dash, as printed in events: eight hex digits of a UUID.
    #[must_use]
    pub fn short(&self) -> &str {
        self.0.split('-').next().unwrap_or_default()
    }
}
