//! What a [`Component`](super::Component) is made from.

use std::{collections::BTreeMap, sync::Arc};

use pillarbox_bus::Bus;
use pillarbox_messages::{CollectionId, ComponentId, Destination, clock::SharedClock};
use pillarbox_settings::{AlarmLevel, Repository, Timeouts, ZonelessDates};

/// What a component is made from.
#[derive(Clone, Debug)]
pub struct ComponentOptions {
    /// Its id: `From` of all it sends, and the client id of its connection.
    pub id: ComponentId,
    /// The repository it belongs to.
    pub repository: Arc<Repository>,
    /// Its connection.
    pub bus: Bus,
    /// Its time.
    pub clock: SharedClock,
    /// `ReplyTo` of what it sends, per collection that it serves.
    pub addresses: BTreeMap<CollectionId, Destination>,
    /// Which alarms it sends.
    pub alarm_level: AlarmLevel,
    /// When its requests expire.
    pub timeouts: Timeouts,
    /// What it makes of dates without an offset from UTC.
    pub zoneless: ZonelessDates,
}

impl ComponentOptions {
    /// A pillar: serves the collections that list it, each under its pillar destination.
    #[must_use]
    pub fn pillar(
        id: ComponentId,
        repository: Arc<Repository>,
        bus: Bus,
        clock: SharedClock,
        alarm_level: AlarmLevel,
    ) -> Self {
        let addresses = repository
            .collections_of_pillar(&id)
            .map(|it| (it.id.clone(), repository.destinations(&it.id).pillar(&id)))
            .collect();
        let timeouts = repository.timeouts;
        Self {
            id,
            repository,
            bus,
            clock,
            addresses,
            alarm_level,
            timeouts,
            zoneless: ZonelessDates::default(),
        }
    }

    /// A client or a service: has a client destination in every collection, as its agreement names it.
    #[must_use]
    pub fn client(
        id: ComponentId,
        sla: Option<&str>,
        repository: Arc<Repository>,
        bus: Bus,
        clock: SharedClock,
    ) -> Self {
        let collections = repository.collections.iter();
        let addresses = collections
            .map(|it| {
                (
                    it.id.clone(),
                    repository.destinations(&it.id).client(&id, sla),
                )
            })
            .collect();
        let timeouts = repository.timeouts_for(sla);
        let alarm_level = AlarmLevel::default();
        Self {
            id,
            repository,
            bus,
            clock,
            addresses,
            alarm_level,
            timeouts,
            zoneless: ZonelessDates::default(),
        }
    }
}
