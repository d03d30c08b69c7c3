//! Whether every destination name says whose it is, and is one.

use pillarbox_messages::Destination;

use crate::{
    checker::Checker,
    naming::{Naming, name_problem},
    repository::Repository,
    template::{Pattern, Role},
};

/// A name that someone has, and what for.
struct Holder<'a> {
    destination: Destination,
    role: Role,
    /// The pillar, if it is one's.
    pillar: Option<&'a str>,
    /// Who holds it, for people.
    text: String,
    path: String,
}

impl Holder<'_> {
    /// Whether both may have one name: collections may share a topic, and so may their alarms; a pillar may
    /// have one queue for several collections.
    fn shares_with(&self, other: &Self) -> bool {
        self.role == other.role && self.pillar == other.pillar
    }
}

struct Clients<'a> {
    pattern: Pattern,
    collection: &'a str,
    path: String,
}

/// Refuses ids and templates that give one name to two, or a name that no bus takes.
pub(super) fn unambiguous(repository: &Repository, checker: &mut Checker<'_>) {
    let holders = holders(repository);
    // An id that can't be in names has been told of.
    let told = checker.has_problems();
    for holder in holders.iter().filter(|_| !told) {
        if let Some((cause, next_step)) = name_problem(&holder.destination, &holder.text) {
            checker.first_problem(&holder.path, cause, next_step);
        }
    }
    for (at, holder) in holders.iter().enumerate() {
        let earlier = holders.iter().take(at).find(|earlier| {
            earlier.destination == holder.destination && !holder.shares_with(earlier)
        });
        if let Some(earlier) = earlier {
            ambiguous(
                &holder.path,
                &holder.destination,
                &earlier.text,
                &holder.text,
                checker,
            );
        }
    }
    match repository.naming {
        Naming::Collection => clients(repository, &holders, checker),
        Naming::Reference { .. } => known_clients(repository, &holders, checker),
    }
}

fn holders(repository: &Repository) -> Vec<Holder<'_>> {
    let mut holders = Vec::new();
    for (at, collection) in repository.collections.iter().enumerate() {
        let names = repository.destinations(&collection.id);
        let path = format!("collections.{at}.id");
        let id = &collection.id;
        let mut hold = |destination, role, pillar, text, path| {
            holders.push(Holder {
                destination,
                role,
                pillar,
                text,
                path,
            });
        };
        let text = format!("the collection `{id}`");
        hold(
            names.collection(),
            Role::Collection,
            None,
            text,
            path.clone(),
        );
        for (pillar_at, pillar) in collection.pillars.iter().enumerate() {
            let text = format!("the pillar `{pillar}` of `{id}`");
            let path = format!("collections.{at}.pillars.{pillar_at}");
            hold(
                names.pillar(pillar),
                Role::Pillar,
                Some(pillar.as_str()),
                text,
                path,
            );
        }
        for alarms in names.alarms() {
            let text = format!("the alarms of `{id}`");
            hold(alarms, Role::Alarms, None, text, path.clone());
        }
    }
    holders
}

fn clients(repository: &Repository, holders: &[Holder<'_>], checker: &mut Checker<'_>) {
    let mut all: Vec<Clients<'_>> = Vec::new();
    for (at, collection) in repository.collections.iter().enumerate() {
        for pattern in repository.destinations(&collection.id).client_patterns() {
            let path = format!("collections.{at}.id");
            let new = Clients {
                pattern,
                collection: collection.id.as_str(),
                path,
            };
            let earlier = all
                .iter()
                .find(|earlier| earlier.pattern.overlaps(&new.pattern));
            if let Some(earlier) = earlier {
                let cause = format!(
                    "two clients of `{}` and `{}` could have one destination",
                    earlier.collection, new.collection
                );
                checker.first_problem(&new.path, cause, RENAME);
            }
            all.push(new);
        }
    }
    for holder in holders {
        let taken = all.iter().find(|clients| {
            // An agreement's alarms may go to the topic that its clients share.
            let shared = holder.role == Role::Alarms && !clients.pattern.depends_on_client();
            !shared && clients.pattern.fits(&holder.destination)
        });
        if let Some(clients) = taken {
            let client = format!("a client of `{}`", clients.collection);
            ambiguous(
                &holder.path,
                &holder.destination,
                &client,
                &holder.text,
                checker,
            );
        }
    }
}

/// With the Java system's names every pillar's could be a client's, so only clients that are known count.
fn known_clients(repository: &Repository, holders: &[Holder<'_>], checker: &mut Checker<'_>) {
    for (at, collection) in repository.collections.iter().enumerate() {
        let names = repository.destinations(&collection.id);
        for (sla_at, sla) in collection.slas.iter().enumerate() {
            for (client_at, client) in sla.clients.iter().enumerate() {
                let own = names.client(client, Some(&sla.id));
                let path = format!("collections.{at}.slas.{sla_at}.clients.{client_at}");
                if let Some(holder) = holders.iter().find(|holder| holder.destination == own) {
                    let client = format!("the client `{client}`");
                    ambiguous(&path, &own, &holder.text, &client, checker);
                }
            }
        }
    }
}

fn ambiguous(
    path: &str,
    destination: &Destination,
    one: &str,
    other: &str,
    checker: &mut Checker<'_>,
) {
    let cause = format!("`{destination}` would be the destination of {one} and of {other}");
    checker.first_problem(path, cause, RENAME);
}

const RENAME: &str = "change an id or a template in `destinations`";
