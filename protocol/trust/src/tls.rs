//! TLS configuration from PEM files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{
        CertificateDer,
        pem::{self, PemObject},
    },
};

/// The configuration of outgoing https connections: the certificates that the operating system
/// trusts, and those in `ca_files` (PEM, each with one or more certificates). Host names are
/// verified.
///
/// An operating system without a trust store isn't an error here: it trusts nobody but `ca_files`.
///
/// # Errors
/// A file that can't be read, has no certificate in it, or has one that can't be a trust anchor.
/// The error names the file.
pub fn client_tls(ca_files: &[PathBuf]) -> Result<ClientConfig, TrustError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    for path in ca_files {
        add_file(&mut roots, path)?;
    }
    trusting(roots)
}

/// A configuration that trusts nobody: for a client that only speaks plain http. Unlike [`client_tls`] it
/// costs no look at the operating system's trust store, which takes longer than a short program.
///
/// # Errors
/// [`TrustError::Protocol`], as [`client_tls`].
pub fn no_tls() -> Result<ClientConfig, TrustError> {
    trusting(RootCertStore::empty())
}

fn trusting(roots: RootCertStore) -> Result<ClientConfig, TrustError> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TrustError::Protocol)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(config)
}

fn add_file(roots: &mut RootCertStore, path: &Path) -> Result<(), TrustError> {
    let bad_pem = |source| TrustError::Pem {
        path: path.to_path_buf(),
        source,
    };
    let text = std::fs::read(path).map_err(|source| TrustError::Read {
        path: path.to_path_buf(),
        source,
    })?;
    let mut count = 0_usize;
    for certificate in CertificateDer::pem_slice_iter(&text) {
        roots
            .add(certificate.map_err(bad_pem)?)
            .map_err(|source| TrustError::Certificate {
                path: path.to_path_buf(),
                number: count + 1,
                source,
            })?;
        count += 1;
    }
    if count == 0 {
        return Err(TrustError::NoCertificate {
            path: path.to_path_buf(),
        });
    }
    Ok(())
}

/// Why a TLS configuration couldn't be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The file can't be read.
    #[error("can't read the certificate file {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The file isn't well-formed PEM.
    #[error("the certificate file {} isn't valid PEM: {source}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// The file is readable and has no certificate in it.
    #[error(
        "the certificate file {} has no certificate in it; it needs at least one \
         \"BEGIN CERTIFICATE\" block",
        path.display()
    )]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A certificate in the file can't be trusted as an authority.
    #[error("certificate {number} in {} can't be used: {source}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// Which certificate of the file, counted from 1.
        number: usize,
        /// What is wrong with it.
        source: rustls::Error,
    },
    /// The provider offers no usable protocol version.
    #[error("no usable TLS version: {0}")]
    Protocol(#[source] rustls::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_with(text: &str) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        std::fs::write(&path, text).unwrap();
        (directory, path)
    }

    #[test]
    fn works_without_extra_files() {
        let config = client_tls(&[]).unwrap();
        assert!(!config.crypto_provider().cipher_suites.is_empty());
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = client_tls(&[PathBuf::from("/nowhere/ca.pem")]).unwrap_err();
        assert!(matches!(error, TrustError::Read { .. }));
        assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let (_directory, path) = file_with("only words\n");
        let error = client_tls(std::slice::from_ref(&path)).unwrap_err();
        assert!(matches!(error, TrustError::NoCertificate { .. }));
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{error}"
        );
    }

    #[test]
    fn broken_pem_is_refused() {
        let text = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
        let (_directory, path) = file_with(text);
        assert!(matches!(client_tls(&[path]), Err(TrustError::Pem { .. })));
    }

    #[test]
    fn a_certificate_that_is_none_is_refused() {
        let text = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
        let (_directory, path) = file_with(text);
        assert!(matches!(
            client_tls(&[path]),
            Err(TrustError::Certificate { number: 1, .. })
        ));
    }
}
