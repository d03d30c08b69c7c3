//! The protocol version that every document carries, and who talks to whom.

use thiserror::Error;

/// The attributes `version` and `minVersion` of a root element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProtocolVersion {
    /// The protocol version that the sender speaks, at least 1.
    pub version: u64,
    /// The oldest version that a receiver must speak to understand the document.
    pub min_version: u64,
}

/// Why a peer's version does not go with ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum VersionError {
    /// The peer asks for more than we speak.
    #[error("the sender requires protocol version {required}, this is version {ours}")]
    TooNew {
        /// The oldest version that the peer accepts.
        required: u64,
        /// The version we speak.
        ours: u64,
    },
    /// The peer is older than we accept.
    #[error("the sender speaks protocol version {version}, the oldest accepted is {oldest}")]
    TooOld {
        /// The version that the peer speaks.
        version: u64,
        /// The oldest version that we accept.
        oldest: u64,
    },
}

impl ProtocolVersion {
    /// The version spoken here.
    pub const CURRENT: Self = Self {
        version: 31,
        min_version: 24,
    };

    /// Checks a received version against [`ProtocolVersion::CURRENT`]. A newer one is fine as long as it
    /// doesn't ask for more than ours.
    ///
    /// # Errors
    ///
    /// If either side is too old for the other.
    pub const fn check(self) -> Result<(), VersionError> {
        let ours = Self::CURRENT;
        if self.min_version > ours.version {
            return Err(VersionError::TooNew {
                required: self.min_version,
                ours: ours.version,
            });
        }
        if self.version < ours.min_version {
            return Err(VersionError::TooOld {
                version: self.version,
                oldest: ours.min_version,
            });
        }
        Ok(())
    }
}

impl Default for ProtocolVersion {
    fn default() -> Self {
        Self::CURRENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_talks_to_whom() {
        let check = |version, min_version| {
            ProtocolVersion {
                version,
                min_version,
            }
            .check()
        };
        assert_eq!(check(31, 24), Ok(()));
        assert_eq!(check(33, 24), Ok(()));
        assert_eq!(check(99, 31), Ok(()));
        assert_eq!(check(24, 0), Ok(()));
        assert_eq!(
            check(40, 32),
            Err(VersionError::TooNew {
                required: 32,
                ours: 31
            })
        );
        assert_eq!(
            check(23, 20),
            Err(VersionError::TooOld {
                version: 23,
                oldest: 24
            })
        );
    }
}
