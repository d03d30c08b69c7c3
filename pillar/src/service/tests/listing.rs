use pillarbox_messages::{
    GetChecksumsFinalResponse, GetChecksumsRequest, GetFileIdsFinalResponse, GetFileIdsRequest,
    IdentifyPillarsForGetChecksumsRequest, IdentifyPillarsForGetFileIdsRequest, ResultingChecksums,
    ResultingFileIds, results::ResultDocument,
};

use super::*;

const FILES: [&str; 5] = ["e.tif", "a/d.tif", "c.tif", "b.tif", "a.tif"];

impl Site {
    /// With five files, each of which contains its name.
    async fn stocked() -> Self {
        let mut site = Self::open().await;
        for file in FILES {
            site.put(file, file.as_bytes()).await;
        }
        site
    }

    pub(super) fn ids_request(&self) -> GetFileIdsRequest {
        GetFileIdsRequest {
            header: self.header(),
            audit_trail_information: None,
            pillar_id: Some("north".into()),
            file_ids: FileIds::All,
            min_timestamp: None,
            max_timestamp: None,
            max_number_of_results: None,
            result_address: None,
        }
    }

    pub(super) fn sums_request(&self, spec: Option<ChecksumSpec>) -> GetChecksumsRequest {
        GetChecksumsRequest {
            header: self.header(),
            audit_trail_information: None,
            pillar_id: Some("north".into()),
            file_ids: FileIds::All,
            min_timestamp: None,
            max_timestamp: None,
            max_number_of_results: None,
            checksum_request_for_existing_file: spec,
            result_address: None,
        }
    }

    pub(super) async fn ids(&mut self, request: GetFileIdsRequest) -> GetFileIdsFinalResponse {
        match self.ask(request).await.pop() {
            Some(Message::GetFileIdsFinalResponse(response)) => {
                assert_eq!(response.response_info.response_code, COMPLETED);
                response
            }
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn sums(&mut self, request: GetChecksumsRequest) -> GetChecksumsFinalResponse {
        match self.ask(request).await.pop() {
            Some(Message::GetChecksumsFinalResponse(response)) => {
                assert_eq!(response.response_info.response_code, COMPLETED);
                response
            }
            other => panic!("{other:?}"),
        }
    }
}

fn names(response: &GetFileIdsFinalResponse) -> Vec<&str> {
    match &response.resulting_file_ids {
        Some(ResultingFileIds::Data(data)) => {
            let items = data.items.iter();
            items.map(|item| item.file_id.as_str()).collect()
        }
        other => panic!("{other:?}"),
    }
}

pub(super) fn sums_of(response: &GetChecksumsFinalResponse) -> Vec<(&str, &HexBinary)> {
    match &response.resulting_checksums {
        Some(ResultingChecksums::Items(items)) => {
            let items = items.iter();
            items
                .map(|item| (item.file_id.as_str(), &item.checksum_value))
                .collect()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn file_ids_come_oldest_first_and_in_pages() {
    let mut site = Site::stocked().await;
    let all = site.ids(site.ids_request()).await;
    assert_eq!((names(&all), all.partial_result), (FILES.to_vec(), None));
    let Some(ResultingFileIds::Data(data)) = &all.resulting_file_ids else {
        panic!("{all:?}")
    };
    assert_eq!(data.items[1].file_size, Some(7));
    let times: Vec<_> = data
        .items
        .iter()
        .map(|item| item.last_modification_time)
        .collect();

    let pages: [(usize, u64, &[&str], Option<bool>); 4] = [
        (0, 2, &FILES[..2], Some(true)),
        (2, 2, &FILES[2..4], Some(true)),
        (4, 2, &FILES[4..], None),
        (0, 5, &FILES, None),
    ];
    for (first, limit, expected, partial) in pages {
        let mut request = site.ids_request();
        request.min_timestamp = Some(times[first]);
        request.max_number_of_results = limit.try_into().ok();
        let page = site.ids(request).await;
        assert_eq!(
            (names(&page), page.partial_result),
            (expected.to_vec(), partial)
        );
    }
    let mut between = site.ids_request();
    between.min_timestamp = Some(times[1]);
    between.max_timestamp = Some(times[2]);
    assert_eq!(names(&site.ids(between).await), FILES[1..3]);

    let mut single = site.ids_request();
    single.file_ids = FileIds::File("a/d.tif".into());
    single.max_number_of_results = 1.try_into().ok();
    let single = site.ids(single).await;
    assert_eq!(
        (names(&single), single.partial_result),
        (vec!["a/d.tif"], None)
    );
}

#[tokio::test]
async fn an_empty_collection_is_listed_as_empty() {
    let mut site = Site::open().await;
    let identify = IdentifyPillarsForGetFileIdsRequest {
        header: site.to_all(),
        audit_trail_information: None,
        file_ids: Some(FileIds::All),
    };
    assert_eq!(site.refused(identify).await, POSITIVE);
    assert_eq!(names(&site.ids(site.ids_request()).await), [""; 0]);
    let sums = site.sums(site.sums_request(None)).await;
    assert_eq!((sums_of(&sums), sums.partial_result), (vec![], Some(false)));
}

/// Those that have to be computed, too (P7).
#[tokio::test]
async fn checksums_of_any_kind_come_in_one_order_and_in_pages() {
    let mut site = Site::stocked().await;
    for wanted in [None, Some(hmac()), Some(spec(ChecksumType::Sha1, None))] {
        let used = wanted
            .clone()
            .unwrap_or_else(|| spec(ChecksumType::Md5, None));
        let expected: Vec<_> = FILES.map(|file| (file, sum(file.as_bytes(), &used))).into();
        let expected: Vec<_> = expected.iter().map(|(file, sum)| (*file, sum)).collect();
        let all = site.sums(site.sums_request(wanted.clone())).await;
        assert_eq!(
            (sums_of(&all), all.partial_result),
            (expected.clone(), Some(false))
        );

        let mut first = site.sums_request(wanted.clone());
        first.max_number_of_results = 3.try_into().ok();
        let first = site.sums(first).await;
        assert_eq!(
            (sums_of(&first), first.partial_result),
            (expected[..3].to_vec(), Some(true))
        );
        let Some(ResultingChecksums::Items(items)) = &first.resulting_checksums else {
            panic!("{first:?}")
        };
        // The times tell the place in the order, whatever the kind.
        let mut rest = site.sums_request(wanted.clone());
        rest.min_timestamp = Some(items[2].calculation_timestamp);
        let rest = site.sums(rest).await;
        assert_eq!(sums_of(&rest), expected[2..]);
        let mut between = site.sums_request(wanted.clone());
        between.min_timestamp = Some(items[1].calculation_timestamp);
        between.max_timestamp = Some(items[2].calculation_timestamp);
        let between = site.sums(between).await;
        assert_eq!(
            (sums_of(&between), between.partial_result),
            (expected[1..3].to_vec(), Some(false))
        );

        let mut single = site.sums_request(wanted);
        single.file_ids = FileIds::File("c.tif".into());
        let single = site.sums(single).await;
        assert_eq!(
            (sums_of(&single), single.partial_result),
            (expected[2..3].to_vec(), Some(false))
        );
    }
}

#[tokio::test]
async fn a_checksum_of_another_kind_is_that_of_the_bytes_on_disk() {
    let mut site = Site::stocked().await;
    fs::write(site.place("b.tif"), b"rotten").unwrap();
    fs::remove_file(site.place("c.tif")).unwrap();
    let sums = site.sums(site.sums_request(Some(hmac()))).await;
    let rotten = sum(b"rotten", &hmac());
    assert_eq!(sums_of(&sums)[2], ("b.tif", &rotten));
    assert_eq!(sums_of(&sums).len(), 4);
    let alarm = site.next_alarm().await;
    assert_eq!(alarm, (AlarmCode::ComponentFailure, Some("c.tif".into())));
}

#[tokio::test]
async fn result_documents_are_delivered() {
    let mut site = Site::stocked().await;
    let address = site.server.offers().address_for("result");
    let mut request = site.ids_request();
    request.result_address = Some(address.clone());
    request.max_number_of_results = 4.try_into().ok();
    let response = site.ids(request).await;
    let delivered = Some(ResultingFileIds::Address(address.clone()));
    assert_eq!(
        (response.resulting_file_ids, response.partial_result),
        (delivered, Some(true))
    );
    let text = String::from_utf8(site.delivered(&address).await).unwrap();
    let ResultDocument::GetFileIdsResults(document) = ResultDocument::from_xml(&text).unwrap()
    else {
        panic!("{text}")
    };
    let items = document.file_ids_data.items.iter();
    let listed: Vec<_> = items.map(|item| item.file_id.as_str()).collect();
    assert_eq!(listed, FILES[..4]);

    let mut request = site.sums_request(Some(hmac()));
    request.result_address = Some(address.clone());
    let response = site.sums(request).await;
    let delivered = Some(ResultingChecksums::Address(address.clone()));
    assert_eq!(response.resulting_checksums, delivered);
    let text = String::from_utf8(site.delivered(&address).await).unwrap();
    let ResultDocument::GetChecksumsResults(document) = ResultDocument::from_xml(&text).unwrap()
    else {
        panic!("{text}")
    };
    let items = document.checksum_data_items.iter();
    let listed: Vec<_> = items.map(|item| &item.checksum_value).collect();
    let expected = FILES.map(|file| sum(file.as_bytes(), &hmac()));
    assert_eq!(listed, expected.iter().collect::<Vec<_>>());

    // Nothing is left behind (P11), and an empty address is none.
    let results = site.directory.path().join("data/results");
    assert_eq!(fs::read_dir(results).unwrap().count(), 0);
    let mut request = site.ids_request();
    request.result_address = Some(String::new());
    assert_eq!(names(&site.ids(request).await), FILES);
}

#[tokio::test]
async fn what_is_wrong_with_a_list_request_is_said() {
    let mut site = Site::stocked().await;
    type Change = fn(&mut GetChecksumsRequest);
    let cases: [(ResponseCode, Change); 6] = [
        (NOT_UNDERSTOOD, |it| it.header.collection_id = None),
        (NOT_UNDERSTOOD, |it| it.pillar_id = Some("south".into())),
        (NOT_UNDERSTOOD, |it| {
            it.checksum_request_for_existing_file = Some(spec(ChecksumType::HmacMd5, Some("")));
        }),
        (NOT_UNDERSTOOD, |it| {
            it.file_ids = FileIds::File(".x".into());
        }),
        (NOT_FOUND, |it| {
            it.file_ids = FileIds::File("gone.tif".into());
        }),
        (NOT_UNDERSTOOD, |it| {
            it.result_address = Some("http://127.0.0.2:80/a".to_owned());
        }),
    ];
    for (number, (expected, change)) in cases.into_iter().enumerate() {
        let mut request = site.sums_request(None);
        change(&mut request);
        let mut ids = site.ids_request();
        ids.header.collection_id = request.header.collection_id.clone();
        ids.pillar_id = request.pillar_id.clone();
        ids.file_ids = request.file_ids.clone();
        ids.result_address = request.result_address.clone();
        let about_sums = request.checksum_request_for_existing_file.is_some();
        assert_eq!(site.refused(request).await, expected, "{number}");
        if !about_sums {
            assert_eq!(site.refused(ids).await, expected, "{number}");
        }
    }
    let mut request = site.ids_request();
    request.result_address = Some(format!("{DEAD}a"));
    assert_eq!(codes(&site.ask(request).await), [ACCEPTED, TRANSFER]);

    let identify = |file_ids, spec| IdentifyPillarsForGetChecksumsRequest {
        header: site.to_all(),
        audit_trail_information: None,
        file_ids,
        checksum_request_for_existing_file: spec,
    };
    let unknown = identify(FileIds::File("gone.tif".into()), None);
    let unkeyed = identify(FileIds::All, Some(spec(ChecksumType::HmacMd5, None)));
    let all = identify(FileIds::All, Some(hmac()));
    assert_eq!(site.refused(unknown).await, NOT_FOUND);
    assert_eq!(site.refused(unkeyed).await, NOT_UNDERSTOOD);
    assert_eq!(site.refused(all).await, POSITIVE);
}

/// A checksum that is computed now is one of now, whenever the one in the index was computed.
#[tokio::test]
async fn another_checksum_of_one_file_is_of_the_time_of_its_answer() {
    let mut site = Site::stocked().await;
    let stored = site.row("c.tif").await.unwrap().calculated_ms;
    let after = Timestamp::from_millis(stored + 1);
    let later = Timestamp::from_millis(site.client.timestamp().millis() + 3_600_000);
    let hashed = sum(b"c.tif", &hmac());
    let md5 = md5_data(b"c.tif").checksum_value;
    for (spec, min, max, found) in [
        (hmac(), Some(after), None, Some(&hashed)),
        (hmac(), Some(after), Some(later), Some(&hashed)),
        (hmac(), Some(later), None, None),
        (hmac(), None, Some(Timestamp::from_millis(stored)), None),
        (
            spec(ChecksumType::Md5, None),
            None,
            Some(Timestamp::from_millis(stored)),
            Some(&md5),
        ),
        (
            spec(ChecksumType::Md5, None),
            Some(after),
            Some(later),
            None,
        ),
    ] {
        let mut request = site.sums_request(Some(spec));
        request.file_ids = FileIds::File("c.tif".into());
        (request.min_timestamp, request.max_timestamp) = (min, max);
        let response = site.sums(request).await;
        let found: Vec<_> = found.into_iter().map(|sum| ("c.tif", sum)).collect();
        assert_eq!(sums_of(&response), found, "{min:?} {max:?}");
        assert_eq!(response.partial_result, Some(false));
    }
}
