//! What can't be read, or can't be used though it can be read.

use pillarbox_messages::{ComponentId, MessageType};

use super::{
    replace_file::{replace_final, replace_identify, replace_procedure},
    support::{Bench, COMPLETED, OTHERS, POSITIVE, context, md5, put, put_final, put_identify},
};
use crate::conversation::Input;

fn unreadable(from: Option<&str>, message_type: Option<MessageType>) -> Input {
    Input::Unreadable {
        from: from.map(ComponentId::from),
        message_type,
        reason: "FileID is missing".to_owned(),
    }
}

#[test]
fn who_sent_it_its_type_and_the_reason_are_told_and_the_next_one_counts() {
    let mut bench = put(&["north"]);
    let kind = MessageType::IdentifyPillarsForPutFileResponse;
    bench.step(unreadable(Some("north"), Some(kind)));
    assert_eq!(bench.last(), "WARNING north");
    assert_eq!(
        bench.info(),
        "its IdentifyPillarsForPutFileResponse can't be read: FileID is missing"
    );
    bench.step(unreadable(None, None));
    assert_eq!(bench.last(), "WARNING");
    assert_eq!(bench.info(), "its message can't be read: FileID is missing");
    bench.step(unreadable(Some("stranger"), None));
    assert_eq!((bench.events.len(), bench.ignored), (3, 1));
    bench.hear(put_identify("north", POSITIVE));
    bench.step(Input::OfferReady);
    bench.hear(put_final("north", COMPLETED));
    assert_eq!(bench.last(), "COMPLETE");
    bench.step(unreadable(Some("north"), None));
    assert_eq!(bench.last(), "COMPLETE");
}

#[test]
fn who_says_nothing_else_has_failed_with_it_as_the_cause() {
    let mut bench = put(&["north"]);
    bench.hear(put_identify("north", POSITIVE));
    bench.step(Input::OfferReady);
    bench.step(unreadable(
        Some("north"),
        Some(MessageType::PutFileFinalResponse),
    ));
    bench.time_out();
    assert_eq!(bench.last(), "FAILED");
    let info = bench.info();
    assert!(
        info.contains(
            "north: did not finish the operation in time; its PutFileFinalResponse can't be read"
        ),
        "{info}"
    );
}

#[test]
fn a_pillar_that_tells_another_checksum_than_that_of_the_file_has_not_stored_it() {
    let mut bench = put(&["north"]);
    bench.hear(put_identify("north", POSITIVE));
    bench.step(Input::OfferReady);
    let mut done = put_final("north", COMPLETED);
    done.checksum_data_for_new_file = Some(md5(OTHERS));
    bench.hear(done);
    assert_eq!(bench.trace()[4..], ["COMPONENT_FAILED north", "FAILED"]);
    assert!(
        bench
            .info()
            .contains("north: its PutFileFinalResponse can't be used"),
        "{}",
        bench.info()
    );

    let mut bench = Bench::new(context(&["north"], Some("hello.txt")), replace_procedure());
    bench.hear(replace_identify("north", POSITIVE));
    bench.step(Input::OfferReady);
    let mut done = replace_final("north", COMPLETED);
    done.checksum_data_for_new_file = Some(md5(OTHERS));
    bench.hear(done);
    assert_eq!(bench.last(), "FAILED");
}
