//! Replacing and deleting.

use pillarbox_messages::{
    DeleteFileFinalResponse, IdentifyPillarsForDeleteFileRequest,
    IdentifyPillarsForReplaceFileRequest, ReplaceFileFinalResponse,
};

use super::*;

const OLD: &[u8] = b"one";
const NEW: &[u8] = b"the second";

fn replaced(answers: &[Message]) -> &ReplaceFileFinalResponse {
    match answers.last() {
        Some(Message::ReplaceFileFinalResponse(response)) => response,
        other => panic!("{other:?}"),
    }
}

fn deleted(answers: &[Message]) -> &DeleteFileFinalResponse {
    match answers.last() {
        Some(Message::DeleteFileFinalResponse(response)) => response,
        other => panic!("{other:?}"),
    }
}

impl Site {
    fn identify_replace(
        &self,
        id: &str,
        size: Option<u64>,
    ) -> IdentifyPillarsForReplaceFileRequest {
        IdentifyPillarsForReplaceFileRequest {
            header: self.to_all(),
            audit_trail_information: None,
            file_id: id.into(),
            file_size: size,
        }
    }

    fn identify_delete(&self, id: &str) -> IdentifyPillarsForDeleteFileRequest {
        IdentifyPillarsForDeleteFileRequest {
            header: self.to_all(),
            audit_trail_information: None,
            file_id: id.into(),
        }
    }

    /// The file is as it was put, and nothing else is there.
    async fn assert_untouched(&self, id: &str) {
        let whole = [(id.to_owned(), OLD.to_vec())];
        assert_eq!(self.lying("fileDir"), whole);
        for directory in ["tmpDir", "folderDir", "retainDir"] {
            assert_eq!(self.lying(directory), [], "{directory}");
        }
        let row = self.index().find(&"books".into(), &id.into()).await;
        assert_eq!(row.unwrap().unwrap().size, OLD.len() as u64);
        assert_eq!(self.index().open_operations().await.unwrap(), []);
    }
}

#[tokio::test]
async fn a_file_is_replaced_once_however_often_it_is_asked() {
    for id in ["a.tif", "a/b.tif"] {
        let mut site = Site::open().await;
        let unknown = site.refused(site.identify_replace(id, None)).await;
        assert_eq!(unknown, NOT_FOUND);
        site.put(id, OLD).await;
        assert_eq!(
            site.refused(site.identify_replace(id, None)).await,
            POSITIVE
        );
        let before = site
            .index()
            .find(&"books".into(), &id.into())
            .await
            .unwrap()
            .unwrap();

        let request = site.replace_request(id, OLD, NEW).await;
        let answers = site.ask(request.clone()).await;
        assert_eq!(codes(&answers), [ACCEPTED, COMPLETED]);
        let response = replaced(&answers).clone();
        let old = response.checksum_data_for_existing_file.as_ref().unwrap();
        let new = response.checksum_data_for_new_file.as_ref().unwrap();
        assert_eq!(old.checksum_value, sum(OLD, &hmac()));
        assert_eq!(new.checksum_value, sum(NEW, &hmac()));
        let row = site
            .index()
            .find(&"books".into(), &id.into())
            .await
            .unwrap()
            .unwrap();
        assert_eq!(row.observed, md5_data(NEW).checksum_value);
        assert!(row.modified_ms > before.modified_ms);
        assert_eq!(
            new.calculation_timestamp,
            Timestamp::from_millis(row.calculated_ms)
        );
        assert_eq!((row.size, row.expected), (NEW.len() as u64, row.observed));
        let tree = if id.contains('/') {
            "folderDir"
        } else {
            "fileDir"
        };
        assert!(site.lying(tree).contains(&(id.to_owned(), NEW.to_vec())));
        assert!(
            site.lying("retainDir")
                .contains(&(id.to_owned(), OLD.to_vec()))
        );

        // The same request again: the same answer, without the file having to be there any more.
        site.exchange.delete(&request.file_address).await.unwrap();
        let again = site.ask(request).await;
        assert_eq!(codes(&again), [COMPLETED]);
        assert_eq!(*replaced(&again), response);
        let trail = site.trail().await;
        let actions: Vec<_> = trail.iter().map(|(action, _)| *action).collect();
        assert_eq!(actions, [FileAction::PutFile, FileAction::ReplaceFile]);
        assert_eq!(trail[1].1, "file replaced");
        assert_eq!(site.lying("tmpDir"), []);
        site.assert_all_ended().await;
    }
}

#[tokio::test]
async fn a_file_is_deleted_once_however_often_it_is_asked() {
    for id in ["a.tif", "a/b/c.tif"] {
        let mut site = Site::open().await;
        assert_eq!(site.refused(site.identify_delete(id)).await, NOT_FOUND);
        site.put(id, OLD).await;
        assert_eq!(site.refused(site.identify_delete(id)).await, POSITIVE);

        let request = site.delete_request(id, OLD);
        let answers = site.ask(request.clone()).await;
        assert_eq!(codes(&answers), [ACCEPTED, COMPLETED]);
        let response = deleted(&answers).clone();
        let last = response.checksum_data_for_existing_file.as_ref().unwrap();
        assert_eq!(last.checksum_value, sum(OLD, &hmac()));
        for directory in ["tmpDir", "fileDir", "folderDir"] {
            assert_eq!(site.lying(directory), [], "{directory}");
        }
        assert!(
            site.lying("retainDir")
                .contains(&(id.to_owned(), OLD.to_vec()))
        );
        assert_eq!(site.index().count(&"books".into()).await.unwrap(), 0);

        let again = site.ask(request.clone()).await;
        assert_eq!(codes(&again), [COMPLETED]);
        assert_eq!(*deleted(&again), response);
        let mut other = request;
        other.header = site.header();
        assert_eq!(site.refused(other).await, NOT_FOUND);
        assert_eq!(site.refused(site.identify_delete(id)).await, NOT_FOUND);
        let trail = site.trail().await;
        let actions: Vec<_> = trail.iter().map(|(action, _)| *action).collect();
        assert_eq!(
            actions,
            [
                FileAction::PutFile,
                FileAction::DeleteFile,
                FileAction::Failure
            ]
        );
        assert_eq!(trail[1].1, "file deleted");
        site.assert_all_ended().await;

        // Put again, replaced and deleted: every version is kept.
        site.put(id, NEW).await;
        let request = site.replace_request(id, NEW, b"3").await;
        assert_eq!(codes(&site.ask(request).await), [ACCEPTED, COMPLETED]);
        let request = site.delete_request(id, b"3");
        assert_eq!(codes(&site.ask(request).await), [ACCEPTED, COMPLETED]);
        let kept = site
            .lying("retainDir")
            .into_iter()
            .map(|(_, content)| content);
        let kept: Vec<_> = kept.filter(|content| !content.is_empty()).collect();
        assert_eq!(kept, [OLD, NEW, b"3"]);
    }
}

/// What is wrong with a request, in the order of the checks: each row is wrong in this and in everything below. An
/// attempt that fails leaves its trace, too (P17).
#[tokio::test]
async fn the_first_thing_that_is_wrong_with_a_replace_is_told() {
    let mut site = Site::open().await;
    site.put("a.tif", OLD).await;
    type Change = fn(&mut ReplaceFileRequest);
    let rows: [(&str, ResponseCode, Change); 11] = [
        ("address", NOT_UNDERSTOOD, |it| {
            it.file_address = "http://127.0.0.2:80/a".to_owned();
        }),
        ("value", OLD_CHECKSUM, |it| {
            it.checksum_data_for_existing_file = Some(md5_data(b"other"));
        }),
        ("no new checksum", NEW_CHECKSUM, |it| {
            it.checksum_data_for_new_file = None;
        }),
        ("no existing checksum", OLD_CHECKSUM, |it| {
            it.checksum_data_for_existing_file = None;
        }),
        ("requested spec", NOT_UNDERSTOOD, |it| {
            it.checksum_request_for_new_file = Some(spec(ChecksumType::HmacMd5, None));
        }),
        ("space", ResponseCode::Failure, |it| it.file_size = u64::MAX),
        ("unknown", NOT_FOUND, |it| it.file_id = "b.tif".into()),
        ("file id", NOT_UNDERSTOOD, |it| it.file_id = "a/../b".into()),
        ("other pillar", NOT_UNDERSTOOD, |it| {
            it.pillar_id = Some("south".into());
        }),
        ("other collection", NOT_UNDERSTOOD, |it| {
            it.header.collection_id = Some("maps".into());
        }),
        ("no collection", NOT_UNDERSTOOD, |it| {
            it.header.collection_id = None;
        }),
    ];
    let mut wrong = site.replace_request("a.tif", OLD, NEW).await;
    for (number, (name, code, change)) in rows.into_iter().enumerate() {
        change(&mut wrong);
        wrong.header.correlation_id = CorrelationId::random();
        let answers = site.ask(wrong.clone()).await;
        assert_eq!(codes(&answers), [code], "{name}: {answers:?}");
        // Nobody is told the right checksum.
        let response = replaced(&answers);
        assert_eq!(response.checksum_data_for_existing_file, None);
        let text = response.response_info.response_text.as_deref().unwrap();
        assert!(
            !text.contains(&md5_data(OLD).checksum_value.to_string()),
            "{text}"
        );
        // Requests for others are nobody's business here.
        let told = site.trail().await.len() - 1;
        assert_eq!(told, (number + 1).min(8), "{name}");
    }
    site.assert_untouched("a.tif").await;
    let trail = site.trail().await;
    assert!(
        trail[1..]
            .iter()
            .all(|(action, _)| *action == FileAction::Failure)
    );
    assert!(
        trail[2]
            .1
            .starts_with("ReplaceFile refused, EXISTING_FILE_CHECKSUM_FAILURE: "),
        "{trail:?}"
    );
    // Three are grave enough for the default alarm level.
    for _ in 0..3 {
        let alarm = site.next_alarm().await;
        assert_eq!(alarm, (AlarmCode::ChecksumAlarm, Some("a.tif".into())));
    }
}

#[tokio::test]
async fn the_first_thing_that_is_wrong_with_a_delete_is_told() {
    let mut site = Site::open().await;
    site.put("a.tif", OLD).await;
    type Change = fn(&mut DeleteFileRequest);
    let rows: [(&str, ResponseCode, Change); 9] = [
        ("value", OLD_CHECKSUM, |it| {
            it.checksum_data_for_existing_file = Some(md5_data(b"other"));
        }),
        ("unknown", NOT_FOUND, |it| it.file_id = "b.tif".into()),
        ("file id", NOT_UNDERSTOOD, |it| it.file_id = "a/../b".into()),
        ("given spec", NOT_UNDERSTOOD, |it| {
            let given = it.checksum_data_for_existing_file.as_mut().unwrap();
            given.checksum_spec = spec(ChecksumType::Md5, Some("ab"));
        }),
        ("no checksum", OLD_CHECKSUM, |it| {
            it.checksum_data_for_existing_file = None;
        }),
        ("requested spec", NOT_UNDERSTOOD, |it| {
            it.checksum_request_for_existing_file = Some(spec(ChecksumType::HmacMd5, None));
        }),
        ("other pillar", NOT_UNDERSTOOD, |it| {
            it.pillar_id = Some("south".into());
        }),
        ("other collection", NOT_UNDERSTOOD, |it| {
            it.header.collection_id = Some("maps".into());
        }),
        ("no collection", NOT_UNDERSTOOD, |it| {
            it.header.collection_id = None;
        }),
    ];
    let mut wrong = site.delete_request("a.tif", OLD);
    for (number, (name, code, change)) in rows.into_iter().enumerate() {
        change(&mut wrong);
        wrong.header.correlation_id = CorrelationId::random();
        let answers = site.ask(wrong.clone()).await;
        assert_eq!(codes(&answers), [code], "{name}: {answers:?}");
        let response = deleted(&answers);
        assert_eq!(response.checksum_data_for_existing_file, None);
        let text = response.response_info.response_text.as_deref().unwrap();
        assert!(
            !text.contains(&md5_data(OLD).checksum_value.to_string()),
            "{text}"
        );
        let told = site.trail().await.len() - 1;
        assert_eq!(told, (number + 1).min(6), "{name}");
    }
    site.assert_untouched("a.tif").await;
    let events = site
        .index()
        .audit(AuditQuery::from_number("books".into(), 2))
        .await
        .unwrap();
    let refused = &events[0].entry;
    assert_eq!(refused.action, FileAction::Failure);
    assert_eq!(
        (refused.actor.as_str(), refused.file_id.as_str()),
        ("ingest-1", "a.tif")
    );
    assert!(refused.operation_id.is_some());
    assert_eq!(
        refused.audit_trail_information.as_deref(),
        Some("for the test")
    );
    let info = refused.info.as_deref().unwrap();
    assert!(
        info.starts_with("DeleteFile refused, EXISTING_FILE_CHECKSUM_FAILURE: "),
        "{info}"
    );
    let alarms = [site.next_alarm().await, site.next_alarm().await];
    let (first, second) = ("a.tif".into(), "a/../b".into());
    assert_eq!(
        alarms,
        [first, second].map(|file| (AlarmCode::ChecksumAlarm, Some(file)))
    );
}

#[tokio::test]
async fn checksums_of_other_types_are_compared_with_the_bytes_on_the_disk() {
    let mut site = Site::open().await;
    site.put("a.tif", OLD).await;
    let sha = |content: &[u8]| ChecksumData {
        checksum_spec: spec(ChecksumType::Sha256, None),
        checksum_value: sum(content, &spec(ChecksumType::Sha256, None)),
        calculation_timestamp: Timestamp::from_millis(0),
    };
    let mut request = site.delete_request("a.tif", OLD);
    request.checksum_data_for_existing_file = Some(sha(NEW));
    assert_eq!(site.refused(request).await, OLD_CHECKSUM);
    let mut request = site.replace_request("a.tif", OLD, NEW).await;
    request.checksum_data_for_existing_file = Some(sha(OLD));
    assert_eq!(codes(&site.ask(request).await), [ACCEPTED, COMPLETED]);
    let mut request = site.delete_request("a.tif", OLD);
    request.checksum_data_for_existing_file = Some(sha(NEW));
    assert_eq!(codes(&site.ask(request).await), [ACCEPTED, COMPLETED]);
}

#[tokio::test]
async fn a_new_version_that_is_not_as_announced_changes_nothing() {
    let mut site = Site::open().await;
    site.put("a.tif", OLD).await;
    type Change = fn(&mut ReplaceFileRequest);
    let cases: [(ResponseCode, Change); 4] = [
        (ResponseCode::Failure, |it| it.file_size = 9),
        (ResponseCode::Failure, |it| it.file_size = 11),
        (TRANSFER, |it| it.file_address = format!("{DEAD}a")),
        (NEW_CHECKSUM, |it| {
            it.checksum_data_for_new_file = Some(md5_data(b"other"));
        }),
    ];
    for (number, (expected, change)) in cases.into_iter().enumerate() {
        let mut request = site.replace_request("a.tif", OLD, NEW).await;
        change(&mut request);
        let answers = site.ask(request).await;
        assert_eq!(codes(&answers), [ACCEPTED, expected], "{number}");
        site.assert_untouched("a.tif").await;
    }
    assert_eq!(site.trail().await.len(), 5);
    // A failure is not remembered: what failed may be tried again.
    let mut request = site.replace_request("a.tif", OLD, NEW).await;
    let right = std::mem::replace(&mut request.file_address, format!("{DEAD}a"));
    assert_eq!(
        codes(&site.ask(request.clone()).await),
        [ACCEPTED, TRANSFER]
    );
    request.file_address = right;
    assert_eq!(codes(&site.ask(request).await), [ACCEPTED, COMPLETED]);
}

/// The answer to the first was lost, and the client begins anew.
#[tokio::test]
async fn a_replace_by_what_is_there_already_is_done() {
    let mut site = Site::open().await;
    site.put("a.tif", OLD).await;
    let mut request = site.replace_request("a.tif", OLD, NEW).await;
    assert_eq!(
        codes(&site.ask(request.clone()).await),
        [ACCEPTED, COMPLETED]
    );
    let trail = site.trail().await;
    request.header = site.header();
    let answers = site.ask(request.clone()).await;
    assert_eq!(codes(&answers), [COMPLETED], "{answers:?}");
    let new = replaced(&answers)
        .checksum_data_for_new_file
        .as_ref()
        .unwrap();
    assert_eq!(new.checksum_value, sum(NEW, &hmac()));
    assert_eq!(site.trail().await, trail);
    let kept = [("a.tif".to_owned(), OLD.to_vec())];
    assert_eq!(site.lying("retainDir"), kept);

    // Nor is anything moved if the new file is what the client believes to be there.
    let mut same = site.replace_request("a.tif", NEW, NEW).await;
    same.checksum_request_for_new_file = Some(spec(ChecksumType::Md5, None));
    same.checksum_request_for_existing_file = Some(spec(ChecksumType::Md5, None));
    let answers = site.ask(same).await;
    assert_eq!(codes(&answers), [COMPLETED], "{answers:?}");
    let response = replaced(&answers);
    for told in [
        &response.checksum_data_for_existing_file,
        &response.checksum_data_for_new_file,
    ] {
        let told = told.as_ref().unwrap();
        assert_eq!(told.checksum_value, md5_data(NEW).checksum_value);
    }
    assert_eq!(site.trail().await, trail);
    assert_eq!(site.lying("retainDir"), kept);

    // Not so if it is another size.
    let mut longer = request.clone();
    longer.file_size += 1;
    assert_eq!(site.refused(longer).await, OLD_CHECKSUM);
}

/// The index has the new file's checksum, the bytes have not: they are what the client has to mean.
#[tokio::test]
async fn a_rotten_file_is_replaced_by_what_the_index_says_is_there() {
    const ROTTEN: &[u8] = b"the secOnd";
    const SHORT: &[u8] = b"the";
    for rotten in [ROTTEN, SHORT, b""] {
        let mut site = Site::open().await;
        site.put("a.tif", NEW).await;
        fs::write(site.place("a.tif"), rotten).unwrap();
        for old in [NEW, OLD] {
            let request = site.replace_request("a.tif", old, NEW).await;
            assert_eq!(site.refused(request).await, OLD_CHECKSUM);
        }
        assert_eq!(site.lying("retainDir"), []);
        let trail = site.trail().await;
        let actions: Vec<_> = trail.iter().map(|(action, _)| *action).collect();
        let (inconsistent, refused) = (FileAction::Inconsistency, FileAction::Failure);
        assert_eq!(actions[1..], [inconsistent, refused, refused]);
        assert!(trail[2].1.contains("its bytes have changed"), "{trail:?}");

        let request = site.replace_request("a.tif", rotten, NEW).await;
        assert_eq!(codes(&site.ask(request).await), [ACCEPTED, COMPLETED]);
        assert_eq!(fs::read(site.place("a.tif")).unwrap(), NEW);
        let kept = [("a.tif".to_owned(), rotten.to_vec())];
        assert_eq!(site.lying("retainDir"), kept);
        let row = site.index().find(&"books".into(), &"a.tif".into()).await;
        let row = row.unwrap().unwrap();
        assert_eq!(row.observed, md5_data(NEW).checksum_value);
        assert_eq!(row.observed, row.expected);
    }
    // Whoever knows what is there need not be refused first.
    let mut site = Site::open().await;
    site.put("a.tif", NEW).await;
    fs::write(site.place("a.tif"), ROTTEN).unwrap();
    let mut request = site.replace_request("a.tif", ROTTEN, NEW).await;
    request.checksum_request_for_existing_file = Some(spec(ChecksumType::Md5, None));
    let answers = site.ask(request).await;
    assert_eq!(codes(&answers), [ACCEPTED, COMPLETED]);
    let response = replaced(&answers);
    let old = response.checksum_data_for_existing_file.as_ref().unwrap();
    assert_eq!(old.checksum_value, md5_data(ROTTEN).checksum_value);
    assert_eq!(
        site.next_alarm().await,
        (AlarmCode::ChecksumAlarm, Some("a.tif".into()))
    );
}

/// What plainly is another file is not read.
#[tokio::test]
async fn a_rotten_file_is_replaced_by_another_by_the_index_s_word() {
    let mut site = Site::open().await;
    site.put("a.tif", OLD).await;
    fs::write(site.place("a.tif"), b"onE").unwrap();
    let mut request = site.replace_request("a.tif", OLD, NEW).await;
    request.checksum_request_for_existing_file = Some(spec(ChecksumType::Md5, None));
    assert_eq!(codes(&site.ask(request).await), [ACCEPTED, COMPLETED]);
    let actions: Vec<_> = site.trail().await.iter().map(|event| event.0).collect();
    assert_eq!(actions, [FileAction::PutFile, FileAction::ReplaceFile]);
}

#[tokio::test]
async fn where_no_checksum_is_required_none_is_compared() {
    let mut site = Site::trusting().await;
    site.put("a.tif", OLD).await;
    let mut request = site.replace_request("a.tif", OLD, NEW).await;
    request.checksum_data_for_existing_file = None;
    request.checksum_data_for_new_file = None;
    request.checksum_request_for_existing_file = None;
    request.file_size = 0;
    let answers = site.ask(request).await;
    assert_eq!(codes(&answers), [ACCEPTED, COMPLETED]);
    assert_eq!(replaced(&answers).checksum_data_for_existing_file, None);
    let mut request = site.delete_request("a.tif", OLD);
    request.checksum_data_for_existing_file = None;
    request.checksum_request_for_existing_file = None;
    let answers = site.ask(request).await;
    assert_eq!(codes(&answers), [ACCEPTED, COMPLETED]);
    assert_eq!(deleted(&answers).checksum_data_for_existing_file, None);
}

#[tokio::test]
async fn a_file_gone_from_the_disk_is_neither_replaced_nor_deleted() {
    let mut site = Site::open().await;
    for id in ["a.tif", "b.tif"] {
        site.put(id, OLD).await;
        fs::remove_file(site.place(id)).unwrap();
    }
    let request = site.replace_request("a.tif", OLD, NEW).await;
    assert_eq!(site.refused(request).await, NOT_FOUND);
    for _ in 0..2 {
        assert_eq!(
            site.refused(site.delete_request("b.tif", OLD)).await,
            NOT_FOUND
        );
    }
    for id in ["a.tif", "b.tif"] {
        let alarm = site.next_alarm().await;
        assert_eq!(alarm, (AlarmCode::ComponentFailure, Some(id.into())));
    }
    assert_eq!(site.index().count(&"books".into()).await.unwrap(), 0);
}

/// What cannot be written down has failed, a refusal too.
#[tokio::test]
async fn a_refusal_that_leaves_no_trace_is_a_failure() {
    let mut site = Site::open().await;
    site.put("a.tif", OLD).await;
    site.index().close().await;
    let mut request = site.delete_request("a.tif", OLD);
    request.checksum_data_for_existing_file = None;
    assert_eq!(site.refused(request).await, ResponseCode::Failure);
    assert_eq!(site.next_alarm().await, (AlarmCode::ComponentFailure, None));
    assert_eq!(fs::read(site.place("a.tif")).unwrap(), OLD);
}

/// However long the words: they are kept and given back.
#[tokio::test]
async fn long_words_in_a_request_are_kept() {
    let mut site = Site::open().await;
    site.put("a.tif", OLD).await;
    let words = "a".repeat(100_000);
    let mut refused = site.delete_request("a.tif", NEW);
    refused.audit_trail_information = Some(words.clone());
    assert_eq!(site.refused(refused).await, OLD_CHECKSUM);
    let mut done = site.delete_request("a.tif", OLD);
    done.audit_trail_information = Some(words.clone());
    assert_eq!(codes(&site.ask(done).await), [ACCEPTED, COMPLETED]);
    for event in site
        .index()
        .audit(AuditQuery::from_number("books".into(), 2))
        .await
        .unwrap()
    {
        assert_eq!(
            event.entry.audit_trail_information.as_deref(),
            Some(words.as_str())
        );
    }
}

impl Site {
    async fn assert_all_ended(&self) {
        assert_eq!(self.index().open_operations().await.unwrap(), []);
    }
}
