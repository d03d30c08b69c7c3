//! What is true of lanes between any two steps, recounted from the messages.

use std::collections::{BTreeMap, BTreeSet};

use super::{ConsumerId, Kind, LaneId, LaneTable, Standing};
use crate::core::{message::MessageId, rank::SortKey};

/// A message in a lane, with who has it in hand.
pub(crate) type Member = (LaneId, MessageId, SortKey, Standing, Option<ConsumerId>);

impl LaneTable {
    /// `consumers`: each with whether it acknowledges by taking.
    pub(crate) fn assert_consistent(
        &self,
        members: &[Member],
        consumers: &BTreeMap<ConsumerId, bool>,
    ) {
        let known: BTreeSet<_> = self.owners.keys().collect();
        assert_eq!(known, consumers.keys().collect());
        let mut heads = BTreeMap::new();
        for (id, lane) in &self.lanes {
            let own: Vec<&Member> = members.iter().filter(|it| it.0 == *id).collect();
            assert_eq!(lane.messages, own.len());
            assert!(self.kind == Kind::Fixed || !own.is_empty(), "an empty lane");
            let of = |standing| own.iter().filter(move |it| it.3 == standing);
            let ready: BTreeMap<_, _> = of(Standing::Ready).map(|it| (it.2, it.1)).collect();
            assert_eq!(lane.ready, ready);
            let later: BTreeSet<_> = of(Standing::Later).map(|it| it.1).collect();
            assert_eq!(lane.later, later);
            let retrying: BTreeSet<_> = of(Standing::Retry).map(|it| it.1).collect();
            assert_eq!(lane.retrying, retrying);
            let holders: Vec<_> = of(Standing::InFlight)
                .map(|it| it.4.expect("held"))
                .collect();
            assert_eq!(lane.in_flight, holders.len());
            assert!(
                // Who has taken one message only is no consumer, and owns nothing.
                holders
                    .iter()
                    .all(|it| Some(*it) == lane.owner || !consumers.contains_key(it)),
                "another one has it in hand"
            );
            let auto = lane.owner.is_some_and(|owner| consumers[&owner]);
            assert!(auto || holders.len() <= 1, "two of a lane in hand");
            let is_quiet = self.kind == Kind::Keyed || lane.owner == lane.heir;
            assert!(
                is_quiet || lane.in_flight > 0,
                "a quiet lane that waits for its heir"
            );
            let open = retrying.is_empty() && (holders.is_empty() || (auto && is_quiet));
            if let Some(key) = ready.keys().next().filter(|_| open) {
                heads.insert((lane.owner, *key), *id);
            }
            if let Some(owner) = lane.owner {
                assert!(self.owners[&owner].lanes.contains(id));
            }
        }
        let free = self.free.iter().map(|(key, id)| ((None, *key), *id));
        let owned = self
            .owners
            .iter()
            .flat_map(|(owner, it)| it.heads.iter().map(|(key, id)| ((Some(*owner), *key), *id)));
        assert_eq!(heads, free.chain(owned).collect());
        let owned: usize = self.owners.values().map(|it| it.lanes.len()).sum();
        assert_eq!(
            owned,
            self.lanes.values().filter(|it| it.owner.is_some()).count()
        );
        assert_eq!(
            self.keys.len(),
            self.lanes.values().filter(|it| it.key.is_some()).count()
        );
        self.assert_fair();
    }

    /// A fixed number of lanes is shared evenly among those who take any.
    fn assert_fair(&self) {
        if self.kind != Kind::Fixed {
            return;
        }
        let heirs = |consumer: &ConsumerId| {
            let own = self.lanes.values().filter(|it| it.heir == Some(*consumer));
            own.count()
        };
        let open = self.owners.iter().filter(|(_, it)| it.pinned.is_none());
        let loads: Vec<usize> = open.map(|(consumer, _)| heirs(consumer)).collect();
        let most = loads.iter().max().copied().unwrap_or_default();
        let least = loads.iter().min().copied().unwrap_or_default();
        assert!(most - least <= 1, "{loads:?}");
        let nobody = self.lanes.values().any(|it| it.heir.is_none());
        assert!(loads.is_empty() || !nobody, "a lane that nobody has");
    }
}
