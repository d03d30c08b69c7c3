//! `pillarbox put-file`.

use std::fmt::Write as _;

use pillarbox_client::{ComponentResult, Outcome, PutFile, Source, digests::plain_spec};
use pillarbox_messages::{ChecksumData, ChecksumType, FileId, Timestamp};

use crate::{
    args::PutFileArgs,
    checksum_args,
    client_setup::{ClientSetup, check, not_started},
    failure::Failure,
    output::{print, say},
    progress::Progress,
    tables,
};

pub(super) async fn run(args: PutFileArgs) -> Result<(), Failure> {
    let setup = ClientSetup::load(&args.client)?;
    let request = request(&args, &setup)?;
    request.validate(&setup.repository).map_err(not_started)?;
    setup.check_exchange()?;
    let default = setup.repository.default_checksum;
    let mut session = setup.connect().await?;
    let progress = Progress::start(&format!("storing {}", request.file_id));
    let asked = request.request_checksum.clone();
    let file_id = request.file_id.clone();
    let outcome = session
        .follow(session.client().put_file(request), |event| {
            progress.set(event);
            Ok(())
        })
        .await;
    drop(progress);
    session.close().await;
    let outcome = outcome?;
    if args.client.json {
        print(&json(&outcome, &file_id))?;
    } else if asked.is_some_and(|spec| spec != plain_spec(default)) {
        print(&table(&outcome, default))?;
    }
    check(&outcome)?;
    say(&summary(&outcome, &file_id));
    Ok(())
}

fn request(args: &PutFileArgs, setup: &ClientSetup) -> Result<PutFile, Failure> {
    let default = setup.repository.default_checksum;
    let file_id = match &args.file_id {
        Some(id) => FileId::from(id.as_str()),
        None => name_of(args)?,
    };
    let collection = ClientSetup::collection(&args.client);
    let mut request = PutFile::new(collection, file_id, Source::Path(args.file.clone()));
    if let Some(text) = &args.checksum {
        request.checksum = Some(ChecksumData {
            checksum_spec: plain_spec(default),
            checksum_value: checksum_args::value(text, default)?,
            calculation_timestamp: now(),
        });
    }
    let asked = checksum_args::requested(&args.request, default)?;
    if let Some(notice) = asked.as_ref().and_then(|asked| asked.notice.as_deref()) {
        say(notice);
    }
    request.request_checksum = Some(asked.map_or_else(|| plain_spec(default), |asked| asked.spec));
    Ok(request)
}

fn name_of(args: &PutFileArgs) -> Result<FileId, Failure> {
    let name = args.file.file_name().and_then(|name| name.to_str());
    name.map(FileId::from).ok_or_else(|| {
        Failure::usage(format!(
            "'{}' has no name that can be a file id; give one with -i",
            args.file.display()
        ))
    })
}

fn now() -> Timestamp {
    use pillarbox_messages::clock::{Clock as _, SystemClock};
    Timestamp::from(SystemClock.now())
}

/// The checksums that pillars sent back; one that had the file before tells its default checksum, without a star.
fn table(outcome: &Outcome, default: ChecksumType) -> String {
    let mut table = String::from("PillarId \t Alg \t Checksum\n");
    for done in &outcome.results {
        let ComponentResult::Stored(stored) = &done.result else {
            continue;
        };
        let Some(checksum) = &stored.checksum else {
            continue;
        };
        let (checksum_type, star) = if stored.already_there {
            (default, "")
        } else {
            (checksum.checksum_spec.checksum_type, " \t*")
        };
        let value = &checksum.checksum_value;
        let _ = writeln!(
            table,
            "{} \t {checksum_type} \t {value}{star}",
            done.contributor
        );
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

fn json(outcome: &Outcome, file_id: &FileId) -> String {
    let mut lines = String::new();
    for done in &outcome.results {
        let ComponentResult::Stored(stored) = &done.result else {
            continue;
        };
        lines.push_str(&tables::line(&Line {
            file_id: file_id.as_str(),
            pillar: done.contributor.as_str(),
            already_there: stored.already_there,
            checksum_type: stored
                .checksum
                .as_ref()
                .map(|it| it.checksum_spec.checksum_type.as_str()),
            checksum: stored
                .checksum
                .as_ref()
                .map(|it| it.checksum_value.to_string()),
        }));
    }
    lines
}

fn summary(outcome: &Outcome, file_id: &FileId) -> String {
    let stored = |already: bool| {
        let of = |result: &ComponentResult| matches!(result, ComponentResult::Stored(stored) if stored.already_there == already);
        outcome
            .results
            .iter()
            .filter(|done| of(&done.result))
            .count()
    };
    match (stored(false), stored(true)) {
        (new, 0) => format!("{file_id} stored on {new} pillars"),
        (0, old) => format!("{file_id} was there already, on {old} pillars"),
        (new, old) => format!("{file_id} stored on {new} pillars; {old} had it already"),
    }
}
