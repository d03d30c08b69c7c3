//! What the pillars had been through before each recorded conversation, and which of them were there.

use super::capture::{CHECKSUM, Capture, FILE1, FILE2, PILLARS, element};
use crate::support::md5;

/// How a recorded conversation is replayed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    pub(crate) name: &'static str,
    pub(crate) before: Before,
    /// Pillars that are not there.
    pub(crate) absent: &'static [&'static str],
}

/// What happened before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Before {
    Nothing,
    /// These files were put on these pillars, in this order.
    Put(
        &'static [&'static str],
        &'static [(&'static str, &'static [u8])],
    ),
    /// The same, and then the file of this pillar was changed on its disk.
    Tampered(&'static str, &'static str),
    /// A file was put everywhere and deleted again.
    Deleted(&'static str),
    /// What the audit trails in the recorded answers tell.
    AsAudited,
    /// The conversation can't be replayed, for this reason.
    LeftOut(&'static str),
}

/// Something that a pillar is asked to do before the conversation.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    /// As in audit trails.
    pub(crate) operation: &'static str,
    pub(crate) file: String,
    pub(crate) content: &'static [u8],
    pub(crate) existing: &'static [u8],
    pub(crate) actor: String,
    pub(crate) information: String,
}

/// `data/hello.txt` of the recorded runs; size and all recorded checksums are those of this text.
pub(crate) const HELLO: &[u8] = b"hello bitrepository\n";
/// `data/repl.txt` of the recorded runs.
pub(crate) const REPLACEMENT: &[u8] = b"replacement content\n";
/// In the place of `data/hello2.txt`, of which only size and checksum are known.
pub(crate) const SECOND: &[u8] = b"another 23 octets long\n";
/// In the place of what the file was changed to on a recorded pillar's disk.
pub(crate) const TAMPERED: &[u8] = b"hello bitrepositorY\n";

/// Recorded checksums of content that is not known, and what ours has in its place: MD5 of [`SECOND`], SHA-1 of
/// [`TAMPERED`].
pub(crate) const REPLACED_CHECKSUMS: [(&str, &str); 2] = [
    (
        "DDCA0A7B01FEE8EB0C166ACDC901BA1E",
        "D7C9C303181911C12CC30D7719F751C9",
    ),
    (
        "A39D9F290979E5F184B13BACEC6A8A6FB8DD82B3",
        "412A62043375DFA6F522E1F37321BA6E956DD32A",
    ),
];

const HELLO_TXT: &[(&str, &[u8])] = &[("hello.txt", HELLO)];
const REPLACED: &[(&str, &[u8])] = &[("hello.txt", REPLACEMENT)];
const SEVEN: &[(&str, &[u8])] = &[
    ("put1.txt", HELLO),
    ("hello.txt", HELLO),
    ("sha1req.txt", HELLO),
    ("hmacreq.txt", HELLO),
    ("md5req.txt", HELLO),
    ("byurl.txt", HELLO),
    ("hello2.txt", SECOND),
];
const VICTIM3: &[(&str, &[u8])] = &[("victim3.txt", HELLO)];

const EVERYWHERE: Before = Before::Put(&PILLARS, HELLO_TXT);
const REPLACED_EVERYWHERE: Before = Before::Put(&PILLARS, REPLACED);
const VICTIM: Before = Before::Tampered(FILE1, "victim.txt");
const NO_MESSAGE: Before = Before::LeftOut("nothing was sent: the command found out by itself");

/// Every recorded conversation.
pub(crate) const SCENES: &[Scene] = &[
    scene("corrupt-get-checksums-default", VICTIM),
    scene("corrupt-get-checksums-sha1", VICTIM),
    scene("delete-checksum", REPLACED_EVERYWHERE),
    scene("delete-file1", REPLACED_EVERYWHERE),
    scene("delete-file2", REPLACED_EVERYWHERE),
    scene("delete-missing", EVERYWHERE),
    scene("delete-wrong-checksum", REPLACED_EVERYWHERE),
    scene(
        "get-checksums-after-delete-one",
        Before::Put(&[CHECKSUM, FILE2], REPLACED),
    ),
    scene("get-checksums-after-replace", REPLACED_EVERYWHERE),
    scene("get-checksums-all", Before::Put(&PILLARS, SEVEN)),
    scene("get-checksums-hmac", EVERYWHERE),
    scene("get-checksums-missing", EVERYWHERE),
    scene("get-checksums-one", EVERYWHERE),
    scene("get-checksums-sha256", EVERYWHERE),
    scene("get-file", EVERYWHERE),
    scene("get-file-from-checksumpillar", EVERYWHERE),
    scene("get-file-missing", EVERYWHERE),
    scene("get-file-pillar", EVERYWHERE),
    scene("get-fileids-all", Before::Put(&PILLARS, SEVEN)),
    scene("get-fileids-missing", EVERYWHERE),
    scene("get-fileids-one", EVERYWHERE),
    scene("lib-audittrails", Before::AsAudited),
    scene("lib-audittrails-file", Before::AsAudited),
    scene("lib-getchecksums-url", EVERYWHERE),
    scene("lib-getfile-fastest", EVERYWHERE),
    scene("lib-getfileids-url", EVERYWHERE),
    scene("lib-getfilepart", EVERYWHERE),
    scene("lib-getstatus", EVERYWHERE),
    without_file2(
        "pillar-down-get-checksums",
        Before::Put(&[CHECKSUM, FILE1], VICTIM3),
    ),
    without_file2("pillar-down-getstatus", Before::Nothing),
    without_file2("pillar-down-put", Before::Nothing),
    scene("put-after-delete", Before::Deleted("hello.txt")),
    scene("put-bad-collection", NO_MESSAGE),
    scene("put-bad-fileid", NO_MESSAGE),
    scene("put-by-url", Before::Nothing),
    scene("put-by-url-wrong-checksum", NO_MESSAGE),
    scene("put-duplicate-different-checksum", EVERYWHERE),
    scene("put-new", Before::Nothing),
    scene(
        "put-partial-existing",
        Before::Put(&[CHECKSUM, FILE2], VICTIM3),
    ),
    scene("put-request-checksum-hmac", Before::Nothing),
    scene("put-request-checksum-md5", Before::Nothing),
    scene("put-request-checksum-sha1", Before::Nothing),
    scene("put-same-checksum", EVERYWHERE),
    scene("raw-audit-all", Before::AsAudited),
    scene("raw-audit-url", EVERYWHERE),
    scene("raw-badfileid-identify-put", Before::Nothing),
    scene("raw-badfileid-put", Before::Nothing),
    scene("raw-bogus-alarm", Before::Nothing),
    scene("raw-delete-no-checksum", EVERYWHERE),
    scene("raw-delete-wrong-checksum", EVERYWHERE),
    scene("raw-fileid-traversal", Before::Nothing),
    scene("raw-get-from-checksum", EVERYWHERE),
    scene("raw-get-missing", EVERYWHERE),
    scene("raw-getchecksums-missing", EVERYWHERE),
    scene("raw-getfileids-missing", EVERYWHERE),
    scene("raw-identify-get-missing", EVERYWHERE),
    scene("raw-identify-get-to-other", EVERYWHERE),
    scene("raw-identify-getchecksums-hmac", EVERYWHERE),
    scene("raw-identify-getchecksums-missing", EVERYWHERE),
    scene("raw-identify-getchecksums-other", EVERYWHERE),
    scene("raw-identify-put-existing", EVERYWHERE),
    scene("raw-identify-unknown-collection", Before::Nothing),
    scene("raw-malformed-xml", EVERYWHERE),
    scene("raw-minversion-too-new", EVERYWHERE),
    scene("raw-no-collection-header", EVERYWHERE),
    scene("raw-no-collection-id", EVERYWHERE),
    scene(
        "raw-put-content-length",
        Before::LeftOut(
            "the recording has no text: with content-length the broker made bytes of it, which the Java system \
             drops; here a message is its text, however its length was told (raw-put-content-length-amqtext)",
        ),
    ),
    scene("raw-put-content-length-amqtext", Before::Nothing),
    scene("raw-put-dead-url", Before::Nothing),
    scene("raw-put-no-checksum", Before::Nothing),
    scene("raw-put-no-identify", Before::Nothing),
    scene("raw-put-unknown-collection", Before::Nothing),
    scene("raw-put-wrong-checksum", Before::Nothing),
    scene("raw-put-wrong-pillarid", Before::Nothing),
    scene("raw-put-wrong-size", Before::Nothing),
    scene("raw-schema-invalid", EVERYWHERE),
    scene("raw-status-no-collection", Before::Nothing),
    scene("raw-unicode-fileid", Before::Nothing),
    scene("raw-version-too-old", EVERYWHERE),
    scene("replace-checksum", EVERYWHERE),
    scene("replace-file1", EVERYWHERE),
    scene("replace-missing", EVERYWHERE),
    scene("replace-wrong-checksum", EVERYWHERE),
];

const fn scene(name: &'static str, before: Before) -> Scene {
    Scene {
        name,
        before,
        absent: &[],
    }
}

const fn without_file2(name: &'static str, before: Before) -> Scene {
    Scene {
        name,
        before,
        absent: &[FILE2],
    }
}

impl Scene {
    /// What has to be done, and on which pillar, before the conversation.
    pub(crate) fn deeds(&self, capture: &Capture) -> Vec<(&'static str, Deed)> {
        match self.before {
            Before::Nothing | Before::LeftOut(_) => Vec::new(),
            Before::Put(pillars, files) => on_each(pillars, |_| {
                let puts = files.iter();
                puts.map(|(file, content)| Deed::of("PUT_FILE", file, content))
                    .collect()
            }),
            Before::Tampered(_, file) => {
                on_each(&PILLARS, |_| vec![Deed::of("PUT_FILE", file, HELLO)])
            }
            Before::Deleted(file) => on_each(&PILLARS, |_| {
                let deed = |operation| Deed::of(operation, file, HELLO);
                ["PUT_FILE", "DELETE_FILE"].map(deed).to_vec()
            }),
            Before::AsAudited => on_each(&PILLARS, |pillar| audited(capture, pillar)),
        }
    }
}

fn on_each(
    pillars: &[&'static str],
    deeds: impl Fn(&str) -> Vec<Deed>,
) -> Vec<(&'static str, Deed)> {
    let of_one = |pillar: &&'static str| {
        let pillar = *pillar;
        deeds(pillar).into_iter().map(move |deed| (pillar, deed))
    };
    pillars.iter().flat_map(of_one).collect()
}

/// What led to the audit trail that a pillar tells of.
fn audited(capture: &Capture, pillar: &str) -> Vec<Deed> {
    let finals = capture.answered().filter(|it| {
        it.kind == "GetAuditTrailsFinalResponse" && it.element("From") == Some(pillar)
    });
    let mut content = HELLO;
    let mut deeds = Vec::new();
    for event in finals.flat_map(|it| it.text.split("<AuditTrailEvent>").skip(1)) {
        let text = |name| element(event, name).unwrap_or_default();
        let operation = ["PUT_FILE", "REPLACE_FILE", "DELETE_FILE", "GET_FILE"]
            .into_iter()
            .find(|known| *known == text("ActionOnFile"))
            .expect("an operation on a file");
        let existing = content;
        content = match operation {
            "PUT_FILE" => HELLO,
            "REPLACE_FILE" => REPLACEMENT,
            _ => content,
        };
        deeds.push(Deed {
            operation,
            file: text("FileID").to_owned(),
            content,
            existing,
            actor: text("ActorOnFile").to_owned(),
            information: text("AuditTrailInformation").to_owned(),
        });
    }
    deeds
}

impl Deed {
    pub(crate) fn of(operation: &'static str, file: &str, content: &'static [u8]) -> Self {
        Self {
            operation,
            file: file.to_owned(),
            content,
            existing: content,
            actor: "earlier".to_owned(),
            information: String::new(),
        }
    }

    /// What a put says after `PillarID`; the file is at the address.
    pub(crate) fn put(&self, address: &str) -> String {
        let new = checksum_data("ForNewFile", self.content);
        format!(
            "{}<FileAddress>{address}</FileAddress>{new}",
            self.file_id()
        )
    }

    pub(crate) fn replace(&self, address: &str) -> String {
        let existing = checksum_data("ForExistingFile", self.existing);
        let new = checksum_data("ForNewFile", self.content);
        format!(
            "{}{existing}<FileAddress>{address}</FileAddress><FileSize>{}</FileSize>{new}",
            self.file_id(),
            self.content.len()
        )
    }

    pub(crate) fn delete(&self) -> String {
        self.file_id() + &checksum_data("ForExistingFile", self.existing)
    }

    pub(crate) fn get(&self, address: &str) -> String {
        format!("{}<FileAddress>{address}</FileAddress>", self.file_id())
    }

    fn file_id(&self) -> String {
        format!("<FileID>{}</FileID>", self.file)
    }
}

fn checksum_data(whose: &str, content: &[u8]) -> String {
    format!(
        "<ChecksumData{whose}><ChecksumSpec><ChecksumType>MD5</ChecksumType></ChecksumSpec>\
         <ChecksumValue>{}</ChecksumValue><CalculationTimestamp>2026-11-30T18:00:00.000Z</CalculationTimestamp>\
         </ChecksumData{whose}>",
        md5(content)
    )
}
