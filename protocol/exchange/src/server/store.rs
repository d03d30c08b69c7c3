//! What the server keeps, and under which names.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use pillarbox_messages::clock::SharedClock;
use rustix::fs::OFlags;
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::{
    address::{begins_with_token, decode, is_token},
    disk::{CreateFile, TemporaryFile, Writer, create_new},
};

/// The name of a file on the server: one part that begins with a token, or a token and further parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// The name on disk. It says nothing about, and can't be steered by, the name in the address:
    /// it is a digest, so no address leads out of the directory or collides with another.
    stored: String,
}

impl Name {
    /// The name that an address path has, if it is one. Two spellings of one name are one name.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix('/')?.split('/').peekable();
        let first = String::from_utf8(decode(parts.next()?)?).ok()?;
        let has_token = match parts.peek() {
            None => begins_with_token(&first),
            Some(_) => is_token(&first),
        };
        if !has_token {
            return None;
        }
        let mut digest = Sha256::new();
        // The length keeps "a" "b" apart from "a/b", however the slash is written.
        let mut add = |part: &str| {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        };
        add(&first);
        for part in parts {
            let part = String::from_utf8(decode(part)?).ok()?;
            if part.is_empty() {
                return None;
            }
            add(&part);
        }
        let stored = digest
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Some(Self { stored })
    }
}

/// The directories of a server. All methods but [`Store::writer`] block.
#[derive(Debug)]
pub(crate) struct Store {
    files: PathBuf,
    /// Empty files with the names of those that nothing may be put under any more.
    over: PathBuf,
    incoming: PathBuf,
    clock: SharedClock,
    create: CreateFile,
}

impl Store {
    /// Makes the directories if need be, and removes unfinished uploads of an earlier run.
    pub(crate) fn open(directory: &Path, clock: SharedClock) -> io::Result<Self> {
        let [files, over, incoming] =
            ["files", "over", "incoming"].map(|name| directory.join(name));
        std::fs::create_dir_all(directory)?;
        // Other users of the machine don't know the tokens, and are to see nothing without them.
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(&files)?;
        private.create(&over)?;
        private.create(&incoming)?;
        for entry in incoming.read_dir()? {
            std::fs::remove_file(entry?.path())?;
        }
        Ok(Self {
            files,
            over,
            incoming,
            clock,
            create: create_new,
        })
    }

    /// The same, with files made by `create`.
    #[cfg(test)]
    pub(crate) fn with_disk(self, create: CreateFile) -> Self {
        Self { create, ..self }
    }

    /// A stored file and its size in bytes.
    pub(crate) fn read(&self, name: &Name) -> io::Result<(File, u64)> {
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let path = self.files.join(&name.stored);
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        let length = file.metadata()?.len();
        Ok((file, length))
    }

    /// Starts storing a file; it appears when it is published.
    pub(crate) fn writer(&self, name: &Name) -> Writer {
        let temporary = self.incoming.join(Uuid::new_v4().to_string());
        let create = self.create;
        Writer::start(
            move || TemporaryFile::create(temporary, create),
            self.files.join(&name.stored),
            Some(self.clock.clone()),
        )
    }

    /// Removes a file; false if there is none.
    pub(crate) fn remove(&self, name: &Name) -> io::Result<bool> {
        remove(&self.files.join(&name.stored))
    }

    /// Removes a file, and lets none be put under its name any more; false if there is none.
    pub(crate) fn end(&self, name: &Name) -> io::Result<bool> {
        // First: whoever publishes a file looks for this afterwards.
        let mark = File::create(self.over.join(&name.stored))?;
        mark.set_modified(SystemTime::from(self.clock.now()))?;
        self.remove(name)
    }

    /// Whether nothing may be put under a name any more.
    pub(crate) fn is_over(&self, name: &Name) -> io::Result<bool> {
        self.over.join(&name.stored).try_exists()
    }

    /// How many bytes fit on the disk.
    pub(crate) fn free_bytes(&self) -> io::Result<u64> {
        let disk = rustix::fs::statvfs(&self.incoming)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
    }

    /// Removes files that were put longer than `expiry` ago; tells how many. Also forgets that nothing may be put
    /// under a name, after as long.
    pub(crate) fn sweep(&self, expiry: Duration) -> io::Result<usize> {
        self.sweep_in(&self.over, expiry)?;
        self.sweep_in(&self.files, expiry)
    }

    fn sweep_in(&self, directory: &Path, expiry: Duration) -> io::Result<usize> {
        let now = SystemTime::from(self.clock.now());
        let mut removed = 0;
        for entry in directory.read_dir()? {
            let entry = entry?;
            let put_at = match entry.metadata() {
                Ok(metadata) => metadata.modified()?,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let expired = now.duration_since(put_at).is_ok_and(|age| age > expiry);
            if expired && remove(&entry.path())? {
                removed += 1;
            }
        }
        Ok(removed)
    }
}

fn remove(path: &Path) -> io::Result<bool> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0d3f0a5e-8f6e-4c7b-9a54-5a2d1d0f9c11";

    fn name(rest: &str) -> Option<Name> {
        Name::parse(&format!("/{TOKEN}{rest}"))
    }

    #[test]
    fn spellings_of_one_name_are_one_name() {
        assert_eq!(name("/%7Ea%2Bb").unwrap(), name("/~a+b").unwrap());
        assert_eq!(name("/%c3%86").unwrap(), name("/%C3%86").unwrap());
        assert_eq!(name("-%7Ea").unwrap(), name("%2D~a").unwrap());
    }

    #[test]
    fn different_names_stay_apart() {
        let names = [
            "/a%2541", "/a%41", "/a%2Fb", "/a/b", "/a%00b", "/ab", "/..", "/.", "/A", "-A", "-..",
            "-a%2Fb",
        ];
        let stored: std::collections::BTreeSet<_> = names
            .iter()
            .map(|rest| name(rest).unwrap().stored)
            .collect();
        assert_eq!(stored.len(), names.len());
        assert!(stored.iter().all(|stored| stored.len() == 64));
    }

    #[test]
    fn what_has_no_token_or_no_name_is_none() {
        for rest in [
            "", "/", "//a", "/a/", "/%zz", "/%FF", "-", "a", "-a/b", "-a/", "-%FF", "%C3%86",
        ] {
            assert_eq!(name(rest), None, "{rest}");
        }
        for path in ["", "/", "/a/b", "a/b", "*", "//a"] {
            assert_eq!(Name::parse(path), None, "{path}");
        }
    }
}
