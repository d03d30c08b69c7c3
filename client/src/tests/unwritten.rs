//! A conversation that can't be written down for a while.

use std::fs;

use pillarbox_bus::Outgoing;
use pillarbox_messages::{CorrelationId, Message, ResponseCode};
use tokio::time::timeout;

use super::{
    operations::until,
    redelivered::{answers, arrived, conversation, ended, launch, listen, ready, requests},
    site::{PLENTY, Site},
};
use crate::{
    Client, ClientOptions, Concern, Event, EventKind, Journal, Running, journal::KeptCargo,
    task::Keeping,
};

/// What the next event says, which is about the journal.
async fn warning(running: &mut Running) -> String {
    let event = next(running).await;
    match (&event.kind, event.info) {
        (
            EventKind::Warning {
                concern: Concern::Journal,
                ..
            },
            Some(info),
        ) => info,
        other => panic!("{other:?}"),
    }
}

async fn next(running: &mut Running) -> Event {
    let event = timeout(PLENTY, running.next_event()).await.unwrap();
    event.expect("an event")
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_told_goes_on_and_is_written_down_later() {
    let site = Site::start().await;
    let journals = site.directory.path().join("journals");
    let journal = Journal::open(&journals, &"reader".into()).unwrap();
    let client = Client::connect(ClientOptions {
        named: true,
        journal: Some(journal.clone()),
        ..site.options("reader", PLENTY)
    });
    let client = client.unwrap();
    let north = site.bus("north");
    let mut asked = listen(&north, requests()).await;
    let mut ear = listen(&north, answers()).await;
    let say = async |message: Message| {
        let outgoing = Outgoing::new(answers(), message.to_xml());
        north.publish(outgoing).await.unwrap();
    };

    let correlation = CorrelationId::random();
    let conversation = conversation(&correlation);
    let slot = journal.slot(&correlation).unwrap();
    let entry = slot.path().to_owned();
    let keeping = Keeping::new(slot, true, KeptCargo::Nothing, &conversation);
    keeping.begin(&conversation).await.unwrap();
    // Where the next entry is written before it takes the place of this one.
    let obstacle = entry.with_extension("conversation.new");
    fs::create_dir(&obstacle).unwrap();
    let (mut running, inbox) = launch(&client, conversation, Some(keeping));
    let stands = || fs::read_to_string(&entry).unwrap();

    assert_eq!(
        next(&mut running).await.kind.name(),
        "IDENTIFY_REQUEST_SENT"
    );
    say(ready(&correlation)).await;
    inbox.send(arrived(&client, &mut ear).await).await.unwrap();
    for _ in 0..3 {
        next(&mut running).await;
    }
    let told = warning(&mut running).await;
    assert!(
        told.starts_with("how the operation stands could not"),
        "{told}"
    );
    assert!(told.contains("it is tried again"), "{told}");
    timeout(PLENTY, asked.next()).await.unwrap().unwrap();
    assert!(!stands().contains("Performing"), "{}", stands());
    fs::remove_dir(&obstacle).unwrap();
    until(|| stands().contains("Performing")).await;

    fs::create_dir(&obstacle).unwrap();
    say(ended(&correlation, ResponseCode::OperationCompleted)).await;
    inbox.send(arrived(&client, &mut ear).await).await.unwrap();
    assert_eq!(next(&mut running).await.kind.name(), "COMPONENT_COMPLETE");
    let told = warning(&mut running).await;
    assert!(
        told.starts_with("how the operation ended could not"),
        "{told}"
    );
    assert!(next(&mut running).await.is_final());
    let (outcome, telling) = timeout(PLENTY, running.outcome_to_tell()).await.unwrap();
    assert!(outcome.complete, "{outcome:?}");
    telling.told();
    assert!(!entry.exists());
}
