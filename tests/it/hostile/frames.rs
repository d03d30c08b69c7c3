//! Bytes at the bus's port that are no STOMP, or more of it than anybody needs.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::support::{
    PATIENCE,
    stomp::{Frame, Next, Stomp},
    whole::Whole,
};

/// How long a bus may take to refuse what it has read.
const SOON: Duration = Duration::from_secs(10);
/// From the connection to CONNECT, and a bit.
const CONNECT_DEADLINE: Duration = Duration::from_secs(20);
/// Many, but fewer than the bus takes.
const MANY: usize = 300;

const MIB: usize = 1 << 20;
/// What the bus may hold for one plain subscriber comes on top.
const MEMORY_WITH_A_DEAF_READER: u64 = 300 << 20;

/// Asserts that the bus answers these bytes, the first of a connection, with ERROR and closes.
#[track_caller]
fn refused_first(port: u16, what: &str, bytes: &[u8]) -> Frame {
    let mut stomp = Stomp::open(port);
    // The bus may close before it has read everything.
    let _ = stomp.write(bytes);
    error(&mut stomp, what)
}

/// The same, after a good CONNECT.
#[track_caller]
fn refused(port: u16, what: &str, bytes: &[u8]) -> Frame {
    let mut stomp = Stomp::connect(port, None);
    let _ = stomp.write(bytes);
    error(&mut stomp, what)
}

#[track_caller]
fn error(stomp: &mut Stomp, what: &str) -> Frame {
    let start = Instant::now();
    let error = stomp.closed(SOON);
    assert!(start.elapsed() < SOON, "{what}");
    error.unwrap_or_else(|| panic!("{what}: closed without ERROR"))
}

fn send(headers: &str, body: &[u8]) -> Vec<u8> {
    let mut frame = format!("SEND\ndestination:/topic/books\n{headers}\n").into_bytes();
    frame.extend(body);
    frame.push(0);
    frame
}

#[test]
fn what_comes_before_connect() {
    let whole = Whole::start(&["north"]);
    let port = whole.site.bus_port;
    for (what, bytes) in [
        ("SEND", send("", b"x")),
        (
            "SUBSCRIBE",
            b"SUBSCRIBE\nid:1\ndestination:/topic/books\n\n\0".to_vec(),
        ),
        ("CONNECTED", b"CONNECTED\nversion:1.2\n\n\0".to_vec()),
        (
            "a web browser",
            b"GET / HTTP/1.1\r\nHost: bus\r\n\r\n".to_vec(),
        ),
        (
            "TLS",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello hello hello\n\n\0".to_vec(),
        ),
        (
            "OpenWire",
            b"\x00\x00\x01\x4a\x01ActiveMQ\x00\x00\x00\x0c\n\n\0".to_vec(),
        ),
        (
            "lower case",
            b"connect\naccept-version:1.2\nhost:x\n\n\0".to_vec(),
        ),
        (
            "an old version",
            b"CONNECT\naccept-version:1.0,1.1\nhost:x\n\n\0".to_vec(),
        ),
        (
            "a bad heart-beat",
            b"CONNECT\naccept-version:1.2\nheart-beat:a,b\n\n\0".to_vec(),
        ),
        (
            "many headers",
            [b"CONNECT\n".as_slice(), &b"a:b\n".repeat(10_000), b"\n\0"].concat(),
        ),
        (
            "a long header",
            [b"CONNECT\na:".as_slice(), &vec![b'x'; MIB]].concat(),
        ),
        ("a long command", vec![b'X'; MIB]),
        (
            "a body",
            [
                b"CONNECT\naccept-version:1.2\ncontent-length:1048576\n\n".as_slice(),
                &[0; MIB],
            ]
            .concat(),
        ),
    ] {
        refused_first(port, what, &bytes);
    }
    whole.assert_well();
}

#[test]
fn broken_frames_of_a_connected_client() {
    let whole = Whole::start(&["north"]);
    let port = whole.site.bus_port;
    for (what, bytes) in [
        (
            "an unknown command",
            b"SHOUT\ndestination:/topic/books\n\nx\0".to_vec(),
        ),
        (
            "a server's command",
            b"MESSAGE\ndestination:/topic/books\n\nx\0".to_vec(),
        ),
        (
            "a second CONNECT",
            b"CONNECT\naccept-version:1.2\nhost:x\n\n\0".to_vec(),
        ),
        ("NUL in a header", send("a\0b:c\n", b"x")),
        ("NUL in a value", send("a:b\0c\n", b"x")),
        ("an undefined escape", send("a:b\\tc\n", b"x")),
        ("half an escape", send("a:b\\\n", b"x")),
        ("no colon", send("abc\n", b"x")),
        ("no name", send(":abc\n", b"x")),
        (
            "no UTF-8",
            [b"SEND\ndestination:/topic/books\na:\xff\xfe\n\nx\0".as_slice()].concat(),
        ),
        ("a length in words", send("content-length:many\n", b"x")),
        ("a negative length", send("content-length:-1\n", b"x")),
        ("a wrong length", send("content-length:2\n", b"xyz")),
        ("no destination", b"SEND\n\nx\0".to_vec()),
        (
            "an empty destination",
            b"SEND\ndestination:\n\nx\0".to_vec(),
        ),
        (
            "no such kind",
            b"SEND\ndestination:/heap/books\n\nx\0".to_vec(),
        ),
        ("an ACK of nothing", b"ACK\nid:nosuch\n\n\0".to_vec()),
        ("a NACK of nothing", b"NACK\nid:nosuch\n\n\0".to_vec()),
        (
            "a COMMIT of nothing",
            b"COMMIT\ntransaction:nosuch\n\n\0".to_vec(),
        ),
        (
            "an unknown subscription",
            b"UNSUBSCRIBE\nid:nosuch\n\n\0".to_vec(),
        ),
        (
            "an unknown queue",
            b"SUBSCRIBE\nid:1\ndestination:/queue/nosuch\n\n\0".to_vec(),
        ),
        (
            "a body where none is",
            b"SUBSCRIBE\nid:1\ndestination:/topic/books\n\nx\0".to_vec(),
        ),
    ] {
        let error = refused(port, what, &bytes);
        assert!(error.header("message").is_some(), "{what}: {error:?}");
    }
    whole.assert_well();
}

#[test]
fn floods() {
    let whole = Whole::start(&["north"]);
    let port = whole.site.bus_port;
    let huge = format!("content-length:{}\n", u64::MAX);
    for (what, bytes) in [
        ("10,000 headers", send(&"a:b\n".repeat(10_000), b"x")),
        ("an endless header", send(&"x".repeat(20 * MIB), b"x")),
        (
            "an endless value",
            send(&format!("a:{}", "x".repeat(20 * MIB)), b"x"),
        ),
        ("an endless command", vec![b'S'; 20 * MIB]),
        ("a giant content-length", send(&huge, b"x")),
        (
            "a length beyond all",
            send("content-length:99999999999999999999999\n", b"x"),
        ),
        (
            "100 headers of 60 KiB",
            send(&format!("a:{}\n", "x".repeat(60 << 10)).repeat(100), b"x"),
        ),
        ("a body without an end", send("", &vec![b'x'; 20 * MIB])),
    ] {
        refused(port, what, &bytes);
    }
    whole.assert_well();
}

#[test]
fn bodies_of_200_megabytes() {
    let whole = Whole::start(&["north"]);
    let port = whole.site.bus_port;
    let body = vec![b'x'; 200 * MIB];
    let announced = send(&format!("content-length:{}\n", body.len()), &body);
    refused(port, "200 MB announced", &announced);
    drop(announced);
    let endless = send("", &body);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| refused(port, "200 MB without a length", &endless));
        }
    });
    whole.assert_well();
}

#[test]
fn those_who_connect_and_say_nothing() {
    let whole = Whole::start(&["north"]);
    let port = whole.site.bus_port;
    let mut silent = Stomp::open(port);
    let mut hesitant = Stomp::open(port);
    hesitant
        .write(b"CONNECT\naccept-version:1.2\n")
        .expect("the bus reads");
    let mut dripping = Stomp::open(port);
    let start = Instant::now();
    // A byte now and then doesn't buy more time.
    while start.elapsed() < CONNECT_DEADLINE {
        let _ = dripping.write(b"\n");
        if !matches!(dripping.next(Duration::from_millis(200)), Next::Nothing) {
            break;
        }
    }
    assert!(start.elapsed() < CONNECT_DEADLINE, "still open");
    silent.closed(CONNECT_DEADLINE);
    hesitant.closed(CONNECT_DEADLINE);
    assert!(
        start.elapsed() < CONNECT_DEADLINE,
        "took {:?}",
        start.elapsed()
    );
    whole.assert_well();
}

#[test]
fn many_connections_at_once() {
    let whole = Whole::start(&["north"]);
    let port = whole.site.bus_port;
    let connected: Vec<Stomp> = (0..MANY).map(|_| Stomp::connect(port, None)).collect();
    let silent: Vec<Stomp> = (0..MANY).map(|_| Stomp::open(port)).collect();
    // All others are served meanwhile, and after all these are gone without a word.
    whole.assert_well();
    drop((connected, silent));
    let mut last = Stomp::connect(port, None);
    last.send("/topic/books", &[], b"still there?");
}

#[test]
fn connections_that_break_off() {
    let whole = Whole::start(&["north"]);
    let port = whole.site.bus_port;
    let frame = send("content-length:1000\nreceipt:r\n", &[b'x'; 1000]);
    for cut in [
        1,
        4,
        5,
        20,
        frame.len() - 1001,
        frame.len() - 500,
        frame.len() - 1,
    ] {
        let mut stomp = Stomp::connect(port, None);
        stomp.write(&frame[..cut]).expect("the bus reads");
        stomp.end_of_input();
        stomp.closed(SOON);
    }
    whole.assert_well();
}

#[test]
fn a_reader_that_does_not_read() {
    let whole = Whole::start(&["north"]);
    let port = whole.site.bus_port;
    let mut deaf = Stomp::connect(port, None);
    deaf.subscribe("/topic/books");
    let mut sender = Stomp::connect(port, None);
    // More than sockets and the bus hold for one subscriber.
    let body = vec![b'x'; MIB / 2];
    for _ in 0..600 {
        sender.send("/topic/books", &[], &body);
    }
    // Nothing of it slows the others down, and it is not kept for ever.
    whole.assert_well_within(MEMORY_WITH_A_DEAF_READER);
    let error = deaf.closed(PATIENCE).expect("is told why");
    assert_eq!(
        error.header("message"),
        Some("SLOW-CONSUMER"),
        "{}",
        error.text()
    );
}
