//! Checks that need no bus: what can be known to be wrong before anything is sent.

use std::{
    collections::BTreeSet,
    fmt::Display,
    fs::{self, File, FileType},
    io,
    path::Path,
};

use pillarbox_messages::{
    ChecksumData, ChecksumSpec, CollectionId, ComponentId, FileId, HexBinary,
    file_id::ArchiveFileId,
};
use pillarbox_settings::{Collection, Repository};

use crate::{
    digests::{Hasher, is_keyed, length},
    error::ClientError,
    request::Source,
};

/// The collection of this id.
///
/// # Errors
/// There is none.
pub fn collection<'a>(
    repository: &'a Repository,
    id: &CollectionId,
) -> Result<&'a Collection, ClientError> {
    repository
        .collection(id)
        .ok_or_else(|| ClientError::UnknownCollection {
            collection: id.clone(),
            known: list(
                repository
                    .collections
                    .iter()
                    .map(|collection| &collection.id),
            ),
        })
}

/// A file id by the built-in rules and the repository's pattern.
///
/// # Errors
/// It breaks one of them.
pub fn file_id(repository: &Repository, id: &FileId) -> Result<(), ClientError> {
    ArchiveFileId::new(id, repository.file_id_pattern.as_ref())
        .map(|_| ())
        .map_err(|source| ClientError::FileId {
            file: id.clone(),
            source,
        })
}

/// Whether the pillar belongs to the collection.
///
/// # Errors
/// It doesn't.
pub fn pillar(collection: &Collection, id: &ComponentId) -> Result<(), ClientError> {
    if collection.pillars.contains(id) {
        return Ok(());
    }
    Err(ClientError::UnknownPillar {
        pillar: id.clone(),
        collection: collection.id.clone(),
        known: list(&collection.pillars),
    })
}

/// Whether a checksum can be computed this way: a known type, with a key exactly if it needs one.
///
/// # Errors
/// It can't.
pub fn checksum_spec(spec: &ChecksumSpec) -> Result<(), ClientError> {
    let salted = spec
        .checksum_salt
        .as_ref()
        .is_some_and(|salt| !salt.as_bytes().is_empty());
    let problem = match (is_keyed(spec.checksum_type), salted) {
        (true, false) => "needs a salt",
        (false, true) => "has no salt",
        _ => return Hasher::new(spec).map(|_| ()).map_err(ClientError::from),
    };
    Err(ClientError::ChecksumSalt {
        checksum_type: spec.checksum_type.to_string(),
        problem,
    })
}

/// Whether a checksum has the length that its type has.
///
/// # Errors
/// It hasn't, or the type is none that can be computed.
pub fn checksum_value(spec: &ChecksumSpec, value: &HexBinary) -> Result<(), ClientError> {
    checksum_spec(spec)?;
    match length(spec.checksum_type) {
        Some(expected) if expected != value.as_bytes().len() => Err(ClientError::ChecksumLength {
            checksum_type: spec.checksum_type.to_string(),
            expected,
            actual: value.as_bytes().len(),
        }),
        _ => Ok(()),
    }
}

/// A checksum with its spec.
///
/// # Errors
/// See [`checksum_value`].
pub fn checksum_data(data: &ChecksumData) -> Result<(), ClientError> {
    checksum_value(&data.checksum_spec, &data.checksum_value)
}

/// Opens a file to be put.
///
/// # Errors
/// It is no regular file (a directory, device, pipe or socket), or it can't be read.
pub fn source_file(path: &Path) -> Result<File, ClientError> {
    let error = |source| ClientError::Source {
        path: path.to_path_buf(),
        source,
    };
    // Looked at before it is opened: opening a pipe would wait for its other end.
    let kind = fs::metadata(path).map_err(error)?.file_type();
    regular(kind).map_err(error)?;
    File::open(path).map_err(error)
}

/// Whether it is a regular file, and not a directory, device, pipe or socket.
pub(crate) fn regular(kind: FileType) -> io::Result<()> {
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        let problem = "it is no regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
    }
    Ok(())
}

/// A checksum of a file that is to be replaced or deleted.
pub(crate) fn existing_checksum(
    repository: &Repository,
    given: Option<&ChecksumData>,
) -> Result<(), ClientError> {
    match given {
        Some(checksum) => checksum_data(checksum),
        None if repository.require.checksum_for_destructive => {
            Err(ClientError::ExistingChecksumRequired)
        }
        None => Ok(()),
    }
}

/// Where a new file comes from, with the checksum that was given for it.
pub(crate) fn new_file(
    repository: &Repository,
    source: &Source,
    checksum: Option<&ChecksumData>,
) -> Result<(), ClientError> {
    checksum.map_or(Ok(()), checksum_data)?;
    match source {
        Source::Path(path) => source_file(path).map(|_: File| ()),
        Source::Address { .. }
            if checksum.is_none() && repository.require.checksum_for_new_file =>
        {
            Err(ClientError::ChecksumRequired)
        }
        Source::Address { .. } => Ok(()),
    }
}

/// A range from one value up to another, if both were given.
pub(crate) fn range<T: PartialOrd + Display>(
    what: &'static str,
    from: Option<&T>,
    to: Option<&T>,
) -> Result<(), ClientError> {
    match from.zip(to) {
        Some((from, to)) if from > to => Err(ClientError::EmptyRange {
            what,
            from: from.to_string(),
            to: to.to_string(),
        }),
        _ => Ok(()),
    }
}

/// Contributors of any collection, and services that say how they are.
pub(crate) fn contributors(
    repository: &Repository,
    named: Option<&[ComponentId]>,
) -> Result<(), ClientError> {
    let services = &repository.status_contributors;
    let pillars = || repository.collections.iter().flat_map(|it| &it.pillars);
    let known = || pillars().chain(services);
    for contributor in named.unwrap_or_default() {
        if !known().any(|id| id == contributor) {
            return Err(ClientError::UnknownContributor {
                contributor: contributor.clone(),
                known: list(known().collect::<BTreeSet<_>>()),
            });
        }
    }
    match named {
        Some([]) => Err(ClientError::NobodyNamed),
        _ => Ok(()),
    }
}

pub(crate) fn listing(
    repository: &Repository,
    collection_id: &CollectionId,
    file: Option<&FileId>,
    pillars: Option<&[ComponentId]>,
) -> Result<(), ClientError> {
    let collection = collection(repository, collection_id)?;
    if let Some(file) = file {
        file_id(repository, file)?;
    }
    for id in pillars.unwrap_or_default() {
        pillar(collection, id)?;
    }
    match pillars {
        Some([]) => Err(ClientError::NoContributors(collection_id.clone())),
        _ => Ok(()),
    }
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}
