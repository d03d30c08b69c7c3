//! Opening one connection: TCP, CONNECT, CONNECTED.

use std::io;

use tokio::{
    net::TcpStream,
    time::{Instant, timeout_at},
};

use super::{Passcode, StompOptions, decode, dialect::Dialect, prompt::PromptStream};
use crate::{
    error::BusError,
    stomp::{
        codec::{FrameLimits, StompCodec},
        frame::{Frame, StompCommand},
        heart_beat::HeartBeat,
        wire::{StallLimits, Wire, WireError, prepare},
    },
};

/// A session with a broker.
#[derive(Debug)]
pub(super) struct Dialled {
    pub(super) wire: Wire<PromptStream>,
    pub(super) dialect: &'static Dialect,
}

/// Connects to `address` and opens a session.
///
/// # Errors
/// [`BusError::Unreachable`] with the address, or what the bus says against it.
pub(super) async fn dial(
    options: &StompOptions,
    address: &str,
    client_id: &str,
) -> Result<Dialled, BusError> {
    let deadline = Instant::now() + options.connect_timeout;
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
    let answer = first_frame(&mut wire).await.map_err(|error| {
        unreachable(match error {
            WireError::Deadline => "it does not answer in time".to_owned(),
            error => error.to_string(),
        })
    })?;
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
    Ok(Dialled { wire, dialect })
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

async fn first_frame(wire: &mut Wire<PromptStream>) -> Result<Frame, WireError> {
    loop {
        if let Some(frame) = wire.frame()? {
            return Ok(frame);
        }
        wire.turn(true).await?;
    }
}
