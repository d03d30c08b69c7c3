//! `pillarbox put-file`.

use std::fmt::Write as _;

use pillarbox_client::{ComponentResult, Outcome, PutFile, Stored, digests::plain_spec};
use pillarbox_messages::{ChecksumType, CollectionId, ComponentId, FileId, wording::count};

use super::new_file;
use crate::{
    args::operations::PutFileArgs,
    checksum_args::{self, Told},
    client_setup::{ClientSetup, Followed, Session, conclude, not_started},
    failure::Failure,
    json,
    output::{print_done, say},
};

pub(super) async fn run(args: PutFileArgs) -> Result<(), Failure> {
    let setup = ClientSetup::load(&args.collection.client)?;
    let mut request = request(&args, &setup)?;
    request.validate(&setup.repository).map_err(not_started)?;
    new_file::check_source(&request.source, &setup)?;
    new_file::compare("-C", &request.source, request.checksum.as_ref()).await?;
    let exchange = setup.exchange()?;
    let default = setup.repository.default_checksum;
    let asked = request.request_checksum.clone();
    let file_id = request.file_id.clone();
    let collection = request.collection.clone();
    let mut session = setup.connect().await?;
    let outcome = match new_file::look_at(&mut request.source, &exchange, &mut session).await {
        Ok(()) => put(&mut session, request).await,
        Err(failure) => Err(failure),
    };
    session.close().await;
    let outcome = outcome?;
    let as_json = args.collection.client.json;
    if as_json {
        print_done(&lines(&outcome, &file_id))?;
    } else if asked
        .as_ref()
        .is_some_and(|spec| *spec != plain_spec(default))
    {
        print_done(&table(&outcome, default))?;
    }
    if args.request.is_given()
        && let Some(asked) = &asked
    {
        let told = stored(&outcome).map(|(pillar, stored)| Told {
            pillar,
            checksum: stored.checksum.as_ref(),
            checksums_only: stored.checksums_only,
        });
        checksum_args::tell_other_kinds(
            asked,
            &told.collect::<Vec<_>>(),
            Some((&collection, &file_id)),
        );
    }
    let outcome = conclude(outcome, as_json)?;
    new_file::tidy(&args.source, args.delete, &exchange).await;
    say(&summary(&outcome, &file_id));
    outcome.told();
    Ok(())
}

async fn put(session: &mut Session, request: PutFile) -> Result<Followed, Failure> {
    let what = format!("storing {}", request.file_id);
    let client = session.client();
    session.transfer(&what, client.put_file(request)).await
}

fn request(args: &PutFileArgs, setup: &ClientSetup) -> Result<PutFile, Failure> {
    let default = setup.repository.default_checksum;
    let file_id = new_file::file_id(&args.source, args.file_id.as_deref())?;
    let collection = CollectionId::from(args.collection.collection.as_str());
    let source = new_file::source(&args.source)?;
    let checksum = new_file::checksum("-C", args.checksum.as_deref(), &source, default)?;
    let asked = checksum_args::requested(&args.request, default)?;
    if let Some(notice) = asked.as_ref().and_then(|asked| asked.notice.as_deref()) {
        say(notice);
    }
    Ok(PutFile {
        checksum,
        request_checksum: Some(asked.map_or_else(|| plain_spec(default), |asked| asked.spec)),
        retries: args.retries,
        partial_allowed: !args.no_partial,
        ..PutFile::new(collection, file_id, source)
    })
}

fn stored(outcome: &Outcome) -> impl Iterator<Item = (&ComponentId, &Stored)> {
    outcome
        .results
        .iter()
        .filter_map(|done| match &done.result {
            ComponentResult::Stored(stored) => Some((&done.contributor, stored)),
            _ => None,
        })
}

/// The checksums that pillars sent back; one that had the file before tells its default checksum, without a star.
fn table(outcome: &Outcome, default: ChecksumType) -> String {
    let mut table = String::from("PillarId \t Alg \t Checksum\n");
    for (pillar, stored) in stored(outcome) {
        let Some(checksum) = &stored.checksum else {
            continue;
        };
        let (checksum_type, star) = if stored.already_there {
            (default, "")
        } else {
            (checksum.checksum_spec.checksum_type, " \t*")
        };
        let value = &checksum.checksum_value;
        let _ = writeln!(table, "{pillar} \t {checksum_type} \t {value}{star}");
    }
    table
}

/// One pillar of `put-file --json`.
#[derive(Debug, serde::Serialize)]
struct Line<'a> {
    file_id: &'a str,
    pillar: &'a str,
    already_there: bool,
    checksum_type: Option<&'a str>,
    checksum: Option<String>,
}

fn lines(outcome: &Outcome, file_id: &FileId) -> String {
    let mut lines = String::new();
    for (pillar, stored) in stored(outcome) {
        let checksum = stored.checksum.as_ref();
        lines.push_str(&json::line(&Line {
            file_id: file_id.as_str(),
            pillar: pillar.as_str(),
            already_there: stored.already_there,
            checksum_type: checksum.map(|it| it.checksum_spec.checksum_type.as_str()),
            checksum: checksum.map(|it| it.checksum_value.to_string()),
        }));
    }
    lines
}

fn summary(outcome: &Outcome, file_id: &FileId) -> String {
    let pillars = |already: bool| {
        stored(outcome)
            .filter(|(_, stored)| stored.already_there == already)
            .count()
    };
    match (pillars(false), pillars(true)) {
        (new, 0) => format!("{file_id} stored on {}", count(new, "pillar")),
        (0, old) => format!("{file_id} was there already, on {}", count(old, "pillar")),
        (new, old) => format!(
            "{file_id} stored on {}; {old} had it already",
            count(new, "pillar")
        ),
    }
}
