//! A small HTTP server for files on their way between components.
//!
//! It knows PUT, GET (whole or one range), HEAD and DELETE, and lists nothing. Knowing a file's
//! address is the permission to use it: its path begins with a random token.

mod connection;
mod handlers;
mod range;
mod store;

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use axum::Router;
use pillarbox_messages::clock::{SharedClock, SystemClock};
use tokio::{
    net::TcpListener,
    time::{MissedTickBehavior, interval, timeout},
};
use tokio_util::{
    sync::{CancellationToken, DropGuard},
    task::TaskTracker,
};

use self::{connection::Acceptor, handlers::Shared, store::Store};
use crate::{disk, error::ExchangeError, offer::OfferSpace, policy::AddressPolicy};

/// How an [`ExchangeServer`] behaves. Made by [`ServerOptions::new`], then changed.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where it keeps files, for itself alone.
    pub directory: PathBuf,
    /// The address under which others reach it. If it has a path, requests may come with or without
    /// it (a reverse proxy may have taken it off). Empty: the address where it listens.
    pub public_url: String,
    /// How long a file is kept after it was put. Default: 24 h.
    pub expiry: Duration,
    /// How often expired files are looked for. Default: 1 min.
    pub sweep_interval: Duration,
    /// The largest file that it takes, in bytes. Default: any.
    pub maximum_file_bytes: Option<u64>,
    /// How long a connection may make no progress: sending a request's head, sending or taking a
    /// body. Default: 60 s.
    pub idle_timeout: Duration,
    /// How long transfers under way may go on when it is shut down. Default: 5 s.
    pub shutdown_grace: Duration,
    /// What files expire by. Default: the operating system's clock.
    pub clock: SharedClock,
}

impl ServerOptions {
    /// The defaults, with what has none.
    #[must_use]
    pub fn new(listen: SocketAddr, directory: PathBuf, public_url: impl Into<String>) -> Self {
        Self {
            listen,
            directory,
            public_url: public_url.into(),
            expiry: Duration::from_secs(24 * 60 * 60),
            sweep_interval: Duration::from_secs(60),
            maximum_file_bytes: None,
            idle_timeout: Duration::from_secs(60),
            shutdown_grace: Duration::from_secs(5),
            clock: SystemClock::shared(),
        }
    }
}

/// A running exchange server. Dropping it cuts transfers off; [`Self::shutdown`] lets them finish.
#[derive(Debug)]
pub struct ExchangeServer {
    local_address: SocketAddr,
    public_url: String,
    stop: CancellationToken,
    tasks: TaskTracker,
    shutdown_grace: Duration,
    cut: DropGuard,
}

impl ExchangeServer {
    /// Removes what a crash left behind, and starts serving.
    ///
    /// # Errors
    /// [`ExchangeError::Listen`] if the address is taken, [`ExchangeError::Local`] if the directory
    /// can't be used, [`ExchangeError::BadAddress`] and its like if the public URL isn't one.
    pub async fn start(options: ServerOptions) -> Result<Self, ExchangeError> {
        if !options.public_url.is_empty() {
            AddressPolicy::for_exchange(&options.public_url)?;
        }
        let store = open_store(&options).await?;
        Self::serve(Arc::new(store), options).await
    }

    /// A server on a disk where every file is made by `create`.
    #[cfg(test)]
    pub(crate) async fn start_on_disk(
        options: ServerOptions,
        create: disk::CreateFile,
    ) -> Result<Self, ExchangeError> {
        let store = open_store(&options).await?.with_disk(create);
        Self::serve(Arc::new(store), options).await
    }

    async fn serve(store: Arc<Store>, mut options: ServerOptions) -> Result<Self, ExchangeError> {
        let listen = |source| ExchangeError::Listen {
            address: options.listen,
            source,
        };
        let listener = TcpListener::bind(options.listen).await.map_err(listen)?;
        let local_address = listener.local_addr().map_err(listen)?;
        if options.public_url.is_empty() {
            options.public_url = format!("http://{local_address}/");
        }

        let (stop, cut, tasks) = (
            CancellationToken::new(),
            CancellationToken::new(),
            TaskTracker::new(),
        );
        tasks.spawn(sweep(
            Arc::clone(&store),
            options.clone(),
            stop.clone(),
            cut.clone(),
        ));
        let acceptor = Acceptor {
            router: router(store, &options),
            idle_timeout: options.idle_timeout,
            stop: stop.clone(),
            cut: cut.clone(),
            tasks: tasks.clone(),
        };
        tasks.spawn(acceptor.accept(listener));
        tracing::info!(address = %local_address, url = options.public_url, "file exchange serves");
        Ok(Self {
            local_address,
            public_url: options.public_url,
            stop,
            tasks,
            shutdown_grace: options.shutdown_grace,
            cut: cut.drop_guard(),
        })
    }

    /// Where it listens, with the real port.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_address
    }

    /// The address under which others reach it.
    #[must_use]
    pub fn public_url(&self) -> &str {
        &self.public_url
    }

    /// How many connections there are.
    #[cfg(test)]
    pub(crate) fn connections(&self) -> usize {
        // The other two tasks accept and sweep.
        self.tasks.len() - 2
    }

    /// New addresses on this server.
    #[must_use]
    pub fn offers(&self) -> OfferSpace {
        OfferSpace::new(&self.public_url)
    }

    /// Takes no more requests, lets transfers under way finish for the grace period, and cuts off
    /// what is left.
    pub async fn shutdown(self) {
        self.stop.cancel();
        self.tasks.close();
        if timeout(self.shutdown_grace, self.tasks.wait())
            .await
            .is_err()
        {
            tracing::warn!("transfers of the file exchange are cut off by its shutdown");
        }
        drop(self.cut);
        self.tasks.wait().await;
    }
}

async fn open_store(options: &ServerOptions) -> Result<Store, ExchangeError> {
    let (directory, clock) = (options.directory.clone(), options.clock.clone());
    let what = format!("preparing the exchange directory {}", directory.display());
    disk::blocking(move || Store::open(&directory, clock))
        .await
        .map_err(|error| ExchangeError::local(what, error))
}

fn router(store: Arc<Store>, options: &ServerOptions) -> Router {
    let shared = Shared {
        store,
        path_prefix: path_prefix(&options.public_url),
        maximum_file_bytes: options.maximum_file_bytes,
        idle_timeout: options.idle_timeout,
    };
    Router::new()
        .fallback(handlers::handle)
        .with_state(Arc::new(shared))
}

/// The path of the public URL, without a slash at its end.
fn path_prefix(public_url: &str) -> String {
    let path = url::Url::parse(public_url).map(|url| url.path().to_owned());
    path.unwrap_or_default().trim_end_matches('/').to_owned()
}

/// Removes expired files, now and then.
async fn sweep(
    store: Arc<Store>,
    options: ServerOptions,
    stop: CancellationToken,
    cut: CancellationToken,
) {
    let mut ticks = interval(options.sweep_interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = cut.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let (store, expiry) = (Arc::clone(&store), options.expiry);
        match disk::blocking(move || store.sweep(expiry)).await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "expired files removed from the exchange"),
            Err(error) => tracing::error!(%error, "expired files can't be removed"),
        }
    }
}
