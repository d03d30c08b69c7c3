//! One run: a client's machine, its pillars, and a network between them that a seed decides about.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs,
    path::Path,
    sync::Arc,
};

use pillarbox_client::{
    EventKind,
    conversation::{Action, Conversation, Expected, Input, Procedure},
    event::{Delivered, Event},
};
use pillarbox_messages::{
    ChecksumData, ChecksumSpec, ChecksumType, ComponentId, Message, MessageType, ResponseCode,
    Timestamp, clock::Clock as _,
};

use super::{
    PILLARS,
    agenda::{Agenda, Happening, Time},
    station::{Station, Surroundings, across},
};
use crate::support::{Random, md5};

/// Any operation's machine.
pub(super) trait Machine: Send {
    fn step(&mut self, input: Input, now_ms: i64) -> Vec<Action>;
    fn is_done(&self) -> bool;
}

impl<P: Procedure> Machine for Conversation<P> {
    fn step(&mut self, input: Input, now_ms: i64) -> Vec<Action> {
        Self::step(self, input, now_ms)
    }

    fn is_done(&self) -> bool {
        Self::is_done(self)
    }
}

/// The whole of a run.
pub(super) struct World {
    pub(super) around: Surroundings,
    pub(super) time: Arc<Time>,
    pub(super) random: Random,
    pub(super) stations: Vec<Station>,
    agenda: Agenda,
    timer: Option<i64>,
    /// What the client offers.
    pub(super) content: Vec<u8>,
    /// Another file that somebody else may put under the same id.
    pub(super) rival: Option<Vec<u8>>,
    /// What it fetched.
    pub(super) fetched: Option<Vec<u8>>,
    pub(super) events: Vec<Event>,
    /// The final responses of what was done, by pillar and request.
    done: BTreeMap<(usize, MessageType, String), Message>,
    /// How often something was asked for again that was done.
    pub(super) repeated: u64,
    /// How often a pillar went down.
    pub(super) crashes: u64,
    /// Everything that happened, as text.
    pub(super) log: Vec<String>,
}

/// The one conversation's file on the exchange.
pub(super) const OFFER: &str = "offer";

impl World {
    pub(super) fn new(
        around: Surroundings,
        time: Arc<Time>,
        random: Random,
        stations: Vec<Station>,
    ) -> Self {
        Self {
            around,
            time,
            random,
            stations,
            agenda: Agenda::default(),
            timer: None,
            content: Vec::new(),
            rival: None,
            fetched: None,
            events: Vec::new(),
            done: BTreeMap::new(),
            repeated: 0,
            crashes: 0,
            log: Vec::new(),
        }
    }

    pub(super) fn one_in(&mut self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    fn within(&mut self, limit_ms: u64) -> i64 {
        self.now_ms() + self.random.below(limit_ms).cast_signed()
    }

    fn now_ms(&self) -> i64 {
        self.time.now_ms()
    }

    fn note(&mut self, text: &str) {
        self.log.push(format!("{} {text}", self.now_ms()));
    }

    /// Runs the conversation to its end, and everything that is still on its way to where it goes. `look` looks at
    /// the pillars after everything that happens.
    pub(super) async fn run(
        &mut self,
        machine: &mut dyn Machine,
        mut look: impl FnMut(&[Station]) + Send,
    ) {
        self.troubles();
        self.tell(machine, Input::Start);
        for _ in 0..MOST_HAPPENINGS {
            if !self.next(machine).await {
                assert!(
                    machine.is_done(),
                    "nothing more happens, and there is no end"
                );
                return;
            }
            look(&self.stations);
        }
        panic!("there is no end");
    }

    /// What befalls the whole run.
    fn troubles(&mut self) {
        for station in 0..self.stations.len() {
            self.stations[station].mute = self.one_in(12);
        }
        if self.one_in(20) {
            let at_ms = self.within(5_000);
            let reason = "canceled".to_owned();
            self.agenda
                .enter(at_ms, Happening::Tell(Input::Abort { reason }));
        }
        if self.rival.is_some() && self.one_in(3) {
            let station = self.random.below(PILLARS.len() as u64);
            let at_ms = self.within(3_000);
            self.agenda
                .enter(at_ms, Happening::Rival(usize::try_from(station).unwrap()));
        }
        if self.one_in(5) {
            let at_ms = self.within(5_000);
            // Whether they were kept or not, some have got lost in this world.
            let answers_kept = false;
            let reconnected = Input::Reconnected { answers_kept };
            self.agenda.enter(at_ms, Happening::Tell(reconnected));
        }
    }

    /// Lets the next thing happen; false if there is none.
    async fn next(&mut self, machine: &mut dyn Machine) -> bool {
        let next_ms = self.agenda.next_ms();
        if let Some(timer) = self
            .timer
            .filter(|timer| next_ms.is_none_or(|next| *timer <= next))
        {
            self.time.is_now(timer);
            self.timer = None;
            self.tell(machine, Input::TimerFired);
            return true;
        }
        let Some(at_ms) = next_ms else { return false };
        self.time.is_now(at_ms);
        match self.agenda.pop() {
            Some(Happening::Tell(input)) => self.tell(machine, input),
            Some(Happening::Arrives(station, request)) => self.arrives(station, request).await,
            Some(Happening::Returns(station)) => self.returns(station).await,
            Some(Happening::Rival(station)) => self.rival(station).await,
            None => {}
        }
        true
    }

    fn tell(&mut self, machine: &mut dyn Machine, input: Input) {
        self.note(&format!("client: {}", named(&input)));
        for action in machine.step(input, self.now_ms()) {
            self.perform(action);
        }
    }

    fn perform(&mut self, action: Action) {
        match action {
            Action::Send {
                message,
                contributor,
                ..
            } => self.send(*message, contributor),
            Action::SetTimer { at_ms } => self.timer = Some(at_ms),
            Action::ClearTimer => self.timer = None,
            Action::Emit(event) => self.heard(*event),
            Action::Examine => self.soon(Input::Examined {
                checksum: checksum(&self.content),
            }),
            Action::OfferFile => self.offer(),
            Action::RemoveOffer => self.note_removed(),
            Action::Download { expected, .. } => self.download(&expected),
            Action::Ignored { reason } => self.note(&format!("ignored: {reason}")),
        }
    }

    fn heard(&mut self, event: Event) {
        self.note(&format!("event {event}"));
        let ended = self.events.last().is_some_and(Event::is_final);
        assert!(!ended, "an event after the final one: {event}");
        self.events.push(event);
    }

    fn soon(&mut self, input: Input) {
        let at_ms = self.within(2_000);
        self.agenda.enter(at_ms, Happening::Tell(input));
    }

    fn offer(&mut self) {
        if self.one_in(20) {
            let text = "507".to_owned();
            return self.soon(Input::OfferFailed { text });
        }
        fs::write(self.offer_path(), &self.content).unwrap();
        self.soon(Input::OfferReady);
    }

    fn note_removed(&mut self) {
        self.note("offer removed");
        // Nothing may lie there.
        _ = fs::remove_file(self.offer_path());
    }

    pub(super) fn offer_path(&self) -> std::path::PathBuf {
        self.around.exchange().join(OFFER)
    }

    fn download(&mut self, expected: &Expected) {
        let input = match fetch(&self.offer_path(), expected) {
            Ok(bytes) if !self.one_in(15) => {
                let size = bytes.len() as u64;
                self.fetched = Some(bytes);
                Input::DownloadFinished(Delivered {
                    replaced: false,
                    size,
                    checksum: None,
                })
            }
            Ok(_) => failed("the connection broke"),
            Err(text) => failed(text),
        };
        self.soon(input);
    }

    /// An identify request goes to everybody who listens now; an operation request to its pillar's queue, from
    /// where it comes at least once.
    fn send(&mut self, message: Message, contributor: Option<ComponentId>) {
        if self.one_in(40) {
            self.note("not sent");
            let text = "the bus is full".to_owned();
            return self.soon(Input::SendFailed { contributor, text });
        }
        let message = across(&message);
        for station in 0..self.stations.len() {
            let name = self.stations[station].name;
            let copies = match &contributor {
                None => self.copies(),
                Some(id) if id.as_str() == name => self.copies().max(1),
                Some(_) => 0,
            };
            for _ in 0..copies {
                let at_ms = self.arrival();
                self.agenda.enter(
                    at_ms,
                    Happening::Arrives(station, Box::new(message.clone())),
                );
            }
        }
    }

    /// Of a message on its way: some get lost, some come twice.
    fn copies(&mut self) -> u32 {
        match self.random.below(12) {
            0 => 0,
            1 => 2,
            _ => 1,
        }
    }

    /// When a message arrives that is sent now: soon as a rule, so that many overtake each other.
    fn arrival(&mut self) -> i64 {
        let limit_ms = if self.one_in(25) { 40_000 } else { 400 };
        self.within(limit_ms)
    }

    async fn arrives(&mut self, station: usize, request: Box<Message>) {
        let (name, kind) = (self.stations[station].name, request.message_type());
        self.note(&format!("{name}: {}", kind.as_str()));
        if self.stations[station].mute {
            return;
        }
        if !self.stations[station].is_up() {
            self.keep(station, request);
            return;
        }
        if self.one_in(40) {
            return self.crash(station, request).await;
        }
        let responses = self.stations[station].answer(&request).await;
        self.remember(station, &request, &responses);
        if self.one_in(40) {
            return self.crash(station, request).await;
        }
        for response in responses {
            self.respond(&response);
        }
    }

    /// What comes from the collection topic is lost to who is down; a request waits in its queue.
    fn keep(&mut self, station: usize, request: Box<Message>) {
        if !request.message_type().is_identify_request() {
            self.stations[station].waiting.push(*request);
        }
    }

    /// The pillar goes down with a request in hand, which it has not acknowledged.
    async fn crash(&mut self, station: usize, request: Box<Message>) {
        self.note(&format!("{} crashes", self.stations[station].name));
        self.crashes += 1;
        self.stations[station].stop().await;
        self.keep(station, request);
        let at_ms = self.within(20_000);
        self.agenda.enter(at_ms, Happening::Returns(station));
    }

    async fn returns(&mut self, station: usize) {
        self.note(&format!("{} is back", self.stations[station].name));
        self.stations[station].start(&self.around).await;
        for request in std::mem::take(&mut self.stations[station].waiting) {
            let at_ms = self.within(400);
            self.agenda
                .enter(at_ms, Happening::Arrives(station, Box::new(request)));
        }
    }

    /// Somebody else puts another file under the same id.
    async fn rival(&mut self, station: usize) {
        let Some(content) = self.rival.clone() else {
            return;
        };
        if self.stations[station].is_up() {
            let name = self.stations[station].name;
            let code = super::put_by_another(self, station, super::FILE, &content).await;
            self.note(&format!("a rival's put at {name}: {code:?}"));
        }
    }

    /// What was done is answered alike, however often it is asked for.
    fn remember(&mut self, station: usize, request: &Message, responses: &[Message]) {
        let Some(last) = responses.last() else { return };
        let kind = request.message_type();
        let correlation = request.header().correlation_id.to_string();
        let code = last.response_info().map(|info| info.response_code);
        match self.done.entry((station, kind, correlation)) {
            Entry::Occupied(first) => {
                self.repeated += 1;
                assert_eq!(
                    first.get(),
                    last,
                    "answered differently by {}",
                    PILLARS[station]
                );
            }
            Entry::Vacant(entry)
                if changes(kind) && code == Some(ResponseCode::OperationCompleted) =>
            {
                entry.insert(last.clone());
            }
            Entry::Vacant(_) => {}
        }
    }

    fn respond(&mut self, response: &Message) {
        let response = across(response);
        for _ in 0..self.copies() {
            let at_ms = self.arrival();
            let message = Box::new(response.clone());
            let input = Input::Message {
                message,
                reply_address: None,
            };
            self.agenda.enter(at_ms, Happening::Tell(input));
        }
    }

    /// Brings everybody back who is down, so that one can look into them.
    pub(super) async fn all_up(&mut self) {
        for station in &mut self.stations {
            if !station.is_up() {
                station.start(&self.around).await;
            }
        }
    }

    pub(super) async fn close(&mut self) {
        for station in &mut self.stations {
            station.stop().await;
        }
    }

    /// The final event.
    pub(super) fn end(&self) -> &EventKind {
        let finals: Vec<_> = self
            .events
            .iter()
            .filter(|event| event.is_final())
            .collect();
        assert_eq!(finals.len(), 1, "final events");
        &finals[0].kind
    }
}

const fn changes(kind: MessageType) -> bool {
    matches!(
        kind,
        MessageType::PutFileRequest
            | MessageType::ReplaceFileRequest
            | MessageType::DeleteFileRequest
    )
}

fn named(input: &Input) -> String {
    match input {
        Input::Message { message, .. } => {
            let code = message
                .response_info()
                .map_or("", |info| info.response_code.as_str());
            format!(
                "{} from {} {code}",
                message.message_type().as_str(),
                message.header().from
            )
        }
        other => format!("{other:?}"),
    }
}

fn fetch(path: &Path, expected: &Expected) -> Result<Vec<u8>, &'static str> {
    let bytes = fs::read(path).map_err(|_| "there is no file")?;
    let sum = md5(&bytes);
    let told = expected
        .checksum
        .as_ref()
        .map(|told| told.checksum_value.to_string());
    match told {
        Some(told) if told != sum => Err("wrong bytes"),
        _ => Ok(bytes),
    }
}

fn failed(text: &str) -> Input {
    Input::DownloadFailed {
        another_may_help: true,
        text: text.to_owned(),
    }
}

/// The default checksum of these bytes.
pub(super) fn checksum(bytes: &[u8]) -> ChecksumData {
    ChecksumData {
        checksum_spec: ChecksumSpec {
            checksum_type: ChecksumType::Md5,
            checksum_salt: None,
            other_checksum_type: None,
        },
        checksum_value: md5(bytes).parse().unwrap(),
        calculation_timestamp: Timestamp::from_millis(0),
    }
}

/// More than ever happens in one conversation.
const MOST_HAPPENINGS: usize = 20_000;
