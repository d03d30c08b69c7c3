//! What peers say, made from words: `final north COMPLETED existing=ours`.

use std::collections::BTreeMap;

use pillarbox_messages::{ChecksumData, Message, Timestamp};

use super::play::spec;

pub(super) const CORRELATION: &str = "7d0c2f4e-5b1a-4e68-8c93-2a9e6b0f1d35";
pub(super) const FILE: &str = "hello.txt";
pub(super) const ADDRESS: &str = "http://127.0.0.1:8181/token/hello.txt";
/// The new file's MD5, and that of another.
pub(super) const OURS: &str = "4A37F973B3C9FEDE0E1FB3F07B65A93B";
pub(super) const OLD: &str = "B2EA9F7FCEA831A4A63B213F41A8855B";

/// A message from words: its part in the conversation, its sender, its code, and what else it has.
pub(super) fn message(operation: &str, words: &[&str]) -> Message {
    let (part, from) = (words[0], words[1]);
    let mut code = None;
    let mut more = BTreeMap::new();
    for word in &words[2..] {
        match word.split_once('=') {
            Some((name, value)) => {
                more.insert(name, value);
            }
            None => code = Some(full(part, word)),
        }
    }
    let operation = more.get("of").copied().unwrap_or(operation);
    let root = root(operation, part);
    let info = code.map_or_else(String::new, |code| {
        format!(
            "<ResponseInfo><ResponseCode>{code}</ResponseCode>\
             <ResponseText>said {code}</ResponseText></ResponseInfo>"
        )
    });
    let body = body(operation, part, from, &more);
    let collection = match (operation, more.get("collection")) {
        (_, Some(id)) => format!("<CollectionID>{id}</CollectionID>"),
        ("GetStatus", None) => String::new(),
        _ => "<CollectionID>books</CollectionID>".to_owned(),
    };
    let correlation = more.get("correlation").unwrap_or(&CORRELATION);
    let xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\
         <ns2:{root} xmlns=\"http://bitrepository.org/BitRepositoryElements.xsd\" \
         xmlns:ns2=\"http://bitrepository.org/BitRepositoryMessages.xsd\" version=\"31\" minVersion=\"24\">\
         <CorrelationID>{correlation}</CorrelationID>{collection}\
         <Destination>topic://books.client.reader</Destination><ReplyTo>queue://at-{from}</ReplyTo>\
         <From>{from}</From><To>reader</To>{info}{body}</ns2:{root}>"
    );
    Message::from_xml(&xml).unwrap_or_else(|error| panic!("{error}: {xml}"))
}

/// A response code's full name.
fn full(part: &str, code: &str) -> String {
    match code {
        "POSITIVE" | "NEGATIVE" => format!("IDENTIFICATION_{code}"),
        "COMPLETED" | "PROGRESS" | "ACCEPTED_PROGRESS" => format!("OPERATION_{code}"),
        "NOT_FOUND" => "FILE_NOT_FOUND_FAILURE".to_owned(),
        "DUPLICATE" => "DUPLICATE_FILE_FAILURE".to_owned(),
        "TRANSFER" => "FILE_TRANSFER_FAILURE".to_owned(),
        "EXISTING" => "EXISTING_FILE_CHECKSUM_FAILURE".to_owned(),
        "NEW" => "NEW_FILE_CHECKSUM_FAILURE".to_owned(),
        "NOT_UNDERSTOOD" => "REQUEST_NOT_UNDERSTOOD_FAILURE".to_owned(),
        "NOT_SUPPORTED" => "REQUEST_NOT_SUPPORTED".to_owned(),
        "FAILURE" => code.to_owned(),
        other => panic!("no code {other} in {part}"),
    }
}

fn root(operation: &str, part: &str) -> String {
    let whom = match operation {
        "GetStatus" | "GetAuditTrails" => "Contributors",
        _ => "Pillars",
    };
    match part {
        "identify" => format!("Identify{whom}For{operation}Response"),
        "progress" => format!("{operation}ProgressResponse"),
        "final" => format!("{operation}FinalResponse"),
        "request" => format!("{operation}Request"),
        other => panic!("nothing is said as {other}"),
    }
}

/// A named element.
fn element(name: &str, content: &str) -> String {
    format!("<{name}>{content}</{name}>")
}

/// What follows the common part.
fn body(operation: &str, part: &str, from: &str, more: &BTreeMap<&str, &str>) -> String {
    let file = element("FileID", more.get("file").unwrap_or(&FILE));
    let pillar = element("PillarID", from);
    let contributor = element("Contributor", from);
    let address = element("FileAddress", ADDRESS);
    let all = "<FileIDs><AllFileIDs>true</AllFileIDs></FileIDs>";
    let spec = more.get("spec").map_or_else(String::new, |kind| {
        element("PillarChecksumSpec", &element("ChecksumType", kind))
    });
    let time = time_to_deliver(more);
    let existing = told("ChecksumDataForExistingFile", more.get("existing"));
    let new = told("ChecksumDataForNewFile", more.get("new"));
    let file_part = more.get("part").map_or_else(String::new, |part| {
        let (offset, length) = part.split_once(':').unwrap();
        let inside = element("PartOffSet", offset) + &element("PartLength", length);
        element("FilePart", &inside)
    });
    let partial = more
        .get("partial")
        .map_or_else(String::new, |_| element("PartialResult", "true"));
    let items = more.get("items").copied().unwrap_or_default();
    match (operation, part) {
        ("PutFile", "identify") => format!("{pillar}{file}{spec}{existing}{time}"),
        ("PutFile" | "ReplaceFile", "progress") => format!("{pillar}{file}{address}"),
        ("PutFile", "final") => format!("{pillar}{file}{address}{new}{existing}"),
        ("GetFile", "identify") => format!("{file}{pillar}{time}"),
        ("GetFile", "progress") => {
            format!("{pillar}{file}{file_part}{address}<FileSize>20</FileSize>{existing}")
        }
        ("GetFile", "final") => format!("{pillar}{file}{file_part}{address}"),
        ("DeleteFile", "request" | "progress") => format!("{pillar}{file}"),
        ("DeleteFile" | "ReplaceFile", "identify") => format!("{file}{pillar}{spec}{time}"),
        ("DeleteFile", "final") => format!("{pillar}{file}{existing}"),
        ("ReplaceFile", "final") => format!("{pillar}{file}{address}{existing}{new}"),
        ("GetFileIDs", "identify" | "progress") | ("GetChecksums", "progress") => {
            format!("{pillar}{all}")
        }
        ("GetFileIDs", "final") => {
            let items = element("FileIDsDataItems", &ids(items));
            let data = element("ResultingFileIDs", &element("FileIDsData", &items));
            format!("{pillar}{all}{data}{partial}")
        }
        ("GetChecksums", "identify") => format!("{all}{pillar}"),
        ("GetChecksums", "final") => {
            format!(
                "{pillar}{}{partial}",
                element("ResultingChecksums", &sums(items))
            )
        }
        ("GetAuditTrails", "identify") => String::new(),
        ("GetAuditTrails", "final") => {
            let events = element("AuditTrailEvents", &trail(from, items));
            format!(
                "{contributor}{}{partial}",
                element("ResultingAuditTrails", &events)
            )
        }
        ("GetStatus", "final") => format!(
            "{contributor}<ResultingStatus><StatusInfo><StatusCode>OK</StatusCode>\
             <StatusText>well</StatusText></StatusInfo>\
             <StatusTimestamp>2026-03-04T05:06:07.089Z</StatusTimestamp></ResultingStatus>"
        ),
        ("GetStatus" | "GetAuditTrails", _) => contributor,
        (operation, part) => panic!("{operation} has no {part}"),
    }
}

fn time_to_deliver(more: &BTreeMap<&str, &str>) -> String {
    let units = [("ms", "MILLISECONDS"), ("hours", "HOURS")];
    let given = units
        .into_iter()
        .find_map(|(short, unit)| Some((unit, more.get(short)?)));
    given.map_or_else(String::new, |(unit, value)| {
        let inside = element("TimeMeasureUnit", unit) + &element("TimeMeasureValue", value);
        element("TimeToDeliver", &inside)
    })
}

/// A checksum that a peer tells: of our file, of another, or the digits of ours computed in another way.
fn told(name: &str, which: Option<&&str>) -> String {
    let (kind, value) = match which.copied() {
        None => return String::new(),
        Some("ours") => ("MD5", OURS),
        Some("other") => ("MD5", OLD),
        Some("sha1") => ("SHA1", OURS),
        Some(other) => panic!("no checksum {other}"),
    };
    let spec = element("ChecksumSpec", &element("ChecksumType", kind));
    let value = element("ChecksumValue", value);
    let time = element("CalculationTimestamp", "2026-03-04T05:06:07.089Z");
    element(name, &format!("{spec}{value}{time}"))
}

/// Times of a listing's items, in seconds: the items are named by their times and order.
fn times(items: &str) -> impl Iterator<Item = (String, String)> {
    let times = items.split(',').filter(|it| !it.is_empty());
    times.enumerate().map(|(at, time)| {
        let time = time.parse::<i64>().unwrap();
        let id = format!("f{time}-{at}");
        (id, Timestamp::from_millis(time * 1000).to_string())
    })
}

fn ids(items: &str) -> String {
    let item = |(id, time): (String, String)| {
        let inside = element("FileID", &id) + &element("LastModificationTime", &time);
        element("FileIDsDataItem", &inside)
    };
    times(items).map(item).collect()
}

fn sums(items: &str) -> String {
    let item = |(id, time): (String, String)| {
        let file = element("FileID", &id);
        let value = element("ChecksumValue", OURS);
        let time = element("CalculationTimestamp", &time);
        element("ChecksumDataItems", &format!("{file}{value}{time}"))
    };
    times(items).map(item).collect()
}

fn trail(from: &str, numbers: &str) -> String {
    let event = |number: &str| {
        format!(
            "<AuditTrailEvent><SequenceNumber>{number}</SequenceNumber><FileID>{FILE}</FileID>\
             <ReportingComponent>{from}</ReportingComponent><ActorOnFile>reader</ActorOnFile>\
             <ActionOnFile>PUT_FILE</ActionOnFile>\
             <ActionDateTime>2026-03-04T05:06:07.089Z</ActionDateTime></AuditTrailEvent>"
        )
    };
    let numbers = numbers.split(',').filter(|it| !it.is_empty());
    numbers.map(event).collect()
}

pub(super) fn checksum(kind: &str, value: &str) -> ChecksumData {
    ChecksumData {
        checksum_spec: spec(kind),
        checksum_value: value.parse().unwrap(),
        calculation_timestamp: Timestamp::from_millis(0),
    }
}
