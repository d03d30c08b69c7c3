//! An independent client on the broker: Python's stomp.py.

use std::{fs, process::Command};

use crate::{
    messages::corpus,
    support::{
        brokers::ActiveMq,
        joined::{Joined, Scheme},
        process::{Running, finish, succeed},
    },
};

/// Listens to the destinations of its arguments, and prints what comes, a JSON object per line.
const LISTENER: &str = r#"
import json, sys, threading, stomp

class Listener(stomp.ConnectionListener):
    def on_message(self, frame):
        print(json.dumps({"headers": frame.headers, "text": frame.body}), flush=True)
    def on_receipt(self, frame):
        print("listening" if frame.headers["receipt-id"] == "last" else "", flush=True)
    def on_error(self, frame):
        print("ERROR", frame.headers, frame.body, flush=True)

connection = stomp.Connection12([("127.0.0.1", int(sys.argv[1]))], heartbeats=(1000, 1000))
connection.set_listener("", Listener())
connection.connect(wait=True)
for number, destination in enumerate(sys.argv[2:]):
    last = number == len(sys.argv) - 3
    connection.subscribe(destination, id=number, ack="auto", headers={"receipt": "last" if last else "more"})
threading.Event().wait()
"#;

/// Sends the text of a file: destination, type, file, and how.
const SENDER: &str = r#"
import sys, stomp

port, destination, kind, file, how = sys.argv[1:]
connection = stomp.Connection12([("127.0.0.1", int(port))], auto_content_length=(how != "without length"))
connection.connect(wait=True)
headers = {"org.bitrepository.messages.type": kind}
if how == "as text":
    headers["amq-msg-type"] = "text"
with open(file, encoding="utf-8", newline="") as text:
    connection.send(destination, text.read(), headers=headers)
connection.disconnect(receipt="bye")
print("sent")
"#;

/// Whether the peer is there; says loudly if it is not.
fn is_there(test: &str) -> bool {
    let import = Command::new("python3")
        .args(["-c", "import stomp"])
        .output();
    let there = import.is_ok_and(|output| output.status.success());
    if !there {
        eprintln!("SKIPPED {test}: python3 with stomp.py is not installed (pip install stomp.py)");
    }
    there
}

fn listen(port: u16, destinations: &[String]) -> Running {
    let mut command = Command::new("python3");
    command
        .args(["-c", LISTENER, &port.to_string()])
        .args(destinations);
    let mut listener = Running::spawn(command);
    listener.wait_for("listening");
    listener
}

/// A message as the peer saw it.
struct Seen {
    kind: String,
    headers: Vec<(String, String)>,
    text: String,
}

impl Seen {
    fn of(line: &str) -> Self {
        let seen: serde_json::Value = serde_json::from_str(line).expect(line);
        let headers = seen["headers"].as_object().expect("headers");
        let headers = headers.iter().map(|(name, value)| {
            let value = value.as_str().expect("text");
            (name.clone(), value.to_owned())
        });
        let headers: Vec<(String, String)> = headers.collect();
        Self {
            kind: value(&headers, TYPE).to_owned(),
            text: seen["text"].as_str().expect("text").to_owned(),
            headers,
        }
    }

    /// The names of properties and JMS headers that the sender had set.
    fn names(&self) -> Vec<&str> {
        names(&self.headers)
    }

    fn header(&self, name: &str) -> &str {
        value(&self.headers, name)
    }
}

fn value<'a>(headers: &'a [(String, String)], name: &str) -> &'a str {
    let found = headers.iter().find(|(known, _)| known == name);
    found.map_or("", |(_, value)| value)
}

fn names(headers: &[(String, String)]) -> Vec<&str> {
    let sent = headers.iter().filter(|(name, value)| {
        let of_sender = name.starts_with("org.bitrepository.")
            || ["correlation-id", "reply-to", "destination"].contains(&name.as_str());
        // What the Java system can't leave out.
        of_sender && value != "null"
    });
    let mut names: Vec<&str> = sent.map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names
}

/// What a subscriber saw of the Java system's messages in a put: type, names of headers, and the root element.
fn recorded(test: &str) -> Option<Vec<(String, Vec<String>, String)>> {
    let file = corpus::shared(test)?.join("wire/put-new/as-seen-over-stomp.txt");
    let text = fs::read_to_string(file).expect("can be read");
    let frames = text.split("^@").filter(|frame| frame.contains("MESSAGE"));
    let seen = frames.map(|frame| {
        let (head, body) = frame.split_once("\n\n").expect("head and body");
        let headers: Vec<(String, String)> = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let names = names(&headers).into_iter().map(str::to_owned).collect();
        (value(&headers, TYPE).to_owned(), names, body.to_owned())
    });
    let seen: Vec<_> = seen.collect();
    // Identification and its answers, then a request, its progress and its end for each pillar.
    assert_eq!(seen.len(), 4 + 3 * 3);
    Some(seen)
}

#[test]
fn stomp_py_sees_our_messages_as_it_sees_those_of_the_java_system() {
    let test = "stomp_py_sees_our_messages_as_it_sees_those_of_the_java_system";
    let (true, Some(recorded)) = (is_there(test), recorded(test)) else {
        return;
    };
    let broker = ActiveMq::shared();
    let site = Joined::new(broker, Scheme::Reference);
    let _node = site.start("node");
    let client = site.name("root's cmdline client");
    let mut destinations = vec![
        site.topic(),
        format!("/topic/{}-{client}", site.name("base")),
    ];
    destinations.extend(["north", "south", "sums"].map(|pillar| site.requests_of(pillar)));
    let mut listener = listen(broker.port(), &destinations);
    let file = site.file("hello.txt", b"hello, repository!!\n");
    let put = ["-f", file.to_str().unwrap(), "--client-id", &client];
    succeed(&site.run("put-file", put));
    let mut seen: Vec<Seen> = (0..recorded.len())
        .map(|_| Seen::of(&listener.wait_for("{")))
        .collect();
    // The checksum pillar's say more than the others'.
    seen.sort_by_cached_key(|it| (it.kind.clone(), tags(&it.text).join("<")));
    let mut recorded = recorded;
    recorded.sort_by_cached_key(|(kind, _, text)| (kind.clone(), tags(text).join("<")));
    for (ours, (kind, names, text)) in seen.iter().zip(&recorded) {
        assert_eq!(ours.kind, *kind);
        assert_eq!(ours.names(), *names, "{kind}");
        assert_eq!(tags(&ours.text), tags(text.trim()), "{kind}");
        let element = |name: &str| {
            let (_, rest) = ours.text.split_once(&format!("<{name}>"))?;
            Some(rest.split_once('<')?.0.to_owned())
        };
        assert_eq!(
            element("CorrelationID").as_deref(),
            Some(ours.header("correlation-id"))
        );
        let addressed = ours
            .header("destination")
            .replacen("/topic/", "topic://", 1);
        assert_eq!(element("Destination"), Some(addressed), "{kind}");
        let answered = ours.header("reply-to").replacen("/topic/", "topic://", 1);
        assert_eq!(element("ReplyTo"), Some(answered), "{kind}");
        for (property, name) in [("collectionid", "CollectionID"), ("to", "To")] {
            let property = format!("org.bitrepository.messages.{property}");
            if names.contains(&property) {
                let value = Some(ours.header(&property));
                assert_eq!(element(name).as_deref(), value, "{kind}");
            }
        }
    }
}

/// All that is in angle brackets, in order: declaration, root element with its attributes, and everything in it but the
/// texts for people, which everybody has as they like.
fn tags(text: &str) -> Vec<&str> {
    let tags = text.split('<').skip(1);
    let tags = tags.filter_map(|tag| Some(tag.split_once('>')?.0));
    tags.filter(|tag| tag.trim_start_matches('/') != "ResponseText")
        .collect()
}

#[test]
fn what_stomp_py_sends_is_understood_however_it_sends_it() {
    if !is_there("what_stomp_py_sends_is_understood_however_it_sends_it") {
        return;
    }
    let broker = ActiveMq::shared();
    let site = Joined::new(broker, Scheme::Reference);
    let _node = site.start("node");
    let answers = site.name("python's answers");
    let mut listener = listen(broker.port(), &[format!("/topic/{answers}")]);
    for (number, (how, spelling)) in [
        ("without length", "default"),
        ("as text", "prefixed"),
        ("as bytes", "single quotes"),
        ("without length", "line ends"),
        ("as text", "default"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("python-{number}");
        let text = request(&site, &answers, &id, spelling);
        let file = site.file(&format!("{id}.xml"), text.as_bytes());
        let mut send = Command::new("python3");
        send.args(["-c", SENDER, &broker.port().to_string()]);
        send.args([&site.requests_of("north"), "GetFileIDsRequest"]);
        send.arg(file).arg(how);
        assert_eq!(succeed(&finish(send)), "sent\n");
        loop {
            let answer = Seen::of(&listener.wait_for("{"));
            assert_eq!(answer.header("correlation-id"), id, "{how}, {spelling}");
            if answer.kind == "GetFileIDsFinalResponse" {
                let completed = answer.text.contains("OPERATION_COMPLETED");
                assert!(completed, "{how}, {spelling}: {}", answer.text);
                break;
            }
        }
    }
}

/// A request in one of the spellings that XML writers have.
fn request(site: &Joined, answers: &str, id: &str, spelling: &str) -> String {
    let (prefix, element) = match spelling {
        "prefixed" => ("ns2:", "bre:"),
        _ => ("m:", ""),
    };
    let name = |name: &str, value: &str| format!("<{element}{name}>{value}</{element}{name}>");
    let pillar = site.name("north");
    let content = [
        name("CorrelationID", id),
        name("CollectionID", &site.collection()),
        name(
            "Destination",
            &format!("topic://{}-{pillar}-contributor", site.name("base")),
        ),
        name("ReplyTo", &format!("topic://{answers}")),
        name("From", "python"),
        name("PillarID", &pillar),
        name("FileIDs", &name("AllFileIDs", "true")),
    ];
    let namespaces = format!(
        "xmlns{}=\"http://bitrepository.org/BitRepositoryElements.xsd\" \
         xmlns:{}=\"http://bitrepository.org/BitRepositoryMessages.xsd\"",
        if element.is_empty() { "" } else { ":bre" },
        prefix.trim_end_matches(':'),
    );
    let root = format!("{prefix}GetFileIDsRequest");
    let between = if spelling == "line ends" {
        "\r\n  "
    } else {
        ""
    };
    let content = content.join(between);
    let text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>{between}<{root} {namespaces} minVersion=\"24\" version=\"31\">\
         {between}{content}{between}</{root}>"
    );
    match spelling {
        "single quotes" => text.replace('"', "'"),
        _ => text,
    }
}

const TYPE: &str = "org.bitrepository.messages.type";
