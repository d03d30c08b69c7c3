//! The client that comes back: what a killed process of a named client had begun, the next one goes on with.

use std::{
    path::PathBuf,
    process::{Command, Output},
};

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
mod order;
mod passing;
mod puts;

/// The client that comes back.
const CLIENT: &str = "ingest-1";
/// What a journal has in it when nothing is open.
const NOTHING: [&str; 1] = ["lock"];

/// `resume` as the client, with these further arguments.
fn resume(site: &Site, args: &[&str]) -> Output {
    let mut command = prepared(site);
    command.args(args);
    process::finish(command)
}

/// The same, not run yet.
fn prepared(site: &Site) -> Command {
    let mut command = process::pillarbox(["resume", "-s"]);
    command.arg(site.part("client"));
    command.args(["--client-id", CLIENT]);
    command
}

/// `resume` in the background.
fn resuming(site: &Site) -> Running {
    Running::spawn(prepared(site))
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
