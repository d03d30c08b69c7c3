//! What a crash or a failure left half done.

use pillarbox_messages::{Operation, ReplaceFileFinalResponse};

use super::*;
use crate::archive::tests::full::Mounted;
use crate::change::{Changed, conclude};
use crate::index::{AuditEntry, NewVersion, OpenOperation, OperationKey};

const OLD: &[u8] = b"one";
const NEW: &[u8] = b"the second";

fn key(request: &Header, operation: Operation, id: &str) -> OperationKey {
    OperationKey {
        from: request.from.clone(),
        correlation: request.correlation_id.clone(),
        operation,
        collection: "books".into(),
        file_id: id.into(),
    }
}

fn event(request: &Header, action: FileAction, id: &str) -> AuditEntry {
    AuditEntry {
        file_id: id.into(),
        actor: request.from.clone(),
        action,
        info: Some("from before".to_owned()),
        operation_id: Some(request.correlation_id.clone()),
        certificate_id: None,
        audit_trail_information: None,
    }
}

impl Site {
    /// What the pillar writes down before it replaces.
    fn open_replace(&self, request: &ReplaceFileRequest, new: &[u8]) -> OpenOperation {
        let id = request.file_id.as_str();
        let response = ReplaceFileFinalResponse {
            header: self.client.response_header(&request.header),
            response_info: crate::context::completed("replaced before the crash"),
            pillar_id: Some("north".into()),
            pillar_checksum_spec: None,
            file_id: id.into(),
            file_address: request.file_address.clone(),
            checksum_data_for_existing_file: None,
            checksum_data_for_new_file: Some(md5_data(new)),
        };
        OpenOperation {
            key: key(&request.header, Operation::ReplaceFile, id),
            new: Some(NewVersion {
                directory: self.directory.path().join("archive"),
                size: new.len() as u64,
                checksum: md5_data(new).checksum_value,
            }),
            audit: event(&request.header, FileAction::ReplaceFile, id),
            response: response.into(),
        }
    }

    fn open_delete(&self, request: &DeleteFileRequest) -> OpenOperation {
        let id = request.file_id.as_str();
        let response = pillarbox_messages::DeleteFileFinalResponse {
            header: self.client.response_header(&request.header),
            response_info: crate::context::completed("deleted before the crash"),
            pillar_id: Some("north".into()),
            file_id: id.into(),
            checksum_data_for_existing_file: None,
        };
        OpenOperation {
            key: key(&request.header, Operation::DeleteFile, id),
            new: None,
            audit: event(&request.header, FileAction::DeleteFile, id),
            response: response.into(),
        }
    }

    /// The second name that comes before either.
    fn retain(&self, id: &str) {
        let kept = self
            .directory
            .path()
            .join("archive/books/retainDir")
            .join(id);
        fs::hard_link(self.place(id), kept).unwrap();
    }

    pub(super) async fn row(&self, id: &str) -> Option<crate::index::FileRow> {
        self.index()
            .find(&"books".into(), &id.into())
            .await
            .unwrap()
    }

    async fn last_event(&self) -> (FileAction, String) {
        self.trail().await.pop().unwrap()
    }
}

fn text(answers: &[Message]) -> &str {
    let info = answers.last().unwrap().response_info().unwrap();
    info.response_text.as_deref().unwrap()
}

/// Killed between the names and the commit: the request that comes again is answered from memory.
#[tokio::test]
async fn what_had_happened_on_the_disk_is_completed_at_the_start() {
    let mut site = Site::open().await;
    for id in ["replaced", "deleted"] {
        site.put(id, OLD).await;
        site.retain(id);
    }
    let replace = site.replace_request("replaced", OLD, NEW).await;
    let open = site.open_replace(&replace, NEW);
    site.index().open_operation(open).await.unwrap();
    let temporary = site
        .directory
        .path()
        .join("archive/books/tmpDir/.0d9c1f58-2f3f-4c0e-9d3b-6d0a4b0f7c11");
    fs::write(&temporary, NEW).unwrap();
    fs::rename(&temporary, site.place("replaced")).unwrap();
    let delete = site.delete_request("deleted", OLD);
    site.index()
        .open_operation(site.open_delete(&delete))
        .await
        .unwrap();
    fs::remove_file(site.place("deleted")).unwrap();

    let mut site = site.restart().await;
    let row = site.row("replaced").await.unwrap();
    assert_eq!(
        (row.size, row.observed),
        (NEW.len() as u64, md5_data(NEW).checksum_value)
    );
    assert_eq!(site.row("deleted").await, None);
    assert_eq!(
        site.lying("fileDir"),
        [("replaced".to_owned(), NEW.to_vec())]
    );
    let kept = ["deleted", "replaced"].map(|id| (id.to_owned(), OLD.to_vec()));
    assert_eq!(site.lying("retainDir"), kept);
    assert_eq!(site.index().open_operations().await.unwrap(), []);
    let actions: Vec<_> = site
        .trail()
        .await
        .into_iter()
        .map(|(action, _)| action)
        .collect();
    let put = FileAction::PutFile;
    assert_eq!(
        actions,
        [put, put, FileAction::ReplaceFile, FileAction::DeleteFile]
    );

    let again = site.ask(replace).await;
    assert_eq!(codes(&again), [COMPLETED]);
    assert_eq!(text(&again), "replaced before the crash");
    let Some(Message::ReplaceFileFinalResponse(response)) = again.last() else {
        panic!()
    };
    let new = response.checksum_data_for_new_file.as_ref().unwrap();
    assert_eq!(
        new.calculation_timestamp,
        Timestamp::from_millis(row.calculated_ms)
    );
    let again = site.ask(delete).await;
    assert_eq!(
        (codes(&again), text(&again)),
        (vec![COMPLETED], "deleted before the crash")
    );
    assert_eq!(site.trail().await.len(), 4);
}

/// Killed before the first name of the archive changed: it was never begun, and comes again.
#[tokio::test]
async fn what_had_not_happened_on_the_disk_leaves_nothing() {
    let mut site = Site::open().await;
    for id in ["a", "b"].map(|name| name.repeat(3)) {
        site.put(&id, OLD).await;
        site.retain(&id);
    }
    let replace = site.replace_request("aaa", OLD, NEW).await;
    let open = site.open_replace(&replace, NEW);
    site.index().open_operation(open).await.unwrap();
    fs::write(
        site.directory
            .path()
            .join("archive/books/tmpDir/.0d9c1f58-2f3f-4c0e-9d3b-6d0a4b0f7c11"),
        NEW,
    )
    .unwrap();
    let delete = site.delete_request("bbb", OLD);
    site.index()
        .open_operation(site.open_delete(&delete))
        .await
        .unwrap();

    let mut site = site.restart().await;
    let whole = ["aaa", "bbb"].map(|id| (id.to_owned(), OLD.to_vec()));
    assert_eq!(site.lying("fileDir"), whole);
    for directory in ["tmpDir", "retainDir"] {
        assert_eq!(site.lying(directory), [], "{directory}");
    }
    assert_eq!(site.index().open_operations().await.unwrap(), []);
    assert_eq!(site.trail().await.len(), 2);

    assert_eq!(codes(&site.ask(replace).await), [ACCEPTED, COMPLETED]);
    assert_eq!(codes(&site.ask(delete).await), [ACCEPTED, COMPLETED]);
    assert_eq!(site.lying("fileDir"), [("aaa".to_owned(), NEW.to_vec())]);
    assert_eq!(site.lying("retainDir"), whole);
    assert_eq!(site.trail().await.len(), 4);
}

/// After a failure that left it unknown what the index has: the file's next change finds out.
#[tokio::test]
async fn a_file_s_next_change_begins_with_the_end_of_the_last() {
    let mut site = Site::open().await;
    site.put("aaa", OLD).await;
    let delete = site.delete_request("aaa", OLD);
    site.index()
        .open_operation(site.open_delete(&delete))
        .await
        .unwrap();
    fs::remove_file(site.place("aaa")).unwrap();
    site.put("aaa", NEW).await;
    assert_eq!(site.row("aaa").await.unwrap().size, NEW.len() as u64);
    let actions: Vec<_> = site
        .trail()
        .await
        .into_iter()
        .map(|(action, _)| action)
        .collect();
    let put = FileAction::PutFile;
    assert_eq!(actions, [put, FileAction::DeleteFile, put]);
    assert_eq!(text(&site.ask(delete).await), "deleted before the crash");

    let replace = site.replace_request("aaa", NEW, b"3").await;
    let open = site.open_replace(&replace, b"3");
    site.index().open_operation(open).await.unwrap();
    let other = site.delete_request("aaa", NEW);
    assert_eq!(codes(&site.ask(other).await), [ACCEPTED, COMPLETED]);
    assert_eq!(site.last_event().await.0, FileAction::DeleteFile);
    assert_eq!(site.trail().await.len(), 4);
}

/// A reader between the names and the commit gets the new version, and no checksum that is not its own.
#[tokio::test]
async fn whoever_reads_in_between_is_told_no_wrong_checksum() {
    let mut site = Site::open().await;
    site.put("aaa", OLD).await;
    let replace = site.replace_request("aaa", OLD, NEW).await;
    let open = site.open_replace(&replace, NEW);
    let mut told = Vec::new();
    for at in ["before", "between", "after"] {
        match at {
            "between" => {
                site.index().open_operation(open.clone()).await.unwrap();
                fs::write(site.place("aaa"), NEW).unwrap();
            }
            "after" => site = site.restart().await,
            _ => {}
        }
        let address = site.server.offers().address_for(at);
        let answers = site.ask(site.get_request("aaa", &address)).await;
        assert_eq!(codes(&answers), [ACCEPTED, COMPLETED]);
        let Message::GetFileProgressResponse(progress) = &answers[0] else {
            panic!("{answers:?}")
        };
        let checksum = progress.checksum_data_for_existing_file.as_ref();
        told.push((
            checksum.map(|data| data.checksum_value.clone()),
            site.delivered(&address).await,
        ));
    }
    let [old, new] = [OLD, NEW].map(|content| Some(md5_data(content).checksum_value));
    let expected = [(old, OLD), (None, NEW), (new, NEW)];
    assert_eq!(told, expected.map(|(sum, content)| (sum, content.to_vec())));
}

/// What can't be ended keeps no pillar from starting, and is not forgotten.
#[tokio::test]
async fn an_operation_that_cannot_be_ended_stays_open() {
    let mut site = Site::open().await;
    site.put("aaa", OLD).await;
    let mut delete = site.delete_request("aaa", OLD);
    delete.file_id = "a/../b".into();
    let open = site.open_delete(&delete);
    site.index().open_operation(open.clone()).await.unwrap();
    let mut site = site.restart().await;
    assert_eq!(site.index().open_operations().await.unwrap(), [open]);
    site.put("bbb", NEW).await;
}

/// Neither in the index nor undone: whoever comes next finds out what became of it.
#[tokio::test]
async fn what_cannot_be_undone_stays_open() {
    let mut site = Site::open().await;
    let archive = site.pillar.context.archive.clone();
    for (id, readable) in [("aaa", false), ("bbb", true)] {
        site.put(id, OLD).await;
        let delete = site.delete_request(id, OLD);
        let open = site.open_delete(&delete);
        site.index().open_operation(open.clone()).await.unwrap();
        let file = pillarbox_messages::ArchiveFileId::new(&id.into(), None).unwrap();
        let claim = archive.claim(&"books".into(), &file).unwrap();
        let removed = archive.remove(claim).await.unwrap();
        // The commit is refused, and nothing written.
        let row = site.row(id).await.unwrap();
        assert!(
            site.index()
                .mark_missing(&"books".into(), &row)
                .await
                .unwrap()
        );
        let kept = site
            .directory
            .path()
            .join("archive/books/retainDir")
            .join(id);
        if !readable {
            fs::rename(&kept, kept.with_extension("away")).unwrap();
        }
        let changed = Changed::Removed(removed);
        conclude(&site.pillar.context, open.clone(), changed)
            .await
            .unwrap_err();
        let still_open = if readable { vec![] } else { vec![open] };
        assert_eq!(site.index().open_operations().await.unwrap(), still_open);
        assert_eq!(site.place(id).exists(), readable);
        // The next change of the file finds it deleted, and the one after that finds nothing open.
        site.put(id, NEW).await;
        assert_eq!(site.index().open_operations().await.unwrap(), []);
    }
}

#[tokio::test]
async fn what_the_index_has_no_room_for_is_taken_back() {
    let Some(mounted) = Mounted::new() else {
        eprintln!("SKIPPED what_the_index_has_no_room_for_is_taken_back: no right to mount");
        return;
    };
    let mut site = Site::open().await;
    site.pillar.shutdown(SOON).await;
    let mut options = options_of(
        site.directory.path(),
        &site.repository,
        &site.broker,
        &site.exchange,
    );
    options.data = mounted.0.path().to_owned();
    site.pillar = Pillar::start(options).await.unwrap();
    site.put("aaa", OLD).await;
    let filler = mounted.0.path().join("filler");
    fs::write(&filler, vec![0; 2 << 20]).unwrap_err();
    let full = ResponseCode::Failure;
    let replace = site.replace_request("aaa", OLD, NEW).await;
    assert_eq!(codes(&site.ask(replace.clone()).await), [ACCEPTED, full]);
    let delete = site.delete_request("aaa", OLD);
    assert_eq!(codes(&site.ask(delete).await), [ACCEPTED, full]);
    assert_eq!(site.lying("fileDir"), [("aaa".to_owned(), OLD.to_vec())]);
    for directory in ["tmpDir", "retainDir"] {
        assert_eq!(site.lying(directory), [], "{directory}");
    }
    fs::remove_file(filler).unwrap();
    assert_eq!(codes(&site.ask(replace).await), [ACCEPTED, COMPLETED]);
    let delete = site.delete_request("aaa", NEW);
    assert_eq!(codes(&site.ask(delete).await), [ACCEPTED, COMPLETED]);
    site.pillar.shutdown(SOON).await;
}
