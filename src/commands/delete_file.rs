//! `pillarbox delete-file`.

use pillarbox_client::{ComponentResult, DeleteFile, Deleted, Outcome};
use pillarbox_messages::{CollectionId, ComponentId, FileId};

use super::{
    new_file,
    rehearsal::{Rehearsal, Would},
};
use crate::{
    args::operations::DeleteFileArgs,
    checksum_args::{self, Told},
    client_setup::{ClientSetup, Session, conclude, not_started},
    failure::Failure,
    json,
    output::{print_done, say},
};

pub(super) async fn run(args: DeleteFileArgs) -> Result<(), Failure> {
    let setup = ClientSetup::load(&args.collection.client)?;
    let request = request(&args, &setup)?;
    request.validate(&setup.repository).map_err(not_started)?;
    let json = args.collection.client.json;
    let rehearsal = args.dry_run.then(|| Rehearsal {
        collection: request.collection.clone(),
        file_id: request.file_id.clone(),
        pillar: request.pillar.clone(),
        default: setup.repository.default_checksum,
        json,
    });
    let mut session = setup.connect().await?;
    let result = match rehearsal {
        Some(rehearsal) => rehearse(&rehearsal, &request, &mut session).await,
        None => delete(request, &mut session, json).await,
    };
    session.close().await;
    result
}

async fn delete(request: DeleteFile, session: &mut Session, json: bool) -> Result<(), Failure> {
    let asked = request.request_checksum.clone();
    let file_id = request.file_id.clone();
    let client = session.client();
    let outcome = session
        .follow(client.delete_file(request), |_| Ok(()))
        .await?;
    if json {
        print_done(&lines(&outcome, &file_id))?;
    } else if asked.is_some() {
        print_done(&table(&outcome))?;
    }
    if let Some(asked) = &asked {
        let told = deletions(&outcome).filter(|(_, it)| !it.already_absent);
        let told = told.map(|(pillar, it)| Told {
            pillar,
            checksum: it.checksum.as_ref(),
            checksums_only: false,
        });
        checksum_args::tell_other_kinds(asked, &told.collect::<Vec<_>>(), None);
    }
    let outcome = conclude(outcome, json)?;
    for (pillar, deleted) in deletions(&outcome) {
        say(&if deleted.already_absent {
            format!("{file_id} already absent at {pillar}")
        } else {
            format!("{file_id} deleted from {pillar}")
        });
    }
    outcome.told();
    Ok(())
}

async fn rehearse(
    rehearsal: &Rehearsal,
    request: &DeleteFile,
    session: &mut Session,
) -> Result<(), Failure> {
    let Some(existing) = rehearsal.existing(session).await? else {
        return rehearsal.tell(Would::Nothing, None);
    };
    rehearsal.compare(&existing, request.existing_checksum.as_ref())?;
    rehearsal.tell(Would::Delete, Some(&existing))
}

fn request(args: &DeleteFileArgs, setup: &ClientSetup) -> Result<DeleteFile, Failure> {
    let default = setup.repository.default_checksum;
    let collection = CollectionId::from(args.collection.collection.as_str());
    let file_id = FileId::from(args.file_id.as_str());
    let pillar = ComponentId::from(args.pillar.as_str());
    Ok(DeleteFile {
        existing_checksum: Some(new_file::checksum_data("-C", &args.checksum, default)?),
        request_checksum: checksum_args::requested_by_type(&args.request, default)?,
        ..DeleteFile::new(collection, file_id, pillar)
    })
}

fn deletions(outcome: &Outcome) -> impl Iterator<Item = (&ComponentId, &Deleted)> {
    outcome
        .results
        .iter()
        .filter_map(|done| match &done.result {
            ComponentResult::Deleted(deleted) => Some((&done.contributor, deleted)),
            _ => None,
        })
}

fn table(outcome: &Outcome) -> String {
    let rows = deletions(outcome).filter_map(|(pillar, deleted)| {
        let checksum = deleted.checksum.as_ref()?;
        Some(format!("{pillar} \t {}\n", checksum.checksum_value))
    });
    std::iter::once("PillarId \t Checksum\n".to_owned())
        .chain(rows)
        .collect()
}

/// The pillar of `delete-file --json`.
#[derive(Debug, serde::Serialize)]
struct Line<'a> {
    file_id: &'a str,
    pillar: &'a str,
    already_absent: bool,
    checksum_type: Option<&'a str>,
    checksum: Option<String>,
}

fn lines(outcome: &Outcome, file_id: &FileId) -> String {
    let line = |(pillar, deleted): (&ComponentId, &Deleted)| {
        let checksum = deleted.checksum.as_ref();
        json::line(&Line {
            file_id: file_id.as_str(),
            pillar: pillar.as_str(),
            already_absent: deleted.already_absent,
            checksum_type: checksum.map(|it| it.checksum_spec.checksum_type.as_str()),
            checksum: checksum.map(|it| it.checksum_value.to_string()),
        })
    };
    deletions(outcome).map(line).collect()
}
