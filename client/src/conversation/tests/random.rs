//! Whatever the peers and the network do: exactly one last event, and nothing after it.

use std::collections::{BTreeMap, BTreeSet};

use pillarbox_messages::{
    Alarm, AlarmCode, AlarmMessage, ChecksumType, ComponentId, Message, ResponseCode, Timestamp,
};

use super::{
    listing::{
        checksums_procedure, ids_final, ids_identify, ids_procedure, sums_final, sums_identify,
    },
    support::{
        ACCEPTED, ADDRESS, Bench, COMPLETED, OTHERS, OURS, POSITIVE, context, get_final,
        get_identify, get_progress, header, md5, put_duplicate, put_final, put_identify,
        put_procedure, put_progress,
    },
};
use crate::{
    conversation::{Input, Procedure, get_file::GetFileProcedure},
    event::EventKind,
};

/// `SplitMix64`: the same numbers for the same seed, everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[usize::try_from(self.below(items.len() as u64)).unwrap()]
    }
}

const PILLARS: [&str; 4] = ["a", "b", "c", "d"];
const SEEDS: u64 = 400;

const FINAL_CODES: [ResponseCode; 8] = [
    COMPLETED,
    COMPLETED,
    COMPLETED,
    ResponseCode::Failure,
    ResponseCode::FileTransferFailure,
    ResponseCode::DuplicateFileFailure,
    ResponseCode::OperationProgress,
    ResponseCode::IdentificationNegative,
];
const IDENTIFY_CODES: [ResponseCode; 7] = [
    POSITIVE,
    POSITIVE,
    POSITIVE,
    POSITIVE,
    ResponseCode::RequestNotSupported,
    ResponseCode::FileNotFoundFailure,
    ACCEPTED,
];

/// What a pillar of some temper answers to a request.
fn answers(random: &mut Random, request: &Message, pillar: &str) -> Vec<Message> {
    let code = random.pick(&IDENTIFY_CODES);
    let final_code = random.pick(&FINAL_CODES);
    let mut answers: Vec<Message> = match request {
        Message::IdentifyPillarsForPutFileRequest(_) => match random.below(6) {
            0 => vec![put_duplicate(pillar, Some(md5(OURS))).into()],
            1 if random.one_in(4) => vec![put_duplicate(pillar, Some(md5(OTHERS))).into()],
            _ => vec![put_identify(pillar, code).into()],
        },
        Message::PutFileRequest(_) => {
            vec![
                put_progress(pillar).into(),
                put_final(pillar, final_code).into(),
            ]
        }
        Message::IdentifyPillarsForGetFileRequest(_) => {
            vec![get_identify(pillar, code, Some(random.below(5))).into()]
        }
        Message::GetFileRequest(_) => {
            vec![
                get_progress(pillar).into(),
                get_final(pillar, final_code).into(),
            ]
        }
        Message::IdentifyPillarsForGetFileIdsRequest(_) => vec![ids_identify(pillar, code).into()],
        Message::GetFileIdsRequest(request) => {
            let from = request.min_timestamp.as_ref().unwrap().millis();
            vec![ids_final(pillar, &page(random, from), Some(random.one_in(2))).into()]
        }
        Message::IdentifyPillarsForGetChecksumsRequest(_) => {
            vec![sums_identify(pillar, code).into()]
        }
        Message::GetChecksumsRequest(request) => {
            let from = request.min_timestamp.as_ref().unwrap().millis();
            let kind = if random.one_in(20) {
                ChecksumType::Sha1
            } else {
                ChecksumType::Md5
            };
            vec![sums_final(pillar, kind, &page(random, from), Some(random.one_in(2))).into()]
        }
        other => panic!("nobody should be asked {other:?}"),
    };
    if random.one_in(10) {
        answers.push(nonsense(random, pillar));
    }
    answers
}

fn page(random: &mut Random, from: i64) -> Vec<(&'static str, i64)> {
    let names = ["f1", "f2", "f3", "f4"];
    let count = usize::try_from(random.below(4)).unwrap();
    names[..count]
        .iter()
        .map(|name| (*name, from + random.below(3).cast_signed()))
        .collect()
}

fn nonsense(random: &mut Random, pillar: &str) -> Message {
    match random.below(6) {
        0 => put_identify(pillar, POSITIVE).into(),
        1 => get_final(pillar, COMPLETED).into(),
        2 => put_final("stranger", COMPLETED).into(),
        3 => ids_final(pillar, &[("f1", -5)], Some(true)).into(),
        4 => put_progress(pillar).into(),
        _ => AlarmMessage {
            header: header(pillar),
            alarm: Alarm {
                orig_date_time: Timestamp::from_millis(0),
                alarm_code: AlarmCode::ComponentFailure,
                alarm_raiser: pillar.into(),
                alarm_text: "help".to_owned(),
                file_id: None,
                collection_id: None,
            },
        }
        .into(),
    }
}

/// Everything on its way, by the time it arrives.
#[derive(Default)]
struct Network {
    under_way: BTreeMap<(i64, u64), Input>,
    number: u64,
}

impl Network {
    fn put(&mut self, at_ms: i64, input: Input) {
        self.number += 1;
        self.under_way.insert((at_ms, self.number), input);
    }

    /// Loses, repeats and delays.
    fn carry(&mut self, random: &mut Random, now_ms: i64, message: &Message) {
        let copies = match random.below(10) {
            0 => 0,
            1 | 2 => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let limit = if random.one_in(20) { 30_000 } else { 300 };
            let at_ms = now_ms + random.below(limit).cast_signed();
            let message = Box::new(message.clone());
            self.put(
                at_ms,
                Input::Message {
                    message,
                    reply_address: None,
                },
            );
        }
    }
}

/// Runs one conversation against peers and a network made from a seed.
fn run<P: Procedure>(seed: u64, file: Option<&str>, procedure: P) {
    let mut random = Random(seed);
    let mut unexamined = procedure.awaits_checksum();
    let mut bench = Bench::new(context(&PILLARS, file), procedure);
    let mut network = Network::default();
    let mute: BTreeSet<&str> = PILLARS.into_iter().filter(|_| random.one_in(8)).collect();
    let (mut heard, mut offered, mut downloads) = (0, 0, 0);
    if random.one_in(10) {
        let at_ms = bench.now_ms + random.below(3000).cast_signed();
        network.put(
            at_ms,
            Input::Abort {
                reason: "canceled".to_owned(),
            },
        );
    }
    for _ in 0..10_000 {
        while heard < bench.sent.len() {
            let request = bench.sent[heard].clone();
            heard += 1;
            let to = request
                .header()
                .destination
                .name()
                .strip_prefix("at-")
                .map(str::to_owned);
            for pillar in PILLARS.into_iter().filter(|it| !mute.contains(it)) {
                if to.as_deref().is_none_or(|to| to == pillar) {
                    for answer in answers(&mut random, &request, pillar) {
                        network.carry(&mut random, bench.now_ms, &answer);
                    }
                }
            }
            if random.one_in(30) {
                let contributor = to.map(ComponentId::from);
                let text = "lost".to_owned();
                network.put(bench.now_ms, Input::SendFailed { contributor, text });
            }
        }
        if unexamined && bench.examined + bench.offered > 0 {
            unexamined = false;
            let at_ms = bench.now_ms + random.below(5000).cast_signed();
            network.put(at_ms, examined(&mut random));
        }
        while offered < bench.offered {
            offered += 1;
            let failed = random.one_in(10);
            let text = "507".to_owned();
            let input = if failed {
                Input::OfferFailed { text }
            } else {
                Input::OfferReady
            };
            network.put(bench.now_ms + 5, input);
        }
        while downloads < bench.downloads.len() {
            downloads += 1;
            let text = "wrong bytes".to_owned();
            let another_may_help = !random.one_in(5);
            let input = match random.below(3) {
                0 => Input::DownloadFailed {
                    another_may_help,
                    text,
                },
                _ => Input::DownloadFinished { size: 20 },
            };
            network.put(bench.now_ms + 5, input);
        }
        let next = network.under_way.keys().next().copied();
        match (bench.timer, next) {
            (Some(timer), next) if next.is_none_or(|(at_ms, _)| timer <= at_ms) => bench.time_out(),
            (_, Some(key)) => {
                bench.now_ms = bench.now_ms.max(key.0);
                let input = network.under_way.remove(&key).unwrap();
                bench.step(input);
            }
            (_, None) => break,
        }
    }
    check(seed, &bench, &mute);
}

/// What comes of reading the file.
fn examined(random: &mut Random) -> Input {
    if random.one_in(10) {
        let text = "a bad disk".to_owned();
        return Input::ExamineFailed { text };
    }
    Input::Examined {
        checksum: md5(OURS),
    }
}

fn check<P: Procedure>(seed: u64, bench: &Bench<P>, mute: &BTreeSet<&str>) {
    let trace = bench.trace();
    let finals = bench.events.iter().filter(|event| event.is_final()).count();
    assert_eq!(finals, 1, "seed {seed}: {trace:?}");
    assert!(
        bench.events.last().unwrap().is_final(),
        "seed {seed}: {trace:?}"
    );
    assert!(bench.conversation.is_done(), "seed {seed}");
    assert_eq!(bench.timer, None, "seed {seed}");
    assert!(bench.removed <= 1, "seed {seed}");
    assert!(
        bench.offered <= bench.removed,
        "seed {seed}: something stays on the exchange"
    );
    let mut ended = BTreeSet::new();
    let mut complete_names = BTreeSet::new();
    let mut identified = BTreeSet::new();
    for event in &bench.events {
        match &event.kind {
            EventKind::ComponentIdentified { contributor } => {
                assert!(
                    identified.insert(contributor.clone()),
                    "seed {seed}: {trace:?}"
                );
            }
            EventKind::ComponentComplete { contributor, .. } => {
                assert!(ended.insert(contributor.clone()), "seed {seed}: {trace:?}");
                complete_names.insert(contributor.clone());
            }
            EventKind::ComponentFailed { contributor, .. } => {
                assert!(ended.insert(contributor.clone()), "seed {seed}: {trace:?}");
            }
            EventKind::Complete { failures, .. } => {
                assert!(!complete_names.is_empty(), "seed {seed}: {trace:?}");
                assert!(
                    P::ONE_IS_ENOUGH || failures.is_empty(),
                    "seed {seed}: {trace:?}"
                );
            }
            _ => {}
        }
    }
    for pillar in bench.asked() {
        assert!(
            identified.contains(pillar.as_str()),
            "seed {seed}: asked {pillar}, {trace:?}"
        );
    }
    for pillar in mute {
        let aborted = bench.info() == "canceled" || trace.iter().all(|it| !it.contains("TIMEOUT"));
        assert!(
            aborted || ended.contains(*pillar),
            "seed {seed}: {pillar} unnamed in {trace:?}"
        );
    }
}

#[test]
fn puts() {
    for seed in 0..SEEDS {
        let mut procedure = put_procedure();
        procedure.retries = u32::try_from(seed % 3).unwrap();
        procedure.partial_allowed = seed % 5 != 0;
        if seed % 4 == 1 {
            procedure.checksum = None;
            procedure.examining = true;
        }
        run(seed, Some("hello.txt"), procedure);
    }
}

#[test]
fn gets() {
    for seed in 0..SEEDS {
        let procedure = GetFileProcedure::new("hello.txt".into(), ADDRESS.to_owned(), None);
        run(seed, Some("hello.txt"), procedure);
    }
}

#[test]
fn listings_of_ids() {
    for seed in 0..SEEDS {
        run(seed, None, ids_procedure(2));
    }
}

#[test]
fn listings_of_checksums() {
    for seed in 0..SEEDS {
        run(seed, None, checksums_procedure());
    }
}
