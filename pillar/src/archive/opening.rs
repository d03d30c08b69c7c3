//! Opening what stands at a file's place.

use std::{
    fs::{File, Metadata},
    io,
    path::Path,
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};

use super::{Identity, StoredFile};

/// Opens the regular file of this name; never what a link leads to, and without waiting for whoever would write into a
/// pipe. Nothing else is an archived file.
pub(super) fn open_regular(place: &Path) -> io::Result<Option<StoredFile>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(place, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        // Gone, a link, or a socket.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NXIO) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let found = file.metadata()?;
    Ok(found.is_file().then(|| StoredFile::new(file, &found)))
}

impl StoredFile {
    fn new(file: File, metadata: &Metadata) -> Self {
        Self {
            file,
            size: metadata.len(),
            identity: Identity::from(metadata),
        }
    }
}
