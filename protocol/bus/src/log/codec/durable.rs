//! What is said about a durable subscription, as bytes: how many things, then each with its number and the length of its
//! value before it. All are written, so that what one is by default can change without changing what is there.

use super::{Reader, attributes::rest_as_text, put_bytes, put_length, put_time, put_u64};
use crate::core::durable::{Gap, Nature, OnLimit, Standing, SubscriptionLimits};

// Numbers once used here are never given another meaning.
const MAX_MESSAGES: u8 = 1;
const MAX_BYTES: u8 = 2;
const MAX_OFFLINE: u8 = 3;
const ON_LIMIT: u8 = 4;
// Written only if they are.
const SELECTOR: u8 = 5;
const NO_LOCAL: u8 = 6;

const ON_LIMITS: [(u8, OnLimit); 4] = [
    (1, OnLimit::Gap),
    (2, OnLimit::DropOldest),
    (3, OnLimit::Cancel),
    (4, OnLimit::RejectPublish),
];

pub(super) fn put(out: &mut Vec<u8>, limits: &SubscriptionLimits, nature: &Nature) {
    let SubscriptionLimits {
        max_messages,
        max_bytes,
        max_offline_ms,
        on_limit,
    } = limits;
    let on_limit = ON_LIMITS.into_iter().find(|(_, it)| it == on_limit);
    let values = [
        (MAX_MESSAGES, max_messages.map(u64::to_le_bytes)),
        (MAX_BYTES, max_bytes.map(u64::to_le_bytes)),
        (MAX_OFFLINE, max_offline_ms.map(i64::to_le_bytes)),
    ];
    let Nature { selector, no_local } = nature;
    let more = usize::from(selector.is_some()) + usize::from(*no_local);
    put_length(out, values.len() + 1 + more);
    for (number, value) in values {
        out.push(number);
        put_bytes(out, value.as_ref().map_or(&[], |value| value));
    }
    out.push(ON_LIMIT);
    put_bytes(out, &[on_limit.map_or(0, |(number, _)| number)]);
    if let Some(text) = selector {
        out.push(SELECTOR);
        put_bytes(out, text.as_bytes());
    }
    if *no_local {
        out.push(NO_LOCAL);
        put_bytes(out, &[]);
    }
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<(SubscriptionLimits, Nature)> {
    let (mut limits, mut nature) = (SubscriptionLimits::default(), Nature::default());
    for _ in 0..reader.u32()? {
        let number = reader.u8()?;
        let mut value = Reader {
            rest: reader.bytes()?,
            addresses: reader.addresses,
        };
        match number {
            SELECTOR => nature.selector = Some(rest_as_text(&mut value)?),
            NO_LOCAL => nature.no_local = true,
            _ => read_one(&mut limits, number, &mut value)?,
        }
        if !value.rest.is_empty() {
            return None;
        }
    }
    Some((limits, nature))
}

fn read_one(limits: &mut SubscriptionLimits, number: u8, value: &mut Reader<'_>) -> Option<()> {
    let is_none = value.rest.is_empty();
    match number {
        MAX_MESSAGES | MAX_BYTES | MAX_OFFLINE if is_none => match number {
            MAX_MESSAGES => limits.max_messages = None,
            MAX_BYTES => limits.max_bytes = None,
            _ => limits.max_offline_ms = None,
        },
        MAX_MESSAGES => limits.max_messages = Some(value.u64()?),
        MAX_BYTES => limits.max_bytes = Some(value.u64()?),
        MAX_OFFLINE => limits.max_offline_ms = Some(value.i64()?),
        ON_LIMIT => {
            let number = value.u8()?;
            let (_, on_limit) = ON_LIMITS.into_iter().find(|(it, _)| *it == number)?;
            limits.on_limit = on_limit;
        }
        _ => return None,
    }
    Some(())
}

pub(super) fn put_gap(out: &mut Vec<u8>, gap: Option<Gap>) {
    out.push(u8::from(gap.is_some()));
    if let Some(Gap { count, since }) = gap {
        put_u64(out, count);
        out.extend_from_slice(&since.to_le_bytes());
    }
}

pub(super) fn read_gap(reader: &mut Reader<'_>) -> Option<Option<Gap>> {
    reader.option(|reader| {
        Some(Gap {
            count: reader.u64()?,
            since: reader.i64()?,
        })
    })
}

pub(super) fn put_standing(out: &mut Vec<u8>, standing: &Standing) {
    put_time(out, standing.away_since);
    put_gap(out, standing.gap);
}

pub(super) fn read_standing(reader: &mut Reader<'_>) -> Option<Standing> {
    Some(Standing {
        away_since: reader.option(Reader::i64)?,
        gap: read_gap(reader)?,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    pub(in super::super) fn any_limits() -> impl Strategy<Value = SubscriptionLimits> {
        let limits = any::<(Option<u64>, Option<u64>, Option<i64>)>();
        (limits, 0..ON_LIMITS.len()).prop_map(|((messages, bytes, offline), at)| {
            SubscriptionLimits {
                max_messages: messages,
                max_bytes: bytes,
                max_offline_ms: offline,
                on_limit: ON_LIMITS[at].1,
            }
        })
    }

    pub(in super::super) fn any_nature() -> impl Strategy<Value = Nature> {
        (proptest::option::of("\\PC{0,12}"), any::<bool>())
            .prop_map(|(selector, no_local)| Nature { selector, no_local })
    }

    pub(in super::super) fn any_gap() -> impl Strategy<Value = Option<Gap>> {
        any::<Option<(u64, i64)>>().prop_map(|gap| gap.map(|(count, since)| Gap { count, since }))
    }

    pub(in super::super) fn any_standing() -> impl Strategy<Value = Standing> {
        (any::<Option<i64>>(), any_gap()).prop_map(|(away_since, gap)| Standing { away_since, gap })
    }
}
