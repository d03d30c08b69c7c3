//! A log whose last write was cut off.

use std::{
    fs::{self, OpenOptions},
    os::unix::fs::FileExt,
    path::PathBuf,
};

use super::{Stage, WORK};
use crate::support::{
    PATIENCE, Random, noise, number_from_environment,
    site::files_below,
    stomp::{Next, Stomp},
};

/// The bodies of what waits in the queue, which then is empty.
fn taken(port: u16) -> Vec<Vec<u8>> {
    let mut stomp = Stomp::connect(port, None);
    stomp.send(WORK, &[], b"end");
    stomp.subscribe(WORK);
    let mut bodies = Vec::new();
    loop {
        let message = stomp.message(PATIENCE).expect("the end comes");
        if message.body == b"end" {
            // Nothing may be left for the next time.
            stomp
                .frame("DISCONNECT", &[("receipt", "bye")], b"")
                .expect("the bus reads");
            while let Next::Frame(_) = stomp.next(PATIENCE) {}
            return bodies;
        }
        bodies.push(message.body);
    }
}

/// Where the log has these bytes: a file and an offset.
fn place_of(stage: &Stage, bytes: &[u8]) -> (PathBuf, usize) {
    let files = files_below(&stage.site.part("bus").join("var"));
    let mut places = files.into_iter().filter_map(|file| {
        let content = fs::read(&file).expect("can be read");
        let at = content
            .windows(bytes.len())
            .position(|part| part == bytes)?;
        Some((file, at))
    });
    places.next().expect("in one of the files")
}

/// The transaction of two messages that was written last is cut off at some byte, as by a loss of power: zeros are
/// what the disk has there. What had come before is there, the transaction is not, nor is half of it, and what comes
/// afterwards is as safe as ever.
#[test]
fn e04_a_unit_cut_off_anywhere_is_absent_as_a_whole_and_the_log_goes_on() {
    let cuts = number_from_environment("PILLARBOX_TEST_KILLS", 10);
    let mut random = Random::new(4);
    let mut stage = Stage::set();
    for cut in 0..cuts {
        let mut stomp = Stomp::connect(stage.site.bus_port, None);
        let [before, first, second, after] = [(); 4].map(|()| noise(random.next(), 500));
        stomp.send(WORK, &[], &before);
        let within = ("transaction", "t");
        stomp.frame("BEGIN", &[within], b"").expect("the bus reads");
        stomp.send(WORK, &[within], &first);
        stomp.send(WORK, &[within], &second);
        let headers = [within, ("receipt", "c")];
        stomp.frame("COMMIT", &headers, b"").expect("the bus reads");
        let Next::Frame(receipt) = stomp.next(PATIENCE) else {
            panic!("no receipt");
        };
        assert_eq!(receipt.header("receipt-id"), Some("c"));
        stage.bus.kill();

        let (file, start) = place_of(&stage, &first);
        let (same, end) = place_of(&stage, &second);
        assert_eq!(file, same, "one record");
        let end = end + second.len();
        let length = u64::try_from(end - start).expect("small");
        let at = start + usize::try_from(random.below(length)).expect("small");
        let log = OpenOptions::new().write(true).open(&file).expect("opens");
        let rest = fs::metadata(&file).expect("is there").len() - at as u64;
        let zeros = vec![0; usize::try_from(rest).expect("fits")];
        log.write_all_at(&zeros, at as u64).expect("can be written");
        drop(log);

        stage.bus = stage.site.start("bus");
        Stomp::connect(stage.site.bus_port, None).send(WORK, &[], &after);
        stage.kill();
        let found = taken(stage.site.bus_port);
        let expected = [before, after];
        assert!(found == expected, "cut {cut}: {} messages", found.len());
    }
}
