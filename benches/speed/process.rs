//! `put-file` as a whole process against a running node, against the same put inside a process plus the start of
//! a process that does nothing.

use std::{ffi::OsStr, fs, process::Command};

use crate::{
    rounds::{compare, duration, timed},
    site::{Inside, Site, command},
};

const PUTS_PER_ROUND: u32 = 20;

pub(crate) fn run() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let site = Site::new(&["north", "south", "west"], false);
    let source = site.path("source");
    fs::write(&source, [b'x'; 1024]).unwrap();
    let roles = site.bus_role() + &site.exchange_role() + &site.pillar_roles();
    let settings = site.settings("up", &roles);
    let inside = runtime.block_on(Inside::start(&settings));
    let mut next = 0;
    let mut name = move || {
        next += 1;
        format!("file-{next}")
    };
    let mut other = name;
    let (peer, ours) = compare(
        || {
            timed(|| {
                for _ in 0..PUTS_PER_ROUND {
                    runtime.block_on(inside.put(&format!("inside-{}", name()), &source));
                    let mut version = Command::new(env!("CARGO_BIN_EXE_pillarbox"));
                    assert!(version.arg("--version").output().unwrap().status.success());
                }
            })
        },
        || {
            timed(|| {
                for _ in 0..PUTS_PER_ROUND {
                    let id = format!("process-{}", other());
                    let id = [
                        OsStr::new("-f"),
                        source.as_os_str(),
                        OsStr::new("-i"),
                        OsStr::new(&id),
                    ];
                    let output = command(&settings, "put-file", &id)
                        .wait_with_output()
                        .unwrap();
                    assert!(
                        output.status.success(),
                        "{}",
                        String::from_utf8_lossy(&output.stderr)
                    );
                }
            })
        },
    );
    let (peer, ours) = (peer / PUTS_PER_ROUND, ours / PUTS_PER_ROUND);
    duration(
        "put-file as a process (peer: put + --version)",
        peer,
        ours,
        "at most 2",
    );
    runtime.block_on(inside.stop());
}
