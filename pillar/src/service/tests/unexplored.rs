//! Of an archive that is taken over, something could not be looked at.

use std::num::NonZeroU64;

use pillarbox_settings::Pace;

use super::{
    reconciling::{NEW, OLD, lay, taking_over},
    *,
};

/// Keeps a file from being read, which a file's own rights don't for everybody. Gone when dropped.
struct Unreadable(PathBuf);

impl Unreadable {
    /// None without the right to mount.
    fn make(path: &Path) -> Option<Self> {
        let mount = std::process::Command::new("mount")
            .arg("--bind")
            .arg(format!("/proc/{}/mem", std::process::id()))
            .arg(path)
            .output();
        mount
            .is_ok_and(|it| it.status.success())
            .then(|| Self(path.to_owned()))
    }
}

impl Drop for Unreadable {
    fn drop(&mut self) {
        let umount = std::process::Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .status();
        assert!(umount.unwrap().success());
    }
}

/// A file that was left out when all others were found is not taken for the leftover of a crash, now or after a
/// restart, and keeps nobody else from being found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_over_file_that_could_not_be_read_is_not_displaced() {
    let files: [(&str, &[u8]); 3] = [
        ("fileDir/x0", OLD),
        ("fileDir/x1", OLD),
        ("fileDir/x2", OLD),
    ];
    let mut unreadable = None;
    let site = taking_over(&files, |options| {
        let path = options.settings.directories[0].join("books/fileDir/x1");
        unreadable = Unreadable::make(&path);
    });
    let mut site = site.await;
    let Some(unreadable) = unreadable else {
        eprintln!(
            "SKIPPED a_taken_over_file_that_could_not_be_read_is_not_displaced: no right to mount"
        );
        return;
    };
    for id in ["x0", "x2"] {
        site.wait_for_row(id).await;
    }
    site.after_a_turn("reconcile").await;
    for _ in 0..2 {
        let request = site.put_request("x1", NEW).await;
        assert_eq!(site.refused(request).await, ResponseCode::Failure);
        assert_eq!(site.lying("retainDir"), []);
        site = site.restart().await;
        site.after_first_turn("reconcile").await;
    }
    drop(unreadable);
    let request = site.put_request("x1", NEW).await;
    assert_eq!(codes(&site.ask(request).await), [DUPLICATE]);
    assert_eq!(fs::read(site.place("x1")).unwrap(), OLD);
    assert!(site.pillar.context.unexplored.contains(&"books".into()));
    let mut site = site.restart().await;
    site.after_first_turn("reconcile").await;
    assert!(!site.pillar.context.unexplored.contains(&"books".into()));
    // From now on what has no row was left by a crash.
    fs::write(site.place("x3"), OLD).unwrap();
    site.put("x3", NEW).await;
}

/// The same, if it was in somebody's hands.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_taken_over_file_that_was_in_use_is_found_later() {
    let files: [(&str, &[u8]); 2] = [("fileDir/x1", OLD), ("fileDir/x2", OLD)];
    let site = taking_over(&files, |options| {
        // Slow enough for a claim to be first: a file takes a second.
        options.settings.reconcile.pace = Pace(NonZeroU64::new(4_096));
    });
    let site = site.await;
    let (archive, books) = (site.pillar.context.archive.clone(), "books".into());
    let claim = archive
        .claim_in_turn(&books, &Site::id("x1"))
        .await
        .unwrap();
    site.wait_for_row("x2").await;
    site.after_a_turn("reconcile").await;
    assert_eq!(site.row("x1").await, None);
    assert!(site.pillar.context.unexplored.contains(&books));
    drop(claim);
    site.wait_for_row("x1").await;
    site.after_a_turn("reconcile").await;
    assert!(!site.pillar.context.unexplored.contains(&books));
}

/// A directory that is not there may hold any file.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_directory_that_is_away_leaves_a_collection_unexplored() {
    let second = tempfile::tempdir().unwrap();
    let (base, away) = (second.path().join("books"), second.path().join("away"));
    let files: [(&str, &[u8]); 1] = [("fileDir/x1", OLD)];
    lay(&base, "fileDir/x2", OLD);
    let site = taking_over(&files, |options| {
        options.settings.directories.push(second.path().to_owned());
        // A file takes a second.
        options.settings.reconcile.pace = Pace(NonZeroU64::new(4_096));
    });
    let mut site = site.await;
    // As seen by a turn that began when it was there, and by those that follow.
    fs::rename(&base, &away).unwrap();
    site.wait_for_row("x1").await;
    for _ in 0..2 {
        site.after_a_turn("reconcile").await;
        assert!(site.pillar.context.unexplored.contains(&"books".into()));
    }
    let request = site.put_request("x2", NEW).await;
    assert_eq!(site.refused(request).await, ResponseCode::Failure);
    fs::rename(&away, &base).unwrap();
    site.wait_for_row("x2").await;
    site.after_a_turn("reconcile").await;
    assert!(!site.pillar.context.unexplored.contains(&"books".into()));
}
