//! Files that are put and fetched.

use pillarbox_client::{
    EventKind,
    conversation::{
        Conversation, get_file::GetFileProcedure, new_file::NewFile, put_file::PutFileProcedure,
    },
    event::Completed,
};

use super::{
    FILE, PILLARS, context, play,
    station::Station,
    stored,
    world::{OFFER, World, checksum},
};
use crate::support::{md5, noise};

/// What each pillar has under the file's id; some have nothing.
type Before = Vec<Option<Vec<u8>>>;

/// Gives some pillars this file, and a few another one.
async fn before(world: &mut World, content: &[u8], one_in: u64, others: bool) -> Before {
    let mut before = Vec::new();
    for station in 0..PILLARS.len() {
        let has = if others && world.one_in(25) {
            Some(b"another file".to_vec())
        } else if world.one_in(one_in) {
            Some(content.to_vec())
        } else {
            None
        };
        if let Some(content) = &has {
            stored(world, station, FILE, content).await;
        }
        before.push(has);
    }
    before
}

/// On every pillar a file is whole from the first, one of `new`, and stays what it is.
fn whole(mut before: Before, new: Vec<Vec<u8>>) -> impl FnMut(&[Station]) + Send {
    move |stations| {
        for (station, seen) in stations.iter().zip(&mut before) {
            let found = station.on_disk(FILE);
            match (&found, &seen) {
                (Some(bytes), None) => assert!(new.contains(bytes), "{}", station.name),
                _ => assert_eq!(found, *seen, "{}", station.name),
            }
            *seen = found;
        }
    }
}

/// Index and disk say the same, and the audit trail has no gap.
pub(super) async fn agree(world: &mut World) {
    world.all_up().await;
    for station in &world.stations {
        let names = station.names_on_disk();
        let listed = station.in_index().await;
        let ids: Vec<_> = listed.iter().map(|(id, _)| id.clone()).collect();
        assert_eq!(names, ids, "{}", station.name);
        for (id, sum) in listed {
            assert_eq!(
                md5(&station.on_disk(&id).unwrap()),
                sum,
                "{id} at {}",
                station.name
            );
        }
        let numbers = station.audit_numbers().await;
        let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
        assert_eq!(numbers, expected, "audit numbers of {}", station.name);
    }
}

/// Who is told to have done its part.
pub(super) fn results(world: &World) -> Vec<String> {
    let (EventKind::Complete { results, .. } | EventKind::Failed { results, .. }) = world.end()
    else {
        panic!("no end")
    };
    results
        .iter()
        .map(|Completed { contributor, .. }| contributor.to_string())
        .collect()
}

pub(super) fn is_complete(world: &World) -> bool {
    matches!(world.end(), EventKind::Complete { .. })
}

/// A put; afterwards the file is on every pillar that was reported to have it.
pub(super) async fn put(world: &mut World, seed: u64) {
    let content = noise(seed, 100);
    world.content.clone_from(&content);
    let before = before(world, &content, 6, true).await;
    let mut new = NewFile::new(checksum(&[]).checksum_spec);
    new.size = content.len() as u64;
    new.address = world.around.address(OFFER);
    new.offer = true;
    new.checksum = Some(checksum(&content));
    let mut procedure = PutFileProcedure::new(FILE.into(), new);
    procedure.retries = u32::try_from(world.random.below(3)).unwrap();
    procedure.partial_allowed = !world.one_in(3);
    let mut machine = Conversation::new(context(&PILLARS, Some(FILE)), procedure);
    let rival = b"a rival's file".to_vec();
    world.rival = Some(rival.clone());
    world
        .run(&mut machine, whole(before, vec![content.clone(), rival]))
        .await;
    agree(world).await;
    let reported = results(world);
    for name in &reported {
        let station = world.stations.iter().find(|it| it.name == name).unwrap();
        assert_eq!(
            station.on_disk(FILE).as_ref(),
            Some(&content),
            "{name} was reported"
        );
    }
    if is_complete(world) {
        assert_eq!(
            reported.len(),
            PILLARS.len(),
            "a put is complete with all pillars"
        );
    }
    assert!(
        !world.offer_path().exists(),
        "the offer still lies on the exchange"
    );
}

async fn get(world: &mut World, seed: u64) {
    let content = noise(seed, 100);
    let before = before(world, &content, 2, false).await;
    let address = world.around.address(OFFER);
    let procedure = GetFileProcedure::new(FILE.into(), address);
    let mut machine = Conversation::new(context(&PILLARS, Some(FILE)), procedure);
    world.run(&mut machine, whole(before, Vec::new())).await;
    agree(world).await;
    if is_complete(world) {
        assert_eq!(world.fetched.as_ref(), Some(&content));
        assert_eq!(results(world).len(), 1);
    }
}

#[test]
fn put_file() {
    play("put", put);
}

#[test]
fn get_file() {
    play("get", get);
}
