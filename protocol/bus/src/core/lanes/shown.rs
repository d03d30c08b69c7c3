//! Lanes as an operator sees them.

use super::{ConsumerId, Lane, LaneId, LaneTable};
use crate::{admin::LaneRow, core::admin::cut};

impl LaneTable {
    /// How many lanes there are.
    pub(crate) fn count(&self) -> usize {
        self.lanes.len()
    }

    /// The first lanes with messages or an owner, and how many more there are. `name` names who owns one.
    pub(crate) fn shown(
        &self,
        most: usize,
        name: impl Fn(ConsumerId) -> String,
    ) -> (Vec<LaneRow>, usize) {
        let used = |lane: &Lane| lane.messages > 0 || lane.owner.is_some();
        let mut used = self.lanes.iter().filter(|(_, lane)| used(lane));
        let row = |(id, lane): (&LaneId, &Lane)| LaneRow {
            lane: lane.key.as_deref().map_or_else(|| id.number(), cut),
            messages: lane.messages as u64,
            in_flight: lane.in_flight as u64,
            retrying: lane.retrying.len() as u64,
            owner: lane.owner.map(&name),
        };
        let rows = used.by_ref().take(most).map(row).collect();
        (rows, used.count())
    }
}

impl LaneId {
    /// Of a fixed number of lanes, the number that it is addressed by.
    fn number(self) -> String {
        (self.0.get() - 1).to_string()
    }
}
