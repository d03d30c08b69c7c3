//! Which of a queue's lanes a key falls into: fixed for ever, and the same on every machine.

use crate::core::attributes::LaneHash;

/// The lane of a key among so many.
pub(crate) fn lane_of(key: &str, hash: LaneHash, lanes: u32) -> u32 {
    let lanes = lanes.max(1);
    match hash {
        LaneHash::JavaString => {
            let remainder = i64::from(java_string(key)).rem_euclid(i64::from(lanes));
            u32::try_from(remainder).unwrap_or(0)
        }
        LaneHash::Fnv1a64 => u32::try_from(fnv1a64(key.as_bytes()) % u64::from(lanes)).unwrap_or(0),
    }
}

/// Java's `String.hashCode`: over UTF-16 units.
fn java_string(text: &str) -> i32 {
    text.encode_utf16().fold(0_i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    })
}

/// The 64 bit FNV-1a hash.
fn fnv1a64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Java 17 gives them: `"...".hashCode()`, and `Math.floorMod` of that with 4, 7 and 1024.
    #[test]
    fn java_agrees() {
        for (text, hash, lanes) in [
            ("", 0, [0, 0, 0]),
            ("a", 97, [1, 6, 97]),
            ("hello", 99_162_322, [2, 0, 210]),
            ("polygenelubricants", i32::MIN, [0, 5, 0]),
            ("DESIGNING WORKHOUSES", i32::MIN, [0, 5, 0]),
            ("ORDER-1", -489_127_598, [2, 6, 338]),
            ("4711", 1_603_555, [3, 2, 995]),
            ("Åse", 192_983, [3, 0, 471]),
            // U+1F600 is two units: 0xD83D and 0xDE00.
            ("\u{1F600}", 1_772_899, [3, 2, 355]),
            ("a\u{1F600}z", 57_849_718, [2, 3, 886]),
        ] {
            assert_eq!(java_string(text), hash, "{text}");
            for (count, lane) in [4, 7, 1024].into_iter().zip(lanes) {
                assert_eq!(lane_of(text, LaneHash::JavaString, count), lane, "{text}");
            }
        }
    }

    /// From the hash's own page of test vectors.
    #[test]
    fn fnv_agrees() {
        assert_eq!(fnv1a64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a64(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(lane_of("foobar", LaneHash::Fnv1a64, 10), 8);
    }
}
