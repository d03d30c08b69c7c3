//! The log against everything a disk can do to it.

use std::sync::Arc;

use pillarbox_messages::Destination;

use super::{
    Log, LogError, LogOptions,
    faulty::Disk,
    record::{FORMAT, RECORD_HEADER, SEGMENT_HEADER, SegmentHeader},
};
use crate::{
    BusError,
    core::{
        attributes::QueueAttributes,
        durable::{Gap, Standing},
        message::{Addresses, MessageId, NewMessage, Parts},
        unit::{Definition, Entry, Place, QueueId, REMEMBERED, Unit},
    },
};

const QUEUE: QueueId = QueueId(1);
const SMALL: LogOptions = LogOptions {
    segment_bytes: 2048,
    few_segments: 3,
};

fn open(disk: &Disk) -> Result<(Log<Disk>, Vec<Entry>), LogError> {
    let mut entries = Vec::new();
    let log = Log::open(disk.clone(), SMALL, &mut |entry| entries.push(entry))?;
    Ok((log, entries))
}

fn id(seq: u64) -> MessageId {
    MessageId { boot: 1, seq }
}

fn put(seq: u64, length: usize) -> Entry {
    let new = NewMessage::new(Destination::queue("q"), vec![b'x'; length].into());
    let message = Parts::of(&new, id(seq), "", 0, true).pack(&mut Addresses::default());
    Entry::Put {
        message: Arc::new(message),
        places: vec![Place::fresh(QUEUE)],
    }
}

fn ack(seq: u64) -> Entry {
    Entry::Ack {
        queue: QUEUE,
        ids: vec![id(seq)],
    }
}

fn define() -> Entry {
    Entry::Define {
        queue: QUEUE,
        definition: Definition::Queue {
            drain: None,
            name: "q".to_owned(),
            attributes: QueueAttributes::default(),
        },
    }
}

fn unit(number: u64, sync: bool, entry: Entry) -> Unit {
    Unit {
        number,
        sync,
        entries: vec![entry],
    }
}

fn synced(entry: Entry) -> [Unit; 1] {
    [unit(1, true, entry)]
}

/// The entries without what segments repeat.
fn without_repeats(entries: &[Entry]) -> Vec<&Entry> {
    entries
        .iter()
        .filter(|e| !matches!(e, Entry::Boot(_) | Entry::Define { .. }))
        .collect()
}

#[test]
fn b48_what_was_synced_survives_a_loss_of_power_and_the_rest_a_crash() {
    let disk = Disk::new();
    let (mut log, entries) = open(&disk).unwrap();
    assert!(entries.is_empty());
    log.append(&synced(put(1, 10))).unwrap();
    log.append(&[unit(2, false, ack(1))]).unwrap();
    assert_eq!(open(&disk.after_power_loss(0)).unwrap().1, [put(1, 10)]);
    assert_eq!(open(&disk.after_crash()).unwrap().1, [put(1, 10), ack(1)]);
    log.close().unwrap();
    assert_eq!(
        open(&disk.after_power_loss(0)).unwrap().1,
        [put(1, 10), ack(1)]
    );
}

#[test]
fn a_group_costs_one_sync_and_nothing_costs_none() {
    let (mut log, _) = open(&Disk::new()).unwrap();
    let group: Vec<Unit> = (1..=5).map(|seq| unit(seq, true, put(seq, 10))).collect();
    log.append(&group).unwrap();
    assert_eq!(log.stats().syncs, 1);
    log.append(&[unit(6, false, ack(1))]).unwrap();
    assert_eq!(log.stats().syncs, 1);
}

#[test]
fn e04_b46_a_write_cut_off_anywhere_leaves_what_was_promised_and_nothing_half() {
    let base = Disk::new();
    let (mut log, _) = open(&base).unwrap();
    log.append(&synced(put(1, 10))).unwrap();
    let before = log.stats().bytes;
    let group = [
        unit(2, true, put(2, 30)),
        Unit {
            number: 3,
            sync: true,
            entries: vec![put(3, 5), ack(1), put(4, 5)],
        },
    ];
    log.append(&group).unwrap();
    let length = log.stats().bytes - before;
    drop(log);
    let mut seen = [0; 3];
    for cut in 0..length {
        let disk = Disk::new();
        let (mut log, _) = open(&disk).unwrap();
        log.append(&synced(put(1, 10))).unwrap();
        disk.fail_write_after(cut);
        log.append(&group).unwrap_err();
        assert!(
            matches!(log.append(&synced(ack(1))), Err(LogError::Failed)),
            "no second try"
        );
        let survivors = usize::try_from(cut).unwrap();
        for found in [disk.after_crash(), disk.after_power_loss(survivors)] {
            let (mut log, entries) = open(&found).unwrap();
            let whole = match entries.as_slice() {
                [first] if *first == put(1, 10) => 0,
                [_, second] if *second == put(2, 30) => 1,
                // Where nothing but zeros was cut off.
                [_, _, third, fourth, fifth]
                    if [third, fourth, fifth] == [&put(3, 5), &ack(1), &put(4, 5)] =>
                {
                    2
                }
                other => panic!("cut at {cut}: {other:?}"),
            };
            seen[whole] += 1;
            // And it goes on from there.
            log.append(&synced(put(9, 1))).unwrap();
            let (_, entries) = open(&found.after_power_loss(0)).unwrap();
            let length = if whole == 2 { 6 } else { whole + 2 };
            assert_eq!((entries.len(), entries.last()), (length, Some(&put(9, 1))));
        }
    }
    assert!(seen[0] > 0 && seen[1] > 0, "{seen:?}");
}

#[test]
fn b51_a_failed_sync_ends_the_log() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    disk.fail_sync_after(0);
    assert!(matches!(
        log.append(&synced(put(1, 10))),
        Err(LogError::Io { .. })
    ));
    assert!(matches!(
        log.append(&synced(put(2, 10))),
        Err(LogError::Failed)
    ));
    assert!(log.close().is_err());
    assert!(open(&disk.after_power_loss(0)).unwrap().1.is_empty());
}

#[test]
fn damage_to_what_was_promised_is_not_passed_over() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    log.append(&synced(put(1, 10))).unwrap();
    log.append(&synced(put(2, 10))).unwrap();
    log.append(&synced(put(3, 10))).unwrap();
    let record = usize::try_from(log.stats().bytes / 3).unwrap();
    let (first, third) = (SEGMENT_HEADER, SEGMENT_HEADER + 2 * record);
    for (at, damaged) in [
        (first + 5, true),
        (first + RECORD_HEADER + 3, true),
        (third + 40, false),
    ] {
        let disk = disk.after_crash();
        disk.tamper("0000000001.log", |bytes| bytes[at] ^= 0x10);
        match open(&disk) {
            Err(LogError::Corrupt { file, offset, .. }) if damaged => {
                assert!(file.ends_with("0000000001.log"));
                assert_eq!(offset, first as u64);
            }
            // The last record can't be told from a torn one.
            Ok((_, entries)) if !damaged => assert_eq!(entries, [put(1, 10), put(2, 10)]),
            other => panic!("at {at}: {:?}", other.map(|(_, entries)| entries)),
        }
    }
    // After an orderly end it can.
    log.close().unwrap();
    disk.tamper("0000000001.log", |bytes| bytes[third + 40] ^= 0x10);
    assert!(matches!(open(&disk), Err(LogError::Corrupt { .. })));
}

/// They go on in a segment of their own, so that an earlier version says that it is too old for them.
#[test]
fn logs_of_earlier_formats_are_read_and_a_later_one_is_not() {
    for format in 1..=FORMAT + 1 {
        let disk = Disk::new();
        let (mut log, _) = open(&disk).unwrap();
        log.append(&synced(put(1, 10))).unwrap();
        log.append(&synced(define())).unwrap();
        log.close().unwrap();
        disk.tamper("0000000001.log", |bytes| {
            let header = SegmentHeader::decode(bytes).unwrap();
            let other = SegmentHeader { format, ..header };
            bytes[..SEGMENT_HEADER].copy_from_slice(&other.encode());
        });
        let opened = open(&disk).map(|(log, entries)| (log.stats().segments, entries));
        if format > FORMAT {
            assert!(matches!(opened, Err(LogError::Corrupt { .. })), "{format}");
            continue;
        }
        let segments = if format < FORMAT { 2 } else { 1 };
        assert_eq!(opened.unwrap(), (segments, vec![put(1, 10), define()]));
        let (_, entries) = open(&disk).unwrap();
        assert_eq!(without_repeats(&entries), [&put(1, 10)], "{format}");
    }
}

#[test]
fn zeros_in_the_middle_are_damage_too() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    for seq in 1..=3 {
        log.append(&synced(put(seq, 10))).unwrap();
    }
    let record = usize::try_from(log.stats().bytes / 3).unwrap();
    disk.tamper("0000000001.log", |bytes| {
        bytes[SEGMENT_HEADER..SEGMENT_HEADER + record].fill(0);
    });
    assert!(matches!(open(&disk), Err(LogError::Corrupt { .. })));
}

#[test]
fn segments_follow_each_other_and_a_missing_or_damaged_one_is_noticed() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    log.append(&synced(define())).unwrap();
    for seq in 1..=12 {
        log.append(&synced(put(seq, 300))).unwrap();
    }
    assert!(log.stats().segments >= 3, "{:?}", log.stats());
    let (_, entries) = open(&disk.after_power_loss(0)).unwrap();
    let expected: Vec<Entry> = (1..=12).map(|seq| put(seq, 300)).collect();
    assert_eq!(
        without_repeats(&entries),
        expected.iter().collect::<Vec<_>>()
    );

    let missing = disk.after_crash();
    missing.remove_file("0000000002.log");
    let Err(LogError::Corrupt { file, .. }) = open(&missing) else {
        panic!("not noticed")
    };
    assert!(file.ends_with("0000000002.log"));

    let damaged = disk.after_crash();
    damaged.tamper("0000000001.log", |bytes| bytes[SEGMENT_HEADER + 900] ^= 1);
    let Err(LogError::Corrupt { file, .. }) = open(&damaged) else {
        panic!("not noticed")
    };
    assert!(file.ends_with("0000000001.log"));

    let headless = disk.after_crash();
    headless.tamper("0000000002.log", |bytes| bytes[3] ^= 1);
    let Err(LogError::Corrupt { file, .. }) = open(&headless) else {
        panic!("not noticed")
    };
    assert!(file.ends_with("0000000002.log"));
}

#[test]
fn b53_a_drained_log_shrinks_to_what_is_written_now_and_keeps_its_definitions() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    log.append(&[unit(1, true, Entry::Boot(7)), unit(2, true, define())])
        .unwrap();
    for seq in 1..=60 {
        log.append(&synced(put(seq, 300))).unwrap();
        log.append(&synced(ack(seq))).unwrap();
        assert!(log.stats().segments <= 2, "{:?}", log.stats());
    }
    let files = disk.names();
    assert!(files.len() <= 3, "{files:?}");
    let (log, entries) = open(&disk.after_power_loss(0)).unwrap();
    assert!(entries.contains(&Entry::Boot(7)) && entries.contains(&define()));
    assert!(log.stats().segments <= 2);
}

#[test]
fn b53_one_old_message_does_not_keep_all_segments() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    log.append(&synced(define())).unwrap();
    log.append(&synced(put(1, 100))).unwrap();
    let mut moves = 0;
    for seq in 2..=100 {
        log.append(&synced(put(seq, 300))).unwrap();
        log.append(&synced(ack(seq))).unwrap();
        let stale = log.stale();
        if stale.contains(&(id(1), QUEUE)) {
            moves += 1;
            log.append(&synced(put(1, 100))).unwrap();
        }
        assert!(
            log.stats().segments <= SMALL.few_segments + 1,
            "{:?}",
            log.stats()
        );
    }
    assert!(moves > 1);
    let (_, entries) = open(&disk.after_power_loss(0)).unwrap();
    assert!(entries.contains(&put(1, 100)));
}

#[test]
fn e03_what_is_remembered_outlives_the_segment_it_was_written_to() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    log.append(&synced(define())).unwrap();
    let remember = || Entry::Remember {
        message: id(1),
        at: 5,
        destination: "/queue/q".to_owned(),
        id: "x".to_owned(),
    };
    let unit = |entries| Unit {
        number: 1,
        sync: true,
        entries,
    };
    log.append(&[unit(vec![put(1, 100), remember(), ack(1)])])
        .unwrap();
    let mut moves = 0;
    for seq in 2..=100 {
        log.append(&synced(put(seq, 300))).unwrap();
        log.append(&synced(ack(seq))).unwrap();
        if log.stale().contains(&(id(1), REMEMBERED)) {
            moves += 1;
            log.append(&synced(remember())).unwrap();
        }
        let segments = log.stats().segments;
        assert!(segments <= SMALL.few_segments + 1, "{segments}");
    }
    assert!(moves > 1);
    let found = |log: &Disk| open(&log.after_power_loss(0)).unwrap().1;
    assert!(found(&disk).contains(&remember()));
    let forgotten = Entry::Ack {
        queue: REMEMBERED,
        ids: vec![id(1)],
    };
    log.append(&synced(forgotten)).unwrap();
    for seq in 101..=120 {
        log.append(&synced(put(seq, 300))).unwrap();
        log.append(&synced(ack(seq))).unwrap();
    }
    assert!(!found(&disk).contains(&remember()));
}

#[test]
fn b52_a_full_disk_is_known_before_it_hurts_and_is_forgotten_when_it_is_not() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    disk.set_full(true);
    let mut seq = 0;
    while log.has_room() {
        seq += 1;
        log.append(&synced(put(seq, 300))).unwrap();
    }
    // A whole segment is left for acknowledgements.
    for seq in 1..=seq {
        log.append(&synced(ack(seq))).unwrap();
    }
    assert!(!log.has_room());
    disk.set_full(false);
    log.make_room();
    assert!(log.has_room());
    for seq in 100..120 {
        log.append(&synced(put(seq, 300))).unwrap();
    }
}

#[test]
fn a_record_longer_than_a_segment_is_written_all_the_same() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    for seq in 1..=3 {
        log.append(&synced(put(seq, 5000))).unwrap();
    }
    let (_, entries) = open(&disk.after_power_loss(0)).unwrap();
    assert_eq!(without_repeats(&entries).len(), 3);
}

#[test]
fn power_lost_while_segments_change_loses_nothing() {
    // Every sync is the last one before the power goes, once.
    for syncs in 0..40 {
        let disk = Disk::new();
        let (mut log, _) = open(&disk).unwrap();
        disk.fail_sync_after(syncs);
        let mut promised = 0;
        for seq in 1..=20 {
            if log.append(&synced(put(seq, 300))).is_err() {
                break;
            }
            promised = seq;
        }
        for survivors in [0, 7, 200, usize::MAX] {
            let (_, entries) = open(&disk.after_power_loss(survivors)).unwrap();
            let found = without_repeats(&entries).len() as u64;
            assert!(
                found >= promised && found <= promised + 1,
                "{syncs}: {found} of {promised}"
            );
        }
    }
}

#[test]
fn an_old_segment_stays_until_what_replaces_it_is_on_the_disk() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    log.append(&[unit(1, true, define()), unit(2, true, put(1, 10))])
        .unwrap();
    let mut number = 2;
    while !disk.names().contains(&"0000000002.log".to_owned()) {
        number += 1;
        let ids = (1..30).map(id).collect();
        log.append(&[unit(number, false, Entry::Ack { queue: QUEUE, ids })])
            .unwrap();
    }
    assert!(
        open(&disk.after_power_loss(0))
            .unwrap()
            .1
            .contains(&define())
    );
    log.append(&synced(put(50, 10))).unwrap();
    assert!(!disk.names().contains(&"0000000001.log".to_owned()));
    assert!(
        open(&disk.after_power_loss(0))
            .unwrap()
            .1
            .contains(&define())
    );
}

#[test]
fn definitions_survive_a_crash_at_any_point_of_a_change_of_segments() {
    let mut cut_between = false;
    for budget in (0..3000).step_by(7).chain(1800..2200) {
        let disk = Disk::new();
        let (mut log, _) = open(&disk).unwrap();
        log.append(&synced(define())).unwrap();
        disk.fail_write_after(budget);
        let mut seq = 0;
        loop {
            seq += 1;
            if log.append(&synced(put(seq, 300))).is_err() {
                break;
            }
        }
        let disk = disk.after_crash();
        cut_between |= disk.names() == ["0000000001.log", "0000000002.log"];
        let (mut log, entries) = open(&disk).unwrap();
        assert!(entries.contains(&define()));
        let ids = (1..=seq).map(id).collect();
        log.append(&synced(Entry::Ack { queue: QUEUE, ids }))
            .unwrap();
        // Until the first segment has gone.
        while disk.names().contains(&"0000000001.log".to_owned()) {
            log.append(&synced(put(100, 300))).unwrap();
            log.append(&synced(ack(100))).unwrap();
        }
        assert!(
            open(&disk.after_crash()).unwrap().1.contains(&define()),
            "{budget}"
        );
    }
    assert!(cut_between, "no test");
}

#[test]
fn a_log_at_rest_takes_no_more_room_than_it_needs() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    log.append(&synced(put(1, 10))).unwrap();
    log.close().unwrap();
    log.append(&synced(put(2, 10))).unwrap_err();
    assert_eq!(disk.names(), ["0000000001.log"]);
    disk.tamper("0000000001.log", |bytes| assert!(bytes.len() < 500));
    let (mut log, entries) = open(&disk).unwrap();
    assert_eq!(entries, [put(1, 10)]);
    log.append(&synced(put(2, 10))).unwrap();
    disk.tamper("0000000001.log", |bytes| {
        assert_eq!(bytes.len() as u64, SMALL.segment_bytes);
    });
    assert_eq!(
        open(&disk.after_power_loss(0)).unwrap().1,
        [put(1, 10), put(2, 10)]
    );
}

/// The directory as a program that wrote this format had left it.
fn of_format(disk: &Disk, format: u32) {
    disk.tamper("0000000001.log", |bytes| {
        bytes[8..12].copy_from_slice(&format.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..SEGMENT_HEADER - 4]);
        bytes[SEGMENT_HEADER - 4..SEGMENT_HEADER].copy_from_slice(&crc.to_le_bytes());
    });
}

#[test]
fn logs_of_earlier_formats_open_and_later_ones_are_refused() {
    for format in [1, 2] {
        let disk = Disk::new();
        let (mut log, _) = open(&disk).unwrap();
        log.append(&synced(put(1, 10))).unwrap();
        log.close().unwrap();
        of_format(&disk, format);
        let (log, entries) = open(&disk).unwrap();
        assert_eq!(entries, [put(1, 10)]);
        drop(log);
        // What comes from now on is in a segment that an older program refuses.
        let (_, entries) = open(&disk.after_crash()).unwrap();
        assert_eq!(without_repeats(&entries), [&put(1, 10)]);
        assert!(disk.names().contains(&"0000000002.log".to_owned()));
    }
    let disk = Disk::new();
    drop(open(&disk).unwrap());
    of_format(&disk, FORMAT + 1);
    let refused = open(&disk).unwrap_err();
    assert!(
        refused.to_string().contains("another version's"),
        "{refused}"
    );
}

/// What an older program finds behind its own format's header it takes for damage, if it can't read it.
#[test]
fn nothing_is_written_behind_the_header_of_an_earlier_format() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    log.append(&synced(put(1, 10))).unwrap();
    log.close().unwrap();
    of_format(&disk, 2);
    let written = |disk: &Disk| {
        let mut bytes = Vec::new();
        disk.tamper("0000000001.log", |all| bytes.clone_from(all));
        let used = bytes.iter().rposition(|byte| *byte != 0);
        bytes.truncate(used.map_or(0, |last| last + 1));
        bytes
    };
    let before = written(&disk);
    disk.set_full(true);
    let refused = open(&disk).unwrap_err();
    assert!(
        matches!(refused, LogError::NoRoom { format: 2, .. }),
        "{refused}"
    );
    assert_eq!(BusError::from(refused).name(), "NO-SPACE");
    assert_eq!(disk.names(), ["0000000001.log"]);
    disk.set_full(false);
    let (mut log, _) = open(&disk).unwrap();
    log.append(&synced(put(2, 10))).unwrap();
    assert_eq!(written(&disk), before);
    let (_, entries) = open(&disk.after_crash()).unwrap();
    assert_eq!(without_repeats(&entries), [&put(1, 10), &put(2, 10)]);
}

/// A segment that its maker had no time to write to.
#[test]
fn an_earlier_formats_empty_segment_stays_empty() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    log.append(&synced(define())).unwrap();
    log.append(&synced(put(1, 10))).unwrap();
    log.close().unwrap();
    of_format(&disk, 2);
    let (log, _) = open(&disk).unwrap();
    drop(log);
    let empty = |bytes: &mut Vec<u8>| {
        let header = SegmentHeader::decode(bytes).unwrap();
        let old = SegmentHeader {
            format: 2,
            ..header
        };
        bytes[..SEGMENT_HEADER].copy_from_slice(&old.encode());
        bytes[SEGMENT_HEADER..].fill(0);
    };
    disk.tamper("0000000002.log", empty);
    let (log, entries) = open(&disk).unwrap();
    assert_eq!(entries, [define(), put(1, 10)]);
    drop(log);
    disk.tamper("0000000002.log", |bytes| {
        assert!(bytes[SEGMENT_HEADER..].iter().all(|byte| *byte == 0));
    });
    let (_, entries) = open(&disk.after_crash()).unwrap();
    assert_eq!(without_repeats(&entries), [&put(1, 10)]);
}

#[test]
fn how_a_subscription_stands_goes_from_segment_to_segment() {
    let disk = Disk::new();
    let (mut log, _) = open(&disk).unwrap();
    let standing = |count| Entry::Standing {
        queue: QUEUE,
        standing: Standing {
            away_since: Some(7),
            gap: Some(Gap { count, since: 9 }),
        },
    };
    log.append(&synced(define())).unwrap();
    log.append(&synced(standing(1))).unwrap();
    log.append(&synced(standing(2))).unwrap();
    for seq in 1..40 {
        log.append(&synced(put(seq, 300))).unwrap();
        log.append(&synced(ack(seq))).unwrap();
    }
    assert!(!disk.names().contains(&"0000000001.log".to_owned()));
    let (_, entries) = open(&disk.after_power_loss(0)).unwrap();
    let stands = entries
        .iter()
        .filter(|it| matches!(it, Entry::Standing { .. }));
    let last = standing(2);
    assert!(stands.clone().all(|it| *it == last) && stands.count() > 0);
    log.append(&synced(Entry::Remove { queue: QUEUE })).unwrap();
    for seq in 40..80 {
        log.append(&synced(put(seq, 300))).unwrap();
        log.append(&synced(ack(seq))).unwrap();
    }
    let (_, entries) = open(&disk.after_power_loss(0)).unwrap();
    assert!(!entries.contains(&last), "it is no more");
}
