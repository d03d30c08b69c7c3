//! SIGTERM: what can be finished is finished, the rest goes back to its queue, uncounted.

use std::{
    path::PathBuf,
    time::{Duration, Instant},
};

use pillarbox_messages::ResponseCode;

use crate::support::{
    noise,
    peers::{Peer, Put, is},
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

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_request_in_the_middle_of_a_transfer_goes_back_uncounted() {
    let content = noise(20, 4 << 20);
    let exchange = SlowExchange::start(content.clone(), &[3 << 20]);
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
    let request = client.put_request("north", "slow.bin", &put);
    client.send(request.clone()).await;
    replies
        .until(|it| is(it, "PutFileProgressResponse", "north"))
        .await;
    let _stalled = exchange.stalled();
    until("the transfer has begun", || {
        !site.half_received("north").is_empty()
    });

    stop_within(&mut north, Duration::from_secs(3));
    assert_eq!(site.half_received("north"), Vec::<PathBuf>::new());
    let mut queue = client.listen(client.pillar_destination("north")).await;
    let (waiting, delivery) = queue.delivery().await;
    assert_eq!(waiting, request.into());
    let incoming = &delivery.message;
    assert!(incoming.redelivered, "{incoming:?}");
    assert_eq!(incoming.backout_count, 0, "{incoming:?}");
    drop((delivery, queue));

    let _north = site.start("north");
    let done = replies
        .until(|it| it.message_type().is_final_response())
        .await;
    let info = done.response_info().unwrap();
    assert_eq!(
        info.response_code,
        ResponseCode::OperationCompleted,
        "{done:?}"
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
