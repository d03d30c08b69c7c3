//! What every client command does first and last: settings, connection, and the end of an operation.

use std::{path::Path, sync::Arc, time::Duration};

use pillarbox_bus::{Bus, BusError};
use pillarbox_client::{Client, ClientError, ClientOptions, Event, Outcome, Running, passing_id};
use pillarbox_messages::{CollectionId, ComponentId, clock::SystemClock};
use pillarbox_settings::{Node, Repository};

use crate::{
    args::ClientArgs, connecting::Route, failure::Failure, node::exchange_client, signals::Stop,
};

/// The settings that a client command works with.
#[derive(Debug)]
pub(crate) struct ClientSetup {
    pub(crate) repository: Arc<Repository>,
    node: Node,
    client_id: Option<ComponentId>,
    verbose: bool,
}

/// A connected client.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    bus: Bus,
    verbose: bool,
}

impl ClientSetup {
    /// Loads the settings and tells what the user should know about them.
    ///
    /// # Errors
    /// Settings that are wrong.
    pub(crate) fn load(args: &ClientArgs) -> Result<Self, Failure> {
        if args.key.is_some() {
            say("-k is not needed: messages are not signed yet");
        }
        let (repository, node) = load_settings(&args.settings)?;
        let client_id = args.client_id.as_deref().map(ComponentId::from);
        if let Some(id) = &client_id {
            check_client_id(id, &repository)?;
        }
        Ok(Self {
            repository: Arc::new(repository),
            node,
            client_id,
            verbose: args.verbose,
        })
    }

    /// The collection of the command line.
    pub(crate) fn collection(args: &ClientArgs) -> CollectionId {
        CollectionId::from(args.collection.as_str())
    }

    /// Connects to the bus. Nothing may be wrong any more that could have been found before.
    ///
    /// # Errors
    /// No bus answers, or it refuses this client.
    pub(crate) async fn connect(self) -> Result<Session, Failure> {
        let url = self.node.effective_bus_url(&self.repository);
        let Some(route) = Route::elsewhere(url) else {
            return Err(Failure::usage(
                "the bus 'embedded:' is inside another process; set [bus] url in repository.toml to the stomp:// \
                 address that this process listens on",
            ));
        };
        let exchange = exchange_client(&self.repository, &self.node).map_err(Failure::usage)?;
        let settings = self.node.client.as_ref();
        let named = self
            .client_id
            .or_else(|| settings.and_then(|client| client.id.clone()));
        let id = named.clone().unwrap_or_else(passing_id);
        let bus = route.connect(&id).map_err(no_bus)?;
        bus.ready(BUS_PATIENCE).await.map_err(no_bus)?;
        let client = Client::connect(ClientOptions {
            exchange_base: self.node.exchange_base(&self.repository).map(str::to_owned),
            repository: self.repository,
            bus: bus.clone(),
            exchange,
            id,
            named: named.is_some(),
            sla: settings.and_then(|client| client.sla.clone()),
            clock: SystemClock::shared(),
            timeouts: None,
        })
        .map_err(not_started)?;
        Ok(Session {
            client,
            bus,
            verbose: self.verbose,
        })
    }
}

/// Settings of a directory; what should be known about them goes to standard error.
///
/// # Errors
/// Settings that are wrong.
pub(crate) fn load_settings(directory: &Path) -> Result<(Repository, Node), Failure> {
    let (repository, node) =
        pillarbox_settings::load(directory).map_err(|error| Failure::settings(error.problems()))?;
    for warning in &repository.warnings {
        say(warning);
    }
    Ok((repository, node))
}

/// An id given on the command line is held to what one in node.toml is held to.
fn check_client_id(id: &ComponentId, repository: &Repository) -> Result<(), Failure> {
    let next_step = match pillarbox_settings::naming::id_problem(id.as_str()) {
        Some(next_step) => next_step,
        None if repository.collections_of_pillar(id).next().is_some() => {
            "a pillar has it; choose another"
        }
        None => return Ok(()),
    };
    Err(Failure::usage(format!(
        "--client-id '{id}' can't be a client's id; {next_step}"
    )))
}

impl Session {
    pub(crate) const fn client(&self) -> &Client {
        &self.client
    }

    /// Follows an operation to its end. Ctrl-C cancels it, and what it had offered is taken back.
    ///
    /// # Errors
    /// Interrupted.
    pub(crate) async fn follow(
        &self,
        mut running: Running,
        mut on_event: impl FnMut(&Event),
    ) -> Result<Outcome, Failure> {
        let mut stop = Stop::listen()?;
        let mut interrupted = false;
        loop {
            tokio::select! {
                event = running.next_event() => {
                    let Some(event) = event else { break };
                    if self.verbose {
                        say(&one_line(&event.to_string()));
                    }
                    on_event(&event);
                }
                () = stop.asked(), if !interrupted => {
                    interrupted = true;
                    running.cancel();
                }
            }
        }
        let outcome = running.outcome().await;
        if interrupted && !outcome.complete {
            Err(Failure::interrupted())
        } else {
            Ok(outcome)
        }
    }

    /// Takes leave of the bus.
    pub(crate) async fn close(self) {
        self.client.close().await;
        // The command is over; a bus that is gone by now doesn't matter.
        let _ = self.bus.close().await;
    }
}

/// The failure that an operation's outcome is, if it is one.
pub(crate) fn check(outcome: &Outcome) -> Result<(), Failure> {
    if outcome.complete {
        return Ok(());
    }
    Err(Failure::operation(one_line(&outcome.last_event)))
}

/// An operation that could not start: most of it can be put right on the command line.
pub(crate) fn not_started(error: ClientError) -> Failure {
    match error {
        ClientError::Bus(error) => no_bus(error),
        ClientError::Busy(_) | ClientError::Closed => Failure::operation(error),
        _ => Failure::usage(error),
    }
}

fn no_bus(error: BusError) -> Failure {
    let remedy = match &error {
        BusError::Unreachable { .. } => "; start it, or correct [bus] url in repository.toml",
        BusError::ClientIdInUse(_) => "; wait for its end, or use another --client-id",
        _ => "",
    };
    Failure::operation(format!("{error}{remedy}"))
}

/// Whatever a peer wrote into a text, it stays on one line.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Tells the person something that is no result.
#[expect(clippy::print_stderr, reason = "the command line talks to people")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// Writes a result; a reader that has gone away ends it.
///
/// # Errors
/// Standard output can't be written.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write as _;
    let mut output = std::io::stdout().lock();
    output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
        .map_err(|error| Failure::operation(format!("standard output: {error}")))
}

/// How long a command waits for a bus that doesn't answer.
const BUS_PATIENCE: Duration = Duration::from_secs(10);
