use tokio::sync::mpsc;

use super::*;

const SOON: Duration = Duration::from_secs(10);

fn workers(parallel: usize, held: usize) -> KeyedWorkers<u32> {
    KeyedWorkers::new(WorkerLimits { parallel, held })
}

#[tokio::test]
async fn jobs_of_one_key_run_in_order_and_others_beside_them() {
    let workers = workers(4, 300);
    let (log, mut seen) = mpsc::unbounded_channel();
    let (release, gate) = oneshot::channel::<()>();
    let first = log.clone();
    workers
        .submit(1, async move {
            gate.await.unwrap();
            first.send((1, 0)).unwrap();
        })
        .await
        .unwrap();
    for job in 1..100 {
        let log = log.clone();
        workers
            .submit(1, async move { log.send((1, job)).unwrap() })
            .await
            .unwrap();
    }
    let other = log.clone();
    workers
        .submit(2, async move { other.send((2, 0)).unwrap() })
        .await
        .unwrap();
    assert_eq!(seen.recv().await, Some((2, 0)));
    release.send(()).unwrap();
    for job in 0..100 {
        assert_eq!(seen.recv().await, Some((1, job)));
    }
    tokio::time::timeout(SOON, workers.idle()).await.unwrap();
}

#[tokio::test]
async fn a_panic_is_an_outcome_and_the_key_goes_on() {
    let workers = workers(1, 10);
    let ticket = workers
        .submit(1, async { panic!("no {}", "luck") })
        .await
        .unwrap();
    let after = workers.submit(1, async { 7 }).await.unwrap();
    let Outcome::<()>::Panicked(panicked) = ticket.await else {
        panic!("not caught")
    };
    assert_eq!(panicked.message, "no luck");
    assert_eq!(after.await, Outcome::Done(7));
    assert_eq!(catch(async { 1 }).await, Ok(1));
}

#[tokio::test]
async fn submitting_waits_for_room() {
    let workers = workers(1, 2);
    let (release, gate) = oneshot::channel::<()>();
    workers
        .submit(1, async move { gate.await.unwrap() })
        .await
        .unwrap();
    workers.submit(2, async {}).await.unwrap();
    let mut third = std::pin::pin!(workers.submit(3, async {}));
    assert!(third.as_mut().now_or_never().is_none());
    release.send(()).unwrap();
    tokio::time::timeout(SOON, third).await.unwrap().unwrap();
}

#[tokio::test]
async fn draining_finishes_what_it_can() {
    let workers = workers(1, 10);
    let (release, gate) = oneshot::channel::<()>();
    let running = workers
        .submit(1, async move { gate.await.is_ok() })
        .await
        .unwrap();
    let behind = workers.submit(2, async { 2 }).await.unwrap();
    let mut drain = std::pin::pin!(workers.drain(SOON));
    assert!(drain.as_mut().now_or_never().is_none());
    assert_eq!(workers.submit(3, async {}).await.err(), Some(Draining));
    release.send(()).unwrap();
    let nothing = Drained {
        stopped: vec![],
        unstarted: vec![],
    };
    assert_eq!(drain.await, nothing);
    assert_eq!(running.await, Outcome::Done(true));
    assert_eq!(behind.await, Outcome::Done(2));
}

#[tokio::test]
async fn draining_stops_and_names_the_rest() {
    let workers = workers(2, 10);
    let stuck = workers
        .submit(2, std::future::pending::<()>())
        .await
        .unwrap();
    let behind = workers.submit(2, async {}).await.unwrap();
    let drained = workers.drain(Duration::from_millis(20)).await;
    assert_eq!(
        drained,
        Drained {
            stopped: vec![2],
            unstarted: vec![2]
        }
    );
    assert_eq!(stuck.await, Outcome::Abandoned);
    assert_eq!(behind.await, Outcome::Abandoned);
    assert_eq!(workers.submit(3, async {}).await.err(), Some(Draining));
}

#[tokio::test]
async fn draining_with_nothing_to_do_is_quick() {
    let workers = workers(2, 10);
    let ticket = workers.submit(1, async { 1 }).await.unwrap();
    let drained = tokio::time::timeout(SOON, workers.drain(Duration::MAX))
        .await
        .unwrap();
    assert_eq!(
        drained,
        Drained {
            stopped: vec![],
            unstarted: vec![]
        }
    );
    assert_eq!(ticket.await, Outcome::Done(1));
    assert!(
        *workers.shared.abandoned.borrow(),
        "whoever got room just before the end would start now"
    );
}
