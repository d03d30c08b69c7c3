//! Settings that are missing, misspelled, or want what this version can't give.

use std::fs;

use super::{Desk, USAGE, one_line};
use crate::support::process;

#[test]
fn missing_settings() {
    let desk = Desk::new();
    let list = |settings: &str, parts: &[&str]| {
        desk.refuses_exactly(["get-file-ids", "-c", "books", "-s", settings], parts);
        desk.refuses_exactly(["node", "-s", settings], parts);
        desk.refuses_exactly(["alarms", "list", "-s", settings], parts);
    };
    list("nosuch", &["nosuch"]);
    desk.file("plain", b"no directory");
    list("plain", &["plain"]);
    fs::create_dir(desk.path("work").join("empty")).expect("can be made");
    list("empty", &["empty", "repository.toml"]);
    list("", &[]);
}

#[test]
fn no_role_and_no_alarm_service() {
    let desk = Desk::new();
    let settings = desk.path("settings");
    let settings = settings.to_str().expect("text");
    desk.refuses_exactly(["node", "-s", settings], &["[[pillars]]", "[alarms]"]);
    desk.refuses_exactly(["alarms", "list", "-s", settings], &["[alarms]"]);
}

#[test]
fn typos_are_named_with_file_line_and_what_was_meant() {
    let desk = Desk::new();
    let good = desk.repository();
    desk.write(
        "repository.toml",
        &good.replace("checksum = ", "cheksum = "),
    );
    desk.refuses(
        "get-file-ids",
        &[],
        &["repository.toml:3:", "cheksum", "`checksum`"],
    );
    desk.write("repository.toml", &good.replace("[timeouts]", "[timeuots]"));
    desk.refuses(
        "get-file-ids",
        &[],
        &["repository.toml:7:", "timeuots", "`timeouts`"],
    );
    desk.write(
        "repository.toml",
        &good.replace("\"20s\"", "\"20 parsecs\""),
    );
    desk.refuses("get-file-ids", &[], &["repository.toml:8:", "20 parsecs"]);
    desk.write("repository.toml", &good.replace("\"MD5\"", "\"MD6\""));
    desk.refuses("get-file-ids", &[], &["repository.toml:3:", "MD6"]);
    desk.write("repository.toml", &good.replace("\"MD5\"", "\"HMAC_MD5\""));
    desk.refuses("get-file-ids", &[], &["repository.toml:3:", "HMAC_MD5"]);
    desk.write("repository.toml", &good.replace("stomp://", "stmop://"));
    desk.refuses("get-file-ids", &[], &["repository.toml:6:", "stmop"]);
    desk.write("repository.toml", &good.replace("\"Test\"", "\"Test"));
    desk.refuses("get-file-ids", &[], &["repository.toml:2:"]);
    desk.write(
        "repository.toml",
        &good.replace("\"north\", \"south\"", "7"),
    );
    desk.refuses("get-file-ids", &[], &["repository.toml:12:"]);
    desk.write("repository.toml", "");
    let node = desk.node();
    let text = one_line_each(&desk, 1);
    assert!(text.contains("repository.toml"), "{text}");
    desk.write("repository.toml", &good);
    desk.write("node.toml", &node.replace("[client]", "[cleint]"));
    desk.refuses("get-file-ids", &[], &["node.toml:2:", "cleint", "client"]);
    desk.write("node.toml", &node.replace("http://", "gopher://"));
    desk.refuses("get-file-ids", &[], &["node.toml:3:", "gopher"]);
}

/// Runs a command whose settings are wrong, in at least this many places.
fn one_line_each(desk: &Desk, at_least: usize) -> String {
    let settings = desk.path("settings");
    let args = [
        "get-file-ids".into(),
        "-c".into(),
        "books".into(),
        "-s".into(),
        settings.into_os_string(),
    ];
    let output = process::finish(desk.command(args));
    let text = process::stderr(&output);
    assert_eq!(output.status.code(), Some(USAGE), "{text}");
    assert_eq!(process::stdout(&output), "");
    assert!(text.lines().count() >= at_least, "{text}");
    desk.assert_untouched("settings that are wrong");
    text
}

#[test]
fn several_mistakes_are_all_told_at_once() {
    let desk = Desk::new();
    let wrong = desk
        .repository()
        .replace("checksum = ", "cheksum = ")
        .replace("[bus]", "[buss]");
    desk.write("repository.toml", &wrong);
    let text = one_line_each(&desk, 2);
    let told = |place: &str| text.lines().filter(|line| line.contains(place)).count();
    assert_eq!(told("repository.toml:3:"), 1, "{text}");
    assert_eq!(told("repository.toml:5:"), 1, "{text}");
}

#[test]
fn what_this_version_cannot_honor_is_refused() {
    let desk = Desk::new();
    let good = desk.repository();
    for requirement in ["message-authentication", "operation-authorization"] {
        let wanted = format!("\"checksum-for-new-file\", \"{requirement}\"");
        desk.write(
            "repository.toml",
            &good.replace("\"checksum-for-new-file\"", &wanted),
        );
        desk.refuses("get-file-ids", &[], &["repository.toml:4:", requirement]);
        let settings = desk.path("settings");
        let args = ["node".into(), "-s".into(), settings.into_os_string()];
        desk.refuses_exactly(args, &["repository.toml:4:", requirement]);
    }
    desk.write("repository.toml", &good.replace("stomp://", "stomp+ssl://"));
    desk.refuses("get-file-ids", &[], &["stomp+ssl"]);
}

#[test]
fn pillars_that_the_repository_does_not_know() {
    let desk = Desk::new();
    let pillar = "[[pillars]]\nid = \"nroth\"\ntype = \"FILE\"\ndirectories = [\"archive\"]\n";
    desk.write("node.toml", &format!("data = \"var\"\n{pillar}"));
    let settings = desk.path("settings").into_os_string();
    desk.refuses_exactly(["node".into(), "-s".into(), settings], &["nroth"]);
}

#[test]
fn environment_variables_are_held_to_the_same() {
    let desk = Desk::new();
    let settings = desk.path("settings").into_os_string();
    let args = [
        "get-file-ids".into(),
        "-c".into(),
        "books".into(),
        "-s".into(),
        settings,
    ];
    let mut command = desk.command(args);
    command.env("PILLARBOX__DTA", "elsewhere");
    let output = process::finish(command);
    one_line(&output, USAGE, &["PILLARBOX__DTA"], "an unknown variable");
    desk.assert_untouched("an unknown variable");
}

#[test]
fn no_exchange_to_move_files_over() {
    let desk = Desk::new();
    desk.write("node.toml", "data = \"var\"\n");
    desk.file("p7.txt", b"pillar test 7\n");
    let parts = ["no file exchange", "[client] exchange"];
    desk.refuses("put-file", &["-f", "p7.txt"], &parts);
    desk.refuses("get-file", &["-i", "p7.txt", "-l", "copy.txt"], &parts);
}
