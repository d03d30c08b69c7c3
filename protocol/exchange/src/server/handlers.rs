//! One request, one answer.

use std::{convert::Infallible, fs::File, io, sync::Arc, time::Duration};

use axum::{
    body::{Body, BodyDataStream, Bytes},
    extract::{Request, State},
    http::{
        HeaderMap, HeaderValue, Method, StatusCode,
        header::{
            ACCEPT_RANGES, ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, EXPECT,
            HeaderName, IF_RANGE, RANGE, X_CONTENT_TYPE_OPTIONS,
        },
    },
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use tokio::time::timeout;

use super::{
    range::Wanted,
    store::{Name, Store},
};
use crate::{
    OFFER_OVER,
    disk::{self, Reader, Writer},
};

/// What every request needs.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: Arc<Store>,
    /// What the path of a request may begin with, before the token.
    pub(crate) path_prefix: String,
    pub(crate) maximum_file_bytes: Option<u64>,
    pub(crate) idle_timeout: Duration,
}

/// How long the rest of a refused upload is read, so that its sender gets to see the answer.
const DRAIN_REFUSED: Duration = Duration::from_secs(2);

/// Answers a request.
pub(crate) async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let path = request.uri().path();
    let name = Name::parse(path.strip_prefix(&shared.path_prefix).unwrap_or(path))
        .or_else(|| Name::parse(path));
    let method = request.method().clone();
    match (&method, name) {
        (&Method::PUT, Some(name)) => put(&shared, &name, request).await,
        (&Method::PUT, None) => Refusal::Forbidden.answer(rest_of(request)),
        (&Method::GET | &Method::HEAD, Some(name)) => {
            get(
                &shared,
                name,
                method == Method::HEAD,
                request.headers().clone(),
            )
            .await
        }
        (&Method::DELETE, Some(name)) => {
            let ends = request.headers().contains_key(OFFER_OVER);
            delete(&shared, name, ends).await
        }
        (&Method::GET | &Method::HEAD | &Method::DELETE, None) => Refusal::NotFound.answer(None),
        _ => Refusal::Method.answer(rest_of(request)),
    }
}

/// The body that will come although its request is refused; nothing if its sender waits for our
/// consent.
fn rest_of(request: Request) -> Option<Body> {
    (!request.headers().contains_key(EXPECT)).then(|| request.into_body())
}

async fn put(shared: &Shared, name: &Name, request: Request) -> Response {
    let announced = number(request.headers(), &CONTENT_LENGTH);
    let partial = request.headers().contains_key(CONTENT_RANGE);
    let consent_awaited = request.headers().contains_key(EXPECT);
    let mut body = request.into_body().into_data_stream();
    let received = if partial {
        Err(Refusal::Partial)
    } else {
        receive(shared, name, announced, &mut body).await
    };
    match received {
        Ok(true) => StatusCode::NO_CONTENT.into_response(),
        Ok(false) => StatusCode::CREATED.into_response(),
        Err(refusal) => refusal.answer((!consent_awaited).then(|| Body::from_stream(body))),
    }
}

/// Stores a body; true if it replaced a file.
async fn receive(
    shared: &Shared,
    name: &Name,
    announced: Option<u64>,
    body: &mut BodyDataStream,
) -> Result<bool, Refusal> {
    refuse_if_over(shared, name).await?;
    let limit = shared.maximum_file_bytes.unwrap_or(u64::MAX);
    if let Some(announced) = announced {
        if announced > limit {
            return Err(Refusal::TooLarge);
        }
        let store = Arc::clone(&shared.store);
        // A small one finds out by being written.
        if announced > SMALL_BYTES
            && disk::blocking(move || store.free_bytes())
                .await
                .map_err(Refusal::Disk)?
                < announced
        {
            return Err(Refusal::NoRoom);
        }
    }
    let mut writer = shared.store.writer(name);
    let received = copy(body, &mut writer, limit, shared.idle_timeout).await?;
    if announced.is_some_and(|announced| announced != received) {
        return Err(Refusal::CutOff);
    }
    let replaced = writer.publish().await.map_err(Refusal::Disk)?;
    // The offer may have ended meanwhile.
    if let Err(refusal) = refuse_if_over(shared, name).await {
        let (store, name) = (Arc::clone(&shared.store), name.clone());
        let removed = disk::blocking(move || store.remove(&name)).await;
        return Err(removed.map_or_else(Refusal::Disk, |_| refusal));
    }
    Ok(replaced)
}

async fn refuse_if_over(shared: &Shared, name: &Name) -> Result<(), Refusal> {
    let (store, name) = (Arc::clone(&shared.store), name.clone());
    match disk::blocking(move || store.is_over(&name)).await {
        Ok(false) => Ok(()),
        Ok(true) => Err(Refusal::Over),
        Err(error) => Err(Refusal::Disk(error)),
    }
}

/// Writes a body as it comes; tells its length.
async fn copy(
    body: &mut BodyDataStream,
    writer: &mut Writer,
    limit: u64,
    idle_timeout: Duration,
) -> Result<u64, Refusal> {
    let mut received = 0_u64;
    while let Some(buffer) = timeout(idle_timeout, body.next())
        .await
        .map_err(|_elapsed| Refusal::Stalled)?
    {
        let buffer = buffer.map_err(|_error| Refusal::CutOff)?;
        received += buffer.len() as u64;
        if received > limit {
            return Err(Refusal::TooLarge);
        }
        writer.write(buffer).await.map_err(Refusal::Disk)?;
    }
    Ok(received)
}

async fn get(shared: &Shared, name: Name, head: bool, headers: HeaderMap) -> Response {
    let range = headers.get(RANGE).and_then(|range| range.to_str().ok());
    // There are no validators here that an If-Range could agree with.
    let range = range
        .filter(|_| !head && !headers.contains_key(IF_RANGE))
        .map(str::to_owned);
    match read(shared, name, range, head).await {
        Ok(response) => response,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Refusal::NotFound.answer(None),
        Err(error) => Refusal::Disk(error).answer(None),
    }
}

async fn read(
    shared: &Shared,
    name: Name,
    range: Option<String>,
    head: bool,
) -> io::Result<Response> {
    let store = Arc::clone(&shared.store);
    let opened = disk::blocking(move || {
        let (mut file, size) = store.read(&name)?;
        let wanted = range.map_or(Wanted::Whole, |range| Wanted::parse(&range, size));
        if let Wanted::Part { first, .. } = wanted {
            io::Seek::seek(&mut file, io::SeekFrom::Start(first))?;
        }
        let length = wanted.length(size);
        let content = match head {
            true => Content::Nothing,
            // Read in the same turn of a thread: a second one would take longer than the reading.
            false if length <= SMALL_BYTES => {
                Content::Small(disk::read_exactly(&mut file, length)?)
            }
            false => Content::Large(file),
        };
        Ok::<_, io::Error>((content, size, wanted))
    });
    let (content, size, wanted) = opened.await?;
    let (status, range, length) = match wanted {
        Wanted::Whole => (StatusCode::OK, None, size),
        Wanted::Part { first, length } => {
            let range = format!("bytes {first}-{}/{size}", first + length - 1);
            (StatusCode::PARTIAL_CONTENT, Some(range), length)
        }
        Wanted::Nothing => return Ok(unsatisfiable(size)),
    };
    let body = match content {
        Content::Nothing => Body::empty(),
        Content::Small(bytes) => Body::from(bytes),
        Content::Large(file) => Body::from_stream(Reader::start(file, length)),
    };
    let mut response = (status, FILE_HEADERS, body).into_response();
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    if let Some(range) = range.and_then(|range| HeaderValue::try_from(range).ok()) {
        response.headers_mut().insert(CONTENT_RANGE, range);
    }
    Ok(response)
}

/// What a file is answered with.
enum Content {
    Nothing,
    Small(Bytes),
    Large(File),
}

/// Up to this length a file is read, and trusted to find room, at once.
const SMALL_BYTES: u64 = 64 * 1024;

/// What every file is sent with: bytes, and nothing that a browser should make something of.
const FILE_HEADERS: [(HeaderName, &str); 3] = [
    (CONTENT_TYPE, "application/octet-stream"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (ACCEPT_RANGES, "bytes"),
];

fn unsatisfiable(size: u64) -> Response {
    let range = [(CONTENT_RANGE, format!("bytes */{size}"))];
    (StatusCode::RANGE_NOT_SATISFIABLE, range).into_response()
}

async fn delete(shared: &Shared, name: Name, ends: bool) -> Response {
    let store = Arc::clone(&shared.store);
    let removed = disk::blocking(move || {
        if ends {
            store.end(&name)
        } else {
            store.remove(&name)
        }
    });
    let (mut response, done) = match removed.await {
        Ok(true) => (StatusCode::NO_CONTENT.into_response(), true),
        Ok(false) => (Refusal::NotFound.answer(None), true),
        Err(error) => (Refusal::Disk(error).answer(None), false),
    };
    if ends && done {
        let headers = response.headers_mut();
        headers.insert(OFFER_OVER, HeaderValue::from_static("true"));
    }
    response
}

/// Why a request isn't done.
#[derive(Debug)]
enum Refusal {
    /// A name without a token can't be put.
    Forbidden,
    NotFound,
    /// The offer has ended.
    Over,
    Method,
    /// A part of a file can't be put.
    Partial,
    TooLarge,
    /// More is announced than fits on the disk; which may be a lie.
    NoRoom,
    /// The body stopped coming.
    Stalled,
    /// The body ended early.
    CutOff,
    /// Our disk failed.
    Disk(io::Error),
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Over => StatusCode::GONE,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Partial | Self::CutOff => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NoRoom => StatusCode::INSUFFICIENT_STORAGE,
            Self::Stalled => StatusCode::REQUEST_TIMEOUT,
            Self::Disk(error) if is_full(error) => StatusCode::INSUFFICIENT_STORAGE,
            Self::Disk(_) => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The answer. The rest of the request's body is read after the answer has been sent: a sender
    /// that is cut off while it sends may never read why.
    fn answer(self, body: Option<Body>) -> Response {
        let status = self.status();
        match &self {
            Self::Disk(error) => tracing::error!(%error, %status, "the exchange's disk fails"),
            Self::NotFound | Self::Over => {}
            _ => tracing::warn!(%status, refusal = ?self, "exchange request refused"),
        }
        let text = Bytes::from(format!("{status}\n"));
        let rest = match self {
            Self::Stalled | Self::CutOff => None,
            _ => body,
        };
        let mut response = match rest {
            None => (status, text).into_response(),
            Some(rest) => (status, Body::from_stream(text_then_drain(text, rest))).into_response(),
        };
        let headers = response.headers_mut();
        match self {
            Self::Method => {
                headers.insert(ALLOW, HeaderValue::from_static("PUT, GET, HEAD, DELETE"));
            }
            Self::Stalled => {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}

fn text_then_drain(
    text: Bytes,
    rest: Body,
) -> impl futures_util::Stream<Item = Result<Bytes, Infallible>> {
    let drain = async {
        let mut rest = rest.into_data_stream();
        let read = async { while let Some(Ok(_)) = rest.next().await {} };
        let _ = timeout(DRAIN_REFUSED, read).await;
        Ok(Bytes::new())
    };
    stream::iter([Ok(text)]).chain(stream::once(drain))
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}
