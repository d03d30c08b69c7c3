//! CONNECT: what a client wants, and whether it gets it.

use super::refusal::Refusal;
use crate::stomp::{
    frame::{Frame, StompCommand},
    heart_beat::HeartBeat,
};

/// The one version that is spoken here.
pub(super) const VERSION: &str = "1.2";
const MAX_CLIENT_ID: usize = 255;

/// A CONNECT frame that is accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) client_id: Option<String>,
    pub(super) heart_beat: HeartBeat,
}

impl Hello {
    /// Reads the first frame of a connection. `host`, `login` and `passcode` are not looked at.
    pub(super) fn read(frame: &Frame) -> Result<Self, Refusal> {
        if frame.command != StompCommand::Connect {
            let detail = format!("{} before CONNECT", frame.command);
            return Err(Refusal::invalid(detail).answering(frame));
        }
        let accepted = frame.header("accept-version").unwrap_or("1.0");
        if !accepted.split(',').any(|version| version.trim() == VERSION) {
            let detail = format!("the client speaks {accepted}, the bus speaks {VERSION}");
            return Err(Refusal::new("VERSION", detail).answering(frame));
        }
        let heart_beat = match frame.header("heart-beat") {
            Some(text) => text.parse().map_err(|()| {
                Refusal::invalid(format!(
                    "heart-beat '{text}' is not two numbers of milliseconds"
                ))
            })?,
            None => HeartBeat::default(),
        };
        let client_id = frame.header("client-id").filter(|id| !id.is_empty());
        if let Some(id) = client_id {
            let reserved = id.starts_with('~');
            if id.len() > MAX_CLIENT_ID || reserved || id.chars().any(char::is_control) {
                let detail =
                    "client-id must be up to 255 bytes of printable text and not start with '~'";
                return Err(Refusal::invalid(detail));
            }
        }
        Ok(Self {
            client_id: client_id.map(str::to_owned),
            heart_beat,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect() -> Frame {
        Frame::new(StompCommand::Connect)
    }

    #[test]
    fn versions() {
        assert!(Hello::read(&connect().with("accept-version", "1.0,1.1,1.2")).is_ok());
        for frame in [connect(), connect().with("accept-version", "1.1")] {
            assert_eq!(Hello::read(&frame).unwrap_err().name, "VERSION");
        }
    }

    #[test]
    fn client_ids_and_heart_beats() {
        let frame = connect().with("accept-version", VERSION);
        let read = |name: &str, value: &str| Hello::read(&frame.clone().with(name, value));
        let id = "kim's reading desk";
        assert_eq!(
            read("client-id", id).unwrap().client_id.as_deref(),
            Some(id)
        );
        assert_eq!(read("client-id", "").unwrap().client_id, None);
        assert!(read("client-id", "~error").is_err());
        assert!(read("client-id", &"x".repeat(256)).is_err());
        assert_eq!(
            read("heart-beat", "1,2").unwrap().heart_beat,
            HeartBeat { sends: 1, wants: 2 }
        );
        assert!(read("heart-beat", "soon").is_err());
    }

    #[test]
    fn anything_else_before_connect() {
        let refusal =
            Hello::read(&Frame::new(StompCommand::Send).with("receipt", "r")).unwrap_err();
        assert_eq!(refusal.receipt.as_deref(), Some("r"));
    }
}
