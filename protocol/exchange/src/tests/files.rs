//! file: addresses.

use std::{io, num::NonZeroU64, os::unix::fs::symlink, path::Path};

use futures_util::stream;
use tempfile::TempDir;

use super::{assert_not_allowed, client, content, fetch, transfer_error};
use crate::{ExchangeClient, ExchangeError, OfferSpace, TransferError};

/// A client that may use a directory, and the directory; beside it is one that it may not use.
fn fixture() -> (TempDir, ExchangeClient) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("root")).unwrap();
    std::fs::create_dir(directory.path().join("outside")).unwrap();
    std::fs::write(directory.path().join("outside/secret"), b"secret").unwrap();
    let root = directory.path().join("root");
    let client = client(|options| options.policy.file_roots = vec![root]);
    (directory, client)
}

fn address(directory: &TempDir, rest: &str) -> String {
    format!("file:{}/{rest}", directory.path().display())
}

#[track_caller]
fn file_error<T: std::fmt::Debug>(result: Result<T, ExchangeError>) -> io::ErrorKind {
    match transfer_error(result) {
        TransferError::File(error) => error.kind(),
        other => panic!("not a file's error: {other}"),
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = directory.read_dir().unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[tokio::test]
async fn put_get_size_delete() {
    let (directory, client) = fixture();
    let address = address(&directory, "root/a%20%C3%86%2541+");
    let source = directory.path().join("source");
    std::fs::write(&source, content(700_000)).unwrap();
    assert_eq!(client.put_file(&address, &source).await.unwrap(), 700_000);
    assert_eq!(names(&directory.path().join("root")), ["a Æ%41+"]);
    assert!(fetch(&client, &address).await.unwrap() == content(700_000));
    assert_eq!(client.size(&address).await.unwrap(), Some(700_000));
    client.put_bytes(&address, content(0)).await.unwrap();
    assert_eq!(fetch(&client, &address).await.unwrap(), content(0));
    assert!(client.delete(&address).await.unwrap());
    assert!(!client.delete(&address).await.unwrap());
    assert_eq!(
        file_error(client.get(&address).await),
        io::ErrorKind::NotFound
    );
}

#[tokio::test]
async fn parts_can_be_fetched() {
    let (directory, client) = fixture();
    let address = address(&directory, "root/x");
    client.put_bytes(&address, content(1000)).await.unwrap();
    let length = NonZeroU64::new(300).unwrap();
    let part = client.get_range(&address, 100, length).await.unwrap();
    assert_eq!(part.bytes(1000).await.unwrap(), content(1000)[100..400]);
    let end = client.get_range(&address, 900, length).await.unwrap();
    assert_eq!(end.length, Some(100));
    assert_eq!(end.bytes(1000).await.unwrap(), content(1000)[900..]);
    let beyond = client.get_range(&address, 1000, length).await;
    assert!(matches!(transfer_error(beyond), TransferError::OutOfRange));
}

#[tokio::test]
async fn a_failed_upload_leaves_what_was_there() {
    let (directory, client) = fixture();
    let address = address(&directory, "root/x");
    client.put_bytes(&address, content(3)).await.unwrap();
    let failing = stream::iter([Ok(content(9)), Err(io::ErrorKind::StorageFull.into())]);
    let failed = client
        .put_stream(&address, failing, None)
        .await
        .unwrap_err();
    assert!(matches!(failed, ExchangeError::Local { .. }), "{failed}");
    assert_eq!(fetch(&client, &address).await.unwrap(), content(3));
    let left = async {
        while names(&directory.path().join("root")) != ["x"] {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(super::DEADLINE, left)
        .await
        .expect("a temporary file stays");
}

#[tokio::test]
async fn what_lies_outside_the_roots_is_refused() {
    let (directory, client) = fixture();
    for rest in ["outside/secret", "outside/missing", "missing/x", "rootless"] {
        let address = address(&directory, rest);
        assert_not_allowed(client.get(&address).await);
        assert_not_allowed(client.size(&address).await);
        assert_not_allowed(client.put_bytes(&address, content(1)).await);
        assert_not_allowed(client.delete(&address).await);
    }
    assert_not_allowed(client.get("file:///etc/passwd").await);
    let up = client
        .get(&address(&directory, "root/../outside/secret"))
        .await
        .unwrap_err();
    assert!(matches!(up, ExchangeError::BadAddress { .. }), "{up}");
    assert_eq!(names(&directory.path().join("outside")), ["secret"]);
}

#[tokio::test]
async fn links_do_not_lead_out() {
    let (directory, client) = fixture();
    let root = directory.path().join("root");
    symlink(directory.path().join("outside"), root.join("out")).unwrap();
    symlink(directory.path().join("outside/secret"), root.join("link")).unwrap();
    for rest in ["root/out/secret", "root/link"] {
        assert_not_allowed(client.get(&address(&directory, rest)).await);
        assert_not_allowed(client.size(&address(&directory, rest)).await);
    }
    let inside = address(&directory, "root/out/new");
    assert_not_allowed(client.put_bytes(&inside, content(1)).await);
    assert_not_allowed(client.delete(&address(&directory, "root/out/secret")).await);

    // A link itself may be replaced and deleted; what it leads to stays as it is.
    client
        .put_bytes(&address(&directory, "root/link"), content(2))
        .await
        .unwrap();
    assert_eq!(
        fetch(&client, &address(&directory, "root/link"))
            .await
            .unwrap(),
        content(2)
    );
    assert_eq!(
        std::fs::read(directory.path().join("outside/secret")).unwrap(),
        b"secret"
    );
}

#[tokio::test]
async fn links_may_lead_around_inside() {
    let (directory, client) = fixture();
    let root = directory.path().join("root");
    std::fs::create_dir(root.join("real")).unwrap();
    symlink(root.join("real"), root.join("alias")).unwrap();
    client
        .put_bytes(&address(&directory, "root/alias/x"), content(4))
        .await
        .unwrap();
    assert_eq!(
        fetch(&client, &address(&directory, "root/real/x"))
            .await
            .unwrap(),
        content(4)
    );

    symlink(
        directory.path().join("root"),
        directory.path().join("other-way"),
    )
    .unwrap();
    let around = address(&directory, "other-way/real/x");
    assert_eq!(fetch(&client, &around).await.unwrap(), content(4));
}

#[tokio::test]
async fn only_regular_files_are_read() {
    let (directory, client) = fixture();
    assert_not_allowed(
        client
            .get(&format!("file:{}", directory.path().display()))
            .await,
    );
    let root = address(&directory, "root");
    assert_eq!(
        file_error(client.get(&root).await),
        io::ErrorKind::InvalidInput
    );
    let pipe = directory.path().join("root/pipe");
    let made = std::process::Command::new("mkfifo")
        .arg(&pipe)
        .status()
        .unwrap();
    assert!(made.success());
    let pipe = client.get(&address(&directory, "root/pipe")).await;
    assert_eq!(file_error(pipe), io::ErrorKind::InvalidInput);
}

#[tokio::test]
async fn an_offer_leaves_nothing_when_it_is_removed() {
    let (directory, client) = fixture();
    let offers = OfferSpace::new(&address(&directory, "root/"));
    let offer = offers.address_for("folder/Ærø 1%#?.tif");
    client.put_bytes(&offer, content(5)).await.unwrap();
    assert_eq!(fetch(&client, &offer).await.unwrap(), content(5));
    assert_eq!(names(&directory.path().join("root")).len(), 1);
    assert!(client.delete(&offer).await.unwrap());
    assert_eq!(names(&directory.path().join("root")), Vec::<String>::new());
    assert!(!client.delete(&offer).await.unwrap());

    let elsewhere = address(&directory, "root/nowhere/x");
    assert_eq!(
        file_error(client.put_bytes(&elsewhere, content(1)).await),
        io::ErrorKind::NotFound
    );
}
