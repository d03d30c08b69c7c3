//! The recorded repository's bus and exchange, in a process of ours, where the recorded pillars are played.

use std::{fs, path::Path, time::Duration};

use pillarbox_bus::spelling;

use super::{
    capture::{ALARMS, Captured, PILLARS, Sender, TYPE, edit, element, value},
    scenes::{HELLO, REPLACEMENT, SECOND},
    site::REPOSITORY,
};
use crate::support::{
    PATIENCE,
    process::{self, Running},
    site::free_port,
    stomp::{Frame, Stomp},
    whole,
};

/// Bus and exchange, and every recorded pillar and service listening.
pub(crate) struct Stage {
    directory: tempfile::TempDir,
    exchange_port: u16,
    _hub: Running,
    stomp: Stomp,
    /// What the client has asked and the recording has not come to.
    asked: Vec<Captured>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (bus, exchange) = (free_port(), free_port());
        let hub = format!(
            "[bus_server]\nlisten = [\"127.0.0.1:{bus}\"]\n[exchange_server]\nlisten = \"127.0.0.1:{exchange}\"\n\
             public_url = \"http://127.0.0.1:{exchange}/\"\n"
        );
        let client = format!(
            "[client]\nexchange = \"http://127.0.0.1:{exchange}/\"\n[exchange]\nhosts = [\"127.0.0.1:{exchange}\"]\n"
        );
        for (part, identification, roles) in [
            ("hub", "60s", &hub),
            (PATIENT, "60s", &client),
            (IMPATIENT, "3s", &client),
        ] {
            let timeouts = format!(
                "[timeouts]\nidentification = \"{identification}\"\noperation = \"60s\"\n[[collections]]"
            );
            let url = format!("url = \"stomp://127.0.0.1:{bus}\"");
            let repository = REPOSITORY.replace("url = \"embedded:\"", &url);
            let repository = repository.replacen("[[collections]]", &timeouts, 1);
            let settings = directory.path().join(part);
            fs::create_dir(&settings).unwrap();
            fs::write(settings.join("repository.toml"), repository).unwrap();
            fs::write(
                settings.join("node.toml"),
                format!("data = \"var\"\n{roles}"),
            )
            .unwrap();
        }
        let data = directory.path().join("data");
        fs::create_dir(&data).unwrap();
        for (name, content) in [("hello", HELLO), ("hello2", SECOND), ("repl", REPLACEMENT)] {
            fs::write(data.join(name).with_extension("txt"), content).unwrap();
        }
        let hub = Running::node(&directory.path().join("hub"));
        let mut stomp = Stomp::connect(bus, Some("recorded-pillars"));
        stomp.subscribe("/topic/quick-start");
        for component in PILLARS.iter().chain([&ALARMS]) {
            stomp.subscribe(&format!("/topic/quick-start-{component}-contributor"));
        }
        Self {
            directory,
            exchange_port: exchange,
            _hub: hub,
            stomp,
            asked: Vec::new(),
        }
    }

    /// Where the command runs: `data` holds the recorded runs' files.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// A client command with the arguments of a recorded one, and with settings under which it waits long for
    /// identification, or not.
    pub(crate) fn start(&self, arguments: &[String], patient: bool) -> Running {
        let (tool, options) = arguments.split_first().expect("a tool");
        let mut command = process::pillarbox([tool.as_str(), "-s"]);
        let settings = if patient { PATIENT } else { IMPATIENT };
        command.arg(self.path().join(settings)).args(options);
        command.current_dir(self.path());
        Running::spawn(command)
    }

    /// A new address on the exchange, with this content.
    pub(crate) fn offer(&self, name: &str, content: &[u8]) -> String {
        whole::offer(self.exchange_port, name, content)
    }

    /// Delivers to an address on the exchange.
    pub(crate) fn deliver(&self, address: &str, content: &[u8]) {
        whole::deliver(self.exchange_port, address, content);
    }

    /// Nothing of an earlier command.
    pub(crate) fn forget(&mut self) {
        self.asked.clear();
    }

    /// The client's next request that fits, in any order; none if the client ends without it.
    pub(crate) fn request(
        &mut self,
        client: &mut Running,
        fits: impl Fn(&Captured) -> bool,
    ) -> Option<Captured> {
        let deadline = std::time::Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.asked.iter().position(&fits) {
                return Some(self.asked.remove(at));
            }
            // What it sent before its end is on the bus before its end.
            let lives = client.lives();
            let mut came = false;
            while let Some(frame) = self.stomp.message(Duration::from_millis(50)) {
                self.asked.push(received(&frame));
                came = true;
            }
            if !came && (!lives || std::time::Instant::now() > deadline) {
                return None;
            }
        }
    }

    /// Requests that the recording has none for.
    pub(crate) fn not_recorded(&mut self, client: &mut Running) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(request) = self.request(client, |_| true) {
            lines.push(format!("client +{}", request.kind));
        }
        lines
    }

    /// Sends a recorded answer to whoever has asked this.
    pub(crate) fn answer(&mut self, answer: &Captured, request: &Captured) {
        let said = |name: &str| request.element(name).unwrap_or_default().to_owned();
        let mut text = answer.text.clone();
        for (element, value) in [
            ("CorrelationID", said("CorrelationID")),
            ("Destination", said("ReplyTo")),
            ("To", said("From")),
        ] {
            text = edit(&text, element, |_| value.clone());
        }
        for element in ["FileAddress", "ResultAddress"] {
            text = edit(&text, element, |_| said(element));
        }
        let (to, correlation) = (said("From"), said("CorrelationID"));
        let mut headers = vec![("correlation-id", correlation.as_str())];
        for (name, value) in &answer.properties {
            let value = if name.ends_with(".to") { &to } else { value };
            headers.push((name, value));
        }
        let destination = spelling::to_stomp(&said("ReplyTo").parse().unwrap());
        self.stomp.send(&destination, &headers, text.as_bytes());
    }
}

/// As if it had been recorded.
fn received(frame: &Frame) -> Captured {
    let text = frame.text();
    let destination = |name: &str| {
        let spelled = frame.header(name).and_then(spelling::from_stomp);
        spelled.map_or_else(String::new, |it| it.to_string())
    };
    let delivery = match frame.header("persistent") {
        Some("true") => "PERSISTENT(2)",
        _ => "NON_PERSISTENT(1)",
    };
    let of_protocol = |(name, _): &&(String, String)| name.starts_with("org.bitrepository.");
    let properties: Vec<_> = frame.headers.iter().filter(of_protocol).cloned().collect();
    Captured {
        kind: value(&properties, TYPE).unwrap_or_default().to_owned(),
        from: Sender::of(&text),
        destination: destination("destination"),
        correlation: frame
            .header("correlation-id")
            .unwrap_or_default()
            .to_owned(),
        reply_to: destination("reply-to"),
        delivery: delivery.to_owned(),
        properties,
        text,
    }
}

/// A request in the words of the recorded one that it stands for: its client, conversation and addresses.
pub(crate) fn in_recorded_words(ours: &Captured, recorded: &Captured) -> Captured {
    let mut message = ours.clone();
    let same = [
        "CorrelationID",
        "ReplyTo",
        "From",
        "FileAddress",
        "ResultAddress",
    ];
    for name in same {
        let text = element(&recorded.text, name);
        message.text = edit(&message.text, name, |own| text.unwrap_or(own).to_owned());
    }
    message.correlation.clone_from(&recorded.correlation);
    message.reply_to.clone_from(&recorded.reply_to);
    message
}

const PATIENT: &str = "client";
const IMPATIENT: &str = "impatient-client";
