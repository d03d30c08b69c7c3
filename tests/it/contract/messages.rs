//! What is in a message arrives as it was sent.

use std::{collections::BTreeMap, sync::Arc};

use pillarbox_bus::{Incoming, Outgoing};

use super::{
    handling::{Broken, Kept, listen, next, persistent, same},
    site::Site,
};
use crate::support::{PATIENCE, noise};

/// Sends a message and gives what comes out.
async fn through(site: &Site, message: Outgoing) -> Result<Arc<Incoming>, Broken> {
    let bus = site.connect("a").await?;
    let mut queue = bus
        .subscribe(listen(message.destination.clone(), 10))
        .await?;
    bus.publish(message).await?;
    let delivery = next(&mut queue).await?;
    let message = Arc::clone(&delivery.message);
    delivery.ack().await?;
    bus.close().await?;
    Ok(message)
}

/// Sends properties and expects the same and no others; in what order is left to the broker.
async fn properties(site: &Site, sent: &[(&str, &str)]) -> Kept {
    let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    let message = Outgoing {
        properties: sent.iter().map(own).collect(),
        // Nothing of what the transport needs for these shows up as a property.
        ttl: Some(PATIENCE),
        correlation_id: Some("correlation".to_owned()),
        group: Some("group".to_owned()),
        ..persistent(site.queue("work"), "body")
    };
    let received = through(site, message).await?;
    let received: BTreeMap<_, _> = received.properties.iter().cloned().collect();
    same(
        "the properties",
        received,
        sent.iter().map(own).collect::<BTreeMap<_, _>>(),
    )
}

/// The names that the Java system uses.
pub(super) async fn names_with_dots(site: Site) -> Kept {
    let sent = [
        ("org.bitrepository.messages.type", "PutFileRequest"),
        ("org.bitrepository.messages.collectionid", "books"),
        ("org.bitrepository.messages.to", "north"),
    ];
    properties(&site, &sent).await
}

/// Values with all that STOMP has to escape, and with the space around them that nobody may trim.
pub(super) async fn values_with_special_characters(site: Site) -> Kept {
    let sent = [
        ("address", "http://127.0.0.1:8181/a?b=c"),
        ("path", r"C:\temp\new"),
        ("lines", "one\ntwo\n"),
        ("return", "one\r\ntwo"),
        ("escape", r"\c\n\r\\"),
        ("spaces", "  kim's desk  "),
    ];
    properties(&site, &sent).await
}

pub(super) async fn empty_values(site: Site) -> Kept {
    properties(&site, &[("empty", ""), ("full", "x")]).await
}

pub(super) async fn values_beyond_ascii(site: Site) -> Kept {
    properties(&site, &[("who", "Ærø"), ("what", "漢字"), ("clef", "𝄞")]).await
}

/// As long as a signature may be.
pub(super) async fn long_values(site: Site) -> Kept {
    properties(&site, &[("signature", &"Ab1+/=".repeat(1500))]).await
}

pub(super) async fn text(site: Site) -> Kept {
    let sent = "<?xml version=\"1.0\"?>\r\n<a b='æ'>漢字 𝄞 \\c</a>\n\n";
    let received = through(&site, persistent(site.queue("work"), sent)).await?;
    same("the text", str::from_utf8(&received.body), Ok(sent))
}

pub(super) async fn no_text_at_all(site: Site) -> Kept {
    let received = through(&site, persistent(site.queue("work"), "")).await?;
    same("the length", received.body.len(), 0)
}

pub(super) async fn a_mebibyte(site: Site) -> Kept {
    let sent: String = noise(7, 512 << 10)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let received = through(&site, persistent(site.queue("work"), sent.clone())).await?;
    same("the length", received.body.len(), sent.len())?;
    same("the text is unchanged", received.body == sent, true)
}

/// Spaces and apostrophes in the names of a queue and a topic, as the Java client's own topic has them.
pub(super) async fn names_with_spaces_and_apostrophes(site: Site) -> Kept {
    for destination in [
        site.queue("kim's work desk"),
        site.topic("kim's reading desk"),
    ] {
        let received = through(&site, persistent(destination.clone(), "here")).await?;
        same("the destination", &received.destination, &destination)?;
    }
    Ok(())
}

/// What the sender says about a message.
pub(super) async fn what_it_is(site: Site) -> Kept {
    let sent = Outgoing {
        correlation_id: Some("c: 1 \\ æ".to_owned()),
        reply_to: Some(site.topic("kim's reading desk")),
        priority: 7,
        ..persistent(site.queue("work"), "body")
    };
    let received = through(&site, sent.clone()).await?;
    same(
        "the correlation id",
        &received.correlation_id,
        &sent.correlation_id,
    )?;
    let reply_to = received.reply_to.as_deref();
    let reply_to = reply_to.and_then(pillarbox_bus::spelling::from_stomp);
    same("the reply address", &reply_to, &sent.reply_to)?;
    same("persistent", received.persistent, true)?;
    same("redelivered", received.redelivered, false)
}
