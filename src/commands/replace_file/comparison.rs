//! Whether a pillar has the new file already, by what can be asked of it.
//!
//! A pillar that does not see at once that the old file is meant and the new one is another looks at its bytes before
//! it does anything, since its index may be wrong about them. GetChecksums of the default type tells what the index
//! has; of another type, what the bytes are.

use std::path::Path;

use pillarbox_client::{
    ReplaceFile, Source,
    digests::{Hasher, of_file, plain_spec},
};
use pillarbox_exchange::{ExchangeClient, ExchangeError};
use pillarbox_messages::{ChecksumType, HexBinary};

use crate::{
    client_setup::Session,
    commands::rehearsal::{Rehearsal, Told},
    failure::Failure,
    progress::Progress,
};

/// The new file.
#[derive(Debug)]
pub(super) struct New<'a> {
    /// Its checksum of the default type, as the pillar is told it.
    checksum: Option<HexBinary>,
    /// Where it is, if it is on this machine.
    path: Option<&'a Path>,
}

impl<'a> New<'a> {
    /// Reads it, if it is on this machine and its checksum was not given.
    ///
    /// # Errors
    /// It can't be read; interrupted.
    pub(super) async fn of(
        request: &'a ReplaceFile,
        default: ChecksumType,
        session: &mut Session,
    ) -> Result<Self, Failure> {
        let path = match &request.source {
            Source::Address { .. } => None,
            Source::Path(path) => Some(path.as_path()),
        };
        let given = request.checksum.as_ref();
        let checksum = match (given, path) {
            (Some(given), _) => Some(given.checksum_value.clone()),
            (None, Some(path)) => Some(checksum_of(path, default, session).await?),
            (None, None) => None,
        };
        Ok(Self { checksum, path })
    }

    /// Whether it may be the file of this checksum of the default type.
    fn has(&self, existing: &HexBinary) -> bool {
        self.checksum.as_ref() == Some(existing)
    }
}

async fn checksum_of(
    path: &Path,
    checksum_type: ChecksumType,
    session: &mut Session,
) -> Result<HexBinary, Failure> {
    let spec = plain_spec(checksum_type);
    let read = session.unless_stopped(of_file(path, &spec)).await?;
    read.map_err(Failure::operation)
}

/// What a pillar has.
#[derive(Debug)]
pub(super) struct Comparison {
    /// Its file's checksum of the default type, as the pillar knows it.
    pub(super) existing: HexBinary,
    /// Whether the file is the new one.
    pub(super) is_new: bool,
}

impl Comparison {
    /// Finds out as much as the pillar does itself before it replaces the file; none if it has no such file.
    ///
    /// # Errors
    /// It did not say; the new file can't be read; interrupted.
    pub(super) async fn of(
        rehearsal: &Rehearsal,
        old: Option<&HexBinary>,
        new: &New<'_>,
        session: &mut Session,
    ) -> Result<Option<Self>, Failure> {
        let Some(existing) = rehearsal.existing(session).await? else {
            return Ok(None);
        };
        let meant = old.is_none_or(|old| *old == existing);
        if meant && !new.has(&existing) {
            return Ok(Some(Self {
                existing,
                is_new: false,
            }));
        }
        let other = other_than(rehearsal.default);
        let bytes = match rehearsal.told(session, other).await? {
            Told::Absent => return Ok(None),
            Told::Checksum(bytes) => Some(bytes),
            // It has no bytes that its index could be wrong about.
            Told::Nothing => None,
        };
        // It may know better by now.
        let Some(existing) = rehearsal.existing(session).await? else {
            return Ok(None);
        };
        let mut is_new = new.has(&existing);
        if let (true, Some(bytes), Some(path)) = (is_new, bytes, new.path) {
            is_new = bytes == checksum_of(path, other, session).await?;
        }
        Ok(Some(Self { existing, is_new }))
    }
}

/// What is wrong with the new file where it lies on an exchange, if it has not the checksum that was given: the pillar
/// finds that out when it fetches the file.
///
/// # Errors
/// It can't be fetched; interrupted.
pub(super) async fn wrong_at_address(
    request: &ReplaceFile,
    exchange: &ExchangeClient,
    session: &mut Session,
) -> Result<Option<String>, Failure> {
    let (Source::Address { address, .. }, Some(given)) = (&request.source, &request.checksum)
    else {
        return Ok(None);
    };
    let mut hasher = Hasher::new(&given.checksum_spec).map_err(Failure::operation)?;
    let _progress = Progress::start(&format!("reading {address}"));
    let reading = async {
        let mut download = exchange.get(address).await?;
        while let Some(bytes) = download.chunk().await? {
            hasher.update(&bytes);
        }
        Ok::<_, ExchangeError>(hasher.finish())
    };
    let found = session.unless_stopped(reading).await?;
    let found = found.map_err(|error| Failure::operation(format!("-u: {error}")))?;
    let (kind, value) = (given.checksum_spec.checksum_type, &given.checksum_value);
    Ok((found != *value).then(|| {
        format!("what lies at -u has the {kind} {found}, not {value}; look at it, or correct -r")
    }))
}

/// A type of checksum that no index of this repository has.
const fn other_than(default: ChecksumType) -> ChecksumType {
    match default {
        ChecksumType::Sha256 => ChecksumType::Sha512,
        _ => ChecksumType::Sha256,
    }
}
