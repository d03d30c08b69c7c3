//! A client without a name leaves nothing.

use pillarbox_bus::{AckMode, SubscribeRequest};
use pillarbox_messages::Message;

use super::stored;
use crate::support::{
    peers::{Peer, StandIn},
    site::Site,
};

/// What is still waiting for a client, up to a message that it sends to itself.
async fn waiting_for(site: &Site, id: &str, marker: Message) -> Vec<Message> {
    let peer = Peer::client(site, id).await;
    let destination = peer.address();
    let repository = peer.component.repository();
    let name = repository.subscription_name(peer.component.id(), &destination);
    let request = SubscribeRequest {
        ack_timeout: None,
        destination,
        durable: Some(name),
        ack: AckMode::Individual,
        prefetch: 100,
    };
    let mut ear = peer.listen_as(request).await;
    peer.send(marker.clone()).await;
    let mut waiting = Vec::new();
    loop {
        let message = ear.message().await;
        if message == marker {
            return waiting;
        }
        waiting.push(message);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_passing_client_leaves_neither_a_file_nor_a_subscription() {
    let site = Site::new(&["played"]);
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    let file = site.file("hello.txt", b"hello\n");
    // Whether it comes to its end or is killed.
    for killed in [false, true] {
        let args = ["-f".as_ref(), file.as_os_str()];
        let mut client = site.start_client("put-file", args);
        let identify = played.identify_request().await;
        played.accept_put(&identify).await;
        let request = played.put_request().await;
        assert!(!site.part("client").join("var").exists());
        if killed {
            client.kill();
        }
        stored(&played, &request).await;
        if !killed {
            client.wait_for_success();
        }
        assert!(!site.part("client").join("var").exists());
        let id = request.header.from.as_str();
        let mut marker = played.put_identification(&identify);
        marker.header.correlation_id = "marker".into();
        let waiting = waiting_for(&site, id, marker.into()).await;
        assert_eq!(waiting, [], "for {id}");
    }
}
