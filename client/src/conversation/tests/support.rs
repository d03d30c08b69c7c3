//! A bench to run a machine on, and the messages of its peers.

use pillarbox_messages::{
    ChecksumData, ChecksumSpec, ChecksumType, ComponentId, Destination, FileId,
    GetFileFinalResponse, GetFileProgressResponse, Header, HexBinary,
    IdentifyPillarsForGetFileResponse, IdentifyPillarsForPutFileResponse, Message, ProtocolVersion,
    PutFileFinalResponse, PutFileProgressResponse, ResponseCode, ResponseInfo, TimeToDeliver,
    Timestamp,
};

use crate::{
    conversation::{
        Action, Context, Conversation, Input, Procedure, get_file::GetFileProcedure,
        new_file::NewFile, put_file::PutFileProcedure,
    },
    digests::plain_spec,
    event::{Event, EventKind, join},
};

pub(super) const CORRELATION: &str = "7d0c2f4e-5b1a-4e68-8c93-2a9e6b0f1d35";
/// When every conversation begins.
pub(super) const BEGUN_MS: i64 = 1_000_000;
pub(super) const IDENTIFICATION_MS: i64 = 1000;
pub(super) const OPERATION_MS: i64 = 10_000;
pub(super) const OURS: &str = "4a37f973b3c9fede0e1fb3f07b65a93b";
pub(super) const OTHERS: &str = "b2ea9f7fcea831a4a63b213f41a8855b";
pub(super) const ADDRESS: &str = "http://127.0.0.1:8181/token/hello.txt";

/// A conversation, the time, and all that it has wanted done.
pub(super) struct Bench<P> {
    pub(super) conversation: Conversation<P>,
    pub(super) now_ms: i64,
    pub(super) events: Vec<Event>,
    pub(super) sent: Vec<Message>,
    pub(super) timer: Option<i64>,
    pub(super) examined: usize,
    pub(super) offered: usize,
    pub(super) removed: usize,
    pub(super) downloads: Vec<crate::conversation::Expected>,
    pub(super) reply_addresses: Vec<Option<String>>,
    pub(super) ignored: usize,
}

impl<P: Procedure> Bench<P> {
    pub(super) fn new(context: Context, procedure: P) -> Self {
        let mut bench = Self {
            conversation: Conversation::new(context, procedure),
            now_ms: BEGUN_MS,
            events: Vec::new(),
            sent: Vec::new(),
            timer: None,
            examined: 0,
            offered: 0,
            removed: 0,
            downloads: Vec::new(),
            reply_addresses: Vec::new(),
            ignored: 0,
        };
        bench.step(Input::Start);
        bench
    }

    pub(super) fn step(&mut self, input: Input) {
        let done = self.conversation.is_done();
        for action in self.conversation.step(input, self.now_ms) {
            assert!(
                !done || matches!(action, Action::Ignored { .. }),
                "{action:?} after the end"
            );
            match action {
                Action::Send {
                    message,
                    reply_address,
                    ..
                } => {
                    self.sent.push(*message);
                    self.reply_addresses.push(reply_address);
                }
                Action::SetTimer { at_ms } => {
                    assert!(at_ms > self.now_ms, "a timer that has fired already");
                    self.timer = Some(at_ms);
                }
                Action::ClearTimer => self.timer = None,
                Action::Emit(event) => self.events.push(*event),
                Action::Examine => self.examined += 1,
                Action::OfferFile => self.offered += 1,
                Action::RemoveOffer => self.removed += 1,
                Action::Download { expected, .. } => self.downloads.push(expected),
                Action::Ignored { .. } => self.ignored += 1,
            }
        }
    }

    pub(super) fn hear(&mut self, message: impl Into<Message>) {
        self.step(Input::Message {
            message: Box::new(message.into()),
            reply_address: None,
        });
    }

    /// Lets time pass until the timer's time and fires it.
    pub(super) fn fire(&mut self) {
        self.now_ms = self.timer.expect("a timer is set");
        self.step(Input::TimerFired);
    }

    /// Lets time pass until somebody's time is over, of which something is told, or is waited for no more.
    pub(super) fn time_out(&mut self) {
        let told = self.events.len();
        self.fire();
        while self.events.len() == told && self.timer.is_some() {
            self.fire();
        }
    }

    /// The events in short: name and whom it is about.
    pub(super) fn trace(&self) -> Vec<String> {
        self.events.iter().map(short).collect()
    }

    pub(super) fn last(&self) -> String {
        self.trace().last().cloned().unwrap_or_default()
    }

    pub(super) fn info(&self) -> String {
        self.events
            .last()
            .and_then(|event| event.info.clone())
            .unwrap_or_default()
    }

    /// Who was sent operation requests, in order.
    pub(super) fn asked(&self) -> Vec<String> {
        let names = self
            .sent
            .iter()
            .map(|message| message.header().destination.name());
        names
            .filter_map(|name| name.strip_prefix("at-"))
            .map(str::to_owned)
            .collect()
    }
}

pub(super) fn short(event: &Event) -> String {
    let name = event.kind.name();
    match &event.kind {
        EventKind::IdentificationComplete { selected: ids, .. }
        | EventKind::RequestSent { contributors: ids }
        | EventKind::IdentifyTimeout { silent: ids } => format!("{name} [{}]", join(ids)),
        EventKind::ComponentFailed {
            contributor,
            code: Some(code),
        } => {
            format!("{name} {contributor} {code}")
        }
        kind => match kind.contributor() {
            Some(contributor) => format!("{name} {contributor}"),
            None => name.to_owned(),
        },
    }
}

pub(super) fn context(pillars: &[&str], file: Option<&str>) -> Context {
    Context {
        correlation: CORRELATION.into(),
        collection: Some("books".into()),
        file: file.map(FileId::from),
        from: "reader".into(),
        reply_to: Destination::topic("books.client.reader"),
        identify_at: vec![Destination::topic("books")],
        expected: pillars.iter().map(|id| ComponentId::from(*id)).collect(),
        identification_timeout_ms: IDENTIFICATION_MS,
        operation_timeout_ms: OPERATION_MS,
        conversation_timeout_ms: 0,
        extend_on_progress: false,
    }
}

pub(super) fn put(pillars: &[&str]) -> Bench<PutFileProcedure> {
    put_with(pillars, |_| {})
}

pub(super) fn put_with(
    pillars: &[&str],
    change: impl FnOnce(&mut PutFileProcedure),
) -> Bench<PutFileProcedure> {
    let mut procedure = put_procedure();
    change(&mut procedure);
    Bench::new(context(pillars, Some("hello.txt")), procedure)
}

pub(super) fn put_procedure() -> PutFileProcedure {
    PutFileProcedure {
        request_checksum: Some(plain_spec(ChecksumType::Md5)),
        audit_trail_information: Some("first ingest".to_owned()),
        ..PutFileProcedure::new("hello.txt".into(), new_file())
    }
}

pub(super) fn new_file() -> NewFile {
    NewFile {
        size: 20,
        address: ADDRESS.to_owned(),
        offer: true,
        checksum: Some(md5(OURS)),
        ..NewFile::new(plain_spec(ChecksumType::Md5))
    }
}

pub(super) fn get(pillars: &[&str]) -> Bench<GetFileProcedure> {
    let procedure = GetFileProcedure::new("hello.txt".into(), ADDRESS.to_owned());
    Bench::new(context(pillars, Some("hello.txt")), procedure)
}

pub(super) fn checksum(spec: ChecksumSpec, value: &str) -> ChecksumData {
    ChecksumData {
        checksum_spec: spec,
        checksum_value: value.parse::<HexBinary>().unwrap(),
        calculation_timestamp: Timestamp::from_millis(1_700_000_000_000),
    }
}

pub(super) fn md5(value: &str) -> ChecksumData {
    checksum(plain_spec(ChecksumType::Md5), value)
}

/// The header of a response from this pillar, which wants to be asked at `at-<pillar>`.
pub(super) fn header(from: &str) -> Header {
    Header {
        version: ProtocolVersion::CURRENT,
        correlation_id: CORRELATION.into(),
        collection_id: Some("books".into()),
        destination: Destination::topic("books.client.reader"),
        reply_to: Destination::queue(&format!("at-{from}")),
        from: from.into(),
        to: Some("reader".into()),
    }
}

pub(super) fn info(code: ResponseCode) -> ResponseInfo {
    ResponseInfo {
        response_code: code,
        response_text: Some(format!("said {code}")),
    }
}

pub(super) const POSITIVE: ResponseCode = ResponseCode::IdentificationPositive;
pub(super) const COMPLETED: ResponseCode = ResponseCode::OperationCompleted;
pub(super) const ACCEPTED: ResponseCode = ResponseCode::OperationAcceptedProgress;

pub(super) fn put_identify(from: &str, code: ResponseCode) -> IdentifyPillarsForPutFileResponse {
    IdentifyPillarsForPutFileResponse {
        header: header(from),
        response_info: info(code),
        pillar_id: from.into(),
        file_id: Some("hello.txt".into()),
        pillar_checksum_spec: None,
        checksum_data_for_existing_file: None,
        time_to_deliver: None,
    }
}

pub(super) fn put_duplicate(
    from: &str,
    existing: Option<ChecksumData>,
) -> IdentifyPillarsForPutFileResponse {
    IdentifyPillarsForPutFileResponse {
        checksum_data_for_existing_file: existing,
        ..put_identify(from, ResponseCode::DuplicateFileFailure)
    }
}

pub(super) fn put_progress(from: &str) -> PutFileProgressResponse {
    PutFileProgressResponse {
        header: header(from),
        response_info: info(ACCEPTED),
        pillar_id: Some(from.into()),
        pillar_checksum_spec: None,
        file_id: "hello.txt".into(),
        file_address: ADDRESS.to_owned(),
    }
}

pub(super) fn put_final(from: &str, code: ResponseCode) -> PutFileFinalResponse {
    PutFileFinalResponse {
        header: header(from),
        response_info: info(code),
        pillar_id: Some(from.into()),
        pillar_checksum_spec: None,
        file_id: "hello.txt".into(),
        file_address: ADDRESS.to_owned(),
        checksum_data_for_new_file: (code == COMPLETED).then(|| md5(OURS)),
        checksum_data_for_existing_file: None,
    }
}

pub(super) fn get_identify(
    from: &str,
    code: ResponseCode,
    millis: Option<u64>,
) -> IdentifyPillarsForGetFileResponse {
    IdentifyPillarsForGetFileResponse {
        header: header(from),
        response_info: info(code),
        file_id: "hello.txt".into(),
        pillar_id: from.into(),
        time_to_deliver: millis.map(TimeToDeliver::from_millis),
    }
}

pub(super) fn get_progress(from: &str) -> GetFileProgressResponse {
    GetFileProgressResponse {
        header: header(from),
        response_info: info(ACCEPTED),
        pillar_id: Some(from.into()),
        file_id: "hello.txt".into(),
        file_part: None,
        file_address: ADDRESS.to_owned(),
        file_size: Some(20),
        checksum_data_for_existing_file: Some(md5(OURS)),
    }
}

pub(super) fn get_final(from: &str, code: ResponseCode) -> GetFileFinalResponse {
    GetFileFinalResponse {
        header: header(from),
        response_info: info(code),
        pillar_id: Some(from.into()),
        file_id: "hello.txt".into(),
        file_part: None,
        file_address: ADDRESS.to_owned(),
    }
}
