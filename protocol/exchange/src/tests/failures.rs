//! The client against servers that fail.

use std::{net::SocketAddr, num::NonZeroU64, time::Duration};

use bytes::Bytes;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use super::{client, content, fetch, status, transfer_error};
use crate::{ExchangeClient, ExchangeError, TransferError};

/// A server that does with one connection what a test says, once a request's head has come.
struct Scripted {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Scripted {
    async fn new<F>(script: impl FnOnce(TcpStream, String) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let (mut stream, _peer) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            script(stream, String::from_utf8(head).unwrap()).await;
        });
        Self { address, task }
    }

    /// Answers with these bytes, and closes the connection.
    async fn answering(answer: &'static str) -> Self {
        Self::new(async move |mut stream: TcpStream, _head| {
            stream.write_all(answer.as_bytes()).await.unwrap();
        })
        .await
    }

    /// Answers with these bytes, and does nothing more.
    async fn stalling(answer: &'static str) -> Self {
        Self::new(async move |mut stream: TcpStream, _head| {
            stream.write_all(answer.as_bytes()).await.unwrap();
            std::future::pending::<()>().await;
        })
        .await
    }

    fn address(&self) -> String {
        format!("http://{}/a%20b", self.address)
    }

    fn client(&self) -> ExchangeClient {
        super::client_for(self.address)
    }

    fn impatient_client(&self) -> ExchangeClient {
        client(|options| {
            options.policy.hosts = vec![self.address.to_string()];
            options.idle_timeout = Duration::from_millis(300);
        })
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test]
async fn refused_uploads_say_the_status() {
    for (answer, expected) in [
        (
            "HTTP/1.1 507 Insufficient Storage\r\nContent-Length: 0\r\n\r\n",
            507,
        ),
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno", 403),
        (
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/x\r\nContent-Length: 0\r\n\r\n",
            302,
        ),
    ] {
        let server = Scripted::answering(answer).await;
        let put = server
            .client()
            .put_bytes(&server.address(), content(10))
            .await;
        assert_eq!(status(put), expected);
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let answer = "HTTP/1.1 301 Moved\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n";
    let server = Scripted::answering(answer).await;
    assert_eq!(status(server.client().get(&server.address()).await), 301);
    let server = Scripted::answering(answer).await;
    assert_eq!(status(server.client().size(&server.address()).await), 301);
    let server = Scripted::answering(answer).await;
    assert_eq!(status(server.client().delete(&server.address()).await), 301);
}

#[tokio::test]
async fn connections_that_break_are_failed_transfers() {
    for answer in ["", "HTTP/1.1 2", "nonsense\r\n\r\n"] {
        let server = Scripted::answering(answer).await;
        let put = server
            .client()
            .put_bytes(&server.address(), content(10))
            .await;
        assert!(
            matches!(transfer_error(put), TransferError::Broken { .. }),
            "{answer}"
        );
        let server = Scripted::answering(answer).await;
        let get = server.client().get(&server.address()).await;
        assert!(
            matches!(transfer_error(get), TransferError::Broken { .. }),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn an_upload_that_is_closed_on_is_a_failed_transfer() {
    let server = Scripted::new(async |stream: TcpStream, _head| drop(stream)).await;
    let put = server
        .client()
        .put_bytes(&server.address(), content(20_000_000))
        .await;
    assert!(matches!(transfer_error(put), TransferError::Broken { .. }));
}

#[tokio::test]
async fn nobody_there_is_a_failed_transfer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = client(|options| options.policy.hosts = vec![address.to_string()]);
    let get = client.get(&format!("http://{address}/x")).await;
    let TransferError::Connect { detail } = transfer_error(get) else {
        panic!("not told apart")
    };
    assert!(detail.contains("refused"), "{detail}");
}

#[tokio::test]
async fn a_stalled_download_is_given_up() {
    let server = Scripted::stalling("").await;
    let get = server.impatient_client().get(&server.address()).await;
    assert!(matches!(transfer_error(get), TransferError::Stalled { .. }));

    let server = Scripted::stalling("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello").await;
    let mut download = server
        .impatient_client()
        .get(&server.address())
        .await
        .unwrap();
    assert_eq!(
        download.chunk().await.unwrap(),
        Some(Bytes::from_static(b"hello"))
    );
    assert!(matches!(
        transfer_error(download.chunk().await),
        TransferError::Stalled { .. }
    ));
}

#[tokio::test]
async fn a_stalled_upload_is_given_up() {
    for length in [10, 20_000_000] {
        let server = Scripted::stalling("").await;
        let put = server
            .impatient_client()
            .put_bytes(&server.address(), content(length))
            .await;
        assert!(
            matches!(transfer_error(put), TransferError::Stalled { .. }),
            "{length}"
        );
    }
    let server = Scripted::stalling("").await;
    let delete = server.impatient_client().delete(&server.address()).await;
    assert!(matches!(
        transfer_error(delete),
        TransferError::Stalled { .. }
    ));
}

#[tokio::test]
async fn fewer_bytes_than_announced_are_a_failed_transfer() {
    let answer = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello";
    let server = Scripted::answering(answer).await;
    let error = transfer_error(fetch(&server.client(), &server.address()).await);
    assert!(
        matches!(
            error,
            TransferError::Short {
                expected: 10,
                received: 5
            }
        ),
        "{error}"
    );

    let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let server = Scripted::answering(answer).await;
    let error = transfer_error(fetch(&server.client(), &server.address()).await);
    assert!(matches!(error, TransferError::Broken { .. }), "{error}");
}

#[tokio::test]
async fn a_body_without_a_length_ends_with_the_connection() {
    let server = Scripted::answering("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello").await;
    let download = server.client().get(&server.address()).await.unwrap();
    assert_eq!(download.length, None);
    assert_eq!(download.bytes(100).await.unwrap(), "hello");
}

#[tokio::test]
async fn only_the_part_that_was_asked_for_is_taken() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "HTTP/1.1 206 OK\r\nContent-Length: 2\r\n\r\nhe",
        "HTTP/1.1 206 OK\r\nContent-Length: 2\r\nContent-Range: bytes 0-1/5\r\n\r\nhe",
        "HTTP/1.1 206 OK\r\nContent-Length: 3\r\nContent-Range: bytes 1-3/5\r\n\r\nell",
    ] {
        let server = Scripted::answering(answer).await;
        let two = NonZeroU64::new(2).unwrap();
        let part = server.client().get_range(&server.address(), 1, two).await;
        assert!(
            matches!(transfer_error(part), TransferError::WrongRange),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn the_path_is_sent_as_it_is() {
    let (sender, heads) = tokio::sync::oneshot::channel();
    let server = Scripted::new(async move |mut stream: TcpStream, head| {
        stream
            .write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
            .await
            .unwrap();
        sender.send(head).unwrap();
    })
    .await;
    let path = "/a%20b%2bc+%2541//%231%3Fx%26~y.tif?q=%20+";
    let address = format!("http://{}{path}", server.address);
    server
        .client()
        .put_bytes(&address, content(0))
        .await
        .unwrap();
    let head = heads.await.unwrap();
    assert!(
        head.starts_with(&format!("PUT {path} HTTP/1.1\r\n")),
        "{head}"
    );
    assert!(
        head.to_ascii_lowercase().contains("content-length: 0\r\n"),
        "{head}"
    );
}

#[tokio::test]
async fn addresses_outside_the_policy_are_not_touched() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/x", listener.local_addr().unwrap());
    let client = client(|options| options.policy.hosts = vec!["127.0.0.1:1".to_owned()]);
    super::assert_not_allowed(client.check(&address));
    super::assert_not_allowed(client.get(&address).await);
    super::assert_not_allowed(client.put_bytes(&address, content(1)).await);
    super::assert_not_allowed(client.put_file(&address, "/nowhere".as_ref()).await);
    super::assert_not_allowed(client.delete(&address).await);
    super::assert_not_allowed(client.size(&address).await);
    super::assert_not_allowed(client.get("file:/etc/passwd").await);
    let ftp = client.get("ftp://127.0.0.1/x").await.unwrap_err();
    assert!(
        matches!(ftp, ExchangeError::UnsupportedScheme { .. }),
        "{ftp}"
    );
    let nonsense = client.get("http//127.0.0.1:1/x").await.unwrap_err();
    assert!(
        matches!(nonsense, ExchangeError::BadAddress { .. }),
        "{nonsense}"
    );
    let connected = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(connected.is_err(), "a refused address was connected to");
}
