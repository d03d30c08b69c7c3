//! Paces as people write them: `20 MiB` (each second), or `unlimited`.

use std::{fmt, num::NonZeroU64, str::FromStr};

use thiserror::Error;

use crate::size::{ByteSize, SizeError};

/// How many bytes per second something may read; `None` is without limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace(pub Option<NonZeroU64>);

impl Pace {
    /// As fast as it goes.
    pub const UNLIMITED: Self = Self(None);
}

/// Why a text is no pace.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PaceError {
    /// Nothing would ever get done.
    #[error("`{0}` is no pace; write a number of bytes per second, or \"unlimited\"")]
    Zero(String),
    /// Neither the word nor a size.
    #[error(transparent)]
    Size(#[from] SizeError),
}

impl FromStr for Pace {
    type Err = PaceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.trim() == UNLIMITED {
            return Ok(Self::UNLIMITED);
        }
        let ByteSize(bytes) = text.parse()?;
        let bytes = NonZeroU64::new(bytes).ok_or_else(|| PaceError::Zero(text.to_owned()))?;
        Ok(Self(Some(bytes)))
    }
}

/// `20971520 B/s` or `unlimited`.
impl fmt::Display for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(bytes) => write!(f, "{bytes} B/s"),
            None => f.write_str(UNLIMITED),
        }
    }
}

const UNLIMITED: &str = "unlimited";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paces_people_write() {
        for (text, expected) in [
            ("unlimited", None),
            ("20 MiB", NonZeroU64::new(20 << 20)),
            ("1", NonZeroU64::new(1)),
        ] {
            assert_eq!(text.parse(), Ok(Pace(expected)), "{text}");
        }
        assert_eq!(
            "0 MiB".parse::<Pace>(),
            Err(PaceError::Zero("0 MiB".to_owned()))
        );
        assert!(matches!("fast".parse::<Pace>(), Err(PaceError::Size(_))));
    }
}
