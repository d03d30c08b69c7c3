//! The recorded client's messages, to our pillars.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, stream};

use super::{
    capture::{self, ALARMS, Capture, Captured, Sender, edit},
    differences::{Judge, OF_PILLARS},
    scenes::{Before, HELLO, REPLACED_CHECKSUMS, REPLACEMENT, SCENES, Scene, TAMPERED},
    shape,
    site::{Meeting, Site},
};
use crate::support::brokers::ActiveMq;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pillars_answer_as_recorded() {
    if let Some(captures) = capture::all("our_pillars_answer_as_recorded") {
        // Most of the time is spent on waiting for disks.
        compare(captures, Meeting::Embedded, 4).await;
    }
}

/// The same over the broker that the recorded repository had.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_pillars_answer_as_recorded_over_activemq() {
    if let Some(captures) = capture::all("our_pillars_answer_as_recorded_over_activemq") {
        // One of its own: components are known by their recorded names there.
        let broker = ActiveMq::start();
        compare(captures, Meeting::Broker(broker.port()), 1).await;
    }
}

async fn compare(mut captures: Vec<Capture>, meeting: Meeting, at_once: usize) {
    let only = std::env::var("PILLARBOX_TEST_REPLAY").ok();
    captures.retain(|it| only.as_ref().is_none_or(|only| it.name.contains(only)));
    let mut judge = Judge::default();
    println!(
        "{:34} {:>4} {:>8} {:>11}",
        "conversation", "sent", "compared", "differences"
    );
    let replays = captures.iter().map(|capture| async move {
        let scene = SCENES.iter().find(|scene| scene.name == capture.name);
        let scene = scene.unwrap_or_else(|| panic!("{} is in no table", capture.name));
        (capture, replay(meeting, capture, scene).await)
    });
    let mut replays = stream::iter(replays).buffered(at_once);
    while let Some((capture, replayed)) = replays.next().await {
        let name = &capture.name;
        match replayed {
            Ok(lines) => {
                let used = judge.judge(OF_PILLARS, name, &lines);
                let (sent, compared) = (capture.asked().count(), capture.answered().count());
                println!("{name:34} {sent:4} {compared:8} {used:11}");
            }
            Err(why_not) => println!("{name:34} {why_not}"),
        }
    }
    judge.report(OF_PILLARS);
    if only.is_none() {
        judge.assert_all_as_listed(OF_PILLARS);
    }
}

/// What differs, or why the conversation is not replayed.
async fn replay(meeting: Meeting, capture: &Capture, scene: &Scene) -> Result<Vec<String>, String> {
    if let Before::LeftOut(reason) = scene.before {
        return Err(format!("left out: {reason}"));
    }
    Ok(Replay::of(meeting, capture, scene).await)
}

/// Ours answers no request.
fn is_silent(sender: &Sender) -> bool {
    matches!(sender, Sender::Component(id) if id == ALARMS)
}

/// A conversation that is being replayed.
struct Replay {
    site: Site,
    /// Addresses on our exchange for recorded ones.
    addresses: BTreeMap<String, String>,
}

impl Replay {
    /// Replays a conversation, and gives what differs.
    async fn of(meeting: Meeting, capture: &Capture, scene: &Scene) -> Vec<String> {
        let reply_to = capture
            .asked()
            .next()
            .map(|message| message.reply_to.clone());
        let reply_to = reply_to.expect("the client asks something");
        let site = Site::start(meeting, scene.absent, &reply_to).await;
        let mut replay = Self {
            site,
            addresses: BTreeMap::new(),
        };
        for (pillar, deed) in scene.deeds(capture) {
            replay.site.prepare(pillar, &deed).await;
        }
        if let Before::Tampered(pillar, file) = scene.before {
            std::fs::write(replay.site.place(pillar, file), TAMPERED).unwrap();
        }
        replay.ask(capture).await;
        let heard = replay.site.settle().await;
        replay.check_deliveries(&heard).await;
        let ours: Vec<Captured> = heard
            .into_iter()
            .map(|it| replay.in_recorded_words(it))
            .collect();
        replay.site.close().await;
        let recorded: Vec<&Captured> = capture.answered().collect();
        shape::differences(&recorded, &ours.iter().collect::<Vec<_>>())
    }

    /// Sends everything that the recorded client sent, each once what it had heard by then has been heard.
    async fn ask(&mut self, capture: &Capture) {
        let mut heard: BTreeMap<&Sender, usize> = BTreeMap::new();
        for message in &capture.messages {
            if message.from != Sender::Client {
                *heard.entry(&message.from).or_default() += 1;
                continue;
            }
            for (from, count) in &heard {
                if is_silent(from) {
                    continue;
                }
                assert!(
                    self.site.hears(from, *count).await,
                    "{}: {from:?} is silent before {}",
                    capture.name,
                    message.kind
                );
            }
            let text = self.with_our_addresses(message).await;
            self.site.send(message, text).await;
        }
    }

    async fn with_our_addresses(&mut self, message: &Captured) -> String {
        for name in ["FileAddress", "ResultAddress"] {
            let Some(recorded) = message.element(name) else {
                continue;
            };
            if self.addresses.contains_key(recorded) {
                continue;
            }
            let (_, last) = recorded.rsplit_once('/').unwrap();
            let ours = self.site.address(last);
            let content = match last {
                "hello.txt" => Some(HELLO),
                "repl.txt" => Some(REPLACEMENT),
                _ => None,
            };
            let fetches = message.kind.starts_with("Put") || message.kind.starts_with("Replace");
            if let Some(content) = content.filter(|_| fetches) {
                self.site.offer(&ours, content).await;
            }
            self.addresses.insert(recorded.to_owned(), ours);
        }
        let ours = |recorded: &str| self.addresses[recorded].clone();
        edit(
            &edit(&message.text, "FileAddress", ours),
            "ResultAddress",
            ours,
        )
    }

    /// An answer with the recorded addresses, and the recorded checksums of content that is not known.
    fn in_recorded_words(&self, mut message: Captured) -> Captured {
        let addresses = self.addresses.iter();
        let addresses = addresses.map(|(recorded, ours)| (recorded.as_str(), ours.as_str()));
        for (recorded, ours) in addresses.chain(REPLACED_CHECKSUMS) {
            message.text = message.text.replace(ours, recorded);
        }
        message
    }

    /// What is said to be delivered is where it was to be delivered to.
    async fn check_deliveries(&self, heard: &[Captured]) {
        let completed = heard.iter().filter(|it| {
            it.kind.ends_with("FinalResponse") && it.text.contains("OPERATION_COMPLETED")
        });
        for answer in completed {
            if let Some(address) = answer.element("ResultAddress") {
                let text = String::from_utf8(self.site.delivered(address).await).unwrap();
                let document = pillarbox_messages::ResultDocument::from_xml(&text);
                assert!(document.is_ok(), "{document:?}: {text}");
            }
            if answer.kind == "GetFileFinalResponse" {
                let address = answer.element("FileAddress").unwrap();
                let number = |name| answer.element(name)?.parse::<usize>().ok();
                let start = number("PartOffSet").unwrap_or(0);
                let end = number("PartLength").map_or(HELLO.len(), |length| start + length);
                assert_eq!(self.site.delivered(address).await, HELLO[start..end]);
            }
        }
    }
}
