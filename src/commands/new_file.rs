//! The file that put-file and replace-file store: from this machine's disk, or on an exchange already.

use pillarbox_client::{
    Source,
    digests::{of_file, plain_spec},
};
use pillarbox_exchange::ExchangeClient;
use pillarbox_messages::{
    ChecksumData, ChecksumType, FileId, Timestamp,
    clock::{Clock as _, SystemClock},
};

use crate::{
    args::operations::SourceArgs,
    checksum_args,
    client_setup::{ClientSetup, Session, not_started},
    failure::Failure,
    output::say,
    progress::Progress,
    signals::Stop,
};

/// The id that was given, or the file's name.
pub(super) fn file_id(args: &SourceArgs, given: Option<&str>) -> Result<FileId, Failure> {
    if let Some(id) = given {
        return Ok(FileId::from(id));
    }
    let Some(path) = &args.file else {
        return Err(Failure::usage(
            "-u needs a file id; give one with -i, since an address names no file",
        ));
    };
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(FileId::from).ok_or_else(|| {
        Failure::usage(format!(
            "'{}' has no name that can be a file id; give one with -i",
            path.display()
        ))
    })
}

/// Where the file is.
///
/// # Errors
/// Nothing was said of it.
pub(super) fn source(args: &SourceArgs) -> Result<Source, Failure> {
    match (&args.file, &args.url) {
        (Some(path), _) => Ok(Source::Path(path.clone())),
        (None, Some(url)) => Ok(Source::Address {
            address: url.clone(),
            size: None,
        }),
        (None, None) => Err(Failure::usage("give the file with -f PATH or -u URL")),
    }
}

/// Whether the settings let files be moved from there.
///
/// # Errors
/// No exchange to offer a file on, or an address that this process may not use.
pub(super) fn check_source(source: &Source, setup: &ClientSetup) -> Result<(), Failure> {
    let Source::Address { address, .. } = source else {
        return setup.check_exchange();
    };
    setup.exchange()?.check(address).map_err(|error| {
        Failure::usage(format!(
            "-u: {error}; give an address that [exchange] in node.toml allows"
        ))
    })
}

/// The new file's checksum as the option of this name gives it.
///
/// # Errors
/// It is none, or it is missing for a file that only the pillars will read.
pub(super) fn checksum(
    option: &str,
    given: Option<&str>,
    source: &Source,
    default: ChecksumType,
) -> Result<Option<ChecksumData>, Failure> {
    match given {
        Some(text) => checksum_data(option, text, default).map(Some),
        None if matches!(source, Source::Address { .. }) => Err(Failure::usage(format!(
            "-u needs the file's {default} checksum; give it with {option} HEX"
        ))),
        None => Ok(None),
    }
}

/// A checksum of the repository's default type, as an option gives it.
///
/// # Errors
/// It is none.
pub(super) fn checksum_data(
    option: &str,
    text: &str,
    default: ChecksumType,
) -> Result<ChecksumData, Failure> {
    Ok(ChecksumData {
        checksum_spec: plain_spec(default),
        checksum_value: checksum_args::value(option, text, default)?,
        calculation_timestamp: Timestamp::from(SystemClock.now()),
    })
}

/// Whether a file on this machine has the checksum that the option of this name gives, before anybody is asked.
///
/// # Errors
/// It has another, or can't be read; interrupted.
pub(super) async fn compare(
    option: &str,
    source: &Source,
    given: Option<&ChecksumData>,
) -> Result<(), Failure> {
    let (Source::Path(path), Some(given)) = (source, given) else {
        return Ok(());
    };
    let mut stop = Stop::listen()?;
    let _progress = Progress::start(&format!("reading {}", path.display()));
    let found = tokio::select! {
        found = of_file(path, &given.checksum_spec) => found.map_err(not_started)?,
        () = stop.asked() => return Err(Failure::interrupted()),
    };
    let (kind, value) = (given.checksum_spec.checksum_type, &given.checksum_value);
    if found == *value {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{option}: '{}' has the {kind} {found}, not {value}; look at the file, or correct {option}",
        path.display()
    )))
}

/// Asks the exchange for the size of a file that lies there: pillars reserve room by it.
///
/// # Errors
/// It is not there; interrupted.
pub(super) async fn look_at(
    source: &mut Source,
    exchange: &ExchangeClient,
    session: &mut Session,
) -> Result<(), Failure> {
    if let Source::Address { address, size } = source {
        let asked = session.unless_stopped(exchange.size(address)).await?;
        *size = asked.map_err(|error| {
            Failure::operation(format!("-u: {error}; lay the file there first"))
        })?;
    }
    Ok(())
}

/// Removes the file from the exchange if that is wanted, now that it is stored.
pub(super) async fn tidy(args: &SourceArgs, delete: bool, exchange: &ExchangeClient) {
    if let Some(url) = args.url.as_deref().filter(|_| delete)
        && let Err(error) = exchange.delete(url).await
    {
        say(&format!("-d: {error}; the file may still lie there"));
    }
}
