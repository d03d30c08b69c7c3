//! Dates without an offset from UTC, as components of old protocol versions write them.

use chrono::{FixedOffset, Local, NaiveDateTime, Offset as _, TimeZone as _, Utc};
use pillarbox_messages::ReadOptions;
use pillarbox_settings::ZonelessDates;

/// How messages are read under this setting.
#[must_use]
pub fn read_options(dates: ZonelessDates) -> ReadOptions {
    ReadOptions {
        zone: match dates {
            ZonelessDates::Refuse => None,
            ZonelessDates::Utc => Some(|_| Utc.fix()),
            ZonelessDates::Local => Some(local_offset),
        },
    }
}

/// The offset of this machine's zone. Of the two that an hour has when clocks are set back it is the first; an
/// hour that clocks skip has the one that holds after it.
fn local_offset(at: NaiveDateTime) -> FixedOffset {
    let offset = Local.offset_from_local_datetime(&at).earliest();
    offset.map_or_else(|| Local.offset_from_utc_datetime(&at).fix(), |it| it.fix())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_is_what_the_setting_says() {
        let noon = "2011-05-03T12:00:00".parse().unwrap();
        let offset = |dates| read_options(dates).zone.map(|zone| zone(noon));
        assert_eq!(offset(ZonelessDates::Refuse), None);
        assert_eq!(offset(ZonelessDates::Utc), FixedOffset::east_opt(0));
        let local = Local.from_local_datetime(&noon).earliest().unwrap();
        assert_eq!(offset(ZonelessDates::Local), Some(local.offset().fix()));
    }
}
