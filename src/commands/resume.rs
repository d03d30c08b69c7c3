//! `pillarbox resume`.

use std::path::PathBuf;

use pillarbox_client::{Event, EventKind, Resumed, Resuming, Telling};
use pillarbox_messages::wording::count;
use tokio::task::JoinSet;

use super::get_file::{tell_replaced, tell_stood_in_for};
use crate::{
    args::ResumeArgs,
    client_setup::{ClientSetup, Session, not_begun, tell},
    failure::Failure,
    json,
    output::{in_words, one_line, print, say},
};

pub(super) async fn run(args: ResumeArgs) -> Result<(), Failure> {
    let setup = ClientSetup::load(&args.client)?;
    let Some(name) = setup.name().cloned() else {
        return Err(Failure::usage(
            "a client without a name leaves nothing to resume; set [client] id in node.toml, or give --client-id",
        ));
    };
    let mut session = setup.connect_to_resume().await?;
    let client = session.client();
    let resumed = tokio::select! {
        resumed = client.resume() => resumed.map_err(not_begun),
        () = session.stopped() => Err(Failure::interrupted()),
    };
    let told = match resumed {
        Ok(resuming) if is_empty(&resuming) => {
            say(&format!("nothing of '{name}' is open"));
            Ok(())
        }
        Ok(resuming) => tell_all(&mut session, resuming, args.client.json).await,
        Err(failure) => Err(failure),
    };
    session.close().await;
    told
}

const fn is_empty(resuming: &Resuming) -> bool {
    resuming.operations.is_empty() && resuming.problems.is_empty()
}

/// Tells every operation's end as it comes. What can't be told stays in the journal, and keeps nothing else from its
/// end. Ctrl-C cancels what has not ended yet, and it stays cancelled.
async fn tell_all(session: &mut Session, resuming: Resuming, as_json: bool) -> Result<(), Failure> {
    for problem in &resuming.problems {
        say(&one_line(problem));
    }
    let mut bad = resuming.problems.len();
    let all = bad + resuming.operations.len();
    let verbose = session.is_verbose();
    let mut following = JoinSet::new();
    for resumed in resuming.operations {
        following.spawn(follow(resumed, verbose));
    }
    let client = session.client();
    let mut interrupted = false;
    let (mut untold, mut unprinted) = (0, None);
    while !following.is_empty() {
        tokio::select! {
            Some(followed) = following.join_next() => {
                let Ok(Some((event, telling, target))) = followed else {
                    bad += 1;
                    continue;
                };
                bad += usize::from(!is_complete(&event));
                match print(&if as_json { json_line(&event) } else { line(&event) }) {
                    Ok(()) => telling.told(),
                    Err(failure) => {
                        untold += 1;
                        if !failure.is_unheard() {
                            unprinted = Some(failure);
                        }
                    }
                }
                if let EventKind::Complete { results, failures } = &event.kind {
                    tell_stood_in_for(results, failures);
                    tell_replaced(results, target.as_deref());
                }
            }
            () = session.stopped(), if !interrupted => {
                interrupted = true;
                client.close().await;
            }
        }
    }
    if untold > 0 {
        say(&format!(
            "{untold} of {} could not be told; run 'pillarbox resume' again",
            count(all, "end")
        ));
    }
    match (unprinted, bad) {
        _ if interrupted => Err(Failure::interrupted()),
        (Some(failure), _) => Err(failure),
        (None, 0) => Ok(()),
        (None, _) => Err(Failure::operation(format!(
            "{bad} of {} did not end well",
            count(all, "operation")
        ))),
    }
}

/// Waits for an operation's last event. Where a fetched file is comes with it.
async fn follow(resumed: Resumed, verbose: bool) -> Option<(Event, Telling, Option<PathBuf>)> {
    let mut running = resumed.running;
    let mut last = None;
    while let Some(event) = running.next_event().await {
        tell(&event, verbose);
        last = Some(event);
    }
    let (_, telling) = running.outcome_to_tell().await;
    Some((last?, telling, resumed.target))
}

const fn is_complete(event: &Event) -> bool {
    matches!(event.kind, EventKind::Complete { .. })
}

fn line(event: &Event) -> String {
    let file = event
        .file
        .as_ref()
        .map_or_else(|| "all files".to_owned(), one_line);
    let (id, operation) = (event.correlation.short(), event.operation);
    let result = event.kind.name();
    let text = match &event.info {
        Some(info) => format!(": {}", in_words(info)),
        None => String::new(),
    };
    format!("{id} \t {operation} \t {file} \t {result}{text}\n")
}

/// One operation of `resume --json`.
#[derive(Debug, serde::Serialize)]
struct Line<'a> {
    correlation_id: &'a str,
    operation: &'a str,
    collection_id: Option<&'a str>,
    file_id: Option<&'a str>,
    complete: bool,
    text: Option<&'a str>,
}

fn json_line(event: &Event) -> String {
    json::line(&Line {
        correlation_id: event.correlation.as_str(),
        operation: event.operation.as_str(),
        collection_id: event.collection.as_ref().map(|id| id.as_str()),
        file_id: event.file.as_ref().map(|id| id.as_str()),
        complete: is_complete(event),
        text: event.info.as_deref(),
    })
}
