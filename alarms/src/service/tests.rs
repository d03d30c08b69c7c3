use std::time::Instant;

use pillarbox_bus::{Broker, BrokerOptions, ConnectOptions, Outgoing, Stats};
use pillarbox_component::{AlarmRequest, Component, ComponentOptions, Raised};
use pillarbox_messages::{AlarmCode, CorrelationId, clock::SystemClock, properties};
use pillarbox_settings::{AlarmLevel, ZonelessDates};
use tempfile::TempDir;

use super::*;
use crate::store::{AlarmFilter, StoredAlarm};

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
pillars = ["north"]
"#;

/// A site: a bus with the alarm service's subscriptions, and a pillar that raises alarms.
struct Site {
    directory: TempDir,
    repository: Arc<Repository>,
    broker: Broker,
}

impl Site {
    async fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let repository = Arc::new(Repository::from_toml_str(SETTINGS, "test").unwrap());
        let broker = Broker::open(broker_options(&directory, &repository))
            .await
            .unwrap();
        Self {
            directory,
            repository,
            broker,
        }
    }

    async fn restart_bus(self) -> Self {
        self.broker.shutdown().await;
        let broker = Broker::open(broker_options(&self.directory, &self.repository))
            .await
            .unwrap();
        Self { broker, ..self }
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

    fn pillar(&self) -> Component {
        Component::new(ComponentOptions::pillar(
            "north".into(),
            Arc::clone(&self.repository),
            self.connect("north"),
            SystemClock::shared(),
            AlarmLevel::Warning,
        ))
    }

    async fn service(&self) -> (AlarmService, Bus) {
        let bus = self.connect("alarm-service");
        let service = AlarmService::start(AlarmServiceOptions {
            id: "alarm-service".into(),
            repository: Arc::clone(&self.repository),
            bus: bus.clone(),
            data: self.data(),
            clock: SystemClock::shared(),
            zoneless: ZonelessDates::default(),
        });
        (service.await.unwrap(), bus)
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn stored(&self) -> Vec<StoredAlarm> {
        let path = AlarmStore::path_in(&self.data());
        AlarmStore::open_read(&path)
            .unwrap()
            .list(&AlarmFilter::default())
            .unwrap()
    }

    /// Until the bus is as wanted.
    async fn until(&self, wanted: impl Fn(&Stats) -> bool) {
        let started = Instant::now();
        while !wanted(&self.broker.stats()) {
            assert!(
                started.elapsed() < SOON,
                "not in time: {:#?}",
                self.broker.stats()
            );
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The rows, once they are as wanted.
    async fn stored_when(&self, wanted: impl Fn(&[StoredAlarm]) -> bool) -> Vec<StoredAlarm> {
        let started = Instant::now();
        loop {
            let rows = self.stored();
            if wanted(&rows) {
                return rows;
            }
            assert!(started.elapsed() < SOON, "not in time: {rows:#?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn broker_options(directory: &TempDir, repository: &Repository) -> BrokerOptions {
    let mut options = BrokerOptions::new(directory.path().join("bus"), SystemClock::shared());
    options.destinations = repository.bus_destinations();
    options.durable_subscriptions = repository
        .durable_subscriptions(&"alarm-service".into())
        .into_iter()
        .map(|it| (it.client_id.to_string(), it.name, it.destination))
        .collect();
    options
}

fn alarm(text: &str) -> AlarmRequest {
    AlarmRequest {
        level: AlarmLevel::Error,
        code: AlarmCode::ChecksumAlarm,
        text: text.to_owned(),
        collection: Some("books".into()),
        file: Some("a.tif".into()),
    }
}

#[tokio::test]
async fn an_alarm_is_stored_as_it_was_raised() {
    let site = Site::open().await;
    let (service, _bus) = site.service().await;
    let text = "<script>first</script>\nsecond line";
    assert_eq!(
        site.pillar().alarms().raise(alarm(text)).await,
        Raised::Sent(1)
    );
    let rows = site.stored_when(|rows| rows.len() == 1).await;
    let row = &rows[0];
    assert_eq!(
        (row.kind, row.code, row.count),
        (EntryKind::Alarm, AlarmCode::ChecksumAlarm, 1)
    );
    assert_eq!((row.raiser.as_str(), row.text.as_str()), ("north", text));
    assert_eq!(row.collection, Some("books".into()));
    assert_eq!(row.file, Some("a.tif".into()));
    service.shutdown().await;
}

#[tokio::test]
async fn an_alarm_raised_while_the_service_is_down_is_stored_after_its_return() {
    let mut site = Site::open().await;
    let (service, bus) = site.service().await;
    service.shutdown().await;
    bus.close().await.unwrap();
    for (round, restart_bus) in (1..).zip([false, true]) {
        let text = format!("round {round}");
        let pillar = site.pillar();
        assert_eq!(pillar.alarms().raise(alarm(&text)).await, Raised::Sent(1));
        pillar.bus().close().await.unwrap();
        if restart_bus {
            site = site.restart_bus().await;
        }
        let (service, bus) = site.service().await;
        site.stored_when(|rows| rows.iter().any(|row| row.text == text))
            .await;
        service.shutdown().await;
        bus.close().await.unwrap();
    }
    let counts: Vec<u64> = site.stored().iter().map(|row| row.count).collect();
    assert_eq!(counts, [1, 1]);
}

#[tokio::test]
async fn an_alarm_about_no_collection_goes_to_all_and_counts_once() {
    let site = Site::open().await;
    let (service, _bus) = site.service().await;
    let pillar = site.pillar();
    let everywhere = AlarmRequest {
        collection: None,
        ..alarm("disk full")
    };
    assert_eq!(pillar.alarms().raise(everywhere).await, Raised::Sent(2));
    pillar.alarms().raise(alarm("last")).await;
    pillar
        .alarms()
        .raise(AlarmRequest {
            collection: Some("maps".into()),
            ..alarm("last")
        })
        .await;
    let rows = site.stored_when(|rows| rows.len() == 3).await;
    let row = rows.iter().find(|row| row.text == "disk full").unwrap();
    assert_eq!((row.count, &row.collection), (1, &None));
    service.shutdown().await;
}

#[tokio::test]
async fn ten_thousand_identical_alarms_are_one_row() {
    let site = Site::open().await;
    let (service, _bus) = site.service().await;
    let pillar = site.pillar();
    let template = alarm_message(&pillar);
    for _ in 0..20 {
        let batch = (0..500).map(|_| {
            let mut outgoing = template.clone();
            let id = CorrelationId::random();
            let text = String::from_utf8(outgoing.body.to_vec()).unwrap();
            outgoing.body = text.replace("@id@", id.as_str()).into();
            outgoing
        });
        pillar.bus().publish_all(batch.collect()).await.unwrap();
    }
    let rows = site
        .stored_when(|rows| rows.iter().map(|row| row.count).sum::<u64>() == 10_000)
        .await;
    assert_eq!(rows.len(), 1);
    service.shutdown().await;
}

#[tokio::test]
async fn what_cannot_be_read_is_stored_and_blocks_nothing() {
    let site = Site::open().await;
    let (service, _bus) = site.service().await;
    let pillar = site.pillar();
    let readable = alarm_message(&pillar);
    let text = String::from_utf8(readable.body.to_vec()).unwrap();
    let zoneless = text.replace(".000Z</OrigDateTime>", "</OrigDateTime>");
    assert_ne!(zoneless, text);
    let other_version = text.replace("minVersion=\"24\"", "minVersion=\"99\"");
    let bodies: [&[u8]; 4] = [
        b"\xFF\xFE",
        b"<not/>",
        zoneless.as_bytes(),
        other_version.as_bytes(),
    ];
    for body in bodies {
        let body = body.to_vec().into();
        pillar
            .bus()
            .publish(Outgoing {
                body,
                ..readable.clone()
            })
            .await
            .unwrap();
    }
    pillar.alarms().raise(alarm("behind them")).await;
    let rows = site.stored_when(|rows| rows.len() == 5).await;
    let unreadable: Vec<_> = rows
        .iter()
        .filter(|row| row.kind == EntryKind::Unreadable)
        .collect();
    assert_eq!(unreadable.len(), 4);
    assert!(
        unreadable
            .iter()
            .any(|row| row.code == AlarmCode::InvalidMessageVersion)
    );
    assert!(
        unreadable
            .iter()
            .any(|row| row.raw.as_deref() == Some("<not/>"))
    );
    assert!(unreadable.iter().any(|row| row.raiser.as_str() == "north"));
    service.shutdown().await;
}

#[tokio::test]
async fn what_is_no_alarm_is_passed_over() {
    use pillarbox_messages::{FileId, IdentifyPillarsForGetFileRequest};

    let site = Site::open().await;
    let (service, _bus) = site.service().await;
    let pillar = site.pillar();
    let topic = pillar
        .repository()
        .destinations(&"books".into())
        .alarms()
        .remove(0);
    let header = pillar.request_header("c-1".into(), &"books".into(), topic, None);
    let file_id = FileId::from("a");
    let request = IdentifyPillarsForGetFileRequest {
        header,
        audit_trail_information: None,
        file_id,
    };
    pillar.send(&request.into()).await.unwrap();
    pillar.alarms().raise(alarm("behind it")).await;
    let rows = site.stored_when(|rows| !rows.is_empty()).await;
    site.until(|stats| stats.in_flight == 0 && stats.acknowledged == 2)
        .await;
    assert_eq!(rows.len(), 1);
    service.shutdown().await;
}

#[tokio::test]
async fn nothing_is_acknowledged_before_it_can_be_stored() {
    let site = Site::open().await;
    let (service, bus) = site.service().await;
    let path = AlarmStore::path_in(&site.data());
    let blocker = rusqlite::Connection::open(&path).unwrap();
    blocker
        .execute_batch("ALTER TABLE seen RENAME TO hidden")
        .unwrap();
    let pillar = site.pillar();
    pillar.alarms().raise(alarm("kept on the bus")).await;
    site.until(|stats| stats.in_flight == 1).await;
    // The service fails, waits and tries again; it is stopped meanwhile and gives the alarm back.
    tokio::time::timeout(SOON, service.shutdown())
        .await
        .unwrap();
    bus.close().await.unwrap();
    blocker
        .execute_batch("ALTER TABLE hidden RENAME TO seen")
        .unwrap();
    assert_eq!(site.stored(), []);
    let (service, _bus) = site.service().await;
    let rows = site.stored_when(|rows| rows.len() == 1).await;
    assert_eq!(
        (rows[0].text.as_str(), rows[0].count),
        ("kept on the bus", 1)
    );
    service.shutdown().await;
}

#[tokio::test]
async fn a_store_that_recovers_takes_what_waited() {
    let site = Site::open().await;
    let (service, _bus) = site.service().await;
    let path = AlarmStore::path_in(&site.data());
    let blocker = rusqlite::Connection::open(&path).unwrap();
    blocker
        .execute_batch("ALTER TABLE seen RENAME TO hidden")
        .unwrap();
    site.pillar().alarms().raise(alarm("waits")).await;
    site.until(|stats| stats.in_flight == 1).await;
    blocker
        .execute_batch("ALTER TABLE hidden RENAME TO seen")
        .unwrap();
    let rows = site.stored_when(|rows| rows.len() == 1).await;
    assert_eq!(rows[0].count, 1);
    site.until(|stats| stats.in_flight == 0 && stats.acknowledged == 1)
        .await;
    service.shutdown().await;
}

/// An alarm message to the topic of books, whose correlation id is `@id@` and time ends in .000Z.
fn alarm_message(pillar: &Component) -> Outgoing {
    use pillarbox_messages::{Alarm, AlarmMessage, Header, ProtocolVersion, Timestamp};

    let destination = pillar
        .repository()
        .destinations(&"books".into())
        .alarms()
        .remove(0);
    let header = Header {
        version: ProtocolVersion::CURRENT,
        correlation_id: "@id@".into(),
        collection_id: Some("books".into()),
        destination,
        reply_to: pillar.address(None),
        from: pillar.id().clone(),
        to: None,
    };
    let alarm = Alarm {
        orig_date_time: Timestamp::from_millis(1_600_000_000_000),
        alarm_code: AlarmCode::InvalidMessage,
        alarm_raiser: pillar.id().clone(),
        alarm_text: "a flood".to_owned(),
        file_id: None,
        collection_id: Some("books".into()),
    };
    let message = AlarmMessage { header, alarm }.into();
    let outgoing = pillar.outgoing(&message);
    assert_eq!(outgoing.properties[0].0, properties::TYPE);
    outgoing
}
