//! Too little space.

use std::process::Command;

use super::*;

/// A file system of 1 MiB, taken away at the end.
pub(crate) struct Mounted(pub(crate) TempDir);

impl Mounted {
    pub(crate) fn new() -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"])
            .arg(dir.path())
            .output()
            .is_ok_and(|output| output.status.success());
        mounted.then_some(Self(dir))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A thread may be about to close its last file.
        _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[tokio::test]
async fn space_is_checked_before_and_while_receiving() {
    let dir = tempfile::tempdir().unwrap();
    let space = Space::with(1_000, |_| Ok(201_000));
    let archive = Archive::open_with(&options(&[dir.path()]), space).unwrap();
    let claim = |name| archive.claim(&books(), &id(name)).unwrap();
    let error = archive
        .receive(claim("x1"), 200_001, vec![])
        .await
        .unwrap_err();
    assert!(error.is_no_space());
    assert!(
        error
            .to_string()
            .contains("200001 bytes needed, 200000 usable"),
        "{error}"
    );
    let announced = archive.receive(claim("x1"), 150_000, vec![]).await.unwrap();
    archive
        .check(&books(), &id("x3"), 50_001)
        .await
        .unwrap_err();
    for part in [10_000, 70_000] {
        let mut unannounced = archive.receive(claim("x2"), 0, vec![]).await.unwrap();
        let mut refused = None;
        for _ in 0..10 {
            if let Err(error) = unannounced.write(Bytes::from(vec![0; part])).await {
                refused = Some(error);
                break;
            }
        }
        assert!(refused.unwrap().is_no_space());
        unannounced.discard().await;
        assert_no_temporary_files(dir.path());
    }
    drop(announced);
    archive.check(&books(), &id("x3"), 200_000).await.unwrap();
}

/// A disk that is full although the account said otherwise.
#[tokio::test]
async fn a_full_disk_is_an_answer() {
    let Some(mounted) = Mounted::new() else {
        eprintln!("SKIPPED a_full_disk_is_an_answer: no right to mount a tmpfs");
        return;
    };
    let dir = &mounted.0;
    let space = Space::with(0, |_| Ok(1 << 40));
    let archive = Archive::open_with(&options(&[dir.path()]), space).unwrap();
    let claim = |name| archive.claim(&books(), &id(name)).unwrap();

    let mut incoming = archive
        .receive(claim("large"), 4 << 20, vec![])
        .await
        .unwrap();
    let mut outcome = Ok(());
    for _ in 0..64 {
        outcome = incoming.write(Bytes::from(vec![0; 1 << 16])).await;
        if outcome.is_err() {
            break;
        }
    }
    match outcome {
        Ok(()) => outcome = incoming.finish().await.map(|_| ()),
        Err(_) => incoming.discard().await,
    }
    assert!(
        matches!(outcome, Err(ArchiveError::DiskFull { .. })),
        "{outcome:?}"
    );
    assert_no_temporary_files(dir.path());

    let mut stored = 0;
    let refused = loop {
        let put = put(
            &archive,
            &format!("small{stored}"),
            &[0; 60_000],
            Leftover::Refuse,
        )
        .await;
        match put {
            Ok(_) => stored += 1,
            Err(error) => break error,
        }
    };
    assert!(stored > 5);
    assert!(
        matches!(refused, ArchiveError::DiskFull { .. }),
        "{refused}"
    );
    assert_no_temporary_files(dir.path());
}
