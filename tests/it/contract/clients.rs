//! Clients: who they are, and what is theirs alone.

use std::time::{Duration, Instant};

use pillarbox_bus::{BusState, Outgoing, spelling};
use pillarbox_messages::{Destination, DestinationKind};

use super::{
    handling::{Kept, listen, next, persistent, same, text},
    site::Site,
};
use crate::support::PATIENCE;

/// An answer reaches the temporary queue of who asked, by the address that came with the question.
pub(super) async fn an_answer_to_a_temporary_queue(site: Site) -> Kept {
    let (asking, answering) = (
        site.connect("asking").await?,
        site.connect("answering").await?,
    );
    let own = Destination::new(DestinationKind::TemporaryQueue, "answers");
    let mut answers = asking.subscribe(listen(own.clone(), 10)).await?;
    let mut questions = answering.subscribe(listen(site.queue("work"), 10)).await?;
    for question in ["1", "2"] {
        asking
            .publish(Outgoing {
                reply_to: Some(own.clone()),
                correlation_id: Some(question.to_owned()),
                ..persistent(site.queue("work"), question)
            })
            .await?;
        let asked = next(&mut questions).await?;
        let address = asked.message.reply_to.as_deref();
        let address = address.and_then(spelling::from_stomp);
        let address = address.ok_or_else(|| format!("no address: {:?}", asked.message))?;
        answering
            .publish(Outgoing {
                correlation_id: asked.message.correlation_id.clone(),
                ..Outgoing::new(address, format!("answer {question}"))
            })
            .await?;
        asked.ack().await?;
        let answer = next(&mut answers).await?;
        same("the answer", text(&answer), format!("answer {question}"))?;
        same(
            "its correlation",
            answer.message.correlation_id.as_deref(),
            Some(question),
        )?;
        answer.ack().await?;
    }
    Ok(())
}

/// While a client is connected, nobody else connects with its id; afterwards somebody does.
pub(super) async fn a_live_id_is_refused(site: Site) -> Kept {
    let first = site.connect("kim").await?;
    same(
        "the second client",
        second_client(&site).await,
        "CLIENT-ID-IN-USE",
    )?;
    same(
        "the first client",
        first.state().borrow().clone(),
        BusState::Connected,
    )?;
    first.close().await?;
    site.connect("kim").await.map(drop)
}

/// What becomes of it: the refusal's name, or `connected`.
async fn second_client(site: &Site) -> String {
    let bus = match site.dial("kim") {
        Ok(bus) => bus,
        Err(refusal) => return refusal.name().to_owned(),
    };
    let deadline = Instant::now() + PATIENCE;
    loop {
        match bus.ready(Duration::from_secs(1)).await {
            Ok(()) => return "connected".to_owned(),
            Err(error) if error.name() != "UNREACHABLE" || Instant::now() > deadline => {
                return error.name().to_owned();
            }
            Err(_) => {}
        }
    }
}
