//! The task of one connection: between its socket and the queue manager.

use std::{future::Future, net::SocketAddr, pin::Pin, time::Duration};

use futures_util::FutureExt;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, timeout},
};

use super::{
    Context,
    hello::{Hello, VERSION},
    refusal::Refusal,
    session::{Flow, Session},
};
use crate::{
    embedded::connection::{Command, CommandSender, Event, EventReceiver},
    error::BusError,
    stomp::{
        codec::{FrameLimits, StompCodec},
        frame::{ADMINISTRATION, Frame, FrameWriter, StompCommand},
        heart_beat::HeartBeat,
        wire::{HIGH_WATER, StallLimits, Wire, WireError},
    },
};

/// How many frames are handed on at once.
const MAX_BATCH: usize = 1024;

/// How long a client may take to read what is left for it when the server stops.
const STOP_LINGER: Duration = Duration::from_millis(500);

/// How a connection ends.
enum End {
    /// In order.
    Disconnected,
    /// With an ERROR frame.
    Refused(Refusal),
    /// The peer is gone, or as good as gone.
    Lost(WireError),
    /// The server stops.
    Stopping,
}

/// Commands on their way to the queue manager.
type Submitting = Pin<Box<dyn Future<Output = Result<(), BusError>> + Send>>;

/// Serves one connection to its end.
pub(super) async fn serve<S>(stream: S, peer: SocketAddr, context: &Context)
where
    S: AsyncRead + AsyncWrite + Send,
{
    let limits = &context.limits;
    let stalls = StallLimits {
        read: limits.read_stall,
        write: limits.write_stall,
    };
    let mut wire = Wire::new(
        stream,
        StompCodec::new(FrameLimits::before_connect()),
        stalls,
    );
    wire.set_deadline(Some(Instant::now() + limits.connect_deadline));
    let end = match open(&mut wire, context).await {
        Ok((client, session, commands, events)) => {
            tracing::info!(%peer, client, "bus client connected");
            let end = run(&mut wire, session, commands, events, context).await;
            tracing::info!(%peer, client, "bus client gone");
            end
        }
        Err(end) => end,
    };
    finish(wire, end, peer, context).await;
}

/// From the first byte to CONNECTED.
async fn open<S>(
    wire: &mut Wire<S>,
    context: &Context,
) -> Result<(String, Session, CommandSender, EventReceiver), End>
where
    S: AsyncRead + AsyncWrite,
{
    let frame = first_frame(wire, context).await?;
    let hello = Hello::read(&frame).map_err(End::Refused)?;
    let connection = context
        .connect(hello.client_id.as_deref())
        .map_err(|error| End::Refused(Refusal::from(error).answering(&frame)))?;
    let limits = &context.limits;
    let ours = HeartBeat::every(limits.heart_beat);
    let mut connected = FrameWriter::new(&mut wire.output, StompCommand::Connected);
    connected
        .plain("version", VERSION)
        .plain("heart-beat", ours)
        .plain("server", concat!("Pillarbox/", env!("CARGO_PKG_VERSION")))
        .plain("session", connection.id().0)
        .plain(ADMINISTRATION, true);
    connected.finish(b"");
    wire.set_deadline(None);
    wire.open(limits.frame, ours.agree(hello.heart_beat));
    let has_client_id = hello.client_id.is_some();
    let (commands, events) = connection.split();
    let own = commands.clone();
    let session = Session::new(limits.clone(), has_client_id, move |name| {
        own.temporary_queue(name)
    });
    Ok((
        hello.client_id.unwrap_or_default(),
        session,
        commands,
        events,
    ))
}

async fn first_frame<S>(wire: &mut Wire<S>, context: &Context) -> Result<Frame, End>
where
    S: AsyncRead + AsyncWrite,
{
    loop {
        if let Some(frame) = wire.frame().map_err(|error| End::Refused(error.into()))? {
            return Ok(frame);
        }
        tokio::select! {
            turn = wire.turn(true) => turn.map_err(|error| match error {
                WireError::Deadline => End::Refused(Refusal::new("TIMEOUT", "no CONNECT in time")),
                error => End::Lost(error),
            })?,
            () = context.stopping.cancelled() => return Err(End::Stopping),
        }
    }
}

async fn run<S>(
    wire: &mut Wire<S>,
    mut session: Session,
    commands: CommandSender,
    mut events: EventReceiver,
    context: &Context,
) -> End
where
    S: AsyncRead + AsyncWrite,
{
    let mut submitting: Option<Submitting> = None;
    loop {
        if submitting.is_none() {
            let mut batch = Vec::new();
            let taken = take_frames(wire, &mut session, context.now_ms(), &mut batch);
            if let Err(refusal) = taken {
                // What came before the bad frame still counts.
                let _ = commands.submit_all(batch).await;
                return End::Refused(refusal);
            }
            if !batch.is_empty() {
                submitting = Some(submit(&commands, batch));
            }
        }
        let reading = submitting.is_none() && session.has_room();
        tokio::select! {
            biased;
            () = context.stopping.cancelled() => {
                give_back(&commands, &mut events, &mut session, wire).await;
                return End::Stopping;
            }
            submitted = settled(&mut submitting), if submitting.is_some() => {
                submitting = None;
                if submitted.is_err() {
                    // Its reason comes as an event, if it comes at all.
                    return last_words(&mut session, &mut events, wire).await;
                }
            }
            event = events.next_event(), if wire.output.len() < HIGH_WATER => {
                let mut next = event;
                loop {
                    let Some(event) = next else { return End::Refused(BusError::Closed.into()) };
                    match session.on_event(event, &mut wire.output) {
                        Ok(Flow::Continue) => {}
                        Ok(Flow::Disconnected) => return End::Disconnected,
                        Err(refusal) => {
                            if refusal.is_for_lack_of_room() {
                                give_back(&commands, &mut events, &mut session, wire).await;
                            }
                            return End::Refused(refusal);
                        }
                    }
                    if wire.output.len() >= HIGH_WATER {
                        break;
                    }
                    match events.next_event().now_or_never() {
                        Some(event) => next = event,
                        None => break,
                    }
                }
            }
            turn = wire.turn(reading) => match turn {
                Ok(()) => {}
                Err(error) => return End::Lost(error),
            },
        }
    }
}

/// Makes commands of the frames that have been read.
fn take_frames<S>(
    wire: &mut Wire<S>,
    session: &mut Session,
    now_ms: i64,
    batch: &mut Vec<Command>,
) -> Result<(), Refusal>
where
    S: AsyncRead + AsyncWrite,
{
    while batch.len() < MAX_BATCH && session.has_room() {
        let Some(frame) = wire.frame()? else {
            return Ok(());
        };
        session.on_frame(frame, now_ms, batch)?;
    }
    Ok(())
}

fn submit(commands: &CommandSender, batch: Vec<Command>) -> Submitting {
    let commands = commands.clone();
    Box::pin(async move { commands.submit_all(batch).await })
}

async fn settled(submitting: &mut Option<Submitting>) -> Result<(), BusError> {
    match submitting {
        Some(submitting) => submitting.await,
        None => Ok(()),
    }
}

/// The queue manager takes nothing more: why?
async fn last_words<S>(session: &mut Session, events: &mut EventReceiver, wire: &mut Wire<S>) -> End
where
    S: AsyncRead + AsyncWrite,
{
    while let Some(event) = events.next_event().await {
        match session.on_event(event, &mut wire.output) {
            Ok(Flow::Continue) => {}
            Ok(Flow::Disconnected) => return End::Disconnected,
            Err(refusal) => return End::Refused(refusal),
        }
    }
    End::Refused(BusError::Closed.into())
}

/// Gives everything in hand back, uncounted, because it is not the client's fault. What is done by then is
/// confirmed: the client would do it again otherwise.
async fn give_back<S>(
    commands: &CommandSender,
    events: &mut EventReceiver,
    session: &mut Session,
    wire: &mut Wire<S>,
) where
    S: AsyncRead + AsyncWrite,
{
    const LONGEST: Duration = Duration::from_secs(1);
    let ended = async {
        commands.submit(Command::Disconnect { token: 0 }).await?;
        while let Some(event) = events.next_event().await {
            if matches!(event, Event::Done { .. }) {
                // Whatever comes of it, the connection ends here.
                let _ = session.on_event(event, &mut wire.output);
            }
        }
        Ok::<_, BusError>(())
    };
    // If the queue manager is gone, so is everything in hand.
    let _ = timeout(LONGEST, ended).await;
}

/// The queue manager has let go of the client by now; what remains is to tell it.
async fn finish<S>(mut wire: Wire<S>, end: End, peer: SocketAddr, context: &Context)
where
    S: AsyncRead + AsyncWrite,
{
    let limits = &context.limits;
    match end {
        End::Disconnected => wire.linger(limits.linger).await,
        End::Refused(refusal) => {
            tracing::warn!(%peer, error = refusal.name, detail = refusal.detail, "bus client refused");
            refusal.write(&mut wire.output, VERSION);
            wire.linger(limits.linger).await;
        }
        End::Lost(WireError::Closed | WireError::Io(_)) => {
            tracing::debug!(%peer, "bus client closed its connection");
        }
        End::Lost(WireError::WriteStalled(_)) => {
            tracing::warn!(%peer, error = "SLOW-CONSUMER", "bus client reads nothing");
        }
        End::Lost(error) => tracing::warn!(%peer, %error, "bus client given up"),
        End::Stopping => {
            tracing::debug!(%peer, "bus client disconnected: the server stops");
            wire.linger(limits.linger.min(STOP_LINGER)).await;
        }
    }
}
