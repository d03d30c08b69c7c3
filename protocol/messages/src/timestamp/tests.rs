use chrono::{Datelike, Timelike};
use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use super::*;

#[test]
fn every_form_the_schema_has() {
    for (text, written) in [
        (
            "2011-05-03T11:18:00.123456789+05:45",
            "2011-05-03T11:18:00.123+05:45",
        ),
        ("2011-05-03T11:18:00Z", "2011-05-03T11:18:00.000Z"),
        ("2011-05-03T11:18:00-00:00", "2011-05-03T11:18:00.000Z"),
        ("2011-05-03T24:00:00Z", "2011-05-04T00:00:00.000Z"),
        (
            "2011-12-31T24:00:00.000-14:00",
            "2012-01-01T00:00:00.000-14:00",
        ),
        (
            "2011-05-03T11:18:00.5+14:00",
            "2011-05-03T11:18:00.500+14:00",
        ),
        ("12011-05-03T11:18:00.0009Z", "12011-05-03T11:18:00.000Z"),
        ("-0044-03-15T12:00:00Z", "-0044-03-15T12:00:00.000Z"),
        ("0004-02-29T00:00:00Z", "0004-02-29T00:00:00.000Z"),
        ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
    ] {
        assert_eq!(
            text.parse::<Timestamp>().unwrap().to_string(),
            written,
            "{text}"
        );
    }
    assert_eq!(
        Timestamp::from_text(" \n1970-01-01T01:00:00+01:00 "),
        Some(Timestamp::EPOCH)
    );
}

#[test]
fn what_the_schema_does_not_have() {
    for text in [
        "",
        "2011-05-03T11:18:00",
        "2011-05-03 11:18:00Z",
        "2011-05-03t11:18:00Z",
        "2011-05-03T11:18:00z",
        "2011-05-03T11:18Z",
        "2011-5-03T11:18:00Z",
        "2011-02-29T11:18:00Z",
        "2011-13-01T11:18:00Z",
        "2011-00-01T11:18:00Z",
        "2011-05-03T24:00:01Z",
        "2011-05-03T24:00:00.0001Z",
        "2011-05-03T25:00:00Z",
        "2011-05-03T11:60:00Z",
        "2011-05-03T11:18:60Z",
        "2011-05-03T11:18:00.Z",
        "2011-05-03T11:18:00+14:01",
        "2011-05-03T11:18:00+1:00",
        "2011-05-03T11:18:00+01:00 ",
        "2011-05-03T11:18:00+01:00:00",
        "+2011-05-03T11:18:00Z",
        "02011-05-03T11:18:00Z",
        "0000-05-03T11:18:00Z",
        "999999-05-03T11:18:00Z",
        "٢٠١١-05-03T11:18:00Z",
    ] {
        assert!(text.parse::<Timestamp>().is_err(), "{text}");
    }
}

/// Dates as old components write them, where a zone is given: winter and summer time, and a zone with seconds.
#[test]
fn dates_without_an_offset_are_local_to_the_zone_given() {
    const BERLIN: Zone = |at| {
        let hours = if (4..=10).contains(&at.month()) { 2 } else { 1 };
        FixedOffset::east_opt(hours * 3600).unwrap()
    };
    const OLD_AMSTERDAM: Zone = |_| FixedOffset::east_opt(19 * 60 + 32).unwrap();
    let read = |text: &str, zone: Option<Zone>| {
        let options = ReadOptions { zone };
        Timestamp::from_text_with(text, options).map(|time| time.to_string())
    };
    let utc: Zone = |_| FixedOffset::east_opt(0).unwrap();
    for (text, zone, expected) in [
        ("2011-05-03T11:18:00", None, None),
        (
            "2011-05-03T11:18:00",
            Some(utc),
            Some("2011-05-03T11:18:00.000Z"),
        ),
        (
            " 2011-05-03T11:18:00.5\n",
            Some(utc),
            Some("2011-05-03T11:18:00.500Z"),
        ),
        (
            "2011-05-03T11:18:00",
            Some(BERLIN),
            Some("2011-05-03T11:18:00.000+02:00"),
        ),
        (
            "2011-12-03T24:00:00",
            Some(BERLIN),
            Some("2011-12-04T00:00:00.000+01:00"),
        ),
        (
            "1937-01-01T00:19:32",
            Some(OLD_AMSTERDAM),
            Some("1937-01-01T00:19:00.000+00:19"),
        ),
        // Who says it is believed.
        (
            "2011-05-03T11:18:00.123456789+05:45",
            Some(BERLIN),
            Some("2011-05-03T11:18:00.123+05:45"),
        ),
        (
            "2011-05-03T11:18:00Z",
            Some(BERLIN),
            Some("2011-05-03T11:18:00.000Z"),
        ),
        (
            "2011-05-03T11:18:00-00:00",
            Some(BERLIN),
            Some("2011-05-03T11:18:00.000Z"),
        ),
        ("2011-05-03T11:18:00 ", None, None),
        ("2011-05-03T11:18:00x", Some(utc), None),
        ("2011-05-03T11:18", Some(utc), None),
        ("2011-05-03", Some(utc), None),
        ("2011-05-03T24:00:01", Some(utc), None),
    ] {
        assert_eq!(read(text, zone).as_deref(), expected, "{text:?}");
    }
}

#[test]
fn instants_beyond_what_can_be_held_are_the_nearest() {
    for millis in [i64::MIN, i64::MAX] {
        let time = Timestamp::from_millis(millis);
        assert_eq!(time.to_string().parse::<Timestamp>(), Ok(time));
        assert_eq!(Timestamp::from(time.to_utc()), time);
    }
}

proptest! {
    #[test]
    fn the_calendar_is_the_calendar(millis in any::<i64>()) {
        let time = Timestamp::from_millis(millis % 9_000_000_000_000_000);
        let known = time.to_utc();
        let (year, month, day) = civil_from_days(time.millis().div_euclid(DAY));
        prop_assert_eq!((year, month, day), (known.year().into(), known.month(), known.day()));
        prop_assert_eq!(days_from_civil(year, month.into(), day.into()), time.millis().div_euclid(DAY));
        prop_assert_eq!(i64::from(known.hour()), time.millis().rem_euclid(DAY) / HOUR);
    }

    #[test]
    fn read_as_written(millis in any::<i64>(), minutes in -840i32..=840) {
        let offset = FixedOffset::east_opt(minutes * 60).unwrap();
        let time = Timestamp::from_millis(millis).with_offset(offset);
        let text = time.to_string();
        let read: Timestamp = text.parse().unwrap();
        prop_assert_eq!(read, time);
        prop_assert_eq!(read.to_string(), text);
    }

    #[test]
    fn no_text_panics(text in any::<String>(), digits in "[-+0-9T:.Z]{0,30}") {
        let _ = text.parse::<Timestamp>();
        if let Ok(time) = digits.parse::<Timestamp>() {
            prop_assert!(time.to_string().parse::<Timestamp>().is_ok());
        }
    }
}
