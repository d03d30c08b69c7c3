//! Topics, and subscriptions that outlive their subscriber's connection.

use pillarbox_bus::Outgoing;

use super::{
    handling::{Kept, expect, listen, listen_durably, nothing, numbers, send_all, take},
    site::Site,
};

/// Each subscriber gets everything, in order.
pub(super) async fn everybody_gets_everything(site: Site) -> Kept {
    let sender = site.connect("sender").await?;
    let mut subscriptions = Vec::new();
    for id in ["one", "two", "three"] {
        let bus = site.connect(id).await?;
        subscriptions.push(bus.subscribe(listen(site.topic("news"), 10)).await?);
    }
    let bodies = numbers(50);
    send_all(&sender, &site.topic("news"), bodies.clone()).await?;
    for subscription in &mut subscriptions {
        for body in &bodies {
            expect(subscription, body).await?.ack().await?;
        }
    }
    Ok(())
}

/// A plain subscriber gets what is sent while it listens, and nothing else.
pub(super) async fn plain_subscribers_get_the_present(site: Site) -> Kept {
    let (sender, listener) = (
        site.connect("sender").await?,
        site.connect("listener").await?,
    );
    send_all(&sender, &site.topic("news"), ["too early"]).await?;
    let mut news = listener.subscribe(listen(site.topic("news"), 10)).await?;
    send_all(&sender, &site.topic("news"), ["1"]).await?;
    take(&mut news, &["1"]).await?;
    news.unsubscribe().await?;
    send_all(&sender, &site.topic("news"), ["nobody hears this"]).await?;
    let mut news = listener.subscribe(listen(site.topic("news"), 10)).await?;
    send_all(&sender, &site.topic("news"), ["2"]).await?;
    take(&mut news, &["2"]).await?;
    nothing(&mut news).await
}

/// When subscribing has returned, the next message arrives, whoever sends it: fifty times without a pause.
pub(super) async fn a_subscription_is_there_at_once(site: Site) -> Kept {
    let (sender, listener) = (
        site.connect("sender").await?,
        site.connect("listener").await?,
    );
    for body in numbers(50) {
        let mut news = listener.subscribe(listen(site.topic("news"), 10)).await?;
        let message = Outgoing::new(site.topic("news"), body.clone());
        sender.publish(message).await?;
        expect(&mut news, &body).await?.ack().await?;
        news.unsubscribe().await?;
    }
    Ok(())
}

/// A durable subscription keeps what comes while its client is away.
pub(super) async fn a_durable_subscription_keeps(site: Site) -> Kept {
    let sender = site.connect("sender").await?;
    let keeper = site.connect("keeper").await?;
    let mut news = keeper
        .subscribe(listen_durably(site.topic("news"), "all of it"))
        .await?;
    send_all(&sender, &site.topic("news"), ["1"]).await?;
    take(&mut news, &["1"]).await?;
    keeper.close().await?;
    send_all(&sender, &site.topic("news"), ["2", "3"]).await?;
    // The Java system sends everything volatile.
    sender
        .publish(Outgoing::new(site.topic("news"), "4"))
        .await?;
    let keeper = site.connect("keeper").await?;
    let mut news = keeper
        .subscribe(listen_durably(site.topic("news"), "all of it"))
        .await?;
    take(&mut news, &["2", "3", "4"]).await?;
    nothing(&mut news).await
}

/// What a durable subscription has delivered and nobody acknowledged comes again.
pub(super) async fn a_durable_subscription_delivers_again(site: Site) -> Kept {
    let keeper = site.connect("keeper").await?;
    let durable = || listen_durably(site.topic("news"), "all of it");
    let mut news = keeper.subscribe(durable()).await?;
    send_all(&keeper, &site.topic("news"), ["1", "2"]).await?;
    take(&mut news, &["1"]).await?;
    let _two = expect(&mut news, "2").await?;
    keeper.close().await?;
    let keeper = site.connect("keeper").await?;
    let mut news = keeper.subscribe(durable()).await?;
    take(&mut news, &["2"]).await?;
    nothing(&mut news).await
}

/// A durable subscription that is cancelled forgets what it has kept, and keeps no more.
pub(super) async fn a_cancelled_subscription_forgets(site: Site) -> Kept {
    let bus = site.connect("keeper").await?;
    let durable = || listen_durably(site.topic("news"), "for a while");
    let news = bus.subscribe(durable()).await?;
    news.unsubscribe().await?;
    send_all(&bus, &site.topic("news"), ["forgotten"]).await?;
    let news = bus.subscribe(durable()).await?;
    news.cancel().await?;
    send_all(&bus, &site.topic("news"), ["not kept"]).await?;
    let mut news = bus.subscribe(durable()).await?;
    send_all(&bus, &site.topic("news"), ["1"]).await?;
    take(&mut news, &["1"]).await?;
    nothing(&mut news).await
}
