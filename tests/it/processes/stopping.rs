//! SIGTERM: what can be finished is finished, the rest goes back to its queue, uncounted.

use std::{
    collections::BTreeMap,
    net::TcpListener,
    path::PathBuf,
    time::{Duration, Instant},
};

use pillarbox_messages::ResponseCode;

use crate::support::{
    noise,
    peers::{Peer, Put},
    process::Running,
    site::Site,
    slow_exchange::SlowExchange,
    until,
};

#[test]
fn idle_parts_end_at_once() {
    let site = Site::new(&["north"]);
    let hub = site.start("hub");
    let north = site.start("north");
    let alarms = site.start("alarms");
    for mut part in [north, alarms, hub] {
        let asked = Instant::now();
        part.terminate();
        part.wait_for_success();
        assert!(
            asked.elapsed() < Duration::from_secs(2),
            "{:?}",
            asked.elapsed()
        );
    }
}

#[test]
fn a_pillar_that_waits_for_its_bus_ends_at_once() {
    let site = Site::new(&["north"]);
    let bus = TcpListener::bind(("127.0.0.1", site.bus_port)).unwrap();
    let mut north = Running::starting_node(&site.part("north"));
    let _attempt = bus.accept().unwrap();
    stop_within(&mut north, Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn requests_that_cannot_be_finished_go_back_uncounted() {
    let content = noise(20, 4 << 20);
    let exchange = SlowExchange::start(content.clone(), &[3 << 20, 2 << 20]);
    let site = Site::new(&["north"]);
    site.allow_hosts("north", &[exchange.host()]);
    let _hub = site.start("hub");
    let mut north = site.start("north");
    let client = Peer::client(&site, "tester").await;
    let mut replies = client.listen(client.address()).await;
    // The second waits for the first, since it is about the same file; the third is in the middle of its own.
    let requests = [("c-1", "a.bin"), ("c-2", "a.bin"), ("c-3", "b.bin")].map(|(id, file)| {
        let put = Put {
            correlation: id,
            content: &content,
            address: exchange.file_address(),
        };
        client.put_request("north", file, &put)
    });
    for request in &requests {
        client.send(request.clone()).await;
    }
    let _stalled = [exchange.stalled(), exchange.stalled()];
    until("both transfers have begun", || {
        site.half_received("north").len() == 2
    });

    stop_within(&mut north, Duration::from_secs(3));
    assert_eq!(site.half_received("north"), Vec::<PathBuf>::new());
    let mut queue = client.listen(client.pillar_destination("north")).await;
    let mut held = Vec::new();
    // The second has never left the queue, and doesn't as long as somebody has the first.
    let [first, _, third] = requests;
    for request in [first, third] {
        let (waiting, delivery) = queue.delivery().await;
        assert_eq!(waiting, request.into());
        let incoming = &delivery.message;
        assert!(incoming.redelivered, "{incoming:?}");
        assert_eq!(incoming.backout_count, 0, "{incoming:?}");
        held.push(delivery);
    }
    drop((held, queue));

    let _north = site.start("north");
    let mut ends = BTreeMap::new();
    while ends.len() < 3 {
        let done = replies
            .until(|it| it.message_type().is_final_response())
            .await;
        let code = done.response_info().unwrap().response_code;
        ends.insert(done.header().correlation_id.to_string(), code);
    }
    let expected = [
        ("c-1", ResponseCode::OperationCompleted),
        ("c-2", ResponseCode::DuplicateFileFailure),
        ("c-3", ResponseCode::OperationCompleted),
    ];
    assert_eq!(
        ends,
        expected.map(|(id, code)| (id.to_owned(), code)).into()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_can_be_finished_is_finished() {
    let content = noise(21, 1024);
    let exchange = SlowExchange::start(content.clone(), &[500]);
    let site = Site::new(&["north"]);
    site.allow_hosts("north", &[exchange.host()]);
    let _hub = site.start("hub");
    let mut north = site.start("north");
    let client = Peer::client(&site, "tester").await;
    let mut replies = client.listen(client.address()).await;
    let put = Put {
        correlation: "c-1",
        content: &content,
        address: exchange.file_address(),
    };
    client
        .send(client.put_request("north", "done.bin", &put))
        .await;
    let stalled = exchange.stalled();
    north.terminate();
    north.wait_for_error("stopping");
    stalled.deliver();
    north.wait_for_success();
    let done = replies
        .until(|it| it.message_type().is_final_response())
        .await;
    let info = done.response_info().unwrap();
    assert_eq!(
        info.response_code,
        ResponseCode::OperationCompleted,
        "{done:?}"
    );
    assert_eq!(site.half_received("north"), Vec::<PathBuf>::new());
}

fn stop_within(part: &mut Running, time: Duration) {
    let asked = Instant::now();
    part.terminate();
    part.wait_for_success();
    assert!(asked.elapsed() < time, "{:?}", asked.elapsed());
}
