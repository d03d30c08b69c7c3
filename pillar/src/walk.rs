//! A walk over what the index lists, portion by portion, within what a request asked for.

use std::{collections::VecDeque, future::Future, num::NonZeroU64};

use crate::{context::Context, refusal::Refusal};

/// Where the things come from that are walked over.
pub(crate) trait Source: Send {
    /// One of them.
    type Item: Send;

    /// The next portion, of at most so many; empty after the last one.
    fn portion(
        &mut self,
        context: &Context,
        limit: Option<NonZeroU64>,
    ) -> impl Future<Output = Result<Vec<Self::Item>, Refusal>> + Send;

    /// Whether, at the end, there are some that were asked for and did not come: such as have changed their place.
    fn left_out(&self, _context: &Context) -> impl Future<Output = Result<bool, Refusal>> + Send {
        std::future::ready(Ok(false))
    }

    /// An upper bound of the bytes that one takes in a message.
    fn inline_size(item: &Self::Item) -> usize;
}

/// A walk that has begun; holds one portion.
#[derive(Debug)]
pub(crate) struct Walk<S: Source> {
    pub(crate) source: S,
    /// Items that may still be given out.
    left: Option<u64>,
    /// Bytes that inline results take so far.
    inline: usize,
    items: VecDeque<S::Item>,
    more: bool,
}

impl<S: Source> Walk<S> {
    /// A walk over the first `limit`.
    pub(crate) fn new(source: S, limit: Option<NonZeroU64>) -> Self {
        Self {
            source,
            left: limit.map(NonZeroU64::get),
            inline: 0,
            items: VecDeque::new(),
            more: false,
        }
    }

    /// The next item.
    pub(crate) async fn next(&mut self, context: &Context) -> Result<Option<S::Item>, Refusal> {
        self.fill(context).await?;
        let is_over = self.left == Some(0);
        match self.items.pop_front() {
            Some(item) if !is_over => {
                self.left = self.left.map(|left| left - 1);
                Ok(Some(item))
            }
            next => {
                self.more = next.is_some() || self.source.left_out(context).await?;
                Ok(None)
            }
        }
    }

    /// The next item, while the results fit into one message; the first in any case, since whoever asks again for
    /// what was left out must get on.
    pub(crate) async fn next_inline(
        &mut self,
        context: &Context,
    ) -> Result<Option<S::Item>, Refusal> {
        self.fill(context).await?;
        let Some(size) = self.items.front().map(S::inline_size) else {
            return self.next(context).await;
        };
        let is_first = self.inline == 0;
        let inline = self.inline.saturating_add(size);
        if inline > inline_bytes(context) && !is_first {
            self.more = true;
            return Ok(None);
        }
        self.inline = inline;
        self.next(context).await
    }

    /// Whether some were left out that were asked for. Known once the walk has ended.
    pub(crate) const fn more(&self) -> bool {
        self.more
    }

    /// Fetches a portion if none is held.
    async fn fill(&mut self, context: &Context) -> Result<(), Refusal> {
        if self.items.is_empty() {
            // One more than may be given out, to know whether there are more.
            let limit = self
                .left
                .and_then(|left| NonZeroU64::new(left.saturating_add(1)));
            self.items = self.source.portion(context, limit).await?.into();
        }
        Ok(())
    }
}

/// How many bytes of results one message may have: what the bus carries bounds them, and then what peers read.
fn inline_bytes(context: &Context) -> usize {
    let carried = context.component.bus().largest_body();
    INLINE_BYTES.min(carried.saturating_sub(ENVELOPE_BYTES))
}

/// Bytes of results in one message at most: peers bound the size of a message.
const INLINE_BYTES: usize = 8 << 20;
/// What a message has besides its results, at most.
const ENVELOPE_BYTES: usize = 64 << 10;

/// `&quot;` is the longest that one byte of text becomes.
pub(crate) const ESCAPED_BYTE: usize = 6;
