//! What is put can be got, unchanged.

use std::{
    io,
    num::NonZeroU64,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::{Fixture, content, fetch, path_of, status, transfer_error};
use crate::{ExchangeError, TransferError};

#[tokio::test]
async fn put_get_size_delete() {
    let fixture = Fixture::new().await;
    let (client, address) = (&fixture.client, fixture.address());
    assert_eq!(
        client.put_bytes(&address, content(1000)).await.unwrap(),
        1000
    );
    assert_eq!(fetch(client, &address).await.unwrap(), content(1000));
    assert_eq!(client.get(&address).await.unwrap().length, Some(1000));
    assert_eq!(client.size(&address).await.unwrap(), Some(1000));
    assert!(client.delete(&address).await.unwrap());
    assert!(!client.delete(&address).await.unwrap());
    assert_eq!(status(client.get(&address).await), 404);
    assert_eq!(status(client.size(&address).await), 404);
    assert_eq!(fixture.on_server(), (vec![], vec![]));
}

#[tokio::test]
async fn an_empty_file_is_a_file() {
    let fixture = Fixture::new().await;
    let (client, address) = (&fixture.client, fixture.address());
    let path = fixture.directory.path().join("empty");
    std::fs::write(&path, b"").unwrap();
    assert_eq!(client.put_file(&address, &path).await.unwrap(), 0);
    let mut download = client.get(&address).await.unwrap();
    assert_eq!(download.length, Some(0));
    assert_eq!(download.chunk().await.unwrap(), None);
    assert_eq!(client.size(&address).await.unwrap(), Some(0));
    let other = fixture.address();
    assert_eq!(client.put_bytes(&other, Bytes::new()).await.unwrap(), 0);
    assert_eq!(fetch(client, &other).await.unwrap(), Bytes::new());
}

#[tokio::test]
async fn thirty_megabytes_stream_through() {
    let fixture = Fixture::new().await;
    let (client, address) = (&fixture.client, fixture.address());
    let path = fixture.directory.path().join("large");
    let large = content(30_000_001);
    std::fs::write(&path, &large).unwrap();
    assert_eq!(client.put_file(&address, &path).await.unwrap(), 30_000_001);
    let mut download = client.get(&address).await.unwrap();
    let mut received = 0;
    while let Some(chunk) = download.chunk().await.unwrap() {
        assert!(
            chunk == large[received..received + chunk.len()],
            "differs after {received}"
        );
        received += chunk.len();
    }
    assert_eq!(received, large.len());
}

#[tokio::test]
async fn an_open_file_is_sent_from_its_beginning() {
    let fixture = Fixture::new().await;
    let path = fixture.directory.path().join("open");
    std::fs::write(&path, content(5000)).unwrap();
    let mut file = std::fs::File::open(&path).unwrap();
    io::copy(&mut file, &mut io::sink()).unwrap();
    let address = fixture.address();
    let sent = fixture.client.put_open_file(&address, file, |_| {});
    assert_eq!(sent.await.unwrap(), 5000);
    assert_eq!(
        fetch(&fixture.client, &address).await.unwrap(),
        content(5000)
    );
}

#[tokio::test]
async fn what_is_sent_of_an_open_file_is_shown_in_order() {
    let fixture = Fixture::new().await;
    let path = fixture.directory.path().join("open");
    for length in [0, 700_000] {
        std::fs::write(&path, content(length)).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        let shown = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&shown);
        let watch = move |bytes: &[u8]| seen.lock().unwrap().extend_from_slice(bytes);
        let address = fixture.address();
        let sent = fixture.client.put_open_file(&address, file, watch);
        assert_eq!(sent.await.unwrap(), length as u64);
        assert_eq!(*shown.lock().unwrap(), content(length));
    }
}

#[tokio::test]
async fn a_stream_of_unknown_length_is_sent_in_chunks() {
    let fixture = Fixture::new().await;
    let address = fixture.address();
    let chunks = stream::iter(vec![Ok(content(70_000)), Ok(Bytes::new()), Ok(content(5))]);
    assert_eq!(
        fixture
            .client
            .put_stream(&address, chunks, None)
            .await
            .unwrap(),
        70_005
    );
    let expected = [content(70_000), content(5)].concat();
    assert_eq!(fetch(&fixture.client, &address).await.unwrap(), expected);
}

#[tokio::test]
async fn a_put_replaces_what_was_there() {
    let fixture = Fixture::new().await;
    let address = fixture.address();
    for length in [10_000, 20] {
        fixture
            .client
            .put_bytes(&address, content(length))
            .await
            .unwrap();
        assert_eq!(
            fetch(&fixture.client, &address).await.unwrap(),
            content(length)
        );
    }
    assert_eq!(fixture.on_server().0.len(), 1);
}

#[tokio::test]
async fn a_put_that_replaces_does_not_disturb_a_download() {
    let fixture = Fixture::new().await;
    let address = fixture.address();
    fixture
        .client
        .put_bytes(&address, content(9_000_000))
        .await
        .unwrap();
    let mut download = fixture.client.get(&address).await.unwrap();
    let first = download.chunk().await.unwrap().unwrap();
    fixture
        .client
        .put_bytes(&address, content(3))
        .await
        .unwrap();
    let rest = download.bytes(usize::MAX).await.unwrap();
    assert!([first, rest].concat() == content(9_000_000));
}

#[tokio::test]
async fn parts_can_be_fetched() {
    let fixture = Fixture::new().await;
    let (client, address) = (&fixture.client, fixture.address());
    let whole = content(1_000_000);
    client.put_bytes(&address, whole.clone()).await.unwrap();
    for (offset, length, expected) in [
        (0, 1, 0..1),
        (300_000, 400_000, 300_000..700_000),
        (999_999, 1, 999_999..1_000_000),
        (999_000, 5000, 999_000..1_000_000),
        (1, u64::MAX, 1..1_000_000),
    ] {
        let part = client
            .get_range(&address, offset, NonZeroU64::new(length).unwrap())
            .await;
        let part = part.unwrap();
        assert_eq!(part.length, Some(expected.len() as u64));
        assert!(part.bytes(usize::MAX).await.unwrap() == whole[expected]);
    }
    let beyond = client.get_range(&address, 1_000_000, NonZeroU64::MIN).await;
    assert!(matches!(transfer_error(beyond), TransferError::OutOfRange));
}

#[tokio::test]
async fn what_is_read_at_once_and_what_is_not() {
    const LIMIT: usize = 64 * 1024;
    let fixture = Fixture::new().await;
    let client = &fixture.client;
    for size in [LIMIT - 1, LIMIT, LIMIT + 1] {
        let address = fixture.address();
        let whole = content(size);
        let sent = client.put_bytes(&address, whole.clone()).await.unwrap();
        assert_eq!(sent, size as u64);
        assert_eq!(client.size(&address).await.unwrap(), Some(size as u64));
        let download = client.get(&address).await.unwrap();
        assert_eq!(download.length, Some(size as u64));
        assert!(download.bytes(size).await.unwrap() == whole);
    }
    let address = fixture.address();
    let whole = content(3 * LIMIT);
    client.put_bytes(&address, whole.clone()).await.unwrap();
    for length in [LIMIT, LIMIT + 1] {
        let wanted = NonZeroU64::new(length as u64).unwrap();
        let part = client.get_range(&address, 7, wanted).await.unwrap();
        assert!(part.bytes(length).await.unwrap() == whole[7..7 + length]);
    }
}

#[tokio::test]
async fn odd_names_come_through() {
    let fixture = Fixture::new().await;
    for (name, ending) in [
        ("a b+c%41#1?x&y.tif", "-a%20b%2Bc%2541%231%3Fx%26y.tif"),
        ("Ærø 1%#?.tif", "-%C3%86r%C3%B8%201%25%23%3F.tif"),
        ("..x", "-..x"),
        ("%2e%2e", "-%252e%252e"),
        ("\u{1F4BE}\u{301}", "-%F0%9F%92%BE%CC%81"),
    ] {
        let address = fixture.offers().address_for(name);
        assert!(address.ends_with(ending), "{address}");
        fixture
            .client
            .put_bytes(&address, content(name.len()))
            .await
            .unwrap();
        assert_eq!(
            fetch(&fixture.client, &address).await.unwrap(),
            content(name.len())
        );
    }
}

#[tokio::test]
async fn a_long_name_is_no_problem() {
    let fixture = Fixture::new().await;
    let address = fixture.offers().address_for(&"\u{20AC}".repeat(252));
    fixture
        .client
        .put_bytes(&address, content(1))
        .await
        .unwrap();
    assert_eq!(fetch(&fixture.client, &address).await.unwrap(), content(1));
}

#[tokio::test]
async fn names_that_differ_only_in_encoding() {
    let fixture = Fixture::new().await;
    let client = &fixture.client;
    let base = fixture.address();
    let address = |last: &str| base.replace("-file", last);
    client
        .put_bytes(&address("/a%41"), content(1))
        .await
        .unwrap();
    client
        .put_bytes(&address("/a%2541"), content(2))
        .await
        .unwrap();
    client
        .put_bytes(&address("/a+b"), content(3))
        .await
        .unwrap();
    client
        .put_bytes(&address("/a%20b"), content(4))
        .await
        .unwrap();
    client
        .put_bytes(&address("/a%2Fb"), content(5))
        .await
        .unwrap();
    client
        .put_bytes(&address("/a/b"), content(6))
        .await
        .unwrap();
    for (last, length) in [
        ("/aA", 1),
        ("/a%2541", 2),
        ("/a%2Bb", 3),
        ("/a%20b", 4),
        ("/a%2fb", 5),
        ("/a/b", 6),
    ] {
        assert_eq!(
            client.size(&address(last)).await.unwrap(),
            Some(length),
            "{last}"
        );
    }
}

#[tokio::test]
async fn the_path_of_the_public_url_may_be_there_or_not() {
    let fixture =
        Fixture::with(|options| options.public_url = "http://proxy.example.org/dav/".to_owned())
            .await;
    assert!(
        fixture
            .server
            .offers()
            .address_for("x")
            .starts_with("http://proxy.example.org/dav/")
    );
    let address = fixture.address();
    fixture
        .client
        .put_bytes(&address, content(9))
        .await
        .unwrap();
    let with_path = address.replace(path_of(&address), &format!("dav/{}", path_of(&address)));
    assert_eq!(
        fetch(&fixture.client, &with_path).await.unwrap(),
        content(9)
    );
}

#[tokio::test]
async fn our_own_failures_are_not_the_peers() {
    let fixture = Fixture::new().await;
    let (client, address) = (&fixture.client, fixture.address());
    let missing = client
        .put_file(&address, "/nowhere/file".as_ref())
        .await
        .unwrap_err();
    assert!(matches!(missing, ExchangeError::Local { .. }), "{missing}");
    assert!(missing.to_string().contains("/nowhere/file"), "{missing}");
    assert_eq!(missing.io_kind(), Some(io::ErrorKind::NotFound));
    let directory = client
        .put_file(&address, fixture.directory.path())
        .await
        .unwrap_err();
    assert!(
        matches!(directory, ExchangeError::Local { .. }),
        "{directory}"
    );

    let failing = || stream::iter([Ok(content(9)), Err(io::ErrorKind::StorageFull.into())]);
    for length in [None, Some(100)] {
        let failed = client
            .put_stream(&address, failing(), length)
            .await
            .unwrap_err();
        assert!(matches!(failed, ExchangeError::Local { .. }), "{failed}");
        assert_eq!(failed.io_kind(), Some(io::ErrorKind::StorageFull));
    }
    let short = client
        .put_stream(&address, stream::iter([Ok(content(9))]), Some(10))
        .await;
    assert!(matches!(short, Err(ExchangeError::Local { .. })));
    let long = client
        .put_stream(&address, stream::iter([Ok(content(9))]), Some(8))
        .await;
    assert!(matches!(long, Err(ExchangeError::Local { .. })), "{long:?}");
    fixture.becomes_empty().await;
}

#[tokio::test]
async fn a_source_may_take_longer_than_the_idle_timeout() {
    let fixture = Fixture::new().await;
    let host = fixture.server.local_addr().to_string();
    let client = super::client(|options| {
        options.policy.hosts = vec![host];
        options.idle_timeout = Duration::from_millis(500);
    });
    let slow = stream::iter([Ok(content(10)), Ok(content(10))]).then(async |chunk| {
        tokio::time::sleep(Duration::from_millis(700)).await;
        chunk
    });
    assert_eq!(
        client
            .put_stream(&fixture.address(), slow, None)
            .await
            .unwrap(),
        20
    );
}

#[tokio::test]
async fn a_document_larger_than_its_limit_is_refused() {
    let fixture = Fixture::new().await;
    let address = fixture.address();
    fixture
        .client
        .put_bytes(&address, content(101))
        .await
        .unwrap();
    let download = fixture.client.get(&address).await.unwrap();
    assert!(matches!(
        transfer_error(download.bytes(100).await),
        TransferError::Broken { .. }
    ));
    let download = fixture.client.get(&address).await.unwrap();
    assert_eq!(download.bytes(101).await.unwrap().len(), 101);
}

#[tokio::test]
async fn without_a_public_url_the_real_address_is_offered() {
    let fixture = Fixture::with(|options| options.public_url = String::new()).await;
    let url = format!("http://{}/", fixture.server.local_addr());
    assert_eq!(fixture.server.public_url(), url);
    let address = fixture.server.offers().address_for("x");
    fixture
        .client
        .put_bytes(&address, content(2))
        .await
        .unwrap();
    assert_eq!(fetch(&fixture.client, &address).await.unwrap(), content(2));
}
