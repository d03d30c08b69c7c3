//! https, with certificates made for the occasion.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use super::{client, fetch, transfer_error};
use crate::{AddressPolicy, ClientOptions, ExchangeClient, ExchangeError, TransferError};

/// An https server that answers every request with five bytes.
struct HttpsServer {
    address: SocketAddr,
    ca_file: PathBuf,
    task: JoinHandle<()>,
    _directory: TempDir,
}

impl HttpsServer {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        make_certificates(directory.path());
        let acceptor = TlsAcceptor::from(Arc::new(server_config(directory.path())));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _peer) = listener.accept().await.unwrap();
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
                stream.write_all(answer).await.unwrap();
                stream.shutdown().await.unwrap();
            }
        });
        Self {
            address,
            ca_file: directory.path().join("ca.pem"),
            task,
            _directory: directory,
        }
    }
}

impl Drop for HttpsServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// An authority (ca.pem), and a certificate of it for 127.0.0.1 (server.pem, server.key).
fn make_certificates(directory: &Path) {
    let key = [
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ];
    let run = |arguments: &[&str]| {
        let output = Command::new("openssl")
            .args(["req", "-x509"])
            .args(key)
            .args(arguments)
            .current_dir(directory)
            .output()
            .expect("this test needs the openssl command");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    };
    run(&[
        "-subj",
        "/CN=Test authority",
        "-keyout",
        "ca.key",
        "-out",
        "ca.pem",
    ]);
    run(&[
        "-subj",
        "/CN=Test server",
        "-keyout",
        "server.key",
        "-out",
        "server.pem",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-addext",
        "basicConstraints=critical,CA:FALSE",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    ]);
}

fn server_config(directory: &Path) -> ServerConfig {
    let certificate = CertificateDer::from_pem_file(directory.join("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(directory.join("server.key")).unwrap();
    ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap()
}

#[tokio::test]
async fn an_authority_that_is_named_is_trusted_and_no_other() {
    let server = HttpsServer::new().await;
    let address = format!("https://{}/x", server.address);
    let hosts = vec![server.address.to_string()];

    let trusting = client(|options| {
        options.policy.hosts.clone_from(&hosts);
        options.ca_files = vec![server.ca_file.clone()];
    });
    assert_eq!(fetch(&trusting, &address).await.unwrap(), "hello");

    let other = client(|options| options.policy.hosts.clone_from(&hosts));
    let TransferError::Connect { detail } = transfer_error(other.get(&address).await) else {
        panic!("not a refused connection");
    };
    assert!(detail.contains("certificate"), "{detail}");
}

#[tokio::test]
async fn host_names_are_verified() {
    let server = HttpsServer::new().await;
    let host = format!("localhost:{}", server.address.port());
    let trusting = client(|options| {
        options.policy.hosts = vec![host.clone()];
        options.ca_files = vec![server.ca_file.clone()];
    });
    let TransferError::Connect { detail } =
        transfer_error(trusting.get(&format!("https://{host}/x")).await)
    else {
        panic!("not a refused connection");
    };
    assert!(detail.contains("certificate"), "{detail}");
}

#[test]
fn a_certificate_file_that_cannot_be_used_is_named() {
    let mut options = ClientOptions::new(AddressPolicy::default());
    options.ca_files = vec![PathBuf::from("/nowhere/ca.pem")];
    let error = ExchangeClient::new(&options).unwrap_err();
    assert!(matches!(error, ExchangeError::Trust(_)));
    assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
}
