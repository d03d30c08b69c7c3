//! Opening one connection: TCP, CONNECT, CONNECTED.

use std::{io, time::Duration};

use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};

use super::{Passcode, StompOptions, decode, dialect::Dialect, prompt::PromptStream};
use crate::{
    error::{BusError, OPEN_WIRE},
    stomp::{
        codec::{FrameLimits, StompCodec},
        frame::{ADMINISTRATION, Frame, StompCommand},
        heart_beat::HeartBeat,
        wire::{StallLimits, Wire, WireError, prepare},
    },
};

/// A session with a broker.
#[derive(Debug)]
pub(super) struct Dialled {
    pub(super) wire: Wire<PromptStream>,
    pub(super) dialect: &'static Dialect,
    /// Whether the broker says that it has an administration.
    pub(super) administration: bool,
}

/// Connects to `address` and opens a session, which may take as long as `patience`.
///
/// # Errors
/// [`BusError::Unreachable`] with the address, or what the bus says against it.
pub(super) async fn dial(
    options: &StompOptions,
    address: &str,
    client_id: &str,
    patience: Duration,
) -> Result<Dialled, BusError> {
    let deadline = Instant::now() + patience;
    let host = match &options.virtual_host {
        Some(host) => return open(options, address, host, client_id, deadline).await,
        None => address.rsplit_once(':').map_or(address, |(host, _)| host),
    };
    match open(options, address, host, client_id, deadline).await {
        Err(BusError::Refused { detail, .. }) if detail.starts_with(NO_SUCH_HOST) => {
            open(options, address, DEFAULT_HOST, client_id, deadline).await
        }
        opened => opened,
    }
}

/// How RabbitMQ begins to say that it has no virtual host of the address's name.
const NO_SUCH_HOST: &str = "Virtual host";
/// The virtual host that a new RabbitMQ has.
const DEFAULT_HOST: &str = "/";

async fn open(
    options: &StompOptions,
    address: &str,
    host: &str,
    client_id: &str,
    deadline: Instant,
) -> Result<Dialled, BusError> {
    let unreachable = |reason: String| BusError::Unreachable {
        address: address.to_owned(),
        reason,
    };
    let stream = timeout_at(deadline, TcpStream::connect(address)).await;
    let stream = stream
        .unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut)))
        .map_err(|error| unreachable(error.to_string()))?;
    prepare(&stream).map_err(|error| unreachable(error.to_string()))?;
    let mut wire = new_wire(stream, options);
    wire.set_deadline(Some(deadline));
    let ours = HeartBeat::every(options.heart_beat);
    let connect = connect_frame(options, host, client_id, ours);
    StompCodec::encode(&connect, &mut wire.output)
        .map_err(|error| BusError::invalid(error.to_string()))?;
    let answer = match first_frame(&mut wire).await {
        Ok(answer) => answer,
        Err(WireError::Deadline) => {
            return Err(unreachable("it does not answer in time".to_owned()));
        }
        Err(error) => {
            return Err(match protocol_of(wire.unread()) {
                Some(protocol) => BusError::OtherProtocol {
                    address: address.to_owned(),
                    protocol,
                },
                None => unreachable(error.to_string()),
            });
        }
    };
    match answer.command {
        StompCommand::Connected => {}
        StompCommand::Error => return Err(decode::error(&answer, client_id, None)),
        other => return Err(unreachable(format!("it answers CONNECT with {other}"))),
    }
    let theirs = match answer.header("heart-beat") {
        Some(text) => text
            .parse()
            .map_err(|()| unreachable(format!("it sends the heart-beat header '{text}'")))?,
        None => HeartBeat::default(),
    };
    wire.set_deadline(None);
    wire.open(options.limits, ours.agree(theirs));
    let dialect = Dialect::of_server(answer.header("server"));
    let administration = answer.header(ADMINISTRATION).is_some();
    Ok(Dialled {
        wire,
        dialect,
        administration,
    })
}

fn new_wire(stream: TcpStream, options: &StompOptions) -> Wire<PromptStream> {
    let stalls = StallLimits {
        read: options.connect_timeout * 3,
        write: options.connect_timeout * 6,
    };
    let limits = FrameLimits {
        body: 64 << 10,
        ..options.limits
    };
    Wire::new(PromptStream(stream), StompCodec::forgiving(limits), stalls)
}

fn connect_frame(
    options: &StompOptions,
    host: &str,
    client_id: &str,
    heart_beat: HeartBeat,
) -> Frame {
    let mut frame = Frame::new(StompCommand::Connect)
        .with("accept-version", "1.2")
        .with("host", host)
        .with("client-id", client_id)
        .with("heart-beat", heart_beat.to_string());
    if let Some(login) = &options.login {
        frame = frame.with("login", login);
    }
    if let Some(Passcode(secret)) = &options.passcode {
        frame = frame.with("passcode", secret);
    }
    frame
}

/// What is spoken by who begins with these bytes, if it is a protocol that is taken for STOMP by mistake: ActiveMQ
/// says what `OpenWire` it speaks before it is asked, in a frame with its name behind the length and the type.
fn protocol_of(beginning: &[u8]) -> Option<&'static str> {
    match beginning {
        [_, _, _, _, 1, name @ ..] if name.starts_with(b"ActiveMQ") => Some(OPEN_WIRE),
        text if text.starts_with(b"HTTP/") => Some("HTTP"),
        _ => None,
    }
}

async fn first_frame(wire: &mut Wire<PromptStream>) -> Result<Frame, WireError> {
    loop {
        if let Some(frame) = wire.frame()? {
            return Ok(frame);
        }
        wire.turn(true).await?;
    }
}
