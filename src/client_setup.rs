//! What every client command does first and last: settings, connection, and the end of an operation.

use std::{future::Future, ops::Deref, path::Path, sync::Arc, time::Duration};

use pillarbox_bus::{Bus, BusError};
use pillarbox_client::{
    Client, ClientError, ClientOptions, Concern, Event, EventKind, Journal, JournalError, Outcome,
    Running, Telling, passing_id, process_id,
};
use pillarbox_exchange::ExchangeClient;
use pillarbox_messages::{ComponentId, clock::SystemClock, wording::count};
use pillarbox_settings::{Node, Origin, Repository};
use tokio::time::{Instant, interval, sleep};

use crate::{
    args::operations::ClientArgs,
    connecting::Route,
    data_directory,
    failure::Failure,
    json,
    node::exchange_client,
    output::{in_words, print, print_done, say},
    progress::Progress,
    signals::Stop,
};

/// The settings that a client command works with.
#[derive(Debug)]
pub(crate) struct ClientSetup {
    pub(crate) repository: Arc<Repository>,
    node: Node,
    route: Route,
    client_id: Option<ComponentId>,
    extend_on_progress: bool,
    verbose: bool,
}

/// A connected client.
#[derive(Debug)]
pub(crate) struct Session {
    client: Client,
    bus: Bus,
    stop: Stop,
    verbose: bool,
}

/// How an operation ended. Until [`Followed::told`], or the report of the failure that it is, its end counts as not
/// told: a process that is killed before, or can't tell it, leaves it to the next one of its name.
#[derive(Debug)]
#[must_use = "the operation stays in the journal until its end has been told"]
pub(crate) struct Followed {
    outcome: Outcome,
    telling: Telling,
}

impl Followed {
    /// Its end has been told.
    pub(crate) fn told(self) {
        self.telling.told();
    }

    /// What it has ended with is told by this failure.
    pub(crate) fn failed(self, failure: Failure) -> Failure {
        failure.of(self.telling)
    }
}

impl Deref for Followed {
    type Target = Outcome;

    fn deref(&self) -> &Outcome {
        &self.outcome
    }
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
        let route = Route::elsewhere(&repository, &node).map_err(Failure::usage)?;
        let origin = &node.effective_bus(&repository).origin;
        let route = route.ok_or_else(|| only_embedded(origin))?;
        Ok(Self {
            repository: Arc::new(repository),
            node,
            route,
            client_id,
            extend_on_progress: args.extend_on_progress,
            verbose: args.verbose,
        })
    }

    /// Whether files can be moved at all.
    ///
    /// # Errors
    /// The settings name no exchange.
    pub(crate) fn check_exchange(&self) -> Result<(), Failure> {
        match self.node.exchange_base(&self.repository) {
            Some(_) => Ok(()),
            None => Err(not_started(ClientError::NoExchange)),
        }
    }

    /// What moves files, as the settings allow it.
    ///
    /// # Errors
    /// Settings that can't be used.
    pub(crate) fn exchange(&self) -> Result<ExchangeClient, Failure> {
        exchange_client(&self.repository, &self.node).map_err(Failure::usage)
    }

    /// The name under which this client comes back; none: it passes.
    pub(crate) fn name(&self) -> Option<&ComponentId> {
        let settings = self.node.client.as_ref();
        self.client_id
            .as_ref()
            .or_else(|| settings.and_then(|client| client.id.as_ref()))
    }

    /// Connects to the bus. Nothing may be wrong any more that could have been found before. Tells what a process
    /// of this name has left open.
    ///
    /// # Errors
    /// Another process works under this name; no bus answers, or it refuses this client; interrupted.
    pub(crate) async fn connect(self) -> Result<Session, Failure> {
        let journal = self.journal().await?;
        if let Some(journal) = &journal {
            tell_open(journal);
        }
        self.connect_with(journal).await
    }

    /// The same to go on with what is open.
    ///
    /// # Errors
    /// As [`ClientSetup::connect`].
    pub(crate) async fn connect_to_resume(self) -> Result<Session, Failure> {
        let journal = self.journal().await?;
        self.connect_with(journal).await
    }

    /// Where a client with a name keeps what it begins. Another process that has it lives, or is just dying.
    async fn journal(&self) -> Result<Option<Journal>, Failure> {
        let Some(name) = self.name() else {
            return Ok(None);
        };
        data_directory::make(&self.node.data).map_err(Failure::usage)?;
        let journals = self.node.data.join("client");
        let deadline = Instant::now() + LAST_BREATH;
        loop {
            match Journal::open(&journals, name) {
                Err(JournalError::InUse(_)) if Instant::now() < deadline => {
                    sleep(BETWEEN_LOOKS).await;
                }
                opened => return opened.map(Some).map_err(no_journal),
            }
        }
    }

    async fn connect_with(self, journal: Option<Journal>) -> Result<Session, Failure> {
        let exchange = self.exchange()?;
        let settings = self.node.client.as_ref();
        let reference = self.repository.has_reference_naming();
        let named = self.name().cloned();
        let id = named.clone().unwrap_or_else(|| match reference {
            true => process_id(),
            false => passing_id(),
        });
        let mut stop = Stop::listen()?;
        let written = &self.node.effective_bus(&self.repository).origin;
        let no_bus = |error| no_bus(error, Some(written));
        let bus = tokio::select! {
            bus = self.route.connect_soon(&id, named.is_some()) => bus.map_err(no_bus)?,
            () = stop.asked() => return Err(Failure::interrupted()),
        };
        let client = Client::connect(ClientOptions {
            exchange_base: self.node.exchange_base(&self.repository).map(str::to_owned),
            repository: self.repository,
            bus: bus.clone(),
            exchange,
            id,
            named: named.is_some(),
            journal,
            sla: settings.and_then(|client| client.sla.clone()),
            clock: SystemClock::shared(),
            timeouts: None,
            extend_on_progress: self.extend_on_progress,
            zoneless: settings.map(|it| it.accept_zoneless).unwrap_or_default(),
        })
        .map_err(not_begun)?;
        Ok(Session {
            client,
            bus,
            stop,
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
        Some(next_step) => next_step.to_owned(),
        None if repository.collections_of_pillar(id).next().is_some() => {
            "a pillar has it; choose another".to_owned()
        }
        None => match repository.client_problem(id) {
            Some((cause, next_step)) => format!("{cause}; {next_step}"),
            None => return Ok(()),
        },
    };
    Err(Failure::usage(format!(
        "--client-id '{id}' can't be a client's id; {next_step}"
    )))
}

impl Session {
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    /// Returns when the user wants the command to end.
    pub(crate) async fn stopped(&mut self) {
        self.stop.asked().await;
    }

    /// Whether the user wants to know what happens.
    pub(crate) const fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// Starts an operation and follows it to its end. Ctrl-C cancels it, and what it had offered is taken back; so
    /// does an error of `on_event`.
    ///
    /// # Errors
    /// It could not start; interrupted; what `on_event` said.
    pub(crate) async fn follow(
        &mut self,
        start: impl Future<Output = Result<Running, ClientError>>,
        on_event: impl FnMut(&Event) -> Result<(), Failure>,
    ) -> Result<Followed, Failure> {
        self.drive(Box::pin(start), on_event, None).await
    }

    /// The same for results that are printed as they come, below a heading: an operation that only asks ends when
    /// nobody reads them any more.
    ///
    /// # Errors
    /// As [`Self::follow`]; standard output can't be written, or nobody reads it.
    pub(crate) async fn list(
        &mut self,
        heading: &str,
        start: impl Future<Output = Result<Running, ClientError>>,
        on_event: impl FnMut(&Event) -> Result<(), Failure>,
    ) -> Result<Followed, Failure> {
        print(heading)?;
        self.follow(start, on_event).await
    }

    /// Starts an operation that moves a file and follows it to its end, with a line on a terminal that tells how far
    /// it is; otherwise as [`Self::follow`].
    ///
    /// # Errors
    /// It could not start; interrupted.
    pub(crate) async fn transfer(
        &mut self,
        what: &str,
        start: impl Future<Output = Result<Running, ClientError>>,
    ) -> Result<Followed, Failure> {
        let progress = Progress::start(what);
        let told = |event: &Event| {
            progress.set(event);
            Ok(())
        };
        self.drive(Box::pin(start), told, Some(&progress)).await
    }

    async fn drive(
        &mut self,
        start: impl Future<Output = Result<Running, ClientError>>,
        mut on_event: impl FnMut(&Event) -> Result<(), Failure>,
        progress: Option<&Progress>,
    ) -> Result<Followed, Failure> {
        let mut ticks = interval(TICK);
        let mut running = tokio::select! {
            started = start => started.map_err(not_begun)?,
            () = self.stop.asked() => return Err(Failure::interrupted()),
        };
        let mut interrupted = false;
        let mut handled = Ok(());
        loop {
            tokio::select! {
                event = running.next_event() => {
                    let Some(event) = event else { break };
                    tell(&event, self.verbose);
                    if handled.is_ok() {
                        handled = on_event(&event);
                        if handled.is_err() {
                            running.cancel();
                        }
                    }
                }
                _ = ticks.tick(), if progress.is_some() => {
                    let moved = running.transferred();
                    progress.into_iter().for_each(|progress| progress.moved(moved));
                }
                () = self.stop.asked(), if !interrupted => {
                    interrupted = true;
                    running.cancel();
                }
            }
        }
        let (outcome, telling) = running.outcome_to_tell().await;
        match handled {
            Err(failure) => Err(unheard_or_failed(failure, &outcome).of(telling)),
            Ok(()) if interrupted && !outcome.complete => Err(Failure::interrupted().of(telling)),
            Ok(()) => Ok(Followed { outcome, telling }),
        }
    }

    /// Waits for something that is no operation of the client; Ctrl-C ends it.
    ///
    /// # Errors
    /// Interrupted.
    pub(crate) async fn unless_stopped<T>(
        &mut self,
        work: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        tokio::select! {
            done = work => Ok(done),
            () = self.stop.asked() => Err(Failure::interrupted()),
        }
    }

    /// Takes leave of the bus.
    pub(crate) async fn close(self) {
        self.client.close().await;
        // The command is over; a bus that is gone by now doesn't matter.
        let _ = self.bus.close().await;
    }
}

/// Says what happens to whoever wants to know, and to everybody what is wrong and is said nowhere else.
pub(crate) fn tell(event: &Event, verbose: bool) {
    let grave = matches!(
        event.kind,
        EventKind::Warning {
            concern: Concern::Comparison | Concern::Journal,
            ..
        }
    );
    match (&event.info, event.kind.contributor()) {
        _ if verbose => say(&in_words(&event.to_string())),
        (Some(info), Some(about)) if grave => say(&in_words(&format!("{about}: {info}"))),
        (Some(info), None) if grave => say(&in_words(info)),
        _ => {}
    }
}

/// The end of an operation: its failures for whoever reads JSON, and the failure that it is, if it is one.
///
/// # Errors
/// It has failed; standard output can't be written.
pub(crate) fn conclude(followed: Followed, json: bool) -> Result<Followed, Failure> {
    if json {
        print_done(&json::failures(&followed))?;
    }
    match check(&followed) {
        Ok(()) => Ok(followed),
        Err(failure) => Err(followed.failed(failure)),
    }
}

/// A pillar that had failed before the reader went is told of all the same.
fn unheard_or_failed(failure: Failure, outcome: &Outcome) -> Failure {
    if !failure.is_unheard() || outcome.failures.is_empty() {
        return failure;
    }
    let causes: Vec<String> = outcome.failures.iter().map(ToString::to_string).collect();
    Failure::operation(in_words(&causes.join("; ")))
}

/// The failure that an operation's outcome is, if it is one.
pub(crate) fn check(outcome: &Outcome) -> Result<(), Failure> {
    if outcome.complete {
        return Ok(());
    }
    Err(Failure::operation(in_words(&outcome.last_event)))
}

/// What is wrong with an operation before anything is connected to: it can be put right on the command line.
pub(crate) fn not_started(error: ClientError) -> Failure {
    match error {
        ClientError::ExistingChecksumRequired => {
            Failure::usage(format!("{error}; give it with -C HEX"))
        }
        _ => Failure::usage(error),
    }
}

/// What keeps an operation from starting once the bus is connected to: its file may have gone since it was looked at,
/// or the journal takes no more.
pub(crate) fn not_begun(error: ClientError) -> Failure {
    match error {
        ClientError::Bus(error) => no_bus(error, None),
        _ => Failure::operation(error),
    }
}

/// Tells what an earlier process of this client has left.
fn tell_open(journal: &Journal) {
    let open = journal.left_open();
    if open == 0 {
        return;
    }
    let (operations, client) = (count(open, "operation"), journal.client());
    say(&format!(
        "{operations} of an earlier process of '{client}' not ended yet; run 'pillarbox resume'"
    ));
}

fn no_journal(error: JournalError) -> Failure {
    match error {
        JournalError::InUse(_) => Failure::operation(format!("{error}; {ANOTHER_CLIENT}")),
        _ => Failure::usage(format!(
            "{error}; make it writable, or set another 'data' in node.toml"
        )),
    }
}

const ANOTHER_CLIENT: &str = "wait for its end, or use another --client-id";

/// A bus that no other process gets to.
pub(crate) fn only_embedded(written: &Origin) -> Failure {
    Failure::usage(format!("{written}: {EMBEDDED}"))
}

const EMBEDDED: &str = "the bus 'embedded:' is inside another process; write the stomp:// address that this process \
                        listens on as [bus] url";

/// `written` is where the bus's address stands, if that is known.
pub(crate) fn no_bus(error: BusError, written: Option<&Origin>) -> Failure {
    let place = written.map_or_else(String::new, |origin| format!(" at {origin}"));
    match &error {
        BusError::Unreachable { .. } => {
            Failure::operation(format!("{error}; start it, or correct [bus] url{place}"))
        }
        BusError::OtherProtocol { .. } => {
            Failure::operation(format!("{error}; correct [bus] url{place}"))
        }
        BusError::ClientIdInUse(_) => Failure::operation(format!("{error}; {ANOTHER_CLIENT}")),
        BusError::Refused { .. } => Failure::operation(format!(
            "the bus refuses this client: {error}; if it wants a login, write login and passcode under [bus] in node.toml"
        )),
        _ => Failure::operation(error),
    }
}

/// How long a process may take to be gone that was killed.
const LAST_BREATH: Duration = Duration::from_secs(1);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);
/// How often a terminal is told how far a transfer is.
const TICK: Duration = Duration::from_millis(200);
