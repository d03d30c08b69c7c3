//! On which terms a client works with a collection: whom it asks, and how long it waits.

use std::{collections::BTreeSet, time::Duration};

use pillarbox_messages::{CollectionId, ComponentId};
use pillarbox_settings::{Collection, Repository, Sla, Timeouts};

use crate::{error::ClientError, validate};

/// A time so far away that it never comes: a hundred years.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Whom a client asks and where, and how long it waits.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// The collection; none if asked about no one collection.
    pub(crate) collection: Option<CollectionId>,
    /// Where who is wanted is made known.
    pub(crate) asked_in: Vec<CollectionId>,
    pub(crate) contributors: BTreeSet<ComponentId>,
    pub(crate) timeouts: Timeouts,
}

impl Terms {
    /// The terms of the service level agreement that the client works under: the one it names, else the one that
    /// lists it. Without any, all pillars are asked and the repository's times hold.
    pub(crate) fn of(
        repository: &Repository,
        collection: &CollectionId,
        client: &ComponentId,
        sla: Option<&str>,
    ) -> Result<Self, ClientError> {
        let collection = validate::collection(repository, collection)?;
        let (sla, pillars) = agreed(collection, client, sla);
        Ok(Self {
            collection: Some(collection.id.clone()),
            asked_in: vec![collection.id.clone()],
            contributors: pillars.iter().cloned().collect(),
            timeouts: repository.timeouts_for(sla.map(|sla| sla.id.as_str())),
        })
    }

    /// The terms of a question that is about no one collection, to these contributors or to everybody: asked in
    /// every collection that has one of them. The times of the agreement that the client names hold.
    pub(crate) fn of_all(
        repository: &Repository,
        named: Option<&[ComponentId]>,
        client: &ComponentId,
        sla: Option<&str>,
    ) -> Self {
        let services = repository.status_contributors.iter();
        let services = services.filter(|it| named.is_none_or(|named| named.contains(it)));
        let services: BTreeSet<ComponentId> = services.cloned().collect();
        let mut terms = Self {
            collection: None,
            asked_in: Vec::new(),
            contributors: services.clone(),
            timeouts: repository.timeouts_for(sla),
        };
        for collection in &repository.collections {
            let pillars: Vec<&ComponentId> = match named {
                None => agreed(collection, client, sla).1.iter().collect(),
                Some(named) => named
                    .iter()
                    .filter(|it| collection.pillars.contains(it))
                    .collect(),
            };
            // No settings say in which collections a service listens.
            if !pillars.is_empty() || !services.is_empty() {
                terms.asked_in.push(collection.id.clone());
                terms.contributors.extend(pillars.into_iter().cloned());
            }
        }
        terms
    }

    /// The same with those who have an audit trail without being a pillar.
    pub(crate) fn and_services(mut self, repository: &Repository) -> Self {
        let services = repository.audit_contributors.iter().cloned();
        self.contributors.extend(services);
        self
    }

    /// Asks only these, if any are named.
    pub(crate) fn only(mut self, named: Option<Vec<ComponentId>>) -> Self {
        if let Some(named) = named {
            self.contributors = named.into_iter().collect();
        }
        self
    }
}

/// The agreement that a client works under in a collection, if there is one, and the pillars that serve it.
fn agreed<'a>(
    collection: &'a Collection,
    client: &ComponentId,
    sla: Option<&str>,
) -> (Option<&'a Sla>, &'a [ComponentId]) {
    let named = sla.and_then(|id| collection.sla(id));
    let sla = named.or_else(|| collection.sla_of_client(client));
    let pillars = sla.map_or(&collection.pillars, |sla| &sla.pillars);
    (sla, pillars)
}

/// Zero means without limit; a conversation has time for both its phases.
pub(crate) fn limits(timeouts: Timeouts) -> Timeouts {
    let limit = |it: Duration| {
        if it.is_zero() {
            FOREVER
        } else {
            it.min(FOREVER)
        }
    };
    let (identification, operation) = (limit(timeouts.identification), limit(timeouts.operation));
    let both = identification.saturating_add(operation);
    Timeouts {
        identification,
        operation,
        conversation: limit(timeouts.conversation).max(both).min(FOREVER),
    }
}

/// A time limit in milliseconds.
pub(crate) fn millis(limit: Duration) -> i64 {
    i64::try_from(limit.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &str = r#"
[repository]
name = "test"
checksum = "MD5"
status_contributors = ["integrity", "monitor"]
audit_contributors = ["integrity"]

[bus]
url = "embedded:"

[timeouts]
identification = "3m"
operation = "1h"

[[collections]]
id = "books"
pillars = ["north", "south", "sums"]

[[collections.slas]]
id = "books-ingest"
clients = ["ingest-1"]
pillars = ["north", "south"]
operations = ["PutFile", "GetFile"]
operation_timeout = "5m"

[[collections]]
id = "dvds"
pillars = ["west"]
"#;

    #[test]
    fn an_agreement_says_whom_to_ask_and_how_long_to_wait() {
        let repository = Repository::from_toml_str(SETTINGS, "repository.toml").unwrap();
        let terms = |collection: &str, client: &str, sla| {
            let terms = Terms::of(&repository, &collection.into(), &client.into(), sla).unwrap();
            let names: Vec<String> = terms.contributors.iter().map(ToString::to_string).collect();
            (names.join(" "), terms.timeouts.operation.as_secs() / 60)
        };
        let under = ("north south".to_owned(), 5);
        assert_eq!(terms("books", "ingest-1", None), under);
        assert_eq!(terms("books", "anybody", Some("books-ingest")), under);
        assert_eq!(
            terms("books", "anybody", None),
            ("north south sums".to_owned(), 60)
        );
        assert_eq!(
            terms("dvds", "ingest-1", Some("books-ingest")),
            ("west".to_owned(), 60)
        );
        assert!(Terms::of(&repository, &"nosuch".into(), &"a".into(), None).is_err());
    }

    #[test]
    fn a_question_about_no_collection_is_asked_in_each_that_has_a_contributor() {
        let repository = Repository::from_toml_str(SETTINGS, "repository.toml").unwrap();
        let terms = |named: Option<&[ComponentId]>, client: &str| {
            let terms = Terms::of_all(&repository, named, &client.into(), None);
            let ids: Vec<&str> = terms.contributors.iter().map(AsRef::as_ref).collect();
            (terms.asked_in, ids.join(" "))
        };
        let (books, dvds) = (CollectionId::from("books"), CollectionId::from("dvds"));
        let both = vec![books, dvds.clone()];
        let everybody = "integrity monitor north south sums west".to_owned();
        assert_eq!(terms(None, "anybody"), (both.clone(), everybody));
        let under = "integrity monitor north south west".to_owned();
        assert_eq!(terms(None, "ingest-1"), (both.clone(), under));
        let service = [ComponentId::from("monitor")];
        assert_eq!(
            terms(Some(&service), "anybody"),
            (both, "monitor".to_owned())
        );
        let named = [ComponentId::from("west")];
        assert_eq!(
            terms(Some(&named), "anybody"),
            (vec![dvds], "west".to_owned())
        );
    }

    #[test]
    fn services_that_have_an_audit_trail_are_asked_beside_the_pillars() {
        let repository = Repository::from_toml_str(SETTINGS, "repository.toml").unwrap();
        let terms = Terms::of(&repository, &"dvds".into(), &"a".into(), None).unwrap();
        let asked = |terms: Terms| terms.contributors.into_iter().map(String::from);
        let all: Vec<String> = asked(terms.clone().and_services(&repository)).collect();
        assert_eq!(all, ["integrity", "west"]);
        let only = Some(vec!["west".into()]);
        let some: Vec<String> = asked(terms.and_services(&repository).only(only)).collect();
        assert_eq!(some, ["west"]);
    }

    #[test]
    fn no_limit_is_a_long_time() {
        let none = Timeouts {
            identification: Duration::ZERO,
            operation: Duration::MAX,
            conversation: Duration::from_secs(1),
        };
        assert_eq!(
            limits(none),
            Timeouts {
                identification: FOREVER,
                operation: FOREVER,
                conversation: FOREVER,
            }
        );
        assert!(millis(FOREVER) > 0);
        let seconds = Duration::from_secs;
        let conversation = |conversation| {
            let timeouts = Timeouts {
                identification: seconds(180),
                operation: seconds(3600),
                conversation,
            };
            limits(timeouts).conversation
        };
        assert_eq!(conversation(seconds(7200)), seconds(7200));
        assert_eq!(conversation(seconds(7)), seconds(3780));
        assert_eq!(conversation(Duration::ZERO), FOREVER);
    }
}
