use std::{net::SocketAddr, num::NonZeroU64};

use super::*;
use crate::{
    AlarmLevel, BackgroundWork, BusUrl, ChecksumDownload, Jump, LanePoison, Pace, QueueCriterion,
    QueueHash, QueueLanes, QueueNode, QueueOrder, Secret, ZonelessDates, environment::Environment,
    problem::SettingsError,
};

/// A small process; the tests spoil one line at a time.
const GOOD: &str = r#"data = "var"
[[pillars]]
id = "north"
directories = ["archive"]
#pillar
[bus_server]
listen = ["127.0.0.1:0"]
[exchange_server]
listen = "127.0.0.1:0"
public_url = "http://h:1/"
#server
[client]
id = "c"
#client
[alarms]
id = "watch"
"#;

const REPOSITORY: &str = r#"
[repository]
name = "R"
[bus]
url = "embedded:"
[exchange]
url = "http://files.example.org/"
[[collections]]
id = "books"
pillars = ["north", "south"]
[[collections.slas]]
id = "gold"
clients = ["c"]
min_copies = 2
max_checksum_age = "30d"
[[collections.slas]]
id = "south-only"
pillars = ["south"]
"#;

fn repository() -> Repository {
    Repository::from_toml_str(REPOSITORY, "repository.toml").unwrap()
}

fn load(text: &str) -> Result<Node, SettingsError> {
    Node::from_toml_str(text, "settings/node.toml")
}

/// What is said when this part of the good text is replaced, by the file alone or against the repository.
fn said(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    let checked = load(&GOOD.replacen(from, to, 1))
        .and_then(|node| node.check_against(&repository()).map(|_| ()));
    checked
        .err()
        .map_or_else(|| "fine".to_owned(), |error| error.to_string())
}

fn with_environment(variables: &[(&str, &str)]) -> Result<Node, SettingsError> {
    let variables = variables
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    Node::read(GOOD, "settings/node.toml", &Environment::of(variables))
}

#[test]
fn a_client_has_a_name_that_fits_into_its_destinations() {
    let id = |length| format!("id = \"{}\"", "c".repeat(length));
    let long = |text: &str| text.replacen("\"books\"", &format!("\"{}\"", "b".repeat(50)), 1);
    let repository = Repository::from_toml_str(&long(REPOSITORY), "repository.toml").unwrap();
    let said = |length| {
        let node = load(&GOOD.replacen("id = \"c\"", &id(length), 1)).unwrap();
        node.check_against(&repository)
            .map_err(|error| error.to_string())
    };
    assert!(said(197).is_ok());
    let line = said(198).unwrap_err();
    assert!(line.starts_with("settings/node.toml:13: "), "{line}");
    assert!(
        line.contains("256 bytes, of which a bus takes 255; shorten"),
        "{line}"
    );
}

#[test]
fn one_line_for_each_mistake() {
    assert_eq!(said("data", "data"), "fine");
    for (from, to, lines) in include!("tests/lines.rs") {
        assert_eq!(said(from, to), lines, "{from} -> {to}");
    }
}

#[test]
fn whatever_is_left_out_has_its_default() {
    let node = load("[[pillars]]\nid = \"n\"\ndirectories = [\"a\", \"/b\"]\n[client]\n").unwrap();
    assert_eq!(node.data, Path::new("settings/var"));
    assert_eq!(node.client, Some(ClientNode::default()));
    assert_eq!(node.exchange, ExchangePolicy::default());
    assert!(node.bus_server.is_none() && node.exchange_server.is_none() && node.alarms.is_none());
    let pillar = &node.pillars[0];
    assert_eq!(pillar.pillar_type, PillarType::File);
    assert_eq!(
        pillar.directories,
        [Path::new("settings/a"), Path::new("/b")]
    );
    assert_eq!(pillar.minimum_size_left, 1 << 30);
    assert_eq!(pillar.time_to_start_deliver, Duration::from_secs(1));
    assert_eq!(
        pillar.max_age_for_checksums,
        Duration::from_secs(60 * 86_400)
    );
    assert_eq!(pillar.alarm_level, AlarmLevel::Error);
    assert_eq!((pillar.sla.len(), pillar.first_audit_number), (0, None));
    let hours = |hours: u64| Duration::from_secs(hours * 3_600);
    assert_eq!(pillar.recheck.pace.to_string(), "20971520 B/s");
    assert_eq!(pillar.recheck.interval, hours(1));
    assert_eq!(pillar.reconcile.pace.to_string(), "104857600 B/s");
    assert_eq!(pillar.reconcile.interval, hours(7 * 24));
    assert_eq!(pillar.retain_for, None);
    assert_eq!(pillar.purge.pace.to_string(), "104857600 B/s");
    assert_eq!(pillar.purge.interval, hours(24));
    assert!(node.plays_a_role());
    assert!(!load("").unwrap().plays_a_role());
}

fn check_queues(queues: &[QueueNode]) {
    let orders = QueueNode {
        name: "orders".to_owned(),
        order: Some(QueueOrder {
            criteria: vec![QueueCriterion::Expiration, QueueCriterion::Priority],
            latest_first: true,
        }),
        lanes: Some(QueueLanes::Hashed(4)),
        lane_hash: Some(QueueHash::JavaString),
        require_key: Some(true),
        backout_limit: Some(0),
        backout_queue: Some("orders.backout".to_owned()),
        on_lane_poison: Some(LanePoison::Park),
        retry_delay: Some(Duration::from_secs(2)),
        retry_delay_max: Some(Duration::from_secs(120)),
        out_of_order: None,
        expiry_queue: Some("~error".to_owned()),
        drain: true,
    };
    let plain = QueueNode {
        name: "plain".to_owned(),
        out_of_order: Some(vec![Jump::Top, Jump::MessageId]),
        ..QueueNode::default()
    };
    assert_eq!(queues, [orders, plain]);
}

#[test]
fn everything_set_is_read() {
    let node = load(include_str!("../../../testdata/node-full.toml")).unwrap();
    assert_eq!(node.data, Path::new("/var/lib/pillarbox"));
    assert_eq!(
        node.bus.address.unwrap().url.to_string(),
        "stomp://127.0.0.1:7"
    );
    assert_eq!(node.bus.login.as_deref(), Some("kim"));
    assert_eq!(node.bus.passcode, Some(Secret::new("sesame")));
    assert_eq!(node.bus.virtual_host.as_deref(), Some("/archive"));
    let [north, sums] = &node.pillars[..] else {
        panic!("{:?}", node.pillars)
    };
    assert_eq!(
        north.directories,
        [Path::new("settings/archive/1"), Path::new("/archive/2")]
    );
    assert_eq!(north.minimum_size_left, 9_223_372_036_854_775_807);
    assert_eq!(north.time_to_start_deliver, Duration::from_millis(500));
    assert_eq!(north.alarm_level, AlarmLevel::Warning);
    let work = |pace, seconds| BackgroundWork {
        pace: Pace(pace),
        interval: Duration::from_secs(seconds),
    };
    assert_eq!(north.recheck, work(NonZeroU64::new(3_000_000), 600));
    assert_eq!(north.reconcile, work(None, 86_400));
    assert_eq!(north.retain_for, Some(Duration::from_secs(90 * 86_400)));
    assert_eq!(north.purge, work(NonZeroU64::new(2_000_000), 12 * 3_600));
    assert_eq!(north.accept_zoneless, ZonelessDates::Utc);
    assert_eq!(sums.accept_zoneless, ZonelessDates::Refuse);
    assert_eq!(node.alarms.unwrap().accept_zoneless, ZonelessDates::Local);
    assert_eq!(
        (north.sla.as_slice(), north.first_audit_number),
        (&["gold".to_owned()][..], NonZeroU64::new(7))
    );
    assert_eq!(
        (sums.pillar_type, sums.download),
        (PillarType::Checksum, ChecksumDownload::Never)
    );
    let bus_server = node.bus_server.unwrap();
    assert_eq!(bus_server.listen.len(), 2);
    check_queues(&bus_server.queues);
    let server = node.exchange_server.unwrap();
    assert_eq!(server.public_url, "https://files.example.org/exchange/");
    assert_eq!(
        (server.expiry, server.maximum_file_size),
        (Duration::from_secs(3600), Some(5 << 30))
    );
    assert_eq!(
        node.exchange.hosts.as_deref(),
        Some(&["files.example.org:443".to_owned()][..])
    );
    assert_eq!(
        node.exchange.file_roots,
        [Path::new("settings/drop"), Path::new("/srv")]
    );
    assert_eq!(node.exchange.ca_files, [Path::new("settings/ca.pem")]);
    let client = node.client.unwrap();
    assert_eq!(client.exchange.as_deref(), Some("file:///srv/offers/"));
    assert_eq!(client.accept_zoneless, ZonelessDates::Local);
}

#[test]
fn the_environment_overrides_the_file() {
    let node = with_environment(&[
        ("PILLARBOX__DATA", "/elsewhere"),
        ("PILLARBOX__CLIENT__ID", "007"),
        ("PILLARBOX__BUS_SERVER__LISTEN", "127.0.0.1:5, [::1]:6"),
        ("PILLARBOX__EXCHANGE__HOSTS", ""),
        ("PILLARBOX__EXCHANGE_SERVER__MAXIMUM_FILE_SIZE", "12"),
        ("PILLARBOX__BUS__URL", "stomp://bus:1"),
        ("PILLARBOX__BUS__LOGIN", "kim"),
        ("PILLARBOX__BUS__PASSCODE", "271828"),
        ("PILLARBOX__BUS__VIRTUAL_HOST", "/archive"),
        ("PILLARBOX_LOG", "debug"),
        ("HOME", "/root"),
    ])
    .unwrap();
    assert_eq!(node.data, Path::new("/elsewhere"));
    assert_eq!(node.client.unwrap().id, Some("007".into()));
    let listen: Vec<SocketAddr> = node.bus_server.unwrap().listen;
    assert_eq!(
        listen,
        ["127.0.0.1:5".parse().unwrap(), "[::1]:6".parse().unwrap()]
    );
    assert_eq!(node.exchange.hosts, Some(Vec::new()));
    assert_eq!(node.exchange_server.unwrap().maximum_file_size, Some(12));
    assert_eq!(node.bus.login.as_deref(), Some("kim"));
    assert_eq!(node.bus.passcode, Some(Secret::new("271828")));
    assert_eq!(node.bus.virtual_host.as_deref(), Some("/archive"));
    assert_eq!(node.bus.address.unwrap().url.to_string(), "stomp://bus:1");
    assert_eq!(node.pillars.len(), 1);
}

#[test]
fn what_is_wrong_in_the_environment_names_the_variable() {
    for (variable, text, said) in [
        (
            "CLIENT__IDD",
            "x",
            "sets no known key of node.toml; did you mean `PILLARBOX__CLIENT__ID`?",
        ),
        (
            "PILLARS__0__ID",
            "x",
            "sets no known key of node.toml; set pillars in node.toml, since lists of tables can't be set by the \
             environment",
        ),
        (
            "BUS_SERVER__LISTEN",
            "localhost:1",
            "`localhost:1` is no address to listen on; write an IP address and a port, as in \"127.0.0.1:61613\"",
        ),
        (
            "BUS__URL",
            "stomp://",
            "`stomp://` has no usable host and port; write \"stomp://HOST:PORT\" with a port between 1 and 65535",
        ),
        (
            "BUS__PASSCODE",
            "sesame",
            "there is a passcode but no login; add login = \"NAME\" under [bus]",
        ),
        (
            "BUS__LOGIN",
            "",
            "`bus.login` is empty; write it, or leave it out",
        ),
        (
            "EXCHANGE_SERVER__EXPIRY",
            "soon",
            "`soon` is no duration; write a whole number with ms, s, m, h or d, as in \"90s\" or \"1h 30m\"",
        ),
        (
            "EXCHANGE_SERVER__PUBLIC_URL",
            "x",
            "`x` is no URL (relative URL without a base); write it as in \"http://HOST:PORT/\"",
        ),
        (
            "CLIENT__ID",
            "north",
            "two components of this process have the id `north`; give each its own id",
        ),
        (
            "EXCHANGE__HOSTS",
            "h:1,h",
            "`h` is no host with a port; write it as in \"127.0.0.1:8181\"",
        ),
        (
            "EXCHANGE_SERVER__MAXIMUM_FILE_SIZE",
            "-1",
            "`-1` is no size; write a whole number of bytes, or one with a unit, as in \"10 GiB\"",
        ),
    ] {
        let variable = format!("PILLARBOX__{variable}");
        let error = with_environment(&[(&variable, text)]).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("environment variable {variable}: {said}")
        );
    }
}

#[test]
fn a_passcode_is_never_shown() {
    let node = load(include_str!("../../../testdata/node-full.toml")).unwrap();
    let shown = format!("{node:?}");
    assert!(
        shown.contains("kim") && !shown.contains("sesame"),
        "{shown}"
    );
}

#[test]
fn which_exchange_counts() {
    let repository = repository();
    let mut node = load(GOOD).unwrap();
    assert_eq!(
        node.exchange_base(&repository),
        Some("http://files.example.org/")
    );
    assert_eq!(
        node.exchange_hosts(&repository),
        ["files.example.org:80", "h:1"]
    );
    node.client.as_mut().unwrap().exchange = Some("https://mine/".to_owned());
    assert_eq!(node.exchange_base(&repository), Some("https://mine/"));
    assert_eq!(
        node.exchange_hosts(&repository),
        ["files.example.org:80", "h:1", "mine:443"]
    );
    node.exchange.hosts = Some(vec!["only:1".to_owned()]);
    assert_eq!(node.exchange_hosts(&repository), ["only:1"]);
    assert_eq!(node.effective_bus(&repository).url, BusUrl::Embedded);
}

#[test]
fn late_checksums_are_warned_about() {
    let warnings = load(GOOD).unwrap().check_against(&repository()).unwrap();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].contains("`north`") && warnings[0].contains("`gold`"),
        "{warnings:?}"
    );
    let never = GOOD.replacen("#pillar", "max_age_for_checksums = \"0s\"", 1);
    let warnings = load(&never).unwrap().check_against(&repository());
    assert_eq!(warnings.unwrap().len(), 1);
    let fresh = GOOD.replacen("#pillar", "max_age_for_checksums = \"30d\"", 1);
    assert!(
        load(&fresh)
            .unwrap()
            .check_against(&repository())
            .unwrap()
            .is_empty()
    );
}
