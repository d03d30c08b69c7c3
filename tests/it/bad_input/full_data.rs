//! A pillar whose index has no room: a human is called once, and the status says so until a write works again.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    OPERATION,
    full_disk::{MIB, can_mount, fill, with_small_disk},
    one_line,
};
use crate::support::{
    noise,
    process::{self, Running},
    site::Site,
    until,
};

/// A pillar in a process of its own, at the alarm level that is the default, with a small disk at `at` in its settings.
struct Small {
    site: Site,
    disk: PathBuf,
    _parts: Vec<Running>,
    _pillar: Running,
}

fn start(pillar: &str, table: &str, at: &str) -> Small {
    let site = Site::new(&[pillar]);
    site.settings(
        pillar,
        &format!(
            "data = \"var\"\n{table}\n[exchange]\nhosts = [\"127.0.0.1:{}\"]\n",
            site.exchange_port
        ),
    );
    let parts = ["hub", "alarms"].map(|part| site.start(part)).into();
    let settings = site.part(pillar);
    let disk = settings.join(at);
    fs::create_dir_all(&disk).expect("can be made");
    let program = process::pillarbox::<&str>([]).get_program().to_owned();
    let args = ["node".as_ref(), "-s".as_ref(), settings.as_os_str()];
    let mut node = Running::spawn(with_small_disk(&disk, "6m", &program, &args));
    node.wait_for("ready");
    let seen = PathBuf::from(format!("/proc/{}/root", node.id()));
    let disk = seen.join(disk.strip_prefix("/").expect("absolute"));
    Small {
        site,
        disk,
        _parts: parts,
        _pillar: node,
    }
}

impl Small {
    fn put(&self, name: &str) -> std::process::Output {
        self.site.file(name, name.as_bytes());
        self.site.run("put-file", ["-f", name])
    }

    /// Code and text of the pillar's status.
    fn status(&self) -> (String, String) {
        let told = process::succeed(&self.site.without_collection("get-status", &["--json"]));
        let told: Value = serde_json::from_str(told.trim()).expect("one line of JSON");
        let text = |name: &str| told[name].as_str().expect(name).to_owned();
        (text("code"), text("text"))
    }

    #[track_caller]
    fn assert_status(&self, code: &str, words: &str) {
        let (told, text) = self.status();
        assert_eq!(told, code, "{text}");
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }

    fn alarms(&self) -> Vec<Value> {
        let list = self.site.alarms_list(&["--json"]);
        let alarm = |line| serde_json::from_str(line).expect("JSON");
        list.lines().map(alarm).collect()
    }

    /// The index's disk is full, and then it is not.
    fn fills_up_and_is_emptied(&self) {
        process::succeed(&self.put("before.txt"));
        self.assert_status("WARNING", "WARNING data directory ");
        assert_eq!(self.alarms(), [] as [Value; 0]);

        let filler = self.disk.join("filler");
        fill(&filler);
        for name in ["one.txt", "two.txt", "three.txt"] {
            one_line(&self.put(name), OPERATION, &["FAILURE"], name);
        }
        self.assert_status("ERROR", "ERROR index: not writable: ");
        self.assert_status("ERROR", ": only 0 bytes free");
        until("the alarm is listed", || !self.alarms().is_empty());
        let alarms = self.alarms();
        let [alarm] = &alarms[..] else {
            panic!("{alarms:?}")
        };
        assert_eq!(
            (&alarm["code"], &alarm["count"]),
            (&"COMPONENT_FAILURE".into(), &1.into())
        );
        let text = alarm["text"].as_str().expect("a text");
        assert!(
            text.contains("the index can't be written") && text.contains("0 bytes free"),
            "{text}"
        );

        fs::remove_file(&filler).expect("can be removed");
        let (code, text) = self.status();
        assert!(code == "WARNING" && !text.contains("ERROR"), "{text}");
        process::succeed(&self.put("one.txt"));
        // The next time is told anew.
        fill(&filler);
        one_line(&self.put("two.txt"), OPERATION, &["FAILURE"], "two.txt");
        until("the second alarm is counted", || {
            let counts = self
                .alarms()
                .into_iter()
                .filter_map(|it| it["count"].as_u64());
            counts.sum::<u64>() == 2
        });
        self.assert_status("ERROR", "ERROR index: not writable: ");
    }
}

#[test]
fn an_index_without_room() {
    if !can_mount() {
        return;
    }
    let small = start("north", &file_pillar(), "var");
    small.fills_up_and_is_emptied();
    assert!(!Path::new(&small.site.archive("north").join("fileDir/two.txt")).exists());
}

#[test]
fn an_index_of_checksums_without_room() {
    if !can_mount() {
        return;
    }
    let sums = "[[pillars]]\nid = \"sums\"\ntype = \"CHECKSUM\"";
    start("sums", sums, "var").fills_up_and_is_emptied();
}

#[test]
fn what_the_archive_had_no_room_for_is_a_warning() {
    if !can_mount() {
        return;
    }
    let small = start("north", &file_pillar(), "archive");
    small.assert_status("OK", " bytes free, 1048576 must be left;");
    // All of the disk.
    small.site.file("large.bin", &noise(1, 6 * MIB));
    let put = small.site.run("put-file", ["-f", "large.bin"]);
    one_line(
        &put,
        OPERATION,
        &["not enough space"],
        "a put on a small disk",
    );
    small.assert_status(
        "WARNING",
        "WARNING there was no room for a file of 6291456 bytes at ",
    );
    // Others are welcome still, and nobody has to come at once.
    process::succeed(&small.put("small.txt"));
    assert_eq!(small.alarms(), [] as [Value; 0]);
}

fn file_pillar() -> String {
    "[[pillars]]\nid = \"north\"\ntype = \"FILE\"\ndirectories = [\"archive\"]\nminimum_size_left = \"1 MiB\"".to_owned()
}
