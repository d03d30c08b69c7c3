//! Answers and acknowledgements that belong together.

use super::{
    handling::{Kept, expect, listen, nothing, persistent, same, send_all, take},
    site::Site,
};

/// A commit sends the answers and takes the requests away.
pub(super) async fn a_commit_answers_and_acknowledges(site: Site) -> Kept {
    let bus = site.connect("worker").await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 10)).await?;
    send_all(&bus, &site.queue("work"), ["1", "2", "3"]).await?;
    let mut unit = bus.transaction();
    for body in ["1", "2", "3"] {
        unit.ack(expect(&mut work, body).await?);
        unit.send(persistent(site.queue("results"), format!("result {body}")));
    }
    unit.commit().await?;
    bus.close().await?;
    let bus = site.connect("reader").await?;
    let mut results = bus.subscribe(listen(site.queue("results"), 10)).await?;
    take(&mut results, &["result 1", "result 2", "result 3"]).await?;
    nothing(&mut results).await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 10)).await?;
    nothing(&mut work).await
}

/// What is aborted sends nothing, and its requests come again.
pub(super) async fn an_abort_undoes_all(site: Site) -> Kept {
    let bus = site.connect("worker").await?;
    let mut results = bus.subscribe(listen(site.queue("results"), 10)).await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 1)).await?;
    send_all(&bus, &site.queue("work"), ["1"]).await?;
    let mut unit = bus.transaction();
    unit.ack(expect(&mut work, "1").await?);
    unit.send(persistent(site.queue("results"), "never"));
    unit.abort().await?;
    take(&mut work, &["1"]).await?;
    send_all(&bus, &site.queue("results"), ["marker"]).await?;
    take(&mut results, &["marker"]).await
}

/// A worker that vanishes in the middle of a commit has sent nothing, and its request comes again.
pub(super) async fn who_vanishes_has_sent_nothing(site: Site) -> Kept {
    vanish_while_answering(&site).await?;
    let bus = site.connect("reader").await?;
    send_all(&bus, &site.queue("results"), ["marker"]).await?;
    let mut results = bus.subscribe(listen(site.queue("results"), 10)).await?;
    take(&mut results, &["marker"]).await
}

/// A worker that vanishes in the middle of a commit has lost nothing: its request comes again, and says so.
pub(super) async fn who_vanishes_has_lost_nothing(site: Site) -> Kept {
    vanish_while_answering(&site).await?;
    let bus = site.connect("next worker").await?;
    let mut work = bus.subscribe(listen(site.queue("work"), 10)).await?;
    let again = expect(&mut work, "1").await?;
    same("redelivered", again.message.redelivered, true)?;
    again.ack().await?;
    nothing(&mut work).await
}

/// Takes a request, and is cut off when the answer is sent and the acknowledgement is not.
async fn vanish_while_answering(site: &Site) -> Kept {
    let sender = site.connect("sender").await?;
    send_all(&sender, &site.queue("work"), ["1"]).await?;
    let (worker, fuse) = site.connect_to_break("worker").await?;
    let mut work = worker.subscribe(listen(site.queue("work"), 1)).await?;
    let mut unit = worker.transaction();
    unit.ack(expect(&mut work, "1").await?);
    unit.send(persistent(site.queue("results"), "the answer"));
    let Some(fuse) = fuse else {
        // Within one process, a commit is one step, and nobody vanishes in the middle of it.
        drop((unit, work, worker));
        return Ok(());
    };
    let committed = unit.commit().await;
    same("the commit has succeeded", committed.is_ok(), false)?;
    fuse.blown().await
}
