//! Which alarms a pillar sends at the higher levels of its settings, and which not. At the lowest, WARNING, it sends all
//! of them, as the tables of checks say.

use std::collections::BTreeSet;

use pillarbox_messages::{AlarmCode, ResponseCode};
use pillarbox_settings::AlarmLevel;

use super::{
    Outcome, Row, Told, checks,
    stage::{Kind, Spoil, Stage, TOO_NEW},
};

/// A request, and the alarms that it is worth, each with its level.
struct Worth {
    row: Row,
    spoil: Spoil,
    alarms: Vec<(Told, AlarmLevel)>,
}

impl Worth {
    /// What is sent from this level on.
    fn sent(&self, from: AlarmLevel) -> Vec<Told> {
        let sent = self.alarms.iter().filter(|(_, level)| *level >= from);
        sent.map(|(told, _)| *told).collect()
    }
}

/// The level of the alarm that a refusal is worth: it needs a human only if something would have been damaged.
fn level(refusal: Told) -> AlarmLevel {
    match refusal {
        Told(AlarmCode::ChecksumAlarm, _, true) => AlarmLevel::Error,
        _ => AlarmLevel::Warning,
    }
}

/// Of all checks of each operation one that is worth each alarm, and what is worth others.
fn table(kind: Kind) -> Vec<Worth> {
    let mut known = BTreeSet::new();
    let mut table: Vec<Worth> = Vec::new();
    for row in checks::rows(kind) {
        let operation = row.name.split(':').next().unwrap_or_default();
        let first = known.insert(format!("{operation} {:?}", row.expected.alarm));
        let alarms = row.expected.alarm.map(|told| (told, level(told)));
        if first {
            table.push(Worth {
                row,
                spoil: str::to_owned,
                alarms: alarms.into_iter().collect(),
            });
        }
    }
    table.push(too_new(kind));
    table.push(broken(kind));
    if kind == Kind::Full {
        table.push(lost(kind));
    }
    table
}

const NOT_UNDERSTOOD: &[ResponseCode] = &[ResponseCode::RequestNotUnderstoodFailure];

fn put(kind: Kind, name: &str) -> Row {
    Row {
        name: name.to_owned(),
        kind,
        ask: Box::new(|it, offered| it.put(offered).into()),
        with_own: false,
        expected: Outcome {
            codes: NOT_UNDERSTOOD,
            alarm: None,
            audit: &[],
        },
        look: None,
    }
}

/// Of these a pillar may understand nothing any more.
fn too_new(kind: Kind) -> Worth {
    let mut row = put(kind, "PutFile: version");
    row.ask = Box::new(|it, offered| {
        let mut request = it.put(offered);
        request.header.version = TOO_NEW;
        request.into()
    });
    let told = Told(AlarmCode::InvalidMessageVersion, true, false);
    Worth {
        row,
        spoil: str::to_owned,
        alarms: vec![(told, AlarmLevel::Emergency)],
    }
}

fn broken(kind: Kind) -> Worth {
    let told = Told(AlarmCode::InvalidMessage, true, false);
    Worth {
        row: put(kind, "PutFile: schema"),
        spoil: |xml| xml.replacen("FileAddress>", "FileAdress>", 2),
        alarms: vec![(told, AlarmLevel::Emergency)],
    }
}

/// A file that is gone from the pillar's disk: that it can't be delivered matters less than that it is lost.
fn lost(kind: Kind) -> Worth {
    let mut row = put(kind, "GetFile: a file that is lost");
    row.with_own = true;
    row.ask = Box::new(|it, _| {
        it.stage.lose_own();
        let mut request = it.get();
        request.file_id = it.own();
        request.into()
    });
    row.expected.codes = &[ResponseCode::FileNotFoundFailure];
    Worth {
        row,
        spoil: str::to_owned,
        alarms: vec![
            (
                Told(AlarmCode::ComponentFailure, true, true),
                AlarmLevel::Error,
            ),
            (
                Told(AlarmCode::FailedOperation, true, false),
                AlarmLevel::Warning,
            ),
        ],
    }
}

#[tokio::test]
async fn alarms_are_sent_from_the_level_of_the_settings_on() {
    use AlarmLevel::{Emergency, Error};
    let mut faults = Vec::new();
    for (kind, from) in Kind::ALL
        .into_iter()
        .flat_map(|kind| [Error, Emergency].map(|from| (kind, from)))
    {
        let mut stage = Stage::start_at(kind, from).await;
        for worth in table(kind) {
            let (codes, alarms) = stage.perform_at_level(&worth.row, worth.spoil).await;
            let told: Vec<_> = alarms.iter().map(Told::of).collect();
            let wanted = worth.sent(from);
            let name = &worth.row.name;
            println!(
                "{:4} {:9} {name:64} {told:?}",
                kind.id(),
                format!("{from:?}")
            );
            if codes != worth.row.expected.codes || told != wanted {
                let expected = worth.row.expected.codes;
                faults.push(format!(
                    "{name} ({}, {from:?}): {codes:?}, {told:?} instead of {expected:?}, {wanted:?}",
                    kind.id()
                ));
            }
        }
        stage.close().await;
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
