//! One conversation under way: what arrives is read from words.

use std::{collections::BTreeMap, num::NonZeroU64};

use pillarbox_client::{
    Completed, Delivered, Event, EventKind,
    conversation::{
        Action, Context, Conversation, Input, Procedure, delete_file::DeleteFileProcedure,
        get_audit_trails::GetAuditTrailsProcedure, get_checksums::GetChecksumsProcedure,
        get_file::GetFileProcedure, get_file_ids::GetFileIdsProcedure,
        get_status::GetStatusProcedure, new_file::NewFile, paging::Walks,
        put_file::PutFileProcedure, replace_file::ReplaceFileProcedure,
    },
};
use pillarbox_messages::{
    ChecksumSpec, ChecksumType, ComponentId, Destination, FilePart, HexBinary, Message,
};

use super::{
    parts,
    peers::{self, ADDRESS, FILE, OLD, OURS, checksum},
};

const IDENTIFICATION_MS: i64 = 1000;
const OPERATION_MS: i64 = 10_000;
const CONVERSATION_MS: i64 = 25_000;

/// A machine of any operation.
trait Machine {
    fn step(&mut self, input: Input, now_ms: i64) -> Vec<Action>;
}

impl<P: Procedure> Machine for Conversation<P> {
    fn step(&mut self, input: Input, now_ms: i64) -> Vec<Action> {
        Self::step(self, input, now_ms)
    }
}

pub(super) struct Play {
    operation: String,
    machine: Box<dyn Machine>,
    now_ms: i64,
    timer: Option<i64>,
    events: Vec<Event>,
    sent: Vec<Message>,
}

impl Play {
    /// Begins the conversation that is described: operation, pillars and options.
    pub(super) fn begin(description: &str) -> Self {
        let mut words = description.split_whitespace();
        let operation = words.next().expect("an operation").to_owned();
        let mut pillars = Vec::new();
        let mut options = BTreeMap::new();
        for word in words {
            match word.split_once('=') {
                Some((name, value)) => {
                    options.insert(name, value);
                }
                None => pillars.push(word),
            }
        }
        let context = context(&operation, &pillars, &options);
        let mut play = Self {
            machine: machine(&operation, context, &options),
            operation,
            now_ms: 1_000_000,
            timer: None,
            events: Vec::new(),
            sent: Vec::new(),
        };
        play.step(Input::Start);
        play
    }

    /// Lets something happen.
    pub(super) fn arrive(&mut self, arrival: &str) {
        let words: Vec<&str> = arrival.split_whitespace().collect();
        let input = match words[..] {
            ["timeout"] => return self.time_out(),
            ["pause"] => return self.fire(),
            ["no", "timer"] => {
                assert_eq!(self.timer, None, "{arrival}");
                return;
            }
            ["wait", millis] => return self.wait(millis.parse().unwrap()),
            ["offered"] => Input::OfferReady,
            ["fetched"] => Input::DownloadFinished(Delivered {
                replaced: false,
                size: 20,
                checksum: None,
            }),
            ["wrong", "bytes"] => Input::DownloadFailed {
                another_may_help: true,
                text: "wrong bytes".to_owned(),
            },
            ["canceled"] => Input::Abort {
                reason: "canceled".to_owned(),
            },
            ["unreadable", from] => Input::Unreadable {
                from: Some(from.into()),
                message_type: None,
                reason: "no XML".to_owned(),
            },
            _ => Input::Message {
                message: Box::new(peers::message(&self.operation, &words)),
                reply_address: None,
            },
        };
        self.step(input);
    }

    /// Lets time pass until something is told of it.
    fn time_out(&mut self) {
        let told = self.events.len();
        while self.events.len() == told {
            self.fire();
        }
    }

    /// Lets so much time pass, in which nobody's is over.
    fn wait(&mut self, millis: i64) {
        let told = self.events.len();
        let end_ms = self.now_ms + millis;
        while self.timer.is_some_and(|at| at <= end_ms) {
            self.fire();
        }
        assert_eq!(self.events.len(), told, "told within {millis} ms");
        self.now_ms = end_ms;
    }

    /// Lets time pass until the machine's time.
    fn fire(&mut self) {
        self.now_ms = self.timer.expect("a timer is set");
        self.step(Input::TimerFired);
    }

    fn step(&mut self, input: Input) {
        for action in self.machine.step(input, self.now_ms) {
            match action {
                Action::Send { message, .. } => self.sent.push(*message),
                Action::SetTimer { at_ms } => self.timer = Some(at_ms),
                Action::ClearTimer => self.timer = None,
                Action::Emit(event) => self.events.push(*event),
                _ => {}
            }
        }
    }

    /// The events after the first, in short.
    pub(super) fn events(&self) -> Vec<String> {
        let mut all = self.events.iter().map(short);
        // A conversation with nobody sends nothing.
        let first = all.next();
        let rest: Vec<String> = all.collect();
        match first.as_deref() {
            Some("IDENTIFY_REQUEST_SENT") | None => rest,
            Some(_) => first.into_iter().chain(rest).collect(),
        }
    }

    /// How the requests that were sent differ from these.
    pub(super) fn requests_differ(&self, expected: &str) -> Option<String> {
        let sent: Vec<(String, String)> =
            self.sent.iter().map(|it| (name(it), it.to_xml())).collect();
        let expected: Vec<&str> = parts(expected).collect();
        let all = expected
            .first()
            .is_some_and(|it| it.starts_with("Identify"));
        let sent: Vec<_> = sent
            .into_iter()
            .filter(|(name, _)| all || !name.starts_with("Identify"))
            .collect();
        let names: Vec<&str> = sent.iter().map(|(name, _)| name.as_str()).collect();
        let wanted: Vec<String> = expected.iter().map(|it| without_elements(it)).collect();
        if names != wanted {
            return Some(format!("requests: {names:?}\n    instead: {wanted:?}"));
        }
        for ((name, xml), expected) in sent.iter().zip(expected) {
            for element in expected.split_whitespace() {
                let has = |element: &str| match element.split_once('=') {
                    Some((name, value)) => xml.contains(&format!("<{name}>{value}</{name}>")),
                    None => xml.contains(&format!("<{element}>")),
                };
                let wrong = match (element.strip_prefix('+'), element.strip_prefix('-')) {
                    (Some(element), _) => !has(element),
                    (_, Some(element)) => has(element),
                    _ => false,
                };
                if wrong {
                    return Some(format!("{name} {element}: {xml}"));
                }
            }
        }
        None
    }
}

fn without_elements(request: &str) -> String {
    let words = request.split_whitespace();
    let words: Vec<&str> = words.filter(|it| !it.starts_with(['+', '-'])).collect();
    words.join(" ")
}

/// A request's type, and whom it goes to or where.
fn name(message: &Message) -> String {
    let place = message.header().destination.name();
    let to = place.strip_prefix("at-").unwrap_or(place);
    format!("{} {to}", message.message_type().as_str())
}

/// An event in short. The last one says who was done.
fn short(event: &Event) -> String {
    let name = event.kind.name();
    let list = |ids: Vec<&ComponentId>| {
        let ids: Vec<&str> = ids.into_iter().map(ComponentId::as_str).collect();
        format!("{name} [{}]", ids.join(" "))
    };
    let done = |results: &[Completed]| -> String {
        let ids: Vec<&str> = results.iter().map(|it| it.contributor.as_str()).collect();
        format!("{name} [{}]", ids.join(" "))
    };
    match &event.kind {
        EventKind::IdentifyTimeout { silent: ids }
        | EventKind::IdentificationComplete { selected: ids, .. }
        | EventKind::RequestSent { contributors: ids } => list(ids.iter().collect()),
        EventKind::ComponentFailed {
            contributor,
            code: Some(code),
        } => format!("{name} {contributor} {code}"),
        EventKind::Complete { results, .. } | EventKind::Failed { results, .. } => done(results),
        kind => match kind.contributor() {
            Some(contributor) => format!("{name} {contributor}"),
            None => name.to_owned(),
        },
    }
}

fn context(operation: &str, pillars: &[&str], options: &BTreeMap<&str, &str>) -> Context {
    let status = operation == "GetStatus";
    let listing = ["GetFileIDs", "GetChecksums", "GetAuditTrails"].contains(&operation);
    let unlimited = options.contains_key("unlimited");
    let limit = |millis| if unlimited { 0 } else { millis };
    Context {
        correlation: peers::CORRELATION.into(),
        collection: (!status).then(|| "books".into()),
        file: (!status && !listing).then(|| FILE.into()),
        from: "reader".into(),
        reply_to: Destination::topic("books.client.reader"),
        identify_at: match status {
            true => vec![Destination::topic("books"), Destination::topic("dvds")],
            false => vec![Destination::topic("books")],
        },
        expected: pillars.iter().map(|id| ComponentId::from(*id)).collect(),
        identification_timeout_ms: limit(IDENTIFICATION_MS),
        operation_timeout_ms: limit(OPERATION_MS),
        conversation_timeout_ms: limit(CONVERSATION_MS),
        extend_on_progress: options.contains_key("extend"),
    }
}

fn machine(operation: &str, context: Context, options: &BTreeMap<&str, &str>) -> Box<dyn Machine> {
    let requested = options.get("request").map(|it| spec(it));
    let note = Some("noted".to_owned());
    let two = NonZeroU64::new(2).unwrap();
    let default_spec = spec("MD5");
    match operation {
        "PutFile" => {
            let mut put = PutFileProcedure::new(FILE.into(), new_file(options));
            put.request_checksum = requested;
            put.audit_trail_information = note;
            put.partial_allowed = !options.contains_key("whole");
            put.retries = options.get("retries").map_or(0, |it| it.parse().unwrap());
            Box::new(Conversation::new(context, put))
        }
        "GetFile" => {
            let mut get = GetFileProcedure::new(FILE.into(), ADDRESS.to_owned());
            get.audit_trail_information = note;
            get.part = options.get("part").map(|it| {
                let (offset, length) = it.split_once(':').unwrap();
                FilePart {
                    part_offset: offset.parse().unwrap(),
                    part_length: length.parse().unwrap(),
                }
            });
            Box::new(Conversation::new(context, get))
        }
        "DeleteFile" => {
            let delete = DeleteFileProcedure {
                file: FILE.into(),
                existing_checksum: Some(checksum("MD5", OLD)),
                request_checksum: requested,
                default_spec,
                checksum_pillar: false,
                audit_trail_information: note,
            };
            Box::new(Conversation::new(context, delete))
        }
        "ReplaceFile" => {
            let replace = ReplaceFileProcedure {
                file: FILE.into(),
                new: new_file(options),
                existing_checksum: Some(checksum("MD5", OLD)),
                request_existing_checksum: requested.clone(),
                request_checksum: requested,
                checksum_pillar: false,
                audit_trail_information: note,
            };
            Box::new(Conversation::new(context, replace))
        }
        "GetFileIDs" => {
            let list = GetFileIdsProcedure {
                file: None,
                audit_trail_information: None,
                walks: Walks::new(two),
            };
            Box::new(Conversation::new(context, list))
        }
        "GetChecksums" => {
            let list = GetChecksumsProcedure {
                file: None,
                spec: default_spec,
                audit_trail_information: note,
                walks: Walks::new(two),
            };
            Box::new(Conversation::new(context, list))
        }
        "GetAuditTrails" => {
            let list = GetAuditTrailsProcedure {
                file: None,
                first: None,
                last: None,
                min_time: None,
                max_time: None,
                page_size: two,
                trails: BTreeMap::new(),
            };
            Box::new(Conversation::new(context, list))
        }
        "GetStatus" => Box::new(Conversation::new(context, GetStatusProcedure)),
        other => panic!("no operation {other}"),
    }
}

/// The file to be stored: on an exchange already, unless it is to be offered.
fn new_file(options: &BTreeMap<&str, &str>) -> NewFile {
    NewFile {
        size: 20,
        address: ADDRESS.to_owned(),
        offer: options.contains_key("offer"),
        checksum: (!options.contains_key("unchecked")).then(|| checksum("MD5", OURS)),
        ..NewFile::new(spec("MD5"))
    }
}

/// A kind of checksum; a salt follows a colon.
pub(super) fn spec(text: &str) -> ChecksumSpec {
    let (kind, salt) = match text.split_once(':') {
        Some((kind, salt)) => (kind, Some(salt.parse::<HexBinary>().unwrap())),
        None => (text, None),
    };
    ChecksumSpec {
        checksum_salt: salt,
        ..ChecksumSpec::from(kind.parse::<ChecksumType>().unwrap())
    }
}
