//! How a component of this process gets to its bus: the one in this process, or another over STOMP.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use chrono::{SecondsFormat, TimeDelta};
use pillarbox_bus::{Broker, Bus, BusError, BusState, ConnectOptions, Passcode, StompOptions};
use pillarbox_messages::{
    ComponentId,
    clock::{Clock as _, SystemClock},
};
use pillarbox_settings::{BusUrl, Node, Problem, Repository};
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::{
    output::{one_line, say},
    progress::Progress,
};

/// Who connects, and waits for the bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    /// A part of a node: as long as it takes.
    Part,
    /// A command: a while.
    Command,
}

/// What leads to the bus.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    /// The embedded queue manager of this process.
    Here(Broker),
    /// A bus elsewhere.
    There(Box<StompOptions>),
}

impl Route {
    /// The route of a process with these settings to a bus in another process; `None` for `embedded:`.
    ///
    /// # Errors
    /// The bus's address is in a protocol that is not spoken here.
    pub(crate) fn elsewhere(repository: &Repository, node: &Node) -> Result<Option<Self>, Problem> {
        let url = node.effective_bus(repository).to_connect()?;
        let addresses = addresses(url);
        let Some(first) = addresses.first() else {
            return Ok(None);
        };
        let mut options = StompOptions::new(first.as_str());
        options.addresses = addresses;
        set_pauses(&mut options, url);
        options.login.clone_from(&node.bus.login);
        let passcode = node.bus.passcode.as_ref();
        options.passcode = passcode.map(|secret| Passcode::new(secret.reveal()));
        options.virtual_host.clone_from(&node.bus.virtual_host);
        Ok(Some(Self::There(Box::new(options))))
    }

    /// The route of an operator to the bus of these settings; also to the one that their own process serves and calls
    /// `embedded:` itself. `None` if no other process gets to it.
    ///
    /// # Errors
    /// As [`Route::elsewhere`].
    pub(crate) fn to_administer(
        repository: &Repository,
        node: &Node,
    ) -> Result<Option<Self>, Problem> {
        let served = node.bus_server.iter().flat_map(|server| &server.listen);
        let mut served = served.filter(|address| address.port() != 0);
        let served = served.next().map(|address| {
            let address = reachable(*address).to_string();
            Self::There(Box::new(StompOptions::new(address)))
        });
        match Self::elsewhere(repository, node) {
            Ok(elsewhere) => Ok(elsewhere.or(served)),
            // The address that all share may be one for other programs: the own bus is there all the same.
            Err(problem) => served.map_or(Err(problem), |served| Ok(Some(served))),
        }
    }

    /// Connects under this id. Over STOMP the connection comes about in the background.
    pub(crate) fn connect(&self, id: &ComponentId) -> Result<Bus, BusError> {
        let connect = ConnectOptions {
            client_id: id.as_str().to_owned(),
        };
        match self {
            Self::Here(broker) => Bus::embedded(broker, connect),
            Self::There(options) => Ok(Bus::stomp(StompOptions::clone(options), connect)),
        }
    }

    /// How long a command waits for a bus that doesn't answer: so long that each address can be tried.
    pub(crate) fn patience(&self) -> Duration {
        match self {
            Self::Here(_) => Duration::ZERO,
            Self::There(options) => {
                let count = u32::try_from(options.addresses.len()).unwrap_or(u32::MAX);
                options.connect_timeout.saturating_mul(count)
            }
        }
    }

    /// Waits for the bus as long as a command does. Whoever waits is told so soon, and until when.
    ///
    /// # Errors
    /// It does not answer in time, or refuses the component.
    async fn ready(&self, bus: &Bus) -> Result<(), BusError> {
        let patience = self.patience();
        let deadline = Instant::now() + patience;
        let Err(error) = bus.ready(patience.min(FIRST_NOTICE)).await else {
            return Ok(());
        };
        let rest = deadline.saturating_duration_since(Instant::now());
        if is_final(bus) || self.is_hopeless(&error) || rest.is_zero() {
            return Err(error);
        }
        let until = SystemClock.now() + TimeDelta::from_std(rest).unwrap_or_default();
        say(&one_line(format!(
            "waiting for the bus until {}: {error}",
            until.to_rfc3339_opts(SecondsFormat::Secs, true)
        )));
        bus.ready(rest).await
    }

    /// Whether it would be in vain for a command to wait: the only address is not the bus's.
    fn is_hopeless(&self, error: &BusError) -> bool {
        let Self::There(options) = self else {
            return false;
        };
        options.addresses.len() == 1 && matches!(error, BusError::OtherProtocol { .. })
    }

    /// Connects and waits for the bus as long as it takes.
    ///
    /// # Errors
    /// If the bus refuses the component for good.
    pub(crate) async fn connect_patiently(&self, id: &ComponentId) -> Result<Bus, BusError> {
        let patience = self.former_connection();
        self.patient().connect_again(id, Who::Part, patience).await
    }

    /// Connects as a command does: waits for the bus for a while, and for an id that another process has or had, if
    /// it is a `name`, which others may have.
    ///
    /// # Errors
    /// The bus does not answer in time, or refuses the component.
    pub(crate) async fn connect_soon(
        &self,
        id: &ComponentId,
        is_name: bool,
    ) -> Result<Bus, BusError> {
        let patience = if is_name {
            FORMER_COMMAND
        } else {
            Duration::ZERO
        };
        self.connect_again(id, Who::Command, patience).await
    }

    /// The same for whoever waits for a bus that does not let him in.
    fn patient(&self) -> Self {
        let mut patient = self.clone();
        if let Self::There(options) = &mut patient {
            options.refused_pause = Some(REFUSED_PAUSE);
        }
        patient
    }

    /// How long the id of a process that was killed may still be held: until the bus has noticed that its connection is
    /// dead. Its host tells that at once, unless it has died too; then it is the heart-beats that don't come any more.
    fn former_connection(&self) -> Duration {
        match self {
            Self::Here(_) => NOTICED_AT_ONCE,
            Self::There(options) => NOTICED_AT_ONCE + options.heart_beat * MISSED_HEART_BEATS,
        }
    }

    /// The id may still be held by the connection of a process that was killed, until the bus has noticed its end:
    /// for so long it is asked for again.
    async fn connect_again(
        &self,
        id: &ComponentId,
        who: Who,
        patience: Duration,
    ) -> Result<Bus, BusError> {
        let deadline = Instant::now() + patience;
        let mut pause = FIRST_PAUSE;
        let mut _progress = None;
        loop {
            let bus = self.connect(id)?;
            let ready = match who {
                Who::Part => wait_patiently(&bus, id, NOTICE_INTERVAL).await,
                Who::Command => self.ready(&bus).await,
            };
            let left = deadline.saturating_duration_since(Instant::now());
            match ready {
                Ok(()) => return Ok(bus),
                Err(BusError::ClientIdInUse(_)) if !left.is_zero() => {
                    if pause == FIRST_PAUSE {
                        warn!(
                            component = id.as_str(),
                            patience = ?patience,
                            "another process is connected under this id, or was just now; asking again"
                        );
                    }
                    if who == Who::Command {
                        let text = format!("'{id}' is in use, or was just now; asking again");
                        _progress.get_or_insert_with(|| Progress::start(&text));
                    }
                    sleep(pause.min(left)).await;
                    pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Waits until the bus has let the component in, whatever it says meanwhile, unless that is for good.
async fn wait_patiently(bus: &Bus, id: &ComponentId, notice: Duration) -> Result<(), BusError> {
    let mut patience = notice.min(FIRST_NOTICE);
    while let Err(error) = bus.ready(patience).await {
        patience = notice;
        if is_final(bus) {
            return Err(error);
        }
        info!(component = id.as_str(), %error, "waiting for the bus");
    }
    Ok(())
}

/// Whether waiting makes it no better.
fn is_final(bus: &Bus) -> bool {
    matches!(
        *bus.state().borrow(),
        BusState::Failed(_) | BusState::Closed
    )
}

/// As the address sets them. The one that it leaves to us gives way.
fn set_pauses(options: &mut StompOptions, url: &BusUrl) {
    let longest = url.longest_pause();
    let shortest = longest.map_or(options.shortest_pause, |it| options.shortest_pause.min(it));
    options.shortest_pause = url.shortest_pause().unwrap_or(shortest);
    let longest = longest.unwrap_or(options.longest_pause);
    options.longest_pause = longest.max(options.shortest_pause);
}

/// Where this machine gets to a server that listens there.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    address
}

fn addresses(url: &BusUrl) -> Vec<String> {
    match url {
        BusUrl::Embedded | BusUrl::Foreign(_) => Vec::new(),
        BusUrl::Stomp { host, port, .. } if host.contains(':') => vec![format!("[{host}]:{port}")],
        BusUrl::Stomp { host, port, .. } => vec![format!("{host}:{port}")],
        BusUrl::Failover { urls, .. } => urls.iter().flat_map(addresses).collect(),
    }
}

/// How long the bus may take to notice that a process has ended, when its host tells it.
const NOTICED_AT_ONCE: Duration = Duration::from_secs(5);
/// After how many heart-beats that don't come a broker gives a connection up.
const MISSED_HEART_BEATS: u32 = 3;
/// The longest pause before a node asks a bus again that has refused to let it in; at least half of it is made.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);
/// How long a person waits for it: whoever takes up what a killed command has left should not have to ask again.
const FORMER_COMMAND: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// When a person is first told that a bus does not answer.
const FIRST_NOTICE: Duration = Duration::from_secs(1);
/// How often a person is told that the bus is still away.
const NOTICE_INTERVAL: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::{
        io::{BufRead as _, BufReader, Write as _},
        net::TcpListener,
        thread,
    };

    use super::*;

    /// A bus that says these frames, one per connection, and the last one ever after.
    fn bus_that_says(frames: &'static [&'static str]) -> StompOptions {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut options = StompOptions::new(listener.local_addr().unwrap().to_string());
        options.shortest_pause = Duration::from_millis(10);
        options.longest_pause = Duration::from_millis(10);
        thread::spawn(move || {
            let last = frames.last().into_iter().cycle();
            let mut open = Vec::new();
            for (frame, stream) in frames.iter().chain(last).zip(listener.incoming()) {
                let mut stream = stream.unwrap();
                let mut connect = Vec::new();
                BufReader::new(&stream).read_until(0, &mut connect).unwrap();
                stream.write_all(frame.as_bytes()).unwrap();
                if frame.starts_with("CONNECTED") {
                    open.push(stream);
                }
            }
        });
        options
    }

    /// As RabbitMQ says it.
    const REFUSED: &str = "ERROR\nmessage:Bad CONNECT\n\nAccess refused for user 'kim'\n\0";
    const IN_USE: &str = "ERROR\nmessage:CLIENT-ID-IN-USE\n\n\0";

    async fn waited(options: StompOptions) -> Result<(), BusError> {
        let id = ComponentId::from("north");
        let route = Route::There(Box::new(options)).patient();
        let bus = route.connect(&id).unwrap();
        // Short, so that each refusal is seen.
        wait_patiently(&bus, &id, Duration::from_millis(1)).await
    }

    #[tokio::test]
    async fn a_bus_that_is_full_or_slow_for_now_is_waited_for() {
        let options = bus_that_says(&[
            "ERROR\nmessage:LIMIT\n\ntoo many connections\0",
            "ERROR\nmessage:TIMEOUT\n\nno CONNECT in time\0",
            "ERROR\nmessage:SPACE-FAILED\n\ndisk\0",
            "nonsense\n",
            "CONNECTED\nversion:1.2\n\n\0",
        ]);
        waited(options).await.unwrap();
    }

    #[tokio::test]
    async fn a_bus_that_refuses_for_good_is_not_waited_for() {
        let options = bus_that_says(&[IN_USE]);
        let in_use = BusError::ClientIdInUse("north".to_owned());
        assert_eq!(waited(options).await, Err(in_use));
    }

    #[test]
    fn a_dead_peer_may_be_noticed_by_its_heart_beats_only() {
        let mut options = StompOptions::new("a:1");
        for heart_beat in [10, 30].map(Duration::from_secs) {
            options.heart_beat = heart_beat;
            let route = Route::There(Box::new(options.clone()));
            assert!(route.former_connection() > heart_beat * 3);
        }
    }

    /// So that nobody waits for what does not come, nor a broker locks out whoever asks too often.
    #[tokio::test]
    async fn a_refused_login_ends_a_command_and_is_repeated_seldom_by_a_node() {
        let options = bus_that_says(&[REFUSED]);
        let id = ComponentId::from("north");
        let route = Route::There(Box::new(options));
        let bus = route.connect(&id).unwrap();
        let error = route.ready(&bus).await.unwrap_err();
        assert_eq!(error.name(), "Bad CONNECT", "{error}");
        assert!(is_final(&bus));
        let bus = route.patient().connect(&id).unwrap();
        let error = bus.ready(Duration::from_secs(1)).await.unwrap_err();
        assert_eq!(error.name(), "Bad CONNECT", "{error}");
        assert!(!is_final(&bus));
    }

    #[tokio::test]
    async fn an_id_that_a_killed_process_held_is_asked_for_again_for_a_while() {
        let id = ComponentId::from("north");
        for who in [Who::Part, Who::Command] {
            let options = bus_that_says(&[IN_USE, IN_USE, "CONNECTED\nversion:1.2\n\n\0"]);
            let again = Route::There(Box::new(options))
                .connect_again(&id, who, NOTICED_AT_ONCE)
                .await;
            assert!(again.is_ok(), "{who:?}: {again:?}");
        }

        let options = bus_that_says(&[IN_USE]);
        for patience in [Duration::ZERO, Duration::from_millis(300)] {
            let begun = Instant::now();
            let again = Route::There(Box::new(options.clone()))
                .connect_again(&id, Who::Command, patience)
                .await;
            assert_eq!(
                again.unwrap_err(),
                BusError::ClientIdInUse("north".to_owned())
            );
            assert!(begun.elapsed() >= patience);
        }
    }

    #[test]
    fn the_pauses_of_an_address_count_and_never_contradict_each_other() {
        for (written, shortest, longest) in [
            ("", 100, 2_000),
            ("?maxReconnectDelay=5000", 100, 5_000),
            ("?maxReconnectDelay=7", 7, 7),
            ("?initialReconnectDelay=5", 5, 2_000),
            ("?initialReconnectDelay=20000", 20_000, 20_000),
            ("?initialReconnectDelay=9&maxReconnectDelay=3", 9, 9),
        ] {
            let mut options = StompOptions::new("a:1");
            let url = format!("failover:(stomp://a:1){written}");
            set_pauses(&mut options, &url.parse().unwrap());
            let pauses = [options.shortest_pause, options.longest_pause];
            assert_eq!(
                pauses,
                [shortest, longest].map(Duration::from_millis),
                "{url}"
            );
        }
    }

    #[test]
    fn addresses_of_urls() {
        let of = |text: &str| addresses(&text.parse::<BusUrl>().unwrap());
        assert!(of("embedded:").is_empty());
        assert_eq!(of("stomp://bus:1234"), ["bus:1234"]);
        assert_eq!(of("stomp://[::1]:1234"), ["[::1]:1234"]);
        assert_eq!(of("failover:(stomp://a:1,stomp://b:2)"), ["a:1", "b:2"]);
    }
}
