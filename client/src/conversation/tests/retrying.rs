//! Transfers to a pillar that failed, and are tried again.

use pillarbox_messages::ResponseCode;

use super::support::{
    Bench, COMPLETED, OPERATION_MS, POSITIVE, context, put_final, put_identify, put_procedure,
    put_with,
};
use crate::conversation::{Context, Input, put_file::PutFileProcedure};

#[test]
fn a_failed_transfer_is_retried_as_often_as_allowed() {
    let transfer = || put_final("north", ResponseCode::FileTransferFailure);
    for retries in 0..3 {
        let mut bench = put_with(&["north"], |put| put.retries = retries);
        bench.hear(put_identify("north", POSITIVE));
        bench.step(Input::OfferReady);
        for _ in 0..retries {
            bench.hear(transfer());
            assert_eq!(bench.last(), "WARNING north");
            bench.fire();
        }
        assert_eq!(bench.asked().len(), 1 + retries as usize);
        bench.hear(transfer());
        assert_eq!(bench.last(), "FAILED");
        assert_eq!(bench.asked().len(), 1 + retries as usize);
    }
}

/// The pauses between retries of a transfer that never comes about, in milliseconds.
fn pauses(retries: u32, operation_ms: i64) -> Vec<i64> {
    let context = Context {
        operation_timeout_ms: operation_ms,
        ..context(&["north"], Some("hello.txt"))
    };
    let procedure = PutFileProcedure {
        retries,
        ..put_procedure()
    };
    let mut bench = Bench::new(context, procedure);
    bench.hear(put_identify("north", POSITIVE));
    bench.step(Input::OfferReady);
    let mut pauses = Vec::new();
    for retry in 1..=retries {
        let failed_ms = bench.now_ms;
        bench.hear(put_final("north", ResponseCode::FileTransferFailure));
        assert_eq!(bench.asked().len(), retry as usize, "not at once");
        bench.fire();
        assert_eq!(bench.asked().len(), 1 + retry as usize);
        pauses.push(bench.now_ms - failed_ms);
    }
    bench.hear(put_final("north", ResponseCode::FileTransferFailure));
    assert_eq!(bench.last(), "FAILED");
    pauses
}

#[test]
fn retries_pause_ever_longer_up_to_a_limit() {
    let pauses = pauses(8, 600_000);
    let limits = [1, 2, 4, 8, 16, 30, 30, 30].map(|seconds| seconds * 1000);
    for (pause, limit) in pauses.iter().zip(limits) {
        assert!((limit * 3 / 4..=limit).contains(pause), "{pauses:?}");
    }
    let by_chance = |pauses: &[i64]| pauses.iter().filter(|it| **it % 1000 != 0).count();
    assert!(by_chance(&pauses) > 4, "{pauses:?}");
}

#[test]
fn retries_begin_before_the_time_is_over() {
    for operation_ms in [200, 2000, 10_000] {
        let pauses = pauses(5, operation_ms);
        assert!(pauses.iter().sum::<i64>() < operation_ms, "{pauses:?}");
    }
}

#[test]
fn a_failed_transfer_that_is_told_twice_is_retried_once() {
    let transfer = || put_final("north", ResponseCode::FileTransferFailure);
    let mut bench = put_with(&["north"], |put| put.retries = 1);
    bench.hear(put_identify("north", POSITIVE));
    bench.step(Input::OfferReady);
    bench.hear(transfer());
    let told = bench.events.len();
    bench.hear(transfer());
    // Nor is it asked at once when the bus comes back.
    bench.step(Input::Reconnected {
        answers_kept: false,
    });
    assert_eq!((bench.events.len(), bench.asked().len()), (told, 1));
    bench.fire();
    assert_eq!(bench.asked().len(), 2);
    bench.hear(put_final("north", COMPLETED));
    assert_eq!(bench.last(), "COMPLETE");
}

#[test]
fn one_that_is_not_asked_again_yet_may_have_stored_the_file_after_all() {
    let mut bench = put_with(&["north", "south"], |put| put.retries = 1);
    for pillar in ["north", "south"] {
        bench.hear(put_identify(pillar, POSITIVE));
    }
    bench.step(Input::OfferReady);
    let asked_ms = bench.now_ms;
    bench.hear(put_final("north", ResponseCode::FileTransferFailure));
    bench.hear(put_final("north", COMPLETED));
    assert_eq!(bench.timer, Some(asked_ms + OPERATION_MS), "only south's");
    bench.hear(put_final("south", COMPLETED));
    assert_eq!(bench.last(), "COMPLETE");
}
