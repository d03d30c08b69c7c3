//! A peer that writes its messages by hand, element by element, so that they can be right or wrong.

use std::time::{Duration, Instant};

use pillarbox_messages::Message;

use super::{PATIENCE, md5, stomp::Stomp};

/// Namespace of a message's root.
pub(crate) const MESSAGES: &str = "http://bitrepository.org/BitRepositoryMessages.xsd";
/// Namespace of everything in it.
pub(crate) const ELEMENTS: &str = "http://bitrepository.org/BitRepositoryElements.xsd";

/// A client of the collection `books`.
pub(crate) struct RawPeer {
    pub(crate) stomp: Stomp,
    id: String,
    set_aside: Vec<Answer>,
}

/// A response that came.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) xml: String,
    pub(crate) message: Message,
}

impl Answer {
    pub(crate) fn correlation(&self) -> &str {
        self.message.header().correlation_id.as_str()
    }

    pub(crate) fn code(&self) -> &str {
        let info = self.message.response_info();
        info.map_or("", |info| info.response_code.as_str())
    }

    pub(crate) fn kind(&self) -> &str {
        self.message.message_type().as_str()
    }

    /// The text of the first element of this name; what is written there is no further element.
    pub(crate) fn element(&self, name: &str) -> Option<String> {
        let (_, rest) = self.xml.split_once(&format!("{name}>"))?;
        let (text, _) = rest.split_once('<')?;
        Some(unescape(text))
    }
}

impl RawPeer {
    /// Connects and listens on its own topic.
    pub(crate) fn connect(bus_port: u16, id: &str) -> Self {
        let mut stomp = Stomp::connect(bus_port, Some(id));
        stomp.subscribe(&format!("/topic/books.client.{id}"));
        Self {
            stomp,
            id: id.to_owned(),
            set_aside: Vec::new(),
        }
    }

    /// The start of every message, up to `From`, and `To` if there is one.
    pub(crate) fn header(&self, correlation: &str, destination: &str, to: Option<&str>) -> String {
        let to = to.map_or_else(String::new, |to| format!("<To>{to}</To>"));
        format!(
            "<CorrelationID>{correlation}</CorrelationID><CollectionID>books</CollectionID>\
             <Destination>{destination}</Destination>\
             <ReplyTo>topic://books.client.{id}</ReplyTo><From>{id}</From>{to}",
            id = self.id
        )
    }

    /// A request to everybody.
    pub(crate) fn identify(&self, kind: &str, correlation: &str, children: &str) -> String {
        let header = self.header(correlation, "topic://books", None);
        document(kind, &format!("{header}{children}"))
    }

    /// A request to one pillar; `children` come after `PillarID`.
    pub(crate) fn request(
        &self,
        kind: &str,
        correlation: &str,
        pillar: &str,
        children: &str,
    ) -> String {
        let destination = format!("queue://books.{pillar}");
        let header = self.header(correlation, &destination, Some(pillar));
        document(
            kind,
            &format!("{header}<PillarID>{pillar}</PillarID>{children}"),
        )
    }

    /// Sends to the collection's topic.
    #[track_caller]
    pub(crate) fn send_to_all(&mut self, kind: &str, xml: impl AsRef<[u8]>) {
        self.send("/topic/books", kind, xml);
    }

    /// Sends to a pillar's queue.
    #[track_caller]
    pub(crate) fn send_to(&mut self, pillar: &str, kind: &str, xml: impl AsRef<[u8]>) {
        self.send(&format!("/queue/books.{pillar}"), kind, xml);
    }

    #[track_caller]
    fn send(&mut self, destination: &str, kind: &str, xml: impl AsRef<[u8]>) {
        let headers = [
            ("org.bitrepository.messages.type", kind),
            ("org.bitrepository.messages.collectionid", "books"),
            ("persistent", "true"),
        ];
        self.stomp.send(destination, &headers, xml.as_ref());
    }

    /// Asks everybody, and gives the first answer.
    #[track_caller]
    pub(crate) fn ask_all(&mut self, kind: &str, correlation: &str, children: &str) -> Answer {
        let xml = self.identify(kind, correlation, children);
        self.send_to_all(kind, xml);
        self.end_of(correlation)
    }

    /// Asks a pillar, and gives its final answer.
    #[track_caller]
    pub(crate) fn ask(
        &mut self,
        kind: &str,
        correlation: &str,
        pillar: &str,
        children: &str,
    ) -> Answer {
        let xml = self.request(kind, correlation, pillar, children);
        self.send_to(pillar, kind, xml);
        self.end_of(correlation)
    }

    /// The answer that ends the conversation of this correlation id; progress is passed over.
    #[track_caller]
    pub(crate) fn end_of(&mut self, correlation: &str) -> Answer {
        let answer = self.end_of_within(correlation, PATIENCE);
        answer.unwrap_or_else(|| panic!("no answer to {correlation}"))
    }

    /// The same, or nothing if it doesn't come in time.
    #[track_caller]
    pub(crate) fn end_of_within(&mut self, correlation: &str, within: Duration) -> Option<Answer> {
        let wanted = |answer: &Answer| answer.correlation() == correlation && ends(answer);
        if let Some(at) = self.set_aside.iter().position(wanted) {
            return Some(self.set_aside.remove(at));
        }
        let deadline = Instant::now() + within;
        loop {
            let answer = self.answer(deadline.saturating_duration_since(Instant::now()))?;
            if wanted(&answer) {
                return Some(answer);
            }
            self.set_aside.push(answer);
        }
    }

    /// Everything that has come about this conversation besides what was asked for.
    pub(crate) fn others(&self, correlation: &str) -> Vec<Answer> {
        let about = |answer: &&Answer| answer.correlation() == correlation;
        self.set_aside.iter().filter(about).cloned().collect()
    }

    #[track_caller]
    fn answer(&mut self, within: Duration) -> Option<Answer> {
        let frame = self.stomp.message(within)?;
        let xml = frame.text();
        let message = Message::from_xml(&xml)
            .unwrap_or_else(|error| panic!("an answer that is no message: {error}\n{xml}"));
        Some(Answer { xml, message })
    }
}

fn ends(answer: &Answer) -> bool {
    let kind = answer.kind();
    kind.starts_with("Identify") || kind.ends_with("FinalResponse")
}

/// A document of this type in the spelling of the Java system, as of today's version.
pub(crate) fn document(kind: &str, content: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\
         <m:{kind} xmlns:m=\"{MESSAGES}\" xmlns=\"{ELEMENTS}\" version=\"31\" minVersion=\"24\">\
         {content}</m:{kind}>"
    )
}

/// Text as it stands in an element.
pub(crate) fn text(plain: &str) -> String {
    plain
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn unescape(xml: &str) -> String {
    xml.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// The element of a checksum of a new file.
pub(crate) fn checksum_of_new_file(value: &str) -> String {
    checksum_data("ChecksumDataForNewFile", value)
}

/// The element of a checksum of a file that is there.
pub(crate) fn checksum_of_existing_file(value: &str) -> String {
    checksum_data("ChecksumDataForExistingFile", value)
}

fn checksum_data(element: &str, value: &str) -> String {
    format!(
        "<{element}><ChecksumSpec><ChecksumType>MD5</ChecksumType></ChecksumSpec>\
         <ChecksumValue>{value}</ChecksumValue>\
         <CalculationTimestamp>2024-05-01T12:00:00.123+02:00</CalculationTimestamp></{element}>"
    )
}

/// What a put asks, after `PillarID`.
pub(crate) fn put(file_id: &str, address: &str, size: Option<u64>, md5: &str) -> String {
    let size = size.map_or_else(String::new, |size| format!("<FileSize>{size}</FileSize>"));
    format!(
        "<FileID>{}</FileID><FileAddress>{}</FileAddress>{size}{}",
        text(file_id),
        text(address),
        checksum_of_new_file(md5)
    )
}

/// What a replace asks, after `PillarID`: the file with the checksum `old` gives its place to `new`.
pub(crate) fn replace(file_id: &str, old: &str, address: &str, new: &[u8]) -> String {
    format!(
        "<FileID>{}</FileID>{}<FileAddress>{}</FileAddress><FileSize>{}</FileSize>{}",
        text(file_id),
        checksum_of_existing_file(old),
        text(address),
        new.len(),
        checksum_of_new_file(&md5(new))
    )
}

/// What a delete asks, after `PillarID`.
pub(crate) fn delete(file_id: &str, md5: &str) -> String {
    let file_id = text(file_id);
    format!(
        "<FileID>{file_id}</FileID>{}",
        checksum_of_existing_file(md5)
    )
}

/// One file, or all, in a listing request.
pub(crate) fn file_ids(file_id: Option<&str>) -> String {
    let content = file_id.map_or_else(
        || "<AllFileIDs>true</AllFileIDs>".to_owned(),
        |id| format!("<FileID>{}</FileID>", text(id)),
    );
    format!("<FileIDs>{content}</FileIDs>")
}
