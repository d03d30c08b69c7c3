//! Alarms that a crash or an absent bus kept from people.

use super::*;
use crate::{index::Observation, noticing};

const ORIGINAL: &[u8] = b"as it was put\n";
const ROTTEN: &[u8] = b"as it wAs put\n";

impl Site {
    /// Of "x1" it is known that it is rotten, of "x2" that it is gone.
    async fn troubled() -> Self {
        let mut site = Self::open().await;
        site.put("x1", ORIGINAL).await;
        site.put("x2", ORIGINAL).await;
        site
    }

    async fn rot(&self, id: &str) {
        let row = self.row(id).await.unwrap();
        let seen = noticing::observation(
            self.pillar.context.component.id(),
            row,
            md5_data(ROTTEN).checksum_value,
        );
        assert!(matches!(seen, Observation { audit: Some(_), .. }));
        self.index()
            .observe(&"books".into(), vec![seen])
            .await
            .unwrap();
    }

    async fn lose(&self, id: &str) {
        let row = self.row(id).await.unwrap();
        self.index()
            .mark_missing(&"books".into(), &row)
            .await
            .unwrap();
    }
}

fn troubles() -> [(AlarmCode, Option<FileId>); 2] {
    [
        (AlarmCode::ChecksumAlarm, Some("x1".into())),
        (AlarmCode::ComponentFailure, Some("x2".into())),
    ]
}

/// Killed between the commit and the alarm: the next start tells it, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_crash_left_untold_is_told_at_the_next_start() {
    let site = Site::troubled().await;
    site.rot("x1").await;
    site.lose("x2").await;
    let mut site = site.restart().await;
    let told = [site.next_alarm().await, site.next_alarm().await];
    assert_eq!(told, troubles());
    for worker in ["recheck", "reconcile"] {
        site.after_first_turn(worker).await;
    }
    let mut site = site.restart().await;
    for worker in ["recheck", "reconcile"] {
        site.after_first_turn(worker).await;
    }
    site.assert_no_alarm().await;
}

/// The bus is away when a file is found to be gone, and until the pillar stops.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_the_bus_did_not_take_is_told_later() {
    let mut site = Site::troubled().await;
    let context = Arc::clone(&site.pillar.context);
    for worker in ["recheck", "reconcile"] {
        site.after_first_turn(worker).await;
    }
    context.component.bus().close().await.unwrap();
    fs::remove_file(site.place("x2")).unwrap();
    let row = site.row("x2").await.unwrap();
    assert!(context.lose(&"books".into(), &row).await.unwrap());
    fs::write(site.place("x1"), ROTTEN).unwrap();
    site.rot("x1").await;
    let rotten = site.row("x1").await.unwrap();
    noticing::tell(&context, &"books".into(), &rotten).await;
    site.assert_no_alarm().await;
    drop(context);
    let mut site = site.restart().await;
    let told = [site.next_alarm().await, site.next_alarm().await];
    assert_eq!(told, troubles());
}
