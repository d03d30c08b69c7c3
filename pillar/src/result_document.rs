//! Result documents: written to a file of ours, then sent to the address that the request named. Gone afterwards,
//! whatever happens.

use std::{
    fs::{self, File},
    io::{self, BufWriter},
    path::PathBuf,
};

use tracing::warn;
use uuid::Uuid;

use crate::{context::Context, refusal::Refusal};

/// A document that is being written.
#[derive(Debug)]
pub(crate) struct Document {
    file: File,
    path: PathBuf,
}

impl Document {
    /// An empty one.
    pub(crate) fn create(context: &Context) -> Result<Self, Refusal> {
        let path = context.results.join(Uuid::new_v4().to_string());
        let file = File::create_new(&path).map_err(failed)?;
        Ok(Self { file, path })
    }

    /// Where it is written to.
    pub(crate) fn writer(&self) -> BufWriter<&File> {
        BufWriter::with_capacity(BUFFER_BYTES, &self.file)
    }

    /// Sends what was written.
    pub(crate) async fn send(self, context: &Context, address: &str) -> Result<(), Refusal> {
        context.exchange.put_file(address, &self.path).await?;
        Ok(())
    }
}

impl Drop for Document {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            warn!(path = %self.path.display(), %error, "a result document could not be removed");
        }
    }
}

/// The document can't be written.
pub(crate) fn failed(error: impl Into<io::Error>) -> Refusal {
    let error = error.into();
    let text = format!("writing the result document: {error}");
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Refusal::disk_full(text),
        _ => Refusal::unexpected(text),
    }
}

const BUFFER_BYTES: usize = 256 << 10;
