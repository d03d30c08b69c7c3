//! A walk over a collection's files, portion by portion, within what a request asked for.

use std::{collections::VecDeque, num::NonZeroU64};

use pillarbox_messages::{CollectionId, FileIds, Timestamp};

use crate::{
    checks,
    context::Context,
    index::{FileRow, ListQuery, Position},
    refusal::Refusal,
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

    fn contains(self, time_ms: i64) -> bool {
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
    const fn time(self, row: &FileRow) -> i64 {
        match self {
            Self::Modified => row.modified_ms,
            Self::Calculated => row.calculated_ms,
        }
    }
}

/// A walk that has begun; holds one portion of rows.
#[derive(Debug)]
pub(crate) struct Listing {
    pub(crate) collection: CollectionId,
    interval: Interval,
    order: Order,
    /// Files that may still be given out.
    left: Option<u64>,
    /// Bytes that inline results may still take.
    inline_left: usize,
    rows: VecDeque<FileRow>,
    source: Source,
    more: bool,
}

/// Where the next portion comes from.
#[derive(Debug)]
enum Source {
    Start,
    After(Position),
    Exhausted,
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
        match file_ids {
            FileIds::File(id) => {
                checks::file_id(context, id)?;
                let row = checks::known(context, collection, id).await?;
                Ok(Self::single(collection, row, interval, order))
            }
            FileIds::All => Ok(Self::all(collection, interval, order, limit)),
        }
    }

    /// All files of a collection, the oldest `limit` of them.
    fn all(
        collection: &CollectionId,
        interval: Interval,
        order: Order,
        limit: Option<NonZeroU64>,
    ) -> Self {
        Self {
            collection: collection.clone(),
            interval,
            order,
            left: limit.map(NonZeroU64::get),
            inline_left: INLINE_BYTES,
            rows: VecDeque::new(),
            source: Source::Start,
            more: false,
        }
    }

    /// One file, if its time is within the interval; a limit does not apply.
    fn single(collection: &CollectionId, row: FileRow, interval: Interval, order: Order) -> Self {
        let listed = interval.contains(order.time(&row));
        let mut listing = Self::all(collection, interval, order, None);
        listing.source = Source::Exhausted;
        listing.rows.extend(listed.then_some(row));
        listing
    }

    /// The next file.
    pub(crate) async fn next(&mut self, context: &Context) -> Result<Option<FileRow>, Refusal> {
        self.fill(context).await?;
        if self.left == Some(0) {
            self.more = !self.rows.is_empty();
            return Ok(None);
        }
        let row = self.rows.pop_front();
        if row.is_some() {
            self.left = self.left.map(|left| left - 1);
        }
        Ok(row)
    }

    /// The next file, while the results fit into one message.
    pub(crate) async fn next_inline(
        &mut self,
        context: &Context,
    ) -> Result<Option<FileRow>, Refusal> {
        self.fill(context).await?;
        let Some(size) = self.rows.front().map(inline_size) else {
            return Ok(None);
        };
        match self.inline_left.checked_sub(size) {
            Some(left) => {
                self.inline_left = left;
                self.next(context).await
            }
            None => {
                self.more = true;
                Ok(None)
            }
        }
    }

    /// Whether files of the interval were left out. Known once the walk has ended.
    pub(crate) const fn more(&self) -> bool {
        self.more
    }

    /// Fetches a portion if there are rows to come and none are held.
    async fn fill(&mut self, context: &Context) -> Result<(), Refusal> {
        if !self.rows.is_empty() {
            return Ok(());
        }
        let after = match std::mem::replace(&mut self.source, Source::Exhausted) {
            Source::Start => None,
            Source::After(position) => Some(position),
            Source::Exhausted => return Ok(()),
        };
        let query = ListQuery {
            collection: self.collection.clone(),
            min_ms: self.interval.min_ms,
            max_ms: self.interval.max_ms,
            after,
            // One more than may be given out, to know whether there are more.
            limit: self
                .left
                .and_then(|left| NonZeroU64::new(left.saturating_add(1))),
        };
        let page = match self.order {
            Order::Modified => context.index.list_by_modified(query).await?,
            Order::Calculated => context.index.list_by_calculated(query).await?,
        };
        self.rows = page.rows.into();
        if let Some(position) = page.next {
            self.source = Source::After(position);
        }
        Ok(())
    }
}

/// An upper bound of an item's bytes in a message.
fn inline_size(row: &FileRow) -> usize {
    row.file_id.as_str().len() * ESCAPED_BYTE + ITEM_BYTES + row.observed.as_bytes().len() * 2
}

/// Bytes of results in one message at most: brokers and peers bound the size of a message.
const INLINE_BYTES: usize = 8 << 20;
/// `&quot;` is the longest that one byte of text becomes.
const ESCAPED_BYTE: usize = 6;
/// Element names and the other values of an item: more than any item has.
const ITEM_BYTES: usize = 320;
