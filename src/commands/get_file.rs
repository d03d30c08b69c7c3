//! `pillarbox get-file`.

use std::path::{Path, PathBuf};

use pillarbox_client::GetFile;
use pillarbox_messages::{ComponentId, FileId};

use crate::{
    args::GetFileArgs,
    client_setup::{ClientSetup, check, not_started},
    failure::Failure,
    output::print,
    progress::Progress,
    tables,
};

pub(super) async fn run(args: GetFileArgs) -> Result<(), Failure> {
    let setup = ClientSetup::load(&args.client)?;
    let collection = ClientSetup::collection(&args.client);
    let file_id = FileId::from(args.file_id.as_str());
    let mut request = GetFile::new(collection, file_id.clone(), target(&args));
    request.pillar = args.pillar.as_deref().map(ComponentId::from);
    request.validate(&setup.repository).map_err(not_started)?;
    setup.check_exchange()?;
    let mut session = setup.connect().await?;
    let progress = Progress::start(&format!("fetching {file_id}"));
    let outcome = session
        .follow(session.client().get_file(request), |event| {
            progress.set(event);
            Ok(())
        })
        .await;
    drop(progress);
    session.close().await;
    check(&outcome?)?;
    if args.client.json {
        let path = target(&args);
        print(&tables::line(&Line {
            file_id: file_id.as_str(),
            path: &path.to_string_lossy(),
        }))
    } else {
        print(&format!("{file_id} retrieved\n"))
    }
}

/// One line of `get-file --json`.
#[derive(Debug, serde::Serialize)]
struct Line<'a> {
    file_id: &'a str,
    path: &'a str,
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
