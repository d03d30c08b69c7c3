//! Brokers that ask who comes.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    process::Command,
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use crate::support::{
    process::{self, Running},
    site::{Site, files_below},
};

const OPERATION: i32 = 255;
/// As ActiveMQ says it.
const REFUSAL: &str = "ERROR\nmessage:User name [kim] or password is invalid.\n\n\
                       User name [kim] or password is invalid.\0";
const PASSCODE: &str = "open:sesame 271828";

/// A broker that lets nobody in; gives what each has said.
fn broker_that_refuses(port: u16) -> Receiver<String> {
    let listener = TcpListener::bind(("127.0.0.1", port)).expect("the port is free");
    let (said, heard) = mpsc::channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut connect = Vec::new();
            let _ = BufReader::new(&stream).read_until(0, &mut connect);
            let _ = said.send(String::from_utf8_lossy(&connect).into_owned());
            let _ = stream.write_all(REFUSAL.as_bytes());
        }
    });
    heard
}

/// All that a part can log.
fn loud(mut command: Command) -> Command {
    command.env("PILLARBOX_LOG", "trace");
    command
}

#[track_caller]
fn assert_introduced(heard: &Receiver<String>) {
    let connect = heard.recv_timeout(process::PATIENCE).expect("it connects");
    for line in [
        "login:kim",
        "host:/archive",
        &format!("passcode:{PASSCODE}"),
    ] {
        assert!(connect.lines().any(|it| it == line), "{line}: {connect}");
    }
}

#[track_caller]
fn assert_unsaid(text: &str) {
    assert!(
        !text.contains("sesame") && !text.contains("271828"),
        "{text}"
    );
}

#[test]
fn a_client_says_who_it_is_and_its_passcode_to_nobody_else() {
    let site = Site::new(&["north"]);
    let heard = broker_that_refuses(site.bus_port);
    let mut command = loud(site.prepare("get-file-ids", Vec::<String>::new()));
    command.envs([
        ("PILLARBOX__BUS__LOGIN", "kim"),
        ("PILLARBOX__BUS__PASSCODE", PASSCODE),
        ("PILLARBOX__BUS__VIRTUAL_HOST", "/archive"),
    ]);
    let output = process::finish(command);
    assert_introduced(&heard);
    assert_eq!(heard.try_iter().count(), 0, "it asks again");
    let text = process::stderr(&output);
    assert_eq!(output.status.code(), Some(OPERATION), "{text}");
    let last = text.lines().last().expect("a line");
    assert!(last.starts_with("pillarbox: "), "{text}");
    assert_eq!(last.matches("User name [kim]").count(), 1, "{last}");
    for words in ["login", "passcode", "[bus]"] {
        assert!(last.contains(words), "'{words}' is not in: {last}");
    }
    assert_unsaid(&text);
    assert_unsaid(&process::stdout(&output));
}

#[test]
fn a_node_says_who_it_is_and_waits_until_it_is_let_in() {
    let site = Site::new(&["north"]);
    let heard = broker_that_refuses(site.bus_port);
    let node = site.part("north").join("node.toml");
    let text = fs::read_to_string(&node).expect("can be read");
    let bus =
        format!("[bus]\nlogin = \"kim\"\npasscode = \"{PASSCODE}\"\nvirtual_host = \"/archive\"\n");
    fs::write(&node, format!("{text}\n{bus}")).expect("can be written");
    let settings = site.part("north");
    let args = ["node".as_ref(), "-s".as_ref(), settings.as_os_str()];
    let mut north = Running::spawn(loud(process::pillarbox(args)));
    assert_introduced(&heard);
    let line = north.wait_for_error("User name [kim]");
    for words in ["ERROR", "login", "passcode", "[bus]"] {
        assert!(line.contains(words), "'{words}' is not in: {line}");
    }
    // Ordinary pauses are two seconds at most.
    let again = heard.recv_timeout(Duration::from_secs(5));
    assert!(again.is_err(), "{again:?}");
    north.terminate();
    north.wait_for_success();
    assert_unsaid(&north.errors().join("\n"));
    for file in files_below(&settings.join("var")) {
        let content = fs::read(&file).expect("can be read");
        assert_unsaid(&String::from_utf8_lossy(&content));
    }
}
