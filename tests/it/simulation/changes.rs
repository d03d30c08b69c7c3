//! Files that are replaced and deleted, at one pillar.

use pillarbox_client::conversation::{
    Conversation, delete_file::DeleteFileProcedure, new_file::NewFile,
    replace_file::ReplaceFileProcedure,
};
use pillarbox_messages::ChecksumData;

use super::{
    FILE, PILLARS, context,
    operations::{agree, is_complete},
    play,
    station::Station,
    stored,
    world::{OFFER, World, checksum},
};
use crate::support::noise;

/// The pillar that is asked; the others have the same file and keep it.
const ASKED: usize = 0;

/// Gives all pillars the file, or in few runs all but the one that is asked.
async fn before(world: &mut World, content: &[u8]) -> bool {
    let absent = world.one_in(10);
    for station in 0..PILLARS.len() {
        if station != ASKED || !absent {
            stored(world, station, FILE, content).await;
        }
    }
    !absent
}

/// The checksum of the file that the client means: in some runs it is wrong about it.
fn meant(world: &mut World, old: &[u8]) -> (ChecksumData, bool) {
    let right = !world.one_in(6);
    let old = if right { old } else { b"no file at all" };
    (checksum(old), right)
}

/// At the pillar that is asked the file is `first` until it is `then`, which it stays; there is no time between.
fn turns(
    mut first: Option<Vec<u8>>,
    then: Option<Vec<u8>>,
    others: Vec<u8>,
) -> impl FnMut(&[Station]) + Send {
    move |stations| {
        let (asked, rest) = stations.split_first().unwrap();
        let found = asked.on_disk(FILE);
        assert!(found == first || found == then, "neither one nor the other");
        first = found;
        for station in rest {
            assert_eq!(
                station.on_disk(FILE).as_ref(),
                Some(&others),
                "{}",
                station.name
            );
        }
    }
}

async fn replace(world: &mut World, seed: u64) {
    let (old, new) = (noise(seed, 90), noise(seed + 1, 100));
    world.content.clone_from(&new);
    let present = before(world, &old).await;
    let (existing_checksum, right) = meant(world, &old);
    let mut file = NewFile::new(checksum(&[]).checksum_spec);
    file.size = new.len() as u64;
    file.address = world.around.address(OFFER);
    file.offer = true;
    file.checksum = Some(checksum(&new));
    let procedure = ReplaceFileProcedure {
        file: FILE.into(),
        new: file,
        existing_checksum: Some(existing_checksum),
        request_existing_checksum: Some(checksum(&[]).checksum_spec),
        request_checksum: Some(checksum(&[]).checksum_spec),
        checksum_pillar: false,
        audit_trail_information: None,
    };
    let mut machine = Conversation::new(context(&PILLARS[..1], Some(FILE)), procedure);
    let first = present.then(|| old.clone());
    let then = if right {
        Some(new.clone())
    } else {
        first.clone()
    };
    world
        .run(&mut machine, turns(first.clone(), then, old))
        .await;
    agree(world).await;
    let last = world.stations[ASKED].on_disk(FILE);
    if is_complete(world) {
        assert_eq!(last, Some(new));
    }
    if !present || !right {
        assert_eq!(last, first, "nothing was to be replaced");
    }
    assert!(
        !world.offer_path().exists(),
        "the offer still lies on the exchange"
    );
}

async fn delete(world: &mut World, seed: u64) {
    let old = noise(seed, 90);
    let present = before(world, &old).await;
    let (existing_checksum, right) = meant(world, &old);
    let procedure = DeleteFileProcedure {
        file: FILE.into(),
        existing_checksum: Some(existing_checksum),
        request_checksum: Some(checksum(&[]).checksum_spec),
        default_spec: checksum(&[]).checksum_spec,
        checksum_pillar: false,
        audit_trail_information: None,
    };
    let mut machine = Conversation::new(context(&PILLARS[..1], Some(FILE)), procedure);
    let first = present.then(|| old.clone());
    let then = if right { None } else { first.clone() };
    world
        .run(&mut machine, turns(first.clone(), then, old))
        .await;
    agree(world).await;
    let last = world.stations[ASKED].on_disk(FILE);
    if is_complete(world) {
        assert_eq!(last, None, "a file that was deleted is still there");
    }
    if !right {
        assert_eq!(last, first, "nothing was to be deleted");
    }
}

#[test]
fn replace_file() {
    play("replace", replace);
}

#[test]
fn delete_file() {
    play("delete", delete);
}
