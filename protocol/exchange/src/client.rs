//! Fetching from and sending to exchange addresses.

mod download;
mod file;
mod http;
mod source;

use std::{
    fs::File,
    io::{self, Seek, SeekFrom},
    num::NonZeroU64,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, stream};

pub use self::download::Download;
use self::{http::HttpClient, source::Source};
use crate::{
    address::Address,
    disk::{self, Reader},
    error::ExchangeError,
    policy::{AddressPolicy, Rules},
};

/// How an [`ExchangeClient`] behaves.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// Which addresses it may use.
    pub policy: AddressPolicy,
    /// How long a connection may take to come about. Default: 10 s.
    pub connect_timeout: Duration,
    /// How long nothing may move before a transfer is given up. Default: 60 s.
    pub idle_timeout: Duration,
    /// PEM files of certificates that https servers may be certified by, besides the operating
    /// system's.
    pub ca_files: Vec<PathBuf>,
}

impl ClientOptions {
    /// The defaults, with `policy`.
    #[must_use]
    pub fn new(policy: AddressPolicy) -> Self {
        Self {
            policy,
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            ca_files: Vec::new(),
        }
    }
}

/// A client for http, https and file: addresses. Clones share connections.
///
/// Every method refuses, before it does anything, an address that it can't use
/// ([`ExchangeError::BadAddress`], [`ExchangeError::UnsupportedScheme`]) or may not use
/// ([`ExchangeError::NotAllowed`]).
#[derive(Clone, Debug)]
pub struct ExchangeClient {
    rules: Arc<Rules>,
    http: HttpClient,
}

impl ExchangeClient {
    /// A client; connects to nothing yet.
    ///
    /// # Errors
    /// An entry of the policy or a certificate file that can't be used; the error names it.
    pub fn new(options: &ClientOptions) -> Result<Self, ExchangeError> {
        Ok(Self {
            rules: Arc::new(Rules::new(&options.policy)?),
            http: HttpClient::new(options)?,
        })
    }

    /// Whether `address` may be used, without using it. The place that a file: address leads to is
    /// looked at only when it is used.
    ///
    /// # Errors
    /// As described at the type.
    pub fn check(&self, address: &str) -> Result<(), ExchangeError> {
        self.rules.check(address).map(drop)
    }

    /// Starts fetching a file.
    ///
    /// # Errors
    /// [`ExchangeError::Transfer`] if the server or the file refuses.
    pub async fn get(&self, address: &str) -> Result<Download, ExchangeError> {
        match self.rules.check(address)? {
            Address::Http(url) => self.http.get(address, url, None).await,
            Address::File(path) => file::get(&self.rules, address, path, None).await,
        }
    }

    /// Starts fetching `length` bytes from `offset` (in bytes) on, or those that exist of them.
    ///
    /// # Errors
    /// As [`Self::get`]; also if nothing lies at `offset`, or the server doesn't send parts.
    pub async fn get_range(
        &self,
        address: &str,
        offset: u64,
        length: NonZeroU64,
    ) -> Result<Download, ExchangeError> {
        let part = Some(Part { offset, length });
        match self.rules.check(address)? {
            Address::Http(url) => self.http.get(address, url, part).await,
            Address::File(path) => file::get(&self.rules, address, path, part).await,
        }
    }

    /// Sends the file at `path`, replacing what is at the address, and returns its size in bytes.
    ///
    /// # Errors
    /// [`ExchangeError::Local`] if `path` can't be read to its end, [`ExchangeError::Transfer`] if
    /// the other side fails.
    pub async fn put_file(&self, address: &str, path: &Path) -> Result<u64, ExchangeError> {
        self.rules.check(address)?;
        let reading = format!("reading {}", path.display());
        let path = path.to_path_buf();
        let file = disk::blocking(move || File::open(path))
            .await
            .map_err(|error| ExchangeError::local(reading.clone(), error))?;
        self.send_file(address, file, None, reading, |_| {}).await
    }

    /// Sends an open file, from its beginning; all its bytes are shown to `watch`, in their order, as they are read.
    /// Otherwise as [`Self::put_file`].
    ///
    /// # Errors
    /// As [`Self::put_file`]. `watch` may have seen all of the file nevertheless.
    pub async fn put_open_file(
        &self,
        address: &str,
        file: File,
        watch: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<u64, ExchangeError> {
        self.rules.check(address)?;
        self.send_file(address, file, None, READING.to_owned(), watch)
            .await
    }

    /// Sends `length` bytes of an open file, from `offset` (in bytes) on. Otherwise as [`Self::put_file`].
    ///
    /// # Errors
    /// As [`Self::put_file`]; also if the file has not so many bytes there.
    pub async fn put_open_part(
        &self,
        address: &str,
        file: File,
        offset: u64,
        length: NonZeroU64,
    ) -> Result<u64, ExchangeError> {
        self.rules.check(address)?;
        let part = Some(Part { offset, length });
        self.send_file(address, file, part, READING.to_owned(), |_| {})
            .await
    }

    /// Sends `content`, replacing what is at the address.
    ///
    /// # Errors
    /// [`ExchangeError::Transfer`].
    pub async fn put_bytes(&self, address: &str, content: Bytes) -> Result<u64, ExchangeError> {
        let length = content.len() as u64;
        let stream = stream::iter([Ok(content)]);
        self.put_stream(address, stream, Some(length)).await
    }

    /// Sends what `stream` yields, replacing what is at the address, and returns how many bytes that
    /// were. The stream may take its time; only the other side is timed. Without a `length` (in
    /// bytes), http sends in chunks.
    ///
    /// # Errors
    /// [`ExchangeError::Local`] if the stream fails or isn't as long as announced,
    /// [`ExchangeError::Transfer`] if the other side fails.
    pub async fn put_stream(
        &self,
        address: &str,
        stream: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
        length: Option<u64>,
    ) -> Result<u64, ExchangeError> {
        let what = "producing the bytes to send".to_owned();
        self.send(address, Source::new(stream, length), what).await
    }

    /// Removes a file; false if there was none.
    ///
    /// # Errors
    /// [`ExchangeError::Transfer`].
    pub async fn delete(&self, address: &str) -> Result<bool, ExchangeError> {
        match self.rules.check(address)? {
            Address::Http(url) => self.http.delete(address, url).await,
            Address::File(path) => file::delete(&self.rules, address, path).await,
        }
    }

    /// Removes a file if there is one, and whatever is still to come to its address: whether the server lets nothing
    /// be put there any more. One that knows of no such thing, or a file: address, may still get a file.
    ///
    /// # Errors
    /// [`ExchangeError::Transfer`].
    pub async fn end_offer(&self, address: &str) -> Result<bool, ExchangeError> {
        match self.rules.check(address)? {
            Address::Http(url) => self.http.end(address, url).await,
            Address::File(path) => file::delete(&self.rules, address, path)
                .await
                .map(|_existed| false),
        }
    }

    /// The size of a file in bytes; nothing if the server doesn't say.
    ///
    /// # Errors
    /// [`ExchangeError::Transfer`], also if there is no such file.
    pub async fn size(&self, address: &str) -> Result<Option<u64>, ExchangeError> {
        match self.rules.check(address)? {
            Address::Http(url) => self.http.size(address, url).await,
            Address::File(path) => file::size(&self.rules, address, path).await.map(Some),
        }
    }

    async fn send_file(
        &self,
        address: &str,
        mut file: File,
        part: Option<Part>,
        reading: String,
        watch: impl FnMut(&[u8]) + Send + 'static,
    ) -> Result<u64, ExchangeError> {
        let opened = disk::blocking(move || {
            file.seek(SeekFrom::Start(part.map_or(0, |part| part.offset)))?;
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "it isn't a file",
                ));
            }
            // A file that ends before its part does is found out while it is read.
            let length = part.map_or(metadata.len(), |part| part.length.get());
            Ok((file, length))
        });
        let (file, length) = opened
            .await
            .map_err(|error| ExchangeError::local(reading.clone(), error))?;
        self.send(
            address,
            Source::new(Reader::start_shown(file, length, watch), Some(length)),
            reading,
        )
        .await
    }

    async fn send(
        &self,
        address: &str,
        source: Source,
        what: String,
    ) -> Result<u64, ExchangeError> {
        let progress = source.progress();
        let sent = match self.rules.check(address)? {
            Address::Http(url) => self.http.put(address, url, source).await,
            Address::File(path) => file::put(&self.rules, address, path, source).await,
        };
        match progress.take_failure() {
            Some(failure) => Err(ExchangeError::local(what, failure)),
            None => sent.map(|()| progress.sent()),
        }
    }
}

const READING: &str = "reading the file to send";

/// A part of a file, in bytes.
#[derive(Clone, Copy, Debug)]
struct Part {
    offset: u64,
    length: NonZeroU64,
}
