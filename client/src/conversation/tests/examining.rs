//! PutFile while the file's checksum is still being computed.

use pillarbox_messages::{ChecksumData, Message};

use super::support::{
    Bench, COMPLETED, OTHERS, OURS, POSITIVE, md5, put_duplicate, put_final, put_identify, put_with,
};
use crate::conversation::{Input, put_file::PutFileProcedure};

fn put_examining(pillars: &[&str]) -> Bench<PutFileProcedure> {
    put_with(pillars, |put| {
        put.new.checksum = None;
        put.new.examining = true;
    })
}

fn examined() -> Input {
    Input::Examined {
        checksum: md5(OURS),
    }
}

/// The checksum that the requests carry.
fn requested(bench: &Bench<PutFileProcedure>) -> Vec<Option<ChecksumData>> {
    let requests = bench.sent.iter().filter_map(|message| match message {
        Message::PutFileRequest(request) => Some(request.checksum_data_for_new_file.clone()),
        _ => None,
    });
    requests.collect()
}

#[test]
fn requests_wait_for_the_offer_and_for_the_checksum() {
    for inputs in [
        [Input::OfferReady, examined()],
        [examined(), Input::OfferReady],
    ] {
        let mut bench = put_examining(&["north", "south"]);
        bench.hear(put_identify("north", POSITIVE));
        bench.hear(put_identify("south", POSITIVE));
        assert_eq!((bench.offered, bench.examined), (1, 0), "read on the way");
        let [first, second] = inputs;
        bench.step(first);
        assert_eq!(requested(&bench), []);
        bench.step(second);
        assert_eq!(requested(&bench), [Some(md5(OURS)), Some(md5(OURS))]);
        bench.hear(put_final("north", COMPLETED));
        bench.hear(put_final("south", COMPLETED));
        assert_eq!(bench.last(), "COMPLETE");
    }
}

#[test]
fn an_existing_file_is_judged_once_the_checksum_is_known() {
    for (existing, last, offered) in [(OURS, "COMPLETE", 0), (OTHERS, "FAILED", 0)] {
        let mut bench = put_examining(&["north"]);
        assert_eq!(bench.examined, 0, "nobody needs to know yet");
        bench.hear(put_duplicate("north", Some(md5(existing))));
        bench.hear(put_duplicate("north", Some(md5(OTHERS))));
        assert_eq!(bench.examined, 1);
        assert_eq!(bench.trace(), ["IDENTIFY_REQUEST_SENT"]);
        bench.step(examined());
        assert_eq!((bench.last(), bench.offered), (last.to_owned(), offered));
    }
}

#[test]
fn who_waits_to_be_judged_is_not_silent() {
    let mut bench = put_examining(&["north", "south", "west"]);
    bench.hear(put_duplicate("north", Some(md5(OURS))));
    bench.hear(put_identify("south", POSITIVE));
    bench.time_out();
    assert_eq!(bench.timer, None, "the checksum decides");
    bench.step(examined());
    assert_eq!(
        bench.trace(),
        [
            "IDENTIFY_REQUEST_SENT",
            "COMPONENT_IDENTIFIED south",
            "COMPONENT_COMPLETE north",
            "IDENTIFY_TIMEOUT [west]",
            "COMPONENT_FAILED west",
            "IDENTIFICATION_COMPLETE [south]",
        ]
    );
    bench.step(Input::OfferReady);
    assert_eq!(requested(&bench), [Some(md5(OURS))]);
}

#[test]
fn a_file_that_can_not_be_read_is_put_nowhere() {
    let mut bench = put_examining(&["north"]);
    bench.hear(put_identify("north", POSITIVE));
    bench.step(Input::ExamineFailed {
        text: "a bad disk".to_owned(),
    });
    assert_eq!((bench.last(), bench.removed), ("FAILED".to_owned(), 1));
    bench.step(Input::OfferReady);
    assert_eq!(requested(&bench), []);
}
