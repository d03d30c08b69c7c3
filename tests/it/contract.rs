//! What components may rely on, whatever bus they use: each contract is tried over the queue manager in this process,
//! over its STOMP server, over ActiveMQ Classic, and over RabbitMQ.
//!
//! Where a bus does not keep a contract, `restrictions` says why, or the test fails; and what is written there must
//! still be so.

mod clients;
mod fuse;
mod handling;
mod messages;
mod queues;
mod restarts;
mod restrictions;
mod site;
mod topics;
mod units;

use std::{fmt::Write as _, pin::Pin, time::Duration};

use futures_util::{StreamExt as _, future::join_all, stream};
use tokio::time::timeout;

use self::{
    handling::{Broken, Kept},
    restrictions::{Breaks, RESTRICTIONS, Restriction},
    site::{Kind, Site},
};

/// Something that every bus should do.
#[derive(Clone, Copy)]
struct Contract {
    name: &'static str,
    try_it: fn(Site) -> Pin<Box<dyn Future<Output = Kept> + Send>>,
}

macro_rules! contracts {
    ($($module:ident :: $name:ident,)*) => {
        &[$(Contract {
            name: concat!(stringify!($module), "::", stringify!($name)),
            try_it: |site| Box::pin($module::$name(site)),
        },)*]
    };
}

const CONTRACTS: &[Contract] = contracts![
    queues::in_order,
    queues::each_once,
    queues::prefetch_is_the_limit,
    queues::acknowledged_is_gone,
    queues::unacknowledged_returns_to_the_front,
    queues::unsubscribing_returns_what_is_in_hand,
    queues::given_back_comes_again,
    queues::a_message_keeps_its_id,
    queues::expired_is_not_delivered,
    queues::the_group_arrives,
    topics::everybody_gets_everything,
    topics::plain_subscribers_get_the_present,
    topics::a_subscription_is_there_at_once,
    topics::a_durable_subscription_keeps,
    topics::a_durable_subscription_delivers_again,
    topics::a_cancelled_subscription_forgets,
    units::a_commit_answers_and_acknowledges,
    units::an_abort_undoes_all,
    units::who_vanishes_has_sent_nothing,
    units::who_vanishes_has_lost_nothing,
    messages::names_with_dots,
    messages::values_with_special_characters,
    messages::empty_values,
    messages::values_beyond_ascii,
    messages::long_values,
    messages::text,
    messages::no_text_at_all,
    messages::a_mebibyte,
    messages::names_with_spaces_and_apostrophes,
    messages::what_it_is,
    clients::an_answer_to_a_temporary_queue,
    clients::a_live_id_is_refused,
    restarts::persistent_messages_survive,
    restarts::acknowledged_stays_gone,
    restarts::clients_come_back,
    restarts::clients_listen_again,
];

/// How many contracts are tried at a time over one bus.
const AT_ONCE: usize = 3;
/// How long one may take: some start and kill brokers.
const DEADLINE: Duration = Duration::from_secs(180);

/// What came of a contract over the buses, in the order of [`Kind::ALL`].
#[derive(Debug)]
struct Row {
    contract: &'static str,
    kept: Vec<Kept>,
}

/// Only the contracts with this in their name are tried, if it is set.
const ONLY: &str = "PILLARBOX_TEST_CONTRACT";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_bus_keeps_every_contract() {
    let only = std::env::var(ONLY).unwrap_or_default();
    let chosen = CONTRACTS.iter().filter(|it| it.name.contains(&only));
    let chosen: Vec<Contract> = chosen.copied().collect();
    assert!(!chosen.is_empty(), "no contract has '{only}' in its name");
    let columns = Kind::ALL.map(|kind| over(kind, chosen.clone()));
    let columns = join_all(columns).await;
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    let rows: Vec<Row> = chosen
        .iter()
        .map(|contract| Row {
            contract: contract.name,
            kept: columns.iter_mut().filter_map(Iterator::next).collect(),
        })
        .collect();
    println!("{}", table(&rows, RESTRICTIONS));
    let faults = faults(&rows, RESTRICTIONS);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Tries contracts over a bus; the results are in the contracts' order.
async fn over(kind: Kind, contracts: Vec<Contract>) -> Vec<Kept> {
    let trials = contracts.into_iter().map(|contract| async move {
        let trial = async move {
            let site = Site::open(kind, contract.name).await?;
            (contract.try_it)(site).await
        };
        match tokio::spawn(timeout(DEADLINE, trial)).await {
            Ok(Ok(kept)) => kept,
            Ok(Err(_)) => Err(Broken::from("it does not come to an end")),
            Err(panic) => Err(Broken::from(panic.to_string())),
        }
    });
    stream::iter(trials).buffered(AT_ONCE).collect().await
}

/// What has been found, for people: a line for each contract, and what is behind each `no`.
fn table(rows: &[Row], restrictions: &[Restriction]) -> String {
    let mut text = format!("{:48}", "");
    let mut notes = String::new();
    let mut number = 0;
    for kind in Kind::ALL {
        let _ = write!(text, "{kind:12}");
    }
    for row in rows {
        let _ = write!(text, "\n{:48}", row.contract);
        for (kind, kept) in Kind::ALL.into_iter().zip(&row.kept) {
            let Err(broken) = kept else {
                let _ = write!(text, "{:12}", "yes");
                continue;
            };
            number += 1;
            let _ = write!(text, "{:12}", format!("no ({number})"));
            let restriction = restriction(restrictions, kind, row.contract);
            let reason = restriction.map_or("NOT LISTED", |it| it.reason);
            let _ = write!(notes, "\n({number}) {reason} [{broken}]");
        }
    }
    text + &notes
}

/// Contracts that are not kept though nothing restricts them, and restrictions of what is kept or not known.
fn faults(rows: &[Row], restrictions: &[Restriction]) -> Vec<String> {
    let mut faults = Vec::new();
    for row in rows {
        for (kind, kept) in Kind::ALL.into_iter().zip(&row.kept) {
            match (kept, restriction(restrictions, kind, row.contract)) {
                (Err(broken), None) => {
                    faults.push(format!("{kind} does not keep {}: {broken}", row.contract));
                }
                (Ok(()), Some(stale)) if stale.breaks == Breaks::Always => faults.push(format!(
                    "{kind} keeps {} after all, which is listed: {}",
                    row.contract, stale.reason
                )),
                (Err(broken), Some(known)) if !known.covers(broken) => {
                    faults.push(format!(
                        "{kind} does not keep {}, but not as is listed: {broken}",
                        row.contract
                    ));
                }
                (Ok(()), _) | (Err(_), Some(_)) => {}
            }
        }
    }
    let unknown = |it: &&Restriction| CONTRACTS.iter().all(|known| known.name != it.contract);
    let unknown = restrictions.iter().filter(unknown);
    faults.extend(unknown.map(|it| format!("there is no contract {}", it.contract)));
    faults
}

fn restriction<'a>(
    restrictions: &'a [Restriction],
    bus: Kind,
    contract: &str,
) -> Option<&'a Restriction> {
    let mut all = restrictions.iter();
    all.find(|it| it.bus == bus && it.contract == contract)
}

#[test]
fn what_is_not_kept_must_be_listed_and_what_is_listed_not_kept() {
    let row = |contract, broken: &[Kind]| Row {
        contract,
        kept: Kind::ALL
            .map(|kind| match broken.contains(&kind) {
                true => Err("it is not".into()),
                false => Ok(()),
            })
            .into(),
    };
    let listed = |bus, contract| Restriction {
        bus,
        contract,
        breaks: Breaks::Always,
        found: &["it is"],
        reason: "it can't",
    };
    let rows = [
        row("queues::in_order", &[Kind::RabbitMq, Kind::ActiveMq]),
        row("queues::each_once", &[]),
        row("queues::prefetch_is_the_limit", &[Kind::RabbitMq]),
    ];
    let good = [
        listed(Kind::ActiveMq, "queues::in_order"),
        listed(Kind::RabbitMq, "queues::in_order"),
        Restriction {
            breaks: Breaks::Sometimes,
            ..listed(Kind::RabbitMq, "queues::each_once")
        },
        Restriction {
            found: &["nothing comes", "it is not"],
            ..listed(Kind::RabbitMq, "queues::prefetch_is_the_limit")
        },
    ];
    assert_eq!(faults(&rows, &good), [""; 0]);
    let bad = [
        listed(Kind::ActiveMq, "queues::in_order"),
        listed(Kind::Embedded, "queues::each_once"),
        listed(Kind::Embedded, "queues::renamed"),
        Restriction {
            breaks: Breaks::Sometimes,
            found: &["nothing comes"],
            ..listed(Kind::RabbitMq, "queues::prefetch_is_the_limit")
        },
    ];
    let expected = [
        "RabbitMQ does not keep queues::in_order: it is not",
        "embedded keeps queues::each_once after all, which is listed: it can't",
        "RabbitMQ does not keep queues::prefetch_is_the_limit, but not as is listed: it is not",
        "there is no contract queues::renamed",
    ];
    assert_eq!(faults(&rows, &bad), expected);
    let table = table(&rows, &bad);
    assert!(table.contains("(1) it can't [it is not]"), "{table}");
    assert!(table.contains("(2) NOT LISTED [it is not]"), "{table}");
}
