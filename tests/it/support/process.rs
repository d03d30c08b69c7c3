//! Real processes of the program under test: started, watched line by line, killed on drop.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, Command, ExitStatus, Output, Stdio},
    sync::mpsc::{self, Receiver},
    thread::{self, JoinHandle},
    time::Instant,
};

use rustix::process::{Pid, Signal, kill_process};

pub(crate) use super::PATIENCE;
use super::until;

/// A command of the program under test, with no environment of ours that changes what it does.
pub(crate) fn pillarbox<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pillarbox"));
    command
        .args(args)
        .stdin(Stdio::null())
        .env_remove("PILLARBOX_LOG");
    command
}

/// Runs a command to its end.
#[track_caller]
pub(crate) fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    finish(pillarbox(args))
}

/// Runs a prepared command to its end, which must come.
#[track_caller]
pub(crate) fn finish(mut command: Command) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let output = read_all(child.stdout.take().expect("piped"));
    let errors = read_all(child.stderr.take().expect("piped"));
    let Some(status) = end_of(&mut child) else {
        let _ = child.kill();
        let errors = errors.join().expect("reads");
        panic!(
            "{command:?} did not end\n{}",
            String::from_utf8_lossy(&errors)
        );
    };
    Output {
        status,
        stdout: output.join().expect("reads"),
        stderr: errors.join().expect("reads"),
    }
}

/// Runs a prepared command to its end whose standard output nobody has ever read.
#[track_caller]
pub(crate) fn unheard(mut command: Command) -> Output {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    command.stdout(writer).output().expect("the program starts")
}

fn read_all(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

/// The process's end; `None` if it does not come.
fn end_of(child: &mut Child) -> Option<ExitStatus> {
    let deadline = Instant::now() + PATIENCE;
    let mut ended = child.try_wait().expect("can be waited for");
    while ended.is_none() && Instant::now() < deadline {
        super::pause(std::time::Duration::from_millis(5));
        ended = child.try_wait().expect("can be waited for");
    }
    ended
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8 on standard output")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8 on standard error")
}

/// Asserts success and gives standard output.
#[track_caller]
pub(crate) fn succeed(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}\nstdout:\n{}\nstderr:\n{}",
        output.status,
        stdout(output),
        stderr(output)
    );
    stdout(output)
}

/// Asserts an exit code and one line on standard error, and gives that line.
#[track_caller]
pub(crate) fn fail_with_one_line(output: &Output, code: i32) -> String {
    let text = stderr(output);
    assert_eq!(
        output.status.code(),
        Some(code),
        "stderr:\n{text}\nstdout:\n{}",
        stdout(output)
    );
    assert_eq!(text.lines().count(), 1, "not one line:\n{text}");
    text.trim_end().to_owned()
}

/// A process that stays up, or that is watched while it works.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    output: Lines,
    errors: Lines,
}

impl Running {
    pub(crate) fn start<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        Self::spawn(pillarbox(args))
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let output = Lines::of(child.stdout.take().expect("piped"));
        let errors = Lines::of(child.stderr.take().expect("piped"));
        Self {
            child,
            output,
            errors,
        }
    }

    /// A node of this settings directory, once it says that it is ready.
    #[track_caller]
    pub(crate) fn node(settings: &Path) -> Self {
        let mut node = Self::starting_node(settings);
        node.wait_for("ready");
        node
    }

    /// A node of this settings directory, which may not be ready yet.
    pub(crate) fn starting_node(settings: &Path) -> Self {
        Self::start([OsStr::new("node"), OsStr::new("-s"), settings.as_os_str()])
    }

    /// Whether it says that it is ready; it may end instead.
    pub(crate) fn gets_ready(&mut self) -> bool {
        self.output.next_with("ready").is_some()
    }

    /// `up` in this directory, once it says that it is ready.
    #[track_caller]
    pub(crate) fn up(directory: &Path) -> Self {
        let mut up = Self::start([OsStr::new("up"), OsStr::new("--dir"), directory.as_os_str()]);
        up.wait_for("ready");
        up
    }

    /// The first line of standard output, from now on, that contains `part`.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, part: &str) -> String {
        match self.output.next_with(part) {
            Some(line) => line,
            None => self.give_up(part),
        }
    }

    /// The first line of standard error, from now on, that contains `part`.
    #[track_caller]
    pub(crate) fn wait_for_error(&mut self, part: &str) -> String {
        match self.errors.next_with(part) {
            Some(line) => line,
            None => self.give_up(part),
        }
    }

    /// The lines of standard output, from now on, up to the one that is `last`.
    #[track_caller]
    pub(crate) fn lines_until(&mut self, last: &str) -> Vec<String> {
        let mut lines = Vec::new();
        while lines.last().is_none_or(|line| line != last) {
            lines.push(self.wait_for(""));
        }
        lines
    }

    #[track_caller]
    fn give_up(&mut self, part: &str) -> ! {
        let _ = self.child.kill();
        let status = self.child.wait();
        panic!(
            "no line with '{part}', {status:?}\nstdout: {:#?}\nstderr: {:#?}",
            self.output.all(),
            self.errors.all()
        );
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has not ended yet.
    pub(crate) fn lives(&mut self) -> bool {
        self.child.try_wait().expect("can be waited for").is_none()
    }

    /// kill -9, and waits until the process is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("can be killed");
        self.child.wait().expect("ends");
    }

    /// SIGTERM.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGINT, as Ctrl-C sends it.
    pub(crate) fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// SIGSTOP: it does nothing until it may go on.
    pub(crate) fn halt(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT.
    pub(crate) fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.id()).expect("a pid")).expect("a pid");
        kill_process(pid, signal).expect("can be signaled");
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        match end_of(&mut self.child) {
            Some(status) => status,
            None => self.give_up("(its end)"),
        }
    }

    /// Waits for its end, which must be a good one.
    #[track_caller]
    pub(crate) fn wait_for_success(&mut self) {
        let status = self.wait();
        assert!(
            status.success(),
            "{status}\nstdout: {:#?}\nstderr: {:#?}",
            self.output.all(),
            self.errors.all()
        );
    }

    /// Everything on standard output of a process that has ended.
    pub(crate) fn output(&mut self) -> &[String] {
        self.output.all()
    }

    /// Everything on standard error of a process that has ended.
    pub(crate) fn errors(&mut self) -> &[String] {
        self.errors.all()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a process writes, line by line.
#[derive(Debug)]
struct Lines {
    arriving: Receiver<String>,
    seen: Vec<String>,
}

impl Lines {
    fn of(from: impl Read + Send + 'static) -> Self {
        let (sender, arriving) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
                // Read to the end even if nobody listens: the process must not meet a full pipe.
                let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
            }
        });
        Self {
            arriving,
            seen: Vec::new(),
        }
    }

    fn next_with(&mut self, part: &str) -> Option<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let rest = deadline.saturating_duration_since(Instant::now());
            let line = self.arriving.recv_timeout(rest).ok()?;
            self.seen.push(line.clone());
            if line.contains(part) {
                return Some(line);
            }
        }
    }

    fn all(&mut self) -> &[String] {
        self.seen.extend(self.arriving.iter());
        &self.seen
    }
}

/// Waits until the process has opened, or closed, what it needs: asked over and over.
#[track_caller]
pub(crate) fn until_success(what: &str, mut attempt: impl FnMut() -> Output) -> String {
    let mut last = None;
    until(what, || {
        let output = attempt();
        let good = output.status.success();
        last = Some(output);
        good
    });
    succeed(&last.expect("at least one attempt"))
}

/// Resident memory of a process, at its highest, in bytes.
pub(crate) fn peak_memory(pid: u32) -> u64 {
    memory(pid, "VmHWM:")
}

/// Resident memory of a process, in bytes.
pub(crate) fn resident_memory(pid: u32) -> u64 {
    memory(pid, "VmRSS:")
}

/// Descriptors that a process has open.
pub(crate) fn open_descriptors(pid: u32) -> usize {
    let open = std::fs::read_dir(format!("/proc/{pid}/fd"));
    open.expect("a live process").count()
}

fn memory(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a live process");
    let line = status
        .lines()
        .find(|line| line.starts_with(name))
        .expect("is there");
    let kib: u64 = line
        .split_whitespace()
        .nth(1)
        .expect("a number")
        .parse()
        .expect("a number");
    kib * 1024
}
