//! From `node.toml` as written to a process that makes sense, alone and in its repository.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use pillarbox_messages::{ComponentId, wording::count};

use super::{
    AlarmsNode, BusServer, ClientNode, ExchangePolicy, ExchangeServerNode, Node, PillarNode,
    PillarType, background, bus, moving, queues,
    raw::{RawExchange, RawExchangeServer, RawNode, RawPillar},
    subscriptions,
};
use crate::{
    checker::Checker,
    http_url::{http_base, normal_host, offer_base},
    problem::SettingsError,
    raw_value::{OneOf, Text},
    reading::Document,
    repository::{Repository, Sla},
};

/// Checks everything that can be known from the file and the environment alone. Relative paths are taken
/// from `base`.
pub(super) fn node(document: Document<RawNode>, base: &Path) -> Result<Node, SettingsError> {
    let Document { values: raw, lines } = document;
    let mut checker = Checker::new(&lines);
    let data = raw.data.as_deref().unwrap_or_else(|| Path::new(DATA));
    let bus = bus::bus(&raw.bus, &mut checker);
    let pillars = pillars(&raw, base, &mut checker);
    let bus_server = raw.bus_server.as_ref().map(|server| {
        let listen: Vec<_> = server
            .listen
            .iter()
            .map(|Text(address)| address.0)
            .collect();
        if listen.is_empty() {
            checker.require::<()>("bus_server.listen", None, "listen = [\"127.0.0.1:61613\"]");
        }
        let queues = queues::queues(&server.queues, &mut checker);
        let durable_topics = subscriptions::durable_topics(&server.durable_topics, &mut checker);
        let subscriptions = subscriptions::subscriptions(&server.subscriptions, &mut checker);
        BusServer {
            listen,
            queues,
            durable_topics,
            subscriptions,
        }
    });
    let exchange_server = raw
        .exchange_server
        .as_ref()
        .and_then(|server| exchange_server(server, &mut checker));
    let exchange = exchange_policy(&raw.exchange, base, &mut checker);
    let client = client(&raw, &mut checker);
    let alarms = raw.alarms.as_ref().and_then(|alarms| {
        let id = checker.require("alarms.id", alarms.id.as_ref(), "id = \"alarm-service\"")?;
        checker.id("alarms.id", "alarm service", id);
        let zoneless = alarms.accept_zoneless.map(|OneOf(it)| it);
        Some(AlarmsNode {
            id: id.as_str().into(),
            accept_zoneless: zoneless.unwrap_or_default(),
        })
    });
    own_ids_differ(&raw, &mut checker);
    let problems = checker.finish();
    let node = Node {
        data: base.join(data),
        bus,
        pillars,
        bus_server,
        exchange_server,
        exchange,
        client,
        alarms,
        lines,
    };
    SettingsError::unless_empty(problems, node)
}

fn pillars(raw: &RawNode, base: &Path, checker: &mut Checker<'_>) -> Vec<PillarNode> {
    let pillars = raw.pillars.iter().enumerate();
    let pillars: Vec<PillarNode> = pillars
        .filter_map(|(at, raw)| pillar(&format!("pillars.{at}"), raw, base, checker))
        .collect();
    let mut seen: Vec<(&Path, &ComponentId)> = Vec::new();
    for (at, pillar) in pillars.iter().enumerate() {
        for (directory_at, directory) in pillar.directories.iter().enumerate() {
            let nested = seen
                .iter()
                .find(|(other, _)| other.starts_with(directory) || directory.starts_with(other));
            if let Some((_, owner)) = nested {
                let path = format!("pillars.{at}.directories.{directory_at}");
                let directory = directory.display();
                let cause = format!(
                    "`{directory}` is inside, around or the same as a directory of `{owner}`"
                );
                checker.problem(&path, cause, "give every archive directory its own place");
            }
            seen.push((directory, &pillar.id));
        }
    }
    pillars
}

fn pillar(
    path: &str,
    raw: &RawPillar,
    base: &Path,
    checker: &mut Checker<'_>,
) -> Option<PillarNode> {
    let id_path = format!("{path}.id");
    let id = checker.require(&id_path, raw.id.as_ref(), "id = \"north\"");
    if let Some(id) = id {
        checker.id(&id_path, "pillar", id);
    }
    let pillar_type = raw.pillar_type.map_or(PillarType::File, |OneOf(it)| it);
    keeps_what_it_can(path, raw, pillar_type, checker);
    background::has_files(path, raw, pillar_type, checker);
    checker.once(&format!("{path}.sla"), "agreement", &raw.sla);
    Some(PillarNode {
        id: id?.as_str().into(),
        pillar_type,
        download: raw.download.map(|OneOf(it)| it).unwrap_or_default(),
        directories: resolved(base, &raw.directories),
        minimum_size_left: raw
            .minimum_size_left
            .map_or(MINIMUM_SIZE_LEFT, |size| size.0),
        time_to_start_deliver: duration(raw.time_to_start_deliver.as_ref(), TIME_TO_START_DELIVER),
        max_age_for_checksums: duration(raw.max_age_for_checksums.as_ref(), MAX_AGE_FOR_CHECKSUMS),
        recheck: background::recheck(path, raw, checker),
        reconcile: background::reconcile(path, raw, checker),
        retain_for: background::retain_for(path, raw, checker),
        purge: background::purge(path, raw, checker),
        alarm_level: raw.alarm_level.map(|OneOf(it)| it).unwrap_or_default(),
        accept_zoneless: raw.accept_zoneless.map(|OneOf(it)| it).unwrap_or_default(),
        sla: raw.sla.clone(),
        first_audit_number: raw.first_audit_number,
    })
}

fn keeps_what_it_can(
    path: &str,
    raw: &RawPillar,
    pillar_type: PillarType,
    checker: &mut Checker<'_>,
) {
    let id = raw.id.as_deref().unwrap_or_default();
    let directories = format!("{path}.directories");
    match pillar_type {
        PillarType::File if raw.directories.is_empty() => {
            let cause = format!("the pillar `{id}` has no archive directory");
            checker.problem(&directories, cause, "add directories = [\"/archive/1\"]");
        }
        PillarType::File if raw.download.is_some() => {
            let cause = format!("`download` is for CHECKSUM pillars, but `{id}` is a FILE pillar");
            checker.problem(&format!("{path}.download"), cause, "remove it");
        }
        PillarType::Checksum if !raw.directories.is_empty() => {
            let cause = format!("`{id}` is a CHECKSUM pillar, which keeps no files");
            checker.problem(&directories, cause, "remove `directories`");
        }
        PillarType::File | PillarType::Checksum => {}
    }
    for (at, directory) in raw.directories.iter().enumerate() {
        if directory.as_os_str().is_empty() {
            let cause = format!("an archive directory of `{id}` has an empty name");
            checker.problem(&format!("{directories}.{at}"), cause, "write its path");
        }
    }
}

fn exchange_server(
    raw: &RawExchangeServer,
    checker: &mut Checker<'_>,
) -> Option<ExchangeServerNode> {
    let example = "listen = \"127.0.0.1:8181\"";
    let listen = checker.require("exchange_server.listen", raw.listen.as_ref(), example);
    let (path, example) = (
        "exchange_server.public_url",
        "public_url = \"http://127.0.0.1:8181/\"",
    );
    let url = checker.require(path, raw.public_url.as_ref(), example);
    let public_url = url.and_then(|url| checker.accept(path, http_base(url)));
    let expiry = duration(raw.expiry.as_ref(), EXCHANGE_EXPIRY);
    if expiry.is_zero() {
        let cause = "`expiry` is zero, so that no file could be fetched".to_owned();
        checker.problem(
            "exchange_server.expiry",
            cause,
            "write a longer time, as in \"24h\"",
        );
    }
    Some(ExchangeServerNode {
        listen: listen?.0.0,
        public_url: public_url?,
        expiry,
        maximum_file_size: raw.maximum_file_size.map(|size| size.0),
    })
}

fn exchange_policy(raw: &RawExchange, base: &Path, checker: &mut Checker<'_>) -> ExchangePolicy {
    let hosts = raw.hosts.as_ref().map(|hosts| {
        let hosts = hosts.iter().enumerate().filter_map(|(at, host)| {
            let normal = normal_host(host).ok_or_else(|| {
                format!("`{host}` is no host with a port; write it as in \"127.0.0.1:8181\"")
            });
            checker.accept(&format!("exchange.hosts.{at}"), normal)
        });
        hosts.collect()
    });
    ExchangePolicy {
        hosts,
        file_roots: resolved(base, &raw.file_roots),
        ca_files: resolved(base, &raw.ca),
    }
}

fn client(raw: &RawNode, checker: &mut Checker<'_>) -> Option<ClientNode> {
    let raw = raw.client.as_ref()?;
    if let Some(id) = &raw.id {
        checker.id("client.id", "client", id);
    }
    let exchange = raw.exchange.as_deref().map(offer_base);
    Some(ClientNode {
        id: raw.id.as_deref().map(ComponentId::from),
        sla: raw.sla.clone(),
        exchange: exchange.and_then(|url| checker.accept("client.exchange", url)),
        accept_zoneless: raw.accept_zoneless.map(|OneOf(it)| it).unwrap_or_default(),
    })
}

/// Each component has its own connection, and a bus refuses two connections with one id.
fn own_ids_differ(raw: &RawNode, checker: &mut Checker<'_>) {
    let pillars = raw.pillars.iter().enumerate();
    let pillars = pillars.map(|(at, pillar)| (format!("pillars.{at}.id"), pillar.id.as_ref()));
    let client = raw.client.as_ref().and_then(|client| client.id.as_ref());
    let alarms = raw.alarms.as_ref().and_then(|alarms| alarms.id.as_ref());
    let others = [
        ("client.id".to_owned(), client),
        ("alarms.id".to_owned(), alarms),
    ];
    let mut seen: Vec<&String> = Vec::new();
    for (path, id) in pillars.chain(others) {
        let Some(id) = id else { continue };
        if seen.contains(&id) {
            let cause = format!("two components of this process have the id `{id}`");
            checker.problem(&path, cause, "give each its own id");
        }
        seen.push(id);
    }
}

/// Checks a process against its repository; see [`Node::check_against`].
pub(super) fn against(node: &Node, repository: &Repository) -> Result<Vec<String>, SettingsError> {
    let mut checker = Checker::new(&node.lines);
    let mut warnings = match node.bus_server {
        // It needs no way to its bus.
        Some(_) => Vec::new(),
        None => node.effective_bus(repository).notices.clone(),
    };
    for (at, pillar) in node.pillars.iter().enumerate() {
        pillar_against(&format!("pillars.{at}"), pillar, repository, &mut checker);
        warnings.extend(aging_checksums(pillar, repository));
    }
    enough_file_pillars(node, repository, &mut checker);
    if let Some(server) = &node.bus_server {
        moving::against(&server.queues, repository, &mut checker);
    }
    if let Some(client) = &node.client {
        client_against(client, repository, &mut checker);
    }
    if let Some(alarms) = &node.alarms {
        no_pillar("alarms.id", &alarms.id, repository, &mut checker);
    }
    SettingsError::unless_empty(checker.finish(), warnings)
}

fn pillar_against(
    path: &str,
    pillar: &PillarNode,
    repository: &Repository,
    checker: &mut Checker<'_>,
) {
    let collections = &repository.collections;
    let known = collections
        .iter()
        .flat_map(|it| it.pillars.iter().map(ComponentId::as_str));
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    checker.known(&format!("{path}.id"), "pillar", pillar.id.as_str(), &known);
    for (at, id) in pillar.sla.iter().enumerate() {
        let path = format!("{path}.sla.{at}");
        match sla(&path, id, repository, checker) {
            Some(sla) if !sla.pillars.contains(&pillar.id) => {
                let cause = format!(
                    "the agreement `{id}` does not name the pillar `{}`",
                    pillar.id
                );
                checker.problem(&path, cause, "add the pillar to it, or remove it here");
            }
            _ => {}
        }
    }
}

fn sla<'r>(
    path: &str,
    id: &str,
    repository: &'r Repository,
    checker: &mut Checker<'_>,
) -> Option<&'r Sla> {
    let slas: Vec<&Sla> = repository
        .collections
        .iter()
        .flat_map(|it| &it.slas)
        .collect();
    let known: Vec<&str> = slas.iter().map(|sla| sla.id.as_str()).collect();
    checker.known(path, "service level agreement", id, &known);
    slas.into_iter().find(|sla| sla.id == id)
}

/// Agreements that promise fresher checksums than this pillar keeps.
fn aging_checksums<'a>(
    pillar: &'a PillarNode,
    repository: &'a Repository,
) -> impl Iterator<Item = String> + 'a {
    let slas = repository
        .collections
        .iter()
        .flat_map(|collection| &collection.slas);
    let slas = slas.filter(|sla| sla.pillars.contains(&pillar.id));
    let age = match pillar.max_age_for_checksums {
        Duration::ZERO => Duration::MAX,
        age => age,
    };
    let broken =
        slas.filter(move |sla| sla.max_checksum_age.is_some_and(|promised| promised < age));
    broken.map(|sla| {
        format!(
            "the pillar `{}` computes checksums again later than the agreement `{}` promises (max_age_for_checksums \
             against max_checksum_age)",
            pillar.id, sla.id
        )
    })
}

/// Full copies are kept by FILE pillars only; here is known which pillars of this process are others.
fn enough_file_pillars(node: &Node, repository: &Repository, checker: &mut Checker<'_>) {
    for sla in repository
        .collections
        .iter()
        .flat_map(|collection| &collection.slas)
    {
        let others = node.pillars.iter().enumerate().filter(|(_, pillar)| {
            pillar.pillar_type == PillarType::Checksum && sla.pillars.contains(&pillar.id)
        });
        let others: Vec<usize> = others.map(|(at, _)| at).collect();
        let files = sla.pillars.len().saturating_sub(others.len());
        let (Some(copies), Some(at)) = (sla.min_copies, others.first()) else {
            continue;
        };
        if copies > files {
            let cause = format!(
                "the agreement `{}` wants {}, but at most {files} of its pillars are FILE pillars",
                sla.id,
                count(copies, "full copy")
            );
            let path = format!("pillars.{at}.type");
            checker.problem(
                &path,
                cause,
                "lower its min_copies, or make this a FILE pillar",
            );
        }
    }
}

fn client_against(client: &ClientNode, repository: &Repository, checker: &mut Checker<'_>) {
    if let Some(id) = &client.id {
        no_pillar("client.id", id, repository, checker);
        if let Some((cause, next_step)) = repository.client_problem(id) {
            checker.first_problem("client.id", cause, next_step);
        }
    }
    let sla = client
        .sla
        .as_deref()
        .and_then(|id| sla("client.sla", id, repository, checker));
    if let (Some(sla), Some(id)) = (sla, &client.id)
        && !sla.clients.contains(id)
    {
        let cause = format!("the agreement `{}` does not name the client `{id}`", sla.id);
        checker.problem(
            "client.sla",
            cause,
            "add the client to it, or name another agreement",
        );
    }
}

fn no_pillar(path: &str, id: &ComponentId, repository: &Repository, checker: &mut Checker<'_>) {
    if repository.collections_of_pillar(id).next().is_some() {
        let cause = format!("`{id}` is the id of a pillar");
        checker.problem(path, cause, "give this component its own id");
    }
}

fn resolved(base: &Path, paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().map(|path| base.join(path)).collect()
}

pub(super) fn duration(
    given: Option<&Text<crate::duration::HumaneDuration>>,
    default: Duration,
) -> Duration {
    given.map_or(default, |Text(duration)| duration.0)
}

const DATA: &str = "var";
const MINIMUM_SIZE_LEFT: u64 = 1 << 30;
const TIME_TO_START_DELIVER: Duration = Duration::from_secs(1);
const MAX_AGE_FOR_CHECKSUMS: Duration = Duration::from_secs(60 * 86_400);
const EXCHANGE_EXPIRY: Duration = Duration::from_secs(86_400);

#[cfg(test)]
mod tests;
