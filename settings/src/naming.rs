//! The names of destinations and of durable subscriptions.

use pillarbox_messages::{
    CollectionId, ComponentId, Destination, DestinationKind,
    destination::{MAX_NAME, fault_of_name},
};

use crate::{
    repository::{Collection, Repository, Sla},
    template::{Names, Pattern, Role, Template},
};

/// What to do about an id that can't be part of names; none if it can.
#[must_use]
pub fn id_problem(id: &str) -> Option<&'static str> {
    let strange = |c: char| c.is_control() || "/\\*>,#?{}\"".contains(c);
    if id.is_empty() {
        Some("write at least one character")
    } else if id == "." || id == ".." || id.trim() != id {
        Some("begin and end with a letter or a digit")
    } else if id.len() > LONGEST_ID {
        Some("shorten it to 200 bytes")
    } else if id.contains(strange) {
        Some("leave out / \\ * > , # ? { } \" and control characters")
    } else {
        None
    }
}

/// The longest id, in bytes.
const LONGEST_ID: usize = 200;

/// What is wrong with the name that somebody's destination would have, if anything, and what to do about it.
pub(crate) fn name_problem(
    destination: &Destination,
    whose: &str,
) -> Option<(String, &'static str)> {
    let name = destination.name();
    let length = name.len();
    if length > MAX_NAME {
        let cause = format!(
            "the destination of {whose} would have a name of {length} bytes, of which a bus takes {MAX_NAME}"
        );
        return Some((cause, "shorten an id, or a template in `destinations`"));
    }
    let fault = fault_of_name(name)?;
    let cause = format!("the destination of {whose} would be called `{name}`, which {fault}");
    Some((cause, "change an id, or what is under `destinations`"))
}

/// Where destination names come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// From templates.
    Collection,
    /// As the Java system makes them: all from one base, shared by all collections.
    Reference {
        base: Destination,
        alarms: Destination,
    },
}

/// One template per role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Templates {
    pub(crate) collection: Template,
    pub(crate) pillar: Template,
    pub(crate) client: Template,
    pub(crate) alarms: Template,
}

impl Templates {
    pub(crate) fn of(&self, role: Role) -> &Template {
        match role {
            Role::Collection => &self.collection,
            Role::Pillar => &self.pillar,
            Role::Client => &self.client,
            Role::Alarms => &self.alarms,
        }
    }

    pub(crate) fn set(&mut self, role: Role, template: Template) {
        match role {
            Role::Collection => self.collection = template,
            Role::Pillar => self.pillar = template,
            Role::Client => self.client = template,
            Role::Alarms => self.alarms = template,
        }
    }
}

/// A durable subscription that is made before its owner first connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurableSubscription {
    /// The connection that owns it.
    pub client_id: ComponentId,
    /// Its name.
    pub name: String,
    /// The topic it keeps messages of.
    pub destination: Destination,
}

/// The names of one collection's destinations.
#[derive(Clone, Debug)]
pub struct CollectionDestinations<'a> {
    id: CollectionId,
    naming: &'a Naming,
    templates: &'a Templates,
    settings: Option<&'a Collection>,
}

impl<'a> CollectionDestinations<'a> {
    pub(crate) fn new(repository: &'a Repository, id: &CollectionId) -> Self {
        let settings = repository.collection(id);
        Self {
            id: id.clone(),
            naming: &repository.naming,
            templates: settings.map_or(&repository.templates, |settings| &settings.templates),
            settings,
        }
    }

    /// The topic of identify requests.
    #[must_use]
    pub fn collection(&self) -> Destination {
        match self.naming {
            Naming::Reference { base, .. } => base.clone(),
            Naming::Collection => self.templates.collection.render(self.names()),
        }
    }

    /// Where a pillar takes its operation requests, and what its responses give as `ReplyTo`.
    #[must_use]
    pub fn pillar(&self, pillar: &ComponentId) -> Destination {
        if let Naming::Reference { base, .. } = self.naming {
            return derived(base, &format!("-{pillar}-contributor"));
        }
        let own = self
            .settings
            .and_then(|settings| settings.pillar_templates.get(pillar));
        own.unwrap_or(&self.templates.pillar).render(Names {
            pillar: pillar.as_str(),
            ..self.names()
        })
    }

    /// Where a client takes its responses. Without an agreement of this collection
    /// named, the one that lists the client counts.
    #[must_use]
    pub fn client(&self, client: &ComponentId, sla: Option<&str>) -> Destination {
        if let Naming::Reference { base, .. } = self.naming {
            return derived(base, &format!("-{client}"));
        }
        let sla = self.settings.and_then(|settings| {
            let named = sla.and_then(|id| settings.sla(id));
            named.or_else(|| settings.sla_of_client(client))
        });
        let template = sla.and_then(|sla| sla.client_template.as_ref());
        let sla = sla.map(|sla| sla.id.as_str());
        let names = Names {
            client: client.as_str(),
            sla,
            ..self.names()
        };
        template.unwrap_or(&self.templates.client).render(names)
    }

    /// Every topic that takes this collection's alarms: one, unless agreements have their own.
    #[must_use]
    pub fn alarms(&self) -> Vec<Destination> {
        if let Naming::Reference { alarms, .. } = self.naming {
            return vec![alarms.clone()];
        }
        let general = &self.templates.alarms;
        let mut found = Vec::new();
        if !general.uses(crate::template::Placeholder::Sla) || self.slas().is_empty() {
            found.push(general.render(self.names()));
        }
        found.extend(self.slas().iter().map(|sla| self.alarms_of_sla(sla)));
        deduplicated(found)
    }

    /// The topic that takes the alarms about what this agreement promises.
    #[must_use]
    pub fn alarms_of(&self, sla: &str) -> Destination {
        match (
            self.naming,
            self.settings.and_then(|settings| settings.sla(sla)),
        ) {
            (Naming::Reference { alarms, .. }, _) => alarms.clone(),
            (Naming::Collection, Some(sla)) => self.alarms_of_sla(sla),
            (Naming::Collection, None) => self.templates.alarms.render(self.names()),
        }
    }

    /// Whether a client of some id has this destination. A bus makes such names when they are first
    /// subscribed to.
    #[must_use]
    pub fn fits_client_template(&self, destination: &Destination) -> bool {
        self.client_patterns()
            .iter()
            .any(|pattern| pattern.fits(destination))
    }

    /// The names that clients of any id have.
    pub(crate) fn client_patterns(&self) -> Vec<Pattern> {
        if let Naming::Reference { base, .. } = self.naming {
            return vec![Pattern::beginning_with(
                base.kind(),
                format!("{}-", base.name()),
            )];
        }
        let general = self.templates.client.pattern(self.names());
        let of_slas = self.slas().iter().map(|sla| {
            let template = sla
                .client_template
                .as_ref()
                .unwrap_or(&self.templates.client);
            template.pattern(Names {
                sla: Some(&sla.id),
                ..self.names()
            })
        });
        let mut patterns = vec![general];
        for pattern in of_slas {
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
        patterns
    }

    fn alarms_of_sla(&self, sla: &Sla) -> Destination {
        let template = sla
            .alarms_template
            .as_ref()
            .unwrap_or(&self.templates.alarms);
        template.render(Names {
            sla: Some(&sla.id),
            ..self.names()
        })
    }

    fn slas(&self) -> &'a [Sla] {
        self.settings.map_or(&[], |settings| &settings.slas)
    }

    fn names(&self) -> Names<'_> {
        Names {
            collection: self.id.as_str(),
            ..Names::default()
        }
    }
}

impl Repository {
    /// Whether a client of some id has this destination in one of the collections.
    #[must_use]
    pub fn fits_client_template(&self, destination: &Destination) -> bool {
        let mut collections = self.collections.iter();
        collections.any(|it| self.destinations(&it.id).fits_client_template(destination))
    }

    /// What keeps a client of this id from having destinations: the cause and the next step; none if nothing does.
    #[must_use]
    pub fn client_problem(&self, client: &ComponentId) -> Option<(String, &'static str)> {
        self.collections.iter().find_map(|collection| {
            let names = self.destinations(&collection.id);
            let general = names.client(client, None);
            let of_slas = collection.slas.iter();
            let of_slas = of_slas.map(|sla| names.client(client, Some(&sla.id)));
            let shown: String = client.as_str().chars().take(40).collect();
            let whose = format!("the client `{shown}` in `{}`", collection.id);
            let problem = |it| name_problem(&it, &whose);
            std::iter::once(general).chain(of_slas).find_map(problem)
        })
    }

    /// Every destination that a bus server makes at start: of collections, pillars and alarms. Temporary
    /// queues are made by their owners, client destinations when they are first subscribed to.
    #[must_use]
    pub fn bus_destinations(&self) -> Vec<Destination> {
        let mut found = Vec::new();
        for collection in &self.collections {
            let names = self.destinations(&collection.id);
            found.push(names.collection());
            found.extend(collection.pillars.iter().map(|pillar| names.pillar(pillar)));
            found.extend(names.alarms());
        }
        found.retain(|destination| destination.kind() != DestinationKind::TemporaryQueue);
        deduplicated(found)
    }

    /// The queues among them that pillars take their requests from.
    #[must_use]
    pub fn pillar_queues(&self) -> Vec<Destination> {
        let collections = self.collections.iter();
        let pillars = collections.flat_map(|collection| {
            let names = self.destinations(&collection.id);
            let pillars = collection.pillars.iter();
            pillars.map(move |pillar| names.pillar(pillar))
        });
        let queues = pillars.filter(|it| it.kind() == DestinationKind::Queue);
        deduplicated(queues.collect())
    }

    /// The durable subscriptions that a bus server registers at start, so that no alarm is lost before the
    /// alarm service first connects.
    #[must_use]
    pub fn durable_subscriptions(&self, alarm_service: &ComponentId) -> Vec<DurableSubscription> {
        self.alarm_destinations()
            .into_iter()
            .map(|destination| DurableSubscription {
                client_id: alarm_service.clone(),
                name: self.subscription_name(alarm_service, &destination),
                destination,
            })
            .collect()
    }

    /// Every topic that takes alarms, of all collections.
    #[must_use]
    pub fn alarm_destinations(&self) -> Vec<Destination> {
        let alarms = self
            .collections
            .iter()
            .flat_map(|it| self.destinations(&it.id).alarms());
        deduplicated(alarms.collect())
    }

    /// The name of a component's durable subscription: with the Java system's names the component's id,
    /// else `<component id>@<destination>`.
    #[must_use]
    pub fn subscription_name(&self, component: &ComponentId, destination: &Destination) -> String {
        match self.naming {
            Naming::Reference { .. } => component.to_string(),
            Naming::Collection => format!("{component}@{destination}"),
        }
    }

    /// Whether destinations have the Java system's names. Then other organizations' clocks and brokers are
    /// to be reckoned with, and messages carry no expiry.
    #[must_use]
    pub const fn has_reference_naming(&self) -> bool {
        matches!(self.naming, Naming::Reference { .. })
    }
}

fn derived(base: &Destination, suffix: &str) -> Destination {
    Destination::new(base.kind(), &format!("{}{suffix}", base.name()))
}

/// These destinations, each once, in the order of their first mention.
fn deduplicated(destinations: Vec<Destination>) -> Vec<Destination> {
    let mut unique: Vec<Destination> = Vec::with_capacity(destinations.len());
    for destination in destinations {
        if !unique.contains(&destination) {
            unique.push(destination);
        }
    }
    unique
}
