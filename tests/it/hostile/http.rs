//! Requests to the file exchange that no client of ours would send.

use std::{
    io::{Read as _, Write as _},
    net::{Shutdown, TcpStream},
    time::Duration,
};

use crate::support::{
    until,
    whole::{NO_FILES, Whole, cut_off_http, http, path_of, raw_http},
};

const TOKEN: &str = "3f2504e0-4f89-41d3-9a0c-0305e82c3301";

/// Statuses that say no, and blame the sender.
fn is_refusal(status: u16) -> bool {
    (400..500).contains(&status)
}

#[test]
fn paths_that_lead_out() {
    let whole = Whole::start(&["north"]);
    let port = whole.site.exchange_port;
    for path in [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "//etc/passwd",
        "/etc/passwd",
        "/",
        "*",
        "/x/f",
        "/%00/f",
        "/%zz/f",
        "/files",
        &format!("/{TOKEN}"),
        &format!("/{TOKEN}/"),
        &format!("/{TOKEN}//f"),
        &format!("/{TOKEN}-"),
        &format!("/{TOKEN}-f/f"),
    ] {
        for method in ["GET", "HEAD", "PUT", "DELETE"] {
            let (status, body) = http(port, method, path, b"x");
            assert!(is_refusal(status), "{method} {path}: {status}");
            assert!(
                !String::from_utf8_lossy(&body).contains("root:"),
                "{method} {path}"
            );
        }
    }
    // With a token, dots are a name like any other: they lead nowhere.
    let names = ["..%2f..%2fup", "%2e%2e", ".hidden", "a%00b"];
    for path in names
        .map(|name| [format!("/{TOKEN}/{name}"), format!("/{TOKEN}-{name}")])
        .concat()
    {
        let (status, _) = http(port, "PUT", &path, b"content");
        assert!(status == 201 || is_refusal(status), "{path}: {status}");
        http(port, "DELETE", &path, b"");
    }
    assert_eq!(whole.exchanged(), NO_FILES);
    assert!(!whole.site.path().join("up").exists());
    whole.assert_well();
}

#[test]
fn methods_and_heads() {
    let whole = Whole::start(&["north"]);
    let port = whole.site.exchange_port;
    let path = format!("/{TOKEN}/f");
    for method in [
        "POST", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "MKCOL", "MOVE", "put", "X",
    ] {
        let (status, _) = http(port, method, &path, b"x");
        assert!(is_refusal(status), "{method}: {status}");
    }
    let (status, _) = http(port, "CONNECT", "127.0.0.1:22", b"");
    assert!(is_refusal(status), "CONNECT: {status}");
    let head =
        |rest: &str| format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{rest}\r\n");
    for (what, bytes) in [
        ("many headers", head(&"a: b\r\n".repeat(10_000)).into_bytes()),
        ("a giant header", head(&format!("a: {}\r\n", "x".repeat(20 << 20))).into_bytes()),
        ("a giant path", format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "x".repeat(20 << 20)).into_bytes()),
        ("two lengths", head("Content-Length: 1\r\nContent-Length: 2\r\n").into_bytes()),
        ("length and chunks", format!("PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\nZ\r\n").into_bytes()),
        ("a length in words", head("Content-Length: many\r\n").into_bytes()),
        ("NUL", head("a: b\0c\r\n").into_bytes()),
        ("another version", format!("GET {path} HTTP/9.9\r\n\r\n").into_bytes()),
        ("no HTTP", b"CONNECT\naccept-version:1.2\n\n\0".to_vec()),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
    ] {
        if let Some((status, _)) = cut_off_http(port, &bytes) {
            assert!(is_refusal(status) || status == 505, "{what}: {status}");
        }
    }
    assert_eq!(whole.exchanged(), NO_FILES);
    whole.assert_well();
}

#[test]
fn ranges() {
    let whole = Whole::start(&["north"]);
    let port = whole.site.exchange_port;
    let address = whole.offer("f", b"0123456789");
    let path = path_of(&address);
    let get = |range: &str| {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nRange: {range}\r\n\r\n"
        );
        raw_http(port, request.as_bytes()).expect("an answer")
    };
    assert_eq!(get("bytes=2-4"), (206, b"234".to_vec()));
    assert_eq!(get("bytes=-3"), (206, b"789".to_vec()));
    assert_eq!(get("bytes=7-99999999999"), (206, b"789".to_vec()));
    for beyond in ["bytes=10-", "bytes=99999999999999999999-", "bytes=-0"] {
        assert_eq!(get(beyond).0, 416, "{beyond}");
    }
    // What is no range is as good as none.
    for nonsense in [
        "bytes=",
        "bytes=a-b",
        "bytes=4-2",
        "lines=1-2",
        "bytes=--",
        "2-4",
    ] {
        let (status, body) = get(nonsense);
        assert!(
            (status, body.as_slice()) == (200, b"0123456789") || status == 416,
            "{nonsense}: {status}"
        );
    }
    let many = format!("bytes={}", vec!["0-9"; 1000].join(","));
    let (status, body) = get(&many);
    assert!(
        body.len() <= 10 && status != 500,
        "{status}, {} bytes",
        body.len()
    );
    whole.assert_well();
}

#[test]
fn uploads_that_break_off() {
    let whole = Whole::start(&["north"]);
    let port = whole.site.exchange_port;
    let path = format!("/{TOKEN}/f");
    let put = |rest: &str| format!("PUT {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{rest}");
    for (what, request) in [
        ("short", put("Content-Length: 100\r\n\r\nonly this")),
        ("no chunk", put("Transfer-Encoding: chunked\r\n\r\n")),
        (
            "half a chunk",
            put("Transfer-Encoding: chunked\r\n\r\n10\r\nhalf"),
        ),
        (
            "no last chunk",
            put("Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n"),
        ),
        (
            "a bad chunk",
            put("Transfer-Encoding: chunked\r\n\r\nmany\r\nhalf\r\n0\r\n\r\n"),
        ),
        (
            "a giant chunk",
            put("Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n"),
        ),
        (
            "more than the disk",
            put(&format!("Content-Length: {}\r\n\r\nx", u64::MAX / 2)),
        ),
        (
            "a part",
            put("Content-Length: 4\r\nContent-Range: bytes 0-3/10\r\n\r\nhalf"),
        ),
    ] {
        if let Some((status, _)) = cut_off_http(port, request.as_bytes()) {
            assert!(is_refusal(status) || status == 507, "{what}: {status}");
        }
        until("nothing is left of the upload", || {
            whole.exchanged().is_empty()
        });
        assert_eq!(http(port, "GET", &path, b"").0, 404, "{what}");
    }
    whole.assert_well();
}

#[test]
fn an_upload_that_breaks_off_leaves_the_file_that_was_there() {
    let whole = Whole::start(&["north"]);
    let port = whole.site.exchange_port;
    let address = whole.offer("f", b"as it was");
    let path = path_of(&address);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("listens");
    let head = format!(
        "PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nas it will never be"
    );
    stream.write_all(head.as_bytes()).expect("is read");
    until("the upload has begun", || whole.exchanged().len() == 2);
    stream.shutdown(Shutdown::Both).expect("a socket");
    until("the upload is gone", || whole.exchanged().len() == 1);
    assert_eq!(http(port, "GET", path, b""), (200, b"as it was".to_vec()));
    whole.assert_well();
}

#[test]
fn those_who_say_nothing_do_not_keep_others_out() {
    let whole = Whole::start(&["north"]);
    let port = whole.site.exchange_port;
    let silent: Vec<TcpStream> = (0..100)
        .map(|number| {
            let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("listens");
            if number % 2 == 0 {
                stream
                    .write_all(b"GET /x HTTP/1.1\r\nHost")
                    .expect("is read");
            }
            stream
        })
        .collect();
    whole.assert_well();
    // They are still there: nobody was cut off to make room.
    for mut stream in silent {
        stream
            .set_read_timeout(Some(Duration::from_millis(1)))
            .expect("a socket");
        assert!(stream.read(&mut [0; 1]).is_err());
    }
}
