use pillarbox_messages::{
    GetFileIdsRequest, IdentifyPillarsForDeleteFileRequest, IdentifyPillarsForReplaceFileRequest,
    ResultingChecksums, ResultingFileIds,
};
use pillarbox_settings::ChecksumDownload;

use super::*;

const NOT_SUPPORTED: ResponseCode = ResponseCode::RequestNotSupported;

fn as_sums(options: &mut PillarOptions, download: ChecksumDownload) {
    options.settings.pillar_type = PillarType::Checksum;
    options.settings.directories = Vec::new();
    options.settings.download = download;
}

fn options_of_type(
    directory: &TempDir,
    repository: &Arc<Repository>,
    broker: &Broker,
    exchange: &ExchangeClient,
    of_sums: bool,
) -> PillarOptions {
    let mut options = options_of(directory.path(), repository, broker, exchange);
    if of_sums {
        as_sums(&mut options, ChecksumDownload::Always);
    }
    options
}

fn md5() -> ChecksumSpec {
    spec(ChecksumType::Md5, None)
}

impl Site {
    /// Where the pillar keeps checksums only.
    async fn of_sums(download: ChecksumDownload) -> Self {
        Self::with(|options| as_sums(options, download)).await
    }

    async fn sum_request(&self, id: &str, content: &[u8]) -> PutFileRequest {
        PutFileRequest {
            checksum_request_for_new_file: Some(md5()),
            ..self.put_request(id, content).await
        }
    }

    async fn put_sum(&mut self, id: &str, content: &[u8]) -> Vec<Message> {
        let request = self.sum_request(id, content).await;
        let answers = self.ask(request).await;
        assert_eq!(codes(&answers), [ACCEPTED, COMPLETED], "{answers:?}");
        answers
    }

    /// The files and their checksums, as GetChecksums tells them.
    async fn told_sums(&mut self) -> Vec<(String, HexBinary)> {
        let response = self.sums(self.sums_request(Some(md5()))).await;
        let Some(ResultingChecksums::Items(items)) = response.resulting_checksums else {
            panic!("{response:?}")
        };
        let told = items.into_iter();
        told.map(|it| (it.file_id.to_string(), it.checksum_value))
            .collect()
    }
}

/// The `PillarChecksumSpec` of an answer that has a place for one.
fn kept_spec(answer: &Message) -> Option<&ChecksumSpec> {
    match answer {
        Message::IdentifyPillarsForPutFileResponse(it) => it.pillar_checksum_spec.as_ref(),
        Message::IdentifyPillarsForReplaceFileResponse(it) => it.pillar_checksum_spec.as_ref(),
        Message::IdentifyPillarsForDeleteFileResponse(it) => it.pillar_checksum_spec.as_ref(),
        Message::PutFileProgressResponse(it) => it.pillar_checksum_spec.as_ref(),
        Message::PutFileFinalResponse(it) => it.pillar_checksum_spec.as_ref(),
        Message::ReplaceFileProgressResponse(it) => it.pillar_checksum_spec.as_ref(),
        Message::ReplaceFileFinalResponse(it) => it.pillar_checksum_spec.as_ref(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_checksum_pillar_hashes_what_it_is_told_and_keeps_nothing_else() {
    let mut site = Site::of_sums(ChecksumDownload::Always).await;
    let identified = site.ask(site.identify_put("a/b.tif")).await;
    assert_eq!(codes(&identified), [POSITIVE]);
    assert_eq!(kept_spec(&identified[0]), Some(&md5()));
    // More than is held in memory at once, so that it goes the long way.
    let content = vec![7; 300_000];
    let answers = site.put_sum("a/b.tif", &content).await;
    for answer in &answers {
        assert_eq!(kept_spec(answer), Some(&md5()));
    }
    let Message::PutFileFinalResponse(last) = &answers[1] else {
        panic!("{answers:?}")
    };
    let returned = last.checksum_data_for_new_file.as_ref().unwrap();
    assert_eq!(returned.checksum_value, sum(&content, &md5()));
    site.put_sum("c.tif", b"one").await;
    assert!(!site.directory.path().join("archive").exists());
    let expected = [
        ("a/b.tif".to_owned(), sum(&content, &md5())),
        ("c.tif".to_owned(), sum(b"one", &md5())),
    ];
    assert_eq!(site.told_sums().await, expected);

    let duplicate = site.ask(site.identify_put("c.tif")).await;
    assert_eq!(codes(&duplicate), [DUPLICATE]);
    assert_eq!(kept_spec(&duplicate[0]), Some(&md5()));
    let mut wrong = site.sum_request("d.tif", b"two").await;
    wrong.checksum_data_for_new_file = Some(md5_data(b"three"));
    assert_eq!(codes(&site.ask(wrong).await), [ACCEPTED, NEW_CHECKSUM]);
    let alarm = site.next_alarm().await;
    assert_eq!(alarm, (AlarmCode::ChecksumAlarm, Some("d.tif".into())));
    assert_eq!(site.index().count(&"books".into()).await.unwrap(), 2);
}

#[tokio::test]
async fn a_checksum_pillar_lists_files_by_when_they_were_hashed_and_without_a_size() {
    let mut site = Site::of_sums(ChecksumDownload::Always).await;
    site.put_sum("a.tif", b"one").await;
    let request: GetFileIdsRequest = site.ids_request();
    let response = site.ids(request).await;
    let Some(ResultingFileIds::Data(data)) = response.resulting_file_ids else {
        panic!("{response:?}")
    };
    let row = site.index().find(&"books".into(), &"a.tif".into()).await;
    let row = row.unwrap().unwrap();
    let [item] = &data.items[..] else {
        panic!("{data:?}")
    };
    assert_eq!(item.file_size, None);
    assert_eq!(item.last_modification_time.millis(), row.calculated_ms);
}

#[tokio::test]
async fn a_checksum_pillar_delivers_no_file_and_says_so_first() {
    let mut site = Site::of_sums(ChecksumDownload::Always).await;
    let mut nowhere = site.identify_get("a/../b");
    nowhere.header.collection_id = None;
    assert_eq!(site.refused(nowhere).await, NOT_SUPPORTED);
    site.put_sum("a.tif", b"one").await;
    assert_eq!(
        site.refused(site.identify_get("a.tif")).await,
        NOT_SUPPORTED
    );
    let request = site.get_request("a.tif", DEAD);
    assert_eq!(site.refused(request).await, NOT_SUPPORTED);
    let mut other = site.get_request("a.tif", DEAD);
    other.pillar_id = Some("south".into());
    assert_eq!(site.refused(other).await, NOT_UNDERSTOOD);
    assert_eq!(site.trail().await.len(), 1);
    // None of these was worth an alarm at the default level: this one comes first.
    let mut wrong = site.sum_request("b.tif", b"one").await;
    wrong.checksum_data_for_new_file = None;
    assert_eq!(site.refused(wrong).await, NEW_CHECKSUM);
    let alarm = site.next_alarm().await;
    assert_eq!(alarm.0, AlarmCode::ChecksumAlarm);
}

#[tokio::test]
async fn a_checksum_pillar_supports_its_own_checksum_only_however_wrong_another_is() {
    let mut site = Site::of_sums(ChecksumDownload::Always).await;
    site.put_sum("a.tif", b"one").await;
    let others = [
        spec(ChecksumType::Sha1, None),
        hmac(),
        spec(ChecksumType::HmacMd5, None),
        spec(ChecksumType::Md5, Some("ab")),
        spec(ChecksumType::Other, None),
    ];
    for other in others {
        let data = ChecksumData {
            checksum_spec: other.clone(),
            ..md5_data(b"one")
        };
        let mut put = site.sum_request("b.tif", b"one").await;
        put.checksum_request_for_new_file = Some(other.clone());
        assert_eq!(site.refused(put).await, NOT_SUPPORTED, "{other:?}");
        let mut put = site.sum_request("b.tif", b"one").await;
        put.checksum_data_for_new_file = Some(data.clone());
        assert_eq!(site.refused(put).await, NOT_SUPPORTED, "{other:?}");
        let mut delete = site.delete_request("a.tif", b"one");
        delete.checksum_request_for_existing_file = Some(other.clone());
        assert_eq!(site.refused(delete).await, NOT_SUPPORTED, "{other:?}");
        let mut replace = site.replace_request("a.tif", b"one", b"two").await;
        replace.checksum_request_for_existing_file = None;
        replace.checksum_request_for_new_file = None;
        replace.checksum_data_for_existing_file = Some(data);
        assert_eq!(site.refused(replace).await, NOT_SUPPORTED, "{other:?}");
        let sums = site.sums_request(Some(other.clone()));
        assert_eq!(site.refused(sums).await, NOT_SUPPORTED, "{other:?}");
    }
    // An empty salt is none.
    let sums = site.sums_request(Some(spec(ChecksumType::Md5, Some(""))));
    assert_eq!(codes(&site.ask(sums).await), [ACCEPTED, COMPLETED]);
    assert_eq!(site.told_sums().await.len(), 1);
}

/// By default it looks for itself (P15).
#[tokio::test]
async fn a_checksum_pillar_takes_a_clients_word_only_where_it_is_set_to() {
    use ChecksumDownload::{Always, Never, WhenMissing};
    // Whether a checksum is given, whether the file can be fetched, and what comes of it.
    let cases = [
        (Always, true, true, [ACCEPTED, COMPLETED].as_slice()),
        (Always, false, true, &[ACCEPTED, COMPLETED]),
        (Always, true, false, &[ACCEPTED, TRANSFER]),
        (WhenMissing, true, false, &[ACCEPTED, COMPLETED]),
        (WhenMissing, false, true, &[ACCEPTED, COMPLETED]),
        (WhenMissing, false, false, &[ACCEPTED, TRANSFER]),
        (Never, true, false, &[ACCEPTED, COMPLETED]),
        (Never, false, true, &[NEW_CHECKSUM]),
    ];
    for (download, given, reachable, expected) in cases {
        let repository = REPOSITORY.replace("\"checksum-for-new-file\", ", "");
        let hosts = ["127.0.0.1:9".to_owned()];
        let mut site = Site::make(&repository, &hosts, |it| as_sums(it, download)).await;
        let mut request = site.sum_request("a.tif", b"one").await;
        request.checksum_data_for_new_file = given.then(|| md5_data(b"one"));
        if !reachable {
            request.file_address = format!("{DEAD}a");
        }
        let answers = site.ask(request).await;
        assert_eq!(
            codes(&answers),
            expected,
            "{download:?} {given} {reachable}"
        );
        if codes(&answers).contains(&COMPLETED) {
            let expected = [("a.tif".to_owned(), sum(b"one", &md5()))];
            assert_eq!(site.told_sums().await, expected);
        }
    }
    // What can't be an MD5 is not believed to be one.
    let mut site = Site::of_sums(Never).await;
    let mut request = site.sum_request("a.tif", b"one").await;
    let given = request.checksum_data_for_new_file.as_mut().unwrap();
    given.checksum_value = "abcd".parse().unwrap();
    assert_eq!(codes(&site.ask(request).await), [ACCEPTED, NEW_CHECKSUM]);
}

#[tokio::test]
async fn a_checksum_pillar_replaces_and_deletes() {
    let mut site = Site::of_sums(ChecksumDownload::Always).await;
    site.put_sum("a.tif", b"one").await;
    let identify = IdentifyPillarsForReplaceFileRequest {
        header: site.to_all(),
        audit_trail_information: None,
        file_id: "a.tif".into(),
        // There is room for any.
        file_size: Some(u64::MAX),
    };
    let identified = site.ask(identify).await;
    assert_eq!(codes(&identified), [POSITIVE]);
    assert_eq!(kept_spec(&identified[0]), Some(&md5()));
    let mut replace = site.replace_request("a.tif", b"one", b"three").await;
    replace.checksum_request_for_existing_file = Some(md5());
    replace.checksum_request_for_new_file = Some(md5());
    let mut wrong = replace.clone();
    wrong.checksum_data_for_existing_file = Some(md5_data(b"two"));
    wrong.header = site.header();
    wrong.checksum_data_for_new_file = Some(md5_data(b"four"));
    assert_eq!(site.refused(wrong).await, OLD_CHECKSUM);
    let answers = site.ask(replace.clone()).await;
    assert_eq!(codes(&answers), [ACCEPTED, COMPLETED]);
    let Message::ReplaceFileFinalResponse(last) = &answers[1] else {
        panic!("{answers:?}")
    };
    assert_eq!(kept_spec(&answers[1]), Some(&md5()));
    let (old, new) = (
        last.checksum_data_for_existing_file.as_ref().unwrap(),
        last.checksum_data_for_new_file.as_ref().unwrap(),
    );
    assert_eq!(old.checksum_value, sum(b"one", &md5()));
    assert_eq!(new.checksum_value, sum(b"three", &md5()));
    // The same request again, and then from another conversation, whose answer got lost.
    assert_eq!(site.ask(replace.clone()).await, [answers[1].clone()]);
    replace.header = site.header();
    assert_eq!(codes(&site.ask(replace).await), [COMPLETED]);
    let expected = [("a.tif".to_owned(), sum(b"three", &md5()))];
    assert_eq!(site.told_sums().await, expected);

    let identify = IdentifyPillarsForDeleteFileRequest {
        header: site.to_all(),
        audit_trail_information: None,
        file_id: "a.tif".into(),
    };
    let identified = site.ask(identify).await;
    assert_eq!(codes(&identified), [POSITIVE]);
    assert_eq!(kept_spec(&identified[0]), Some(&md5()));
    let mut delete = site.delete_request("a.tif", b"three");
    delete.checksum_request_for_existing_file = Some(md5());
    let answers = site.ask(delete.clone()).await;
    assert_eq!(codes(&answers), [ACCEPTED, COMPLETED]);
    assert_eq!(codes(&site.ask(delete).await), [COMPLETED]);
    assert_eq!(site.told_sums().await, []);
    let actions: Vec<_> = site.trail().await.into_iter().map(|it| it.0).collect();
    let expected = [
        FileAction::PutFile,
        FileAction::Failure,
        FileAction::ReplaceFile,
        FileAction::DeleteFile,
    ];
    assert_eq!(actions, expected);
}

/// No collection of others gets in (P15).
#[tokio::test]
async fn a_checksum_pillar_knows_its_collections_and_how_it_is() {
    let mut site = Site::of_sums(ChecksumDownload::Never).await;
    let mut foreign = site.sum_request("a.tif", b"one").await;
    foreign.header.collection_id = Some("maps".into());
    assert_eq!(site.refused(foreign).await, NOT_UNDERSTOOD);
    assert_eq!(site.index().count(&"books".into()).await.unwrap(), 0);
    let status = crate::health::look(&site.pillar.context).await.status();
    assert_eq!(
        status.status_code,
        pillarbox_messages::StatusCode::Ok,
        "{}",
        status.status_text
    );
}

#[tokio::test]
async fn the_index_of_one_type_is_not_opened_by_the_other() {
    for of_sums in [true, false] {
        let mut site = Site::open().await;
        site.pillar.shutdown(SOON).await;
        site.pillar = Pillar::start(options_of_type(
            &site.directory,
            &site.repository,
            &site.broker,
            &site.exchange,
            of_sums,
        ))
        .await
        .unwrap();
        site.put_sum("a.tif", b"one").await;
        site.pillar.shutdown(SOON).await;
        let refused = Pillar::start(options_of_type(
            &site.directory,
            &site.repository,
            &site.broker,
            &site.exchange,
            !of_sums,
        ))
        .await;
        let kept = if of_sums { "CHECKSUM" } else { "FILE" };
        let text = refused.unwrap_err().to_string();
        assert!(text.contains(&format!("set type = \"{kept}\"")), "{text}");
    }
}

/// As a FILE pillar: which files a collection can have does not depend on who keeps them.
#[tokio::test]
async fn no_file_is_the_folder_of_another() {
    let mut site = Site::of_sums(ChecksumDownload::Always).await;
    for id in ["aa/b", "xx/y/z", "aa", "xx", "xx/y-", "aa/bc"] {
        site.put_sum(id, b"one").await;
    }
    for (id, text) in [
        (
            "aa/b/c",
            "file aa/b/c can't be stored: one of its folders is itself a file",
        ),
        (
            "aa/b/c/d",
            "file aa/b/c/d can't be stored: one of its folders is itself a file",
        ),
        (
            "xx/y",
            "file xx/y can't be stored: a folder of that name holds other files",
        ),
    ] {
        let request = site.sum_request(id, b"one").await;
        let answers = site.ask(request).await;
        let refused = ResponseCode::RequestNotUnderstoodFailure;
        assert_eq!(codes(&answers), [ACCEPTED, refused], "{id}");
        let info = answers[1].response_info().unwrap();
        assert_eq!(info.response_text.as_deref(), Some(text));
    }
    assert_eq!(site.told_sums().await.len(), 6);
}
