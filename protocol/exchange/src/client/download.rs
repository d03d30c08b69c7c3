//! A file on its way here.

use std::{io, time::Duration};

use bytes::Bytes;
use futures_util::StreamExt;
use tokio::time::timeout;

use crate::{
    disk::Reader,
    error::{ExchangeError, TransferError, causes},
};

/// A file, or a part of one, being fetched. Dropping it ends the transfer.
#[derive(Debug)]
pub struct Download {
    /// How many bytes are announced, if that is known.
    pub length: Option<u64>,
    address: String,
    received: u64,
    body: Body,
    idle_timeout: Option<Duration>,
}

#[derive(Debug)]
enum Body {
    Http(reqwest::Response),
    File(Reader),
}

impl Download {
    pub(crate) fn http(
        address: &str,
        length: Option<u64>,
        response: reqwest::Response,
        idle_timeout: Duration,
    ) -> Self {
        let body = Body::Http(response);
        let idle_timeout = Some(idle_timeout);
        Self {
            length,
            address: address.to_owned(),
            received: 0,
            body,
            idle_timeout,
        }
    }

    pub(crate) fn file(address: &str, length: u64, reader: Reader) -> Self {
        let (length, body) = (Some(length), Body::File(reader));
        Self {
            length,
            address: address.to_owned(),
            received: 0,
            body,
            idle_timeout: None,
        }
    }

    /// The next bytes; nothing at the end.
    ///
    /// # Errors
    /// [`ExchangeError::Transfer`] if nothing comes for the idle timeout, the connection breaks, or
    /// fewer bytes come than were announced. Nothing more can be read then.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ExchangeError> {
        let chunk = match self.next().await {
            Ok(chunk) => self.count(chunk),
            Err(error) => Err(error),
        };
        chunk.map_err(|error| ExchangeError::transfer(&self.address, error))
    }

    /// Every byte that is left, for documents that fit into memory.
    ///
    /// # Errors
    /// As [`Self::chunk`]; also if there are more than `limit` bytes.
    pub async fn bytes(mut self, limit: usize) -> Result<Bytes, ExchangeError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.chunk().await? {
            if chunk.len() > limit.saturating_sub(all.len()) {
                let detail = format!("more than {limit} bytes came");
                return Err(ExchangeError::transfer(
                    &self.address,
                    TransferError::Broken { detail },
                ));
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all.into())
    }

    async fn next(&mut self) -> Result<Option<Bytes>, TransferError> {
        let response = match &mut self.body {
            Body::File(reader) => {
                return reader.next().await.transpose().map_err(TransferError::File);
            }
            Body::Http(response) => response,
        };
        let chunk = match self.idle_timeout {
            None => response.chunk().await,
            Some(after) => timeout(after, response.chunk())
                .await
                .map_err(|_elapsed| TransferError::Stalled { after })?,
        };
        chunk.map_err(|error| self.broken(&error))
    }

    fn count(&mut self, chunk: Option<Bytes>) -> Result<Option<Bytes>, TransferError> {
        self.received += chunk.as_ref().map_or(0, |chunk| chunk.len() as u64);
        match self.length {
            Some(expected) if chunk.is_none() && self.received != expected => {
                Err(TransferError::Short {
                    expected,
                    received: self.received,
                })
            }
            _ => Ok(chunk),
        }
    }

    fn broken(&self, error: &reqwest::Error) -> TransferError {
        match self.length {
            Some(expected) if is_incomplete(error) => TransferError::Short {
                expected,
                received: self.received,
            },
            _ => TransferError::Broken {
                detail: causes(error),
            },
        }
    }
}

/// Whether the connection ended before the announced end of the body.
fn is_incomplete(error: &reqwest::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let end = |error: &io::Error| error.kind() == io::ErrorKind::UnexpectedEof;
        if error.downcast_ref().is_some_and(end) {
            return true;
        }
        cause = error.source();
    }
    false
}
