//! What is written is read, and nothing else does harm.

use proptest::prelude::*;

use super::*;
use crate::core::message::QueuedMessage;

fn text() -> impl Strategy<Value = String> {
    "\\PC{0,12}"
}

fn id() -> impl Strategy<Value = MessageId> {
    (any::<u64>(), any::<u64>()).prop_map(|(boot, seq)| MessageId { boot, seq })
}

fn place() -> impl Strategy<Value = Place> {
    (
        any::<u64>(),
        any::<u32>(),
        any::<u32>(),
        any::<Option<i64>>(),
        proptest::option::of((any::<[u64; 2]>(), id(), any::<i64>())),
        any::<Option<(u64, u64)>>(),
        durable::tests::any_gap(),
    )
        .prop_map(
            |(queue, delivery_count, backout_count, retry_at, position, hand, gap)| Place {
                queue: QueueId(queue),
                delivery_count,
                backout_count,
                retry_at,
                position: position.map(|(criteria, turn, sub)| SortKey {
                    criteria,
                    turn,
                    sub,
                }),
                hand: hand.map(|(consumer, delivery)| Hand { consumer, delivery }),
                gap,
            },
        )
}

fn message() -> impl Strategy<Value = QueuedMessage> {
    let fixed = (id(), any::<i64>(), 0..=MAX_PRIORITY, 0..=5_usize);
    let failure = proptest::option::of((any::<i64>(), 0..CAUSES.len()));
    let times = (any::<Option<i64>>(), any::<Option<i64>>(), failure);
    let texts = (
        text(),
        text(),
        proptest::option::of(text()),
        proptest::option::of(text()),
    );
    let content = (
        proptest::collection::vec((text(), text()), 0..4),
        proptest::collection::vec(any::<u8>(), 0..64),
    );
    (fixed, times, texts, content).prop_map(|(fixed, times, texts, content)| {
        let headers = content.0.iter();
        let parts = Parts {
            id: fixed.0,
            origin: &texts.0,
            enqueued_at: fixed.1,
            destination: (DestinationKind::Queue, &texts.1),
            destination_text: &texts.1,
            headers: headers.map(|(name, value)| (&**name, &**value)).collect(),
            body: &content.1,
            persistent: true,
            priority: fixed.2,
            not_before: times.0,
            expires_at: times.1,
            correlation_id: texts.2.as_deref(),
            reply_to: texts.3.as_deref(),
            group: texts.2.as_deref(),
            original_destination: texts.3.as_deref(),
            reason: REASONS.get(fixed.3).map(|(_, reason)| *reason),
            failure: times.2.map(|(failed_at, cause)| Failure {
                failed_at,
                cause: CAUSES[cause].1,
            }),
        };
        let message = parts.pack(&mut Addresses::default());
        assert_eq!(message.parts(), parts, "packing changes nothing");
        message
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        any::<u64>().prop_map(Entry::Boot),
        (
            any::<u64>(),
            text(),
            text(),
            text(),
            durable::tests::any_limits(),
            durable::tests::any_nature()
        )
            .prop_map(|(queue, client_id, name, topic, limits, nature)| {
                let definition = Definition::Durable {
                    client_id,
                    name,
                    topic,
                    limits,
                    nature,
                };
                Entry::Define {
                    queue: QueueId(queue),
                    definition,
                }
            }),
        (any::<u64>(), durable::tests::any_standing()).prop_map(|(queue, standing)| {
            Entry::Standing {
                queue: QueueId(queue),
                standing,
            }
        }),
        (
            any::<u64>(),
            text(),
            attributes::tests::any_attributes(),
            attributes::tests::any_drain()
        )
            .prop_map(|(queue, name, attributes, drain)| {
                let definition = Definition::Queue {
                    name,
                    attributes,
                    drain,
                };
                Entry::Define {
                    queue: QueueId(queue),
                    definition,
                }
            }),
        any::<u64>().prop_map(|queue| Entry::Remove {
            queue: QueueId(queue)
        }),
        (message(), proptest::collection::vec(place(), 0..4)).prop_map(|(message, places)| {
            Entry::Put {
                message: Arc::new(message),
                places,
            }
        }),
        (any::<u64>(), proptest::collection::vec(id(), 0..4)).prop_map(|(queue, ids)| {
            Entry::Ack {
                queue: QueueId(queue),
                ids,
            }
        }),
        (id(), place()).prop_map(|(id, place)| Entry::Count { id, place }),
        (id(), any::<i64>(), text(), text()).prop_map(|(message, at, destination, id)| {
            Entry::Remember {
                message,
                at,
                destination,
                id,
            }
        }),
    ]
}

#[test]
fn a_durable_subscription_of_an_earlier_format_has_the_usual_limits() {
    let mut bytes = vec![DEFINE];
    put_u64(&mut bytes, 7);
    bytes.push(DURABLE);
    for text in ["d", "mine", "news"] {
        put_bytes(&mut bytes, text.as_bytes());
    }
    let definition = Definition::Durable {
        client_id: "d".to_owned(),
        name: "mine".to_owned(),
        topic: "news".to_owned(),
        limits: SubscriptionLimits::default(),
        nature: Nature::default(),
    };
    let queue = QueueId(7);
    assert_eq!(
        decode(&bytes, &mut Addresses::default()),
        Some(vec![Entry::Define { queue, definition }])
    );
}

proptest! {
    #[test]
    fn what_is_written_is_read(entries in proptest::collection::vec(entry(), 0..6)) {
        let mut bytes = Vec::new();
        entries.iter().for_each(|entry| encode(entry, &mut bytes));
        prop_assert_eq!(decode(&bytes, &mut Addresses::default()), Some(entries));
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        let _ = decode(&bytes, &mut Addresses::default());
    }
}
