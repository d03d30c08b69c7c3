//! Listings, page by page.

use std::{collections::BTreeMap, num::NonZeroU64};

use pillarbox_client::{
    ComponentResult, EventKind,
    conversation::{
        Conversation, get_audit_trails::GetAuditTrailsProcedure,
        get_checksums::GetChecksumsProcedure, get_file_ids::GetFileIdsProcedure,
        get_status::GetStatusProcedure, paging::Walks,
    },
};

use super::{
    PILLARS, context,
    operations::{agree, is_complete, results},
    play, stored,
    world::{World, checksum},
};
use crate::support::md5;

/// Ids and checksums of what each pillar has.
type Stock = BTreeMap<String, Vec<(String, String)>>;

/// Gives each pillar some files, among them the same ones.
async fn stock(world: &mut World) -> Stock {
    let mut stock = Stock::new();
    for (station, name) in PILLARS.iter().enumerate() {
        let mut files = Vec::new();
        for number in 0..world.random.below(6) {
            let id = format!("file{number}");
            let content = if world.one_in(6) {
                "rot".to_owned()
            } else {
                id.clone()
            };
            stored(world, station, &id, content.as_bytes()).await;
            files.push((id, md5(content.as_bytes())));
        }
        stock.insert((*name).to_owned(), files);
    }
    stock
}

/// What each contributor has listed; an id that came twice stands there twice.
fn listed(world: &World) -> Stock {
    let mut listed = Stock::new();
    for event in &world.events {
        let (EventKind::Progress {
            contributor,
            result: Some(result),
        }
        | EventKind::ComponentComplete {
            contributor,
            result,
        }) = &event.kind
        else {
            continue;
        };
        let items = listed.entry(contributor.to_string()).or_default();
        match result {
            ComponentResult::FileIds(page) => {
                items.extend(
                    page.items
                        .iter()
                        .map(|it| (it.file_id.to_string(), String::new())),
                );
            }
            ComponentResult::Checksums(page) => items.extend(
                page.page
                    .items
                    .iter()
                    .map(|it| (it.file_id.to_string(), it.checksum_value.to_string())),
            ),
            ComponentResult::AuditTrails(page) => {
                let numbers = page.items.iter().map(|it| it.sequence_number.get());
                items.extend(numbers.map(|number| (ordinal(number), String::new())));
            }
            other => panic!("{other:?}"),
        }
    }
    listed
}

/// Who was reported has told each of its files once.
async fn check(world: &mut World, stock: &Stock, with_sums: bool) {
    agree(world).await;
    let mut listed = listed(world);
    for name in results(world) {
        let mut items = listed.remove(&name).unwrap_or_default();
        items.sort();
        let mut expected = stock[&name].clone();
        if !with_sums {
            expected.iter_mut().for_each(|(_, sum)| sum.clear());
        }
        assert_eq!(items, expected, "{name}");
    }
    if is_complete(world) {
        assert_eq!(results(world).len(), PILLARS.len());
    }
}

fn walks(world: &mut World) -> Walks {
    Walks::new(page_size(world))
}

fn page_size(world: &mut World) -> NonZeroU64 {
    NonZeroU64::new(1 + world.random.below(4)).unwrap()
}

async fn ids(world: &mut World, _seed: u64) {
    let stock = stock(world).await;
    let procedure = GetFileIdsProcedure {
        file: None,
        audit_trail_information: None,
        walks: walks(world),
    };
    let mut machine = Conversation::new(context(&PILLARS, None), procedure);
    world.run(&mut machine, |_| ()).await;
    check(world, &stock, false).await;
}

async fn checksums(world: &mut World, _seed: u64) {
    let stock = stock(world).await;
    let procedure = GetChecksumsProcedure {
        file: None,
        spec: checksum(&[]).checksum_spec,
        audit_trail_information: None,
        walks: walks(world),
    };
    let mut machine = Conversation::new(context(&PILLARS, None), procedure);
    world.run(&mut machine, |_| ()).await;
    check(world, &stock, true).await;
}

/// Numbers of audit events, as texts that sort like them.
async fn trails(world: &mut World, _seed: u64) {
    stock(world).await;
    let mut told = Stock::new();
    for station in &world.stations {
        let numbers = station.audit_numbers().await;
        let numbers = numbers
            .into_iter()
            .map(|number| (ordinal(number), String::new()));
        told.insert(station.name.to_owned(), numbers.collect());
    }
    let procedure = GetAuditTrailsProcedure {
        file: None,
        first: None,
        last: None,
        min_time: None,
        max_time: None,
        page_size: page_size(world),
        trails: BTreeMap::new(),
    };
    let mut machine = Conversation::new(context(&PILLARS, None), procedure);
    world.run(&mut machine, |_| ()).await;
    check(world, &told, false).await;
}

fn ordinal(number: u64) -> String {
    format!("{number:05}")
}

async fn statuses(world: &mut World, _seed: u64) {
    let mut about_no_collection = context(&PILLARS, None);
    about_no_collection.collection = None;
    let mut machine = Conversation::new(about_no_collection, GetStatusProcedure);
    world.run(&mut machine, |_| ()).await;
    if is_complete(world) {
        assert_eq!(results(world).len(), PILLARS.len());
    }
}

#[test]
fn get_audit_trails() {
    play("audit trails", trails);
}

#[test]
fn get_status() {
    play("status", statuses);
}

#[test]
fn get_file_ids() {
    play("file ids", ids);
}

#[test]
fn get_checksums() {
    play("checksums", checksums);
}
