//! The client that comes back: what a killed process of a named client had begun, the next one goes on with.

use std::{ffi::OsString, path::PathBuf, process::Output};

use pillarbox_messages::{PutFileRequest, ResponseCode};

use crate::support::{
    noise,
    peers::StandIn,
    process::{self, Running},
    site::{Site, files_below},
};

mod gets;
mod journal;
mod kills;
mod passing;
mod puts;

/// The client that comes back.
const CLIENT: &str = "ingest-1";
/// What a journal has in it when nothing is open.
const NOTHING: [&str; 1] = ["lock"];

/// `resume` as the client, with these further arguments.
fn resume(site: &Site, args: &[&str]) -> Output {
    let mut all: Vec<OsString> = vec!["resume".into(), "-s".into()];
    all.push(site.part("client").into_os_string());
    all.extend(["--client-id".into(), CLIENT.into()]);
    all.extend(args.iter().map(Into::into));
    process::run(all)
}

/// `resume` in the background.
fn resuming(site: &Site) -> Running {
    let settings = site.part("client");
    Running::start([
        "resume".as_ref(),
        "-s".as_ref(),
        settings.as_os_str(),
        "--client-id".as_ref(),
        CLIENT.as_ref(),
    ])
}

/// A command of the client.
fn start(site: &Site, subcommand: &str, args: &[&str]) -> Running {
    let name = ["--client-id", CLIENT];
    site.start_client(subcommand, name.iter().chain(args).copied())
}

/// The names in the client's journal.
fn journal(site: &Site) -> Vec<String> {
    let directory = directory(site);
    let names = files_below(&directory).into_iter().map(|path| {
        let name = path.strip_prefix(&directory).expect("below it");
        name.to_string_lossy().into_owned()
    });
    names.collect()
}

fn directory(site: &Site) -> PathBuf {
    site.part("client").join("var").join("client").join(CLIENT)
}

/// Asserts that one operation has ended well, and that nothing is left of it.
#[track_caller]
fn assert_resumed(site: &Site, output: &Output, line: &str) {
    let told = process::succeed(output);
    assert_eq!(told.lines().count(), 1, "{told}");
    let (id, rest) = told.trim_end().split_once(" \t ").expect("columns");
    assert_eq!(id.len(), 8, "{told}");
    assert_eq!(rest, line);
    assert_eq!(journal(site), NOTHING);
    let again = resume(site, &[]);
    assert_eq!(process::succeed(&again), "");
    assert_eq!(process::stderr(&again), "nothing of 'ingest-1' is open\n");
}

/// A put of `late.bin` to the pillar `played`, whose client was killed after its request.
async fn killed_put(site: &Site, played: &mut StandIn) -> PutFileRequest {
    let file = site.file("late.bin", &noise(70, 3000));
    let path = file.to_str().expect("UTF-8");
    let mut client = start(site, "put-file", &["-f", path]);
    let identify = played.identify_request().await;
    played.accept_put(&identify).await;
    let request = played.put_request().await;
    client.kill();
    request
}

/// Answers a put as a pillar that has stored the file.
async fn stored(played: &StandIn, request: &PutFileRequest) {
    let code = ResponseCode::OperationCompleted;
    played.end_put(request, code).await;
}
