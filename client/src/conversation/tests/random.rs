//! Whatever the peers and the network do: exactly one last event, and nothing after it.

mod peers;

use std::collections::{BTreeMap, BTreeSet};

use pillarbox_messages::{ComponentId, FilePart, Message};

use super::{
    audit_trails::trails_procedure,
    delete_file::delete_procedure,
    listing::{checksums_procedure, ids_procedure},
    replace_file::replace_procedure,
    status::status_context,
    support::{ADDRESS, BEGUN_MS, Bench, OURS, context, md5, put_procedure},
};
use crate::{
    conversation::{
        Context, Input, Procedure, get_file::GetFileProcedure, get_status::GetStatusProcedure,
    },
    event::{Delivered, EventKind},
};
use peers::answers;

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
    run_in(seed, context(&PILLARS, file), procedure);
}

/// The same with these contributors; the other pillars answer what nobody asked them.
fn run_in<P: Procedure>(seed: u64, mut context: Context, procedure: P) {
    let mut random = Random(seed);
    context.extend_on_progress = random.one_in(2);
    context.conversation_timeout_ms = random.pick(&[0, 15_000, 60_000]);
    let end = |bench: &Bench<P>| match bench.conversation.context().conversation_timeout_ms {
        0 => i64::MAX,
        limit => BEGUN_MS + limit,
    };
    let mut unexamined = procedure.awaits_checksum();
    let expected = context.expected.clone();
    let mut bench = Bench::new(context, procedure);
    let mut network = Network::default();
    let mut mute: BTreeSet<&str> = PILLARS.into_iter().filter(|_| random.one_in(8)).collect();
    mute.retain(|pillar| expected.contains(*pillar));
    let (mut heard, mut offered, mut downloads) = (0, 0, 0);
    if random.one_in(10) {
        let at_ms = bench.now_ms + random.below(3000).cast_signed();
        let reason = "canceled".to_owned();
        network.put(at_ms, Input::Abort { reason });
    }
    disturb(&mut random, &mut network);
    for _ in 0..10_000 {
        let over = bench.conversation.is_done();
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
            network.put(bench.now_ms + 5, offer_ended(&mut random));
        }
        while downloads < bench.downloads.len() {
            downloads += 1;
            network.put(bench.now_ms + 5, download_ended(&mut random));
        }
        let next = network.under_way.keys().next().copied();
        match (bench.timer, next) {
            (Some(timer), _) if timer > end(&bench) => panic!("seed {seed}: a timer after the end"),
            (Some(timer), next) if next.is_none_or(|(at_ms, _)| timer <= at_ms) => bench.fire(),
            (_, Some(key)) => {
                bench.now_ms = bench.now_ms.max(key.0);
                let input = network.under_way.remove(&key).unwrap();
                bench.step(input);
            }
            (_, None) => break,
        }
        let in_time = over || bench.now_ms <= end(&bench);
        assert!(in_time, "seed {seed}: {:?}", bench.trace());
    }
    check(seed, &bench, &mute);
}

/// What has nothing to do with what is asked: rubbish, and a bus that was away.
fn disturb(random: &mut Random, network: &mut Network) {
    for _ in 0..random.below(4) {
        let at_ms = BEGUN_MS + random.below(20_000).cast_signed();
        let input = if random.one_in(2) {
            Input::Unreadable {
                from: random.one_in(2).then(|| random.pick(&PILLARS).into()),
                message_type: None,
                reason: "no XML".to_owned(),
            }
        } else {
            Input::Reconnected {
                answers_kept: random.one_in(2),
            }
        };
        network.put(at_ms, input);
    }
}

/// What comes of laying the file on the exchange.
fn offer_ended(random: &mut Random) -> Input {
    let text = "507".to_owned();
    if random.one_in(10) {
        Input::OfferFailed { text }
    } else {
        Input::OfferReady
    }
}

/// What comes of fetching the file.
fn download_ended(random: &mut Random) -> Input {
    let text = "wrong bytes".to_owned();
    let another_may_help = !random.one_in(5);
    match random.below(3) {
        0 => Input::DownloadFailed {
            another_may_help,
            text,
        },
        _ => Input::DownloadFinished(Delivered {
            replaced: false,
            size: 20,
            checksum: None,
        }),
    }
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
            procedure.new.checksum = None;
            procedure.new.examining = true;
        }
        run(seed, Some("hello.txt"), procedure);
    }
}

#[test]
fn gets() {
    for seed in 0..SEEDS {
        let mut procedure = GetFileProcedure::new("hello.txt".into(), ADDRESS.to_owned());
        procedure.part = (seed % 3 == 0).then_some(FilePart {
            part_offset: 5,
            part_length: seed,
        });
        run(seed, Some("hello.txt"), procedure);
    }
}

#[test]
fn deletions() {
    for seed in 0..SEEDS {
        run_in(seed, context(&["b"], Some("hello.txt")), delete_procedure());
    }
}

#[test]
fn replacements() {
    for seed in 0..SEEDS {
        let mut procedure = replace_procedure();
        if seed % 4 == 1 {
            procedure.new.checksum = None;
            procedure.new.examining = true;
        }
        run_in(seed, context(&["b"], Some("hello.txt")), procedure);
    }
}

#[test]
fn audit_trails() {
    for seed in 0..SEEDS {
        run(seed, None, trails_procedure());
    }
}

#[test]
fn statuses() {
    for seed in 0..SEEDS {
        run_in(seed, status_context(&PILLARS), GetStatusProcedure);
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
