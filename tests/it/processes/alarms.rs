//! Alarms wait for the alarm service.

use pillarbox_messages::Message;
use serde_json::Value;

use crate::support::{
    peers::{Ear, Peer},
    process::{self, Running},
    site::Site,
    until,
    whole::offer,
};

const WRONG: &str = "00112233445566778899aabbccddeeff";

/// A put whose file is not what it is said to be: the pillar refuses it and raises an alarm.
async fn raise_an_alarm(site: &Site, alarms: &mut Ear, file: &str) {
    let address = offer(site.exchange_port, file, b"not that");
    let put = site.run("put-file", ["-u", &address, "-i", file, "-C", WRONG]);
    let line = process::fail_with_one_line(&put, 255);
    assert!(line.contains("NEW_FILE_CHECKSUM_FAILURE"), "{line}");
    let raised = alarms.message().await;
    let Message::AlarmMessage(raised) = raised else {
        panic!("{raised:?}")
    };
    assert_eq!(raised.alarm.file_id, Some(file.into()));
}

#[track_caller]
fn listed(site: &Site, count: usize) -> Vec<Value> {
    let mut rows = Vec::new();
    until("the alarms are listed", || {
        let text = site.alarms_list(&["--json"]);
        rows = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        rows.len() >= count
    });
    rows
}

#[track_caller]
fn assert_row(row: &Value, file: &str) {
    assert_eq!(row["code"], "CHECKSUM_ALARM", "{row}");
    assert_eq!(row["raiser"], "north", "{row}");
    assert_eq!(row["collection_id"], "books", "{row}");
    assert_eq!(row["file_id"], file, "{row}");
    assert_eq!(row["count"], 1, "{row}");
}

async fn alarm_topic(site: &Site) -> (Peer, Ear) {
    let peer = Peer::client(site, "spy").await;
    let repository = peer.component.repository();
    let mut topics = repository.destinations(&"books".into()).alarms();
    let ear = peer.listen(topics.remove(0)).await;
    (peer, ear)
}

/// The alarm service comes and goes, so that the bus knows that it wants the alarms.
fn introduce_alarm_service(site: &Site) {
    let mut service = site.start("alarms");
    service.terminate();
    service.wait_for_success();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_alarm_raised_while_the_service_is_down_is_listed_after_its_return() {
    let site = Site::new(&["north"]);
    let _hub = site.start("hub");
    let _north = site.start("north");
    introduce_alarm_service(&site);
    let (_peer, mut alarms) = alarm_topic(&site).await;
    raise_an_alarm(&site, &mut alarms, "down.bin").await;
    assert_eq!(site.alarms_list(&["--json"]), "");

    let mut service = site.start("alarms");
    assert_row(&listed(&site, 1)[0], "down.bin");
    raise_an_alarm(&site, &mut alarms, "up.bin").await;
    assert_row(&listed(&site, 2)[1], "up.bin");
    let table = site.alarms_list(&["-c", "books"]);
    let heading = "Time: \tCount: \tRaiser: \tCode: \tCollection: \tFileID: \tText:";
    assert_eq!(table.lines().next(), Some(heading));
    assert!(
        table.contains(" \t1 \tnorth \tCHECKSUM_ALARM \tbooks \tdown.bin \t"),
        "{table}"
    );
    service.kill();
    assert_eq!(
        site.alarms_list(&[]).lines().count(),
        3,
        "what is stored outlives the service"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_alarm_outlives_a_bus_that_is_killed_before_the_service_returns() {
    let site = Site::new(&["north"]);
    let mut hub = site.start("hub");
    let _north = site.start("north");
    introduce_alarm_service(&site);
    let (_peer, mut alarms) = alarm_topic(&site).await;
    raise_an_alarm(&site, &mut alarms, "kept.bin").await;
    hub.kill();
    let _hub = site.start("hub");
    let _service: Running = site.start("alarms");
    let rows = listed(&site, 1);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_row(&rows[0], "kept.bin");
}
