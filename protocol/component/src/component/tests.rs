use std::time::Duration;

use pillarbox_bus::{
    AckMode, Broker, BrokerOptions, ClientTemplates, ConnectOptions, SubscribeRequest, Subscription,
};
use pillarbox_messages::{
    AlarmCode, DestinationKind, FileId, IdentifyPillarsForGetFileRequest, clock::SystemClock,
    properties,
};
use tempfile::TempDir;

use super::*;
use crate::rejection::RejectionReason;

const SOON: Duration = Duration::from_secs(20);
const SETTINGS: &str = r#"
[repository]
name = "Example archive"
[bus]
url = "embedded:"
[[collections]]
id = "books"
pillars = ["north"]
[[collections]]
id = "maps"
pillars = ["north", "south"]
[[collections]]
id = "tapes"
pillars = ["south"]
"#;

struct Site {
    _directory: TempDir,
    repository: Arc<Repository>,
    broker: Broker,
}

impl Site {
    async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let repository = Arc::new(Repository::from_toml_str(SETTINGS, "test").unwrap());
        let mut options = BrokerOptions::new(directory.path().join("bus"), SystemClock::shared());
        options.destinations = repository.bus_destinations();
        let templates = Arc::clone(&repository);
        options.client_templates =
            ClientTemplates::new(move |destination| templates.fits_client_template(destination));
        let broker = Broker::open(options).await.unwrap();
        Self {
            _directory: directory,
            repository,
            broker,
        }
    }

    fn connect(&self, id: &str) -> Bus {
        Bus::embedded(
            &self.broker,
            ConnectOptions {
                client_id: id.to_owned(),
            },
        )
        .unwrap()
    }

    fn pillar(&self, level: AlarmLevel) -> Component {
        let bus = self.connect("north");
        let repository = Arc::clone(&self.repository);
        let clock = SystemClock::shared();
        Component::new(ComponentOptions::pillar(
            "north".into(),
            repository,
            bus,
            clock,
            level,
        ))
    }

    fn client(&self) -> Component {
        self.client_of("client")
    }

    fn client_of(&self, id: &str) -> Component {
        let bus = self.connect(id);
        let repository = Arc::clone(&self.repository);
        let clock = SystemClock::shared();
        Component::new(ComponentOptions::client(
            id.into(),
            None,
            repository,
            bus,
            clock,
        ))
    }
}

async fn listen(component: &Component, destination: Destination) -> Subscription {
    let request = SubscribeRequest {
        ack_timeout: None,
        destination,
        durable: None,
        ack: AckMode::Auto,
        prefetch: 100,
    };
    component.bus().subscribe(request).await.unwrap()
}

async fn next(component: &Component, subscription: &mut Subscription) -> Received {
    let next = tokio::time::timeout(SOON, subscription.next());
    let delivery = next.await.unwrap().unwrap();
    component.receive(&delivery.message).unwrap()
}

fn identify(client: &Component, collection: &str) -> Message {
    let collection = CollectionId::from(collection);
    let destination = client.repository().destinations(&collection).collection();
    let header = client.request_header("c-1".into(), &collection, destination, None);
    let file_id = FileId::from("a.tif");
    IdentifyPillarsForGetFileRequest {
        header,
        audit_trail_information: None,
        file_id,
    }
    .into()
}

fn alarm(level: AlarmLevel, collection: Option<&str>) -> AlarmRequest {
    AlarmRequest {
        level,
        code: AlarmCode::FailedOperation,
        text: "what happened".to_owned(),
        collection: collection.map(CollectionId::from),
        file: None,
    }
}

#[tokio::test]
async fn a_refused_request_is_answered_and_raises_one_alarm() {
    let site = Site::open().await;
    let (pillar, client) = (site.pillar(AlarmLevel::Emergency), site.client());
    let books = CollectionId::from("books");
    let names = site.repository.destinations(&books);
    let mut requests = listen(&pillar, names.collection()).await;
    let mut answers = listen(&client, client.address(Some(&books))).await;
    let mut alarms = listen(&client, names.alarms().remove(0)).await;

    let mut bad = identify(&client, "books");
    bad.header_mut().version.min_version = 99;
    let mut raised = Vec::new();
    for _ in 0..50 {
        client.send(&bad).await.unwrap();
        let delivery = tokio::time::timeout(SOON, requests.next())
            .await
            .unwrap()
            .unwrap();
        let Err(Refusal::Rejected(rejection)) = pillar.receive(&delivery.message) else {
            panic!("accepted")
        };
        assert!(matches!(rejection.reason, RejectionReason::Version(_)));
        raised.push(pillar.reject(&rejection).await);
        let answer = next(&client, &mut answers).await.message;
        let Message::IdentifyPillarsForGetFileResponse(answer) = answer else {
            panic!("{answer:?}")
        };
        let code = answer.response_info.response_code;
        assert_eq!(code, ResponseCode::RequestNotUnderstoodFailure);
        assert_eq!(
            (answer.header.from.as_str(), answer.file_id.as_str()),
            ("north", "a.tif")
        );
        assert_eq!(answer.header.to, Some("client".into()));
        assert_eq!(answer.header.correlation_id.as_str(), "c-1");
        assert_eq!(answer.header.reply_to, names.pillar(pillar.id()));
    }
    assert_eq!(raised[0], Raised::Sent(1));
    assert!(raised[1..].iter().all(|raised| *raised == Raised::HeldBack));
    let Message::AlarmMessage(alarm) = next(&client, &mut alarms).await.message else {
        panic!("no alarm")
    };
    assert_eq!(alarm.alarm.alarm_code, AlarmCode::InvalidMessageVersion);
    assert_eq!(alarm.alarm.alarm_raiser.as_str(), "north");
    assert_eq!(alarm.header.collection_id, Some(books));
}

#[tokio::test]
async fn alarms_below_the_level_are_not_sent() {
    use AlarmLevel::{Emergency, Error, Warning};
    let site = Site::open().await;
    for (level, sent) in [(Warning, 3), (Error, 2), (Emergency, 1)] {
        let pillar = site.pillar(level);
        let mut count = 0;
        for request in [Warning, Error, Emergency].map(|level| alarm(level, Some("books"))) {
            let raised = pillar.alarms().raise(request).await;
            assert!(matches!(raised, Raised::Sent(1) | Raised::BelowLevel));
            count += usize::from(raised != Raised::BelowLevel);
        }
        assert_eq!(count, sent);
        pillar.bus().close().await.unwrap();
    }
}

#[tokio::test]
async fn an_alarm_about_no_collection_goes_to_every_collection_served() {
    let site = Site::open().await;
    let pillar = site.pillar(AlarmLevel::Warning);
    let client = site.client();
    let mut topics = Vec::new();
    for collection in ["books", "maps"] {
        let destination = site
            .repository
            .destinations(&collection.into())
            .alarms()
            .remove(0);
        topics.push((destination.clone(), listen(&client, destination).await));
    }
    assert_eq!(
        pillar.alarms().raise(alarm(AlarmLevel::Error, None)).await,
        Raised::Sent(2)
    );
    let mut ids = Vec::new();
    for (destination, topic) in &mut topics {
        let received = next(&client, topic).await.message;
        assert_eq!(received.header().destination, *destination);
        assert_eq!(received.header().collection_id, None);
        assert_eq!(received.header().to, None);
        ids.push(received.header().correlation_id.clone());
    }
    assert_eq!(ids[0], ids[1]);
    assert_eq!(
        pillar
            .alarms()
            .raise(alarm(AlarmLevel::Error, Some("no such")))
            .await,
        Raised::Sent(2)
    );
}

#[tokio::test]
async fn an_answer_to_a_temporary_queue_goes_to_the_transports_address() {
    let site = Site::open().await;
    let pillar = site.pillar(AlarmLevel::Error);
    let mut request = identify(&site.client(), "books");
    request.header_mut().reply_to = "temporary-queue://mine".parse().unwrap();
    let answer = pillar
        .refuse(&request, ResponseCode::Failure, "no")
        .unwrap();
    assert_eq!(
        answer.header().destination.to_string(),
        "temporary-queue://mine"
    );
    let sent = pillar.outgoing_reply(&answer, Some("/remote-temp-queue/ID:1.2"));
    let wire = Destination::new(DestinationKind::TemporaryQueue, "ID:1.2");
    assert_eq!(sent.destination, wire);
    let topic = identify(&site.client_of("other"), "books");
    let answer = pillar.refuse(&topic, ResponseCode::Failure, "no").unwrap();
    let sent = pillar.outgoing_reply(&answer, Some("/queue/elsewhere"));
    assert_eq!(sent.destination, topic.header().reply_to);
    assert!(
        sent.properties
            .iter()
            .any(|(name, _)| name == properties::TO)
    );
}

#[tokio::test]
async fn a_refusal_whose_sender_cannot_be_reached_still_raises_its_alarm() {
    let site = Site::open().await;
    let pillar = site.pillar(AlarmLevel::Emergency);
    let mut bad = identify(&site.client(), "books");
    bad.header_mut().reply_to = Destination::queue("nowhere");
    bad.header_mut().version.version = 1;
    let sent = pillar.outgoing(&bad);
    let incoming = Incoming {
        message_id: "m".to_owned(),
        destination: sent.destination,
        properties: sent.properties,
        body: sent.body,
        left_out: None,
        correlation_id: None,
        reply_to: None,
        persistent: false,
        redelivered: false,
        delivery_count: 1,
        backout_count: 0,
    };
    let Err(Refusal::Rejected(rejection)) = pillar.receive(&incoming) else {
        panic!("accepted")
    };
    assert_eq!(pillar.reject(&rejection).await, Raised::Sent(1));
}
