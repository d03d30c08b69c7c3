//! Checksums of bytes as they pass by.

use std::{fmt, io, path::Path};

use digest::{Digest, KeyInit, Mac};
use hmac::Hmac;
use md5::Md5;
use pillarbox_messages::{ChecksumSpec, ChecksumType, HexBinary};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};

use crate::{error::ClientError, source, validate};

/// Computes one checksum over bytes that come piece by piece.
pub struct Hasher(Box<dyn Sum>);

/// A way to compute a checksum that this program does not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a checksum of the kind {0} can't be computed")]
pub struct UnknownChecksum(pub String);

impl Hasher {
    /// Begins a checksum of this kind.
    ///
    /// # Errors
    /// The type is `OTHER`, or a keyed one without a key (schema element `ChecksumSalt`).
    pub fn new(spec: &ChecksumSpec) -> Result<Self, UnknownChecksum> {
        let salt = spec
            .checksum_salt
            .as_ref()
            .map(HexBinary::as_bytes)
            .filter(|key| !key.is_empty());
        let sum: Option<Box<dyn Sum>> = match (spec.checksum_type, salt) {
            (ChecksumType::Md5, None) => plain::<Md5>(),
            (ChecksumType::Sha1, None) => plain::<Sha1>(),
            (ChecksumType::Sha256, None) => plain::<Sha256>(),
            (ChecksumType::Sha384, None) => plain::<Sha384>(),
            (ChecksumType::Sha512, None) => plain::<Sha512>(),
            (ChecksumType::HmacMd5, Some(key)) => keyed::<Hmac<Md5>>(key),
            (ChecksumType::HmacSha1, Some(key)) => keyed::<Hmac<Sha1>>(key),
            (ChecksumType::HmacSha256, Some(key)) => keyed::<Hmac<Sha256>>(key),
            (ChecksumType::HmacSha384, Some(key)) => keyed::<Hmac<Sha384>>(key),
            (ChecksumType::HmacSha512, Some(key)) => keyed::<Hmac<Sha512>>(key),
            _ => None,
        };
        sum.map(Self)
            .ok_or_else(|| UnknownChecksum(spec.checksum_type.to_string()))
    }

    /// The next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.take(bytes);
    }

    /// The checksum.
    #[must_use]
    pub fn finish(self) -> HexBinary {
        HexBinary::from(self.0.finish())
    }
}

impl fmt::Debug for Hasher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hasher").finish_non_exhaustive()
    }
}

/// The checksum of a regular file on this machine. Reading stops when the future is dropped.
///
/// # Errors
/// It is no regular file, or can't be read; the checksum can't be computed.
pub async fn of_file(path: &Path, spec: &ChecksumSpec) -> Result<HexBinary, ClientError> {
    let file = validate::source_file(path)?;
    let read = source::examine(Ok(file), spec).await;
    read.map_err(|text| ClientError::Source {
        path: path.to_path_buf(),
        source: io::Error::other(text),
    })
}

/// How many bytes a checksum of this type has; none for `OTHER`.
#[must_use]
pub const fn length(kind: ChecksumType) -> Option<usize> {
    match kind {
        ChecksumType::Md5 | ChecksumType::HmacMd5 => Some(16),
        ChecksumType::Sha1 | ChecksumType::HmacSha1 => Some(20),
        ChecksumType::Sha256 | ChecksumType::HmacSha256 => Some(32),
        ChecksumType::Sha384 | ChecksumType::HmacSha384 => Some(48),
        ChecksumType::Sha512 | ChecksumType::HmacSha512 => Some(64),
        ChecksumType::Other => None,
    }
}

/// Whether a checksum type needs a key.
#[must_use]
pub const fn is_keyed(kind: ChecksumType) -> bool {
    matches!(
        kind,
        ChecksumType::HmacMd5
            | ChecksumType::HmacSha1
            | ChecksumType::HmacSha256
            | ChecksumType::HmacSha384
            | ChecksumType::HmacSha512
    )
}

/// The spec of a type without a key.
#[must_use]
pub const fn plain_spec(kind: ChecksumType) -> ChecksumSpec {
    ChecksumSpec {
        checksum_type: kind,
        checksum_salt: None,
        other_checksum_type: None,
    }
}

/// Whether two specs compute the same; an empty salt is none.
#[must_use]
pub fn same_spec(one: &ChecksumSpec, other: &ChecksumSpec) -> bool {
    fn salt(spec: &ChecksumSpec) -> &[u8] {
        spec.checksum_salt
            .as_ref()
            .map(HexBinary::as_bytes)
            .unwrap_or_default()
    }
    one.checksum_type == other.checksum_type
        && salt(one) == salt(other)
        && one.other_checksum_type == other.other_checksum_type
}

trait Sum: Send {
    fn take(&mut self, bytes: &[u8]);
    fn finish(self: Box<Self>) -> Vec<u8>;
}

struct Plain<D>(D);
struct Keyed<M>(M);

impl<D: Digest + Send> Sum for Plain<D> {
    fn take(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(self: Box<Self>) -> Vec<u8> {
        self.0.finalize().to_vec()
    }
}

impl<M: Mac + Send> Sum for Keyed<M> {
    fn take(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    fn finish(self: Box<Self>) -> Vec<u8> {
        self.0.finalize().into_bytes().to_vec()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "beside keyed, which can fail")]
fn plain<D: Digest + Send + 'static>() -> Option<Box<dyn Sum>> {
    Some(Box::new(Plain(D::new())))
}

fn keyed<M: Mac + KeyInit + Send + 'static>(key: &[u8]) -> Option<Box<dyn Sum>> {
    let mac = <M as KeyInit>::new_from_slice(key).ok()?;
    Some(Box::new(Keyed(mac)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOX: &[u8] = b"The quick brown fox jumps over the lazy dog";

    fn sum(kind: ChecksumType, salt: Option<&str>) -> String {
        let checksum_salt = salt.map(|hex| hex.parse().unwrap());
        let spec = ChecksumSpec {
            checksum_salt,
            ..plain_spec(kind)
        };
        let mut hasher = Hasher::new(&spec).unwrap();
        FOX.chunks(7).for_each(|piece| hasher.update(piece));
        hasher.finish().to_string()
    }

    #[test]
    fn published_values() {
        assert_eq!(
            sum(ChecksumType::Md5, None),
            "9e107d9d372bb6826bd81d3542a419d6"
        );
        assert_eq!(
            sum(ChecksumType::Sha1, None),
            "2fd4e1c67a2d28fced849ee1bb76e7391b93eb12"
        );
        let key = Some("6b6579");
        assert_eq!(
            sum(ChecksumType::HmacMd5, key),
            "80070713463e7749b90c2dc24911e275"
        );
        assert_eq!(
            sum(ChecksumType::HmacSha1, key),
            "de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9"
        );
    }

    #[test]
    fn what_can_not_be_computed() {
        assert!(Hasher::new(&plain_spec(ChecksumType::Other)).is_err());
        assert!(Hasher::new(&plain_spec(ChecksumType::HmacSha256)).is_err());
    }

    #[test]
    fn an_empty_salt_is_none() {
        let empty = ChecksumSpec {
            checksum_salt: Some(HexBinary::from(Vec::new())),
            ..plain_spec(ChecksumType::Md5)
        };
        assert!(same_spec(&empty, &plain_spec(ChecksumType::Md5)));
        assert!(Hasher::new(&empty).is_ok());
        assert!(!same_spec(&empty, &plain_spec(ChecksumType::Sha1)));
    }
}
