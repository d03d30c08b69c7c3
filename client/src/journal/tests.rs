//! What is written down comes back as it was, or is put aside.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use pillarbox_messages::{ChecksumType, CorrelationId, Operation};
use proptest::{collection::btree_set, prelude::*, sample::Index};

use super::*;
use crate::{
    conversation::{
        Context, Conversation, Input, Procedure, delete_file::DeleteFileProcedure,
        get_file::GetFileProcedure, new_file::NewFile, put_file::PutFileProcedure,
    },
    digests::plain_spec,
    event::{Completed, ComponentFailure, ComponentResult, Event, EventKind, Stored},
};

const CLIENT: &str = "ingest-1";
const ID: &str = "5c1e7a90-5b1a-4e68-8c93-2a9e6b0f1d35";

fn context(file: &str, pillars: impl IntoIterator<Item = String>) -> Context {
    Context {
        correlation: ID.into(),
        collection: Some("books".into()),
        file: Some(file.into()),
        from: CLIENT.into(),
        reply_to: "topic://books.client.ingest-1".parse().unwrap(),
        identify_at: vec!["topic://books".parse().unwrap()],
        expected: pillars.into_iter().map(ComponentId::from).collect(),
        identification_timeout_ms: 1000,
        operation_timeout_ms: 2000,
        conversation_timeout_ms: 0,
        extend_on_progress: false,
    }
}

fn open<P: Procedure>(context: Context, procedure: P, begun: bool) -> State {
    let mut conversation = Conversation::new(context, procedure);
    if begun {
        conversation.step(Input::Start, 5);
    }
    State::Open(Box::new(P::resumable(&conversation).unwrap()))
}

fn event(file: &str, text: &str, complete: bool) -> Box<Event> {
    let result = ComponentResult::Stored(Stored {
        checksum: None,
        checksums_only: false,
        already_there: complete,
    });
    let results = vec![Completed {
        contributor: text.into(),
        result,
    }];
    let failures = vec![ComponentFailure::new(file.into(), None, text.to_owned())];
    let kind = if complete {
        EventKind::Complete { results, failures }
    } else {
        EventKind::Failed { results, failures }
    };
    Box::new(Event {
        correlation: ID.into(),
        operation: Operation::PutFile,
        collection: Some("books".into()),
        file: Some(file.into()),
        kind,
        info: Some(text.to_owned()),
    })
}

fn states() -> impl Strategy<Value = State> {
    let put = |file: &str| {
        let new = NewFile {
            size: u64::MAX,
            offer: true,
            ..NewFile::new(plain_spec(ChecksumType::HmacSha256))
        };
        PutFileProcedure::new(file.into(), new)
    };
    let delete = |file: &str| DeleteFileProcedure {
        file: file.into(),
        existing_checksum: None,
        request_checksum: None,
        default_spec: plain_spec(ChecksumType::Md5),
        checksum_pillar: true,
        audit_trail_information: Some(file.to_owned()),
    };
    let get = |file: &str| GetFileProcedure::new(file.into(), file.to_owned());
    let texts = (any::<String>(), btree_set(any::<String>(), 0..4));
    (texts, any::<bool>(), 0..5).prop_map(move |((file, pillars), flag, kind)| {
        let context = context(&file, pillars);
        match kind {
            0 => open(context, put(&file), flag),
            1 => open(context, delete(&file), flag),
            2 => open(context, get(&file), flag),
            3 => State::Ended(event(&file, &file, flag)),
            _ => State::Lost(event(&file, &file, false)),
        }
    })
}

fn cargos() -> impl Strategy<Value = KeptCargo> {
    let paths = proptest::collection::vec(1..=255_u8, 0..20).prop_map(|bytes| {
        use std::os::unix::ffi::OsStrExt as _;
        KeptPath::of(Path::new(std::ffi::OsStr::from_bytes(&bytes)))
    });
    (paths, any::<String>(), any::<u64>(), any::<i64>(), 0..3).prop_map(
        |(path, address, size, modified, kind)| match kind {
            0 => KeptCargo::Nothing,
            1 => KeptCargo::Inbound {
                address,
                target: path,
            },
            _ => KeptCargo::Outbound {
                path,
                size,
                modified_ns: modified.into(),
                address,
            },
        },
    )
}

fn all_entries() -> impl Strategy<Value = Entry> {
    (states(), cargos(), any::<bool>()).prop_map(|(state, cargo, changes)| Entry {
        client: CLIENT.into(),
        changes,
        cargo,
        state,
    })
}

proptest! {
    #[test]
    fn an_entry_comes_back_as_it_was(entry in all_entries()) {
        let bytes = frame::encode(&entry).unwrap();
        let read = frame::decode(&bytes).unwrap();
        prop_assert_eq!(&read.cargo, &entry.cargo);
        prop_assert_eq!(format!("{read:?}"), format!("{entry:?}"));
    }

    #[test]
    fn a_part_of_an_entry_is_none(entry in all_entries(), length in any::<Index>()) {
        let bytes = frame::encode(&entry).unwrap();
        prop_assert!(frame::decode(&bytes[..length.index(bytes.len())]).is_err());
    }

    #[test]
    fn one_flipped_bit_is_noticed(entry in all_entries(), place in any::<Index>(), bit in 0..8_u32) {
        let mut bytes = frame::encode(&entry).unwrap();
        let place = place.index(bytes.len());
        bytes[place] ^= 1_u8 << bit;
        prop_assert!(frame::decode(&bytes).is_err());
    }

    #[test]
    fn rubbish_is_no_entry(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(frame::decode(&bytes).is_err());
        let lucky = [b"pillarbox conversation 1 00000000 0\n", &bytes[..]].concat();
        prop_assert!(frame::decode(&lucky).is_err());
    }

    #[test]
    fn no_two_ids_share_a_name(one in ".{0,300}", other in ".{0,300}") {
        prop_assert_eq!(safe_name(&one) == safe_name(&other), one == other);
        prop_assert!(safe_name(&one).len() <= LONGEST_NAME);
        let harmless = |it: char| it.is_ascii_alphanumeric() || "-_%~".contains(it);
        prop_assert!(safe_name(&one).chars().all(harmless));
    }
}

fn an_entry() -> Entry {
    Entry {
        client: CLIENT.into(),
        changes: true,
        cargo: KeptCargo::Nothing,
        state: State::Ended(event("hello.txt", "done", true)),
    }
}

fn journal(directory: &Path) -> Journal {
    Journal::open(directory, &CLIENT.into()).unwrap()
}

/// The names of what is left of it.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory.join(CLIENT)).unwrap();
    let mut names: Vec<String> = entries
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_next_process_finds_what_is_open_until_it_is_taken_up() {
    let directory = tempfile::tempdir().unwrap();
    let first = journal(directory.path());
    assert_eq!(first.left_open(), 0);
    let slot = first.slot(&ID.into()).unwrap();
    slot.write_now(&an_entry()).unwrap();
    slot.write_now(&an_entry()).unwrap();
    assert!(!first.is_left(&ID.into()), "it is its own");
    let mode = fs::metadata(slot.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "checksum keys are nobody else's");
    drop((first, slot));

    let second = journal(directory.path());
    assert_eq!(second.left_open(), 1);
    assert!(second.is_left(&ID.into()));
    let left: Vec<_> = second.read_left().into_iter().map(Result::unwrap).collect();
    assert_eq!(left.len(), 1);
    assert!(second.is_left(&ID.into()), "until its answers have a place");
    second.taken_up(&ID.into());
    assert_eq!(second.left_open(), 0);
    assert!(second.read_left().is_empty());
    for (_, slot) in left {
        slot.remove();
    }
    assert_eq!(names(directory.path()), ["lock"]);
}

#[test]
fn one_process_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let first = journal(directory.path());
    let error = Journal::open(directory.path(), &CLIENT.into()).unwrap_err();
    assert!(matches!(error, JournalError::InUse(_)), "{error}");
    Journal::open(directory.path(), &"another".into()).unwrap();
    drop(first);
    journal(directory.path());
}

#[test]
fn what_can_not_be_read_is_kept_aside() {
    let other = CorrelationId::random();
    let whole = frame::encode(&an_entry()).unwrap();
    let later = String::from_utf8(whole.clone()).unwrap();
    let later = later.replacen("conversation 1 ", "conversation 7 ", 1);
    let cases: [(&str, &[u8], &str); 5] = [
        (ID, b"", "damaged"),
        (ID, b"rubbish\n{}", "damaged"),
        (ID, &whole[..whole.len() - 1], "damaged"),
        (ID, later.as_bytes(), "the format 7"),
        (other.as_str(), &whole, "another conversation"),
    ];
    for (id, content, cause) in cases {
        let directory = tempfile::tempdir().unwrap();
        drop(journal(directory.path()));
        let name = format!("{id}{ENTRY}");
        let path = directory.path().join(CLIENT).join(&name);
        fs::write(&path, content).unwrap();
        let journal = journal(directory.path());
        assert_eq!(journal.left_open(), 1);
        let left = journal.read_left();
        let [Err(error)] = left.as_slice() else {
            panic!("{left:?}");
        };
        let text = error.to_string();
        assert!(text.contains(cause), "{text}");
        assert_eq!(text.lines().count(), 1);
        assert_eq!(journal.left_open(), 0, "it is told once");
        let aside = name + ASIDE;
        assert_eq!(names(directory.path()), [&aside, "lock"]);
        assert_eq!(
            fs::read(directory.path().join(CLIENT).join(aside)).unwrap(),
            content
        );
    }
}

#[test]
fn what_was_being_written_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    drop(journal(directory.path()));
    let half = format!("{ID}{ENTRY}{UNFINISHED}");
    fs::write(directory.path().join(CLIENT).join(half), b"pillarb").unwrap();
    assert_eq!(journal(directory.path()).left_open(), 0);
    assert_eq!(names(directory.path()), ["lock"]);
}

#[test]
fn a_journal_has_an_end() {
    let directory = tempfile::tempdir().unwrap();
    let journal = journal(directory.path());
    journal.shared.count.store(MOST_ENTRIES, Ordering::Relaxed);
    let error = journal.slot(&ID.into()).unwrap_err();
    assert!(matches!(error, JournalError::Full(_)), "{error}");
}
