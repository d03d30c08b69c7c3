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
    Replace {
        collection: usize,
        file: usize,
        end: End,
    },
    Delete {
        collection: usize,
        file: usize,
        end: End,
    },
    Observe {
        collection: usize,
        file: usize,
        told: bool,
    },
    Adopt {
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

/// How a replace or delete goes on.
#[derive(Clone, Copy, Debug)]
enum End {
    /// In one transaction.
    AtOnce,
    /// It is written down before it is done.
    Opened,
    /// It is written down, and dropped.
    Dropped,
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![Just(End::AtOnce), Just(End::Opened), Just(End::Dropped)]
}

fn step() -> impl Strategy<Value = Step> {
    let bound = proptest::option::of(0..60_i64);
    prop_oneof![
        8 => (0..2_usize, 0..12_usize).prop_map(|(collection, file)| Step::Put { collection, file }),
        2 => (0..2_usize, 0..12_usize)
            .prop_map(|(collection, file)| Step::MarkMissing { collection, file }),
        4 => (0..2_usize, 0..12_usize, end())
            .prop_map(|(collection, file, end)| Step::Replace { collection, file, end }),
        3 => (0..2_usize, 0..12_usize, end())
            .prop_map(|(collection, file, end)| Step::Delete { collection, file, end }),
        4 => (0..2_usize, 0..12_usize, any::<bool>())
            .prop_map(|(collection, file, told)| Step::Observe { collection, file, told }),
        2 => (0..2_usize, 0..12_usize)
            .prop_map(|(collection, file)| Step::Adopt { collection, file }),
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
    /// The last times given out.
    modified: [Option<i64>; 2],
    calculated: [Option<i64>; 2],
    events: [u64; 2],
}

impl Model {
    fn next_times(&mut self, collection: usize, now: i64) -> (i64, i64) {
        let modified = later(&mut self.modified[collection], now);
        (modified, later(&mut self.calculated[collection], now))
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

fn later(last: &mut Option<i64>, now: i64) -> i64 {
    let next = last.map_or(now, |last| now.max(last + 1));
    *last = Some(next);
    next
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

/// The index and its model, going the same way.
struct Pair {
    fixture: Fixture,
    index: Index,
    model: Model,
    now: i64,
}

impl Pair {
    async fn step(&mut self, step: Step) {
        match step {
            Step::Put { collection, file } => self.put(collection, format!("f{file}")).await,
            Step::MarkMissing { collection, file } => {
                self.mark_missing(collection, format!("f{file}")).await;
            }
            Step::Replace {
                collection,
                file,
                end,
            } => self.replace(collection, format!("f{file}"), end).await,
            Step::Delete {
                collection,
                file,
                end,
            } => self.delete(collection, format!("f{file}"), end).await,
            Step::Observe {
                collection,
                file,
                told,
            } => self.observe(collection, format!("f{file}"), told).await,
            Step::Adopt { collection, file } => self.adopt(collection, format!("f{file}")).await,
            Step::Append { collection } => {
                let id = COLLECTIONS[collection].into();
                let number = self.index.append(&id, entry("f0")).await;
                self.model.events[collection] += 1;
                assert_eq!(number.unwrap(), self.model.events[collection]);
            }
            Step::SetClock(time) => {
                self.now = time;
                self.fixture.clock.set(time);
            }
            Step::Reopen => {
                self.index.close().await;
                self.index = self.fixture.open();
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
                let expected = self.model.listing(collection, by_modified, min, max);
                assert_eq!(walk(&self.index, by_modified, query).await, expected);
            }
        }
    }

    async fn put(&mut self, collection: usize, file: String) {
        let put = self.index.put(record(COLLECTIONS[collection], &file)).await;
        if self.model.files.contains_key(&(collection, file.clone())) {
            assert!(matches!(put, Err(IndexError::AlreadyPresent(_))));
        } else {
            self.stored(collection, file, &put.unwrap().row);
        }
    }

    async fn mark_missing(&mut self, collection: usize, file: String) {
        let id = COLLECTIONS[collection].into();
        let row = self.index.find(&id, &file.as_str().into()).await.unwrap();
        let known = self.model.files.remove(&(collection, file));
        assert_eq!(row.is_some(), known.is_some());
        if let Some(row) = row {
            assert!(self.index.mark_missing(&id, &row).await.unwrap());
        }
    }

    async fn replace(&mut self, collection: usize, file: String, end: End) {
        if self.begin(collection, &file, end).await {
            return;
        }
        let record = record(COLLECTIONS[collection], &file);
        let replaced = self.index.replace(record).await;
        if self.model.files.contains_key(&(collection, file.clone())) {
            self.stored(collection, file, &replaced.unwrap().row);
        } else {
            assert!(matches!(replaced, Err(IndexError::NotPresent(_))));
            self.drop_operation(collection, &file).await;
        }
    }

    async fn delete(&mut self, collection: usize, file: String, end: End) {
        if self.begin(collection, &file, end).await {
            return;
        }
        let record = delete(COLLECTIONS[collection], &file);
        let deleted = self.index.delete(record).await;
        if let Some((modified, _)) = self.model.files.remove(&(collection, file.clone())) {
            assert_eq!(deleted.unwrap().row.modified_ms, modified);
            self.model.events[collection] += 1;
        } else {
            assert!(matches!(deleted, Err(IndexError::NotPresent(_))));
            self.drop_operation(collection, &file).await;
        }
    }

    async fn observe(&mut self, collection: usize, file: String, told: bool) {
        let id = COLLECTIONS[collection].into();
        let Some(row) = self.index.find(&id, &file.as_str().into()).await.unwrap() else {
            return;
        };
        let audit = told.then(|| entry(&file));
        let seen = observation(row, &[1], audit);
        // The second look at the same row finds it changed.
        let observed = self.index.observe(&id, vec![seen.clone(), seen]).await;
        assert_eq!(observed.unwrap(), [true, false]);
        let calculated = later(&mut self.model.calculated[collection], self.now);
        self.model.files.get_mut(&(collection, file)).unwrap().1 = calculated;
        self.model.events[collection] += u64::from(told);
    }

    async fn adopt(&mut self, collection: usize, file: String) {
        let id = COLLECTIONS[collection].into();
        let known = self.model.files.contains_key(&(collection, file.clone()));
        // The checksum is the one that each put has, so that nothing more is told.
        let adopted = self.index.adopt(&id, vec![adoption(&file, &[0x4a, 0x37])]);
        match &adopted.await.unwrap()[..] {
            [Adopted::Known] => assert!(known),
            [Adopted::New(row) | Adopted::Again(row)] => {
                assert!(!known);
                self.stored(collection, file, row);
            }
            other => panic!("{other:?}"),
        }
    }

    /// The new row has the times that it must have.
    fn stored(&mut self, collection: usize, file: String, row: &FileRow) {
        let times = self.model.next_times(collection, self.now);
        assert_eq!((row.modified_ms, row.calculated_ms), times);
        self.model.files.insert((collection, file), times);
        self.model.events[collection] += 1;
    }

    /// Writes the operation down where it is to be; tells whether it was dropped.
    async fn begin(&self, collection: usize, file: &str, end: End) -> bool {
        if !matches!(end, End::AtOnce) {
            let operation = open_operation(&COLLECTIONS[collection].into(), &file.into(), None);
            self.index.open_operation(operation.clone()).await.unwrap();
            assert_eq!(self.index.open_operations().await.unwrap(), [operation]);
        }
        if matches!(end, End::Dropped) {
            self.drop_operation(collection, file).await;
        }
        matches!(end, End::Dropped)
    }

    async fn drop_operation(&self, collection: usize, file: &str) {
        let id = COLLECTIONS[collection].into();
        self.index.drop_operation(&id, &file.into()).await.unwrap();
    }
}

async fn compare(steps: Vec<Step>) {
    let fixture = Fixture::new();
    let index = fixture.open();
    let mut pair = Pair {
        fixture,
        index,
        model: Model::default(),
        now: 0,
    };
    for step in steps {
        pair.step(step).await;
    }
    let Pair { index, model, .. } = pair;
    assert_eq!(index.open_operations().await.unwrap(), []);
    for (collection, name) in COLLECTIONS.iter().enumerate() {
        let listed = model
            .files
            .keys()
            .filter(|(of, _)| *of == collection)
            .count() as u64;
        assert_eq!(index.count(&(*name).into()).await.unwrap(), listed);
        let numbers = index
            .audit(AuditQuery::from_number((*name).into(), 1))
            .await
            .unwrap();
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
