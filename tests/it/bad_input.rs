//! What people and machines give wrong: one line that names the cause, the right exit code, nothing done and
//! nothing left behind.

mod arguments;
mod bus;
mod full_data;
mod full_disk;
mod local_first;
mod settings;
mod sources;
mod starting;

use std::{
    ffi::OsString,
    fs,
    io::ErrorKind,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

use crate::support::process;

/// Arguments and settings are wrong.
const USAGE: i32 = 1;
/// The operation failed.
const OPERATION: i32 = 255;

/// How long a mistake may take to be found that needs nobody else: a second, and more on a busy machine.
const AT_ONCE: Duration = Duration::from_secs(5);

/// A person's working place: settings whose bus and exchange are listeners of the test's own, which catch whoever
/// connects; an empty directory to work in and one for temporary files.
struct Desk {
    directory: tempfile::TempDir,
    bus: TcpListener,
    exchange: TcpListener,
}

impl Desk {
    fn new() -> Self {
        let listen = || {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            listener.set_nonblocking(true).expect("a socket");
            listener
        };
        let desk = Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
            bus: listen(),
            exchange: listen(),
        };
        for name in ["settings", "work", "tmp"] {
            fs::create_dir(desk.path(name)).expect("can be made");
        }
        desk.write("repository.toml", &desk.repository());
        desk.write("node.toml", &desk.node());
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A file to work with.
    fn file(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.path("work").join(name);
        fs::write(&path, content).expect("can be written");
        path
    }

    /// One of the settings files.
    fn write(&self, name: &str, text: &str) {
        fs::write(self.path("settings").join(name), text).expect("can be written");
    }

    fn repository(&self) -> String {
        format!(
            r#"[repository]
name = "Test"
checksum = "MD5"
require = ["checksum-for-new-file"]
[bus]
url = "stomp://{}"
[timeouts]
identification = "20s"
operation = "60s"
[[collections]]
id = "books"
pillars = ["north", "south"]
"#,
            self.bus.local_addr().expect("bound")
        )
    }

    fn node(&self) -> String {
        let exchange = self.exchange.local_addr().expect("bound");
        format!(
            r#"data = "var"
[client]
exchange = "http://{exchange}/"
[exchange]
hosts = ["{exchange}"]
"#
        )
    }

    /// A command of the program, worked on at this desk.
    fn command<S: Into<OsString>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
        let mut command = process::pillarbox(args);
        command
            .current_dir(self.path("work"))
            .env("TMPDIR", self.path("tmp"));
        command
    }

    /// Asserts that a client command of the collection `books` is refused for its arguments, in one line that has
    /// these parts, without asking anybody and without a trace.
    #[track_caller]
    fn refuses(&self, subcommand: &str, args: &[&str], parts: &[&str]) -> String {
        let mut all = vec![
            OsString::from(subcommand),
            "-s".into(),
            self.path("settings").into(),
        ];
        if !args.contains(&"-c") {
            all.extend(["-c".into(), "books".into()]);
        }
        all.extend(args.iter().map(OsString::from));
        self.refuses_exactly(all, parts)
    }

    /// The same, with all arguments given.
    #[track_caller]
    fn refuses_exactly<S: Into<OsString>>(
        &self,
        args: impl IntoIterator<Item = S>,
        parts: &[&str],
    ) -> String {
        let command = self.command(args);
        let what = format!("{:?}", command.get_args().collect::<Vec<_>>());
        let before = self.traces();
        let start = Instant::now();
        let output = process::finish(command);
        let took = start.elapsed();
        let line = one_line(&output, USAGE, parts, &what);
        assert!(took < AT_ONCE, "{what}: took {took:?}");
        assert_eq!(self.traces(), before, "{what}: left something behind");
        self.assert_untouched(&what);
        line
    }

    /// Everything in the directories that commands work in.
    fn traces(&self) -> Vec<PathBuf> {
        let mut all = everything_below(&self.path("work"));
        all.extend(everything_below(&self.path("tmp")));
        all.extend(everything_below(&self.path("settings")));
        all
    }

    #[track_caller]
    fn assert_untouched(&self, what: &str) {
        for (name, listener) in [("bus", &self.bus), ("exchange", &self.exchange)] {
            let nobody = listener.accept().expect_err("nobody waits");
            assert_eq!(
                nobody.kind(),
                ErrorKind::WouldBlock,
                "{what}: asked the {name}"
            );
        }
    }
}

/// Asserts the exit code, nothing on standard output, and one line on standard error with these parts.
#[track_caller]
fn one_line(output: &Output, code: i32, parts: &[&str], what: &str) -> String {
    let text = process::stderr(output);
    assert_eq!(output.status.code(), Some(code), "{what}\nstderr:\n{text}");
    assert_eq!(process::stdout(output), "", "{what}: standard output");
    assert_eq!(text.lines().count(), 1, "{what}: not one line:\n{text}");
    let line = text.trim_end().to_owned();
    assert!(line.starts_with("pillarbox: "), "{what}: {line}");
    for part in parts {
        assert!(line.contains(part), "{what}: '{part}' is not in: {line}");
    }
    line
}

/// Files, directories and whatever else is below.
fn everything_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                open.push(entry.path());
            }
            found.push(entry.path());
        }
    }
    found.sort();
    found
}
