//! Keeping a pace: a token bucket without a clock of its own.

use std::time::{Duration, Instant};

use pillarbox_settings::Pace;

/// Says how long to wait after so many bytes. Time that was not used is made up for, but only a little of it.
#[derive(Debug)]
pub(crate) struct Bucket {
    pace: Pace,
    /// When what was taken so far will be paid for.
    paid: Option<Instant>,
}

impl Bucket {
    pub(crate) const fn new(pace: Pace) -> Self {
        Self { pace, paid: None }
    }

    /// Takes bytes out, and tells how long the taker has to wait before it goes on.
    pub(crate) fn take(&mut self, bytes: u64, now: Instant) -> Duration {
        let Some(per_second) = self.pace.0 else {
            return Duration::ZERO;
        };
        let nanos = u128::from(bytes) * NANOS / u128::from(per_second.get());
        let price = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(LONGEST);
        // The first bytes are paid for from now on.
        let start = self.paid.unwrap_or(now);
        let start = now
            .checked_sub(CREDIT)
            .map_or(start, |earliest| start.max(earliest));
        let paid = start + price;
        self.paid = Some(paid);
        paid.saturating_duration_since(now)
    }
}

const NANOS: u128 = 1_000_000_000;
/// Unused time that is made up for: what a thread may sleep too long, or a disk may stall.
const CREDIT: Duration = Duration::from_millis(200);
/// A bound that keeps times in the range of clocks; no portion costs as much.
const LONGEST: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use proptest::prelude::*;

    use super::*;

    fn bucket(per_second: u64) -> Bucket {
        Bucket::new(Pace(NonZeroU64::new(per_second)))
    }

    #[test]
    fn without_a_limit_nobody_waits() {
        let mut bucket = Bucket::new(Pace::UNLIMITED);
        assert_eq!(bucket.take(u64::MAX, Instant::now()), Duration::ZERO);
    }

    #[test]
    fn what_was_taken_is_paid_for() {
        let mut bucket = bucket(1_000);
        let now = Instant::now();
        assert_eq!(bucket.take(500, now), Duration::from_millis(500));
        assert_eq!(bucket.take(500, now), Duration::from_secs(1));
        let later = now + Duration::from_millis(900);
        assert_eq!(bucket.take(0, later), Duration::from_millis(100));
    }

    #[test]
    fn a_long_rest_is_no_treasure() {
        let mut bucket = bucket(1_000);
        let now = Instant::now();
        bucket.take(1, now);
        let much_later = now + Duration::from_secs(3_600);
        assert_eq!(bucket.take(1_000, much_later), Duration::from_millis(800));
    }

    proptest! {
        /// Whatever the portions, and however inexact the sleep: within 10 % of the pace.
        #[test]
        fn the_pace_is_kept(
            per_second in 1_000_u64..1_000_000_000,
            portions in prop::collection::vec((1_u64..50, 0_u64..20), 300..400),
        ) {
            let mut bucket = bucket(per_second);
            let start = Instant::now();
            let (mut now, mut taken) = (start, 0);
            for (portion, oversleep) in portions {
                let bytes = per_second * portion / 1_000;
                taken += bytes;
                let wait = bucket.take(bytes, now);
                if wait > Duration::ZERO {
                    now += wait + Duration::from_millis(oversleep);
                }
            }
            let kept = taken as f64 / (now - start).as_secs_f64() / per_second as f64;
            prop_assert!((0.9..1.1).contains(&kept), "{kept}");
        }
    }
}
