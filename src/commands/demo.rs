//! `pillarbox demo`: a file to three pillars and back, over the real protocol, with proof.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use pillarbox_bus::Bus;
use pillarbox_client::{
    Client, ClientOptions, ComponentResult, Event, EventKind, GetChecksums, GetFile, Outcome,
    PutFile, Source,
};
use pillarbox_messages::{
    CollectionId, ComponentId, FileId, HexBinary, clock::SystemClock, wording::count,
};
use pillarbox_settings::ZonelessDates;

use super::node::{shut_down, start_from};
use crate::{
    args::DemoArgs,
    client_setup::{check, load_settings, not_begun},
    failure::Failure,
    node::{RunningNode, exchange_client},
    output::{in_words, print_done},
    signals::Stop,
    starter::{self, COLLECTION, Ports},
};

pub(super) async fn run(args: DemoArgs) -> Result<(), Failure> {
    let mut stop = Stop::listen()?;
    let place = Place::new(args.keep)?;
    let original = original(args.file, place.path())?;
    let ports =
        Ports::private().map_err(|error| Failure::operation(format!("no port: {error}")))?;
    starter::write_settings(place.path(), ports, Some(CLIENT))
        .map_err(|error| place.failed("settings", &error))?;
    tell(&format!(
        "a repository of its own in {}",
        place.path().display()
    ))?;
    let Some(node) = start_from(place.path(), &mut stop).await? else {
        return Err(Failure::interrupted());
    };
    tell("started: bus, file exchange, alarm service, pillars north, south and west")?;
    let result = go_round(&node, &place, &original, &mut stop).await;
    shut_down(node).await;
    result
}

/// Put, compare, get, compare again. Ctrl-C ends what is going on, and what was offered is taken back.
async fn go_round(
    node: &RunningNode,
    place: &Place,
    original: &Path,
    stop: &mut Stop,
) -> Result<(), Failure> {
    let id = ComponentId::from(CLIENT);
    let bus = node.connect(&id).map_err(Failure::operation)?;
    let client = client(id, bus, place)?;
    let result = tokio::select! {
        result = steps(&client, place, original) => result,
        () = stop.asked() => Err(Failure::interrupted()),
    };
    client.close().await;
    result
}

fn client(id: ComponentId, bus: Bus, place: &Place) -> Result<Client, Failure> {
    let (repository, settings) = load_settings(place.path())?;
    let exchange = exchange_client(&repository, &settings).map_err(Failure::usage)?;
    let exchange_base = settings.exchange_base(&repository).map(str::to_owned);
    Client::connect(ClientOptions {
        repository: Arc::new(repository),
        bus,
        exchange,
        exchange_base,
        id,
        named: true,
        journal: None,
        sla: None,
        clock: SystemClock::shared(),
        timeouts: None,
        extend_on_progress: false,
        zoneless: ZonelessDates::default(),
    })
    .map_err(not_begun)
}

async fn steps(client: &Client, place: &Place, original: &Path) -> Result<(), Failure> {
    let collection = CollectionId::from(COLLECTION);
    let file_id = file_id(original)?;
    let size = fs::metadata(original)
        .map_err(|error| unreadable(original, &error))?
        .len();
    tell(&format!(
        "put {file_id}, {}, into the collection {collection}",
        count(size, "byte")
    ))?;
    let source = Source::Path(original.to_owned());
    let put = PutFile::new(collection.clone(), file_id.clone(), source);
    follow(client.put_file(put).await.map_err(not_begun)?, |_| {}).await?;

    tell("compare the checksums that the pillars have")?;
    let mut ask = GetChecksums::new(collection.clone());
    ask.file_id = Some(file_id.clone());
    let mut checksums = Vec::new();
    follow(
        client.get_checksums(ask).await.map_err(not_begun)?,
        |event| {
            checksums.extend(reported(event));
        },
    )
    .await?;
    agree(&checksums)?;

    tell("get it back from the fastest pillar")?;
    let target = place.path().join("fetched");
    let get = GetFile::new(collection, file_id, target.clone());
    follow(client.get_file(get).await.map_err(not_begun)?, |_| {}).await?;
    compare(original, &target)?;
    tell(&format!(
        "verified: the {} that came back equal the original",
        count(size, "byte")
    ))
}

/// Shows every event of an operation; it must succeed.
async fn follow(
    running: pillarbox_client::Running,
    mut on_event: impl FnMut(&Event),
) -> Result<Outcome, Failure> {
    let mut running = running;
    while let Some(event) = running.next_event().await {
        print_done(&format!("    {}\n", in_words(&event.to_string())))?;
        on_event(&event);
    }
    let outcome = running.outcome().await;
    check(&outcome).map(|()| outcome)
}

/// The checksums that an event carries.
fn reported(event: &Event) -> Vec<(ComponentId, HexBinary)> {
    let EventKind::ComponentComplete {
        contributor,
        result: ComponentResult::Checksums(found),
    } = &event.kind
    else {
        return Vec::new();
    };
    let items = found.page.items.iter();
    items
        .map(|item| (contributor.clone(), item.checksum_value.clone()))
        .collect()
}

/// All pillars of the repository have the file, with one checksum.
fn agree(checksums: &[(ComponentId, HexBinary)]) -> Result<(), Failure> {
    for (pillar, checksum) in checksums {
        print_done(&format!("    {:<6} MD5 {checksum}\n", pillar.as_str()))?;
    }
    let mut distinct: Vec<&HexBinary> = checksums.iter().map(|(_, checksum)| checksum).collect();
    distinct.dedup();
    if checksums.len() != starter::PILLARS.len() || distinct.len() != 1 {
        return Err(Failure::operation("the pillars do not agree"));
    }
    tell("the three pillars agree")
}

/// Byte by byte.
fn compare(original: &Path, fetched: &Path) -> Result<(), Failure> {
    let open = |path: &Path| {
        File::open(path)
            .map(BufReader::new)
            .map_err(|error| unreadable(path, &error))
    };
    let (mut one, mut other) = (open(original)?, open(fetched)?);
    let (mut left, mut right) = (vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]);
    loop {
        let length =
            read_full(&mut one, &mut left).map_err(|error| unreadable(original, &error))?;
        let same =
            read_full(&mut other, &mut right).map_err(|error| unreadable(fetched, &error))?;
        if left.get(..length) != right.get(..same) {
            return Err(Failure::operation(
                "the bytes that came back differ from the original",
            ));
        }
        if length == 0 {
            return Ok(());
        }
    }
}

fn read_full(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest)? {
            0 => break,
            length => filled += length,
        }
    }
    Ok(filled)
}

/// Where the demonstration's repository lives.
enum Place {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Place {
    fn new(keep: Option<PathBuf>) -> Result<Self, Failure> {
        let Some(path) = keep else {
            let directory = tempfile::Builder::new().prefix("pillarbox-demo-").tempdir();
            return directory.map(Self::Temporary).map_err(|error| {
                Failure::operation(format!("no temporary directory: {error}; set TMPDIR"))
            });
        };
        fs::create_dir(&path).map_err(|error| {
            Failure::usage(format!(
                "--keep {}: {error}; name a new directory",
                path.display()
            ))
        })?;
        Ok(Self::Kept(path))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(directory) => directory.path(),
        }
    }

    fn failed(&self, what: &str, error: &io::Error) -> Failure {
        Failure::operation(format!("{what} in {}: {error}", self.path().display()))
    }
}

/// The file to send round: the given one, or a small text.
fn original(given: Option<PathBuf>, place: &Path) -> Result<PathBuf, Failure> {
    match given {
        Some(path) => {
            pillarbox_client::validate::source_file(&path).map_err(Failure::usage)?;
            Ok(path)
        }
        None => {
            let path = place.join("hello.txt");
            fs::write(&path, "A file goes round.\n").map_err(|error| unreadable(&path, &error))?;
            Ok(path)
        }
    }
}

fn file_id(path: &Path) -> Result<FileId, Failure> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(FileId::from)
        .ok_or_else(|| Failure::usage(format!("'{}' has no name in UTF-8", path.display())))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    Failure::operation(format!("'{}': {error}", path.display()))
}

/// A step, for people.
fn tell(text: &str) -> Result<(), Failure> {
    print_done(&format!("{text}\n"))
}

const CLIENT: &str = "demo-client";
const COMPARED_BYTES: usize = 1 << 20;
