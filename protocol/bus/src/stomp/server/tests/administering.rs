//! The administration, as operators and others on the wire have it.

use pillarbox_messages::Destination;

use super::{
    Site,
    clients::{client, persistent},
    sessions::{message, send, subscribe},
};
use crate::{
    Bus, BusError, ConnectOptions, StompLimits,
    admin::{Administration, Answer, Filter, Request},
    stomp::{
        frame::{Frame, StompCommand},
        testing::Peer,
    },
};

fn asking(body: &'static str) -> Frame {
    send("/queue/~admin", body)
        .with("reply-to", "/temp-queue/answers")
        .with("correlation-id", "c-1")
}

async fn answer(peer: &mut Peer, body: &'static str) -> Answer {
    let receipt = peer.ask(asking(body)).await;
    assert_eq!(receipt.header("q-unroutable"), None);
    let answer = message(peer).await;
    assert_eq!(answer.header("correlation-id"), Some("c-1"));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    serde_json::from_slice(&answer.body).unwrap()
}

#[tokio::test]
async fn any_client_may_ask_and_a_bad_request_costs_no_connection() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = Peer::dial(site.address()).await;
    peer.send(Frame::new(StompCommand::Connect).with("accept-version", "1.2"))
        .await;
    let connected = peer.expect(StompCommand::Connected).await;
    assert_eq!(connected.header("q-admin"), Some("true"));
    let answers = subscribe("a", "/temp-queue/answers", "auto");
    peer.ask(answers).await;
    peer.ask(send("/queue/q", "waits")).await;
    for body in ["nonsense", "", r#"{"op":"queue-list","x":1}"#] {
        let Answer::Error { name, .. } = answer(&mut peer, body).await else {
            panic!("no error");
        };
        assert_eq!(name, "INVALID");
    }
    let list = r#"{"op":"queue-list"}"#;
    let Answer::Queues(queues) = answer(&mut peer, list).await else {
        panic!("no queues");
    };
    let own = queues.queues.iter().find(|it| it.name == "/queue/q");
    assert_eq!(own.map(|it| it.messages), Some(1));
    // Nobody could be answered.
    let receipt = peer.ask(send("/queue/~admin", list)).await;
    assert_eq!(receipt.header("q-unroutable"), Some("true"));
    let delete = r#"{"op":"msg-delete","queue":"q","filter":{}}"#;
    let Answer::Done(done) = answer(&mut peer, delete).await else {
        panic!("not done");
    };
    assert_eq!(done.done, 1);
    peer.send(subscribe("x", "/queue/~admin", "auto")).await;
    peer.expect_error("INVALID").await;
}

async fn pages(admin: &mut Administration) -> usize {
    let (mut count, mut after) = (0, None);
    loop {
        let request = Request::MsgList {
            queue: "q".to_owned(),
            filter: Filter::default(),
            after,
            limit: Some(2),
        };
        let Ok(Answer::Messages(page)) = admin.ask(request).await else {
            panic!("no messages");
        };
        count += page.messages.len();
        after = page.after;
        if after.is_none() {
            return count;
        }
    }
}

#[tokio::test]
async fn in_process_and_over_stomp_it_is_asked_in_the_same_way() {
    let site = Site::start(StompLimits::default()).await;
    let stomp = client(&site, "operator");
    let connect = ConnectOptions {
        client_id: "local".to_owned(),
    };
    let embedded = Bus::embedded(&site.broker, connect).unwrap();
    let mut told = Vec::new();
    for bus in [&embedded, &stomp] {
        for number in 0..5_u8 {
            let sent = persistent(Destination::queue("q"), vec![number]);
            stomp.publish(sent).await.unwrap();
        }
        let mut admin = bus.administration().await.unwrap();
        assert_eq!(pages(&mut admin).await, 5);
        let show = |queue: &str| Request::QueueShow {
            queue: queue.to_owned(),
        };
        assert!(matches!(admin.ask(show("q")).await, Ok(Answer::Queue(_))));
        let error = admin.ask(show("none")).await.unwrap_err();
        assert_eq!(error.name(), "NO-QUEUE");
        let text = match error {
            BusError::Refused { detail, .. } => detail,
            other => other.to_string(),
        };
        told.push(text);
        let delete = Request::MsgDelete {
            queue: "q".to_owned(),
            ids: None,
            filter: Some(Filter::default()),
            after: None,
        };
        let Ok(Answer::Done(done)) = admin.ask(delete).await else {
            panic!("not done");
        };
        assert_eq!(done.done, 5);
    }
    assert_eq!(told[0], told[1]);
}
