//! What a pillar does unasked, and how much of the disk's time that may take.

use std::time::Duration;

use super::{PillarType, check::duration, raw::RawPillar};
use crate::{checker::Checker, duration::HumaneDuration, pace::Pace, raw_value::Text};

/// Work that a pillar does in the background.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackgroundWork {
    /// How fast it reads, or removes.
    pub pace: Pace,
    /// How long it rests between one round and the next.
    pub interval: Duration,
}

/// `recheck_pace` and `recheck_interval`.
pub(super) fn recheck(path: &str, raw: &RawPillar, checker: &mut Checker<'_>) -> BackgroundWork {
    BackgroundWork {
        pace: pace(raw.recheck_pace.as_ref(), RECHECK_PACE),
        interval: interval(
            &format!("{path}.recheck_interval"),
            raw.recheck_interval.as_ref(),
            RECHECK_INTERVAL,
            checker,
        ),
    }
}

/// `reconcile_pace` and `reconcile_interval`.
pub(super) fn reconcile(path: &str, raw: &RawPillar, checker: &mut Checker<'_>) -> BackgroundWork {
    BackgroundWork {
        pace: pace(raw.reconcile_pace.as_ref(), RECONCILE_PACE),
        interval: interval(
            &format!("{path}.reconcile_interval"),
            raw.reconcile_interval.as_ref(),
            RECONCILE_INTERVAL,
            checker,
        ),
    }
}

/// `retain_for`.
pub(super) fn retain_for(
    path: &str,
    raw: &RawPillar,
    checker: &mut Checker<'_>,
) -> Option<Duration> {
    let Text(HumaneDuration(time)) = raw.retain_for.as_ref()?;
    if time.is_zero() {
        checker.problem(
            &format!("{path}.retain_for"),
            "`retain_for` is zero, so that nothing that was deleted could be had back".to_owned(),
            "write a longer time, as in \"365d\", or leave it out to keep everything",
        );
    }
    Some(*time)
}

/// `purge_pace` and `purge_interval`.
pub(super) fn purge(path: &str, raw: &RawPillar, checker: &mut Checker<'_>) -> BackgroundWork {
    let keys = [
        ("purge_pace", raw.purge_pace.is_some()),
        ("purge_interval", raw.purge_interval.is_some()),
    ];
    let idle = keys
        .into_iter()
        .filter(|(_, given)| *given && raw.retain_for.is_none());
    for (key, _) in idle {
        let cause = format!("`{key}` is of no use without `retain_for`, since nothing is removed");
        checker.problem(
            &format!("{path}.{key}"),
            cause,
            "remove it, or add retain_for = \"365d\"",
        );
    }
    BackgroundWork {
        pace: pace(raw.purge_pace.as_ref(), PURGE_PACE),
        interval: interval(
            &format!("{path}.purge_interval"),
            raw.purge_interval.as_ref(),
            PURGE_INTERVAL,
            checker,
        ),
    }
}

/// A pillar that keeps no files has none to read or to remove.
pub(super) fn has_files(
    path: &str,
    raw: &RawPillar,
    pillar_type: PillarType,
    checker: &mut Checker<'_>,
) {
    let keys = [
        ("recheck_pace", raw.recheck_pace.is_some()),
        ("recheck_interval", raw.recheck_interval.is_some()),
        ("reconcile_pace", raw.reconcile_pace.is_some()),
        ("reconcile_interval", raw.reconcile_interval.is_some()),
        ("retain_for", raw.retain_for.is_some()),
    ];
    for (key, _) in keys
        .into_iter()
        .filter(|(_, given)| *given && pillar_type == PillarType::Checksum)
    {
        let id = raw.id.as_deref().unwrap_or_default();
        let cause = format!("`{key}` is for FILE pillars, but `{id}` is a CHECKSUM pillar");
        checker.problem(&format!("{path}.{key}"), cause, "remove it");
    }
}

fn pace(given: Option<&Text<Pace>>, default: Pace) -> Pace {
    given.map_or(default, |Text(pace)| *pace)
}

fn interval(
    path: &str,
    given: Option<&Text<HumaneDuration>>,
    default: Duration,
    checker: &mut Checker<'_>,
) -> Duration {
    let interval = duration(given, default);
    if interval.is_zero() {
        let key = path.rsplit('.').next().unwrap_or(path);
        let cause = format!("`{key}` is zero, so that the disk would never rest");
        checker.problem(path, cause, "write a longer time, as in \"1h\"");
    }
    interval
}

const RECHECK_PACE: Pace = per_second(20 << 20);
const RECHECK_INTERVAL: Duration = Duration::from_secs(3_600);
const RECONCILE_PACE: Pace = per_second(100 << 20);
const RECONCILE_INTERVAL: Duration = Duration::from_secs(7 * 86_400);
const PURGE_PACE: Pace = per_second(100 << 20);
const PURGE_INTERVAL: Duration = Duration::from_secs(86_400);

const fn per_second(bytes: u64) -> Pace {
    Pace(std::num::NonZeroU64::new(bytes))
}
