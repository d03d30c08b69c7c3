//! Files that can't be delivered where they are wanted (U29).

use std::{
    io::{Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread,
};

use pillarbox_client::{Client, ClientOptions, GetFile};
use pillarbox_exchange::{AddressPolicy, ExchangeClient};
use pillarbox_messages::clock::SystemClock;
use pillarbox_settings::ZonelessDates;

use super::P7;
use crate::support::{peers, process, whole::Whole};

/// How an exchange turns an upload down.
const ANSWERS: [Option<&str>; 3] = [
    Some("507 Insufficient Storage"),
    Some("403 Forbidden"),
    // It goes away without a word.
    None,
];

/// An exchange that turns every upload down, and its host.
fn refusing(answer: Option<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // A peer that has gone is none of the test's.
            let _ = turn_down(&mut stream, answer);
        }
    });
    host
}

fn turn_down(stream: &mut TcpStream, answer: Option<&str>) -> std::io::Result<()> {
    let mut request = vec![0; 1 << 16];
    let _ = stream.read(&mut request)?;
    let Some(answer) = answer else {
        return stream.shutdown(Shutdown::Both);
    };
    write!(
        stream,
        "HTTP/1.1 {answer}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )?;
    stream.shutdown(Shutdown::Write)?;
    // Until the other side has read it and closes.
    while stream.read(&mut request)? > 0 {}
    Ok(())
}

#[test]
fn u29_a_file_that_can_not_be_delivered_is_not_there() {
    let hosts = ANSWERS.map(refusing);
    let whole = Whole::start_with(&["north"], &hosts);
    whole.site.file("p7.txt", P7);
    process::succeed(&whole.site.run("put-file", ["-f", "p7.txt"]));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for (host, answer) in hosts.iter().zip(ANSWERS) {
        let target = whole.site.path().join("copy");
        let outcome = runtime.block_on(async {
            let (repository, bus) = peers::connect(&whole.site, "reader").await;
            let base = format!("http://{host}/");
            let policy = AddressPolicy::for_exchange(&base).unwrap();
            let options = pillarbox_exchange::client::ClientOptions::new(policy);
            let client = Client::connect(ClientOptions {
                repository,
                bus: bus.clone(),
                exchange: ExchangeClient::new(&options).unwrap(),
                exchange_base: Some(base),
                id: "reader".into(),
                named: false,
                journal: None,
                sla: None,
                clock: SystemClock::shared(),
                timeouts: None,
                extend_on_progress: false,
                zoneless: ZonelessDates::default(),
            })
            .unwrap();
            let get = GetFile::new(peers::books(), "p7.txt".into(), target.clone());
            let outcome = client.get_file(get).await.unwrap().outcome().await;
            client.close().await;
            bus.close().await.unwrap();
            outcome
        });
        assert!(!outcome.complete, "{answer:?}");
        let text = outcome.info.unwrap();
        assert!(
            text.contains("north: FILE_TRANSFER_FAILURE, the file could not be transferred: "),
            "{answer:?}: {text}"
        );
        if let Some(status) = answer.and_then(|it| it.split(' ').next()) {
            let reason = format!("transferred: the server answered {status}");
            assert!(text.contains(&reason), "{answer:?}: {text}");
        }
        assert!(!target.exists(), "{answer:?}");
    }
}
