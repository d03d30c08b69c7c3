//! Brokers that are killed and start again.

use pillarbox_bus::{BusError, Outgoing, Subscription};

use super::{
    handling::{Broken, Kept, expect, listen, listen_durably, next, same, send_all, take, text},
    site::Site,
};

/// A persistent message is there after the broker was killed, on a queue and in a durable subscription.
pub(super) async fn persistent_messages_survive(site: Site) -> Kept {
    let mut site = site.of_its_own().await?;
    let keeper = site.connect("keeper").await?;
    let durable = listen_durably(site.topic("news"), "all of it");
    let news = keeper.subscribe(durable.clone()).await?;
    news.unsubscribe().await?;
    keeper.close().await?;
    let sender = site.connect("sender").await?;
    send_all(&sender, &site.queue("work"), ["1", "2"]).await?;
    send_all(&sender, &site.topic("news"), ["3", "4"]).await?;
    site.kill().await?;
    site.restart().await?;
    drop(sender);
    let keeper = site.connect("keeper").await?;
    let mut work = keeper.subscribe(listen(site.queue("work"), 10)).await?;
    take(&mut work, &["1", "2"]).await?;
    let mut news = keeper.subscribe(durable).await?;
    take(&mut news, &["3", "4"]).await
}

/// A client is connected again by itself when the broker is back: its subscriptions are there, what it had in hand
/// comes again, and what it sends meanwhile arrives.
pub(super) async fn clients_come_back(site: Site) -> Kept {
    let mut site = site.of_its_own().await?;
    let bus = site.connect("a").await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 2)).await?;
    let mut news = bus.subscribe(listen(site.topic("news"), 10)).await?;
    send_all(&bus, &site.queue("work"), ["1", "2"]).await?;
    let one = expect(&mut work, "1").await?;
    site.kill().await?;
    site.restart().await?;
    let sending = {
        let (bus, queue) = (bus.clone(), site.queue("work"));
        tokio::spawn(async move { send_all(&bus, &queue, ["3"]).await })
    };
    same("what was in hand", one.ack().await, Err(BusError::StaleAck))?;
    same(
        "what comes then",
        take_anew(&mut work, 3).await?,
        ["1", "2", "3"],
    )?;
    sending.await.map_err(|error| error.to_string())??;
    bus.publish(Outgoing::new(site.topic("news"), "4")).await?;
    take(&mut news, &["4"]).await
}

/// The same without anything that was there before: the subscriptions are made again, and what is sent while the broker
/// is away arrives.
pub(super) async fn clients_listen_again(site: Site) -> Kept {
    let mut site = site.of_its_own().await?;
    let bus = site.connect("a").await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 2)).await?;
    let mut news = bus.subscribe(listen(site.topic("news"), 10)).await?;
    site.kill().await?;
    let sending = {
        let (bus, queue) = (bus.clone(), site.queue("work"));
        tokio::spawn(async move { send_all(&bus, &queue, ["1"]).await })
    };
    site.restart().await?;
    take(&mut work, &["1"]).await?;
    sending.await.map_err(|error| error.to_string())??;
    bus.publish(Outgoing::new(site.topic("news"), "2")).await?;
    take(&mut news, &["2"]).await
}

/// What was acknowledged before the broker was killed does not come again.
pub(super) async fn acknowledged_stays_gone(site: Site) -> Kept {
    let mut site = site.of_its_own().await?;
    let bus = site.connect("first").await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 10)).await?;
    send_all(&bus, &site.queue("work"), ["1", "2", "3"]).await?;
    take(&mut work, &["1", "2"]).await?;
    site.kill().await?;
    // So that it does not take what is left.
    drop((work, bus));
    site.restart().await?;
    let bus = site.connect("second").await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 10)).await?;
    take(&mut work, &["3"]).await
}

/// The next messages of the connection that stands: what was delivered before can't be acknowledged any more.
async fn take_anew(subscription: &mut Subscription, count: usize) -> Result<Vec<String>, Broken> {
    let mut taken = Vec::new();
    while taken.len() < count {
        let delivery = next(subscription).await;
        let delivery = delivery.map_err(|broken| broken.after(&taken))?;
        let body = text(&delivery);
        match delivery.ack().await {
            Ok(()) => taken.push(body),
            Err(BusError::StaleAck) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(taken)
}
