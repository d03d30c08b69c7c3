//! `pillarbox up`: a whole repository on this machine, until it is told to stop.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::node::{start_from, stay};
use crate::{
    args::UpArgs,
    failure::Failure,
    output::{own_program, quoted},
    signals::Stop,
    starter::{self, COLLECTION, NODE_FILE, Ports, REPOSITORY_FILE},
};

pub(super) async fn run(args: UpArgs) -> Result<(), Failure> {
    let mut stop = Stop::listen()?;
    let temporary;
    let directory = match args.dir {
        Some(directory) => prepare(directory)?,
        None => {
            temporary = tempfile::Builder::new().prefix("pillarbox-up-").tempdir();
            let directory = temporary.as_ref().map_err(|error| {
                Failure::operation(format!(
                    "no temporary directory: {error}; name one with --dir"
                ))
            })?;
            prepare(directory.path().to_owned())?
        }
    };
    let Some(node) = start_from(&directory, &mut stop).await? else {
        return Ok(());
    };
    stay(node, &greeting(&directory), &mut stop).await
}

/// Settings are made where there are none; existing ones are used as they are.
fn prepare(directory: PathBuf) -> Result<PathBuf, Failure> {
    let failed = |error: io::Error| {
        Failure::usage(format!(
            "--dir {}: {error}; name a directory that can be written",
            directory.display()
        ))
    };
    let present = [REPOSITORY_FILE, NODE_FILE].map(|file| directory.join(file).exists());
    match present {
        [true, true] => {}
        [false, false] => {
            fs::create_dir_all(&directory).map_err(failed)?;
            let ports = Ports::public().map_err(failed)?;
            starter::write_settings(&directory, ports, None).map_err(failed)?;
        }
        [has_repository, _] => {
            let missing = if has_repository {
                NODE_FILE
            } else {
                REPOSITORY_FILE
            };
            return Err(Failure::usage(format!(
                "--dir {}: {missing} is missing; add it, or name a new directory",
                directory.display()
            )));
        }
    }
    directory.canonicalize().map_err(failed)
}

/// What to try from another terminal.
fn greeting(directory: &Path) -> String {
    let program = own_program();
    let settings = quoted(&directory.to_string_lossy());
    let of = |command: &str, rest: &str| {
        format!("  {program} {command} -s {settings} -c {COLLECTION}{rest}\n")
    };
    let mut text = String::from("Try from another terminal:\n");
    text.push_str(&of("put-file", " -f FILE"));
    text.push_str(&of("get-file-ids", ""));
    text.push_str(&of("get-checksums", ""));
    text.push_str(&of("get-file", " -i FILE -l COPY"));
    text.push_str(&format!("  {program} alarms list -s {settings}\n"));
    text.push_str("Ctrl-C stops it.\nready\n");
    text
}
