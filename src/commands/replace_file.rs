//! `pillarbox replace-file`.

use pillarbox_client::{
    ComponentResult, Outcome, ReplaceFile, Replaced, Source,
    digests::{of_file, plain_spec},
};
use pillarbox_exchange::ExchangeClient;
use pillarbox_messages::{ChecksumData, CollectionId, ComponentId, FileId, ResponseCode};

use super::{
    new_file,
    rehearsal::{Rehearsal, Would},
};
use crate::{
    args::operations::ReplaceFileArgs,
    checksum_args,
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
    if !args.dry_run {
        new_file::compare("-r", &request.source, request.checksum.as_ref()).await?;
    }
    let exchange = setup.exchange()?;
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
        Some(rehearsal) => rehearse(&rehearsal, request, &exchange, &mut session).await,
        None => replace(request, &exchange, &mut session, json).await,
    };
    session.close().await;
    result?;
    new_file::tidy(&args.source, args.delete && !args.dry_run, &exchange).await;
    Ok(())
}

async fn replace(
    mut request: ReplaceFile,
    exchange: &ExchangeClient,
    session: &mut Session,
    json: bool,
) -> Result<(), Failure> {
    new_file::look_at(&mut request.source, exchange, session).await?;
    let asked = request.request_checksum.clone();
    let file_id = request.file_id.clone();
    let client = session.client();
    let outcome = session
        .transfer(
            &format!("replacing {file_id}"),
            client.replace_file(request),
        )
        .await?;
    if json {
        print_done(&lines(&outcome, &file_id))?;
    } else if asked.is_some() {
        print_done(&table(&outcome))?;
    }
    if let Some(asked) = &asked {
        let told = replacements(&outcome).map(|(pillar, it)| (pillar, it.new.as_ref()));
        checksum_args::tell_other_kinds(asked, told, true);
    }
    conclude(&outcome, json)?;
    for (pillar, replaced) in replacements(&outcome) {
        say(&if replaced.already_there {
            format!("{pillar} had the new {file_id} already")
        } else {
            format!("{file_id} replaced at {pillar}")
        });
    }
    Ok(())
}

async fn rehearse(
    rehearsal: &Rehearsal,
    mut request: ReplaceFile,
    exchange: &ExchangeClient,
    session: &mut Session,
) -> Result<(), Failure> {
    new_file::look_at(&mut request.source, exchange, session).await?;
    let Some(existing) = rehearsal.existing(session).await? else {
        let why = format!("it has no {}; store it with put-file", request.file_id);
        return Err(rehearsal.refused(ResponseCode::FileNotFoundFailure, &why));
    };
    let given = request.checksum.as_ref().map(|given| &given.checksum_value);
    let new = match &request.source {
        Source::Address { .. } => given.cloned(),
        Source::Path(path) => {
            let spec = plain_spec(rehearsal.default);
            let read = session.unless_stopped(of_file(path, &spec)).await?;
            Some(read.map_err(Failure::operation)?)
        }
    };
    if new.as_ref() == Some(&existing) {
        return rehearsal.tell(Would::Nothing, Some(&existing));
    }
    if let Some((given, new)) = given.zip(new.as_ref()).filter(|(given, new)| given != new) {
        let why = format!("the new file has the checksum {new}, not {given} (-r)");
        return Err(rehearsal.refused(ResponseCode::NewFileChecksumFailure, &why));
    }
    rehearsal.compare(&existing, request.existing_checksum.as_ref())?;
    rehearsal.tell(Would::Replace, Some(&existing))
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
    already_there: bool,
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
