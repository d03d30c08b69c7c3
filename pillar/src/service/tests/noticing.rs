//! Bytes that are not the expected ones are noticed by whichever request reads them.

use pillarbox_messages::{GetFileFinalResponse, StatusCode};

use super::{listing::sums_of, *};
use crate::index::{Adoption, FileRow};

const GOOD: &[u8] = b"as it was put\n";
const ROTTEN: &[u8] = b"as it wAs put\n";

const INCONSISTENT: &str = "the file's checksum is 0354107d8e3b8ef04966ca73b9a438f2, expected is \
                            e6aa61bf6186f8eb348c9aeb0fa8cd31";

/// A site whose `a.tif` has rotted, which nobody knows yet.
async fn rotten() -> Site {
    let mut site = Site::open().await;
    site.put("a.tif", GOOD).await;
    fs::write(site.place("a.tif"), ROTTEN).unwrap();
    site
}

impl Site {
    async fn row_of(&self, id: &str) -> FileRow {
        let row = self.index().find(&"books".into(), &id.into()).await;
        row.unwrap().unwrap()
    }

    /// Fetches the file, and gives its bytes and the answers.
    async fn get(&mut self, id: &str) -> (Vec<u8>, Vec<Message>) {
        let address = self.server.offers().address_for("got");
        let answers = self.ask(self.get_request(id, &address)).await;
        assert_eq!(codes(&answers), [ACCEPTED, COMPLETED], "{answers:?}");
        (self.delivered(&address).await, answers)
    }

    /// The rot is known, and has been told once.
    async fn assert_noticed(&mut self) {
        let alarm = self.next_alarm().await;
        assert_eq!(alarm, (AlarmCode::ChecksumAlarm, Some("a.tif".into())));
        self.assert_no_alarm().await;
        let row = self.row_of("a.tif").await;
        assert_eq!(row.observed, md5_data(ROTTEN).checksum_value);
        assert_eq!(row.expected, md5_data(GOOD).checksum_value);
        let inconsistent = (FileAction::Inconsistency, INCONSISTENT.to_owned());
        let trail = self.trail().await;
        let told = trail.iter().filter(|event| **event == inconsistent);
        assert_eq!(told.count(), 1, "{trail:?}");
        let (code, text) = self.status().await;
        assert_eq!(code, StatusCode::Warning, "{text}");
        assert!(text.contains("0 files missing, 1 changed"), "{text}");
    }
}

fn last_text(answers: &[Message]) -> &str {
    match answers.last() {
        Some(Message::GetFileFinalResponse(GetFileFinalResponse { response_info, .. })) => {
            response_info.response_text.as_deref().unwrap()
        }
        other => panic!("{other:?}"),
    }
}

fn told_before(answers: &[Message]) -> &HexBinary {
    match &answers[0] {
        Message::GetFileProgressResponse(progress) => {
            let told = progress.checksum_data_for_existing_file.as_ref();
            &told.unwrap().checksum_value
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_file_that_has_rotted_is_noticed_while_it_is_delivered() {
    let mut site = rotten().await;
    let before = site.row_of("a.tif").await;
    let (bytes, answers) = site.get("a.tif").await;
    assert_eq!(bytes, ROTTEN);
    // What was known when it began, by which the client finds out.
    assert_eq!(told_before(&answers), &before.observed);
    assert!(last_text(&answers).contains("do not match"), "{answers:?}");
    site.assert_noticed().await;
    let after = site.row_of("a.tif").await;
    assert!(after.calculated_ms > before.calculated_ms);
    assert_eq!(after.modified_ms, before.modified_ms);
    let delivered = format!("file delivered, with bytes that do not match: {INCONSISTENT}");
    let event = (FileAction::GetFile, delivered);
    assert_eq!(site.trail().await[2..], std::slice::from_ref(&event)[..]);

    // Each delivery is told as it is, but calls for nobody any more.
    let (_, answers) = site.get("a.tif").await;
    assert_eq!(told_before(&answers), &after.observed);
    assert_eq!(site.trail().await[3..], [event]);
    assert_eq!(site.row_of("a.tif").await, after);
    site.assert_no_alarm().await;

    // When its bytes are right again, that is known, too.
    fs::write(site.place("a.tif"), GOOD).unwrap();
    let (_, answers) = site.get("a.tif").await;
    assert_eq!(last_text(&answers), "the file is delivered");
    let again = "the file's checksum is the expected one again";
    assert_eq!(
        site.trail().await[4..],
        [
            (FileAction::ChecksumCalculated, again.to_owned()),
            (FileAction::GetFile, "file delivered".to_owned())
        ]
    );
    assert_eq!(site.status().await.0, StatusCode::Ok);
    site.assert_no_alarm().await;
}

#[tokio::test]
async fn a_file_that_has_lost_its_bytes_is_noticed_and_a_part_tells_nothing() {
    let mut site = rotten().await;
    let address = site.server.offers().address_for("part");
    let part = site.part_request("a.tif", &address, 0, 5);
    assert_eq!(codes(&site.ask(part).await), [ACCEPTED, COMPLETED]);
    assert_eq!(site.trail().await.len(), 2);
    site.assert_no_alarm().await;
    fs::write(site.place("a.tif"), b"").unwrap();
    let (bytes, _) = site.get("a.tif").await;
    assert_eq!(bytes, b"");
    assert_eq!(site.next_alarm().await.0, AlarmCode::ChecksumAlarm);
    let row = site.row_of("a.tif").await;
    assert_eq!(row.observed, md5_data(b"").checksum_value);
}

#[tokio::test]
async fn a_file_that_has_rotted_is_noticed_once_by_those_who_read_it_at_once() {
    let mut site = rotten().await;
    let mut gets = Vec::new();
    for _ in 0..8 {
        let address = site.server.offers().address_for("got");
        gets.push(site.get_request("a.tif", &address));
    }
    for get in gets {
        site.send(get).await;
    }
    let mut completed = 0;
    while completed < 8 {
        completed += usize::from(code(&site.next_answer().await) == COMPLETED);
    }
    site.assert_noticed().await;
    let trail = site.trail().await;
    let honest = |event: &&(FileAction, String)| event.1.contains("do not match");
    assert_eq!(trail.iter().filter(honest).count(), 8, "{trail:?}");
}

/// Whatever for its bytes are read: another kind of checksum, of it or of all, is answered with what they are.
#[tokio::test]
async fn a_file_that_has_rotted_is_noticed_by_another_kind_of_checksum() {
    for file_ids in [FileIds::All, FileIds::File("a.tif".into())] {
        let mut site = rotten().await;
        site.put("b.tif", GOOD).await;
        for _ in 0..2 {
            let mut request = site.sums_request(Some(hmac()));
            request.file_ids = file_ids.clone();
            let sums = site.sums(request).await;
            let listed = sums_of(&sums);
            let rotten = sum(ROTTEN, &hmac());
            assert!(listed.contains(&("a.tif", &rotten)), "{listed:?}");
        }
        site.assert_noticed().await;
    }
}

#[tokio::test]
async fn a_file_that_has_rotted_is_noticed_by_a_change_that_reads_it() {
    // The checksum of another kind that the client gives is not that of the file.
    let mut site = rotten().await;
    let mut request = site.delete_request("a.tif", GOOD);
    let given = request.checksum_data_for_existing_file.as_mut().unwrap();
    given.checksum_spec = hmac();
    given.checksum_value = sum(GOOD, &hmac());
    assert_eq!(site.refused(request).await, OLD_CHECKSUM);
    for _ in 0..2 {
        // One for the rot, one for the refusal.
        let alarm = site.next_alarm().await;
        assert_eq!(alarm, (AlarmCode::ChecksumAlarm, Some("a.tif".into())));
    }
    let row = site.row_of("a.tif").await;
    assert_eq!(row.observed, md5_data(ROTTEN).checksum_value);
    // The last that is told of it is what it was.
    let mut request = site.delete_request("a.tif", ROTTEN);
    request.checksum_request_for_existing_file = Some(spec(ChecksumType::Md5, None));
    let answers = site.ask(request).await;
    let Some(Message::DeleteFileFinalResponse(response)) = answers.last() else {
        panic!("{answers:?}")
    };
    let last = response.checksum_data_for_existing_file.as_ref().unwrap();
    assert_eq!(last.checksum_value, md5_data(ROTTEN).checksum_value);
    site.assert_no_alarm().await;

    let mut site = rotten().await;
    let request = site.replace_request("a.tif", GOOD, b"another").await;
    assert_eq!(codes(&site.ask(request).await), [ACCEPTED, COMPLETED]);
    let alarm = site.next_alarm().await;
    assert_eq!(alarm, (AlarmCode::ChecksumAlarm, Some("a.tif".into())));
    assert_eq!(site.status().await.0, StatusCode::Ok);
}

/// What is noticed moves a file to the end of the listing, where it is met once more.
#[tokio::test]
async fn a_listing_that_notices_something_tells_each_file_once() {
    let mut site = Site::open().await;
    // More than the index gives at once.
    let ids: Vec<String> = (0..1_001).map(|number| format!("f{number:04}")).collect();
    let adoption = |id: &String| Adoption {
        file_id: id.as_str().into(),
        directory: site.directory.path().join("archive"),
        size: GOOD.len() as u64,
        checksum: md5_data(GOOD).checksum_value,
        actor: "north".into(),
    };
    let adoptions = ids.iter().map(adoption).collect();
    for id in &ids {
        fs::write(site.place(id), GOOD).unwrap();
    }
    let adopted = site.index().adopt(&"books".into(), adoptions).await;
    assert_eq!(adopted.unwrap().len(), ids.len());
    fs::write(site.place("f0003"), ROTTEN).unwrap();
    let sums = site.sums(site.sums_request(Some(hmac()))).await;
    let listed: Vec<_> = sums_of(&sums).into_iter().map(|(id, _)| id).collect();
    assert_eq!(listed, ids);
    let alarm = site.next_alarm().await;
    assert_eq!(alarm, (AlarmCode::ChecksumAlarm, Some("f0003".into())));
    site.assert_no_alarm().await;
}
