//! What is wrong on this machine is told before anybody is connected to, and nothing is made by a start that fails.

use std::fs;

use super::{OPERATION, USAGE, everything_below, starting::cannot_start};
use crate::support::{process, site::Site};

fn pillar(site: &Site, directories: &str) {
    let table = format!(
        "data = \"var\"\n[[pillars]]\nid = \"north\"\ntype = \"FILE\"\ndirectories = [{directories}]\nminimum_size_left = \"1 MiB\"\n[exchange]\nhosts = [\"127.0.0.1:{}\"]\n",
        site.exchange_port
    );
    site.settings("north", &table);
}

/// There is no bus: whoever asks for it first waits for ever.
#[test]
fn archive_directories_that_cannot_be_used() {
    let site = Site::new(&["north"]);
    site.file("plain", b"no directory");
    for (directories, part) in [
        ("\"../plain\"", "Not a directory"),
        ("\"../plain/below\"", "Not a directory"),
        ("\"one\", \"../north/one\"", "listed twice"),
        ("\"two\", \"../plain\"", "plain/books/tmpDir"),
    ] {
        pillar(&site, directories);
        cannot_start(&site, "north", USAGE, &["archive directory", part]);
    }
    for name in ["one", "two"] {
        assert!(!site.part("north").join(name).exists(), "{name} was made");
    }
}

#[test]
fn an_index_that_does_not_fit_the_settings() {
    let site = Site::new(&["north"]);
    pillar(&site, "\"archive\"");
    let hub = site.start("hub");
    let north = site.start("north");
    site.file("kept.txt", b"kept");
    let put = site.run("put-file", ["-f", "kept.txt"]);
    process::succeed(&put);
    drop((north, hub));

    let shared = site.part("north").join("repository.toml");
    let right = fs::read_to_string(&shared).expect("is there");
    let wrong = right.replace("checksum = \"MD5\"", "checksum = \"SHA256\"");
    fs::write(&shared, wrong).expect("can be written");
    cannot_start(&site, "north", USAGE, &["MD5", "SHA256"]);
    fs::write(&shared, &right).expect("can be written");

    pillar(&site, "\"elsewhere\"");
    cannot_start(&site, "north", USAGE, &["archive", "which is not in"]);
    assert!(!site.part("north").join("elsewhere").exists());

    // An index that was lost.
    pillar(&site, "\"archive\"");
    fs::remove_dir_all(site.part("north").join("var/pillars")).expect("can be removed");
    cannot_start(&site, "north", USAGE, &["first_audit_number"]);
    assert!(
        !site.part("north").join("var/pillars").exists(),
        "an index was made"
    );
}

#[test]
fn an_alarm_database_that_is_not_ours() {
    let site = Site::new(&["north"]);
    let database = site.part("alarms").join("var/alarms/alarms.sqlite");
    fs::create_dir_all(database.parent().expect("a directory")).expect("can be made");
    fs::write(site.part("alarms").join("var/format"), "pillarbox data 1\n")
        .expect("can be written");
    fs::write(&database, "no store of ours\n".repeat(1000)).expect("can be written");
    cannot_start(&site, "alarms", USAGE, &["alarms.sqlite"]);
}

/// Only the bus knows that there is no such collection.
#[test]
fn a_collection_whose_id_is_misspelt() {
    let site = Site::new(&["north"]);
    let _hub = site.start("hub");
    for part in ["north", "alarms"] {
        let shared = site.part(part).join("repository.toml");
        let right = fs::read_to_string(&shared).expect("is there");
        let wrong = right.replace("id = \"books\"", "id = \"boks\"");
        fs::write(&shared, wrong).expect("can be written");
        cannot_start(&site, part, OPERATION, &["there is no topic://boks"]);
        let made = everything_below(&site.part(part));
        let stray = made.iter().find(|it| {
            let name = it
                .file_name()
                .and_then(|it| it.to_str())
                .unwrap_or_default();
            !["node.toml", "repository.toml", "var", "format", "lock"].contains(&name)
        });
        assert_eq!(stray, None, "{made:?}");
    }
}
