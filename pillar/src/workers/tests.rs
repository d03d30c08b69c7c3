use std::{
    num::NonZeroU64,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, channel},
    },
    time::Instant,
};

use pillarbox_messages::clock::SystemClock;
use pillarbox_settings::Pace;

use super::*;

type Turn = fn(&mut Shift) -> Result<(), Interrupt>;

/// Does in each turn what it is told, and says when it starts.
struct Told {
    turns: Vec<Turn>,
    started: Sender<()>,
}

impl Worker for Told {
    const NAME: &'static str = "told";

    fn turn(&mut self, shift: &mut Shift) -> Result<(), Interrupt> {
        // Nobody counts the turns any more, once the test is over.
        _ = self.started.send(());
        match self.turns.pop() {
            Some(turn) => turn(shift),
            None => Ok(()),
        }
    }
}

struct Site {
    board: Board,
    background: Background,
    started: Receiver<()>,
    reports: Receiver<String>,
}

/// A worker that does these turns, then turns of nothing.
fn start(turns: &[Turn], interval: Duration) -> Site {
    let board = Board::default();
    let background = Background::new(board.clone(), SystemClock::shared());
    let ((sender, started), (report, reports)) = (channel(), channel());
    let worker = Told {
        turns: turns.iter().rev().copied().collect(),
        started: sender,
    };
    let work = BackgroundWork {
        pace: Pace(NonZeroU64::new(1_000)),
        interval,
    };
    let report: Report = Box::new(move |_, _, text| report.send(text.to_owned()).unwrap());
    background.start(worker, work, report);
    Site {
        board,
        background,
        started,
        reports,
    }
}

impl Site {
    fn status(&self) -> WorkerStatus {
        self.board.statuses().remove(0)
    }

    /// Lets so many turns begin.
    fn turns(&self, count: usize) {
        for _ in 0..count {
            self.started.recv_timeout(SOON).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_fault_or_a_panic_ends_one_turn_and_is_told_once() {
    let no_disk = |_: &mut Shift| Err(Interrupt::fault("no disk"));
    let panics = |_: &mut Shift| panic!("at the wrong time");
    let site = start(
        &[no_disk, no_disk, panics, |_| Ok(()), no_disk],
        Duration::from_millis(1),
    );
    site.turns(6);
    let told: Vec<String> = (0..3)
        .map(|_| site.reports.recv_timeout(SOON).unwrap())
        .collect();
    assert_eq!(told, ["no disk", "panicked: at the wrong time", "no disk"]);
    // The sixth turn, and all that follow, end well.
    site.turns(2);
    let status = site.status();
    assert_eq!(status.last_fault.unwrap().text, "no disk");
    assert!(status.last_end_ms.is_some());
    assert!(site.background.stop(SOON).await);
    assert!(site.reports.try_recv().is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_stops_in_its_rest_and_in_its_work() {
    let long = Duration::from_secs(3_600);
    let begun = Instant::now();
    let resting = start(&[], long);
    resting.turns(1);
    assert!(resting.background.stop(SOON).await);
    assert_eq!(resting.status().activity, Activity::Resting);
    let working = start(
        &[|shift| {
            shift.progress("half of it".to_owned());
            shift.spend(1_000_000)
        }],
        long,
    );
    working.turns(1);
    assert!(working.background.stop(SOON).await);
    let status = working.status();
    assert_eq!(status.activity, Activity::Working);
    assert_eq!(status.progress, "half of it");
    assert_eq!(status.last_end_ms, None);
    assert!(begun.elapsed() < SOON);
}

static DISK_ANSWERS: AtomicBool = AtomicBool::new(false);

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_that_a_disk_keeps_is_not_waited_for() {
    let site = start(
        &[|shift| {
            while !DISK_ANSWERS.load(Ordering::SeqCst) {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            shift.go_on()
        }],
        Duration::from_secs(1),
    );
    site.turns(1);
    assert!(!site.background.stop(Duration::from_millis(10)).await);
    DISK_ANSWERS.store(true, Ordering::SeqCst);
    assert!(site.background.stop(SOON).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn workers_that_nobody_needs_any_more_stop() {
    let site = start(&[|shift| shift.spend(1_000_000)], Duration::from_secs(1));
    site.turns(1);
    let tasks = site.background.tasks.clone();
    drop(site.background);
    tasks.close();
    tokio::time::timeout(SOON, tasks.wait()).await.unwrap();
}

const SOON: Duration = Duration::from_secs(20);
