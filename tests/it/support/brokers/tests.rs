//! The brokers themselves: whoever tests with them has to know that they keep what they promise, and go in the end.

use std::{
    io::Read as _,
    net::TcpStream,
    path::PathBuf,
    process::{Command, Stdio},
};

use super::{ActiveMq, Broker, RabbitMq};
use crate::support::{PATIENCE, process::Running, stomp::Stomp, until};

/// Kills a broker and starts it again; gives the first message that it still has of what it had confirmed.
fn kept_over_a_kill(mut broker: Broker) -> Option<String> {
    let port = broker.port();
    let mut client = Stomp::connect(port, None);
    client.send("/queue/kept", &[("persistent", "true")], b"kept");
    broker.kill();
    TcpStream::connect(("127.0.0.1", port)).expect_err("nobody listens");
    broker.restart();
    let mut client = Stomp::connect(port, None);
    client.send("/queue/kept", &[("persistent", "true")], b"sent then");
    client.subscribe("/queue/kept");
    let message = client.message(PATIENCE).map(|message| message.text());
    let directory = broker.directory.path().to_owned();
    drop(broker);
    assert!(!directory.exists(), "{directory:?} is left");
    TcpStream::connect(("127.0.0.1", port)).expect_err("nobody listens");
    message
}

#[test]
fn activemq_stores_over_a_kill_and_goes_in_the_end() {
    let kept = kept_over_a_kill(ActiveMq::start());
    assert_eq!(kept.as_deref(), Some("kept"));
}

/// It confirms a message before that is on the disk, so that either may be the first.
#[test]
fn rabbitmq_works_after_a_kill_and_goes_in_the_end() {
    let first = kept_over_a_kill(RabbitMq::start());
    assert!(
        matches!(first.as_deref(), Some("kept" | "sent then")),
        "{first:?}"
    );
}

/// Run by the test below, in a process that will be killed.
#[test]
#[ignore = "waits to be killed"]
fn a_process_with_brokers() {
    for broker in [ActiveMq::shared(), RabbitMq::shared()] {
        let directory = broker.directory.path().display();
        println!("\nstarted {} {directory}", broker.port());
    }
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn brokers_end_with_the_process_that_started_them() {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let (_, module) = module_path!().split_once("::").expect("crate::module");
    command
        .args(["--exact", "--ignored", "--nocapture"])
        .arg(format!("{module}::a_process_with_brokers"))
        .stdin(Stdio::piped());
    let mut process = Running::spawn(command);
    let started = [(); 2].map(|()| process.wait_for("started "));
    let brokers = started.map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, port, directory] = words[..] else {
            panic!("{line}")
        };
        let port: u16 = port.parse().expect("a port");
        (port, PathBuf::from(directory))
    });
    for (port, _) in &brokers {
        TcpStream::connect(("127.0.0.1", *port)).expect("the broker listens");
    }
    process.kill();
    for (port, directory) in brokers {
        until("the broker has gone", || {
            TcpStream::connect(("127.0.0.1", port)).is_err()
        });
        until("its directory has gone", || !directory.exists());
    }
}
