//! On which terms a client works with a collection: whom it asks, and how long it waits.

use std::{collections::BTreeSet, time::Duration};

use pillarbox_messages::{CollectionId, ComponentId};
use pillarbox_settings::{Repository, Timeouts};

use crate::{error::ClientError, validate};

/// A time so far away that it never comes: a hundred years.
const FOREVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Whom a client asks in a collection, and how long it waits.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) collection: CollectionId,
    pub(crate) pillars: BTreeSet<ComponentId>,
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
        let named = sla.and_then(|id| collection.sla(id));
        let sla = named.or_else(|| collection.sla_of_client(client));
        let pillars = sla.map_or(&collection.pillars, |sla| &sla.pillars);
        Ok(Self {
            collection: collection.id.clone(),
            pillars: pillars.iter().cloned().collect(),
            timeouts: repository.timeouts_for(sla.map(|sla| sla.id.as_str())),
        })
    }
}

/// Zero means without limit.
pub(crate) fn limits(timeouts: Timeouts) -> Timeouts {
    let limit = |it: Duration| {
        if it.is_zero() {
            FOREVER
        } else {
            it.min(FOREVER)
        }
    };
    Timeouts {
        identification: limit(timeouts.identification),
        operation: limit(timeouts.operation),
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
            let names: Vec<String> = terms.pillars.iter().map(ToString::to_string).collect();
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
    fn no_limit_is_a_long_time() {
        let none = Timeouts {
            identification: Duration::ZERO,
            operation: Duration::MAX,
        };
        assert_eq!(
            limits(none),
            Timeouts {
                identification: FOREVER,
                operation: FOREVER
            }
        );
        assert!(millis(FOREVER) > 0);
    }
}
