//! What was deleted or replaced is kept for ever, or as long as the settings say (P11).

use std::os::unix::fs::symlink;

use super::{
    background::{DAY, Later, often},
    reconciling::lay,
    *,
};

/// A site whose pillar keeps for 30 days what was deleted or replaced, and looks for what is older again and again.
async fn forgetful() -> (Site, Arc<Later>) {
    let clock = Arc::new(Later::default());
    let site = Site::with(|options| {
        options.clock = clock.clone();
        options.settings.retain_for = Some(30 * DAY);
        options.settings.purge = often();
    });
    (site.await, clock)
}

impl Site {
    /// Puts, replaces and deletes a file under each of these ids.
    async fn live(&mut self, ids: &[&str]) {
        for id in ids {
            self.put(id, b"one").await;
            let replace = self.replace_request(id, b"one", b"three").await;
            assert_eq!(codes(&self.ask(replace).await), [ACCEPTED, COMPLETED]);
            let delete = self.delete_request(id, b"three");
            assert_eq!(codes(&self.ask(delete).await), [ACCEPTED, COMPLETED]);
        }
    }

    /// The names in `retainDir`, folders included.
    fn retained(&self) -> Vec<String> {
        let lying = self.lying("retainDir").into_iter();
        lying.map(|(name, _)| name).collect()
    }

    fn purge_status(&self) -> WorkerStatus {
        let mut statuses = self.pillar.workers();
        statuses.retain(|status| status.name == "purge");
        statuses.remove(0)
    }
}

const EACH: [&str; 6] = [
    "a.tif",
    "a.tif.old",
    "d/",
    "d/e/",
    "d/e/b.tif",
    "d/e/b.tif.old",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn p11_what_was_deleted_or_replaced_goes_when_its_time_is_over() {
    let (mut site, clock) = forgetful().await;
    site.put("kept.tif", b"kept").await;
    site.live(&["a.tif", "d/e/b.tif"]).await;
    assert_eq!(site.retained(), EACH);
    // However old a file itself is, its time begins when it is deleted.
    let base = site.directory.path().join("archive/books");
    site.put("old.tif", b"old").await;
    lay(&base, "fileDir/old.tif", b"old");
    let delete = site.delete_request("old.tif", b"old");
    assert_eq!(codes(&site.ask(delete).await), [ACCEPTED, COMPLETED]);

    clock.pass(29 * DAY);
    site.after_a_turn("purge").await;
    assert_eq!(site.retained(), [&EACH[..], &["old.tif"]].concat());
    let status = site.purge_status().progress;
    let nothing = "0 files with 0 bytes removed, 5 kept, 0 not removable, 0 strays";
    assert_eq!(status, nothing);

    clock.pass(2 * DAY);
    site.after_a_turn("purge").await;
    assert_eq!(site.retained(), [""; 0]);
    assert_eq!(
        site.lying("fileDir"),
        [("kept.tif".to_owned(), b"kept".to_vec())]
    );
    assert!(site.row("kept.tif").await.is_some());
    site.assert_no_alarm().await;
    // And so on, with what comes after it.
    site.live(&["a.tif", "d/e/b.tif"]).await;
    assert!(base.join("retainDir").is_dir());
    // By the pillar's clock, all of it was deleted a month ago.
    site.after_a_turn("purge").await;
    assert_eq!(site.retained(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn p11_everything_is_kept_for_ever_by_default() {
    let clock = Arc::new(Later::default());
    let site = Site::with(|options| {
        options.clock = clock.clone();
        options.settings.purge = often();
        options.settings.reconcile = often();
    });
    let mut site = site.await;
    site.live(&["a.tif", "d/e/b.tif"]).await;
    clock.pass(36_500 * DAY);
    site.after_a_turn("reconcile").await;
    assert_eq!(site.retained(), EACH);
    let workers = site.pillar.workers();
    assert!(workers.iter().all(|it| it.name != "purge"), "{workers:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn p11_what_is_no_file_is_left_alone() {
    let (mut site, clock) = forgetful().await;
    let retained = site.directory.path().join("archive/books/retainDir");
    lay(&retained, "left/by/others.tif", b"left");
    fs::create_dir_all(retained.join("empty")).unwrap();
    site.put("kept.tif", b"kept").await;
    symlink(site.place("kept.tif"), retained.join("link.tif")).unwrap();
    symlink(site.directory.path(), retained.join("link")).unwrap();
    clock.pass(31 * DAY);
    site.after_a_turn("purge").await;
    let names = fs::read_dir(&retained).unwrap();
    let mut names: Vec<_> = names.map(|it| it.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["empty", "link", "link.tif"]);
    assert_eq!(site.lying("fileDir").len(), 1);
    assert!(site.purge_status().progress.ends_with(" 2 strays"));
}

/// The directory is not to be taken for an empty one.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn p11_a_disk_that_is_away_is_a_fault_until_it_is_back() {
    let (mut site, clock) = forgetful().await;
    site.live(&["a.tif"]).await;
    let [archive, away] = ["archive", "away"].map(|it| site.directory.path().join(it));
    fs::rename(&archive, &away).unwrap();
    clock.pass(31 * DAY);
    let alarm = site.next_alarm().await;
    assert_eq!(alarm, (AlarmCode::ComponentFailure, None));
    assert!(site.purge_status().fault().is_some());
    fs::rename(&away, &archive).unwrap();
    site.after_a_turn("purge").await;
    assert_eq!(site.retained(), [""; 0]);
    assert_eq!(site.purge_status().fault(), None);
}
