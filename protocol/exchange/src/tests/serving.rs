//! The server against clients of any kind.

use std::{
    fs::{File, OpenOptions},
    path::Path,
    time::Duration,
};

use futures_util::stream;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use super::{
    DEADLINE, Fixture, TestClock, client_for, content, fetch, options, path_of, rest_of, status,
    token,
};
use crate::{ExchangeError, ExchangeServer};

const CLOSE: &str = "Host: h\r\nConnection: close\r\n";

#[tokio::test]
async fn statuses_and_headers() {
    let fixture = Fixture::new().await;
    let address = fixture.address();
    let path = path_of(&address);
    let put = format!("PUT /{path} HTTP/1.1\r\n{CLOSE}Content-Length: 5\r\n\r\nhello");
    assert!(fixture.raw(&put).await.starts_with("HTTP/1.1 201 "));
    assert!(fixture.raw(&put).await.starts_with("HTTP/1.1 204 "));

    let get = |headers: &str| format!("GET /{path} HTTP/1.1\r\n{CLOSE}{headers}\r\n");
    let whole = fixture.raw(&get("")).await;
    assert!(
        whole.starts_with("HTTP/1.1 200 ") && whole.ends_with("\r\n\r\nhello"),
        "{whole}"
    );
    assert!(whole.contains("accept-ranges: bytes\r\n"), "{whole}");
    assert!(whole.contains("content-length: 5\r\n"), "{whole}");

    let part = fixture.raw(&get("Range: bytes=1-2\r\n")).await;
    assert!(
        part.starts_with("HTTP/1.1 206 ") && part.ends_with("\r\n\r\nel"),
        "{part}"
    );
    assert!(part.contains("content-range: bytes 1-2/5\r\n"), "{part}");
    let suffix = fixture.raw(&get("Range: bytes=-2\r\n")).await;
    assert!(
        suffix.starts_with("HTTP/1.1 206 ") && suffix.ends_with("\r\n\r\nlo"),
        "{suffix}"
    );
    let beyond = fixture.raw(&get("Range: bytes=5-\r\n")).await;
    assert!(beyond.starts_with("HTTP/1.1 416 "), "{beyond}");
    assert!(beyond.contains("content-range: bytes */5\r\n"), "{beyond}");
    let conditional = fixture
        .raw(&get("Range: bytes=1-2\r\nIf-Range: \"x\"\r\n"))
        .await;
    assert!(conditional.ends_with("\r\n\r\nhello"), "{conditional}");

    let head = fixture.raw(&get("").replace("GET", "HEAD")).await;
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    assert!(head.contains("content-length: 5\r\n"), "{head}");
    let delete = get("").replace("GET", "DELETE");
    assert!(fixture.raw(&delete).await.starts_with("HTTP/1.1 204 "));
    assert!(fixture.raw(&delete).await.starts_with("HTTP/1.1 404 "));
}

#[tokio::test]
async fn what_has_no_token_is_refused() {
    let fixture = Fixture::new().await;
    let token = token();
    for path in [
        "/",
        "/file",
        "/short/file",
        "/../file",
        &format!("/{token}"),
        &format!("/{token}/"),
        &format!("/{token}-"),
        &format!("/{token}x"),
        &format!("/{token}-x/y"),
    ] {
        let put = format!("PUT {path} HTTP/1.1\r\n{CLOSE}Content-Length: 1\r\n\r\nx");
        assert!(
            fixture.raw(&put).await.starts_with("HTTP/1.1 403 "),
            "{path}"
        );
        for method in ["GET", "HEAD", "DELETE"] {
            let request = format!("{method} {path} HTTP/1.1\r\n{CLOSE}\r\n");
            assert!(
                fixture.raw(&request).await.starts_with("HTTP/1.1 404 "),
                "{method} {path}"
            );
        }
    }
    assert_eq!(fixture.on_server(), (vec![], vec![]));
}

#[tokio::test]
async fn names_lead_nowhere_else() {
    let fixture = Fixture::new().await;
    let token = token();
    for last in [
        "../../x",
        "%2e%2e/%2e%2e/y",
        "..%2f..%2fx",
        "%2Fetc%2Fx",
        "a%00b",
    ] {
        let path = format!("/{token}/{last}");
        let put = format!("PUT {path} HTTP/1.1\r\n{CLOSE}Content-Length: 1\r\n\r\nx");
        assert!(
            fixture.raw(&put).await.starts_with("HTTP/1.1 201 "),
            "{path}"
        );
    }
    assert_eq!(fixture.on_server().0.len(), 5);
    assert_eq!(fixture.directory.path().read_dir().unwrap().count(), 3);
}

#[tokio::test]
async fn other_methods_are_refused() {
    let fixture = Fixture::new().await;
    for method in ["POST", "PROPFIND", "OPTIONS", "PATCH"] {
        let request = format!("{method} /{}/x HTTP/1.1\r\n{CLOSE}\r\n", token());
        let answer = fixture.raw(&request).await;
        assert!(answer.starts_with("HTTP/1.1 405 "), "{answer}");
        assert!(
            answer.contains("allow: PUT, GET, HEAD, DELETE\r\n"),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_truncated_upload_leaves_nothing() {
    let fixture = Fixture::new().await;
    for head in ["Content-Length: 100", "Transfer-Encoding: chunked"] {
        let mut stream = TcpStream::connect(fixture.server.local_addr())
            .await
            .unwrap();
        let request = format!(
            "PUT /{}/x HTTP/1.1\r\n{CLOSE}{head}\r\n\r\n5\r\nhello",
            token()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let answer = rest_of(&mut stream).await;
        assert!(!answer.starts_with("HTTP/1.1 2"), "{answer}");
        fixture.becomes_empty().await;
    }
}

#[tokio::test]
async fn a_failed_upload_leaves_the_former_file() {
    let fixture = Fixture::new().await;
    let address = fixture.address();
    fixture
        .client
        .put_bytes(&address, content(10))
        .await
        .unwrap();
    let failing = stream::iter([Ok(content(99)), Err(std::io::ErrorKind::Other.into())]);
    fixture
        .client
        .put_stream(&address, failing, None)
        .await
        .unwrap_err();
    assert_eq!(fetch(&fixture.client, &address).await.unwrap(), content(10));
}

#[tokio::test]
async fn a_part_cannot_be_put() {
    let fixture = Fixture::new().await;
    let headers = "Content-Length: 1\r\nContent-Range: bytes 0-0/2\r\n";
    let put = format!("PUT /{}/x HTTP/1.1\r\n{CLOSE}{headers}\r\nx", token());
    assert!(fixture.raw(&put).await.starts_with("HTTP/1.1 400 "));
    assert_eq!(fixture.on_server(), (vec![], vec![]));
}

#[tokio::test]
async fn stalled_connections_are_cut_off() {
    let fixture = Fixture::with(|options| options.idle_timeout = Duration::from_millis(300)).await;
    let upload = format!(
        "PUT /{}/x HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx",
        token()
    );
    assert!(fixture.raw(&upload).await.starts_with("HTTP/1.1 408 "));
    fixture.becomes_empty().await;
    fixture.raw("GET / HTT").await;
    fixture.raw("").await;
    let kept_alive = fixture.raw("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await;
    assert!(kept_alive.starts_with("HTTP/1.1 404 "), "{kept_alive}");
}

#[tokio::test]
async fn a_download_that_nobody_takes_is_cut_off() {
    let fixture = Fixture::with(|options| options.idle_timeout = Duration::from_millis(500)).await;
    let address = fixture.address();
    fixture
        .client
        .put_bytes(&address, content(30_000_000))
        .await
        .unwrap();
    let mut stream = TcpStream::connect(fixture.server.local_addr())
        .await
        .unwrap();
    let request = format!("GET /{} HTTP/1.1\r\n{CLOSE}\r\n", path_of(&address));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut first = [0];
    stream.read_exact(&mut first).await.unwrap();
    let given_up = async {
        while fixture.server.connections() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(DEADLINE, given_up)
        .await
        .expect("the server is too patient");
    // What is left in the buffers of the connection is less than the file.
    let mut received = Vec::new();
    let _ = stream.read_to_end(&mut received).await;
    assert!(received.len() < 30_000_000, "everything came");
}

#[tokio::test]
async fn a_sender_that_waits_for_consent_gets_an_answer_at_once() {
    let fixture = Fixture::with(|options| options.maximum_file_bytes = Some(5)).await;
    let put = |length: usize| {
        let headers = format!("Content-Length: {length}\r\nExpect: 100-continue\r\n");
        format!("PUT /{}/x HTTP/1.1\r\n{CLOSE}{headers}\r\n", token())
    };
    assert!(fixture.raw(&put(6)).await.starts_with("HTTP/1.1 413 "));
    let mut stream = TcpStream::connect(fixture.server.local_addr())
        .await
        .unwrap();
    stream.write_all(put(5).as_bytes()).await.unwrap();
    let mut consent = [0; 25];
    stream.read_exact(&mut consent).await.unwrap();
    assert_eq!(&consent, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(b"hello").await.unwrap();
    assert!(rest_of(&mut stream).await.starts_with("HTTP/1.1 201 "));
}

#[tokio::test]
async fn too_large_is_refused_early_or_late() {
    let fixture = Fixture::with(|options| options.maximum_file_bytes = Some(1_000_000)).await;
    let address = fixture.address();
    fixture
        .client
        .put_bytes(&address, content(1_000_000))
        .await
        .unwrap();
    assert_eq!(
        status(fixture.client.put_bytes(&address, content(1_000_001)).await),
        413
    );
    let chunks = stream::iter([Ok(content(600_000)), Ok(content(600_000))]);
    assert_eq!(
        status(fixture.client.put_stream(&address, chunks, None).await),
        413
    );
    assert_eq!(
        fixture.client.size(&address).await.unwrap(),
        Some(1_000_000)
    );
    fixture.finishes_all().await;
}

#[tokio::test]
async fn a_full_disk_is_answered_and_leaves_nothing() {
    fn full(path: &Path) -> std::io::Result<File> {
        File::create_new(path)?;
        OpenOptions::new().write(true).open("/dev/full")
    }
    let fixture = Fixture::on_disk(full).await;
    let (client, address) = (&fixture.client, fixture.address());
    let path = fixture.directory.path().join("large");
    std::fs::write(&path, content(20_000_000)).unwrap();
    assert_eq!(status(client.put_file(&address, &path).await), 507);
    let chunks = stream::iter([Ok(content(10)), Ok(content(10))]);
    assert_eq!(status(client.put_stream(&address, chunks, None).await), 507);
    fixture.becomes_empty().await;
}

#[tokio::test]
async fn what_cannot_fit_is_refused_before_it_comes() {
    let fixture = Fixture::new().await;
    let length = i64::MAX;
    let put = format!(
        "PUT /{}/x HTTP/1.1\r\n{CLOSE}Content-Length: {length}\r\n\r\n",
        token()
    );
    let mut stream = TcpStream::connect(fixture.server.local_addr())
        .await
        .unwrap();
    stream.write_all(put.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    assert!(rest_of(&mut stream).await.starts_with("HTTP/1.1 507 "));
}

/// Whatever nobody takes back is gone some day (P11).
#[tokio::test]
async fn files_expire() {
    let clock = TestClock::at(1_700_000_000_000);
    let fixture = Fixture::with(|options| {
        options.clock = clock.shared();
        options.expiry = Duration::from_secs(3600);
        options.sweep_interval = Duration::from_millis(10);
    })
    .await;
    let (old, new) = (fixture.address(), fixture.address());
    fixture.client.put_bytes(&old, content(1)).await.unwrap();
    clock.advance(Duration::from_secs(3000));
    fixture.client.put_bytes(&new, content(2)).await.unwrap();
    assert_eq!(fixture.on_server().0.len(), 2);
    clock.advance(Duration::from_secs(1000));
    let gone = async {
        while fixture.client.size(&old).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(DEADLINE, gone).await.expect("the old file stays");
    assert_eq!(fetch(&fixture.client, &new).await.unwrap(), content(2));
}

#[tokio::test]
async fn a_start_cleans_up_and_keeps_what_is_complete() {
    let fixture = Fixture::new().await;
    let address = fixture.address();
    fixture
        .client
        .put_bytes(&address, content(7))
        .await
        .unwrap();
    fixture.server.shutdown().await;
    let directory = fixture.directory;
    std::fs::write(directory.path().join("incoming").join("left-over"), b"half").unwrap();

    let (_unused, mut options) = options(|_options| {});
    options.directory = directory.path().to_path_buf();
    let server = ExchangeServer::start(options).await.unwrap();
    assert_eq!(
        directory
            .path()
            .join("incoming")
            .read_dir()
            .unwrap()
            .count(),
        0
    );
    let address = format!("http://{}/{}", server.local_addr(), path_of(&address));
    let client = client_for(server.local_addr());
    assert_eq!(fetch(&client, &address).await.unwrap(), content(7));
}

#[tokio::test]
async fn a_busy_port_is_named() {
    let fixture = Fixture::new().await;
    let busy = fixture.server.local_addr();
    let (_directory, options) = options(|options| options.listen = busy);
    let error = ExchangeServer::start(options).await.unwrap_err();
    assert!(matches!(error, ExchangeError::Listen { .. }));
    assert!(error.to_string().contains(&busy.to_string()), "{error}");
}

#[tokio::test]
async fn a_directory_that_cannot_be_used_is_named() {
    let (_directory, options) = options(|options| options.directory = "/dev/null/x".into());
    let error = ExchangeServer::start(options).await.unwrap_err();
    assert!(error.to_string().contains("/dev/null/x"), "{error}");
}

#[tokio::test]
async fn a_shutdown_lets_transfers_finish_and_cuts_off_the_rest() {
    let fixture =
        Fixture::with(|options| options.shutdown_grace = Duration::from_millis(500)).await;
    let address = fixture.address();
    let start = |length: usize| {
        format!(
            "PUT /{} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\nx",
            path_of(&address)
        )
    };
    let mut finishing = TcpStream::connect(fixture.server.local_addr())
        .await
        .unwrap();
    finishing.write_all(start(2).as_bytes()).await.unwrap();
    let mut hanging = TcpStream::connect(fixture.server.local_addr())
        .await
        .unwrap();
    hanging.write_all(start(3).as_bytes()).await.unwrap();
    let mut waiting = 0;
    while fixture.on_server().1.len() < 2 {
        waiting += 1;
        assert!(waiting < 1000, "uploads don't start");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (server, directory) = (fixture.server, fixture.directory);
    let address = server.local_addr();
    let finish = async {
        finishing.write_all(b"x").await.unwrap();
        rest_of(&mut finishing).await
    };
    let ((), answer) = tokio::join!(server.shutdown(), finish);
    assert!(answer.starts_with("HTTP/1.1 201 "), "{answer}");
    assert_eq!(
        directory.path().join("files").read_dir().unwrap().count(),
        1
    );
    assert!(
        TcpStream::connect(address).await.is_err(),
        "still listening"
    );
}
