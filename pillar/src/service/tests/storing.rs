use pillarbox_messages::PutFileFinalResponse;

use super::*;
use crate::archive::tests::full::Mounted;

fn final_of(answers: &[Message]) -> &PutFileFinalResponse {
    match answers.last() {
        Some(Message::PutFileFinalResponse(response)) => response,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_file_is_stored_once_however_often_it_is_sent() {
    let mut site = Site::open().await;
    assert_eq!(site.refused(site.identify_put("a.tif")).await, POSITIVE);
    let request = site.put_request("a.tif", b"one").await;
    let answers = site.ask(request.clone()).await;
    assert_eq!(codes(&answers), [ACCEPTED, COMPLETED]);
    let stored = final_of(&answers).clone();
    let asked = stored.checksum_data_for_new_file.as_ref().unwrap();
    assert_eq!(asked.checksum_spec, hmac());
    assert_eq!(asked.checksum_value, sum(b"one", &hmac()));
    assert_eq!(fs::read(site.place("a.tif")).unwrap(), b"one");

    // The same request again: the same answer, without the file having to be there any more.
    site.exchange.delete(&request.file_address).await.unwrap();
    let again = site.ask(request.clone()).await;
    assert_eq!(codes(&again), [COMPLETED]);
    assert_eq!(*final_of(&again), stored);

    // Another conversation: the file is known, at both steps.
    let mut other = request;
    other.header = site.header();
    let refused = site.ask(other).await;
    assert_eq!(codes(&refused), [DUPLICATE]);
    let existing = final_of(&refused).checksum_data_for_existing_file.as_ref();
    let md5 = sum(b"one", &spec(ChecksumType::Md5, None));
    assert_eq!(existing.unwrap().checksum_value, md5);
    let answer = site.ask(site.identify_put("a.tif")).await.remove(0);
    let Message::IdentifyPillarsForPutFileResponse(answer) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(answer.response_info.response_code, DUPLICATE);
    let existing = answer.checksum_data_for_existing_file.unwrap();
    assert_eq!(existing.checksum_value, md5);
    assert!(answer.time_to_deliver.is_some());

    let trail = site
        .index()
        .audit(AuditQuery::from_number("books".into(), 1))
        .await
        .unwrap();
    assert_eq!(trail.len(), 1);
    assert_eq!(trail[0].entry.actor.as_str(), "ingest-1");
    let information = trail[0].entry.audit_trail_information.as_deref();
    assert_eq!(information, Some("for the test"));
}

#[tokio::test]
async fn what_is_wrong_with_a_put_is_said_before_anything_is_moved() {
    let mut site = Site::open().await;
    type Change = fn(&mut PutFileRequest);
    let cases: [(&str, ResponseCode, Change); 12] = [
        ("no collection", NOT_UNDERSTOOD, |it| {
            it.header.collection_id = None;
        }),
        ("other collection", NOT_UNDERSTOOD, |it| {
            it.header.collection_id = Some("maps".into());
        }),
        ("other pillar", NOT_UNDERSTOOD, |it| {
            it.pillar_id = Some("south".into());
        }),
        ("no checksum", ResponseCode::NewFileChecksumFailure, |it| {
            it.checksum_data_for_new_file = None;
        }),
        ("salted digest", NOT_UNDERSTOOD, |it| {
            let given = it.checksum_data_for_new_file.as_mut().unwrap();
            given.checksum_spec = spec(ChecksumType::Md5, Some("ab"));
        }),
        ("HMAC without salt", NOT_UNDERSTOOD, |it| {
            it.checksum_request_for_new_file = Some(spec(ChecksumType::HmacMd5, None));
        }),
        ("way out", NOT_UNDERSTOOD, |it| {
            it.file_id = "a/../../b".into();
        }),
        ("too large", ResponseCode::Failure, |it| {
            it.file_size = Some(u64::MAX);
        }),
        ("scheme", NOT_UNDERSTOOD, |it| {
            it.file_address = "ftp://127.0.0.1/a".to_owned();
        }),
        ("host", NOT_UNDERSTOOD, |it| {
            it.file_address = "http://127.0.0.2:80/a".to_owned();
        }),
        ("our own disk", NOT_UNDERSTOOD, |it| {
            it.file_address = "file:/etc/passwd".to_owned();
        }),
        ("no URL", TRANSFER, |it| {
            it.file_address = "nowhere".to_owned();
        }),
    ];
    for (name, expected, change) in cases {
        let mut request = site.put_request("a.tif", b"one").await;
        change(&mut request);
        assert_eq!(site.refused(request).await, expected, "{name}");
    }
    site.assert_nothing_stored().await;
}

/// Bytes that are too few or too many are no file, whatever their checksum (P13).
#[tokio::test]
async fn what_goes_wrong_with_a_transfer_leaves_nothing() {
    let mut site = Site::open().await;
    type Change = fn(&mut PutFileRequest);
    let cases: [(ResponseCode, Change); 5] = [
        (ResponseCode::Failure, |it| it.file_size = Some(4)),
        (ResponseCode::Failure, |it| it.file_size = Some(2)),
        (TRANSFER, |it| it.file_address = format!("{DEAD}a")),
        (TRANSFER, |it| it.file_address.push_str("-gone")),
        (ResponseCode::NewFileChecksumFailure, |it| {
            it.checksum_data_for_new_file = Some(md5_data(b"two"));
        }),
    ];
    for (number, (expected, change)) in cases.into_iter().enumerate() {
        let mut request = site.put_request("a.tif", b"one").await;
        change(&mut request);
        let answers = site.ask(request).await;
        assert_eq!(codes(&answers), [ACCEPTED, expected], "{number}");
    }
    site.assert_nothing_stored().await;
    // Only the last is grave enough for the default alarm level.
    let alarm = site.next_alarm().await;
    assert_eq!(alarm, (AlarmCode::ChecksumAlarm, Some("a.tif".into())));
    site.put("a.tif", b"one").await;
}

/// The other one destroys nothing of it (P2).
#[tokio::test]
async fn of_two_puts_at_once_one_stores() {
    let mut site = Site::open().await;
    let (one, other) = (
        site.put_request("a/b.tif", b"one").await,
        site.put_request("a/b.tif", b"two").await,
    );
    site.send(one).await;
    site.send(other).await;
    let mut ended = Vec::new();
    while ended.len() < 2 {
        let code = code(&site.next_answer().await);
        ended.extend((code != ACCEPTED).then_some(code));
    }
    assert_eq!(ended, [COMPLETED, DUPLICATE]);
    assert_eq!(site.index().count(&"books".into()).await.unwrap(), 1);
}

#[tokio::test]
async fn a_file_is_delivered() {
    let mut site = Site::open().await;
    let address = site.server.offers().address_for("fetched");
    let unknown = site.get_request("a.tif", &address);
    assert_eq!(site.refused(unknown).await, NOT_FOUND);
    assert_eq!(site.refused(site.identify_get("a.tif")).await, NOT_FOUND);
    site.put("a.tif", b"one").await;
    assert_eq!(site.refused(site.identify_get("a.tif")).await, POSITIVE);

    let answers = site.ask(site.get_request("a.tif", &address)).await;
    assert_eq!(codes(&answers), [ACCEPTED, COMPLETED]);
    let Message::GetFileProgressResponse(progress) = &answers[0] else {
        panic!("{answers:?}")
    };
    assert_eq!(progress.file_size, Some(3));
    assert_eq!(site.delivered(&address).await, b"one");

    let elsewhere = site.get_request("a.tif", "http://127.0.0.2:80/a");
    assert_eq!(site.refused(elsewhere).await, NOT_UNDERSTOOD);
    let dead = site
        .ask(site.get_request("a.tif", &format!("{DEAD}a")))
        .await;
    assert_eq!(codes(&dead), [ACCEPTED, TRANSFER]);
    // Put and delivered, in words that say so (P17); failures to read are in no audit trail.
    let trail = site.trail().await;
    let told: Vec<_> = trail
        .iter()
        .map(|(action, info)| (*action, &**info))
        .collect();
    let put = (FileAction::PutFile, "file added to the archive");
    let delivered = (FileAction::GetFile, "file delivered");
    assert_eq!(told, [put, delivered]);
}

/// No byte more, and none of zero (P10).
#[tokio::test]
async fn of_a_file_exactly_the_bytes_of_a_part_are_delivered() {
    let mut site = Site::open().await;
    let content: Vec<u8> = (0..1024_u32).map(|it| (it % 251) as u8).collect();
    site.put("a.tif", &content).await;
    // Beginning, middle, end, all; and what would go on behind the end is cut off there, never filled up.
    let parts = [
        (0, 1, 0..1),
        (100, 50, 100..150),
        (1023, 1, 1023..1024),
        (0, 1024, 0..1024),
        (1000, 100, 1000..1024),
        (1, u64::MAX, 1..1024),
    ];
    for (offset, length, expected) in parts {
        let address = site.server.offers().address_for("fetched");
        let request = site.part_request("a.tif", &address, offset, length);
        let asked = request.file_part.clone();
        let answers = site.ask(request).await;
        assert_eq!(codes(&answers), [ACCEPTED, COMPLETED], "{offset} {length}");
        let [
            Message::GetFileProgressResponse(progress),
            Message::GetFileFinalResponse(last),
        ] = &answers[..]
        else {
            panic!("{answers:?}")
        };
        assert_eq!((&progress.file_part, &last.file_part), (&asked, &asked));
        assert_eq!(progress.file_size, Some(1024));
        assert_eq!(site.delivered(&address).await, content[expected]);
    }
    let trail = site.trail().await;
    let (action, info) = &trail[5];
    assert_eq!(*action, FileAction::GetFile);
    assert_eq!(
        info,
        "part of the file delivered: 24 bytes from 1000 on, of 1024"
    );
}

#[tokio::test]
async fn a_part_without_bytes_is_refused_with_the_numbers() {
    let mut site = Site::open().await;
    site.put("a.tif", b"one").await;
    site.put("empty.tif", b"").await;
    let cases = [
        ("a.tif", 3, 1),
        ("a.tif", u64::MAX, u64::MAX),
        ("a.tif", 0, 0),
        ("empty.tif", 0, 1),
    ];
    for (id, offset, length) in cases {
        let address = site.server.offers().address_for("fetched");
        let answers = site
            .ask(site.part_request(id, &address, offset, length))
            .await;
        assert_eq!(codes(&answers), [NOT_UNDERSTOOD], "{id} {offset} {length}");
        let text = answers[0]
            .response_info()
            .unwrap()
            .response_text
            .clone()
            .unwrap();
        assert!(
            text.contains(&format!("a part of {length} from {offset} on")),
            "{text}"
        );
        site.exchange.get(&address).await.unwrap_err();
    }
    assert_eq!(site.trail().await.len(), 2);
}

#[tokio::test]
async fn a_file_gone_from_the_disk_is_missed_once_and_put_again() {
    let mut site = Site::open().await;
    site.put("a.tif", b"one").await;
    fs::remove_file(site.place("a.tif")).unwrap();
    for _ in 0..2 {
        let request = site.get_request("a.tif", &site.server.offers().address_for("x"));
        assert_eq!(site.refused(request).await, NOT_FOUND);
    }
    let alarm = site.next_alarm().await;
    assert_eq!(alarm, (AlarmCode::ComponentFailure, Some("a.tif".into())));
    site.put("a.tif", b"two").await;
    assert_eq!(fs::read(site.place("a.tif")).unwrap(), b"two");
    // No second alarm came before this one.
    let mut wrong = site.put_request("b.tif", b"one").await;
    wrong.checksum_data_for_new_file = None;
    site.refused(wrong).await;
    assert_eq!(site.next_alarm().await.0, AlarmCode::ChecksumAlarm);
}

#[tokio::test]
async fn a_file_that_the_index_has_no_room_for_does_not_stay() {
    let Some(mounted) = Mounted::new() else {
        eprintln!("SKIPPED a_file_that_the_index_has_no_room_for_does_not_stay: no right to mount");
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
    let filler = mounted.0.path().join("filler");
    fs::write(&filler, vec![0; 2 << 20]).unwrap_err();

    for id in ["a.tif", "a/b.tif"] {
        let request = site.put_request(id, b"one").await;
        let answers = site.ask(request).await;
        assert_eq!(codes(&answers), [ACCEPTED, ResponseCode::Failure]);
    }
    site.assert_nothing_stored().await;
    fs::remove_file(filler).unwrap();
    site.put("a.tif", b"one").await;
    site.pillar.shutdown(SOON).await;
}
