//! What gets to a target, and what does not.

use pillarbox_messages::{ChecksumData, ChecksumType, FilePart, Timestamp};

use super::*;
use crate::digests::plain_spec;

const HELLO: &str = "5d41402abc4b2a76b9719d911017c592";

fn expected(size: Option<u64>, checksum: Option<(ChecksumType, &str)>) -> Expected {
    let checksum = checksum.map(|(kind, value)| ChecksumData {
        checksum_spec: plain_spec(kind),
        checksum_value: value.parse().unwrap(),
        calculation_timestamp: Timestamp::from_millis(0),
    });
    Expected {
        file_size: size,
        checksum,
        part: None,
    }
}

/// Writes "hello" in two pieces, with or without an end.
fn written(target: &Path, expected: &Expected, complete: bool) -> Result<Fetched, DownloadError> {
    let mut pieces = vec![
        Piece::Bytes(Bytes::from_static(b"hel")),
        Piece::Bytes(Bytes::from_static(b"lo")),
    ];
    pieces.extend(complete.then_some(Piece::End));
    let place = Place::new(target, &CorrelationId::random());
    write(&place, expected, arriving(pieces))
}

fn arriving(pieces: Vec<Piece>) -> mpsc::Receiver<Piece> {
    let (sender, arriving) = mpsc::channel(pieces.len());
    for piece in pieces {
        assert!(sender.try_send(piece).is_ok());
    }
    arriving
}

#[test]
fn only_what_the_pillar_said_gets_to_the_target() {
    let md5 = ChecksumType::Md5;
    let cases = [
        (expected(None, None), true),
        (expected(Some(5), Some((md5, HELLO))), true),
        (expected(Some(5), Some((ChecksumType::Other, "ab"))), true),
        (expected(Some(4), Some((md5, HELLO))), false),
        (expected(Some(0), None), false),
        (
            expected(None, Some((md5, "6d41402abc4b2a76b9719d911017c592"))),
            false,
        ),
    ];
    for (expected, good) in cases {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        fs::write(&target, "before").unwrap();
        let result = written(&target, &expected, true);
        assert_eq!(result.is_ok(), good, "{expected:?}: {result:?}");
        let fetched = Fetched {
            size: 5,
            replaced: true,
        };
        assert!(result.is_ok_and(|it| it == fetched) || !good);
        let content = fs::read_to_string(&target).unwrap();
        assert_eq!(content, if good { "hello" } else { "before" });
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "{expected:?}");
    }
}

#[test]
fn a_part_has_the_length_asked_for_or_ends_with_the_file() {
    let part = |part_offset, part_length, file_size| Expected {
        file_size,
        // Of the whole file, not of these bytes.
        checksum: expected(None, Some((ChecksumType::Md5, "00"))).checksum,
        part: Some(FilePart {
            part_offset,
            part_length,
        }),
    };
    let cases = [
        (part(2, 5, Some(20)), true),
        (part(15, 50, Some(20)), true),
        (part(0, 5, None), true),
        (part(0, 9, None), true),
        (part(2, 6, Some(20)), false),
        (part(16, 5, Some(20)), false),
        (part(30, 5, Some(20)), false),
        (part(0, 4, None), false),
        (part(u64::MAX, u64::MAX, Some(u64::MAX)), false),
    ];
    for (expected, good) in cases {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        let result = written(&target, &expected, true);
        assert_eq!(result.is_ok(), good, "{expected:?}: {result:?}");
        assert_eq!(target.exists(), good);
    }
}

#[test]
fn bytes_beyond_the_end_are_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let expected = expected(Some(3), None);
    // No end ever comes.
    let result = written(&directory.path().join("target"), &expected, false);
    assert!(
        matches!(result, Err(DownloadError::Length { .. })),
        "{result:?}"
    );
}

#[test]
fn an_ended_transfer_leaves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let result = written(
        &directory.path().join("target"),
        &Expected::default(),
        false,
    );
    assert!(matches!(result, Err(DownloadError::Ended)));
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 0);
}

#[test]
fn a_target_that_can_not_be_written_is_our_own_fault() {
    let directory = tempfile::tempdir().unwrap();
    let target = directory.path().join("none/target");
    let error = written(&target, &Expected::default(), true).unwrap_err();
    assert!(!error.another_may_help());
    assert!(error.to_string().contains("none/target"), "{error}");
}
