//! Gets from pillars that deliver without telling a checksum.

use std::path::PathBuf;

use super::{
    operations::events,
    site::{PLENTY, Site},
    stand_in::{StandIn, Temper, md5},
};
use crate::{Client, ComponentResult, Concern, Delivered, EventKind, GetFile, Outcome};

const CONTENT: &[u8] = b"hello, world";
/// What was at the target before.
const OLD: &str = "an older copy";
const IDENTIFY: &str = "IdentifyPillarsForGetChecksumsRequest";
const ASKED: &str = "GetChecksumsRequest";

struct Scene {
    site: Site,
    north: StandIn,
    south: StandIn,
    client: Client,
    target: PathBuf,
}

/// Two pillars that have the file; there is another one at the target.
async fn scene(north: Temper, south: Temper) -> Scene {
    let site = Site::start().await;
    let [north, south] = [
        site.pillar("north", north).await,
        site.pillar("south", south).await,
    ];
    for pillar in [&north, &south] {
        pillar.keep("hello.txt", CONTENT);
    }
    let target = site.directory.path().join("target");
    std::fs::write(&target, OLD).unwrap();
    Scene {
        client: site.client("reader", false, PLENTY),
        site,
        north,
        south,
        target,
    }
}

impl Scene {
    /// Gets the file, from north only or from the fastest; gives the texts of warnings that it could not be compared.
    async fn get(&self, from_north: bool) -> (Outcome, Vec<String>) {
        let mut get = GetFile::new("books".into(), "hello.txt".into(), self.target.clone());
        get.pillar = from_north.then(|| "north".into());
        let mut running = self.client.get_file(get).await.unwrap();
        let warnings = events(&mut running).await.into_iter().filter_map(|event| {
            let compared = EventKind::Warning {
                contributor: Some("north".into()),
                concern: Concern::Comparison,
            };
            event.info.filter(|_| event.kind == compared)
        });
        let warnings = warnings.collect();
        let outcome = running.outcome().await;
        assert_eq!(self.site.offers(), 0);
        (outcome, warnings)
    }

    fn target(&self) -> Vec<u8> {
        std::fs::read(&self.target).unwrap()
    }

    /// How often north and south were asked for the checksum.
    fn asked(&self) -> [usize; 2] {
        [&self.north, &self.south].map(|pillar| pillar.count(ASKED))
    }
}

fn delivered(outcome: &Outcome) -> &Delivered {
    assert!(outcome.complete, "{outcome:?}");
    match &outcome.results[0].result {
        ComponentResult::Delivered(delivered) => delivered,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pillar_that_told_no_checksum_is_asked_for_it() {
    let scene = scene(Temper::Reticent, Temper::Honest).await;
    let (outcome, warnings) = scene.get(true).await;
    let compared = delivered(&outcome).checksum.as_ref().unwrap();
    assert_eq!(compared.checksum_value, md5(CONTENT).checksum_value);
    assert_eq!(compared.checksum_spec, md5(CONTENT).checksum_spec);
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!((scene.target(), scene.asked()), (CONTENT.into(), [1, 0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pillar_that_told_its_checksum_is_not_asked() {
    let scene = scene(Temper::Honest, Temper::Honest).await;
    let (outcome, _) = scene.get(true).await;
    assert!(delivered(&outcome).checksum.is_some());
    assert_eq!(scene.north.count(IDENTIFY), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_bytes_of_the_right_length_do_not_replace_a_file() {
    let scene = scene(Temper::Careless, Temper::Honest).await;
    let (outcome, _) = scene.get(true).await;
    assert!(!outcome.complete, "{outcome:?}");
    let text = &outcome.failures[0].text;
    assert!(text.contains("do not match its checksum"), "{text}");
    assert_eq!(scene.target(), OLD.as_bytes());

    let (outcome, warnings) = scene.get(false).await;
    assert_eq!(outcome.failures[0].contributor.as_str(), "north");
    assert_eq!(outcome.results[0].contributor.as_str(), "south");
    assert!(delivered(&outcome).checksum.is_some());
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!((scene.target(), scene.asked()), (CONTENT.into(), [2, 0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_the_pillar_tells_none_the_others_are_asked() {
    let scene = scene(Temper::Secretive, Temper::Reticent).await;
    let (outcome, warnings) = scene.get(true).await;
    assert!(delivered(&outcome).checksum.is_some());
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!((scene.target(), scene.asked()), (CONTENT.into(), [0, 1]));
    // What they have is another file.
    scene.south.keep("hello.txt", b"hello, there");
    let (outcome, _) = scene.get(true).await;
    assert!(!outcome.complete, "{outcome:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_tells_one_the_length_is_compared_and_a_warning_says_so() {
    let scene = scene(Temper::Secretive, Temper::Secretive).await;
    let (outcome, warnings) = scene.get(true).await;
    assert_eq!(delivered(&outcome).checksum, None);
    assert_eq!(
        warnings,
        [
            "the file was compared by its length only: the pillar told no checksum with it, and nobody told another \
          one when asked"
        ]
    );
    assert_eq!((scene.target(), scene.asked()), (CONTENT.into(), [0, 0]));
}
