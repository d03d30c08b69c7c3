//! `pillarbox replace-file`.

mod comparison;

use pillarbox_client::{ComponentResult, Outcome, ReplaceFile, Replaced};
use pillarbox_exchange::ExchangeClient;
use pillarbox_messages::{ChecksumData, CollectionId, ComponentId, FileId, ResponseCode};

use self::comparison::{Comparison, New};
use super::{
    new_file,
    rehearsal::{Rehearsal, Would},
};
use crate::{
    args::operations::ReplaceFileArgs,
    checksum_args::{self, Told},
    client_setup::{ClientSetup, Session, conclude, not_started},
    failure::Failure,
    json,
    output::{print_done, say},
};

pub(super) async fn run(args: ReplaceFileArgs) -> Result<(), Failure> {
    let setup = ClientSetup::load(&args.collection.client)?;
    let request = request(&args, &setup)?;
    request.validate(&setup.repository).map_err(not_started)?;
    new_file::check_source(&request.source, &setup)?;
    new_file::compare("-r", &request.source, request.checksum.as_ref()).await?;
    let exchange = setup.exchange()?;
    let rehearsal = Rehearsal {
        collection: request.collection.clone(),
        file_id: request.file_id.clone(),
        pillar: request.pillar.clone(),
        default: setup.repository.default_checksum,
        json: args.collection.client.json,
    };
    let mut session = setup.connect().await?;
    let result = if args.dry_run {
        rehearse(&rehearsal, request, &exchange, &mut session).await
    } else {
        replace(&rehearsal, request, &exchange, &mut session).await
    };
    session.close().await;
    result?;
    new_file::tidy(&args.source, args.delete && !args.dry_run, &exchange).await;
    Ok(())
}

async fn replace(
    rehearsal: &Rehearsal,
    mut request: ReplaceFile,
    exchange: &ExchangeClient,
    session: &mut Session,
) -> Result<(), Failure> {
    let json = rehearsal.json;
    new_file::look_at(&mut request.source, exchange, session).await?;
    let asked = request.request_checksum.clone();
    let file_id = request.file_id.clone();
    let client = session.client();
    let outcome = session
        .transfer(
            &format!("replacing {file_id}"),
            client.replace_file(request.clone()),
        )
        .await?;
    if is_not_meant(&outcome) && is_there(rehearsal, &request, session).await {
        tell_already_there(rehearsal)?;
        outcome.told();
        return Ok(());
    }
    if json {
        print_done(&lines(&outcome, &file_id))?;
    } else if asked.is_some() {
        print_done(&table(&outcome))?;
    }
    if let Some(asked) = &asked {
        let told = replacements(&outcome).map(|(pillar, it)| Told {
            pillar,
            checksum: it.new.as_ref(),
            checksums_only: it.checksums_only,
        });
        let file = (&rehearsal.collection, &file_id);
        checksum_args::tell_other_kinds(asked, &told.collect::<Vec<_>>(), Some(file));
    }
    let outcome = conclude(outcome, json)?;
    for (pillar, replaced) in replacements(&outcome) {
        say(&match replaced.already_there {
            Some(true) => already_there(pillar, &file_id),
            Some(false) => format!("{file_id} replaced at {pillar}"),
            None => format!("{pillar} has the new {file_id}"),
        });
    }
    outcome.told();
    Ok(())
}

/// The pillar has refused because its file is not the given old one.
fn is_not_meant(outcome: &Outcome) -> bool {
    let code = Some(ResponseCode::ExistingFileChecksumFailure);
    outcome.failures.iter().any(|failure| failure.code == code)
}

/// Whether a pillar that refuses has the new file already, which those of other makes do not look for.
async fn is_there(rehearsal: &Rehearsal, request: &ReplaceFile, session: &mut Session) -> bool {
    let compared = async {
        let new = New::of(request, rehearsal.default, session).await?;
        Comparison::of(rehearsal, None, &new, session).await
    };
    match compared.await {
        Ok(found) => found.is_some_and(|it| it.is_new),
        // Whatever keeps this from being known, the refusal is what is told.
        Err(failure) => {
            failure.pass_over();
            false
        }
    }
}

fn tell_already_there(rehearsal: &Rehearsal) -> Result<(), Failure> {
    let (file_id, pillar) = (&rehearsal.file_id, &rehearsal.pillar);
    if rehearsal.json {
        print_done(&json::line(&Line {
            file_id: file_id.as_str(),
            pillar: pillar.as_str(),
            already_there: Some(true),
            checksum_type: None,
            replaced_checksum: None,
            checksum: None,
        }))?;
    }
    say(&already_there(pillar, file_id));
    Ok(())
}

fn already_there(pillar: &ComponentId, file_id: &FileId) -> String {
    format!("{pillar} had the new {file_id} already")
}

async fn rehearse(
    rehearsal: &Rehearsal,
    mut request: ReplaceFile,
    exchange: &ExchangeClient,
    session: &mut Session,
) -> Result<(), Failure> {
    new_file::look_at(&mut request.source, exchange, session).await?;
    let new = New::of(&request, rehearsal.default, session).await?;
    let old = request.existing_checksum.as_ref();
    let old_value = old.map(|old| &old.checksum_value);
    let Some(found) = Comparison::of(rehearsal, old_value, &new, session).await? else {
        let why = format!("it has no {}; store it with put-file", request.file_id);
        return Err(rehearsal.refused(ResponseCode::FileNotFoundFailure, &why));
    };
    let existing = &found.existing;
    if found.is_new {
        return rehearsal.tell(Would::Nothing, Some(existing));
    }
    rehearsal.compare(existing, old)?;
    if let Some(why) = comparison::wrong_at_address(&request, exchange, session).await? {
        return Err(rehearsal.refused(ResponseCode::NewFileChecksumFailure, &why));
    }
    rehearsal.tell(Would::Replace, Some(existing))
}

fn request(args: &ReplaceFileArgs, setup: &ClientSetup) -> Result<ReplaceFile, Failure> {
    let default = setup.repository.default_checksum;
    let collection = CollectionId::from(args.collection.collection.as_str());
    let file_id = new_file::file_id(&args.source, args.file_id.as_deref())?;
    let pillar = ComponentId::from(args.pillar.as_str());
    let source = new_file::source(&args.source)?;
    let existing = args.checksum.as_deref();
    let existing = existing.map(|text| new_file::checksum_data("-C", text, default));
    let checksum = new_file::checksum("-r", args.new_checksum.as_deref(), &source, default)?;
    let asked = checksum_args::requested_by_type(&args.request, default)?;
    Ok(ReplaceFile {
        existing_checksum: existing.transpose()?,
        checksum,
        request_existing_checksum: asked.clone(),
        request_checksum: asked,
        ..ReplaceFile::new(collection, file_id, pillar, source)
    })
}

fn replacements(outcome: &Outcome) -> impl Iterator<Item = (&ComponentId, &Replaced)> {
    outcome
        .results
        .iter()
        .filter_map(|done| match &done.result {
            ComponentResult::Replaced(replaced) => Some((&done.contributor, replaced)),
            _ => None,
        })
}

fn table(outcome: &Outcome) -> String {
    let cell = |what: &str, checksum: &Option<ChecksumData>| {
        let value = checksum.as_ref().map(|it| &it.checksum_value);
        value.map_or_else(String::new, |value| {
            format!("Checksum for {what} file: {value}\t")
        })
    };
    let rows = replacements(outcome).map(|(pillar, replaced)| {
        let (old, new) = (
            cell("replaced", &replaced.existing),
            cell("new", &replaced.new),
        );
        format!("{pillar} : \t{old}{new}\n")
    });
    std::iter::once("PillarId results\n".to_owned())
        .chain(rows)
        .collect()
}

/// The pillar of `replace-file --json`.
#[derive(Debug, serde::Serialize)]
struct Line<'a> {
    file_id: &'a str,
    pillar: &'a str,
    already_there: Option<bool>,
    checksum_type: Option<&'a str>,
    replaced_checksum: Option<String>,
    checksum: Option<String>,
}

fn lines(outcome: &Outcome, file_id: &FileId) -> String {
    let value =
        |checksum: &Option<ChecksumData>| checksum.as_ref().map(|it| it.checksum_value.to_string());
    let line = |(pillar, replaced): (&ComponentId, &Replaced)| {
        let told = replaced.new.as_ref().or(replaced.existing.as_ref());
        json::line(&Line {
            file_id: file_id.as_str(),
            pillar: pillar.as_str(),
            already_there: replaced.already_there,
            checksum_type: told.map(|it| it.checksum_spec.checksum_type.as_str()),
            replaced_checksum: value(&replaced.existing),
            checksum: value(&replaced.new),
        })
    };
    replacements(outcome).map(line).collect()
}
