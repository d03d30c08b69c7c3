//! Files in `retainDir` whose time is over, while others are put there or given back (P11).

use std::sync::atomic::{AtomicBool, Ordering};

use super::{
    changes::{remove, replace},
    *,
};

/// Purges everything that may be, and gives how many files that were.
fn purge(archive: &Archive) -> usize {
    let mut removed = 0;
    for dir in archive.retain_dirs(&books()).unwrap() {
        let purged = dir.unwrap().purge(i64::MAX, |seen| {
            match seen {
                Seen::Removed(..) => removed += 1,
                Seen::Kept => {}
                other => panic!("{other:?}"),
            }
            Ok::<_, io::Error>(())
        });
        purged.unwrap();
    }
    removed
}

#[tokio::test]
async fn p11_what_an_operation_may_give_back_is_kept_until_it_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    for name in ["x1", "a/b/x1"] {
        put(&archive, name, P7, Leftover::Refuse).await.unwrap();
        let removed = remove(&archive, name).await;
        assert_eq!(purge(&archive), 0);
        archive.restore(removed).await.unwrap();
        assert_eq!(read(&archive, name).await.unwrap(), P7);

        let published = replace(&archive, name, b"another").await;
        assert_eq!(purge(&archive), 0);
        archive.retract(published).await.unwrap();
        assert_eq!(read(&archive, name).await.unwrap(), P7);

        drop(replace(&archive, name, b"another").await);
        drop(remove(&archive, name).await);
        assert_eq!(purge(&archive), 2);
        let retained = dir.path().join("books/retainDir");
        assert_eq!(fs::read_dir(retained).unwrap().count(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn p11_purging_is_in_nobodys_way() {
    const CHANGES: usize = 60;
    let dir = tempfile::tempdir().unwrap();
    let archive = open(&dir);
    let over = Arc::new(AtomicBool::new(false));
    let purging = {
        let (archive, over) = (archive.clone(), Arc::clone(&over));
        tokio::task::spawn_blocking(move || {
            let mut removed = 0;
            while !over.load(Ordering::SeqCst) {
                removed += purge(&archive);
            }
            removed + purge(&archive)
        })
    };
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..3 {
        let archive = archive.clone();
        tasks.spawn(async move {
            let name = format!("a/b/f{number}");
            for _ in 0..CHANGES {
                put(&archive, &name, P7, Leftover::Refuse).await.unwrap();
                drop(replace(&archive, &name, b"another").await);
                let removed = remove(&archive, &name).await;
                archive.restore(removed).await.unwrap();
                assert_eq!(read(&archive, &name).await.unwrap(), b"another");
                drop(remove(&archive, &name).await);
            }
        });
    }
    tasks.join_all().await;
    over.store(true, Ordering::SeqCst);
    // Each version once.
    assert_eq!(purging.await.unwrap(), 3 * CHANGES * 2);
    let retained = dir.path().join("books/retainDir");
    assert_eq!(fs::read_dir(retained).unwrap().count(), 0);
}
