//! The pillar's half: each check of each request in its order, and what peers have come to expect.

mod asker;
mod checks;
mod expectations;
mod levels;
mod stage;

use pillarbox_messages::{
    Alarm, AlarmCode, AuditTrailEvent, FileAction, Header, Message, ResponseCode,
};

use self::{
    asker::Asker,
    stage::{Kind, Stage, codes},
};

type Ask = Box<dyn Fn(&Asker<'_>, &str) -> Message + Send + Sync>;
type Look = Box<dyn Fn(&[Message]) -> Result<(), String> + Send + Sync>;

/// One request and what must come of it.
pub(super) struct Row {
    name: String,
    kind: Kind,
    /// Makes the request, which may offer a file from the address.
    ask: Ask,
    /// Whether a file of its own is put before.
    with_own: bool,
    expected: Outcome,
    /// What is wrong with the answers beyond that.
    look: Option<Look>,
}

/// What comes of a request.
#[derive(Clone, Copy)]
struct Outcome {
    codes: &'static [ResponseCode],
    alarm: Option<Told>,
    audit: &'static [FileAction],
}

/// An alarm's code, and whether it names the collection and the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told(AlarmCode, bool, bool);

impl Told {
    fn of(alarm: &Alarm) -> Self {
        Self(
            alarm.alarm_code,
            alarm.collection_id.is_some(),
            alarm.file_id.is_some(),
        )
    }
}

/// What came of a request.
struct Seen {
    request: Message,
    answers: Vec<Message>,
    alarms: Vec<Alarm>,
    audit: Vec<AuditTrailEvent>,
}

/// What is not in the table, and why.
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "signature rows",
        "messages are not signed yet; settings that require it stop the start",
    ),
    (
        "delivery mode",
        "final responses and alarms are persistent, so that they survive a restart of the bus",
    ),
    (
        "PartialResult of a full last page",
        "it is true only if more exist, so that nobody asks for an empty page",
    ),
    (
        "failed downloads in retainDir",
        "they are deleted; only replaced and deleted files are kept there",
    ),
    (
        "bad messages dropped in silence",
        "whoever can be told is told, and an alarm is raised",
    ),
];

#[tokio::test]
async fn pillars_answer_every_request_as_the_tables_say() {
    let mut faults = Vec::new();
    for kind in Kind::ALL {
        let mut stage = Stage::start(kind).await;
        let rows = checks::rows(kind);
        let rows = rows.into_iter().chain(expectations::rows(&stage));
        for row in rows {
            let seen = stage.perform(&row).await;
            let wrong = compare(&row, &seen, &stage);
            print(&row, &seen, wrong.is_ok());
            if let Err(reason) = wrong {
                faults.push(format!("{} ({}): {reason}", row.name, kind.id()));
            }
        }
        stage.close().await;
    }
    for (what, why) in LEFT_OUT {
        println!("left out: {what}: {why}");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn print(row: &Row, seen: &Seen, fine: bool) {
    let codes: Vec<_> = codes(&seen.answers).iter().map(|it| it.as_str()).collect();
    let alarms: Vec<_> = seen
        .alarms
        .iter()
        .map(|it| it.alarm_code.as_str())
        .collect();
    let audit: Vec<_> = seen
        .audit
        .iter()
        .map(|it| it.action_on_file.as_str())
        .collect();
    println!(
        "{} {:4} {:64} {:44} {:58} {:22} {}",
        if fine { "  " } else { "!!" },
        row.kind.id(),
        row.name,
        seen.request.message_type().as_str(),
        codes.join(" "),
        alarms.join(" "),
        audit.join(" "),
    );
}

fn compare(row: &Row, seen: &Seen, stage: &Stage) -> Result<(), String> {
    let expected = &row.expected;
    let answered = codes(&seen.answers);
    if answered != expected.codes {
        return Err(format!("{answered:?} instead of {:?}", expected.codes));
    }
    let told: Vec<_> = seen.alarms.iter().map(Told::of).collect();
    let to_be_told: Vec<_> = expected.alarm.into_iter().collect();
    if told != to_be_told {
        return Err(format!("alarms {told:?} instead of {to_be_told:?}"));
    }
    let audit: Vec<_> = seen.audit.iter().map(|it| it.action_on_file).collect();
    if audit != expected.audit {
        return Err(format!("events {audit:?} instead of {:?}", expected.audit));
    }
    for event in &seen.audit {
        audited(event, &seen.request)?;
    }
    for answer in &seen.answers {
        addressed(answer, &seen.request, stage)?;
    }
    row.look.as_ref().map_or(Ok(()), |look| look(&seen.answers))
}

/// Who did it, in which conversation, for what the client wanted noted.
fn audited(event: &AuditTrailEvent, request: &Message) -> Result<(), String> {
    let header = request.header();
    let as_it_should = event.actor_on_file == header.from.as_str()
        && event.operation_id.as_deref() == Some(header.correlation_id.as_str())
        && Some(&event.file_id) == request.file_id()
        && event.info.as_ref().is_some_and(|info| !info.is_empty());
    as_it_should
        .then_some(())
        .ok_or_else(|| format!("the event is {event:?}"))
}

/// From whom, to whom, where, in which conversation, about which collection.
fn addressed(answer: &Message, request: &Message, stage: &Stage) -> Result<(), String> {
    let asked = request.header();
    let mut expected = Header {
        version: answer.header().version,
        destination: asked.reply_to.clone(),
        from: stage.kind.id().into(),
        to: Some(asked.from.clone()),
        ..asked.clone()
    };
    let repository = stage.client.repository();
    if let Some(collection) = asked
        .collection_id
        .as_ref()
        .filter(|id| id.as_str() != "foreign")
    {
        let own = repository.destinations(collection);
        expected.reply_to = own.pillar(&stage.kind.id().into());
    } else {
        expected.reply_to = answer.header().reply_to.clone();
    }
    if *answer.header() == expected {
        return Ok(());
    }
    Err(format!("{:?} instead of {expected:?}", answer.header()))
}
