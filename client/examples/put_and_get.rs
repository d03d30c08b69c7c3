//! Puts a file into a repository that is up, gets it back, and compares.
//!
//! ```text
//! pillarbox up --dir /tmp/repository
//! cargo run -p pillarbox-client --example put_and_get -- /tmp/repository README.md
//! ```

#![expect(clippy::print_stdout, reason = "it is a program for the terminal")]

use std::{env, error::Error, fs, path::PathBuf, sync::Arc, time::Duration};

use pillarbox_bus::{Bus, ConnectOptions, StompOptions};
use pillarbox_client::{Client, ClientOptions, GetFile, PutFile, Source, passing_id};
use pillarbox_exchange::{AddressPolicy, ExchangeClient, client::ClientOptions as ExchangeOptions};
use pillarbox_messages::{ComponentId, FileId, clock::SystemClock};
use pillarbox_settings::{BusUrl, Node, Repository, ZonelessDates};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let (Some(settings), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err("usage: put_and_get SETTINGS_DIRECTORY FILE".into());
    };
    let (repository, node) = pillarbox_settings::load(&settings)?;
    let id = passing_id();
    let bus = connect(&repository, &id).await?;
    let client = client(repository, node, id, bus.clone())?;
    let result = put_and_get(&client, file).await;
    client.close().await;
    bus.close().await?;
    result
}

/// A connection to the bus of another process.
async fn connect(repository: &Repository, id: &ComponentId) -> Result<Bus, Box<dyn Error>> {
    let BusUrl::Stomp { host, port, .. } = &repository.bus.url else {
        return Err(format!("{} is not the bus of another process", repository.bus.url).into());
    };
    let connect = ConnectOptions {
        client_id: id.as_str().to_owned(),
    };
    let bus = Bus::stomp(StompOptions::new(format!("{host}:{port}")), connect);
    bus.ready(Duration::from_secs(5)).await?;
    Ok(bus)
}

/// A client that leaves nothing behind.
fn client(
    repository: Repository,
    node: Node,
    id: ComponentId,
    bus: Bus,
) -> Result<Client, Box<dyn Error>> {
    let base = node.client.and_then(|client| client.exchange);
    let base = base.or_else(|| repository.exchange_url.clone());
    let base = base.ok_or("the settings name no file exchange")?;
    let exchange = ExchangeClient::new(&ExchangeOptions::new(AddressPolicy::for_exchange(&base)?))?;
    Ok(Client::connect(ClientOptions {
        repository: Arc::new(repository),
        bus,
        exchange,
        exchange_base: Some(base),
        id,
        named: false,
        journal: None,
        sla: None,
        clock: SystemClock::shared(),
        timeouts: None,
        extend_on_progress: false,
        zoneless: ZonelessDates::default(),
    })?)
}

async fn put_and_get(client: &Client, file: PathBuf) -> Result<(), Box<dyn Error>> {
    let collection = client
        .repository()
        .collections
        .first()
        .ok_or("there is no collection")?;
    let name = file
        .file_name()
        .ok_or("the file has no name")?
        .to_string_lossy();
    let file_id = FileId::from(&*name);

    let put = PutFile::new(
        collection.id.clone(),
        file_id.clone(),
        Source::Path(file.clone()),
    );
    let stored = client
        .put_file(put)
        .await?
        .outcome_with(|event| println!("{event}"))
        .await;
    if !stored.complete {
        return Err(stored.last_event.into());
    }

    let directory = tempfile::tempdir()?;
    let target = directory.path().join("back");
    let get = GetFile::new(collection.id.clone(), file_id, target.clone());
    let fetched = client
        .get_file(get)
        .await?
        .outcome_with(|event| println!("{event}"))
        .await;
    if !fetched.complete {
        return Err(fetched.last_event.into());
    }
    let same = fs::read(&file)? == fs::read(&target)?;
    println!(
        "{} came back {}",
        file.display(),
        if same { "the same" } else { "DIFFERENT" }
    );
    Ok(())
}
