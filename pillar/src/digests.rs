//! Checksums of file bytes: which specs are computable, and several of them in one pass.

use std::{
    fmt,
    io::{self, Read},
};

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
    /// A checksum that somebody computed elsewhere; `None` if it can't be one of this spec.
    pub(crate) fn given(spec: &Spec, value: &HexBinary) -> Option<Self> {
        let of_nothing = Self::of(&[], std::slice::from_ref(spec));
        let length = of_nothing.value(spec)?.as_bytes().len();
        (value.as_bytes().len() == length).then(|| Self(vec![(spec.clone(), value.clone())]))
    }

    /// The checksums of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8], specs: &[Spec]) -> Self {
        let mut digests = Digests::new(specs);
        digests.update(bytes);
        digests.finish()
    }

    /// The checksums of everything that `bytes` gives. After each piece `go_on` is asked.
    ///
    /// # Errors
    /// Reading fails; `Interrupted` where `go_on` said no.
    pub fn of_reader(
        bytes: impl Read,
        specs: &[Spec],
        go_on: impl Fn() -> bool,
    ) -> io::Result<Self> {
        Self::of_pieces(bytes, specs, &mut vec![0; BUFFER_BYTES], |_| {
            if go_on() {
                return Ok(());
            }
            Err(io::ErrorKind::Interrupted.into())
        })
    }

    /// The same, a buffer at a time: `go_on` is told how many bytes came, and may end it.
    ///
    /// # Errors
    /// Reading fails, or `go_on` does.
    pub(crate) fn of_pieces<E: From<io::Error>>(
        mut bytes: impl Read,
        specs: &[Spec],
        buffer: &mut [u8],
        mut go_on: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut digests = Digests::new(specs);
        loop {
            match bytes.read(buffer) {
                Ok(0) => return Ok(digests.finish()),
                Ok(length) => {
                    digests.update(buffer.get(..length).unwrap_or_default());
                    go_on(length)?;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
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

/// Bytes read from a file at once.
const BUFFER_BYTES: usize = 256 << 10;

#[cfg(test)]
mod tests;
