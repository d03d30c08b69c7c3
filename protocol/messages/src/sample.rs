//! Random values of every type, for property tests.

use std::num::NonZeroU64;

use chrono::FixedOffset;

use crate::{
    destination::{Destination, DestinationKind},
    hex_binary::HexBinary,
    ids::{CollectionId, ComponentId, CorrelationId, FileId},
    timestamp::Timestamp,
    version::ProtocolVersion,
};

/// Where decisions come from: random bytes, then zeros for ever.
pub(crate) struct Source(std::vec::IntoIter<u8>);

impl Source {
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self(bytes.into_iter())
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0.next().unwrap_or_default()
    }

    /// One of the choices.
    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }
}

/// A type of which random values can be made.
pub(crate) trait Sample: Sized {
    fn sample(source: &mut Source) -> Self;
}

pub(crate) fn required<T: Sample>(source: &mut Source) -> T {
    T::sample(source)
}

pub(crate) fn optional<T: Sample>(source: &mut Source) -> Option<T> {
    (source.byte() % 2 == 1).then(|| T::sample(source))
}

pub(crate) fn repeated<T: Sample>(source: &mut Source) -> Vec<T> {
    (0..source.byte() % 4).map(|_| T::sample(source)).collect()
}

impl Sample for String {
    fn sample(source: &mut Source) -> Self {
        const CHARACTERS: [char; 24] = [
            'a',
            'Z',
            '0',
            ' ',
            '&',
            '<',
            '>',
            '"',
            '\'',
            '\r',
            '\n',
            '\t',
            ']',
            '-',
            '/',
            '.',
            'é',
            '漢',
            '\u{85}',
            '\u{A0}',
            '\u{2028}',
            '\u{FEFF}',
            '\u{FFFD}',
            '\u{1F4BE}',
        ];
        let length = source.byte() % 12;
        (0..length).map(|_| source.pick(&CHARACTERS)).collect()
    }
}

macro_rules! sample_identifiers {
    ($($name:ident),*) => {
        $(impl Sample for $name {
            fn sample(source: &mut Source) -> Self {
                String::sample(source).into()
            }
        })*
    };
}

sample_identifiers!(CollectionId, ComponentId, CorrelationId, FileId);

impl Sample for Destination {
    fn sample(source: &mut Source) -> Self {
        let kind = source.pick(&[
            DestinationKind::Topic,
            DestinationKind::Queue,
            DestinationKind::TemporaryQueue,
        ]);
        Self::new(
            kind,
            &format!("x{}", String::sample(source).replace('/', "_")),
        )
    }
}

impl Sample for bool {
    fn sample(source: &mut Source) -> Self {
        source.byte() % 2 == 1
    }
}

impl Sample for u64 {
    fn sample(source: &mut Source) -> Self {
        let width = u32::from(source.byte() % 9) * 8;
        let bits = Self::from_le_bytes([0; 8].map(|_: u8| source.byte()));
        bits & Self::MAX.checked_shr(64 - width).unwrap_or_default()
    }
}

impl Sample for NonZeroU64 {
    fn sample(source: &mut Source) -> Self {
        Self::new(u64::sample(source)).unwrap_or(Self::MIN)
    }
}

impl Sample for HexBinary {
    fn sample(source: &mut Source) -> Self {
        let length = source.byte() % 80;
        (0..length)
            .map(|_| source.byte())
            .collect::<Vec<u8>>()
            .into()
    }
}

impl Sample for Timestamp {
    fn sample(source: &mut Source) -> Self {
        let minutes = i32::from(source.byte()) * 4 - 510;
        let millis = i64::from_le_bytes(u64::sample(source).to_le_bytes());
        Self::from_millis(millis).with_offset(FixedOffset::east_opt(minutes * 60).unwrap())
    }
}

impl Sample for ProtocolVersion {
    fn sample(source: &mut Source) -> Self {
        Self {
            version: NonZeroU64::sample(source).get(),
            min_version: u64::sample(source),
        }
    }
}
