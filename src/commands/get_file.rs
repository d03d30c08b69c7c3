//! `pillarbox get-file`.

use std::path::{Path, PathBuf};

use pillarbox_client::{ComponentFailure, ComponentResult, GetFile, Outcome, event::Completed};
use pillarbox_messages::{CollectionId, ComponentId, FileId};

use crate::{
    args::operations::GetFileArgs,
    client_setup::{ClientSetup, conclude, not_started},
    failure::Failure,
    json,
    output::{in_words, one_line, print_done, say},
};

pub(super) async fn run(args: GetFileArgs) -> Result<(), Failure> {
    let setup = ClientSetup::load(&args.collection.client)?;
    let request = request(&args);
    request.validate(&setup.repository).map_err(not_started)?;
    setup.check_exchange()?;
    let (file_id, target) = (request.file_id.clone(), request.target.clone());
    let offset = request.part.as_ref().map_or(0, |part| part.part_offset);
    let mut session = setup.connect().await?;
    let client = session.client();
    let outcome = session
        .transfer(&format!("fetching {file_id}"), client.get_file(request))
        .await;
    session.close().await;
    let outcome = outcome?;
    let as_json = args.collection.client.json;
    if as_json {
        print_done(&lines(&outcome, &file_id, &target, offset))?;
    }
    let outcome = conclude(outcome, as_json)?;
    tell_stood_in_for(&outcome.results, &outcome.failures);
    let summary = format!("{} retrieved", one_line(&file_id));
    if as_json {
        say(&summary);
    } else {
        print_done(&format!("{summary}\n"))?;
    }
    tell_replaced(&outcome.results, Some(&target));
    outcome.told();
    Ok(())
}

/// Says that a file took the place of another one at its target, if it did.
pub(super) fn tell_replaced(results: &[Completed], target: Option<&Path>) {
    let replaced = results.iter().any(
        |done| matches!(&done.result, ComponentResult::Delivered(delivered) if delivered.replaced),
    );
    if let Some(target) = target.filter(|_| replaced) {
        let place = one_line(target.display());
        say(&format!("'{place}' was there before and has been replaced"));
    }
}

/// Says which pillars did not deliver the file, why, and which one did in their place.
pub(super) fn tell_stood_in_for(results: &[Completed], failures: &[ComponentFailure]) {
    let Some(Completed { contributor, .. }) = results
        .iter()
        .find(|done| matches!(done.result, ComponentResult::Delivered(_)))
    else {
        return;
    };
    for failure in failures {
        let failure = in_words(&failure.to_string());
        say(&format!("{failure}; took the file from {contributor}"));
    }
}

fn request(args: &GetFileArgs) -> GetFile {
    let collection = CollectionId::from(args.collection.collection.as_str());
    let file_id = FileId::from(args.file_id.as_str());
    GetFile {
        part: args.part.clone(),
        pillar: args.pillar.as_deref().map(ComponentId::from),
        ..GetFile::new(collection, file_id, target(args))
    }
}

/// The file of `get-file --json`.
#[derive(Debug, serde::Serialize)]
struct Line<'a> {
    file_id: &'a str,
    pillar: &'a str,
    path: &'a str,
    offset: u64,
    size: u64,
    checksum_type: Option<&'a str>,
    checksum: Option<String>,
}

fn lines(outcome: &Outcome, file_id: &FileId, path: &Path, offset: u64) -> String {
    let mut lines = String::new();
    for done in &outcome.results {
        let ComponentResult::Delivered(delivered) = &done.result else {
            continue;
        };
        let checksum = delivered.checksum.as_ref();
        lines.push_str(&json::line(&Line {
            file_id: file_id.as_str(),
            pillar: done.contributor.as_str(),
            path: &path.to_string_lossy(),
            offset,
            size: delivered.size,
            checksum_type: checksum.map(|it| it.checksum_spec.checksum_type.as_str()),
            checksum: checksum.map(|it| it.checksum_value.to_string()),
        }));
    }
    lines
}

/// Whoever writes a slash at the end means a directory, also one that is not there.
fn ends_with_slash(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// A directory gets the file under the last part of its id.
fn target(args: &GetFileArgs) -> PathBuf {
    let name = args.file_id.rsplit('/').next().unwrap_or(&args.file_id);
    match &args.location {
        None => PathBuf::from(name),
        Some(location) if location.is_dir() || ends_with_slash(location) => location.join(name),
        Some(location) => location.clone(),
    }
}
