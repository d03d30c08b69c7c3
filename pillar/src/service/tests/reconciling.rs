//! The index is compared with the archive directories, and directories are taken over.

use std::{collections::BTreeMap, num::NonZeroU64, time::SystemTime};

use pillarbox_messages::{ArchiveFileId, FileAction};
use pillarbox_settings::{BackgroundWork, Pace};

use super::{background::often, *};

pub(super) const OLD: &[u8] = b"as it was put\n";
pub(super) const NEW: &[u8] = b"as it wAs put\n";

/// A site whose pillar looks into its directories again and again.
async fn restless() -> Site {
    Site::with(|options| options.settings.reconcile = often()).await
}

/// One whose pillar finds these files at its first start.
pub(super) async fn taking_over(
    files: &[(&str, &[u8])],
    change: impl FnOnce(&mut PillarOptions),
) -> Site {
    let start = |options: &mut PillarOptions| {
        options.settings.first_audit_number = NonZeroU64::new(1_001);
        options.settings.reconcile = often();
        for (path, content) in files {
            lay(
                &options.settings.directories[0].join("books"),
                path,
                content,
            );
        }
        change(options);
    };
    Site::with(start).await
}

/// A file that has been there for two hours.
pub(super) fn lay(base: &Path, path: &str, content: &[u8]) {
    let path = base.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    age(&path);
}

fn age(path: &Path) {
    let file = fs::File::options().append(true).open(path).unwrap();
    let past = SystemTime::now() - Duration::from_secs(7_200);
    file.set_modified(past).unwrap();
}

/// Reads next to nothing.
fn slowly() -> BackgroundWork {
    BackgroundWork {
        pace: Pace(NonZeroU64::new(1)),
        interval: Duration::from_secs(3_600),
    }
}

impl Site {
    fn base(&self) -> PathBuf {
        self.directory.path().join("archive/books")
    }

    pub(super) fn id(id: &str) -> ArchiveFileId {
        ArchiveFileId::new(&id.into(), None).unwrap()
    }

    pub(super) async fn wait_for_row(&self, id: &str) -> crate::index::FileRow {
        loop {
            if let Some(row) = self.row(id).await {
                return row;
            }
            self.after_a_turn("reconcile").await;
        }
    }
}

/// Content and time of every file.
fn tree(base: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime)> {
    let (mut found, mut open) = (BTreeMap::new(), vec![base.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let modified = fs::metadata(&path).unwrap().modified().unwrap();
                let content = fs::read(&path).unwrap();
                found.insert(path, (content, modified));
            }
        }
    }
    found
}

/// Who has lost a file goes on knowing of it (P9).
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_row_without_a_file_is_kept_and_told_once() {
    let mut site = restless().await;
    site.put("x1", OLD).await;
    site.put("x2", OLD).await;
    let row = site.row("x1").await.unwrap();
    fs::remove_file(site.place("x1")).unwrap();
    let missing = (AlarmCode::ComponentFailure, Some("x1".into()));
    assert_eq!(site.next_alarm().await, missing);
    site.after_a_turn("reconcile").await;
    site.assert_no_alarm().await;
    assert_eq!(site.row("x1").await, None);
    assert!(site.row("x2").await.is_some());
    assert_eq!(
        site.index().health(&"books".into()).await.unwrap().missing,
        1
    );
    assert_eq!(site.refused(site.get_request("x1", DEAD)).await, NOT_FOUND);

    // It comes back, but not as it was.
    lay(&site.base(), "fileDir/x1", NEW);
    let changed = (AlarmCode::ChecksumAlarm, Some("x1".into()));
    assert_eq!(site.next_alarm().await, changed);
    let again = site.wait_for_row("x1").await;
    assert_eq!(again.expected, row.expected);
    assert_eq!(again.observed, md5_data(NEW).checksum_value);
    assert!(again.modified_ms > row.modified_ms);
    let actions: Vec<_> = site
        .trail()
        .await
        .into_iter()
        .map(|(action, _)| action)
        .collect();
    use FileAction::{Inconsistency, Other, PutFile};
    assert_eq!(actions, [PutFile, PutFile, Other, Inconsistency]);
}

/// A file without a row is read and listed; what is no archived file is left alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_without_a_row_is_taken_in_where_it_is() {
    let mut site = restless().await;
    site.put("x1", OLD).await;
    let base = site.base();
    lay(&base, "fileDir/stray.txt", NEW);
    lay(&base, "folderDir/a/b/stray.txt", b"");
    lay(&base, "folderDir/flat.txt", NEW);
    lay(&base, "fileDir/folder/in-it.txt", NEW);
    lay(&base, "fileDir/.hidden", NEW);
    std::os::unix::fs::symlink(site.place("x1"), base.join("fileDir/link.txt")).unwrap();
    let before = tree(&base);
    let flat = site.wait_for_row("stray.txt").await;
    let deep = site.wait_for_row("a/b/stray.txt").await;
    site.after_a_turn("reconcile").await;
    assert_eq!(flat.observed, md5_data(NEW).checksum_value);
    assert_eq!(
        (flat.size, &flat.expected),
        (NEW.len() as u64, &flat.observed)
    );
    assert_eq!(
        (deep.size, &deep.observed),
        (0, &md5_data(b"").checksum_value)
    );
    let first = site.row("x1").await.unwrap();
    assert!(flat.modified_ms > first.modified_ms && flat.calculated_ms > first.calculated_ms);
    assert_eq!(site.index().count(&"books".into()).await.unwrap(), 3);
    let told = site.trail().await.split_off(1);
    assert!(
        told.iter().all(|(action, _)| *action == FileAction::Other),
        "{told:?}"
    );
    assert_eq!(told.len(), 2);
    assert_eq!(tree(&base), before);
    site.assert_no_alarm().await;
    assert_eq!(
        site.refused(site.identify_put("stray.txt")).await,
        DUPLICATE
    );
}

/// A put that has given its file a name and is about to write its row has the file's claim.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_is_being_put_is_not_taken_in() {
    let site = restless().await;
    let claim = site
        .pillar
        .context
        .archive
        .claim(&"books".into(), &Site::id("x1"));
    lay(&site.base(), "fileDir/x1", OLD);
    site.after_a_turn("reconcile").await;
    assert_eq!(site.row("x1").await, None);
    drop(claim.unwrap());
    site.wait_for_row("x1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn operations_wait_for_workers_and_refuse_each_other() {
    let site = Site::open().await;
    let archive = site.pillar.context.archive.clone();
    let (books, x1) = ("books".into(), Site::id("x1"));
    let brief = archive.claim_briefly(&books, &x1).unwrap().unwrap();
    assert!(archive.claim_briefly(&books, &x1).unwrap().is_none());
    let mut waiting = std::pin::pin!(archive.claim_in_turn(&books, &x1));
    let at_once = tokio::time::timeout(Duration::from_millis(1), waiting.as_mut()).await;
    assert!(at_once.is_err());
    drop(brief);
    let claim = tokio::time::timeout(SOON, waiting).await.unwrap().unwrap();
    let refused = archive.claim_in_turn(&books, &x1).await;
    assert!(matches!(refused, Err(ArchiveError::Busy { .. })));
    assert!(archive.claim_briefly(&books, &x1).unwrap().is_none());
    drop(claim);
    archive.claim_in_turn(&books, &x1).await.unwrap();
}

/// Half a file need not wait until its checksum is old.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_of_another_size_is_noticed_before_its_checksum_is_old() {
    let mut site = restless().await;
    site.put("x1", OLD).await;
    fs::write(site.place("x1"), &OLD[..3]).unwrap();
    let changed = (AlarmCode::ChecksumAlarm, Some("x1".into()));
    assert_eq!(site.next_alarm().await, changed);
    site.after_a_turn("reconcile").await;
    site.assert_no_alarm().await;
    assert_eq!(
        site.row("x1").await.unwrap().observed,
        md5_data(&OLD[..3]).checksum_value
    );
}

/// Who has collected audit trails goes on after its last number: a start that does not know it would be asked for
/// numbers that never come.
#[tokio::test]
async fn a_new_index_over_archived_files_asks_for_the_first_audit_number() {
    let files = [("fileDir/old.txt", OLD), ("folderDir/a/old.txt", OLD)];
    for file in files {
        let site = Site::open().await;
        let elsewhere = tempfile::tempdir().unwrap();
        let broker = site.broker_elsewhere().await;
        let mut options = options_of(elsewhere.path(), &site.repository, &broker, &site.exchange);
        let base = options.settings.directories[0].join("books");
        lay(&base, file.0, file.1);
        let refused = Pillar::start(options.clone()).await.unwrap_err();
        assert!(matches!(refused, PillarError::TakeOver { .. }), "{refused}");
        let text = refused.to_string();
        for part in ["archive", "'books'", "first_audit_number = N", "'north'"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(text.lines().count(), 1, "{text}");
        // Nothing was touched.
        assert_eq!(tree(&base).len(), 1);
        assert!(!base.join("tmpDir").exists());
        options.settings.first_audit_number = NonZeroU64::new(1);
        // Now it comes as far as a bus without destinations lets it.
        let refused = Pillar::start(options).await.unwrap_err();
        assert!(matches!(refused, PillarError::Bus { .. }), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_taken_over_archive_is_listed_and_nothing_in_it_is_moved() {
    let files: [(&str, &[u8]); 5] = [
        ("fileDir/one.txt", OLD),
        ("fileDir/empty", b""),
        ("folderDir/a/two.txt", NEW),
        ("folderDir/a-b/c/three.txt", OLD),
        ("retainDir/deleted.txt", OLD),
    ];
    let mut before = BTreeMap::new();
    let site = taking_over(&files, |options| {
        before = tree(&options.settings.directories[0]);
    });
    let site = site.await;
    for (id, content) in [
        ("one.txt", OLD),
        ("empty", b"".as_slice()),
        ("a/two.txt", NEW),
        ("a-b/c/three.txt", OLD),
    ] {
        let row = site.wait_for_row(id).await;
        assert_eq!(row.observed, md5_data(content).checksum_value, "{id}");
    }
    assert_eq!(site.row("deleted.txt").await, None);
    let events = site.audit().await;
    let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
    assert_eq!(numbers, [1_001, 1_002, 1_003, 1_004]);
    assert!(
        events
            .iter()
            .all(|event| event.entry.action == FileAction::Other)
    );
    assert_eq!(tree(&site.directory.path().join("archive")), before);
}

/// Until all files of a taken over archive have been found, a put does not take one of them for the leftover of a
/// crash.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_put_finds_a_taken_over_file_before_it_is_listed() {
    let files: [(&str, &[u8]); 2] = [("fileDir/x1", OLD), ("folderDir/a/x1", OLD)];
    let site = taking_over(&files, |options| options.settings.reconcile = slowly());
    let mut site = site.await;
    for id in ["x1", "a/x1"] {
        assert_eq!(site.row(id).await, None);
        let request = site.put_request(id, NEW).await;
        let answers = site.ask(request).await;
        assert_eq!(codes(&answers), [DUPLICATE]);
        let Message::PutFileFinalResponse(answer) = &answers[0] else {
            panic!("{answers:?}")
        };
        let existing = answer.checksum_data_for_existing_file.as_ref().unwrap();
        assert_eq!(existing.checksum_value, md5_data(OLD).checksum_value);
        assert!(site.row(id).await.is_some());
    }
    assert_eq!(fs::read(site.place("x1")).unwrap(), OLD);
    assert_eq!(site.lying("retainDir"), []);
    site.put("x2", NEW).await;
}

/// What a put that was cut off leaves is nobody's file: the same put is done when it comes again. Only after that time
/// it is a file like any other, and audited as one (P4).
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_crash_left_waits_for_its_request() {
    let mut site = restless().await;
    for id in ["x1", "x2"] {
        fs::write(site.place(id), OLD).unwrap();
    }
    site.after_a_turn("reconcile").await;
    assert_eq!(site.index().count(&"books".into()).await.unwrap(), 0);
    site.put("x1", NEW).await;
    assert_eq!(fs::read(site.place("x1")).unwrap(), NEW);
    assert_eq!(site.lying("retainDir"), [("x1".to_owned(), OLD.to_vec())]);
    age(&site.place("x2"));
    site.wait_for_row("x2").await;
    let actions: Vec<_> = site.trail().await.into_iter().map(|it| it.0).collect();
    assert_eq!(actions, [FileAction::PutFile, FileAction::Other]);
}

/// A request may wait as long as it does not expire.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_crash_left_waits_as_long_as_the_settings_let_a_request_wait() {
    let repository = format!("{REPOSITORY}[timeouts]\noperation = \"3h\"\n");
    let restless = |options: &mut PillarOptions| options.settings.reconcile = often();
    let site = Site::make(&repository, &[], restless).await;
    // For two hours it has been there.
    lay(&site.base(), "fileDir/x1", OLD);
    site.after_a_turn("reconcile").await;
    assert_eq!(site.row("x1").await, None);
}
