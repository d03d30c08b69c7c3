//! The recorded pillars' answers, to our client's commands.

use std::fs;

use super::{
    capture::{self, Capture, Captured, Sender},
    differences::{Judge, OF_CLIENT},
    run::{Run, outcome},
    scenes::HELLO,
    shape,
    stage::{Stage, in_recorded_words},
};
use crate::support::process::Running;

#[test]
fn our_commands_end_as_recorded() {
    let Some(mut captures) = capture::all("our_commands_end_as_recorded") else {
        return;
    };
    let checksums = captures.iter().find(|it| it.name == "get-checksums-one");
    let checksums = checksums.expect("it was recorded").clone();
    let only = std::env::var("PILLARBOX_TEST_REPLAY").ok();
    let mut stage = Stage::new();
    let mut judge = Judge::default();
    println!(
        "{:34} {:>6} {:>6} {:>11}",
        "conversation", "asked", "played", "differences"
    );
    captures.retain(|it| only.as_ref().is_none_or(|only| it.name.contains(only)));
    for capture in &captures {
        let Some(run) = Run::of(capture) else {
            continue;
        };
        let lines = play(&mut stage, capture, &checksums, &run);
        let used = judge.judge(OF_CLIENT, &capture.name, &lines);
        println!(
            "{:34} {:6} {:6} {used:11}",
            capture.name,
            capture.asked().count(),
            capture.answered().count(),
        );
    }
    judge.report(OF_CLIENT);
    if only.is_none() {
        judge.assert_all_as_listed(OF_CLIENT);
    }
}

/// Runs the command of a recorded conversation among its pillars, and gives what differs: its outcome, and what it
/// asked. A delivered file's checksum is asked for and told as in another one.
fn play(stage: &mut Stage, capture: &Capture, checksums: &Capture, run: &Run) -> Vec<String> {
    stage.forget();
    let arguments = with_our_addresses(stage, &run.arguments);
    // Where answers are missing, or all are, the command waits for them in vain; as where it asks more than the
    // recorded one.
    let patient = !capture.name.starts_with("pillar-down")
        && !capture.messages.is_empty()
        && capture.name != "replace-wrong-checksum";
    let mut client = stage.start(&arguments, patient);
    let mut requests = Vec::new();
    for message in &capture.messages {
        if message.from == Sender::Client {
            let fits = |ours: &Captured| {
                ours.kind == message.kind && ours.element("PillarID") == message.element("PillarID")
            };
            requests.extend(stage.request(&mut client, fits).map(|ours| (message, ours)));
        } else if message.kind != "AlarmMessage" {
            answer(stage, message, &requests);
        }
    }
    let mut further = Vec::new();
    let delivers = |it: &Captured| it.kind == "GetFileFinalResponse" && is_complete(it);
    if let Some(delivered) = capture.messages.iter().find(|it| delivers(it)) {
        further = tell_checksum(stage, checksums, &delivered.from, &mut client);
    }
    let status = client.wait().code().expect("it ended by itself");
    let stdout: String = client
        .output()
        .iter()
        .map(|line| format!("{line}\n"))
        .collect();
    let mut differences = shape::compare_lines(&run.outcome(), &outcome(status, &stdout));
    if status == 0 {
        check_fetched(stage, &arguments);
    }
    let recorded: Vec<&Captured> = capture.asked().collect();
    let asked: Vec<Captured> = requests
        .iter()
        .map(|(message, ours)| in_recorded_words(ours, message))
        .collect();
    differences.extend(shape::differences(
        &recorded,
        &asked.iter().collect::<Vec<_>>(),
    ));
    differences.extend(further.iter().map(|kind| format!("client +{kind}")));
    differences.extend(stage.not_recorded(&mut client));
    differences
}

/// Plays what a pillar answered when it was asked for a file's checksum. Gives what it was asked.
fn tell_checksum(
    stage: &mut Stage,
    recorded: &Capture,
    pillar: &Sender,
    client: &mut Running,
) -> Vec<String> {
    let identify = |it: &&Captured| it.kind.starts_with("Identify");
    let (identifying, performing): (Vec<_>, Vec<_>) = recorded.messages.iter().partition(identify);
    let mut asked = Vec::new();
    for messages in [identifying, performing] {
        let kind = messages.iter().find(|it| it.from == Sender::Client);
        let kind = kind.expect("a request").kind.clone();
        let request = stage.request(client, |ours| ours.kind == kind);
        let request = request.expect("it is asked for the checksum");
        for answer in messages.iter().filter(|it| it.from == *pillar) {
            stage.answer(answer, &request);
        }
        asked.push(kind);
    }
    asked
}

fn is_complete(answer: &Captured) -> bool {
    answer.text.contains("OPERATION_COMPLETED")
}

/// Plays an answer to the request that it answered, if that was made.
fn answer(stage: &mut Stage, answer: &Captured, requests: &[(&Captured, Captured)]) {
    let to_one =
        answer.kind.ends_with("ProgressResponse") || answer.kind.ends_with("FinalResponse");
    let asked = requests.iter().find(|(_, ours)| {
        let pillar = ours.element("PillarID");
        pillar == answer.element("PillarID").filter(|_| to_one)
    });
    let Some((_, request)) = asked else {
        return;
    };
    if answer.kind == "GetFileFinalResponse" && is_complete(answer) {
        stage.deliver(request.element("FileAddress").expect("an address"), HELLO);
    }
    stage.answer(answer, request);
}

fn with_our_addresses(stage: &Stage, arguments: &[String]) -> Vec<String> {
    let ours = |argument: &String| {
        if argument.starts_with("http://") {
            stage.offer("hello.txt", HELLO)
        } else {
            argument.clone()
        }
    };
    arguments.iter().map(ours).collect()
}

/// What `get-file` says that it got is where it was to be.
fn check_fetched(stage: &Stage, arguments: &[String]) {
    if arguments.first().is_some_and(|tool| tool == "get-file") {
        let at = arguments
            .iter()
            .position(|option| option == "-l")
            .expect("-l");
        assert_eq!(
            fs::read(stage.path().join(&arguments[at + 1])).unwrap(),
            HELLO
        );
    }
}
