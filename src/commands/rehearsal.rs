//! `--dry-run`: what a pillar would do with a file, by what it says of the file now. Nothing is changed.

use pillarbox_client::{ComponentResult, EventKind, GetChecksums, Outcome, digests::plain_spec};
use pillarbox_messages::{
    ChecksumData, ChecksumType, CollectionId, ComponentId, FileId, HexBinary, ResponseCode,
};
use serde::Serialize;

use crate::{
    client_setup::{Session, conclude},
    failure::Failure,
    json::{self, Failed},
    output::{one_line, print_done, say},
};

/// The file that is to go, where it is.
#[derive(Clone, Debug)]
pub(super) struct Rehearsal {
    pub(super) collection: CollectionId,
    pub(super) file_id: FileId,
    pub(super) pillar: ComponentId,
    pub(super) default: ChecksumType,
    pub(super) json: bool,
}

/// What would be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Would {
    /// The file would be deleted.
    Delete,
    /// The file would be replaced.
    Replace,
    /// All is as it should be.
    Nothing,
}

/// The line of `--dry-run --json`.
#[derive(Debug, Serialize)]
struct Line<'a> {
    dry_run: bool,
    would: Would,
    file_id: &'a str,
    pillar: &'a str,
    checksum_type: &'a str,
    existing_checksum: Option<String>,
}

/// What a pillar says of a file when it is asked for its checksum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// This.
    Checksum(HexBinary),
    /// It has no such file.
    Absent,
    /// It tells none of this type.
    Nothing,
}

impl Rehearsal {
    /// The checksum that the pillar has of the file; none if it has no such file.
    ///
    /// # Errors
    /// It did not say; interrupted.
    pub(super) async fn existing(
        &self,
        session: &mut Session,
    ) -> Result<Option<HexBinary>, Failure> {
        Ok(match self.told(session, self.default).await? {
            Told::Checksum(checksum) => Some(checksum),
            Told::Absent | Told::Nothing => None,
        })
    }

    /// What the pillar says of the file when it is asked for a checksum of this type: of the default one what its
    /// index has, of others what the bytes are.
    ///
    /// # Errors
    /// It did not answer; interrupted.
    pub(super) async fn told(
        &self,
        session: &mut Session,
        checksum_type: ChecksumType,
    ) -> Result<Told, Failure> {
        let mut request = GetChecksums::new(self.collection.clone());
        request.file_id = Some(self.file_id.clone());
        request.pillars = Some(vec![self.pillar.clone()]);
        request.checksum = Some(plain_spec(checksum_type));
        let mut found = Told::Nothing;
        let outcome = session
            .follow(session.client().get_checksums(request), |event| {
                if let EventKind::ComponentComplete {
                    result: ComponentResult::Checksums(checksums),
                    ..
                } = &event.kind
                {
                    let mut items = checksums.page.items.iter();
                    if let Some(item) = items.find(|item| item.file_id == self.file_id) {
                        found = Told::Checksum(item.checksum_value.clone());
                    }
                }
                Ok(())
            })
            .await?;
        if is_absent(&outcome) {
            outcome.told();
            return Ok(Told::Absent);
        }
        if checksum_type != self.default && is_refused(&outcome) {
            outcome.told();
            return Ok(Told::Nothing);
        }
        // It is a part of what is told.
        conclude(outcome, self.json)?.told();
        Ok(found)
    }

    /// Says what would be done with a file of this checksum.
    ///
    /// # Errors
    /// Standard output can't be written.
    pub(super) fn tell(&self, would: Would, existing: Option<&HexBinary>) -> Result<(), Failure> {
        let (file, pillar) = (&self.file_id, &self.pillar);
        let text = match (would, existing) {
            (Would::Delete, _) => format!("would delete {file} from {pillar}"),
            (Would::Replace, _) => format!("would replace {file} at {pillar}"),
            (Would::Nothing, None) => {
                format!("nothing to do: {file} is already absent at {pillar}")
            }
            (Would::Nothing, Some(_)) => {
                format!("nothing to do: {pillar} has the new {file} already")
            }
        };
        let has = existing.map_or_else(String::new, |it| format!(", {} {it}", self.default));
        say(&one_line(format!("{text}{has}; nothing was changed")));
        if !self.json {
            return Ok(());
        }
        print_done(&json::line(&Line {
            dry_run: true,
            would,
            file_id: file.as_str(),
            pillar: pillar.as_str(),
            checksum_type: self.default.as_str(),
            existing_checksum: existing.map(ToString::to_string),
        }))
    }

    /// The failure that the pillar's refusal would be.
    pub(super) fn refused(&self, code: ResponseCode, why: &str) -> Failure {
        if self.json {
            let line = json::line(&Failed {
                failed: true,
                pillar: Some(self.pillar.as_str()),
                code: Some(code.as_str()),
                text: why,
            });
            if let Err(failure) = print_done(&line) {
                return failure;
            }
        }
        Failure::operation(format!("{} would refuse: {code}, {why}", self.pillar))
    }

    /// Whether the pillar's file is the one that was meant.
    ///
    /// # Errors
    /// It has another checksum than was given.
    pub(super) fn compare(
        &self,
        existing: &HexBinary,
        given: Option<&ChecksumData>,
    ) -> Result<(), Failure> {
        match given {
            Some(given) if given.checksum_value != *existing => Err(self.refused(
                ResponseCode::ExistingFileChecksumFailure,
                &format!(
                    "its {} has the {} {existing}, not {}; look at the file there before you go on",
                    self.file_id, self.default, given.checksum_value
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// The pillar has answered that it does not do this; one that takes no part has not failed.
fn is_refused(outcome: &Outcome) -> bool {
    let mut failures = outcome.failures.iter();
    !outcome.complete && failures.all(|failure| failure.code.is_some())
}

fn is_absent(outcome: &Outcome) -> bool {
    let absent = Some(ResponseCode::FileNotFoundFailure);
    !outcome.complete
        && outcome
            .failures
            .iter()
            .any(|failure| failure.code == absent)
}
