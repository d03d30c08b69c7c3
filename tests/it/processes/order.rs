//! Parts start in any order, and outlive each other.

use std::net::TcpListener;

use crate::support::{
    noise,
    process::{self, Running},
    site::Site,
};

#[test]
fn a_pillar_started_before_its_bus_becomes_ready_later() {
    let site = Site::new(&["north"]);
    let early = TcpListener::bind(("127.0.0.1", site.bus_port)).unwrap();
    let mut north = Running::starting_node(&site.part("north"));
    let (attempt, _) = early.accept().unwrap();
    drop((attempt, early));
    let _hub = site.start("hub");
    north.wait_for("ready");
    let file = site.file("a.bin", &noise(30, 100));
    process::succeed(&site.run("put-file", ["-f".as_ref(), file.as_os_str()]));
}

#[test]
fn pillars_and_alarm_service_outlive_their_bus() {
    let site = Site::with_restless_bus(&["north", "south"]);
    let mut hub = site.start("hub");
    let mut others = ["north", "south", "alarms"].map(|part| site.start(part));
    let file = site.file("a.bin", &noise(31, 100));
    process::succeed(&site.run("put-file", ["-f".as_ref(), file.as_os_str()]));

    for (stop, name) in [
        (Running::kill as fn(&mut Running), "killed.bin"),
        (stop, "stopped.bin"),
    ] {
        stop(&mut hub);
        hub = site.start("hub");
        // Each pillar comes back at its own pace.
        process::until_success("all pillars answer again", || {
            site.run("get-file-ids", ["-i", "a.bin"])
        });
        let args = [
            "-f".as_ref(),
            file.as_os_str(),
            "-i".as_ref(),
            name.as_ref(),
        ];
        process::succeed(&site.run("put-file", args));
    }
    for part in &mut others {
        assert!(part.lives(), "{:?}", part.errors());
        part.terminate();
        part.wait_for_success();
    }
}

fn stop(hub: &mut Running) {
    hub.terminate();
    hub.wait_for_success();
}
