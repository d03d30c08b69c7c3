//! What `replace-file --dry-run` says and what `replace-file` does: the same, whatever a pillar has.

mod played;

use std::{fs, os::unix::fs::MetadataExt as _, path::PathBuf};

use super::json::objects;
use crate::support::{
    md5,
    process::{self, fail_with_one_line, stderr, stdout, succeed},
    site::Site,
    whole::offer,
};

const GOOD: &[u8] = b"as it was put\n";
const ROTTEN: &[u8] = b"as it wAs put\n";
const SHORT: &[u8] = b"as it was";
const BETTER: &[u8] = b"better than it was put\n";
const OTHER: &[u8] = b"nowhere\n";

/// What comes of a replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// The file is replaced.
    Replaced,
    /// Nothing is left to do.
    Needless,
    /// The pillar refuses, with this code.
    Refused(String),
}

fn not_meant() -> End {
    End::Refused("EXISTING_FILE_CHECKSUM_FAILURE".to_owned())
}

/// Two pillars that have the same.
struct Twins {
    site: Site,
    _parts: Vec<process::Running>,
}

impl Twins {
    fn start() -> Self {
        let site = Site::new(&["north", "south"]);
        let parts = ["hub", "north", "south"].map(|part| site.start(part));
        Self {
            site,
            _parts: parts.into(),
        }
    }

    fn place(&self, pillar: &str, id: &str) -> PathBuf {
        self.site.archive(pillar).join("fileDir").join(id)
    }

    /// Both store a file, and then have these bytes in its place, which they may have noticed.
    fn have(&self, id: &str, stands: &[u8], noticed: bool) {
        self.site.file("put", GOOD);
        succeed(&self.site.run("put-file", ["-f", "put", "-i", id]));
        if stands != GOOD {
            for pillar in ["north", "south"] {
                fs::write(self.place(pillar, id), stands).unwrap();
            }
        }
        if noticed {
            succeed(&self.site.run("get-checksums", ["-i", id, "-R", "SHA1"]));
        }
    }

    /// The end of the command, which may be a dry run.
    fn end(&self, pillar: &str, id: &str, args: &[&str]) -> End {
        let mut all = vec!["-i", id, "-p", pillar, "--json"];
        all.extend(args);
        let output = self.site.run("replace-file", all);
        let told = objects(&stdout(&output));
        let [told] = &told[..] else {
            panic!("{told:?}: {}", stderr(&output))
        };
        let code = if told["failed"] == true { 255 } else { 0 };
        assert_eq!(output.status.code(), Some(code), "{told}");
        match (&told["code"], &told["would"], &told["already_there"]) {
            (code, _, _) if code.is_string() => End::Refused(code.as_str().unwrap().to_owned()),
            (_, would, _) if would == "replace" => End::Replaced,
            (_, would, _) if would == "nothing" => End::Needless,
            (_, _, already) if already == false => End::Replaced,
            (_, _, already) if already == true => End::Needless,
            _ => panic!("{told}"),
        }
    }

    /// What is done is what the dry run has said, and would have been done without it.
    #[track_caller]
    fn assert_end(&self, id: &str, args: &[&str], new: &[u8], end: &End) {
        let before = fs::read(self.place("north", id)).unwrap();
        let dry = [args, &["--dry-run"]].concat();
        let inodes = ["north", "south"].map(|pillar| self.inode(pillar, id));
        assert_eq!(self.end("north", id, &dry), *end, "dry run of {id}");
        assert_eq!(fs::read(self.place("north", id)).unwrap(), before);
        for (pillar, inode) in ["north", "south"].into_iter().zip(inodes) {
            assert_eq!(self.end(pillar, id, args), *end, "{id} at {pillar}");
            let now = fs::read(self.place(pillar, id)).unwrap();
            let rewritten = self.inode(pillar, id) != inode;
            assert_eq!(rewritten, *end == End::Replaced, "{id} at {pillar}");
            match end {
                End::Replaced => assert_eq!(now, new),
                End::Needless | End::Refused(_) => assert_eq!(now, before),
            }
        }
        if *end == End::Replaced {
            // And from now on it is there.
            assert_eq!(self.end("north", id, &dry), End::Needless, "{id} again");
            assert_eq!(self.end("north", id, args), End::Needless, "{id} again");
        }
    }

    fn inode(&self, pillar: &str, id: &str) -> u64 {
        fs::metadata(self.place(pillar, id)).unwrap().ino()
    }
}

#[test]
fn a_dry_run_says_what_is_done_whatever_the_pillar_has() {
    let twins = Twins::start();
    let (replaced, needless, refused) = (&End::Replaced, &End::Needless, &not_meant());
    // What stands there, whether that has been noticed, what the client means, what it gives, and what comes of it.
    type Row<'a> = (&'a [u8], bool, &'a [u8], &'a [u8], &'a End);
    let rows: [Row<'_>; 21] = [
        (GOOD, false, GOOD, GOOD, needless),
        (GOOD, false, OTHER, GOOD, needless),
        (GOOD, false, GOOD, BETTER, replaced),
        (GOOD, false, OTHER, BETTER, refused),
        // The pillar's index has the new file's checksum, its bytes have not.
        (ROTTEN, false, GOOD, GOOD, refused),
        (ROTTEN, false, ROTTEN, GOOD, replaced),
        (ROTTEN, false, OTHER, GOOD, refused),
        (SHORT, false, GOOD, GOOD, refused),
        (SHORT, false, SHORT, GOOD, replaced),
        // Another file takes the place of what the index says is there, or of what is there.
        (ROTTEN, false, GOOD, BETTER, replaced),
        (ROTTEN, false, ROTTEN, BETTER, replaced),
        (ROTTEN, false, OTHER, BETTER, refused),
        (SHORT, false, SHORT, BETTER, replaced),
        (ROTTEN, false, OTHER, ROTTEN, needless),
        // The pillar knows what has become of its file.
        (ROTTEN, true, GOOD, GOOD, refused),
        (ROTTEN, true, ROTTEN, GOOD, replaced),
        (ROTTEN, true, OTHER, GOOD, refused),
        (ROTTEN, true, GOOD, BETTER, refused),
        (ROTTEN, true, ROTTEN, BETTER, replaced),
        (ROTTEN, true, OTHER, ROTTEN, needless),
        (SHORT, true, SHORT, GOOD, replaced),
    ];
    for (number, (stands, noticed, meant, new, end)) in rows.into_iter().enumerate() {
        let id = format!("row-{number}");
        twins.have(&id, stands, noticed);
        twins.site.file("new", new);
        twins.assert_end(&id, &["-f", "new", "-C", &md5(meant)], new, end);
    }
    assert_eq!(twins.site.offered(), Vec::<PathBuf>::new());
}

/// By `-u` the pillars fetch the new file, of which the client knows nothing but `-r`.
#[test]
fn a_dry_run_says_what_is_done_with_a_file_on_an_exchange() {
    let twins = Twins::start();
    let (replaced, needless, refused) = (&End::Replaced, &End::Needless, &not_meant());
    let rows: [(&[u8], &[u8], &End); 4] = [
        (GOOD, OTHER, needless),
        (ROTTEN, GOOD, refused),
        (ROTTEN, ROTTEN, replaced),
        (ROTTEN, OTHER, refused),
    ];
    let address = offer(twins.site.exchange_port, "new", GOOD);
    for (number, (stands, meant, end)) in rows.into_iter().enumerate() {
        let id = format!("row-{number}");
        twins.have(&id, stands, false);
        let (meant, new) = (md5(meant), md5(GOOD));
        let args = ["-u", &address, "-C", &meant, "-r", &new];
        twins.assert_end(&id, &args, GOOD, end);
    }
}

/// The pillar finds out when it has fetched the file, and the dry run by fetching it, too. A pillar that has what `-r`
/// says, or not the old file, fetches nothing.
#[test]
fn a_file_on_an_exchange_that_is_not_what_it_is_said_to_be_is_refused() {
    let twins = Twins::start();
    let address = offer(twins.site.exchange_port, "new", BETTER);
    let wrong = End::Refused("NEW_FILE_CHECKSUM_FAILURE".to_owned());
    for (number, (meant, said, end)) in [
        (GOOD, OTHER, &wrong),
        (OTHER, OTHER, &not_meant()),
        (OTHER, GOOD, &End::Needless),
        (GOOD, BETTER, &End::Replaced),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("row-{number}");
        twins.have(&id, GOOD, false);
        let (meant, said) = (md5(meant), md5(said));
        let args = ["-u", &address, "-C", &meant, "-r", &said];
        twins.assert_end(&id, &args, BETTER, end);
    }
}

/// By `-r` it is known beforehand that something is wrong: no pillar is asked, dry run or not.
#[test]
fn a_file_that_is_not_what_it_is_said_to_be_is_no_new_file() {
    let twins = Twins::start();
    twins.have("scan.tif", GOOD, false);
    twins.site.file("new", BETTER);
    for (meant, said) in [(GOOD, OTHER), (OTHER, GOOD)] {
        let (meant, said) = (md5(meant), md5(said));
        let args = [
            "-f", "new", "-i", "scan.tif", "-p", "north", "-C", &meant, "-r", &said,
        ];
        for dry in [&["--dry-run"][..], &[]] {
            let args = args.iter().chain(dry);
            let line = fail_with_one_line(&twins.site.run("replace-file", args), 1);
            assert!(line.contains(&md5(BETTER)), "{line}");
        }
    }
    assert_eq!(fs::read(twins.place("north", "scan.tif")).unwrap(), GOOD);
    // And a pillar may be told what is right.
    let (meant, said) = (md5(GOOD), md5(BETTER));
    let args = ["-f", "new", "-C", &meant, "-r", &said];
    twins.assert_end("scan.tif", &args, BETTER, &End::Replaced);
}

#[test]
fn what_was_there_already_is_not_said_to_be_replaced() {
    let twins = Twins::start();
    twins.have("scan.tif", GOOD, false);
    twins.site.file("new", GOOD);
    let run = |meant: &[u8], more: &[&str]| {
        let meant = md5(meant);
        let mut args = vec!["-f", "new", "-i", "scan.tif", "-p", "north", "-C", &meant];
        args.extend(more);
        twins.site.run("replace-file", args)
    };
    let has = "north had the new scan.tif already\n";
    for meant in [GOOD, OTHER] {
        let told = run(meant, &[]);
        assert_eq!((succeed(&told).as_str(), &*stderr(&told)), ("", has));
        let told = run(meant, &["-R", "MD5"]);
        let sum = md5(GOOD);
        let both = format!(
            "PillarId results\nnorth : \tChecksum for replaced file: {sum}\tChecksum for new file: {sum}\t\n"
        );
        assert_eq!((succeed(&told), stderr(&told)), (both, has.to_owned()));
    }
    // The bytes of north are looked at, and of these people are told, not what the index says.
    fs::write(twins.place("north", "scan.tif"), ROTTEN).unwrap();
    let line = fail_with_one_line(&run(GOOD, &["--dry-run"]), 255);
    let (rotten, good) = (md5(ROTTEN), md5(GOOD));
    assert_eq!(
        line,
        format!(
            "pillarbox: north would refuse: EXISTING_FILE_CHECKSUM_FAILURE, its scan.tif has the MD5 {rotten}, not \
             {good}; look at the file there before you go on"
        )
    );
    let line = fail_with_one_line(&run(GOOD, &[]), 255);
    assert!(line.contains("EXISTING_FILE_CHECKSUM_FAILURE"), "{line}");
    let told = run(ROTTEN, &["--dry-run"]);
    succeed(&told);
    let would = format!("would replace scan.tif at north, MD5 {rotten}; nothing was changed\n");
    assert_eq!(stderr(&told), would);
    let told = run(ROTTEN, &["--json"]);
    let expected = serde_json::json!({"file_id": "scan.tif", "pillar": "north", "already_there": false,
        "checksum_type": null, "replaced_checksum": null, "checksum": null});
    assert_eq!(objects(&succeed(&told)), [expected]);
    assert_eq!(stderr(&told), "scan.tif replaced at north\n");
}
