//! Points in time as the protocol writes them.

use std::{cmp::Ordering, fmt, fmt::Write as _, hash, str::FromStr};

use chrono::{DateTime, FixedOffset, NaiveDateTime, Utc};
use thiserror::Error;

use crate::{
    message::ReadOptions,
    xml::{characters::collapsed, value::Value},
};

/// A point in time, in milliseconds, with the offset from UTC that it was written with
/// (`xs:dateTime`, schema type `SystemDateTime_TYPE`).
///
/// The offset is mandatory in XML and only matters for display: two timestamps are equal, and sort, by the
/// instant. Instants are kept within what [`DateTime<Utc>`] can hold. Digits beyond the millisecond are cut off.
/// Written always with three fractional digits, and `Z` for no offset.
#[derive(Clone, Copy)]
pub struct Timestamp {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    millis: i64,
    /// Minutes east of UTC, at most 14 hours either way.
    offset: i16,
}

/// The offset from UTC of a local date and time.
pub type Zone = fn(NaiveDateTime) -> FixedOffset;

/// A text that is no point in time with an offset from UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a date and time with an offset from UTC, like 2024-05-01T12:00:00.000Z")]
pub struct TimestampError;

impl Timestamp {
    /// The beginning of 1970, which stands for a date that nobody knows.
    pub const EPOCH: Self = Self {
        millis: 0,
        offset: 0,
    };

    /// As [`FromStr`], but a date and time without an offset is read as one in `zone`, if there is one.
    fn parse(text: &str, zone: Option<Zone>) -> Option<Self> {
        Cursor(text.as_bytes()).date_time(zone)
    }

    /// The instant so many milliseconds after 1970-01-01T00:00:00Z, in UTC; the nearest there is if it is
    /// beyond what can be held.
    #[must_use]
    pub fn from_millis(millis: i64) -> Self {
        let millis = millis.clamp(
            DateTime::<Utc>::MIN_UTC.timestamp_millis(),
            DateTime::<Utc>::MAX_UTC.timestamp_millis(),
        );
        Self { millis, offset: 0 }
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.millis
    }

    /// The instant, in UTC.
    #[must_use]
    pub fn to_utc(self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.millis).unwrap_or_default()
    }

    /// The same instant, shown with this offset; east of UTC is positive. More than 14 hours, or seconds,
    /// cannot be written and are cut off.
    #[must_use]
    pub fn with_offset(self, offset: FixedOffset) -> Self {
        let most = i32::from(MAX_OFFSET);
        let minutes = (offset.local_minus_utc() / 60).clamp(-most, most);
        Self {
            offset: i16::try_from(minutes).unwrap_or_default(),
            ..self
        }
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(time: DateTime<Utc>) -> Self {
        Self::from_millis(time.timestamp_millis())
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.millis == other.millis
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        self.millis.cmp(&other.millis)
    }
}

impl hash::Hash for Timestamp {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        self.millis.hash(state);
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text, None).ok_or(TimestampError)
    }
}

serde_as_text! { Timestamp }

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(29);
        self.write(&mut text);
        f.write_str(&text)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Value for Timestamp {
    const EXPECTED: &'static str = "a date and time with an offset from UTC";

    fn from_text(text: &str) -> Option<Self> {
        collapsed(text).parse().ok()
    }

    fn from_text_with(text: &str, options: ReadOptions) -> Option<Self> {
        Self::parse(collapsed(text), options.zone)
    }

    fn write(&self, out: &mut String) {
        let local = self.millis + i64::from(self.offset) * MINUTE;
        let (year, month, day) = civil_from_days(local.div_euclid(DAY));
        let time = u32::try_from(local.rem_euclid(DAY)).unwrap_or_default();
        if let Some(year) = u32::try_from(year)
            .ok()
            .filter(|year| (1000..=9999).contains(year))
        {
            let [thousands, hundreds, tens] = [year / 1000, year / 100, year / 10];
            push_ascii(
                out,
                &[digit(thousands), digit(hundreds), digit(tens), digit(year)],
            );
        } else {
            // The schema's calendar has no year 0: the year before 1 is -1. Writing to a String cannot fail.
            let (sign, year) = if year > 0 {
                ("", year)
            } else {
                ("-", 1 - year)
            };
            let _ = write!(out, "{sign}{year:04}");
        }
        let [seconds, millis] = [time / 1000, time % 1000];
        let [hour, minute, second] = [seconds / 3600, seconds / 60 % 60, seconds % 60];
        push_ascii(
            out,
            &[
                b'-',
                digit(month / 10),
                digit(month),
                b'-',
                digit(day / 10),
                digit(day),
                b'T',
                digit(hour / 10),
                digit(hour),
                b':',
                digit(minute / 10),
                digit(minute),
                b':',
                digit(second / 10),
                digit(second),
                b'.',
                digit(millis / 100),
                digit(millis / 10),
                digit(millis),
            ],
        );
        if self.offset == 0 {
            out.push('Z');
        } else {
            let (sign, minutes) = if self.offset < 0 {
                ('-', -self.offset)
            } else {
                ('+', self.offset)
            };
            let _ = write!(out, "{sign}{:02}:{:02}", minutes / 60, minutes % 60);
        }
    }
}

/// What clocks in `zone` show at so many milliseconds after 1970 began there.
fn in_zone(local: i64, zone: Zone) -> Option<Timestamp> {
    let offset = zone(DateTime::from_timestamp_millis(local)?.naive_utc());
    let utc = DateTime::from_timestamp_millis(local - i64::from(offset.local_minus_utc()) * 1000)?;
    Some(Timestamp::from(utc).with_offset(offset))
}

/// The last decimal digit.
#[inline]
fn digit(number: u32) -> u8 {
    b'0' + u8::try_from(number % 10).unwrap_or_default()
}

fn push_ascii(out: &mut String, text: &[u8]) {
    out.push_str(str::from_utf8(text).unwrap_or_default());
}

/// What is left to parse.
struct Cursor<'t>(&'t [u8]);

impl Cursor<'_> {
    fn date_time(mut self, zone: Option<Zone>) -> Option<Timestamp> {
        let year = self.year()?;
        let month = self.after(b'-')?.two(1, 12)?;
        let day = self.after(b'-')?.two(1, days_in_month(year, month))?;
        let hour = self.after(b'T')?.two(0, 24)?;
        let minute = self.after(b':')?.two(0, 59)?;
        let second = self.after(b':')?.two(0, 59)?;
        let (fraction, any_fraction) = self.fraction()?;
        if hour == 24 && (minute, second, any_fraction) != (0, 0, false) {
            return None;
        }
        let local = days_from_civil(year, month, day) * DAY
            + hour * HOUR
            + minute * MINUTE
            + second * 1000
            + fraction;
        if let Some(zone) = zone.filter(|_| self.0.is_empty()) {
            return in_zone(local, zone);
        }
        let offset = self.offset()?;
        let millis = local - offset * MINUTE;
        DateTime::from_timestamp_millis(millis)?;
        Some(Timestamp {
            millis,
            offset: i16::try_from(offset).ok()?,
        })
    }

    /// The year, counted so that the year before 1 is 0.
    fn year(&mut self) -> Option<i64> {
        let negative = self.after(b'-').is_some();
        let length = self
            .0
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        // More than six digits are beyond what can be held; a leading zero is only for four.
        if !(4..=6).contains(&length) || (length > 4 && text.first() == Some(&b'0')) {
            return None;
        }
        match (number(text), negative) {
            (0, _) => None,
            (year, true) => Some(1 - year),
            (year, false) => Some(year),
        }
    }

    #[inline]
    fn after(&mut self, mark: u8) -> Option<&mut Self> {
        let (first, rest) = self.0.split_first()?;
        if *first != mark {
            return None;
        }
        self.0 = rest;
        Some(self)
    }

    #[inline]
    fn two(&mut self, least: i64, most: i64) -> Option<i64> {
        let (&[tens, ones], rest) = self.0.split_first_chunk()?;
        if !tens.is_ascii_digit() || !ones.is_ascii_digit() {
            return None;
        }
        self.0 = rest;
        let value = number(&[tens, ones]);
        (least..=most).contains(&value).then_some(value)
    }

    /// Milliseconds, and whether anything of the fraction is more than nothing.
    fn fraction(&mut self) -> Option<(i64, bool)> {
        if self.after(b'.').is_none() {
            return Some((0, false));
        }
        let length = self
            .0
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        let kept = text.iter().copied().chain([b'0'; 3]).take(3);
        let millis = kept.fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
        (length > 0).then(|| (millis, text.iter().any(|&digit| digit != b'0')))
    }

    /// Minutes east of UTC, through the end.
    fn offset(&mut self) -> Option<i64> {
        let sign = match self.0 {
            b"Z" => return Some(0),
            [b'+', ..] => 1,
            [b'-', ..] => -1,
            _ => return None,
        };
        self.0 = self.0.get(1..)?;
        let minutes = self.two(0, 14)? * 60 + self.after(b':')?.two(0, 59)?;
        (self.0.is_empty() && minutes <= i64::from(MAX_OFFSET)).then_some(sign * minutes)
    }
}

#[inline]
fn number(digits: &[u8]) -> i64 {
    digits
        .iter()
        .fold(0, |value, digit| value * 10 + i64::from(digit - b'0'))
}

const fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date in the proleptic Gregorian calendar. Years begin in March here, so that the
/// leap day is a year's last, and the months' lengths repeat every five: 153 days.
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * ERA_DAYS + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year
        - EPOCH_DAYS
}

/// The reverse of [`days_from_civil`].
fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + EPOCH_DAYS;
    let day_of_era = u32::try_from(days.rem_euclid(ERA_DAYS)).unwrap_or_default();
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = days.div_euclid(ERA_DAYS) * 400 + i64::from(year_of_era);
    (if month <= 2 { year + 1 } else { year }, month, day)
}

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// The largest offset from UTC that the schema has: 14 hours.
const MAX_OFFSET: i16 = 14 * 60;
/// Days in 400 years.
const ERA_DAYS: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: i64 = 719_468;

#[cfg(test)]
mod tests;
