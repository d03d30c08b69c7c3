//! Two recorded pages of 10,000 files: what our pillar makes of as many, and what our commands make of them.

use std::fs;

use rusqlite::Connection;

use super::{
    capture::{self, CHECKSUM, Capture, Captured, FILE1, LISTINGS, Sender, edit},
    differences::{Judge, OF_PILLARS},
    scenes::Deed,
    shape,
    site::{Meeting, Site},
    stage::Stage,
};
use crate::support::noise;

/// A recorded page, with a recorded conversation in which it can be asked for.
struct Listing {
    page: Captured,
    pillar: &'static str,
    item: &'static str,
    conversation: Capture,
}

const COUNT: usize = 10_000;

fn recorded(test: &str) -> Option<[Listing; 2]> {
    let captures = capture::all(test)?;
    let directory = capture::directory(test)?.join(LISTINGS);
    let listing = |kind: &str, pillar, item, conversation: &str| {
        let page = fs::read_to_string(directory.join(format!("{kind}.xml"))).unwrap();
        let mut captures = captures.iter();
        let conversation = captures.find(|capture| capture.name == conversation);
        Listing {
            page: Captured::of_document(kind, page),
            pillar,
            item,
            conversation: conversation.unwrap().clone(),
        }
    };
    Some([
        listing(
            "GetFileIDsFinalResponse",
            FILE1,
            "FileIDsDataItem",
            "get-fileids-all",
        ),
        listing(
            "GetChecksumsFinalResponse",
            CHECKSUM,
            "ChecksumDataItems",
            "get-checksums-all",
        ),
    ])
}

impl Listing {
    /// The recorded message of this kind from or to the pillar.
    fn message(&self, end_of_kind: &str) -> &Captured {
        let mut messages = self.conversation.messages.iter();
        let found = messages.find(|it| {
            it.kind.ends_with(end_of_kind)
                && (it.kind.starts_with("Identify") == end_of_kind.starts_with("Identify"))
                && it.element("PillarID").is_none_or(|id| id == self.pillar)
        });
        found.expect("recorded")
    }
}

/// The ids of the files in a page.
fn ids(page: &str) -> Vec<&str> {
    let items = page.split("<FileID>").skip(1);
    items.map(|rest| rest.split_once('<').unwrap().0).collect()
}

/// The page without all but its first and last items, and with no value of a checksum.
fn cut(mut page: Captured, item: &str) -> Captured {
    let (start, _) = page.text.split_once(&format!("</{item}>")).unwrap();
    let (_, end) = page.text.rsplit_once(&format!("<{item}>")).unwrap();
    let short = format!("{start}</{item}><{item}>{end}");
    page.text = edit(&short, "ChecksumValue", |_| "(hex)".to_owned());
    page
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_page_of_ten_thousand_is_as_recorded() {
    let Some(listings) = recorded("our_page_of_ten_thousand_is_as_recorded") else {
        return;
    };
    let mut judge = Judge::default();
    for listing in listings {
        let request = listing.message("Request");
        let mut site = Site::start(Meeting::Embedded, &[], &request.reply_to).await;
        let first = Deed::of("PUT_FILE", "bulk-000000.bin", noise(70, 1024).leak());
        site.prepare(listing.pillar, &first).await;
        multiply(&site, listing.pillar);
        let correlation = listing.page.element("CorrelationID").unwrap();
        let text = edit(&request.text, "CorrelationID", |_| correlation.to_owned());
        let mut request = request.clone();
        correlation.clone_into(&mut request.correlation);
        site.send(&request, text).await;
        let heard = site.settle().await;
        site.close().await;
        let page = heard
            .into_iter()
            .find(|it| it.kind == listing.page.kind)
            .unwrap();
        assert_eq!(ids(&page.text), ids(&listing.page.text));
        let (recorded, ours) = (cut(listing.page, listing.item), cut(page, listing.item));
        let lines = shape::differences(&[&recorded], &[&ours]);
        judge.judge(OF_PILLARS, LISTINGS, &lines);
        println!(
            "{}: {COUNT} items, in order, and the elements of the page",
            recorded.kind
        );
    }
    judge.assert_nothing_unlisted();
}

/// Rows of as many further files as a page holds, as puts one each millisecond would have written them.
fn multiply(site: &Site, pillar: &str) {
    let index = Connection::open(site.index(pillar)).unwrap();
    let rows = index.execute(
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)
         INSERT INTO files (collection, file_id, directory, size, expected, observed, modified, calculated, missing)
         SELECT collection, printf('bulk-%06d.bin', n), directory, size, expected, observed, modified + n,
                calculated + n, 0
         FROM files, numbers",
        [i64::try_from(COUNT).unwrap()],
    );
    assert_eq!(rows, Ok(COUNT));
}

#[test]
fn our_commands_print_a_recorded_page_of_ten_thousand_and_ask_for_the_next() {
    let Some([file_ids, checksums]) = recorded("our_commands_print_a_recorded_page") else {
        return;
    };
    let mut stage = Stage::new();
    let rows = print(
        &mut stage,
        &file_ids,
        "get-file-ids",
        "LastModificationTime",
    );
    assert_eq!(rows[0], "Count: \tSize: \tFileID:");
    for (row, id) in rows[1..].iter().zip(ids(&file_ids.page.text)) {
        assert_eq!(*row, format!("1 \t1024 \t{id}"));
    }
    let rows = print(
        &mut stage,
        &checksums,
        "get-checksums",
        "CalculationTimestamp",
    );
    assert_eq!(rows[0], "Checksum: \tCount: \tFileID:");
    let values = checksums.page.text.split("<ChecksumValue>").skip(1);
    let values = values.map(|rest| rest.split_once('<').unwrap().0.to_lowercase());
    for ((row, id), value) in rows[1..].iter().zip(ids(&checksums.page.text)).zip(values) {
        assert_eq!(*row, format!("{value} \t1 \t{id}"));
    }
}

/// What a command prints of the recorded page, and of a second one of the conversation, which is the last.
fn print(stage: &mut Stage, listing: &Listing, tool: &str, time: &str) -> Vec<String> {
    let arguments = [tool, "-c", "books", "-p", listing.pillar].map(str::to_owned);
    let mut client = stage.start(&arguments, true);
    let mut asked = |stage: &mut Stage, end: &str| {
        let request = stage.request(&mut client, |it| it.kind.ends_with(end));
        request.unwrap_or_else(|| panic!("no {end}"))
    };
    let identify = asked(stage, "Request");
    let mut identified = listing.conversation.answered().filter(|it| {
        it.kind.starts_with("Identify") && it.from == Sender::Component(listing.pillar.to_owned())
    });
    stage.answer(identified.next().unwrap(), &identify);
    let first = asked(stage, "Request");
    stage.answer(&listing.page, &first);
    let second = asked(stage, "Request");
    let (_, last) = listing.page.text.rsplit_once(&format!("<{time}>")).unwrap();
    let (last, _) = last.split_once('<').unwrap();
    assert_eq!(second.element("MinTimestamp"), Some(last));
    let rest = listing.message("FinalResponse");
    stage.answer(rest, &second);
    client.wait_for_success();
    let rows = client.output().to_vec();
    assert_eq!(rows.len(), 1 + COUNT + ids(&rest.text).len());
    rows
}
