//! What a process asked the system for, as `strace -f -y` wrote it down: the calls that change files and names, that
//! make them last, and that send messages.

use std::{collections::BTreeMap, path::Path, process::Command};

/// The system calls that are watched.
pub(crate) const CALLS: &str = "write,writev,pwrite64,pwritev,sendto,sendmsg,fsync,fdatasync,sync_file_range,\
                                link,linkat,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat";

/// A step of the process, in the order of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Bytes go to a file.
    Write(String),
    /// A sync begins; only what was written before it counts.
    SyncBegins(String),
    /// The sync that began last has come to a good end.
    SyncEnds(String),
    /// A name is about to be given to a file that has another.
    Link(String, String),
    /// A name is about to become another.
    Rename(String, String),
    /// A name is about to go.
    Unlink(String),
    /// A folder is about to be made.
    Mkdir(String),
    /// Bytes go to a socket.
    Send(String),
}

/// A call: where in the log it begins and ends, what it was, and what came of it.
struct Call<'a> {
    begins: usize,
    ends: usize,
    text: &'a str,
    succeeded: bool,
}

/// Reads a log. Lines that are no calls of interest are passed over, and so are calls that failed or never ended.
pub(crate) fn steps(log: &str) -> Vec<Step> {
    let mut steps: Vec<(usize, Step)> = Vec::new();
    for call in calls(log).into_iter().filter(|call| call.succeeded) {
        steps.extend(begin(call.text).map(|step| (call.begins, step)));
        steps.extend(end(call.text).map(|step| (call.ends, step)));
    }
    steps.sort_by_key(|(line, _)| *line);
    steps.into_iter().map(|(_, step)| step).collect()
}

fn calls(log: &str) -> Vec<Call<'_>> {
    let mut calls = Vec::new();
    // What each thread is in the middle of, since which line.
    let mut begun: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for (number, line) in log.lines().enumerate() {
        let Some((thread, line)) = line.split_once(' ') else {
            continue;
        };
        let line = line.trim_start();
        if let Some(text) = line.strip_suffix("<unfinished ...>") {
            begun.insert(thread, (number, text));
            continue;
        }
        let Some((text, result)) = line.rsplit_once(" = ") else {
            continue;
        };
        let whole = Some((number, text));
        let resumed = line.starts_with("<... ");
        let call = if resumed { begun.remove(thread) } else { whole };
        calls.extend(call.map(|(begins, text)| Call {
            begins,
            ends: number,
            text,
            succeeded: !result.starts_with('-'),
        }));
    }
    calls
}

fn begin(call: &str) -> Option<Step> {
    let (name, arguments) = call.split_once('(')?;
    match name {
        "write" | "writev" | "pwrite64" | "pwritev" | "sendto" | "sendmsg" => {
            let path = path_of_descriptor(arguments)?;
            if path.starts_with('/') {
                Some(Step::Write(path.to_owned()))
            } else {
                Some(Step::Send(arguments.to_owned()))
            }
        }
        "fsync" | "fdatasync" => Some(Step::SyncBegins(path_of_descriptor(arguments)?.to_owned())),
        "link" | "linkat" => two_names(arguments).map(|(from, to)| Step::Link(from, to)),
        "rename" | "renameat" | "renameat2" => {
            two_names(arguments).map(|(from, to)| Step::Rename(from, to))
        }
        "unlink" | "unlinkat" => names(arguments).next().map(Step::Unlink),
        "mkdir" | "mkdirat" => names(arguments).next().map(Step::Mkdir),
        _ => None,
    }
}

fn end(call: &str) -> Option<Step> {
    let (name, arguments) = call.split_once('(')?;
    let synced = matches!(name, "fsync" | "fdatasync");
    let path = path_of_descriptor(arguments).filter(|_| synced)?;
    Some(Step::SyncEnds(path.to_owned()))
}

/// What the descriptor stands for, as option `-y` tells: `7</path>` or `7<socket:[1]>`.
fn path_of_descriptor(arguments: &str) -> Option<&str> {
    let (number, rest) = arguments.split_once('<')?;
    let path = rest.split_once('>')?.0;
    number.parse::<u32>().ok().map(|_| path)
}

fn two_names(arguments: &str) -> Option<(String, String)> {
    let mut names = names(arguments);
    names.next().zip(names.next())
}

/// The quoted arguments. Names of the tests have nothing in them that is quoted itself.
fn names(arguments: &str) -> impl Iterator<Item = String> {
    let quoted = arguments.split('"').skip(1).step_by(2);
    quoted.map(str::to_owned)
}

/// The directory of a name.
pub(crate) fn directory(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Whether processes can be traced here; if not, why.
fn available() -> Result<(), String> {
    let probe = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "true"])
        .output();
    match probe {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
        Err(error) => Err(format!("strace: {error}")),
    }
}

/// Whether a test of this module can be done here; says loudly if not.
pub(crate) fn can_trace(module: &str) -> bool {
    match available() {
        Ok(()) => true,
        Err(reason) => {
            let required = std::env::var_os("PILLARBOX_TEST_REQUIRE_STRACE").is_some();
            assert!(!required, "no tracing, which is required: {reason}");
            eprintln!("SKIPPED {module}: no tracing: {reason}");
            false
        }
    }
}

/// A command that runs `traced` as it is, with a tracer aside that writes to `log`.
pub(crate) fn command(traced: &Command, log: &Path) -> Command {
    let mut command = Command::new("strace");
    command
        .args(["-D", "-f", "-y", "-s", "65536", "-e"])
        .arg(format!("trace={CALLS}"))
        .arg("-o")
        .arg(log)
        .arg("--")
        .arg(traced.get_program())
        .args(traced.get_args());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_were_interrupted_by_others_are_put_together() {
        let log = "\
100  pwrite64(9</i.sqlite-wal>, \"a = b\", 5, 0 <unfinished ...>
101 fsync(7</a/fileDir> <unfinished ...>
100 <... pwrite64 resumed>)          = 5
102 fdatasync(8</t>) = -1 EIO (Input/output error)
102 link(\"/t/u\", \"/a/x\" <unfinished ...>
102 <... link resumed>) = -1 EEXIST (File exists)
101 <... fsync resumed>)          = 0
100 linkat(AT_FDCWD</cwd>, \"/t/u\", AT_FDCWD</cwd>, \"/a/x\", 0) = 0
100 sendto(5<socket:[77]>, \"MESSAGE\\n\", 8, MSG_NOSIGNAL, NULL, 0) = 8
100 --- SIGCHLD {si_signo=SIGCHLD} ---
100 +++ exited with 0 +++
";
        let path = |path: &str| path.to_owned();
        let expected = [
            Step::Write(path("/i.sqlite-wal")),
            Step::SyncBegins(path("/a/fileDir")),
            Step::SyncEnds(path("/a/fileDir")),
            Step::Link(path("/t/u"), path("/a/x")),
            Step::Send(path(
                "5<socket:[77]>, \"MESSAGE\\n\", 8, MSG_NOSIGNAL, NULL, 0)",
            )),
        ];
        assert_eq!(steps(log), expected);
    }
}
