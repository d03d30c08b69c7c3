//! Where pillars are known to be weak, each weakness (P1 and so on) as a small test. Others are tested with what they
//! belong to, and named there.

use std::{
    io::{Seek, SeekFrom, Write},
    time::SystemTime,
};

use pillarbox_messages::{
    GetFileIdsFinalResponse, IdentifyContributorsForGetStatusRequest,
    IdentifyPillarsForDeleteFileRequest, IdentifyPillarsForGetChecksumsRequest,
    IdentifyPillarsForGetFileIdsRequest, IdentifyPillarsForReplaceFileRequest, ResultingFileIds,
};

use super::{reconciling::taking_over, running::Silent, *};

#[tokio::test]
async fn p1_a_download_that_stands_still_holds_up_no_other_change() {
    let mut silent = Silent::listen().await;
    let mut site = Site::with_hosts(&[silent.host()]).await;
    site.put("old.tif", b"one").await;
    let mut stuck = site.put_request("stuck.tif", b"one").await;
    stuck.file_address = silent.address();
    site.send(stuck).await;
    silent.takes(1).await;
    assert_eq!(code(&site.next_answer().await), ACCEPTED);

    site.put("new.tif", b"two").await;
    let replace = site.replace_request("old.tif", b"one", b"three").await;
    assert_eq!(codes(&site.ask(replace).await), [ACCEPTED, COMPLETED]);
    let delete = site.delete_request("new.tif", b"two");
    assert_eq!(codes(&site.ask(delete).await), [ACCEPTED, COMPLETED]);
    let left = [("old.tif".to_owned(), b"three".to_vec())];
    assert_eq!(site.lying("fileDir"), left);
    site.pillar.shutdown(Duration::from_millis(10)).await;
}

fn listed(response: &GetFileIdsFinalResponse) -> Vec<(&str, Timestamp)> {
    match &response.resulting_file_ids {
        Some(ResultingFileIds::Data(data)) => data
            .items
            .iter()
            .map(|it| (it.file_id.as_str(), it.last_modification_time))
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn p6_files_of_one_time_in_folders_and_beside_strays_are_all_listed() {
    let files: [(&str, &[u8]); 4] = [
        ("fileDir/a.tif", b"1"),
        ("fileDir/b.tif", b"2"),
        ("folderDir/x/a.tif", b"3"),
        ("folderDir/x/y/a.tif", b"4"),
    ];
    let site = taking_over(&files, |options| {
        let base = options.settings.directories[0].join("books");
        let one_time = SystemTime::now() - Duration::from_secs(7_200);
        for (place, _) in files {
            let file = fs::File::options().append(true).open(base.join(place));
            file.unwrap().set_modified(one_time).unwrap();
        }
        fs::create_dir_all(base.join("fileDir/stray/empty")).unwrap();
        fs::create_dir_all(base.join("folderDir/x/empty")).unwrap();
        std::os::unix::fs::symlink("nowhere", base.join("fileDir/link.tif")).unwrap();
    });
    let mut site = site.await;
    let ids = ["a.tif", "b.tif", "x/a.tif", "x/y/a.tif"];
    for id in ids {
        site.wait_for_row(id).await;
    }
    let all = site.ids(site.ids_request()).await;
    let all = listed(&all);
    let mut names: Vec<_> = all.iter().map(|(id, _)| *id).collect();
    names.sort_unstable();
    assert_eq!(names, ids);
    // Who pages by time alone sees each of them.
    let mut request = site.ids_request();
    request.max_number_of_results = 1.try_into().ok();
    for (id, time) in all {
        request.header = site.header();
        request.min_timestamp = Some(time);
        let page = site.ids(request.clone()).await;
        assert_eq!(listed(&page), [(id, time)]);
    }
}

/// The file is a sparse one, which takes no room on the disk.
#[tokio::test]
async fn p10_a_part_may_lie_behind_four_gigabytes() {
    const FAR: u64 = 1 << 32;
    let mut site = Site::open().await;
    site.put("large.tif", b"one").await;
    let file = fs::File::options()
        .write(true)
        .open(site.place("large.tif"));
    let mut file = file.unwrap();
    file.set_len(FAR + 1_000).unwrap();
    file.seek(SeekFrom::Start(FAR - 2)).unwrap();
    file.write_all(b"across").unwrap();
    for (offset, length, expected) in [
        (FAR - 2, 6, b"across".as_slice()),
        (FAR, 4, b"ross"),
        (FAR + 3, 2, b"s\0"),
        (0, 4, b"one\0"),
        (FAR + 997, FAR, b"\0\0\0"),
    ] {
        let address = site.server.offers().address_for("fetched");
        let request = site.part_request("large.tif", &address, offset, length);
        assert_eq!(codes(&site.ask(request).await), [ACCEPTED, COMPLETED]);
        assert_eq!(site.delivered(&address).await, expected, "{offset}");
    }
}

#[tokio::test]
async fn p14_a_transfer_that_stands_still_is_given_up() {
    let mut silent = Silent::listen().await;
    let mut policy = AddressPolicy::default();
    policy.hosts.push(silent.host());
    let impatient = ExchangeClient::new(&ClientOptions {
        idle_timeout: Duration::from_millis(100),
        ..ClientOptions::new(policy)
    });
    let mut site = Site::with(|options| options.exchange = impatient.unwrap()).await;
    let mut put = site.put_request("a.tif", b"one").await;
    put.file_address = silent.address();
    site.send(put).await;
    silent.takes(1).await;
    assert_eq!(code(&site.next_answer().await), ACCEPTED);
    assert_eq!(code(&site.next_answer().await), TRANSFER);
    site.assert_nothing_stored().await;
}

/// What went wrong inside is for the log and the alarm.
#[tokio::test]
async fn p20_answers_tell_nothing_of_the_pillars_inside() {
    let mut site = Site::open().await;
    site.put("a.tif", b"one").await;
    site.index().close().await;
    let header = site.to_all();
    let again = || Header {
        correlation_id: CorrelationId::random(),
        ..header.clone()
    };
    let file_id: FileId = "a.tif".into();
    let requests: [Message; 7] = [
        site.identify_get("a.tif").into(),
        site.identify_put("a.tif").into(),
        IdentifyPillarsForReplaceFileRequest {
            header: again(),
            audit_trail_information: None,
            file_id: file_id.clone(),
            file_size: Some(3),
        }
        .into(),
        IdentifyPillarsForDeleteFileRequest {
            header: again(),
            audit_trail_information: None,
            file_id: file_id.clone(),
        }
        .into(),
        IdentifyPillarsForGetFileIdsRequest {
            header: again(),
            audit_trail_information: None,
            file_ids: Some(FileIds::File(file_id.clone())),
        }
        .into(),
        IdentifyPillarsForGetChecksumsRequest {
            header: again(),
            audit_trail_information: None,
            file_ids: FileIds::File(file_id),
            checksum_request_for_existing_file: None,
        }
        .into(),
        site.get_request("a.tif", DEAD).into(),
    ];
    for request in requests {
        let kind = request.message_type();
        let answers = site.ask(request).await;
        assert_eq!(codes(&answers), [ResponseCode::Failure], "{kind:?}");
        let info = answers[0].response_info().unwrap();
        let told = info.response_text.as_deref();
        let generic = "the pillar could not do this because of a fault of its own";
        assert_eq!(told, Some(generic), "{kind:?}");
    }
    match next(&site.client, &mut site.alarms).await {
        Message::AlarmMessage(message) => {
            let text = message.alarm.alarm_text;
            assert!(text.contains(&IndexError::Closed.to_string()), "{text}");
        }
        other => panic!("{other:?}"),
    }
}

/// Checksums are computed again in the background (P8), not while a client waits for an answer.
#[tokio::test]
async fn p23_an_identification_reads_no_file() {
    let mut site = Site::open().await;
    for id in ["rotten.tif", "gone.tif"] {
        site.put(id, b"one").await;
    }
    fs::write(site.place("rotten.tif"), b"two").unwrap();
    fs::remove_file(site.place("gone.tif")).unwrap();
    for id in ["rotten.tif", "gone.tif"] {
        let before = site.row(id).await;
        assert!(before.is_some());
        assert_eq!(site.refused(site.identify_get(id)).await, POSITIVE);
        assert_eq!(site.refused(site.identify_put(id)).await, DUPLICATE);
        assert_eq!(site.row(id).await, before, "{id}");
    }
    site.assert_no_alarm().await;
}

#[tokio::test]
async fn p24_whoever_asks_for_statuses_is_answered_in_kind_whatever_is_wrong() {
    let mut site = Site::open().await;
    site.index().close().await;
    fs::remove_dir_all(site.directory.path().join("archive")).unwrap();
    let mut header = site.to_all();
    for collection in [None, Some("books".into())] {
        header.collection_id = collection;
        header.correlation_id = CorrelationId::random();
        let request = IdentifyContributorsForGetStatusRequest {
            header: header.clone(),
            audit_trail_information: None,
        };
        let answers = site.ask(request).await;
        let [Message::IdentifyContributorsForGetStatusResponse(answer)] = &answers[..] else {
            panic!("{answers:?}")
        };
        assert_eq!(answer.response_info.response_code, POSITIVE);
        assert_eq!(answer.contributor.as_str(), "north");
    }
}
