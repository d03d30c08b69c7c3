//! A disk that is full, or fills up in the middle of a file: a failed put, nothing stored, and a pillar that goes
//! on when there is space again.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::{OPERATION, one_line};
use crate::support::{
    md5, noise,
    process::{self, Running},
    raw_peer::{RawPeer, put},
    site::files_below,
    slow_exchange::SlowExchange,
    whole::{NO_FILES, Whole},
};

pub(super) const MIB: usize = 1 << 20;

/// A command that runs another with a small file system of its own on a directory; gone when it ends.
pub(super) fn with_small_disk(
    directory: &Path,
    size: &str,
    program: &OsStr,
    args: &[&OsStr],
) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c"]);
    command
        .arg("dir=$1 size=$2; shift 2; mount -t tmpfs -o size=$size none \"$dir\" && exec \"$@\"");
    command
        .arg("sh")
        .arg(directory)
        .arg(size)
        .arg(program)
        .args(args);
    command.stdin(Stdio::null()).env_remove("PILLARBOX_LOG");
    command
}

/// Whether this user may mount anything; says so if not.
pub(super) fn can_mount() -> bool {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let probe = with_small_disk(directory.path(), "1m", "true".as_ref(), &[]).output();
    let able = probe.is_ok_and(|output| output.status.success());
    if !able {
        eprintln!("SKIPPED: a full disk needs the right to mount a small one");
    }
    able
}

/// A repository of one pillar whose process has a small disk at this place, and may fetch from these hosts too.
fn start(at: &str, hosts: &[String]) -> (Whole, PathBuf) {
    let mut whole = Whole::start_with(&["north"], hosts);
    whole.in_trouble = true;
    whole.node.kill();
    let settings = whole.site.part("whole");
    let disk = settings.join(at);
    fs::create_dir_all(&disk).expect("can be made");
    let program = process::pillarbox::<&str>([]).get_program().to_owned();
    let args = ["node".as_ref(), "-s".as_ref(), settings.as_os_str()];
    whole.node = Running::spawn(with_small_disk(&disk, "6m", &program, &args));
    whole.node.wait_for("ready");
    let seen = PathBuf::from(format!("/proc/{}/root", whole.node.id()));
    let disk = seen.join(disk.strip_prefix("/").expect("absolute"));
    (whole, disk)
}

/// Asserts that a put of this file fails in one line.
#[track_caller]
fn put_fails(whole: &Whole, name: &str) {
    let output = whole.site.run("put-file", ["-f", name]);
    one_line(&output, OPERATION, &[], "a put on a full disk");
}

#[test]
fn a_file_that_does_not_fit_into_the_archive() {
    if !can_mount() {
        return;
    }
    let (whole, disk) = start("archive/north", &[]);
    whole.site.file("large.bin", &noise(1, 12 * MIB));
    put_fails(&whole, "large.bin");
    assert_eq!(files_below(&disk), NO_FILES);
    assert_eq!(whole.exchanged(), NO_FILES);
    // One that fits is still welcome.
    whole.assert_well();
    assert_eq!(files_below(&disk).len(), 1);
}

#[test]
fn an_archive_that_fills_up_in_the_middle_of_a_file() {
    if !can_mount() {
        return;
    }
    let content = noise(2, 3 * MIB);
    let slow = SlowExchange::start(content.clone(), &[MIB]);
    let (whole, disk) = start("archive/north", &[slow.host()]);
    let mut peer = RawPeer::connect(whole.site.bus_port, "peer");
    let request = put("slow.bin", &slow.file_address(), None, &md5(&content));
    let xml = peer.request("PutFileRequest", "c-full", "north", &request);
    peer.send_to("north", "PutFileRequest", xml);
    let stalled = slow.stalled();
    let filler = disk.join("filler");
    fill(&filler);
    stalled.deliver_in_vain();
    let answer = peer.end_of("c-full");
    assert_eq!(answer.code(), "FAILURE", "{}", answer.xml);
    assert_eq!(files_below(&disk), std::slice::from_ref(&filler));
    // A new request, once there is space.
    fs::remove_file(&filler).expect("can be removed");
    let answer = peer.ask("PutFileRequest", "c-space", "north", &request);
    assert_eq!(answer.code(), "OPERATION_COMPLETED", "{}", answer.xml);
    let stored = files_below(&disk);
    assert_eq!(stored.len(), 1, "{stored:?}");
    assert_eq!(fs::read(&stored[0]).expect("is there"), content);
}

#[test]
fn an_exchange_without_space() {
    if !can_mount() {
        return;
    }
    let (whole, disk) = start("var/exchange", &[]);
    whole.site.file("large.bin", &noise(3, 12 * MIB));
    put_fails(&whole, "large.bin");
    assert_eq!(files_below(&disk), NO_FILES);
    assert_eq!(whole.archived("north"), NO_FILES);
    whole.assert_well();
}

/// Writes until nothing more fits.
pub(super) fn fill(path: &Path) {
    use std::io::Write as _;
    let mut file = fs::File::create(path).expect("can be made");
    while file.write_all(&[0; 4096]).is_ok() {}
}
