//! What is known of a file that pillars are to store, or may have stored.

use pillarbox_messages::{ChecksumData, ChecksumSpec};
use serde::{Deserialize, Serialize};

use crate::digests::same_spec;

/// A file that pillars are to store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NewFile {
    /// Its length in bytes; zero if unknown.
    pub size: u64,
    /// Where pillars fetch it.
    pub address: String,
    /// Whether it must be laid there first.
    pub offer: bool,
    /// Its checksum, which pillars compare with what they received.
    pub checksum: Option<ChecksumData>,
    /// Its default checksum, if that is another one and known: pillars tell theirs of an existing file.
    pub default_checksum: Option<ChecksumData>,
    /// Whether its default checksum is yet to be computed: on the way to the exchange, or when an answer needs it.
    pub examining: bool,
    /// The repository's default, the only one that a checksum pillar knows.
    pub default_spec: ChecksumSpec,
}

/// What a pillar's existing file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    /// The new one: same checksum, computed the same way.
    Same(ChecksumData),
    /// Another one.
    Different,
    /// Nobody can tell: no two checksums to compare.
    Unknown,
}

impl NewFile {
    /// A file of which nothing is known yet.
    #[must_use]
    pub const fn new(default_spec: ChecksumSpec) -> Self {
        Self {
            size: 0,
            address: String::new(),
            offer: false,
            checksum: None,
            default_checksum: None,
            examining: false,
            default_spec,
        }
    }

    /// Takes the default checksum.
    pub(crate) fn examined(&mut self, checksum: ChecksumData) {
        self.examining = false;
        if self.checksum.is_none() {
            self.checksum = Some(checksum.clone());
        }
        self.default_checksum = Some(checksum);
    }

    /// What a pillar's existing file is, by its checksum.
    pub(super) fn compare(&self, existing: Option<&ChecksumData>) -> Existing {
        let Some(existing) = existing else {
            return Existing::Unknown;
        };
        let known = [&self.checksum, &self.default_checksum]
            .into_iter()
            .flatten();
        let mut comparable =
            known.filter(|ours| same_spec(&ours.checksum_spec, &existing.checksum_spec));
        match comparable.next() {
            Some(ours) if ours.checksum_value == existing.checksum_value => {
                Existing::Same(existing.clone())
            }
            Some(_) => Existing::Different,
            None => Existing::Unknown,
        }
    }

    /// The checksum that a pillar can be asked for.
    pub(super) fn answerable(
        &self,
        asked: Option<&ChecksumSpec>,
        checksum_pillar: bool,
    ) -> Option<ChecksumSpec> {
        answerable(asked, checksum_pillar, &self.default_spec)
    }
}

/// The checksum that a pillar can be asked for: a checksum pillar has the default one and no other.
pub(super) fn answerable(
    asked: Option<&ChecksumSpec>,
    checksum_pillar: bool,
    default_spec: &ChecksumSpec,
) -> Option<ChecksumSpec> {
    asked
        .filter(|asked| !checksum_pillar || same_spec(asked, default_spec))
        .cloned()
}
