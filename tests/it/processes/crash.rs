//! Parts that are killed in the middle of something.

use std::path::PathBuf;

use pillarbox_messages::ResponseCode;

use crate::support::{
    md5, noise,
    peers::{Peer, Put, StandIn, is},
    process,
    site::Site,
    slow_exchange::SlowExchange,
    until,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_pillar_killed_between_identification_and_request_does_it_when_it_is_back() {
    let site = Site::new(&["north", "south", "west", "played"]);
    let _hub = site.start("hub");
    let mut north = site.start("north");
    let _others = ["south", "west"].map(|part| site.start(part));
    let mut played = StandIn::join(&site, "played").await;
    let spy = Peer::client(&site, "spy").await;
    let replies = spy.component.repository().destinations(&"books".into());
    let replies = replies.client(&"ingest-1".into(), None);
    let mut replies = spy.listen(replies).await;

    let content = noise(10, 3000);
    let file = site.file("late.bin", &content);
    let args = [
        "-f".as_ref(),
        file.as_os_str(),
        "--client-id".as_ref(),
        "ingest-1".as_ref(),
    ];
    let mut client = site.start_client("put-file", args);
    let identify = played.identify_request().await;
    let identified = "IdentifyPillarsForPutFileResponse";
    replies
        .until(|message| is(message, identified, "north"))
        .await;
    north.kill();
    played.accept_put(&identify).await;

    let request = played.put_request().await;
    played
        .end_put(&request, ResponseCode::OperationCompleted)
        .await;
    let mut stored = Vec::new();
    while stored.len() < 3 {
        let done = replies
            .until(|it| it.message_type().is_final_response())
            .await;
        let info = done.response_info().unwrap();
        assert_eq!(
            info.response_code,
            ResponseCode::OperationCompleted,
            "{done:?}"
        );
        stored.push(done.header().from.to_string());
    }
    stored.sort();
    assert_eq!(stored, ["played", "south", "west"]);
    assert!(client.lives(), "it waits for north: {:?}", client.errors());

    let _north = site.start("north");
    client.wait_for_success();
    let listed = process::succeed(&site.run("get-checksums", ["-i", "late.bin", "-p", "north"]));
    assert!(listed.contains(&md5(&content)), "{listed}");
    assert_eq!(site.offered(), Vec::<PathBuf>::new());
}

/// A pillar is killed after `received` bytes of the file; a kill leaves this in its temporary directory.
async fn killed_in_the_middle(content: &[u8], received: usize, left_behind: usize) {
    let exchange = SlowExchange::start(content.to_vec(), &[received]);
    let site = Site::new(&["north"]);
    site.allow_hosts("north", &[exchange.host()]);
    let _hub = site.start("hub");
    let mut north = site.start("north");
    let client = Peer::client(&site, "tester").await;
    let mut replies = client.listen(client.address()).await;
    let put = Put {
        correlation: "c-1",
        content,
        address: exchange.file_address(),
    };
    client
        .send(client.put_request("north", "half.bin", &put))
        .await;
    let _stalled = exchange.stalled();
    until("half the file has been received", || {
        site.half_received("north").len() == left_behind
    });
    north.kill();
    assert_eq!(site.half_received("north").len(), left_behind);

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
    assert_eq!(site.half_received("north"), Vec::<PathBuf>::new());
    let stored = site.archive("north").join("fileDir").join("half.bin");
    assert!(std::fs::read(stored).unwrap() == content);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_small_put_killed_in_the_middle_of_the_transfer_succeeds_after_the_restart() {
    killed_in_the_middle(&noise(11, 1024), 500, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_large_put_killed_in_the_middle_of_the_transfer_succeeds_after_the_restart() {
    killed_in_the_middle(&noise(12, 4 << 20), 3 << 20, 1).await;
}
