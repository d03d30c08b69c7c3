//! A walk over a collection's files.

use std::{collections::BTreeSet, num::NonZeroU64};

use pillarbox_messages::{CollectionId, FileId, FileIds, Timestamp};

use crate::{
    checks,
    context::Context,
    index::{FileRow, ListQuery, Position},
    refusal::Refusal,
    walk::{ESCAPED_BYTE, Source, Walk},
};

/// Times within which files are listed, both inclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Interval {
    min_ms: Option<i64>,
    max_ms: Option<i64>,
}

impl Interval {
    /// From `MinTimestamp` to `MaxTimestamp`.
    pub(crate) fn new(min: Option<&Timestamp>, max: Option<&Timestamp>) -> Self {
        Self {
            min_ms: min.map(|it| it.millis()),
            max_ms: max.map(|it| it.millis()),
        }
    }

    pub(crate) fn contains(self, time_ms: i64) -> bool {
        self.min_ms.is_none_or(|min| min <= time_ms) && self.max_ms.is_none_or(|max| time_ms <= max)
    }
}

/// Which of a file's two times orders a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// When the file was stored.
    Modified,
    /// When its checksum was computed.
    Calculated,
}

impl Order {
    pub(crate) const fn time(self, row: &FileRow) -> i64 {
        match self {
            Self::Modified => row.modified_ms,
            Self::Calculated => row.calculated_ms,
        }
    }
}

/// A walk over files.
pub(crate) type Listing = Walk<Files>;

/// The files of a collection, oldest first. A checksum that is computed again while they are walked over has another
/// place: such a file is not met twice, however long it takes, but may be left out.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) collection: CollectionId,
    interval: Interval,
    order: Order,
    next: Next,
    /// The last time of all at the start, where the walk ends.
    end_ms: i64,
    /// Files that the walk itself has put behind its end.
    pub(crate) moved: BTreeSet<FileId>,
}

/// Where the next portion comes from.
#[derive(Debug)]
enum Next {
    /// The one file that was asked for.
    Only(Box<FileRow>),
    Start,
    After(Position),
    Nowhere,
}

impl Listing {
    /// What a request asked for: one file, which must be here, or the oldest `limit` of all.
    pub(crate) async fn asked(
        context: &Context,
        collection: &CollectionId,
        file_ids: &FileIds,
        interval: Interval,
        order: Order,
        limit: Option<NonZeroU64>,
    ) -> Result<Self, Refusal> {
        let (next, limit) = match file_ids {
            FileIds::File(id) => {
                checks::file_id(context, id)?;
                let row = checks::known(context, collection, id).await?;
                let listed = interval.contains(order.time(&row));
                let next = if listed {
                    Next::Only(Box::new(row))
                } else {
                    Next::Nowhere
                };
                // A limit does not apply.
                (next, None)
            }
            FileIds::All => (Next::Start, limit),
        };
        let files = Files {
            collection: collection.clone(),
            interval,
            order,
            next,
            end_ms: i64::MAX,
            moved: BTreeSet::new(),
        };
        Ok(Self::new(files, limit))
    }
}

impl Files {
    /// Where a walk that starts now ends. By the time of storing it ends by itself: it reads the index alone, which is
    /// faster than files are replaced.
    async fn end(&self, context: &Context) -> Result<i64, Refusal> {
        match self.order {
            Order::Modified => Ok(i64::MAX),
            Order::Calculated => Ok(context.index.last_calculated(&self.collection).await?),
        }
    }
}

impl Source for Files {
    type Item = FileRow;

    async fn portion(
        &mut self,
        context: &Context,
        limit: Option<NonZeroU64>,
    ) -> Result<Vec<FileRow>, Refusal> {
        let after = match std::mem::replace(&mut self.next, Next::Nowhere) {
            Next::Only(row) => return Ok(vec![*row]),
            Next::Start => {
                self.end_ms = self.end(context).await?;
                None
            }
            Next::After(position) => Some(position),
            Next::Nowhere => return Ok(Vec::new()),
        };
        let asked = self.interval.max_ms.unwrap_or(i64::MAX);
        let query = ListQuery {
            collection: self.collection.clone(),
            min_ms: self.interval.min_ms,
            max_ms: Some(asked.min(self.end_ms)),
            after,
            limit,
        };
        let page = match self.order {
            Order::Modified => context.index.list_by_modified(query).await?,
            Order::Calculated => context.index.list_by_calculated(query).await?,
        };
        if let Some(position) = page.next {
            self.next = Next::After(position);
        }
        Ok(page.rows)
    }

    /// Whether there are files behind the end, which only those are of whose order the places change.
    async fn left_out(&self, context: &Context) -> Result<bool, Refusal> {
        let Some(behind) = self.end_ms.checked_add(1) else {
            return Ok(false);
        };
        let min_ms = self.interval.min_ms.map_or(behind, |min| min.max(behind));
        let mut query = ListQuery {
            collection: self.collection.clone(),
            min_ms: Some(min_ms),
            max_ms: self.interval.max_ms,
            after: None,
            limit: None,
        };
        loop {
            let page = context.index.list_by_calculated(query.clone()).await?;
            let is_moved = |row: &FileRow| self.moved.contains(&row.file_id);
            if !page.rows.iter().all(is_moved) {
                return Ok(true);
            }
            query.after = page.next;
            if query.after.is_none() {
                return Ok(false);
            }
        }
    }

    fn inline_size(row: &FileRow) -> usize {
        row.file_id.as_str().len() * ESCAPED_BYTE + ITEM_BYTES + row.observed.as_bytes().len() * 2
    }
}

/// Element names and the other values of an item: more than any item has.
const ITEM_BYTES: usize = 320;
