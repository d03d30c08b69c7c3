//! http and https.

use std::{
    future::Future,
    pin::pin,
    sync::{Arc, OnceLock},
    time::Duration,
};

use pillarbox_trust::{ClientConfig, client_tls, no_tls};
use reqwest::{
    Body, Client, Method, RequestBuilder, Response, StatusCode, Url,
    header::{ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, HeaderName, RANGE},
    redirect::Policy,
};
use tokio::time::timeout;

use super::{
    ClientOptions, Download, Part,
    source::{Progress, Source},
};
use crate::{
    OFFER_OVER,
    error::{ExchangeError, TransferError, causes},
};

/// An unused connection is closed before the other side does so: a request that crosses with its
/// closing is lost, and a body can't be sent twice.
const KEEP_UNUSED_CONNECTION: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub(crate) struct HttpClient {
    plain: Client,
    /// Made for the first https address, since most exchanges are plain http and a trust store takes
    /// long to read.
    secure: Arc<OnceLock<Client>>,
    options: Arc<ClientOptions>,
}

impl HttpClient {
    pub(crate) fn new(options: &ClientOptions) -> Result<Self, ExchangeError> {
        let client = Self {
            plain: build(options, no_tls()?)?,
            secure: Arc::default(),
            options: Arc::new(options.clone()),
        };
        if !options.ca_files.is_empty() {
            // A file that can't be used is to be known now.
            client.secure()?;
        }
        Ok(client)
    }

    fn client(&self, url: &Url) -> Result<&Client, ExchangeError> {
        if url.scheme() == "https" {
            self.secure()
        } else {
            Ok(&self.plain)
        }
    }

    fn secure(&self) -> Result<&Client, ExchangeError> {
        if let Some(client) = self.secure.get() {
            return Ok(client);
        }
        let client = build(&self.options, client_tls(&self.options.ca_files)?)?;
        Ok(self.secure.get_or_init(|| client))
    }

    pub(crate) async fn get(
        &self,
        address: &str,
        url: Url,
        part: Option<Part>,
    ) -> Result<Download, ExchangeError> {
        let failed = |error| ExchangeError::transfer(address, error);
        let mut request = self
            .client(&url)?
            .get(url)
            .header(ACCEPT_ENCODING, "identity");
        if let Some(Part { offset, length }) = part {
            let last = offset.saturating_add(length.get() - 1);
            request = request.header(RANGE, format!("bytes={offset}-{last}"));
        }
        let response = self.answer(request).await.map_err(failed)?;
        check_part(&response, part).map_err(failed)?;
        let length = response.content_length();
        Ok(Download::http(
            address,
            length,
            response,
            self.options.idle_timeout,
        ))
    }

    pub(crate) async fn put(
        &self,
        address: &str,
        url: Url,
        source: Source,
    ) -> Result<(), ExchangeError> {
        let progress = source.progress();
        let mut request = self.client(&url)?.put(url);
        if let Some(length) = source.length() {
            request = request.header(CONTENT_LENGTH, length);
        }
        let request = request.body(Body::wrap_stream(source));
        let sent = self.watch(request.send(), progress).await.and_then(success);
        sent.map(drop)
            .map_err(|error| ExchangeError::transfer(address, error))
    }

    pub(crate) async fn delete(&self, address: &str, url: Url) -> Result<bool, ExchangeError> {
        match self.answer(self.client(&url)?.delete(url)).await {
            Ok(_) => Ok(true),
            Err(TransferError::Status { status: 404 | 410 }) => Ok(false),
            Err(error) => Err(ExchangeError::transfer(address, error)),
        }
    }

    /// Removes a file and asks the server to let nothing be put there any more; whether it says that it does.
    pub(crate) async fn end(&self, address: &str, url: Url) -> Result<bool, ExchangeError> {
        let request = self.client(&url)?.delete(url).header(OFFER_OVER, "true");
        let failed = |error| ExchangeError::transfer(address, error);
        let response = self.sent(request).await.map_err(failed)?;
        let over = response.headers().contains_key(OFFER_OVER);
        match success(response) {
            Ok(_) | Err(TransferError::Status { status: 404 | 410 }) => Ok(over),
            Err(error) => Err(failed(error)),
        }
    }

    pub(crate) async fn size(&self, address: &str, url: Url) -> Result<Option<u64>, ExchangeError> {
        let request = self
            .client(&url)?
            .request(Method::HEAD, url)
            .header(ACCEPT_ENCODING, "identity");
        let response = self
            .answer(request)
            .await
            .map_err(|error| ExchangeError::transfer(address, error))?;
        // The body's own length is that of the answer to HEAD: nothing.
        Ok(header(&response, &CONTENT_LENGTH).and_then(|length| length.parse().ok()))
    }

    /// The good answer to a request without a body.
    async fn answer(&self, request: RequestBuilder) -> Result<Response, TransferError> {
        self.sent(request).await.and_then(success)
    }

    /// The answer to a request without a body.
    async fn sent(&self, request: RequestBuilder) -> Result<Response, TransferError> {
        timeout(self.options.idle_timeout, request.send())
            .await
            .map_err(|_elapsed| TransferError::Stalled {
                after: self.options.idle_timeout,
            })?
            .map_err(failure)
    }

    /// The answer to a request with a body: given up when the other side takes no more bytes, and
    /// when no answer follows the last one.
    async fn watch(
        &self,
        sending: impl Future<Output = reqwest::Result<Response>> + Send,
        mut progress: Progress,
    ) -> Result<Response, TransferError> {
        let mut sending = pin!(sending);
        let mut ended = false;
        loop {
            let timed = ended || !progress.position().waiting;
            let moved = async {
                if ended {
                    std::future::pending().await
                } else {
                    progress.changed().await
                }
            };
            let limit = async {
                if timed {
                    tokio::time::sleep(self.options.idle_timeout).await;
                } else {
                    std::future::pending::<()>().await;
                }
            };
            tokio::select! {
                biased;
                response = &mut sending => return response.map_err(failure),
                more = moved => ended = !more,
                () = limit => return Err(TransferError::Stalled { after: self.options.idle_timeout }),
            }
        }
    }
}

fn success(response: Response) -> Result<Response, TransferError> {
    match response.status() {
        status if status.is_success() => Ok(response),
        StatusCode::RANGE_NOT_SATISFIABLE => Err(TransferError::OutOfRange),
        status => Err(TransferError::Status {
            status: status.as_u16(),
        }),
    }
}

fn failure(error: reqwest::Error) -> TransferError {
    let connecting = error.is_connect();
    let detail = causes(&error.without_url());
    if connecting {
        TransferError::Connect { detail }
    } else {
        TransferError::Broken { detail }
    }
}

/// Whether the answer is about the part that was asked for, or the whole if none was.
fn check_part(response: &Response, part: Option<Part>) -> Result<(), TransferError> {
    let partial = response.status() == StatusCode::PARTIAL_CONTENT;
    let fits = match part {
        None => !partial,
        Some(part) => {
            partial
                && header(response, &CONTENT_RANGE)
                    .and_then(content_range)
                    .is_some_and(|(first, last)| is_within(part, first, last))
        }
    };
    if fits {
        Ok(())
    } else {
        Err(TransferError::WrongRange)
    }
}

fn is_within(part: Part, first: u64, last: u64) -> bool {
    first == part.offset && last >= first && last - first < part.length.get()
}

/// First and last byte of `bytes 3-7/20`.
fn content_range(value: &str) -> Option<(u64, u64)> {
    let (range, _size) = value.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some((first.trim().parse().ok()?, last.trim().parse().ok()?))
}

fn header<'response>(response: &'response Response, name: &HeaderName) -> Option<&'response str> {
    response.headers().get(name)?.to_str().ok()
}

fn build(options: &ClientOptions, tls: ClientConfig) -> Result<Client, ExchangeError> {
    let builder = Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        // A proxy would decide where an allowed address leads to.
        .no_proxy()
        .referer(false)
        .tcp_nodelay(true)
        .pool_idle_timeout(KEEP_UNUSED_CONNECTION)
        .connect_timeout(options.connect_timeout);
    // The idle timeout decides, and may be longer than the library's own limit.
    #[cfg(target_os = "linux")]
    let builder = builder.tcp_user_timeout(None);
    builder.build().map_err(|error| ExchangeError::Setup {
        detail: causes(&error),
    })
}
