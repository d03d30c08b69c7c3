//! What is refused before anything is sent.

use std::path::{Path, PathBuf};

use pillarbox_messages::{ChecksumSpec, ChecksumType, HexBinary, Timestamp};
use pillarbox_settings::Repository;

use crate::{
    ClientError, DeleteFile, GetAuditTrails, GetChecksums, GetFile, GetFileIds, GetStatus, PutFile,
    ReplaceFile, Source, digests::plain_spec, validate,
};

const SETTINGS: &str = r#"
[repository]
name = "test"
checksum = "MD5"
file_id_pattern = '[a-z0-9.]+'
require = ["checksum-for-new-file", "checksum-for-destructive"]

[bus]
url = "embedded:"

[[collections]]
id = "books"
pillars = ["north", "south"]
"#;

pub(super) fn repository() -> Repository {
    Repository::from_toml_str(SETTINGS, "repository.toml").unwrap()
}

fn put(path: &Path) -> PutFile {
    PutFile::new(
        "books".into(),
        "hello.txt".into(),
        Source::Path(path.to_path_buf()),
    )
}

#[test]
fn a_put_that_is_known_to_fail() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("hello.txt");
    std::fs::write(&path, "hello").unwrap();
    let check = |change: fn(&mut PutFile)| {
        let mut request = put(&path);
        change(&mut request);
        request.validate(&repository())
    };
    check(|_| {}).unwrap();
    let unknown = check(|it| it.collection = "nosuch".into()).unwrap_err();
    assert!(
        unknown.to_string().contains("the settings have: books"),
        "{unknown}"
    );
    for id in ["Hello.txt", "h", "../hello.txt", "", " hello"] {
        let mut request = put(&path);
        request.file_id = id.into();
        let error = request.validate(&repository()).unwrap_err();
        assert!(matches!(error, ClientError::FileId { .. }), "{id}: {error}");
    }
    let address = check(|it| {
        it.source = Source::Address {
            address: "http://127.0.0.1/x".to_owned(),
            size: None,
        };
    });
    assert!(matches!(address, Err(ClientError::ChecksumRequired)));
    let unknown_kind = check(|it| it.request_checksum = Some(plain_spec(ChecksumType::Other)));
    assert!(matches!(unknown_kind, Err(ClientError::Checksum(_))));
}

#[test]
fn only_readable_regular_files_are_put() {
    let directory = tempfile::tempdir().unwrap();
    let paths = [
        directory.path().to_path_buf(),
        directory.path().join("none"),
        "/dev/null".into(),
    ];
    for path in paths {
        let error = put(&path).validate(&repository()).unwrap_err();
        assert!(matches!(error, ClientError::Source { .. }), "{error}");
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{error}"
        );
    }
}

#[test]
fn checksums_have_the_length_of_their_type() {
    let value = |hex: &str| hex.parse::<HexBinary>().unwrap();
    let md5 = plain_spec(ChecksumType::Md5);
    let good = value("4A37F973B3C9FEDE0E1FB3F07B65A93B");
    validate::checksum_value(&md5, &good).unwrap();
    assert_eq!(good.to_string(), "4a37f973b3c9fede0e1fb3f07b65a93b");
    let short = validate::checksum_value(&md5, &value("4A37F973B3C9FEDE0E1FB3F07B65A9"));
    let Err(ClientError::ChecksumLength {
        expected: 16,
        actual: 15,
        ..
    }) = short
    else {
        panic!("{short:?}");
    };
    assert!("xyz".parse::<HexBinary>().is_err());
    let keyless = validate::checksum_spec(&plain_spec(ChecksumType::HmacSha1));
    assert!(matches!(
        keyless,
        Err(ClientError::ChecksumSalt {
            problem: "needs a salt",
            ..
        })
    ));
    let salted = ChecksumSpec {
        checksum_salt: Some(value("ab")),
        ..md5
    };
    let salted = validate::checksum_spec(&salted);
    assert!(matches!(
        salted,
        Err(ClientError::ChecksumSalt {
            problem: "has no salt",
            ..
        })
    ));
    let data = pillarbox_messages::ChecksumData {
        checksum_spec: plain_spec(ChecksumType::Sha1),
        checksum_value: good,
        calculation_timestamp: Timestamp::from_millis(0),
    };
    assert!(validate::checksum_data(&data).is_err());
}

#[test]
fn pillars_belong_to_the_collection_that_is_asked() {
    let mut get = GetFile::new("books".into(), "hello.txt".into(), "/tmp/target".into());
    get.validate(&repository()).unwrap();
    get.pillar = Some("west".into());
    let error = get.validate(&repository()).unwrap_err();
    assert!(
        error.to_string().contains("its pillars are: north, south"),
        "{error}"
    );
    let mut ids = GetFileIds::new("books".into());
    ids.pillars = Some(vec!["west".into()]);
    assert!(matches!(
        ids.validate(&repository()),
        Err(ClientError::UnknownPillar { .. })
    ));
    let mut sums = GetChecksums::new("books".into());
    sums.pillars = Some(Vec::new());
    assert!(matches!(
        sums.validate(&repository()),
        Err(ClientError::NoContributors(_))
    ));
}

#[test]
fn a_target_must_be_possible() {
    let directory = tempfile::tempdir().unwrap();
    for target in [
        directory.path().to_path_buf(),
        directory.path().join("none/file"),
        "/dev/null".into(),
    ] {
        let get = GetFile::new("books".into(), "hello.txt".into(), target);
        assert!(matches!(
            get.validate(&repository()),
            Err(ClientError::Target { .. })
        ));
    }
    let here = GetFile::new(
        "books".into(),
        "hello.txt".into(),
        PathBuf::from("hello.txt"),
    );
    here.validate(&repository()).unwrap();
}

#[test]
fn a_change_that_is_known_to_fail() {
    let repository = repository();
    let md5 = || super::stand_in::md5(b"hello");
    let delete = |pillar: &str, existing| DeleteFile {
        existing_checksum: existing,
        ..DeleteFile::new("books".into(), "hello.txt".into(), pillar.into())
    };
    delete("north", Some(md5())).validate(&repository).unwrap();
    let unknown = delete("nosuch", Some(md5())).validate(&repository);
    assert!(matches!(unknown, Err(ClientError::UnknownPillar { .. })));
    let unchecked = delete("north", None).validate(&repository);
    assert!(matches!(
        unchecked,
        Err(ClientError::ExistingChecksumRequired)
    ));
    let mut short = md5();
    short.checksum_value = "abcd".parse().unwrap();
    let short = delete("north", Some(short)).validate(&repository);
    assert!(matches!(short, Err(ClientError::ChecksumLength { .. })));

    let address = Source::Address {
        address: "http://127.0.0.1/x".to_owned(),
        size: None,
    };
    let replace = |existing, checksum| ReplaceFile {
        existing_checksum: existing,
        checksum,
        ..ReplaceFile::new(
            "books".into(),
            "hello.txt".into(),
            "north".into(),
            address.clone(),
        )
    };
    let check = |it: ReplaceFile| it.validate(&repository);
    check(replace(Some(md5()), Some(md5()))).unwrap();
    let unchecked = check(replace(None, Some(md5())));
    assert!(matches!(
        unchecked,
        Err(ClientError::ExistingChecksumRequired)
    ));
    let unchecked = check(replace(Some(md5()), None));
    assert!(matches!(unchecked, Err(ClientError::ChecksumRequired)));
}

#[test]
fn a_question_that_nobody_can_answer() {
    let repository = repository();
    let number = std::num::NonZeroU64::new;
    let mut trails = GetAuditTrails::new("books".into());
    trails.first = number(5);
    trails.last = number(5);
    trails.validate(&repository).unwrap();
    trails.last = number(4);
    let error = trails.validate(&repository).unwrap_err();
    assert_eq!(error.to_string(), "the number 5 is after the number 4");
    trails.last = None;
    trails.min_time = Some(Timestamp::from_millis(1));
    trails.max_time = Some(Timestamp::from_millis(0));
    let error = trails.validate(&repository);
    assert!(matches!(error, Err(ClientError::EmptyRange { .. })));

    let status = |contributors| GetStatus { contributors }.validate(&repository);
    status(None).unwrap();
    status(Some(vec!["south".into()])).unwrap();
    let error = status(Some(vec!["suoth".into()])).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the settings have: north, south"),
        "{error}"
    );
    assert!(matches!(
        status(Some(Vec::new())),
        Err(ClientError::NobodyNamed)
    ));
}
