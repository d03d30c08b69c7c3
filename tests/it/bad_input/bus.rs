//! Operations that fail: no bus, no exchange, no such file. One line, exit code 255, nothing left behind.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpListener,
    process::Output,
    thread,
    time::{Duration, Instant},
};

use super::{Desk, OPERATION, everything_below, one_line};
use crate::support::{
    process,
    site::{Site, free_port},
    stomp::Stomp,
    whole::{NO_FILES, Whole},
};

/// How long a command looks for a bus, and more on a busy machine.
const PATIENCE_WITH_A_BUS: Duration = Duration::from_secs(20);

/// Runs the client commands against this bus, all at once, and asserts how they fail.
fn all_fail(bus: &str, parts: &[&str]) {
    let desk = Desk::new();
    let own = desk.bus.local_addr().expect("bound").to_string();
    desk.write("repository.toml", &desk.repository().replace(&own, bus));
    desk.file("p7.txt", b"pillar test 7\n");
    let before = desk.traces();
    let commands: [(&str, &[&str]); 4] = [
        ("put-file", &["-f", "p7.txt"]),
        ("get-file", &["-i", "other.txt", "-l", "copy.txt"]),
        ("get-file-ids", &[]),
        ("get-checksums", &["-i", "p7.txt"]),
    ];
    thread::scope(|scope| {
        for (subcommand, args) in commands {
            let desk = &desk;
            scope.spawn(move || {
                let mut all = vec![
                    subcommand.into(),
                    "-s".into(),
                    desk.path("settings").into_os_string(),
                ];
                all.extend(["-c".into(), "books".into()]);
                all.extend(args.iter().map(Into::into));
                let start = Instant::now();
                let output = process::finish(desk.command(all));
                let took = start.elapsed();
                assert_waited(&output, parts, &format!("{subcommand} at {bus}"));
                assert!(took < PATIENCE_WITH_A_BUS, "{subcommand}: took {took:?}");
            });
        }
    });
    assert_eq!(desk.traces(), before);
    desk.assert_untouched("without a bus");
}

/// It says soon that it waits, for whom and how long, and then that it was in vain.
#[track_caller]
fn assert_waited(output: &Output, parts: &[&str], what: &str) {
    let said = process::stderr(output);
    let (waiting, rest) = said.split_once('\n').expect("two lines");
    let until = waiting
        .strip_prefix("waiting for the bus until ")
        .expect(what);
    let (until, why) = until.split_once("Z: no bus answers at ").expect(what);
    assert_eq!(
        until.len(),
        "2026-12-01T00:43:36".len(),
        "{what}: {waiting}"
    );
    assert!(why.starts_with(parts[0]), "{what}: {waiting}");
    let rest = Output {
        stderr: rest.into(),
        ..output.clone()
    };
    one_line(&rest, OPERATION, parts, what);
}

#[test]
fn who_waits_for_a_bus_says_so_soon() {
    let desk = Desk::new();
    let own = desk.bus.local_addr().expect("bound").to_string();
    let address = format!("127.0.0.1:{}", free_port());
    let repository = desk.repository().replace(&own, &address);
    desk.write("repository.toml", &repository);
    let mut command = desk.command::<std::ffi::OsString>([]);
    command.args(["get-file-ids", "-c", "books", "-s"]);
    let mut waiting = process::Running::spawn({
        command.arg(desk.path("settings"));
        command
    });
    // Long before it gives up: then it would not live.
    let line = waiting.wait_for_error("waiting for the bus until ");
    assert!(line.contains(&address), "{line}");
    assert!(waiting.lives());
    waiting.interrupt();
    assert_eq!(waiting.wait().code(), Some(130));
}

#[test]
fn a_bus_that_is_not_there() {
    let address = format!("127.0.0.1:{}", free_port());
    all_fail(&address, &[&address, "[bus] url"]);
}

#[test]
fn a_bus_that_says_nothing() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("bound").to_string();
    all_fail(&address, &[&address]);
}

#[test]
fn a_bus_that_is_still_waited_for_when_the_user_has_enough() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let desk = Desk::new();
    let own = desk.bus.local_addr().expect("bound").to_string();
    let address = silent.local_addr().expect("bound").to_string();
    desk.write(
        "repository.toml",
        &desk.repository().replace(&own, &address),
    );
    let settings = desk.path("settings").into_os_string();
    let args = [
        "get-file-ids".into(),
        "-s".into(),
        settings,
        "-c".into(),
        "books".into(),
    ];
    let mut waiting = process::Running::spawn(desk.command::<std::ffi::OsString>(args));
    let _connection = silent.accept().expect("it connects");
    waiting.interrupt();
    assert_eq!(waiting.wait().code(), Some(130));
    // If it took its time, it has said first that it waits.
    let errors = waiting.errors();
    assert_eq!(
        errors.last().map(String::as_str),
        Some("pillarbox: interrupted")
    );
    assert!(waiting.output().is_empty());
}

#[test]
fn something_else_where_the_bus_should_be() {
    let web = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = web.local_addr().expect("bound").to_string();
    thread::spawn(move || {
        for mut connection in web.incoming().map_while(Result::ok) {
            let _ = connection.read(&mut [0; 1024]);
            let _ = connection.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    assert_hopeless(&address, "speaks HTTP, not STOMP");
}

/// What ActiveMQ says first on its own port.
#[test]
fn the_port_of_another_protocol_where_the_bus_should_be() {
    let broker = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = broker.local_addr().expect("bound").to_string();
    thread::spawn(move || {
        for mut connection in broker.incoming().map_while(Result::ok) {
            let mut hello = b"\0\0\x01\x46\x01ActiveMQ\0\0\0\x0c\x01".to_vec();
            hello.resize(4 + 0x146, 0);
            let _ = connection.write_all(&hello);
            let _ = connection.read(&mut [0; 1024]);
        }
    });
    let line = assert_hopeless(&address, "speaks OpenWire, not STOMP");
    assert!(
        line.contains("<transportConnector name=\"stomp\""),
        "{line}"
    );
}

/// A command does not wait for what will never be a bus. A node does: somebody may put it right.
#[track_caller]
fn assert_hopeless(address: &str, speaks: &str) -> String {
    let desk = Desk::new();
    let own = desk.bus.local_addr().expect("bound").to_string();
    desk.write("repository.toml", &desk.repository().replace(&own, address));
    let mut command = desk.command::<std::ffi::OsString>([]);
    command.args(["get-file-ids", "-c", "books", "-s"]);
    command.arg(desk.path("settings"));
    let output = process::finish(command);
    one_line(&output, OPERATION, &[address, speaks, "[bus] url"], speaks);

    let site = Site::new(&["north"]);
    let settings = site.part("north");
    let repository = settings.join("repository.toml");
    let text = fs::read_to_string(&repository).expect("can be read");
    let bus = format!("127.0.0.1:{}", site.bus_port);
    fs::write(&repository, text.replace(&bus, address)).expect("can be written");
    let args = ["node".as_ref(), "-s".as_ref(), settings.as_os_str()];
    let mut north = process::Running::spawn(process::pillarbox(args));
    let line = north.wait_for_error(speaks);
    assert!(line.contains("WARN"), "{line}");
    assert!(north.lives());
    north.terminate();
    north.wait_for_success();
    process::stderr(&output)
}

/// What a failed put or get leaves: nothing.
#[track_caller]
fn assert_nothing_left(whole: &Whole) {
    assert_eq!(whole.archived("north"), NO_FILES);
    assert_eq!(whole.exchanged(), NO_FILES);
}

/// Asserts how a client command failed.
#[track_caller]
fn failed(output: &Output, parts: &[&str]) {
    one_line(output, OPERATION, parts, "the command");
}

#[test]
fn an_exchange_that_is_not_there() {
    let whole = Whole::start(&["north"]);
    let nowhere = format!("127.0.0.1:{}", free_port());
    let node = format!(
        "data = \"var\"\n[client]\nexchange = \"http://{nowhere}/\"\n[exchange]\nhosts = [\"{nowhere}\"]\n"
    );
    whole.site.settings("client", &node);
    whole.site.file("p7.txt", b"pillar test 7\n");
    failed(&whole.site.run("put-file", ["-f", "p7.txt"]), &[]);
    assert_nothing_left(&whole);
}

#[test]
fn a_file_that_nobody_has() {
    let whole = Whole::start(&["north"]);
    let before = everything_below(whole.site.path());
    failed(
        &whole.site.run("get-file", ["-i", "nosuch.txt"]),
        &["FILE_NOT_FOUND_FAILURE"],
    );
    failed(
        &whole
            .site
            .run("get-file", ["-i", "nosuch.txt", "-p", "north"]),
        &["FILE_NOT_FOUND_FAILURE"],
    );
    let after = everything_below(whole.site.path());
    let ours = |path: &&std::path::PathBuf| !path.starts_with(whole.site.part("whole"));
    assert_eq!(
        after.iter().filter(ours).count(),
        before.iter().filter(ours).count(),
        "{after:?}"
    );
    assert_nothing_left(&whole);
}

#[test]
fn a_checksum_that_the_file_has_not() {
    let whole = Whole::start(&["north"]);
    whole.site.file("p7.txt", b"pillar test 7\n");
    let wrong = "d41d8cd98f00b204e9800998ecf8427e";
    // Of a file that lies on the exchange the pillar is the first to know.
    let address = whole.offer("p7.txt", b"pillar test 7\n");
    let put = ["-u", &address, "-i", "p7.txt", "-C", wrong];
    let output = whole.site.run("put-file", put);
    let text = process::stderr(&output);
    assert!(!output.status.success(), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("NEW_FILE_CHECKSUM_FAILURE"), "{text}");
    assert_eq!(process::stdout(&output), "");
    assert_eq!(whole.archived("north"), NO_FILES);
    // And the id is still free.
    process::succeed(&whole.site.run("put-file", ["-f", "p7.txt"]));
}

#[test]
fn another_file_under_an_id_that_is_taken() {
    let whole = Whole::start(&["north"]);
    let first = whole.site.file("first", b"pillar test 7\n");
    let other = whole.site.file("other", b"pillar test 8\n");
    let put = |file: &std::path::Path| {
        whole.site.run(
            "put-file",
            [
                "-i".as_ref(),
                "p7.txt".as_ref(),
                "-f".as_ref(),
                file.as_os_str(),
            ],
        )
    };
    process::succeed(&put(&first));
    failed(&put(&other), &[]);
    assert_eq!(whole.exchanged(), NO_FILES);
    let stored = whole.archived("north");
    assert_eq!(stored.len(), 1, "{stored:?}");
    assert_eq!(fs::read(&stored[0]).expect("is there"), b"pillar test 7\n");
}

#[test]
fn a_client_id_that_is_in_use() {
    let site = Site::new(&["north"]);
    let _hub = site.start("hub");
    site.file("p7.txt", b"pillar test 7\n");
    let _first = Stomp::connect(site.bus_port, Some("ingest-1"));
    let start = Instant::now();
    let output = site.run("put-file", ["-f", "p7.txt", "--client-id", "ingest-1"]);
    failed(&output, &["ingest-1", "in use", "--client-id"]);
    assert!(start.elapsed() < PATIENCE_WITH_A_BUS);
}

/// It was there when it was looked at, before anything was connected to.
#[test]
fn a_file_that_goes_while_the_bus_is_waited_for() {
    let site = Site::new(&["north"]);
    let file = site.file("p7.txt", b"pillar test 7\n");
    let mut client = site.start_client("put-file", ["-f", "p7.txt"]);
    client.wait_for_error("waiting for the bus until");
    fs::remove_file(file).expect("is there");
    let _hub = site.start("hub");
    assert_eq!(client.wait().code(), Some(255));
    let said = client.errors().last().expect("a line");
    assert!(
        said.contains("'p7.txt' can't be put: No such file"),
        "{said}"
    );
}

#[test]
fn pillars_that_do_not_answer() {
    let site = Site::with_timeouts(&["north"], "1s", "2s");
    let _hub = site.start("hub");
    site.file("p7.txt", b"pillar test 7\n");
    failed(&site.run("put-file", ["-f", "p7.txt"]), &["north"]);
    failed(
        &site.run("get-file", ["-i", "p7.txt", "-l", "copy.txt"]),
        &[],
    );
    assert!(!site.path().join("copy.txt").exists());
    assert_eq!(site.offered(), NO_FILES);
}
