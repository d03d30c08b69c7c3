//! Peers that mean no good, or can't do better.

use std::time::Duration;

use tokio::time::timeout;

use super::Site;
use crate::{
    BusError, StompLimits, StompServer,
    stomp::{
        frame::{Frame, StompCommand},
        testing::{DEADLINE, Peer},
    },
};

const CONNECT: &[u8] = b"CONNECT\naccept-version:1.2\nhost:here\n\n\0";

async fn refused(bytes: &[u8], name: &str) {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.dial().await;
    peer.raw(bytes).await;
    peer.expect_error(name).await;
}

async fn refused_after_connect(bytes: &[u8], name: &str) {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    peer.raw(bytes).await;
    peer.expect_error(name).await;
}

#[tokio::test]
async fn anything_before_connect_is_refused() {
    refused(b"SEND\ndestination:/queue/q\n\nx\0", "INVALID").await;
    refused(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n", "INVALID").await;
    refused(
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03random bytes of a TLS hello",
        "LIMIT",
    )
    .await;
}

#[tokio::test]
async fn b12_limits_before_connect_are_small() {
    refused(
        &[b"CONNECT\na:".to_vec(), vec![b'x'; 17 << 10]].concat(),
        "LIMIT",
    )
    .await;
    let flood: Vec<u8> = (0..100)
        .flat_map(|n| format!("h{n}:1\n").into_bytes())
        .collect();
    refused(&[b"CONNECT\n".to_vec(), flood].concat(), "LIMIT").await;
    refused(b"SEND\ncontent-length:17000\n\n", "LIMIT").await;
    refused(&[b'A'; 100], "LIMIT").await;
}

#[tokio::test]
async fn limits_after_connect() {
    refused_after_connect(
        &[b"SEND\na:".to_vec(), vec![b'x'; 65 << 10]].concat(),
        "LIMIT",
    )
    .await;
    let flood: Vec<u8> = (0..300)
        .flat_map(|n| format!("h{n}:1\n").into_bytes())
        .collect();
    refused_after_connect(&[b"SEND\n".to_vec(), flood].concat(), "LIMIT").await;
    refused_after_connect(b"SEND\ncontent-length:18446744073709551615\n\n", "LIMIT").await;
    refused_after_connect(b"SEND\ncontent-length:16777217\n\n", "LIMIT").await;
    for header in ["receipt", "id", "transaction"] {
        let frame = format!("SUBSCRIBE\n{header}:{}\n\n\0", "x".repeat(1025));
        refused_after_connect(frame.as_bytes(), "LIMIT").await;
    }
}

#[tokio::test]
async fn broken_frames_after_connect() {
    refused_after_connect(b"send\n\n\0", "INVALID").await;
    refused_after_connect(b"SEND\na:\\t\n\n\0", "INVALID").await;
    refused_after_connect(b"SEND\ndestination:/queue/q\n\na\0b\0\n", "INVALID").await;
    refused_after_connect(b"SEND\ncontent-length:2\n\nabc\0", "INVALID").await;
    refused_after_connect(CONNECT, "INVALID").await;
    refused_after_connect(b"MESSAGE\n\n\0", "INVALID").await;
    refused_after_connect(b"SEND\ndestination:/queue/a,b\n\n\0", "INVALID").await;
    refused_after_connect(b"UNSUBSCRIBE\nid:1\n\n\0", "BAD-ID").await;
    refused_after_connect(b"COMMIT\ntransaction:t\n\n\0", "TX-UNKNOWN").await;
    refused_after_connect(b"ACK\nid:1\n\n\0", "STALE-ACK").await;
    refused_after_connect(b"ACK\nid:none of yours\n\n\0", "STALE-ACK").await;
}

#[tokio::test]
async fn versions_without_overlap_are_told() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.dial().await;
    peer.send(Frame::new(StompCommand::Connect).with("accept-version", "1.0,1.1"))
        .await;
    let error = peer.expect_error("VERSION").await;
    assert_eq!(error.header("version"), Some("1.2"));
}

#[tokio::test]
async fn b12_no_connect_in_time() {
    let limits = StompLimits {
        connect_deadline: Duration::from_millis(100),
        ..StompLimits::default()
    };
    let site = Site::start(limits).await;
    let mut silent = site.dial().await;
    silent.expect_error("TIMEOUT").await;
    // A byte now and then does not help.
    let mut slow = site.dial().await;
    let dripping = async {
        for byte in CONNECT.iter().chain(CONNECT) {
            slow.raw(&[*byte]).await;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        slow
    };
    dripping.await.expect_error("TIMEOUT").await;
}

#[tokio::test]
async fn e44_a_frame_that_is_begun_must_go_on() {
    let limits = StompLimits {
        read_stall: Duration::from_millis(100),
        ..StompLimits::default()
    };
    let site = Site::start(limits).await;
    // Between frames a client may be silent for as long as it likes.
    let mut idle = site.connect("").await;
    let mut stalled = site.connect("").await;
    stalled
        .raw(b"SEND\ndestination:/queue/q\ncontent-length:100\n\nhalf")
        .await;
    assert_eq!(stalled.next().await, None);
    let send = Frame::new(StompCommand::Send).with("destination", "/queue/q");
    idle.ask(send).await;
}

#[tokio::test]
async fn silent_clients_are_given_up_and_beating_ones_are_not() {
    let limits = StompLimits {
        heart_beat: Duration::from_millis(100),
        ..StompLimits::default()
    };
    let site = Site::start(limits).await;
    let connect = |id: &str| {
        Frame::new(StompCommand::Connect)
            .with("accept-version", "1.2")
            .with("client-id", id)
            .with("heart-beat", "500,100")
    };
    let mut beating = site.dial().await;
    beating.send(connect("beating")).await;
    let connected = beating.expect(StompCommand::Connected).await;
    assert_eq!(connected.header("heart-beat"), Some("100,100"));
    let mut silent = site.dial().await;
    silent.send(connect("silent")).await;
    silent.expect(StompCommand::Connected).await;
    // The client's interval is the longer one: it may be silent for twice 500 ms.
    let beats = async {
        loop {
            beating.raw(b"\n").await;
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::select! {
        () = beats => {}
        end = silent.next() => assert_eq!(end, None),
    }
    beating
        .ask(Frame::new(StompCommand::Send).with("destination", "/queue/q"))
        .await;
    // Its client id is free again.
    site.connect("silent").await;
}

#[tokio::test]
async fn connections_are_bounded() {
    let limits = StompLimits {
        connections: 2,
        ..StompLimits::default()
    };
    let site = Site::start(limits).await;
    let first = site.connect("").await;
    let _second = site.connect("").await;
    let mut third = site.dial().await;
    third.expect_error("LIMIT").await;
    drop(first);
    // Its place is free as soon as the server has seen the end.
    for _ in 0..200 {
        let mut next = site.dial().await;
        next.send(Frame::new(StompCommand::Connect).with("accept-version", "1.2"))
            .await;
        let answer = next.next().await.unwrap();
        if answer.command == StompCommand::Connected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no place became free");
}

#[tokio::test]
async fn subscriptions_and_transactions_are_bounded() {
    let limits = StompLimits {
        subscriptions: 1,
        transactions: 1,
        ..StompLimits::default()
    };
    let site = Site::start(limits).await;
    let subscribe = |id: &str| {
        Frame::new(StompCommand::Subscribe)
            .with("id", id)
            .with("destination", "/topic/t")
    };
    let mut peer = site.connect("").await;
    peer.ask(subscribe("1")).await;
    peer.send(subscribe("2")).await;
    peer.expect_error("LIMIT").await;
    let mut peer = site.connect("").await;
    peer.ask(Frame::new(StompCommand::Begin).with("transaction", "a"))
        .await;
    peer.send(Frame::new(StompCommand::Begin).with("transaction", "b"))
        .await;
    peer.expect_error("LIMIT").await;
}

/// Memory stays bounded and others are served, whatever one client does not read.
#[tokio::test]
async fn a_client_that_reads_nothing_harms_nobody() {
    let limits = StompLimits {
        write_stall: Duration::from_millis(300),
        ..StompLimits::default()
    };
    let site = Site::start(limits).await;
    let subscribe = Frame::new(StompCommand::Subscribe)
        .with("id", "1")
        .with("destination", "/topic/t");
    let mut deaf = site.connect("").await;
    deaf.ask(subscribe.clone()).await;
    let mut listening = site.connect("").await;
    listening.ask(subscribe).await;
    let mut sender = site.connect("").await;
    for _ in 0..64 {
        let mut send = Frame::new(StompCommand::Send).with("destination", "/topic/t");
        send.body = vec![b'x'; 256 << 10].into();
        sender.ask(send).await;
        listening.expect(StompCommand::Message).await;
    }
    // It is disconnected in the end, after what the sockets could hold.
    let disconnected = async {
        while site.broker.stats().connections > 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(DEADLINE, disconnected).await.unwrap();
    while deaf.next().await.is_some() {}
}

#[tokio::test]
async fn a_busy_port_is_named() {
    let site = Site::start(StompLimits::default()).await;
    let address = site.address();
    let error = StompServer::start(&[address], site.broker.clone(), StompLimits::default())
        .await
        .unwrap_err();
    assert!(matches!(error, BusError::Io { .. }));
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn what_came_before_a_bad_frame_counts() {
    let site = Site::start(StompLimits::default()).await;
    let mut peer = site.connect("").await;
    peer.raw(b"SEND\ndestination:/queue/q\npersistent:true\n\nkept\0garbage\n\n\0")
        .await;
    peer.expect_error("INVALID").await;
    let mut reader: Peer = site.connect("").await;
    let subscribe = Frame::new(StompCommand::Subscribe)
        .with("id", "1")
        .with("destination", "/queue/q");
    reader.ask(subscribe).await;
    assert_eq!(reader.expect(StompCommand::Message).await.body, "kept");
}
