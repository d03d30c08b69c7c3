//! Conversations of a client process with pillars that the test plays.

use std::{ffi::OsStr, fs, path::PathBuf, time::Duration};

use pillarbox_messages::{Destination, Message, PutFileRequest, ResponseCode};

use crate::support::{
    noise,
    peers::{StandIn, is},
    process::Running,
    site::{Site, files_below},
    slow_exchange::SlowExchange,
    whole::{NO_FILES, deliver, http, path_of},
};

/// A put to `odd`, whose identification names another destination than the settings, and to `spare`.
struct Odd {
    site: Site,
    _hub: Running,
    odd: StandIn,
    spare: StandIn,
}

impl Odd {
    async fn start() -> Self {
        let site = Site::new(&["odd", "spare"]);
        let hub = site.start("hub");
        let odd = StandIn::join(&site, "odd").await;
        let spare = StandIn::join(&site, "spare").await;
        Self {
            site,
            _hub: hub,
            odd,
            spare,
        }
    }

    async fn identify(&mut self, said: &Destination) -> Running {
        let file = self.site.file("a.bin", &noise(40, 100));
        let args = ["-f".as_ref(), file.as_os_str()];
        let client = self.site.start_client("put-file", args);
        let identify = self.odd.identify_request().await;
        let mut answer = self.odd.put_identification(&identify);
        answer.header.reply_to = said.clone();
        self.odd.peer.send(answer).await;
        let identify = self.spare.identify_request().await;
        self.spare.accept_put(&identify).await;
        client
    }

    async fn end(self, mut client: Running, odd: Message, spare: PutFileRequest) {
        let Message::PutFileRequest(odd) = odd else {
            panic!("{odd:?}")
        };
        assert_eq!(odd.pillar_id, Some("odd".into()));
        assert_eq!(spare.header.destination, self.spare.peer.address());
        self.odd
            .end_put(&odd, ResponseCode::OperationCompleted)
            .await;
        self.spare
            .end_put(&spare, ResponseCode::OperationCompleted)
            .await;
        client.wait_for_success();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_pillar_that_replies_from_a_topic_of_its_own_choice_is_asked_there() {
    let mut site = Odd::start().await;
    let said = Destination::topic("books.client.somewhere.else");
    let mut elsewhere = site.odd.peer.listen(said.clone()).await;
    let client = site.identify(&said).await;
    let request = elsewhere.message().await;
    assert_eq!(request.header().destination, said);
    let usual = site.spare.put_request().await;
    site.end(client, request, usual).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_pillar_that_replies_from_the_queue_of_another_is_asked_there() {
    let mut site = Odd::start().await;
    let said = site.spare.peer.address();
    let client = site.identify(&said).await;
    let mut both = [
        site.spare.put_request().await,
        site.spare.put_request().await,
    ];
    both.sort_by(|one, other| one.pillar_id.cmp(&other.pillar_id));
    let [odd, spare] = both;
    assert_eq!(odd.header.destination, said);
    site.end(client, odd.into(), spare).await;
}

/// Two real pillars and a slow one that the test plays.
struct Slow {
    site: Site,
    _parts: Vec<Running>,
    played: StandIn,
}

impl Slow {
    async fn start() -> Self {
        let site = Site::new(&["north", "south", "played"]);
        let parts = ["hub", "north", "south"]
            .map(|part| site.start(part))
            .into();
        let played = StandIn::join(&site, "played").await;
        Self {
            site,
            _parts: parts,
            played,
        }
    }

    /// A put whose other pillars are done, and the request that the slow one has not begun with.
    async fn put(&mut self, name: &str, content: &[u8]) -> (Running, PutFileRequest) {
        let file = self.site.file(name, content);
        let args = ["-v".as_ref(), "-f".as_ref(), file.as_os_str()];
        let mut client = self.site.start_client("put-file", args);
        let identify = self.played.identify_request().await;
        self.played.accept_put(&identify).await;
        let request = self.played.put_request().await;
        client.wait_for_error("COMPONENT_COMPLETE");
        client.wait_for_error("COMPONENT_COMPLETE");
        (client, request)
    }

    #[track_caller]
    fn assert_nothing_offered(&self) {
        assert_eq!(self.site.offered(), Vec::<PathBuf>::new());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_file_stays_on_the_exchange_until_the_slowest_pillar_has_it() {
    let mut slow = Slow::start().await;
    let content = noise(41, 2000);
    let (mut client, request) = slow.put("a.bin", &content).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let offered = slow.site.offered();
    assert_eq!(offered.len(), 1, "{offered:?}");
    assert_eq!(fetch(&request.file_address).await, content);
    assert_eq!(fs::read(&offered[0]).unwrap(), content);
    slow.played
        .end_put(&request, ResponseCode::OperationCompleted)
        .await;
    client.wait_for_success();
    slow.assert_nothing_offered();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn nothing_stays_on_the_exchange_after_a_failure_or_ctrl_c() {
    let mut slow = Slow::start().await;
    let (mut client, request) = slow.put("failed.bin", &noise(42, 2000)).await;
    assert_eq!(slow.site.offered().len(), 1);
    slow.played.end_put(&request, ResponseCode::Failure).await;
    assert_eq!(client.wait().code(), Some(255), "{:?}", client.errors());
    slow.assert_nothing_offered();

    let (mut client, _) = slow.put("stopped.bin", &noise(43, 2000)).await;
    assert_eq!(slow.site.offered().len(), 1);
    client.interrupt();
    assert_eq!(client.wait().code(), Some(130), "{:?}", client.errors());
    slow.assert_nothing_offered();
    assert_eq!(client.output(), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_comes_for_a_get_that_was_interrupted_is_not_taken() {
    let site = Site::new(&["played"]);
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    let mut client = site.start_client("get-file", ["-i", "a.bin", "-l", "copy"]);
    let identify = played.identify_request().await;
    played.accept_get(&identify).await;
    let request = played.get_request().await;
    client.interrupt();
    assert_eq!(client.wait().code(), Some(130), "{:?}", client.errors());
    let path = path_of(&request.file_address);
    assert_eq!(http(site.exchange_port, "PUT", path, b"hello").0, 410);
    assert_eq!(site.offered(), NO_FILES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_get_interrupted_in_the_middle_leaves_no_piece_of_the_file() {
    let content = noise(44, 4 << 20);
    let exchange = SlowExchange::start(content.clone(), &[3 << 20]);
    let site = Site::new(&["played"]);
    let host = exchange.host();
    let client = format!(
        "data = \"var\"\n[client]\nexchange = \"http://{host}/\"\n[exchange]\nhosts = [\"{host}\"]\n"
    );
    site.settings("client", &client);
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    let target = site.path().join("target");
    fs::create_dir(&target).unwrap();
    let args = ["-i", "a.bin", "-l", "target"];

    let mut client = site.start_client("get-file", args);
    let identify = played.identify_request().await;
    played.accept_get(&identify).await;
    played.complete_get(&content).await;
    let _stalled = exchange.stalled();
    client.interrupt();
    assert_eq!(client.wait().code(), Some(130), "{:?}", client.errors());
    assert_eq!(files_below(&target), Vec::<PathBuf>::new());

    let mut client = site.start_client("get-file", args);
    let identify = played.identify_request().await;
    played.accept_get(&identify).await;
    played.complete_get(&content).await;
    client.wait_for_success();
    assert_eq!(files_below(&target), [target.join("a.bin")]);
    assert!(fs::read(target.join("a.bin")).unwrap() == content);
}

/// A pillar that delivers without a checksum, as those of the Java system do, and tells none when asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_file_that_nobody_tells_the_checksum_of_is_fetched_and_told_of() {
    let site = Site::with_timeouts(&["played"], "1s", "2s");
    let _hub = site.start("hub");
    let mut played = StandIn::join(&site, "played").await;
    let mut client = site.start_client("get-file", ["-i", "a.bin", "-l", "copy"]);
    let identify = played.identify_request().await;
    played.accept_get(&identify).await;
    let request = played.get_request().await;
    deliver(site.exchange_port, &request.file_address, b"hello");
    played.end_get(request).await;
    let asked = played.identify_request().await;
    assert!(is(
        &asked,
        "IdentifyPillarsForGetChecksumsRequest",
        asked.header().from.as_str()
    ));
    assert_eq!(asked.file_id().unwrap().as_str(), "a.bin");
    client.wait_for_success();
    assert_eq!(
        client.errors(),
        [
            "played: the file was not compared: the pillar told no checksum with it, and nobody told another one when \
          asked"
        ]
    );
    assert_eq!(fs::read(site.path().join("copy")).unwrap(), b"hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_named_clients_put_outlives_the_bus() {
    let site = Site::new(&["north", "played"]);
    let mut hub = site.start("hub");
    let _north = site.start("north");
    let mut played = StandIn::join(&site, "played").await;
    let file = site.file("a.bin", &noise(45, 2000));
    let args = ["-v", "--client-id", "ingest-1", "-f"].map(OsStr::new);
    let args = args.into_iter().chain([file.as_os_str()]);
    let mut client = site.start_client("put-file", args);
    let identify = played.identify_request().await;
    played.accept_put(&identify).await;
    let request = played.put_request().await;
    client.wait_for_error("COMPONENT_COMPLETE");
    hub.kill();
    let _hub = site.start("hub");
    played
        .end_put(&request, ResponseCode::OperationCompleted)
        .await;
    client.wait_for_success();
    assert_eq!(site.offered(), Vec::<PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_passing_client_asks_again_when_the_bus_is_back() {
    let site = Site::new(&["north", "played"]);
    let mut hub = site.start("hub");
    let _north = site.start("north");
    let mut played = StandIn::join(&site, "played").await;
    let file = site.file("a.bin", &noise(46, 2000));
    let args = ["-v", "-f"].map(OsStr::new);
    let args = args.into_iter().chain([file.as_os_str()]);
    let mut client = site.start_client("put-file", args);
    let identify = played.identify_request().await;
    played.accept_put(&identify).await;
    // Taken, and never answered: as an answer that was sent while the bus was away.
    played.put_request().await;
    client.wait_for_error("COMPONENT_COMPLETE");
    hub.kill();
    let _hub = site.start("hub");
    let request = played.put_request().await;
    played
        .end_put(&request, ResponseCode::OperationCompleted)
        .await;
    client.wait_for_success();
    assert_eq!(site.offered(), Vec::<PathBuf>::new());
}

/// As a pillar would fetch it.
async fn fetch(address: &str) -> Vec<u8> {
    let authority = address.split('/').nth(2).unwrap().to_owned();
    let options = pillarbox_exchange::ClientOptions::new(pillarbox_exchange::AddressPolicy {
        hosts: vec![authority],
        file_roots: Vec::new(),
    });
    let exchange = pillarbox_exchange::ExchangeClient::new(&options).unwrap();
    let mut download = exchange.get(address).await.unwrap();
    let mut content = Vec::new();
    while let Some(chunk) = download.chunk().await.unwrap() {
        content.extend_from_slice(&chunk);
    }
    content
}
