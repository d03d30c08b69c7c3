//! Many clients, and many conversations of one.

use std::{process::Command, time::Instant};

use futures_util::{StreamExt as _, stream};
use pillarbox_client::{EventKind, GetChecksums};
use pillarbox_messages::FileId;
use rustix::process::{Pid, Signal, kill_process};

use crate::support::{
    PATIENCE,
    brokers::ActiveMq,
    joined::{Joined, LibraryClient, Scheme},
    noise,
    process::{self, Running, succeed},
    until,
};

#[test]
fn ten_passing_clients_at_once_do_not_disturb_each_other() {
    let site = Joined::new(ActiveMq::shared(), Scheme::Reference);
    let _node = site.start("node");
    let clients: Vec<Running> = (0..10)
        .map(|number| {
            let file = site.file(&format!("{number}.bin"), &noise(number, 1000));
            Running::spawn(site.prepare("put-file", ["-f".into(), file.into_os_string()]))
        })
        .collect();
    for mut client in clients {
        client.wait_for_success();
    }
    let ids = succeed(&site.run("get-file-ids", [""; 0]));
    for number in 0..10 {
        let row = format!("{number}.bin");
        assert!(ids.lines().any(|line| line.contains(&row)), "{ids}");
    }
}

/// Each on a machine of its own, so that only the broker can know.
#[test]
fn of_ten_clients_with_one_name_one_works() {
    let site = Joined::new(ActiveMq::shared(), Scheme::Reference);
    let node = site.start("node");
    // Whoever works goes on working until the others have been told.
    let pillars = Pid::from_raw(i32::try_from(node.id()).unwrap()).unwrap();
    kill_process(pillars, Signal::STOP).unwrap();
    let mut clients: Vec<Running> = (0..10)
        .map(|number| Running::spawn(named(&site, number)))
        .collect();
    until("nine are told", || {
        clients
            .iter_mut()
            .filter_map(|it| it.lives().then_some(()))
            .count()
            == 1
    });
    kill_process(pillars, Signal::CONT).unwrap();
    let ids = site.name("kim");
    let mut working = 0;
    for client in &mut clients {
        let status = client.wait();
        if status.success() {
            working += 1;
            continue;
        }
        assert_eq!(status.code(), Some(255));
        let [line] = client.errors() else {
            panic!("not one line: {:?}", client.errors());
        };
        assert!(line.contains("in use") && line.contains(&ids), "{line}");
    }
    assert_eq!(working, 1);
}

fn named(site: &Joined, number: usize) -> Command {
    let settings = site.other_client(&format!("machine-{number}"));
    let mut command = process::pillarbox(["get-file-ids", "-s"]);
    command.arg(settings).current_dir(site.path());
    command.args(["-c", &site.collection(), "--client-id", &site.name("kim")]);
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_conversations_of_one_client_at_once_all_end() {
    let site = Joined::new(ActiveMq::shared(), Scheme::Reference);
    let _node = site.start("node");
    let file = site.file("one.bin", &noise(1, 1000));
    succeed(&site.run("put-file", ["-f".into(), file.into_os_string()]));
    let client = LibraryClient::of(&site).await;
    let started = Instant::now();
    let conversations = (0..1000).map(|_| {
        let mut ask = GetChecksums::new(client.collection.clone());
        ask.file_id = Some(FileId::from("one.bin"));
        let client = client.client.clone();
        async move {
            let mut ends = 0;
            let running = client.get_checksums(ask).await.expect("starts");
            let outcome = running
                .outcome_with(|event| {
                    let last = matches!(
                        event.kind,
                        EventKind::Complete { .. } | EventKind::Failed { .. }
                    );
                    ends += usize::from(last);
                })
                .await;
            (outcome.complete, ends)
        }
    });
    let ends: Vec<(bool, usize)> = stream::iter(conversations)
        .buffer_unordered(1000)
        .collect()
        .await;
    assert_eq!(ends, [(true, 1); 1000]);
    assert!(started.elapsed() < PATIENCE, "{:?}", started.elapsed());
    client.close().await;
}
