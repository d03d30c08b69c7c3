//! In which order a named client writes down, asks, tells and forgets, as strace tells it.

use std::fs;

use pillarbox_messages::ResponseCode;

use super::CLIENT;
use crate::support::{
    peers::StandIn,
    process::Running,
    site::Site,
    strace::{self, Step, directory},
};

/// What a put did whose pillar answered with this code, and what it told.
async fn traced_put(code: ResponseCode) -> (Site, Vec<Step>, String) {
    let site = Site::new(&["played"]);
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    let file = site.file("late.bin", b"soon");
    let put = ["--client-id", CLIENT, "-f", file.to_str().expect("UTF-8")];
    let log = site.path().join("trace");
    let command = site.prepare("put-file", put);
    let mut client = Running::spawn(strace::command(&command, &log));
    let identify = played.identify_request().await;
    played.accept_put(&identify).await;
    let request = played.put_request().await;
    played.end_put(&request, code).await;
    client.wait();
    let told = client.errors().join("\n");
    let log = fs::read(log).expect("a log");
    (site, strace::steps(&String::from_utf8_lossy(&log)), told)
}

fn place(steps: &[Step], what: &str, wanted: impl Fn(&Step) -> bool) -> usize {
    let found = steps.iter().position(wanted);
    found.unwrap_or_else(|| panic!("no {what} in {steps:#?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_end_is_told_before_it_is_forgotten_good_or_bad() {
    if !strace::can_trace(module_path!()) {
        return;
    }
    for (code, end) in [
        (ResponseCode::OperationCompleted, "late.bin stored on"),
        (ResponseCode::Failure, "FAILED"),
    ] {
        let (_site, steps, told) = traced_put(code).await;
        assert!(told.contains(end), "{told}");
        let told = place(
            &steps,
            "telling",
            |step| matches!(step, Step::Send(text) if text.starts_with("2<") && text.contains(end)),
        );
        let forgotten = place(
            &steps,
            "forgetting",
            |step| matches!(step, Step::Unlink(name) if name.ends_with(".conversation")),
        );
        assert!(told < forgotten, "{steps:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_journal_is_certain_to_stay_before_anybody_is_asked() {
    if !strace::can_trace(module_path!()) {
        return;
    }
    let (site, steps, _) = traced_put(ResponseCode::OperationCompleted).await;
    let asked = place(
        &steps,
        "request",
        |step| matches!(step, Step::Send(text) if text.contains("IdentifyPillarsForPutFileRequest")),
    );
    let settings = site.part("client");
    let own = |name: &str| name.starts_with(settings.to_str().expect("UTF-8"));
    let mut made = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let name = match step {
            Step::Mkdir(name) if own(name) => name,
            Step::Rename(_, name) if name.ends_with(".conversation") && at < asked => name,
            _ => continue,
        };
        let holder = directory(name);
        let synced = |step: &Step| matches!(step, Step::SyncEnds(path) if path == holder);
        assert!(steps[at..asked].iter().any(synced), "{name}: {steps:#?}");
        made.push(
            name.strip_prefix(settings.to_str().expect("UTF-8"))
                .expect("below it"),
        );
    }
    assert_eq!(made[..3], ["/var", "/var/client", "/var/client/ingest-1"]);
    assert_eq!(made.len(), 4, "{made:?}");
}
