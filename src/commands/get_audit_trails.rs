//! `pillarbox get-audit-trails`.

use pillarbox_client::{ComponentResult, EventKind, GetAuditTrails};
use pillarbox_messages::{AuditTrailEvent, CollectionId, ComponentId, FileId};

use super::get_status::named;
use crate::{
    args::operations::GetAuditTrailsArgs,
    client_setup::{ClientSetup, conclude, not_started},
    failure::Failure,
    json,
    output::{in_words, one_line, print, rfc3339},
};

pub(super) async fn run(args: GetAuditTrailsArgs) -> Result<(), Failure> {
    let setup = ClientSetup::load(&args.collection.client)?;
    let request = request(&args);
    request.validate(&setup.repository).map_err(not_started)?;
    let mut session = setup.connect().await?;
    let as_json = args.collection.client.json;
    let heading = if as_json { "" } else { HEADING };
    let show = if as_json { line } else { row };
    let client = session.client();
    let outcome = session
        .list(
            heading,
            client.get_audit_trails(request),
            |event| match &event.kind {
                EventKind::Progress {
                    contributor,
                    result: Some(ComponentResult::AuditTrails(page)),
                }
                | EventKind::ComponentComplete {
                    contributor,
                    result: ComponentResult::AuditTrails(page),
                } => {
                    let rows = page.items.iter().map(|noted| show(contributor, noted));
                    print(&rows.collect::<String>())
                }
                _ => Ok(()),
            },
        )
        .await;
    session.close().await;
    let outcome = outcome?;
    conclude(outcome, as_json)?.told();
    Ok(())
}

fn request(args: &GetAuditTrailsArgs) -> GetAuditTrails {
    let mut request = GetAuditTrails::new(CollectionId::from(args.collection.collection.as_str()));
    request.contributors = named(&args.pillar);
    request.file_id = args.file_id.as_deref().map(FileId::from);
    request.first = args.first;
    request.last = args.last;
    request.min_time = args.min_time;
    request.max_time = args.max_time;
    if let Some(size) = args.max_page_size {
        request.page_size = size;
    }
    request
}

/// Components write an empty element where they have nothing to say.
fn told(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

fn row(from: &ComponentId, noted: &AuditTrailEvent) -> String {
    let text = |text: &Option<String>| told(text).map_or_else(|| "-".to_owned(), in_words);
    format!(
        "{} \t{} \t{} \t{} \t{} \t{} \t{} \t{} \t{}\n",
        one_line(from),
        noted.sequence_number,
        rfc3339(noted.action_date_time),
        noted.action_on_file,
        in_words(&noted.actor_on_file),
        one_line(&noted.file_id),
        text(&noted.operation_id),
        text(&noted.info),
        text(&noted.audit_trail_information),
    )
}

/// One event of `get-audit-trails --json`.
#[derive(Debug, serde::Serialize)]
struct Line<'a> {
    pillar: &'a str,
    number: u64,
    time: String,
    action: &'a str,
    actor: &'a str,
    file_id: &'a str,
    operation_id: Option<&'a str>,
    info: Option<&'a str>,
    audit_information: Option<&'a str>,
    certificate_id: Option<&'a str>,
    reporting_component: &'a str,
}

fn line(from: &ComponentId, noted: &AuditTrailEvent) -> String {
    json::line(&Line {
        pillar: from.as_str(),
        number: noted.sequence_number.get(),
        time: rfc3339(noted.action_date_time),
        action: noted.action_on_file.as_str(),
        actor: &noted.actor_on_file,
        file_id: noted.file_id.as_str(),
        operation_id: told(&noted.operation_id),
        info: told(&noted.info),
        audit_information: told(&noted.audit_trail_information),
        certificate_id: told(&noted.certificate_id),
        reporting_component: noted.reporting_component.as_str(),
    })
}

const HEADING: &str = "Contributor: \tNumber: \tTime: \tAction: \tActor: \tFileID: \tOperationID: \tInfo: \tAuditInformation:\n";
