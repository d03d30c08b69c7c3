//! `pillarbox get-status`.

use pillarbox_client::{ComponentResult, EventKind, GetStatus};
use pillarbox_messages::{ComponentId, ResultingStatus};

use crate::{
    args::operations::GetStatusArgs,
    client_setup::{ClientSetup, conclude, not_started},
    failure::Failure,
    json,
    output::{in_words, one_line, print, rfc3339},
};

pub(super) async fn run(args: GetStatusArgs) -> Result<(), Failure> {
    let setup = ClientSetup::load(&args.client)?;
    let request = GetStatus {
        contributors: named(&args.pillar),
    };
    request.validate(&setup.repository).map_err(not_started)?;
    let mut session = setup.connect().await?;
    let as_json = args.client.json;
    let heading = if as_json { "" } else { HEADING };
    let show = if as_json { line } else { row };
    let client = session.client();
    let outcome = session
        .list(heading, client.get_status(request), |event| {
            match &event.kind {
                EventKind::ComponentComplete {
                    contributor,
                    result: ComponentResult::Status(status),
                } => print(&show(contributor, status)),
                _ => Ok(()),
            }
        })
        .await;
    session.close().await;
    let outcome = outcome?;
    conclude(outcome, as_json)?.told();
    Ok(())
}

/// Those that `-p` names; none: everybody.
pub(super) fn named(ids: &[String]) -> Option<Vec<ComponentId>> {
    let ids = ids.iter().map(|id| ComponentId::from(id.as_str()));
    Some(ids.collect::<Vec<_>>()).filter(|ids| !ids.is_empty())
}

fn row(from: &ComponentId, status: &ResultingStatus) -> String {
    let info = &status.status_info;
    format!(
        "{} \t{} \t{} \t{}\n",
        one_line(from),
        info.status_code,
        rfc3339(status.status_timestamp),
        in_words(&info.status_text)
    )
}

/// One component of `get-status --json`.
#[derive(Debug, serde::Serialize)]
struct Line<'a> {
    pillar: &'a str,
    code: &'a str,
    time: String,
    text: &'a str,
}

fn line(from: &ComponentId, status: &ResultingStatus) -> String {
    let info = &status.status_info;
    json::line(&Line {
        pillar: from.as_str(),
        code: info.status_code.as_str(),
        time: rfc3339(status.status_timestamp),
        text: &info.status_text,
    })
}

const HEADING: &str = "Component: \tCode: \tTime: \tText:\n";
