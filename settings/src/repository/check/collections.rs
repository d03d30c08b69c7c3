//! Collections and their service level agreements.

use std::collections::BTreeMap;

use pillarbox_messages::{ComponentId, DestinationKind, Operation};

use super::{no_template_with_reference, positive, set_templates};
use crate::{
    checker::Checker,
    naming::{Naming, Templates},
    raw_value::Text,
    repository::{
        Collection, Sla,
        raw::{RawCollection, RawRepository, RawSla},
    },
    template::{Placeholder, Role, Template},
};

/// What is the same for all collections.
struct Context<'a> {
    naming: &'a Naming,
    templates: &'a Templates,
}

/// All collections, or none if one of them makes no sense.
pub(super) fn all(
    raw: &RawRepository,
    naming: &Naming,
    templates: &Templates,
    checker: &mut Checker<'_>,
) -> Option<Vec<Collection>> {
    if raw.collections.is_empty() {
        let next_step = "add [[collections]] with id and pillars";
        checker.problem(
            "collections",
            "there is no collection".to_owned(),
            next_step,
        );
    }
    unique_ids(raw, checker);
    let context = Context { naming, templates };
    let collections: Vec<Option<Collection>> = raw
        .collections
        .iter()
        .enumerate()
        .map(|(at, raw)| context.collection(&format!("collections.{at}"), raw, checker))
        .collect();
    collections.into_iter().collect()
}

fn unique_ids(raw: &RawRepository, checker: &mut Checker<'_>) {
    let (mut collections, mut slas) = (Vec::new(), Vec::new());
    for (at, collection) in raw.collections.iter().enumerate() {
        let path = format!("collections.{at}");
        unique(
            "collection",
            collection.id.as_ref(),
            &mut collections,
            &path,
            checker,
        );
        for (sla_at, sla) in collection.slas.iter().enumerate() {
            let path = format!("{path}.slas.{sla_at}");
            unique(
                "service level agreement",
                sla.id.as_ref(),
                &mut slas,
                &path,
                checker,
            );
        }
    }
}

fn unique<'a>(
    what: &str,
    id: Option<&'a String>,
    seen: &mut Vec<&'a String>,
    path: &str,
    checker: &mut Checker<'_>,
) {
    let Some(id) = id else { return };
    if seen.contains(&id) {
        let cause = format!("the {what} id `{id}` is used twice");
        checker.problem(&format!("{path}.id"), cause, "give each its own id");
    }
    seen.push(id);
}

impl Context<'_> {
    fn collection(
        &self,
        path: &str,
        raw: &RawCollection,
        checker: &mut Checker<'_>,
    ) -> Option<Collection> {
        let id_path = format!("{path}.id");
        let id = checker.require(&id_path, raw.id.as_ref(), "id = \"books\"");
        if let Some(id) = id {
            checker.id(&id_path, "collection", id);
        }
        pillars(path, raw, checker);
        let templates = self.templates(path, raw, checker);
        let pillar_templates = self.pillar_templates(path, raw, checker);
        let slas: Vec<Option<Sla>> = raw
            .slas
            .iter()
            .enumerate()
            .map(|(at, sla)| self.sla(&format!("{path}.slas.{at}"), raw, sla, checker))
            .collect();
        if raw.slas.is_empty() {
            no_sla_placeholder(path, &templates, raw, checker);
        }
        Some(Collection {
            id: id?.as_str().into(),
            name: raw.name.clone(),
            pillars: ids(&raw.pillars),
            slas: slas.into_iter().collect::<Option<_>>()?,
            templates,
            pillar_templates,
        })
    }

    fn templates(&self, path: &str, raw: &RawCollection, checker: &mut Checker<'_>) -> Templates {
        let mut templates = self.templates.clone();
        let own = &raw.destinations;
        let given = [&own.collection, &own.pillar, &own.client, &own.alarms];
        let path = format!("{path}.destinations");
        if matches!(self.naming, Naming::Collection) {
            set_templates(&mut templates, given, &path, checker);
            return templates;
        }
        for (role, _) in Role::ALL
            .iter()
            .zip(given)
            .filter(|(_, text)| text.is_some())
        {
            no_template_with_reference(&format!("{path}.{}", role.key()), role.key(), checker);
        }
        templates
    }

    fn pillar_templates(
        &self,
        path: &str,
        raw: &RawCollection,
        checker: &mut Checker<'_>,
    ) -> BTreeMap<ComponentId, Template> {
        let mut templates = BTreeMap::new();
        for (pillar, text) in &raw.pillar_destinations {
            let path = format!("{path}.pillar_destinations.{pillar}");
            checker.known(&path, "pillar", pillar, &texts(&raw.pillars));
            let Some(template) = checker.accept(&path, Template::parse(text, Role::Pillar)) else {
                continue;
            };
            if matches!(self.naming, Naming::Reference { .. }) {
                pillar_template_with_reference(&path, pillar, &template, checker);
            }
            templates.insert(ComponentId::from(pillar.as_str()), template);
        }
        templates
    }

    fn sla(
        &self,
        path: &str,
        collection: &RawCollection,
        raw: &RawSla,
        checker: &mut Checker<'_>,
    ) -> Option<Sla> {
        let id_path = format!("{path}.id");
        let id = checker.require(&id_path, raw.id.as_ref(), "id = \"books-ingest\"");
        if let Some(id) = id {
            checker.id(&id_path, "service level agreement", id);
        }
        let pillars = sla_pillars(path, collection, raw, checker);
        sla_clients(path, collection, raw, checker);
        let operations = operations(path, raw.operations.as_deref(), checker);
        positive(
            &format!("{path}.identification_timeout"),
            raw.identification_timeout.as_ref(),
            checker,
        );
        positive(
            &format!("{path}.operation_timeout"),
            raw.operation_timeout.as_ref(),
            checker,
        );
        min_copies(path, raw, pillars.len(), checker);
        let own = &raw.destinations;
        let client = self.sla_template(path, Role::Client, own.client.as_ref(), checker);
        let alarms = self.sla_template(path, Role::Alarms, own.alarms.as_ref(), checker);
        Some(Sla {
            id: id?.clone(),
            clients: ids(&raw.clients),
            pillars: ids(pillars),
            operations,
            identification_timeout: raw.identification_timeout.as_ref().map(|it| it.0.0),
            operation_timeout: raw.operation_timeout.as_ref().map(|it| it.0.0),
            min_copies: raw
                .min_copies
                .and_then(|copies| usize::try_from(copies).ok()),
            time_to_deliver: raw.time_to_deliver.as_ref().map(|Text(it)| it.0),
            max_checksum_age: raw.max_checksum_age.as_ref().map(|Text(it)| it.0),
            alarm_to: raw.alarm_to.clone(),
            client_template: client,
            alarms_template: alarms,
        })
    }

    fn sla_template(
        &self,
        path: &str,
        role: Role,
        text: Option<&String>,
        checker: &mut Checker<'_>,
    ) -> Option<Template> {
        let path = format!("{path}.destinations.{}", role.key());
        let template = checker.accept(&path, Template::parse(text?, role))?;
        if matches!(self.naming, Naming::Reference { .. }) {
            no_template_with_reference(&path, role.key(), checker);
        }
        Some(template)
    }
}

fn pillars(path: &str, raw: &RawCollection, checker: &mut Checker<'_>) {
    let path = format!("{path}.pillars");
    if raw.pillars.is_empty() {
        let id = raw.id.as_deref().unwrap_or_default();
        let cause = format!("the collection `{id}` has no pillars");
        checker.problem(
            &path,
            cause,
            "name at least one, as in pillars = [\"north\"]",
        );
    }
    checker.once(&path, "pillar", &raw.pillars);
    for (at, pillar) in raw.pillars.iter().enumerate() {
        let path = format!("{path}.{at}");
        checker.id(&path, "pillar", pillar);
        if RESERVED.contains(&pillar.as_str()) {
            let cause = format!("a pillar can't be called `{pillar}`, which destination names use");
            checker.problem(&path, cause, "rename the pillar");
        }
    }
}

fn pillar_template_with_reference(
    path: &str,
    pillar: &str,
    template: &Template,
    checker: &mut Checker<'_>,
) {
    let cause = match template.kind() {
        DestinationKind::TemporaryQueue => {
            format!(
                "the temporary queue of `{pillar}` can't be reached by peers with the reference scheme"
            )
        }
        DestinationKind::Topic | DestinationKind::Queue => {
            format!("the destination of `{pillar}` has no meaning with the reference scheme")
        }
    };
    checker.problem(path, cause, "remove it, or remove scheme = \"reference\"");
}

fn no_sla_placeholder(
    path: &str,
    templates: &Templates,
    raw: &RawCollection,
    checker: &mut Checker<'_>,
) {
    for role in [Role::Client, Role::Alarms] {
        if templates.of(role).uses(Placeholder::Sla) {
            let id = raw.id.as_deref().unwrap_or_default();
            let key = role.key();
            let cause = format!(
                "the template `{key}` has {{sla}}, but the collection `{id}` has no service level agreement"
            );
            checker.problem(
                path,
                cause,
                "add [[collections.slas]], or another template for it",
            );
        }
    }
}

fn sla_pillars<'a>(
    path: &str,
    collection: &'a RawCollection,
    raw: &'a RawSla,
    checker: &mut Checker<'_>,
) -> &'a [String] {
    let Some(pillars) = &raw.pillars else {
        return &collection.pillars;
    };
    let path = format!("{path}.pillars");
    if pillars.is_empty() {
        let cause = "a service level agreement names no pillars".to_owned();
        checker.problem(
            &path,
            cause,
            "name at least one, or leave the key out for all of them",
        );
    }
    checker.once(&path, "pillar", pillars);
    for (at, pillar) in pillars.iter().enumerate() {
        checker.known(
            &format!("{path}.{at}"),
            "pillar",
            pillar,
            &texts(&collection.pillars),
        );
    }
    pillars
}

fn sla_clients(path: &str, collection: &RawCollection, raw: &RawSla, checker: &mut Checker<'_>) {
    let path = format!("{path}.clients");
    checker.once(&path, "client", &raw.clients);
    for (at, client) in raw.clients.iter().enumerate() {
        let path = format!("{path}.{at}");
        checker.id(&path, "client", client);
        if collection.pillars.contains(client) {
            let cause = format!("`{client}` is a client and a pillar of one collection");
            checker.problem(&path, cause, "give the client its own id");
        }
    }
}

fn operations(path: &str, names: Option<&[String]>, checker: &mut Checker<'_>) -> Vec<Operation> {
    let Some(names) = names else {
        return Operation::ALL.to_vec();
    };
    let path = format!("{path}.operations");
    checker.once(&path, "operation", names);
    let known: Vec<&str> = Operation::ALL
        .iter()
        .map(|operation| operation.as_str())
        .collect();
    let mut operations = Vec::new();
    for (at, name) in names.iter().enumerate() {
        checker.known(&format!("{path}.{at}"), "operation", name, &known);
        operations.extend(name.parse::<Operation>());
    }
    operations
}

fn min_copies(path: &str, raw: &RawSla, pillars: usize, checker: &mut Checker<'_>) {
    let Some(copies) = raw.min_copies else { return };
    let path = format!("{path}.min_copies");
    let possible = usize::try_from(copies).is_ok_and(|copies| copies <= pillars);
    if copies == 0 {
        let cause =
            "`min_copies` is 0, so that a put would be complete with nothing stored".to_owned();
        checker.problem(
            &path,
            cause,
            "write at least 1, or leave it out for all pillars",
        );
    } else if !possible {
        let cause = format!("`min_copies` is {copies}, but the agreement has {pillars} pillar(s)");
        checker.problem(&path, cause, "lower it, or add pillars");
    }
}

fn ids(names: &[String]) -> Vec<ComponentId> {
    names
        .iter()
        .map(|name| ComponentId::from(name.as_str()))
        .collect()
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Words in the default destination names.
const RESERVED: [&str; 2] = ["client", "alarms"];
