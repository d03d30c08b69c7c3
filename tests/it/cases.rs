//! What users of this protocol have met elsewhere, each as a small test of the whole node.

mod asking;
mod checksum_pillar;
mod checksums;
mod deliveries;
mod destructive;
mod file_ids;
mod large;
mod leftovers;
mod parts;
mod patterns;
mod repeats;
mod silence;
mod sizes;
mod time_zones;

/// The fixture of 14 bytes, its MD5, and its `HMAC_MD5` with the salt abcd.
const P7: &[u8] = b"pillar test 7\n";
const P7_MD5: &str = "4a37f973b3c9fede0e1fb3f07b65a93b";
const P7_SHA1: &str = "2df965adcf27c664a5fdb5f5fae2ec32c6097000";
const P7_HMAC: &str = "29b74fb6f71755e9434f713b8f2ae79a";
