//! Groups of requests, handed to the writer as they wait in its queue.

use super::{
    writer::{Job, Writer},
    *,
};

fn writer(fixture: &Fixture, pages: i64) -> Writer {
    let connection = schema::open_writer(&fixture.path(), ChecksumType::Md5).unwrap();
    connection
        .pragma_update(None, "max_page_count", pages)
        .unwrap();
    let ledger = Ledger::new(connection, NonZeroU64::MIN).unwrap();
    let (_, jobs) = mpsc::channel(1);
    Writer {
        ledger,
        clock: fixture.clock.clone(),
        jobs,
        writing: Writing::new().0,
    }
}

type Answer = oneshot::Receiver<Result<Done, IndexError>>;

fn put(file_id: &str) -> (Job, Answer) {
    let mut record = record("books", file_id);
    record.remember = Some(remember(|_| "x".repeat(3_000)));
    let (reply, answer) = oneshot::channel();
    (Job::Put(Box::new(record), reply), answer)
}

fn count(fixture: &Fixture) -> u64 {
    let connection = schema::open_reader(&fixture.path()).unwrap();
    reader::count(&connection, &books()).unwrap()
}

/// Some of the group fit and are told so, the others are told that they don't.
#[test]
fn a_full_disk_refuses_what_does_not_fit() {
    let fixture = Fixture::new();
    let mut writer = writer(&fixture, 40);
    let (mut group, answers): (Vec<_>, Vec<_>) = (0..60).map(|n| put(&format!("f{n}"))).unzip();
    writer.perform(&mut group);
    assert!(group.is_empty());
    let mut numbers = Vec::new();
    for mut answer in answers {
        match answer.try_recv().unwrap() {
            Ok(done) => numbers.push(done.audit_number),
            Err(error) => assert!(error.is_no_space(), "{error}"),
        }
    }
    let stored = numbers.len() as u64;
    assert!((3..60).contains(&stored), "{stored}");
    assert_eq!(numbers, (1..=stored).collect::<Vec<_>>());
    assert_eq!(count(&fixture), stored);
}

#[test]
fn one_commit_answers_all_in_order() {
    let fixture = Fixture::new();
    let mut writer = writer(&fixture, 10_000);
    fixture.clock.set(500);
    let (mut group, answers): (Vec<_>, Vec<_>) =
        ["f0", "f1", "f1", "f2"].into_iter().map(put).unzip();
    let (reply, mut closed) = oneshot::channel();
    group.push(Job::Close(reply));
    let closing = writer.perform(&mut group);
    assert!(closing.is_some() && closed.try_recv().is_err());
    let outcomes = answers
        .into_iter()
        .map(|mut answer| answer.try_recv().unwrap());
    let outcomes: Vec<_> = outcomes.collect();
    let done = |number: usize| {
        outcomes[number]
            .as_ref()
            .map(|done| (done.audit_number, done.row.modified_ms))
    };
    assert_eq!(done(0).unwrap(), (1, 500));
    assert_eq!(done(1).unwrap(), (2, 501));
    assert!(matches!(&outcomes[2], Err(IndexError::AlreadyPresent(row)) if row.modified_ms == 501));
    assert_eq!(done(3).unwrap(), (3, 502));
}
