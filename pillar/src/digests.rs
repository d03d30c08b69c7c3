//! Checksums of file bytes: which specs are computable, and several of them in one pass.

use std::fmt;

use hmac::{EagerHash, Hmac, KeyInit, Mac};
use md5::Md5;
use pillarbox_messages::{ChecksumSpec, ChecksumType, HexBinary};
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

/// A checksum spec that can be computed (element `ChecksumSpec`, validated).
///
/// A salt is the key of an HMAC and nothing else: it is never put before the data, and never turns a
/// plain type into an HMAC. An empty salt is the same as none, so that two specs are equal exactly
/// when they give the same sums.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spec {
    algorithm: Algorithm,
    salt: Option<Box<[u8]>>,
}

impl Spec {
    /// The spec of a type without salt.
    ///
    /// # Errors
    /// HMACs and `OTHER` have no such spec.
    pub fn plain(checksum_type: ChecksumType) -> Result<Self, SpecError> {
        Self::new(checksum_type, None)
    }

    /// The schema's name of the algorithm.
    #[must_use]
    pub fn checksum_type(&self) -> ChecksumType {
        self.algorithm.into()
    }

    fn new(checksum_type: ChecksumType, salt: Option<&[u8]>) -> Result<Self, SpecError> {
        let salt = salt.filter(|salt| !salt.is_empty());
        let algorithm = Algorithm::try_from(checksum_type)?;
        match (algorithm.is_keyed(), salt) {
            (true, None) => Err(SpecError::SaltMissing(checksum_type)),
            (false, Some(_)) => Err(SpecError::SaltNotUsed(checksum_type)),
            _ => Ok(Self {
                algorithm,
                salt: salt.map(Into::into),
            }),
        }
    }

    fn hasher(&self) -> Box<dyn Hasher> {
        let key = self.salt.as_deref().unwrap_or_default();
        match self.algorithm {
            Algorithm::Md5 => Box::new(Md5::new()),
            Algorithm::Sha1 => Box::new(Sha1::new()),
            Algorithm::Sha256 => Box::new(Sha256::new()),
            Algorithm::Sha384 => Box::new(Sha384::new()),
            Algorithm::Sha512 => Box::new(Sha512::new()),
            Algorithm::HmacMd5 => keyed::<Md5>(key),
            Algorithm::HmacSha1 => keyed::<Sha1>(key),
            Algorithm::HmacSha256 => keyed::<Sha256>(key),
            Algorithm::HmacSha384 => keyed::<Sha384>(key),
            Algorithm::HmacSha512 => keyed::<Sha512>(key),
        }
    }
}

impl TryFrom<&ChecksumSpec> for Spec {
    type Error = SpecError;

    fn try_from(spec: &ChecksumSpec) -> Result<Self, SpecError> {
        let salt = spec.checksum_salt.as_ref().map(HexBinary::as_bytes);
        Self::new(spec.checksum_type, salt)
    }
}

impl From<&Spec> for ChecksumSpec {
    fn from(spec: &Spec) -> Self {
        Self {
            checksum_type: spec.checksum_type(),
            checksum_salt: spec
                .salt
                .as_ref()
                .map(|salt| HexBinary::from(salt.to_vec())),
            other_checksum_type: None,
        }
    }
}

/// Why a checksum spec can't be computed; answered with `REQUEST_NOT_UNDERSTOOD_FAILURE`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// An HMAC without a key, or with an empty one.
    #[error("checksum type {} needs a salt", .0.as_str())]
    SaltMissing(ChecksumType),
    /// A plain digest with a salt.
    #[error("checksum type {} takes no salt", .0.as_str())]
    SaltNotUsed(ChecksumType),
    /// An algorithm that has no name in the schema.
    #[error("checksum types other than the listed ones are not supported")]
    Other,
}

/// Several checksums of the same bytes, computed in one pass.
pub struct Digests(Vec<(Spec, Box<dyn Hasher>)>);

impl Digests {
    /// Starts one computation for each distinct spec.
    #[must_use]
    pub fn new(specs: &[Spec]) -> Self {
        let mut hashers: Vec<(Spec, Box<dyn Hasher>)> = Vec::with_capacity(specs.len());
        for spec in specs {
            if !hashers.iter().any(|(known, _)| known == spec) {
                hashers.push((spec.clone(), spec.hasher()));
            }
        }
        Self(hashers)
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        // Piece by piece, so that the second digest finds the bytes in the processor's cache.
        for piece in bytes.chunks(PIECE) {
            for (_, hasher) in &mut self.0 {
                hasher.update(piece);
            }
        }
    }

    /// Ends all computations.
    #[must_use]
    pub fn finish(self) -> Checksums {
        Checksums(
            self.0
                .into_iter()
                .map(|(spec, hasher)| (spec, hasher.finish()))
                .collect(),
        )
    }
}

impl fmt::Debug for Digests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(spec, _)| spec))
            .finish()
    }
}

/// The checksums of some bytes, one per distinct spec asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checksums(Vec<(Spec, HexBinary)>);

impl Checksums {
    /// The checksums of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8], specs: &[Spec]) -> Self {
        let mut digests = Digests::new(specs);
        digests.update(bytes);
        digests.finish()
    }

    /// The checksum by `spec`, if it was asked for.
    #[must_use]
    pub fn value(&self, spec: &Spec) -> Option<&HexBinary> {
        self.0
            .iter()
            .find(|(known, _)| known == spec)
            .map(|(_, value)| value)
    }

    /// All of them, in the order in which they were first asked for.
    pub fn iter(&self) -> impl Iterator<Item = (&Spec, &HexBinary)> {
        self.0.iter().map(|(spec, value)| (spec, value))
    }
}

/// The algorithms behind the schema's names; unlike those without `OTHER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Algorithm {
    Md5,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
    HmacMd5,
    HmacSha1,
    HmacSha256,
    HmacSha384,
    HmacSha512,
}

impl Algorithm {
    fn is_keyed(self) -> bool {
        self >= Self::HmacMd5
    }
}

impl TryFrom<ChecksumType> for Algorithm {
    type Error = SpecError;

    fn try_from(checksum_type: ChecksumType) -> Result<Self, SpecError> {
        Ok(match checksum_type {
            ChecksumType::Md5 => Self::Md5,
            ChecksumType::Sha1 => Self::Sha1,
            ChecksumType::Sha256 => Self::Sha256,
            ChecksumType::Sha384 => Self::Sha384,
            ChecksumType::Sha512 => Self::Sha512,
            ChecksumType::HmacMd5 => Self::HmacMd5,
            ChecksumType::HmacSha1 => Self::HmacSha1,
            ChecksumType::HmacSha256 => Self::HmacSha256,
            ChecksumType::HmacSha384 => Self::HmacSha384,
            ChecksumType::HmacSha512 => Self::HmacSha512,
            ChecksumType::Other => return Err(SpecError::Other),
        })
    }
}

impl From<Algorithm> for ChecksumType {
    fn from(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Md5 => Self::Md5,
            Algorithm::Sha1 => Self::Sha1,
            Algorithm::Sha256 => Self::Sha256,
            Algorithm::Sha384 => Self::Sha384,
            Algorithm::Sha512 => Self::Sha512,
            Algorithm::HmacMd5 => Self::HmacMd5,
            Algorithm::HmacSha1 => Self::HmacSha1,
            Algorithm::HmacSha256 => Self::HmacSha256,
            Algorithm::HmacSha384 => Self::HmacSha384,
            Algorithm::HmacSha512 => Self::HmacSha512,
        }
    }
}

/// One running computation, plain or keyed.
trait Hasher: Send {
    fn update(&mut self, bytes: &[u8]);
    fn finish(self: Box<Self>) -> HexBinary;
}

impl<D: Digest + Send> Hasher for D {
    fn update(&mut self, bytes: &[u8]) {
        Digest::update(self, bytes);
    }

    fn finish(self: Box<Self>) -> HexBinary {
        HexBinary::from(self.finalize().to_vec())
    }
}

/// An HMAC (RFC 2104). Wrapped, so that it and the plain digests can share a trait.
struct Keyed<M>(M);

impl<M: Mac + Send> Hasher for Keyed<M> {
    fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(self: Box<Self>) -> HexBinary {
        HexBinary::from(self.0.finalize().into_bytes().to_vec())
    }
}

#[expect(
    clippy::expect_used,
    reason = "an HMAC takes a key of any length (RFC 2104 section 3)"
)]
fn keyed<D: EagerHash + Send + 'static>(key: &[u8]) -> Box<dyn Hasher>
where
    Hmac<D>: KeyInit + Mac + Send,
{
    Box::new(Keyed(
        <Hmac<D> as KeyInit>::new_from_slice(key).expect("any key length"),
    ))
}

/// Bytes that each digest takes in turn: small enough for the first-level cache.
const PIECE: usize = 16 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    const FOX: &[u8] = b"The quick brown fox jumps over the lazy dog";
    const P7: &[u8] = b"pillar test 7\n";

    fn spec(checksum_type: ChecksumType, salt: Option<&[u8]>) -> Result<Spec, SpecError> {
        Spec::try_from(&ChecksumSpec {
            checksum_type,
            checksum_salt: salt.map(|salt| HexBinary::from(salt.to_vec())),
            other_checksum_type: None,
        })
    }

    fn sum(bytes: &[u8], checksum_type: ChecksumType, salt: Option<&[u8]>) -> String {
        let spec = spec(checksum_type, salt).unwrap();
        Checksums::of(bytes, std::slice::from_ref(&spec))
            .value(&spec)
            .unwrap()
            .to_string()
    }

    #[test]
    fn published_vectors() {
        assert_eq!(
            sum(FOX, ChecksumType::Md5, None),
            "9e107d9d372bb6826bd81d3542a419d6"
        );
        assert_eq!(
            sum(FOX, ChecksumType::Sha1, None),
            "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12"
        );
        let key = Some(&b"key"[..]);
        assert_eq!(
            sum(FOX, ChecksumType::HmacMd5, key),
            "80070713463e7749b90c2dc24911e275"
        );
        assert_eq!(
            sum(FOX, ChecksumType::HmacSha1, key),
            "de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9"
        );
        assert_eq!(
            sum(b"abc", ChecksumType::Sha256, None),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            sum(b"abc", ChecksumType::Sha384, None),
            "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed\
             8086072ba1e7cc2358baeca134c825a7"
        );
        assert_eq!(
            sum(b"abc", ChecksumType::Sha512, None),
            "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
             2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        );
    }

    /// RFC 4231 section 4.3.
    #[test]
    fn hmac_sha2_vectors() {
        let data = b"what do ya want for nothing?";
        let key = Some(&b"Jefe"[..]);
        assert_eq!(
            sum(data, ChecksumType::HmacSha256, key),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            sum(data, ChecksumType::HmacSha384, key),
            "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e\
             8e2240ca5e69e2c78b3239ecfab21649"
        );
        assert_eq!(
            sum(data, ChecksumType::HmacSha512, key),
            "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554\
             9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
        );
    }

    #[test]
    fn fixtures() {
        let salt = Some(&[0xab, 0xcd][..]);
        assert_eq!(
            sum(P7, ChecksumType::Md5, None),
            "4a37f973b3c9fede0e1fb3f07b65a93b"
        );
        assert_eq!(
            sum(P7, ChecksumType::Sha1, None),
            "2df965adcf27c664a5fdb5f5fae2ec32c6097000"
        );
        assert_eq!(
            sum(P7, ChecksumType::HmacMd5, salt),
            "29b74fb6f71755e9434f713b8f2ae79a"
        );
        assert_eq!(
            sum(P7, ChecksumType::HmacSha1, salt),
            "19c971370b9cb828f1f0b7b396536aede1228373"
        );
        assert_eq!(
            sum(P7, ChecksumType::HmacMd5, Some(&[0x64])),
            "624402c58c00adb94152385ed90d1f95"
        );
        assert_eq!(
            sum(b"", ChecksumType::Md5, None),
            "d41d8cd98f00b204e9800998ecf8427e"
        );
        let r1024: Vec<u8> = (0..=255).cycle().take(1024).collect();
        assert_eq!(
            sum(&r1024, ChecksumType::Md5, None),
            "b2ea9f7fcea831a4a63b213f41a8855b"
        );
    }

    #[test]
    fn many_specs_in_one_pass_equal_one_spec_each() {
        let bytes: Vec<u8> = (0..=250).cycle().take(3 * PIECE + 17).collect();
        let specs = [
            spec(ChecksumType::Md5, None).unwrap(),
            spec(ChecksumType::HmacSha512, Some(b"k")).unwrap(),
            spec(ChecksumType::Md5, Some(b"")).unwrap(),
            spec(ChecksumType::Sha256, None).unwrap(),
        ];
        let mut digests = Digests::new(&specs);
        for piece in bytes.chunks(1000) {
            digests.update(piece);
        }
        let all = digests.finish();
        assert_eq!(all.iter().count(), 3);
        for spec in &specs {
            let alone = Checksums::of(&bytes, std::slice::from_ref(spec));
            assert_eq!(all.value(spec), alone.value(spec));
        }
    }

    #[test]
    fn salts_by_the_table() {
        use ChecksumType::{HmacMd5, HmacSha512, Md5, Other, Sha512};
        assert_eq!(spec(Md5, Some(b"")), spec(Md5, None));
        assert_eq!(spec(Md5, Some(b"x")), Err(SpecError::SaltNotUsed(Md5)));
        assert_eq!(
            spec(Sha512, Some(b"x")),
            Err(SpecError::SaltNotUsed(Sha512))
        );
        assert_eq!(spec(HmacMd5, None), Err(SpecError::SaltMissing(HmacMd5)));
        assert_eq!(
            spec(HmacSha512, Some(b"")),
            Err(SpecError::SaltMissing(HmacSha512))
        );
        for salt in [None, Some(&b""[..]), Some(&b"x"[..])] {
            assert_eq!(spec(Other, salt), Err(SpecError::Other));
        }
    }

    #[test]
    fn round_trip_to_the_wire() {
        let plain = spec(ChecksumType::Sha1, Some(b"")).unwrap();
        assert_eq!(ChecksumSpec::from(&plain).checksum_salt, None);
        let keyed = spec(ChecksumType::HmacSha1, Some(b"\xab")).unwrap();
        assert_eq!(Spec::try_from(&ChecksumSpec::from(&keyed)), Ok(keyed));
    }
}
