//! Offers that have ended.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::{sync::oneshot, time::timeout};

use super::{
    DEADLINE, Fixture, TestClock, client, client_for, content, fetch, options, path_of, status,
};
use crate::{ExchangeServer, ServerOptions};

#[tokio::test]
async fn what_comes_after_its_end_is_refused() {
    let fixture = Fixture::new().await;
    let (client, address) = (&fixture.client, fixture.address());
    client.put_bytes(&address, content(10)).await.unwrap();
    for _ in 0..2 {
        assert!(client.end_offer(&address).await.unwrap(), "it says so");
        fixture.becomes_empty().await;
        let late = client.put_bytes(&address, content(10)).await;
        assert_eq!(status(late), 410);
        fixture.becomes_empty().await;
    }
    assert_eq!(status(fetch(client, &address).await), 404);
    // Other spellings of the address are the same one; other addresses are others.
    let path = path_of(&address);
    let put = format!(
        "PUT /{path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"
    );
    let spelled = put.replace("/file ", "/%66ile ");
    assert!(fixture.raw(&spelled).await.starts_with("HTTP/1.1 410 "));
    let other = fixture.address();
    client.put_bytes(&other, content(10)).await.unwrap();
    // Removing alone ends nothing.
    assert!(client.delete(&other).await.unwrap());
    client.put_bytes(&other, content(10)).await.unwrap();
}

#[tokio::test]
async fn what_is_coming_at_its_end_does_not_stay() {
    let fixture = Fixture::new().await;
    let (client, address) = (fixture.client.clone(), fixture.address());
    let (more, rest) = oneshot::channel::<()>();
    let first = stream::iter([Ok(content(100_000))]);
    let last = stream::once(async move {
        let _ = rest.await;
        Ok(content(5))
    });
    let sending = {
        let (client, address) = (client.clone(), address.clone());
        let pieces = first.chain(last);
        tokio::spawn(async move { client.put_stream(&address, pieces, Some(100_005)).await })
    };
    while fixture.on_server().1.is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(client.end_offer(&address).await.unwrap());
    more.send(()).unwrap();
    assert_eq!(status(sending.await.unwrap()), 410);
    fixture.becomes_empty().await;
}

#[tokio::test]
async fn an_end_outlives_the_server_and_is_forgotten_when_files_expire() {
    let clock = TestClock::at(1_700_000_000_000);
    let change = |options: &mut ServerOptions| {
        options.clock = clock.shared();
        options.expiry = Duration::from_secs(3600);
        options.sweep_interval = Duration::from_millis(10);
    };
    let fixture = Fixture::with(change).await;
    let address = fixture.address();
    fixture.client.end_offer(&address).await.unwrap();
    fixture.server.shutdown().await;

    let (_unused, mut options) = options(change);
    options.directory = fixture.directory.path().to_path_buf();
    let server = ExchangeServer::start(options).await.unwrap();
    let address = format!("http://{}/{}", server.local_addr(), path_of(&address));
    let client = client_for(server.local_addr());
    clock.advance(Duration::from_secs(3000));
    assert_eq!(status(client.put_bytes(&address, content(1)).await), 410);
    clock.advance(Duration::from_secs(1000));
    let forgotten = async {
        while client.put_bytes(&address, content(1)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(DEADLINE, forgotten)
        .await
        .expect("it is never forgotten");
}

#[tokio::test]
async fn where_nobody_knows_of_ends_it_is_a_removal() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    let client = client(|options| options.policy.file_roots = vec![root.clone()]);
    let address = format!("file://{}/a", root.display());
    client.put_bytes(&address, content(3)).await.unwrap();
    assert!(!client.end_offer(&address).await.unwrap());
    assert!(!root.join("a").exists());
    client.put_bytes(&address, content(3)).await.unwrap();
}
