//! Settings of repositories, collections, service level agreements and nodes.
//!
//! This crate owns the two settings files and what they mean: `repository.toml`, shared by all components of
//! a repository, and `node.toml`, of one process, which the environment can override (`PILLARBOX__CLIENT__ID`
//! sets `client.id`, lists are separated by commas). It also owns the names of destinations and of durable
//! subscriptions, which follow from the settings. It opens no connection and touches no file but those two.
//!
//! What always holds:
//!
//! * What is loaded is consistent. Whatever is wrong is told at once, one line each:
//!   `FILE:LINE: cause; next step`.
//! * No key is ignored: an unknown one is an error, and so is one that this version can't honor.
//! * Every destination name says whose it is: no two ids give one name by accident.
//!
//! Modules: [`bus_url`], [`duration`], [`naming`], [`node`], [`pace`], [`problem`], [`repository`], [`size`]; privately
//! `reading` (strict and layered reading of a file), `environment`, `raw_value`, `checker`, `secret`, `template` and
//! `http_url`. `examples/` holds both files with every key explained, and
//! `examples/activemq` those of who joins a collection of Java components.

pub mod bus_url;
mod checker;
pub mod duration;
mod environment;
mod http_url;
pub mod naming;
pub mod node;
pub mod pace;
pub mod problem;
mod raw_value;
mod reading;
pub mod repository;
mod secret;
pub mod size;
mod template;

use std::path::Path;

pub use crate::{
    bus_url::{BusAddress, BusUrl, ForeignUrl},
    naming::{CollectionDestinations, DurableSubscription},
    node::{
        AlarmLevel, AlarmsNode, BackgroundWork, BusServer, ChecksumDownload, ClientNode,
        ExchangePolicy, ExchangeServerNode, Jump, LanePoison, Node, NodeBus, Offline,
        PILLAR_BACKOUT, PillarNode, PillarType, QueueCriterion, QueueHash, QueueLanes, QueueNode,
        QueueOrder, SubscriptionLimit, SubscriptionNode, ZonelessDates,
    },
    pace::Pace,
    problem::{Origin, Problem, SettingsError},
    repository::{Collection, Repository, Requirements, Sla, Timeouts},
    secret::Secret,
};

/// The shared file's name in a settings directory.
pub const REPOSITORY_FILE: &str = "repository.toml";
/// The process's file's name in a settings directory.
pub const NODE_FILE: &str = "node.toml";

/// Reads a settings directory: `repository.toml`, and `node.toml` if it is there. The repository's warnings
/// include what was found when both were compared.
///
/// # Errors
/// Everything that is wrong with the files and with the environment, one line each.
pub fn load(directory: &Path) -> Result<(Repository, Node), SettingsError> {
    let repository = load_repository(directory);
    let node = load_node(directory);
    match (repository, node) {
        (Ok(mut repository), Ok(node)) => {
            let warnings = node.check_against(&repository)?;
            repository.warnings.extend(warnings);
            Ok((repository, node))
        }
        (Err(error), Err(other)) => Err(error.and(other)),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    }
}

/// Reads `repository.toml` of a settings directory.
///
/// # Errors
/// Everything that is wrong with the file, one line each.
pub fn load_repository(directory: &Path) -> Result<Repository, SettingsError> {
    let path = directory.join(REPOSITORY_FILE);
    if !path.exists() && directory.join("RepositorySettings.xml").exists() {
        let cause = "holds RepositorySettings.xml, which this version does not read".to_owned();
        let file = directory.display().to_string();
        return Err(SettingsError::of_file(
            &file,
            cause,
            "write a repository.toml beside it",
        ));
    }
    Repository::load(&path)
}

/// Reads `node.toml` of a settings directory; without the file, a process that plays no role.
///
/// # Errors
/// Everything that is wrong with the file and with the environment, one line each.
pub fn load_node(directory: &Path) -> Result<Node, SettingsError> {
    Node::load(&directory.join(NODE_FILE))
}

#[cfg(test)]
mod tests;
