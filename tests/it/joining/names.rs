//! The Java system's names: where components listen, what they are called, and how they send.

use std::{collections::BTreeSet, fs};

use pillarbox_messages::Message;

use crate::support::{
    PATIENCE, process,
    site::Site,
    stomp::{Frame, Stomp},
    whole::offer,
};

const DESTINATIONS: &str = r#"scheme = "reference"
base = "topic://quick-start"
alarm_destination = "topic://quick-start.alarms""#;

const COLLECTION: &str = "/topic/quick-start";
const PILLAR: &str = "/topic/quick-start-north-contributor";
const ALARMS: &str = "/topic/quick-start.alarms";
/// As the Java system's own command line clients are called.
const CLIENT_ID: &str = "root's cmdline client";
const CLIENT: &str = "/topic/quick-start-root's cmdline client";
const WRONG: &str = "00112233445566778899aabbccddeeff";
const OPERATION: i32 = 255;

fn site() -> Site {
    Site::with_destinations(&["north"], DESTINATIONS)
}

fn listener(site: &Site, topics: &[&str]) -> Stomp {
    let mut listener = Stomp::connect(site.bus_port, None);
    for topic in topics {
        listener.subscribe(topic);
    }
    listener
}

/// A message as its receivers see it: type, destination, where answers go, whether it is kept.
type Seen = (String, String, String, bool);

fn seen(frame: &Frame) -> Seen {
    let header = |name| frame.header(name).unwrap_or_default().to_owned();
    for expiry in ["expires", "q-ttl"] {
        assert_eq!(frame.header(expiry), None, "{frame:?}");
    }
    let message = Message::from_xml(&frame.text()).expect("a message");
    let said = message.header();
    let on_the_wire = |it: String| it.replace("topic://", "/topic/");
    let destination = header("destination");
    let reply_to = header("reply-to");
    assert_eq!(on_the_wire(said.destination.to_string()), destination);
    assert_eq!(on_the_wire(said.reply_to.to_string()), reply_to);
    let kind = header("org.bitrepository.messages.type");
    let kept = frame.header("persistent") == Some("true");
    (kind, destination, reply_to, kept)
}

/// All that is heard up to the first message of this type.
fn until(listener: &mut Stomp, last: &str) -> BTreeSet<Seen> {
    let mut all = BTreeSet::new();
    loop {
        let frame = listener.message(PATIENCE).expect("it comes");
        let seen = seen(&frame);
        let found = seen.0 == last;
        all.insert(seen);
        if found {
            return all;
        }
    }
}

fn rows(rows: &[(&str, &str, &str, bool)]) -> BTreeSet<Seen> {
    let owned = |(kind, to, reply_to, kept): &(&str, &str, &str, bool)| {
        (
            (*kind).to_owned(),
            (*to).to_owned(),
            (*reply_to).to_owned(),
            *kept,
        )
    };
    rows.iter().map(owned).collect()
}

#[test]
fn every_message_goes_where_the_java_components_listen_and_none_expires() {
    let site = site();
    let _hub = site.start("hub");
    let _north = site.start("north");
    let mut listener = listener(&site, &[COLLECTION, PILLAR, CLIENT, ALARMS]);
    let file = site.file("a.txt", b"a file\n");
    let file = file.to_str().expect("text");
    process::succeed(&site.run("put-file", ["-f", file, "--client-id", CLIENT_ID]));
    assert_eq!(
        until(&mut listener, "PutFileFinalResponse"),
        rows(&[
            (
                "IdentifyPillarsForPutFileRequest",
                COLLECTION,
                CLIENT,
                false
            ),
            ("IdentifyPillarsForPutFileResponse", CLIENT, PILLAR, false),
            ("PutFileRequest", PILLAR, CLIENT, true),
            ("PutFileProgressResponse", CLIENT, PILLAR, false),
            ("PutFileFinalResponse", CLIENT, PILLAR, true),
        ])
    );
    let address = offer(site.exchange_port, "b.txt", b"a file\n");
    let wrong = [
        "-u",
        &address,
        "-i",
        "b.txt",
        "-C",
        WRONG,
        "--client-id",
        CLIENT_ID,
    ];
    process::fail_with_one_line(&site.run("put-file", wrong), OPERATION);
    let heard = until(&mut listener, "AlarmMessage");
    let alarm = ("AlarmMessage", ALARMS, PILLAR, true);
    assert!(heard.is_superset(&rows(&[alarm])), "{heard:#?}");
    // Two collections would share all of these.
    let status = site.without_collection("get-status", &["--client-id", CLIENT_ID]);
    process::succeed(&status);
    let heard = until(&mut listener, "GetStatusFinalResponse");
    let identify = "IdentifyContributorsForGetStatusRequest";
    let identify = (identify, COLLECTION, CLIENT, false);
    let request = ("GetStatusRequest", PILLAR, CLIENT, true);
    assert!(heard.is_superset(&rows(&[identify, request])), "{heard:#?}");
}

#[test]
fn a_client_without_a_name_is_called_after_host_user_and_process() {
    let site = site();
    let _hub = site.start("hub");
    let _north = site.start("north");
    let mut listener = listener(&site, &[COLLECTION]);
    let mut command = site.prepare("get-file-ids", Vec::<String>::new());
    command.env("USER", "kim smith");
    let mut client = process::Running::spawn(command);
    client.wait_for_success();
    let frame = listener.message(PATIENCE).expect("it comes");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a host");
    let plain = |it: char| {
        if it.is_ascii_alphanumeric() || it == '_' {
            it
        } else {
            '-'
        }
    };
    let host: String = host.trim().chars().take(32).map(plain).collect();
    let id = format!("{host}-kim-smith-{}", client.id());
    let reply_to = format!("/topic/quick-start-{id}");
    assert_eq!(frame.header("reply-to"), Some(reply_to.as_str()));
    let message = Message::from_xml(&frame.text()).expect("a message");
    assert_eq!(message.header().from.as_str(), id);
}

#[test]
fn the_alarm_services_subscription_has_its_id_for_a_name() {
    let site = site();
    let _hub = site.start("hub");
    let _north = site.start("north");
    let mut service = site.start("alarms");
    service.terminate();
    service.wait_for_success();
    let address = offer(site.exchange_port, "a.txt", b"a file\n");
    let put = ["-u", &address, "-i", "a.txt", "-C", WRONG];
    let put = site.run("put-file", put);
    process::fail_with_one_line(&put, OPERATION);
    // Whoever comes under the name of the service finds what was kept for it.
    let mut stomp = Stomp::connect(site.bus_port, Some("alarm-service"));
    let name = ("activemq.subscriptionName", "alarm-service");
    let headers = [("destination", ALARMS), ("id", "1"), ("ack", "auto"), name];
    stomp
        .frame("SUBSCRIBE", &headers, b"")
        .expect("the bus reads");
    let frame = stomp.message(PATIENCE).expect("the alarm was kept");
    assert_eq!(seen(&frame).0, "AlarmMessage");
}
