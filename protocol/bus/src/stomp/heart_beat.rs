//! Heart-beats: what both sides of a connection agreed on.

use std::{fmt, str::FromStr, time::Duration};

/// The value of a `heart-beat` header: what a side can do and what it wants, in milliseconds; 0 is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HeartBeat {
    /// The shortest interval in which it can send.
    pub(crate) sends: u32,
    /// The interval in which it wants to hear.
    pub(crate) wants: u32,
}

/// The intervals of one side of a connection; `None` is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beats {
    /// Something is sent at least so often.
    pub(crate) send: Option<Duration>,
    /// Something is expected at least so often.
    pub(crate) expect: Option<Duration>,
}

impl HeartBeat {
    /// The same interval in both directions.
    pub(crate) fn every(interval: Duration) -> Self {
        let ms = u32::try_from(interval.as_millis()).unwrap_or(u32::MAX);
        Self {
            sends: ms,
            wants: ms,
        }
    }

    /// What holds between this side and its peer: per direction the longer interval, if both sides take part.
    pub(crate) fn agree(self, peer: Self) -> Beats {
        Beats {
            send: interval(self.sends, peer.wants),
            expect: interval(self.wants, peer.sends),
        }
    }
}

impl FromStr for HeartBeat {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (sends, wants) = text.split_once(',').ok_or(())?;
        Ok(Self {
            sends: milliseconds(sends)?,
            wants: milliseconds(wants)?,
        })
    }
}

impl fmt::Display for HeartBeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.sends, self.wants)
    }
}

fn interval(able: u32, wanted: u32) -> Option<Duration> {
    (able > 0 && wanted > 0).then(|| Duration::from_millis(able.max(wanted).into()))
}

/// Digits only; a number too large to matter is as large as can be.
fn milliseconds(text: &str) -> Result<u32, ()> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(());
    }
    Ok(text.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_interval_holds_in_each_direction() {
        let ours = HeartBeat {
            sends: 10,
            wants: 20,
        };
        let beats = ours.agree("30,15".parse().unwrap());
        assert_eq!(beats.send, Some(Duration::from_millis(15)));
        assert_eq!(beats.expect, Some(Duration::from_millis(30)));
    }

    #[test]
    fn zero_is_never() {
        let ours = HeartBeat::every(Duration::from_secs(1));
        assert_eq!(ours.agree(HeartBeat::default()), Beats::default());
        assert_eq!(HeartBeat::default().agree(ours), Beats::default());
    }

    #[test]
    fn malformed() {
        for text in ["", "1", "1,", ",1", "1,2,3", "-1,2", "1, 2", "a,b"] {
            assert!(text.parse::<HeartBeat>().is_err(), "{text}");
        }
        assert!("99999999999999,0".parse::<HeartBeat>().is_ok());
    }
}
