//! A queue's attributes as bytes: how many, then each with its number and the length of its value before it. All are
//! written, so that what one is by default can change without changing what is there.

use super::{Reader, put_bytes, put_id, put_length, put_u32};
use crate::core::{
    attributes::{
        Criterion, LaneHash, Lanes, MAX_LANES, OnExpiry, OnLanePoison, Order, OutOfOrder,
        QueueAttributes, RetryDelay,
    },
    epoch::Drain,
};

// Numbers once used here are never given another meaning.
const ORDER: u8 = 1;
const OUT_OF_ORDER: u8 = 2;
const RETRY_DELAY: u8 = 3;
const EXPIRY_QUEUE: u8 = 4;
const LANES: u8 = 5;
const REQUIRE_KEY: u8 = 6;
/// 0: there is none.
const BACKOUT_LIMIT: u8 = 7;
const BACKOUT_QUEUE: u8 = 8;
const ON_LANE_POISON: u8 = 9;
/// Since format 3: the lanes that are being emptied, and the first message that waits for that.
const DRAIN: u8 = 10;

const CRITERIA: [(u8, Criterion); 3] = [
    (1, Criterion::Time),
    (2, Criterion::Expiration),
    (3, Criterion::Priority),
];
const LATEST_FIRST: u8 = 9;

const NO_LANES: u8 = 0;
const SINGLE: u8 = 1;
const KEY: u8 = 2;
const JAVA_STRING: u8 = 3;
const FNV1A64: u8 = 4;

const TOP: u8 = 1;
const BEFORE: u8 = 2;

pub(super) fn put(out: &mut Vec<u8>, attributes: &QueueAttributes, drain: Option<Drain>) {
    let QueueAttributes {
        order,
        out_of_order,
        lanes,
        require_key,
        backout_limit,
        backout_queue,
        on_lane_poison,
        retry_delay,
        on_expiry,
    } = attributes;
    let mut values = vec![
        (ORDER, order_bytes(order)),
        (OUT_OF_ORDER, vec![out_of_order_byte(*out_of_order)]),
        (RETRY_DELAY, retry_delay_bytes(*retry_delay)),
        (LANES, lanes_bytes(*lanes)),
        (REQUIRE_KEY, vec![u8::from(*require_key)]),
        (
            BACKOUT_LIMIT,
            backout_limit.unwrap_or_default().to_le_bytes().to_vec(),
        ),
        (
            ON_LANE_POISON,
            vec![u8::from(*on_lane_poison == OnLanePoison::Park)],
        ),
    ];
    if let Some(target) = backout_queue {
        values.push((BACKOUT_QUEUE, target.clone().into_bytes()));
    }
    if let OnExpiry::Move(target) = on_expiry {
        values.push((EXPIRY_QUEUE, target.clone().into_bytes()));
    }
    if let Some(Drain { old, border }) = drain {
        let mut value = Vec::new();
        put_id(&mut value, border);
        value.extend(lanes_bytes(old));
        values.push((DRAIN, value));
    }
    put_length(out, values.len());
    for (number, value) in values {
        out.push(number);
        put_bytes(out, &value);
    }
}

pub(super) fn read(reader: &mut Reader<'_>) -> Option<(QueueAttributes, Option<Drain>)> {
    let (mut attributes, mut drain) = (QueueAttributes::default(), None);
    for _ in 0..reader.u32()? {
        let number = reader.u8()?;
        let mut value = Reader {
            rest: reader.bytes()?,
            addresses: reader.addresses,
        };
        if number == DRAIN {
            let border = value.id()?;
            let old = read_lanes(&mut value)?;
            drain = Some(Drain { old, border });
        } else {
            read_one(&mut attributes, number, &mut value)?;
        }
        if !value.rest.is_empty() {
            return None;
        }
    }
    Some((attributes, drain))
}

fn read_one(attributes: &mut QueueAttributes, number: u8, value: &mut Reader<'_>) -> Option<()> {
    match number {
        ORDER => attributes.order = read_order(value)?,
        OUT_OF_ORDER => {
            let bits = value.u8().filter(|bits| *bits <= TOP | BEFORE)?;
            attributes.out_of_order = OutOfOrder {
                top: bits & TOP != 0,
                before: bits & BEFORE != 0,
            };
        }
        RETRY_DELAY => {
            attributes.retry_delay = RetryDelay {
                initial_ms: value.i64()?,
                max_ms: value.i64()?,
            };
        }
        EXPIRY_QUEUE => attributes.on_expiry = OnExpiry::Move(rest_as_text(value)?),
        LANES => attributes.lanes = read_lanes(value)?,
        REQUIRE_KEY => attributes.require_key = read_flag(value)?,
        BACKOUT_LIMIT => attributes.backout_limit = Some(value.u32()?).filter(|limit| *limit > 0),
        BACKOUT_QUEUE => attributes.backout_queue = Some(rest_as_text(value)?),
        ON_LANE_POISON => {
            attributes.on_lane_poison = if read_flag(value)? {
                OnLanePoison::Park
            } else {
                OnLanePoison::Skip
            };
        }
        _ => return None,
    }
    Some(())
}

fn read_flag(value: &mut Reader<'_>) -> Option<bool> {
    match value.u8()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn order_bytes(order: &Order) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    for criterion in &order.criteria {
        let number = CRITERIA.into_iter().find(|(_, it)| it == criterion);
        bytes.extend(number.map(|(number, _)| number));
    }
    if order.latest_first {
        bytes.push(LATEST_FIRST);
    }
    bytes
}

fn read_order(value: &mut Reader<'_>) -> Option<Order> {
    let mut order = Order {
        criteria: Vec::new(),
        latest_first: false,
    };
    while !value.rest.is_empty() {
        let number = value.u8()?;
        if number == LATEST_FIRST {
            order.latest_first = true;
        } else {
            let (_, criterion) = CRITERIA.into_iter().find(|(it, _)| *it == number)?;
            order.criteria.push(criterion);
        }
    }
    // A queue with more is none that could have been made, and its ranks would not fit.
    (order.criteria.len() <= CRITERIA.len()).then_some(order)
}

fn lanes_bytes(lanes: Lanes) -> Vec<u8> {
    match lanes {
        Lanes::None => vec![NO_LANES],
        Lanes::Single => vec![SINGLE],
        Lanes::Key => vec![KEY],
        Lanes::Hashed { count, hash } => {
            let mut bytes = vec![match hash {
                LaneHash::JavaString => JAVA_STRING,
                LaneHash::Fnv1a64 => FNV1A64,
            }];
            put_u32(&mut bytes, count);
            bytes
        }
    }
}

fn read_lanes(value: &mut Reader<'_>) -> Option<Lanes> {
    let hash = match value.u8()? {
        NO_LANES => return Some(Lanes::None),
        SINGLE => return Some(Lanes::Single),
        KEY => return Some(Lanes::Key),
        JAVA_STRING => LaneHash::JavaString,
        FNV1A64 => LaneHash::Fnv1a64,
        _ => return None,
    };
    // No more than may be made: all of them take memory.
    let count = value.u32().filter(|count| *count <= MAX_LANES)?;
    Some(Lanes::Hashed { count, hash })
}

fn out_of_order_byte(out_of_order: OutOfOrder) -> u8 {
    let OutOfOrder { top, before } = out_of_order;
    (u8::from(top) * TOP) | (u8::from(before) * BEFORE)
}

fn retry_delay_bytes(delay: RetryDelay) -> Vec<u8> {
    let RetryDelay { initial_ms, max_ms } = delay;
    [initial_ms.to_le_bytes(), max_ms.to_le_bytes()].concat()
}

pub(super) fn rest_as_text(value: &mut Reader<'_>) -> Option<String> {
    let rest = value.take(value.rest.len())?;
    String::from_utf8(rest.to_vec()).ok()
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::core::message::MessageId;

    fn any_lanes() -> impl Strategy<Value = Lanes> {
        prop_oneof![
            Just(Lanes::None),
            Just(Lanes::Single),
            Just(Lanes::Key),
            (0..=MAX_LANES, any::<bool>()).prop_map(|(count, java)| Lanes::Hashed {
                count,
                hash: if java {
                    LaneHash::JavaString
                } else {
                    LaneHash::Fnv1a64
                },
            }),
        ]
    }

    pub(in super::super) fn any_drain() -> impl Strategy<Value = Option<Drain>> {
        let border = any::<(u64, u64)>();
        let drain = (any_lanes(), border).prop_map(|(old, (boot, seq))| Drain {
            old,
            border: MessageId { boot, seq },
        });
        proptest::option::of(drain)
    }

    pub(in super::super) fn any_attributes() -> impl Strategy<Value = QueueAttributes> {
        let criteria: Vec<Criterion> = CRITERIA.iter().map(|(_, criterion)| *criterion).collect();
        let criteria = proptest::sample::subsequence(criteria, 0..=3).prop_shuffle();
        let order = (criteria, any::<bool>()).prop_map(|(criteria, latest_first)| Order {
            criteria,
            latest_first,
        });
        let out_of_order =
            any::<(bool, bool)>().prop_map(|(top, before)| OutOfOrder { top, before });
        let retry_delay =
            any::<(i64, i64)>().prop_map(|(initial_ms, max_ms)| RetryDelay { initial_ms, max_ms });
        let on_expiry = proptest::option::of("\\PC{0,12}")
            .prop_map(|target| target.map_or(OnExpiry::Drop, OnExpiry::Move));
        let lanes = any_lanes();
        let flow = (order, out_of_order, lanes, any::<bool>());
        let failed = (
            proptest::option::of(1..u32::MAX),
            proptest::option::of("\\PC{0,12}"),
            any::<bool>(),
        );
        (flow, failed, retry_delay, on_expiry).prop_map(|(flow, failed, retry_delay, on_expiry)| {
            let (order, out_of_order, lanes, require_key) = flow;
            let (backout_limit, backout_queue, parks) = failed;
            QueueAttributes {
                order,
                out_of_order,
                lanes,
                require_key,
                backout_limit,
                backout_queue,
                on_lane_poison: if parks {
                    OnLanePoison::Park
                } else {
                    OnLanePoison::Skip
                },
                retry_delay,
                on_expiry,
            }
        })
    }
}
