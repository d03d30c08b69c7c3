//! Queues: order, acknowledgement, and who gets what.

use std::{collections::BTreeSet, time::Duration};

use pillarbox_bus::Outgoing;
use tokio::{task::block_in_place, time::sleep};

use super::{
    handling::{
        Kept, expect, listen, next, nothing, numbers, persistent, same, send_all, take, text,
    },
    site::Site,
};
use crate::support::{PATIENCE, stomp::Stomp};

/// One consumer gets the messages in the order in which they were sent.
pub(super) async fn in_order(site: Site) -> Kept {
    let (sender, consumer) = (
        site.connect("sender").await?,
        site.connect("consumer").await?,
    );
    let mut work = consumer.subscribe(listen(site.queue("work"), 10)).await?;
    let bodies = numbers(1000);
    let sending = tokio::spawn({
        let (bodies, queue) = (bodies.clone(), site.queue("work"));
        async move { send_all(&sender, &queue, bodies).await }
    });
    for body in &bodies {
        expect(&mut work, body).await?.ack().await?;
    }
    sending.await.map_err(|error| error.to_string())?
}

/// Two consumers share the messages: each goes to one of them.
pub(super) async fn each_once(site: Site) -> Kept {
    let bus = site.connect("sender").await?;
    let (one, other) = (site.connect("one").await?, site.connect("other").await?);
    let mut one = one.subscribe(listen(site.queue("work"), 5)).await?;
    let mut other = other.subscribe(listen(site.queue("work"), 5)).await?;
    let bodies = numbers(200);
    send_all(&bus, &site.queue("work"), bodies.clone()).await?;
    let mut missing: BTreeSet<String> = bodies.into_iter().collect();
    let mut served = BTreeSet::new();
    while !missing.is_empty() {
        let (delivery, consumer) = tokio::select! {
            delivery = next(&mut one) => (delivery?, 1),
            delivery = next(&mut other) => (delivery?, 2),
        };
        let body = text(&delivery);
        served.insert(consumer);
        if !missing.remove(&body) {
            return Err(format!("'{body}' comes a second time").into());
        }
        delivery.ack().await?;
    }
    same("the consumers that got something", served.len(), 2)
}

/// A consumer has no more in hand than it asked for, and gets one more for each that it acknowledges.
pub(super) async fn prefetch_is_the_limit(site: Site) -> Kept {
    let bus = site.connect("a").await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 3)).await?;
    send_all(&bus, &site.queue("work"), numbers(10)).await?;
    let first = expect(&mut work, "1").await?;
    let _second = expect(&mut work, "2").await?;
    let _third = expect(&mut work, "3").await?;
    nothing(&mut work).await?;
    first.ack().await?;
    let _fourth = expect(&mut work, "4").await?;
    nothing(&mut work).await
}

/// What is acknowledged never comes again.
pub(super) async fn acknowledged_is_gone(site: Site) -> Kept {
    let bus = site.connect("first").await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 10)).await?;
    send_all(&bus, &site.queue("work"), ["1", "2"]).await?;
    take(&mut work, &["1", "2"]).await?;
    bus.close().await?;
    let bus = site.connect("second").await?;
    send_all(&bus, &site.queue("work"), ["3"]).await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 10)).await?;
    expect(&mut work, "3").await?.ack().await?;
    nothing(&mut work).await
}

/// What a consumer has in hand when it disconnects comes to the next one before everything else, and says so.
pub(super) async fn unacknowledged_returns_to_the_front(site: Site) -> Kept {
    let sender = site.connect("sender").await?;
    send_all(&sender, &site.queue("work"), ["1", "2", "3", "4"]).await?;
    let bus = site.connect("first").await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 2)).await?;
    let one = expect(&mut work, "1").await?;
    let two = expect(&mut work, "2").await?;
    same(
        "redelivered",
        one.message.redelivered || two.message.redelivered,
        false,
    )?;
    bus.close().await?;
    let bus = site.connect("second").await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 10)).await?;
    for (body, again) in [("1", true), ("2", true), ("3", false), ("4", false)] {
        let delivery = expect(&mut work, body).await?;
        same("redelivered", delivery.message.redelivered, again)?;
        delivery.ack().await?;
    }
    Ok(())
}

/// The same for a consumer that keeps its connection, with all that it does beside, and only stops listening.
pub(super) async fn unsubscribing_returns_what_is_in_hand(site: Site) -> Kept {
    let bus = site.connect("a").await?;
    send_all(&bus, &site.queue("results"), ["beside"]).await?;
    let mut beside = bus.subscribe(listen(site.queue("results"), 1)).await?;
    let kept = expect(&mut beside, "beside").await?;
    send_all(&bus, &site.queue("work"), ["1", "2"]).await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 1)).await?;
    let _one = expect(&mut work, "1").await?;
    work.unsubscribe().await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 1)).await?;
    take(&mut work, &["1", "2"]).await?;
    Ok(kept.ack().await?)
}

/// What a consumer gives back comes again, until it is acknowledged.
pub(super) async fn given_back_comes_again(site: Site) -> Kept {
    let bus = site.connect("a").await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 1)).await?;
    send_all(&bus, &site.queue("work"), ["1"]).await?;
    expect(&mut work, "1").await?.nack().await?;
    let again = expect(&mut work, "1").await?;
    same("redelivered", again.message.redelivered, true)?;
    again.ack().await?;
    send_all(&bus, &site.queue("work"), ["2"]).await?;
    take(&mut work, &["2"]).await?;
    nothing(&mut work).await
}

/// A message that comes again has the id that it had, and no other message has it.
pub(super) async fn a_message_keeps_its_id(site: Site) -> Kept {
    let bus = site.connect("a").await?;
    send_all(&bus, &site.queue("work"), ["1", "2"]).await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 2)).await?;
    let first = expect(&mut work, "1").await?.message.clone();
    let second = expect(&mut work, "2").await?.message.clone();
    same("there are two", first.message_id != second.message_id, true)?;
    bus.close().await?;
    let bus = site.connect("b").await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 1)).await?;
    let again = expect(&mut work, "1").await?;
    same("the id", &again.message.message_id, &first.message_id)
}

/// A message is not delivered once its time is over, though nobody was there to notice.
pub(super) async fn expired_is_not_delivered(site: Site) -> Kept {
    const TTL: Duration = Duration::from_millis(300);
    let bus = site.connect("a").await?;
    let for_a_while = |body: &'static str, ttl| Outgoing {
        ttl: Some(ttl),
        ..persistent(site.queue("work"), body)
    };
    bus.publish(for_a_while("late", TTL)).await?;
    bus.publish(for_a_while("in time", PATIENCE)).await?;
    sleep(TTL * 2).await;
    let mut work = bus.subscribe(listen(site.queue("work"), 10)).await?;
    expect(&mut work, "in time").await?.ack().await?;
    nothing(&mut work).await
}

/// A message says which group it belongs to.
pub(super) async fn the_group_arrives(site: Site) -> Kept {
    let bus = site.connect("a").await?;
    bus.publish(Outgoing {
        group: Some("books:kim".to_owned()),
        ..persistent(site.queue("work"), "1")
    })
    .await?;
    let queue = format!("/queue/{}", site.queue("work").name());
    let received = block_in_place(|| {
        let mut consumer = Stomp::connect(site.port(), None);
        consumer.subscribe(&queue);
        consumer.message(PATIENCE)
    });
    let received = received.ok_or("no message comes")?;
    same(
        "the group",
        received.header("JMSXGroupID"),
        Some("books:kim"),
    )
}
