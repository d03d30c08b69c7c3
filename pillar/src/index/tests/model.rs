//! The index against a model that is a map.

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Put {
        collection: usize,
        file: usize,
    },
    MarkMissing {
        collection: usize,
        file: usize,
    },
    Append {
        collection: usize,
    },
    SetClock(i64),
    Reopen,
    Walk {
        collection: usize,
        by_modified: bool,
        limit: u64,
        min: Option<i64>,
        max: Option<i64>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let bound = proptest::option::of(0..60_i64);
    prop_oneof![
        8 => (0..2_usize, 0..12_usize).prop_map(|(collection, file)| Step::Put { collection, file }),
        2 => (0..2_usize, 0..12_usize)
            .prop_map(|(collection, file)| Step::MarkMissing { collection, file }),
        1 => (0..2_usize).prop_map(|collection| Step::Append { collection }),
        2 => (0..50_i64).prop_map(Step::SetClock),
        1 => Just(Step::Reopen),
        3 => (0..2_usize, any::<bool>(), 1..5_u64, bound.clone(), bound).prop_map(
            |(collection, by_modified, limit, min, max)| Step::Walk {
                collection, by_modified, limit, min, max
            }
        ),
    ]
}

const COLLECTIONS: [&str; 2] = ["books", "dvds"];

#[derive(Default)]
struct Model {
    /// (modified, calculated) of present files.
    files: BTreeMap<(usize, String), (i64, i64)>,
    last: [Option<i64>; 2],
    events: [u64; 2],
}

impl Model {
    fn next_time(&mut self, collection: usize, now: i64) -> i64 {
        let next = self.last[collection].map_or(now, |last| now.max(last + 1));
        self.last[collection] = Some(next);
        next
    }

    fn listing(&self, wanted: usize, by_modified: bool, min: i64, max: i64) -> Vec<(i64, String)> {
        let times = self
            .files
            .iter()
            .filter(|((collection, _), _)| *collection == wanted)
            .map(|((_, file), (modified, calculated))| {
                (
                    if by_modified { *modified } else { *calculated },
                    file.clone(),
                )
            });
        let mut listing: Vec<_> = times
            .filter(|(time, _)| (min..=max).contains(time))
            .collect();
        listing.sort();
        listing
    }
}

async fn walk(index: &Index, by_modified: bool, query: ListQuery) -> Vec<(i64, String)> {
    let mut query = query;
    let mut listing = Vec::new();
    loop {
        let page = if by_modified {
            index.list_by_modified(query.clone()).await.unwrap()
        } else {
            index.list_by_calculated(query.clone()).await.unwrap()
        };
        let limit = query.limit.unwrap().get();
        assert!(page.rows.len() as u64 <= limit);
        listing.extend(page.rows.iter().map(|row| {
            let time = if by_modified {
                row.modified_ms
            } else {
                row.calculated_ms
            };
            (time, row.file_id.as_str().to_owned())
        }));
        let Some(next) = page.next else {
            return listing;
        };
        assert_eq!(page.rows.len() as u64, limit);
        query.after = Some(next);
    }
}

async fn compare(steps: Vec<Step>) {
    let fixture = Fixture::new();
    let mut index = fixture.open();
    let mut model = Model::default();
    let mut now = 0;
    for step in steps {
        match step {
            Step::Put { collection, file } => {
                let file = format!("f{file}");
                let outcome = index.put(record(COLLECTIONS[collection], &file)).await;
                if model.files.contains_key(&(collection, file.clone())) {
                    assert!(matches!(outcome, Err(IndexError::AlreadyPresent(_))));
                } else {
                    let row = outcome.unwrap().row;
                    let time = model.next_time(collection, now);
                    assert_eq!((row.modified_ms, row.calculated_ms), (time, time));
                    model.files.insert((collection, file), (time, time));
                    model.events[collection] += 1;
                }
            }
            Step::MarkMissing { collection, file } => {
                let file = format!("f{file}");
                let collection_id = COLLECTIONS[collection].into();
                let row = index.find(&collection_id, &file.as_str().into()).await;
                let row = row.unwrap();
                let known = model.files.remove(&(collection, file));
                assert_eq!(row.is_some(), known.is_some());
                if let Some(row) = row {
                    assert!(index.mark_missing(&collection_id, &row).await.unwrap());
                }
            }
            Step::Append { collection } => {
                let number = index
                    .append(&COLLECTIONS[collection].into(), entry("f0"))
                    .await;
                model.events[collection] += 1;
                assert_eq!(number.unwrap(), model.events[collection]);
            }
            Step::SetClock(time) => {
                now = time;
                fixture.clock.set(time);
            }
            Step::Reopen => {
                index.close().await;
                index = fixture.open();
            }
            Step::Walk {
                collection,
                by_modified,
                limit,
                min,
                max,
            } => {
                let query = ListQuery {
                    min_ms: min,
                    max_ms: max,
                    limit: NonZeroU64::new(limit),
                    ..ListQuery::all(COLLECTIONS[collection].into())
                };
                let (min, max) = (min.unwrap_or(i64::MIN), max.unwrap_or(i64::MAX));
                let expected = model.listing(collection, by_modified, min, max);
                assert_eq!(walk(&index, by_modified, query).await, expected);
            }
        }
    }
    for (collection, name) in COLLECTIONS.iter().enumerate() {
        let listed = model
            .files
            .keys()
            .filter(|(of, _)| *of == collection)
            .count() as u64;
        assert_eq!(index.count(&(*name).into()).await.unwrap(), listed);
        let numbers = index.audit(&(*name).into(), 1).await.unwrap();
        let numbers: Vec<_> = numbers.iter().map(|event| event.number).collect();
        assert_eq!(numbers, (1..=model.events[collection]).collect::<Vec<_>>());
    }
    index.close().await;
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn behaves_as_its_model(steps in proptest::collection::vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(compare(steps));
    }
}
