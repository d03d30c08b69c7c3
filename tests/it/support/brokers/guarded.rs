//! What goes with the test process, however that ends: processes with all that they have started, and directories.
//!
//! A shell holds the reading end of a pipe whose only writing end is the test process's. When that is closed, by the
//! owner's drop or by the system after a kill -9, the shell does what is to be done.

use std::{
    fs::File,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Ends its whole process group when its input or the command ends.
const GROUP: &str = r#"("$@" </dev/null; kill -9 0) & read -r _; kill -9 0"#;
/// Removes a directory when its input ends. What is being killed may still write a moment longer.
const REMOVE: &str = r#"read -r _; until rm -rf -- "$1"; do sleep 0.1; done"#;

/// A process and its group.
#[derive(Debug)]
pub(super) struct Guarded {
    shell: Child,
}

impl Guarded {
    /// Starts it as the head of a group, with what it and its children write going to the end of `log`.
    pub(super) fn start(command: &Command, log: &Path) -> Self {
        let log = File::options().create(true).append(true).open(log);
        let log = log.expect("a log file");
        let mut shell = shell(GROUP);
        shell
            .arg(command.get_program())
            .args(command.get_args())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").expect("is set"))
            .stdout(log.try_clone().expect("a descriptor"))
            .stderr(log);
        for (name, value) in command.get_envs() {
            shell.env(name, value.expect("no variable is removed"));
        }
        let shell = shell.spawn().expect("a shell");
        Self { shell }
    }

    /// Whether it has not ended yet.
    pub(super) fn lives(&mut self) -> bool {
        self.shell.try_wait().expect("can be waited for").is_none()
    }

    /// kill -9 for the whole group.
    pub(super) fn kill(mut self) {
        end(&mut self.shell);
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        end(&mut self.shell);
    }
}

/// A temporary directory.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    shell: Child,
}

impl Directory {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let shell = shell(REMOVE).arg(directory.path()).spawn();
        let shell = shell.expect("a shell");
        Self {
            path: directory.keep(),
            shell,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        end(&mut self.shell);
    }
}

/// A shell script in a process group of its own, to be ended by [`end`].
fn shell(script: &str) -> Command {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script, "sh"])
        .stdin(Stdio::piped())
        .process_group(0);
    shell
}

fn end(shell: &mut Child) {
    drop(shell.stdin.take());
    let _ = shell.wait();
}
