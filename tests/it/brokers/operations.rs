//! All eight operations and their refusals.

use std::fs;

use crate::support::{
    PATIENCE,
    brokers::{ActiveMq, Broker, RabbitMq},
    joined::{Joined, PILLARS, Scheme},
    md5,
    process::{self, fail_with_one_line, stderr, stdout, succeed},
    raw_peer::document,
    stomp::Stomp,
    until,
};

#[test]
fn over_activemq_with_the_java_systems_names() {
    everything(ActiveMq::shared(), Scheme::Reference);
}

#[test]
fn over_activemq_with_names_of_the_collection() {
    everything(ActiveMq::shared(), Scheme::Collection);
}

#[test]
fn over_rabbitmq() {
    everything(RabbitMq::shared(), Scheme::Collection);
}

fn everything(broker: &Broker, scheme: Scheme) {
    let site = Joined::new(broker, scheme);
    let mut alarms = site.start("alarms");
    let mut node = site.start("node");
    let first = site.file("æ 漢字 𝄞.txt", b"the first version\n");
    let second = site.file("second.txt", b"the second version, which is longer\n");
    puts(&site, first.to_str().unwrap());
    listings(&site);
    gets(&site);
    replacements(&site, second.to_str().unwrap());
    deletions(&site);
    reports(&site, broker.port());
    for part in [&mut node, &mut alarms] {
        part.terminate();
        part.wait_for_success();
    }
}

const ID: &str = "æ 漢字 𝄞.txt";
const FIRST: &[u8] = b"the first version\n";
const SECOND: &[u8] = b"the second version, which is longer\n";

fn puts(site: &Joined, first: &str) {
    let put = site.run("put-file", ["-f", first]);
    assert_eq!(succeed(&put), "");
    assert!(
        stderr(&put).contains("stored on 3 pillars"),
        "{}",
        stderr(&put)
    );
    // The same again is there already; another file of that id is refused, and nothing of it is kept.
    succeed(&site.run("put-file", ["-f", first]));
    let other = site.file("other.txt", b"something else\n");
    let refused = site.run("put-file", ["-f", other.to_str().unwrap(), "-i", ID]);
    assert_eq!(refused.status.code(), Some(255), "{}", stderr(&refused));
    for pillar in ["north", "south"] {
        let archived = site.archived(pillar);
        assert_eq!(archived.len(), 1, "{archived:?}");
        assert_eq!(fs::read(&archived[0]).unwrap(), FIRST);
    }
}

fn listings(site: &Joined) {
    let ids = succeed(&site.run("get-file-ids", [""; 0]));
    assert!(
        ids.lines()
            .any(|line| line.contains(ID) && line.contains('3')),
        "{ids}"
    );
    let sums = succeed(&site.run("get-checksums", [""; 0]));
    let row = format!("{} \t3 \t{ID}", md5(FIRST));
    assert!(sums.lines().any(|line| line == row), "{sums}");
    let sha1 = succeed(&site.run("get-checksums", ["-R", "SHA1", "-i", ID]));
    assert!(
        sha1.contains("0ae76b85998f233a790b09da23c155fd0fd13027"),
        "{sha1}"
    );
}

fn gets(site: &Joined) {
    let copy = site.path().join("copy");
    let target = copy.to_str().unwrap();
    succeed(&site.run("get-file", ["-i", ID, "-l", target]));
    assert_eq!(fs::read(&copy).unwrap(), FIRST);
    let south = site.name("south");
    succeed(&site.run(
        "get-file",
        ["-i", ID, "-p", &south, "--part", "4:5", "-l", target],
    ));
    assert_eq!(fs::read(&copy).unwrap(), b"first");
    let missing = site.run("get-file", ["-i", "missing", "-l", target]);
    assert_eq!(missing.status.code(), Some(255), "{}", stderr(&missing));
}

fn replacements(site: &Joined, second: &str) {
    let north = site.name("north");
    let replace = |checksum: &str| {
        site.run(
            "replace-file",
            ["-f", second, "-i", ID, "-p", &north, "-C", checksum],
        )
    };
    let refused = replace(&md5(SECOND));
    assert_eq!(refused.status.code(), Some(255), "{}", stdout(&refused));
    // The administrators hear of it.
    until("an alarm", || site.alarms().contains("CHECKSUM_ALARM"));
    succeed(&replace(&md5(FIRST)));
    let archived = site.archived("north");
    assert_eq!(archived.len(), 1, "{archived:?}");
    assert_eq!(fs::read(&archived[0]).unwrap(), SECOND);
    let sums = succeed(&site.run("get-checksums", ["-i", ID]));
    assert!(
        sums.contains(&md5(FIRST)) && sums.contains(&md5(SECOND)),
        "{sums}"
    );
}

fn deletions(site: &Joined) {
    let delete = |pillar: &str, checksum: &str| {
        site.run(
            "delete-file",
            ["-i", ID, "-p", &site.name(pillar), "-C", checksum],
        )
    };
    let refused = delete("south", &md5(SECOND));
    assert_eq!(refused.status.code(), Some(255), "{}", stdout(&refused));
    succeed(&delete("south", &md5(FIRST)));
    assert_eq!(site.archived("south").len(), 0);
    succeed(&delete("sums", &md5(FIRST)));
    succeed(&delete("north", &md5(SECOND)));
    for listing in ["get-file-ids", "get-checksums"] {
        let gone = site.run(listing, ["-i", ID]);
        assert_eq!(gone.status.code(), Some(255), "{}", stdout(&gone));
        assert!(
            stderr(&gone).contains("FILE_NOT_FOUND_FAILURE"),
            "{}",
            stderr(&gone)
        );
    }
}

fn reports(site: &Joined, port: u16) {
    let trail = succeed(&site.run("get-audit-trails", [""; 0]));
    for (pillar, action) in [
        ("north", "PUT_FILE"),
        ("north", "REPLACE_FILE"),
        ("north", "DELETE_FILE"),
        ("south", "GET_FILE"),
        ("south", "FAILURE"),
        ("sums", "PUT_FILE"),
    ] {
        let pillar = site.name(pillar);
        let is_there = |line: &str| line.starts_with(&pillar) && line.contains(action);
        assert!(trail.lines().any(is_there), "{pillar} {action}\n{trail}");
    }
    let status = succeed(&process::finish(site.without_collection("get-status")));
    for pillar in PILLARS.map(|it| site.name(it)) {
        let line = status.lines().find(|line| line.starts_with(&pillar));
        assert!(line.is_some_and(|line| line.contains("OK")), "{status}");
    }
    refused_reports(site, port);
    let mut elsewhere = site.without_collection("get-file-ids");
    elsewhere.args(["-c", "no-such-collection"]);
    fail_with_one_line(&process::finish(elsewhere), 1);
}

/// What the command line would not send: questions to one pillar that are meant for another one.
fn refused_reports(site: &Joined, port: u16) {
    let own = site.name("asker");
    let mut asker = Stomp::connect(port, None);
    asker.subscribe(&format!("/topic/{own}"));
    let collection = format!("<CollectionID>{}</CollectionID>", site.collection());
    for (operation, collection) in [("GetAuditTrails", collection.as_str()), ("GetStatus", "")] {
        let request = format!("{operation}Request");
        let content = format!(
            "<CorrelationID>{operation}</CorrelationID>{collection}<Destination>topic://d</Destination>\
             <ReplyTo>topic://{own}</ReplyTo><From>asker</From><Contributor>somebody else</Contributor>"
        );
        let headers = [("org.bitrepository.messages.type", request.as_str())];
        let text = document(&request, &content);
        asker.send(&site.requests_of("north"), &headers, text.as_bytes());
        let answer = asker.message(PATIENCE).expect("an answer").text();
        assert!(
            answer.contains(&format!("{operation}FinalResponse")),
            "{answer}"
        );
        assert!(
            answer.contains("REQUEST_NOT_UNDERSTOOD_FAILURE"),
            "{answer}"
        );
    }
}
