//! What an operator does about a message that has failed, and about others: as he sees it.

mod transcript;

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpListener,
    process::{Command, Output, Stdio},
    thread,
};

use pillarbox_bus::{AckMode, Outgoing, SubscribeRequest};
use pillarbox_messages::{Destination, ResponseCode};

use self::transcript::Transcript;
use super::json::objects;
use crate::support::{
    noise,
    peers::{Peer, Put},
    process::{self, fail_with_one_line, run, stderr, succeed},
    site::Site,
    slow_exchange::SlowExchange,
    until,
};

const USAGE: i32 = 1;
const OPERATION: i32 = 255;
const FILE: &str = "burden.bin";

/// A repository whose pillar has been killed three times with the same request in hand.
struct Failed {
    site: Site,
    exchange: SlowExchange,
    /// Who has sent the request.
    client: Peer,
    _parts: [process::Running; 2],
}

impl Failed {
    async fn start() -> Self {
        let content = noise(40, 4 << 20);
        // What the file comes from stands still three times, and is well afterwards.
        let exchange = SlowExchange::start(content.clone(), &[1 << 20; 3]);
        let site = Site::new(&["north"]);
        site.allow_hosts("north", &[exchange.host()]);
        let parts = ["hub", "alarms"].map(|part| site.start(part));
        let client = Peer::client(&site, "tester").await;
        let put = Put {
            correlation: "burden",
            content: &content,
            address: exchange.file_address(),
        };
        let request = client.put_request("north", FILE, &put);
        let mut north = site.start("north");
        client.send(request).await;
        for time in 1..=3 {
            let stalled = exchange.stalled();
            north.kill();
            drop(stalled);
            if time < 3 {
                north = site.start_again("north");
            }
        }
        until("the alarm is listed", || {
            site.alarms_list(&[]).contains("'burden'")
        });
        until("the alarm service has nothing in hand", || {
            let queues = objects(&succeed(&bus(&site, "queue list --json")));
            let messages = queues.iter().map(|it| it["messages"].as_u64().unwrap());
            messages.sum::<u64>() == 1
        });
        Self {
            site,
            exchange,
            client,
            _parts: parts,
        }
    }
}

/// What an alarm advises, between these words.
#[track_caller]
fn advised<'a>(alarm: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = alarm.split_once(from).expect("it is advised");
    rest.split_once(to).map_or(rest, |(command, _)| command)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_request_that_has_failed_three_times_is_looked_at_and_sent_back() {
    let failed = Failed::start().await;
    let site = &failed.site;
    let mut seen = Transcript::of(site);
    seen.hide(&failed.exchange.host(), "EXCHANGE");
    let alarm = seen.run("pillarbox alarms list -s SITE/alarms");
    let alarm = alarm.trim_end();
    let id = advised(alarm, "message ", " with");
    seen.hide(id, "ID");
    seen.run("pillarbox bus queue list -s SITE/hub");
    seen.run("pillarbox bus msg list -s SITE/hub books.north.backout --reason backout");
    let look = advised(alarm, "to look at it: ", "; to send");
    let shown = seen.run_as_written(look);
    let (_, body) = shown.split_once("\n\n").expect("a body");
    assert!(body.contains(&format!("<FileID>{FILE}</FileID>")), "{body}");
    seen.hide(body.trim_end(), "BODY");
    let mut replies = failed.client.listen(failed.client.address()).await;
    // The cause is mended, so the pillar is started again.
    let _north = site.start_again("north");
    let send_back = advised(alarm, "to send it back: ", "; to list");
    seen.run_as_written(send_back);
    let done = replies
        .until(|it| it.message_type().is_final_response())
        .await;
    let code = done.response_info().unwrap().response_code;
    assert_eq!(code, ResponseCode::OperationCompleted);
    seen.run("pillarbox bus msg list -s SITE/hub books.north.backout");
    seen.run("pillarbox get-file-ids -s SITE/client -c books");
    seen.compare(include_str!("operating/failed_three_times.txt"));
}

/// A bus with two messages in the queue `~error`, and the settings to reach it with.
async fn with_lost_messages(site: &Site) -> [process::Running; 1] {
    let hub = site.start("hub");
    let peer = Peer::client(site, "tester").await;
    for (key, body) in [("a", "one"), ("b", "two")] {
        let message = Outgoing {
            persistent: true,
            group: Some(key.to_owned()),
            correlation_id: Some(format!("c-{key}")),
            ..Outgoing::new(Destination::queue("nowhere"), body)
        };
        peer.component.bus().publish(message).await.unwrap();
    }
    [hub]
}

/// A command about the bus.
fn bus(site: &Site, words: &str) -> Output {
    run(bus_words(site, words))
}

fn bus_words(site: &Site, words: &str) -> Vec<String> {
    let settings = site.part("client").display().to_string();
    let words = words.split_whitespace().map(str::to_owned);
    let mut all: Vec<String> = ["bus".to_owned()].into_iter().chain(words).collect();
    all.extend(["-s".to_owned(), settings]);
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn messages_are_listed_for_programs_and_chosen_by_what_they_are() {
    let site = Site::new(&["north"]);
    let _parts = with_lost_messages(&site).await;
    let listed = |words: &str| {
        let words = format!("msg list ~error --json {words}");
        objects(&succeed(&bus(&site, &words)))
    };
    let all = listed("");
    assert_eq!(all.len(), 2);
    assert_eq!(all[0]["key"], "a");
    assert_eq!(all[0]["reason"], "unroutable");
    assert_eq!(all[0]["original_destination"], "/queue/nowhere");
    assert_eq!(all[0]["state"], "ready");
    let sent = all[0]["sent_at"].as_str().unwrap();
    assert!(sent.ends_with('Z') && sent.contains('T'), "{sent}");
    for (words, count) in [
        ("--key a", 1),
        ("--key c", 0),
        ("--correlation-id c-b", 1),
        ("--reason unroutable", 2),
        ("--reason expired", 0),
        ("--key a --correlation-id c-b", 0),
        ("--limit 1", 1),
    ] {
        assert_eq!(listed(words).len(), count, "{words}");
    }
    let limited = bus(&site, "msg list ~error --limit 1");
    assert_eq!(stderr(&limited), "1 message; --limit shows more\n");
    let queues = objects(&succeed(&bus(&site, "queue list --json")));
    let error = queues.iter().find(|it| it["name"] == "/queue/~error");
    assert_eq!(error.map(|it| it["messages"].as_u64()), Some(Some(2)));
    let [shown] = &objects(&succeed(&bus(&site, "queue show books.north --json")))[..] else {
        panic!("not one object");
    };
    assert_eq!(shown["attributes"]["lanes"], "key");
    assert_eq!(
        shown["queue"]["backout_queue"],
        "/queue/books.north.backout"
    );
    let table = succeed(&bus(&site, "queue show books.north"));
    assert!(table.contains("Lanes: \tkey\n"), "{table}");
    let id = all[1]["id"].as_str().unwrap();
    let [message] = &objects(&succeed(&bus(
        &site,
        &format!("msg show ~error {id} --json"),
    )))[..] else {
        panic!("not one object");
    };
    assert_eq!(message["body"]["text"], "two");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_can_not_be_done_is_told_in_one_line() {
    let site = Site::new(&["north"]);
    let _parts = with_lost_messages(&site).await;
    for (words, code, part) in [
        ("msg delete ~error", USAGE, "no message is named"),
        ("msg retry ~error", USAGE, "--all"),
        ("msg delete ~error --all", USAGE, "--yes"),
        ("msg delete ~error --key a", USAGE, "--yes"),
        ("msg delete ~error 1-1 --all", USAGE, "only one of these"),
        ("msg show ~error 17", USAGE, "3-17"),
        ("msg list ~error --limit 0", USAGE, "0"),
        (
            "msg list ~error --reason bad",
            USAGE,
            "unroutable, rejected, backout, expired, admin",
        ),
        ("queue show none", OPERATION, "bus queue list"),
        ("msg list books.north.0", OPERATION, "there is no queue"),
        ("msg show ~error 9-9", OPERATION, "there is no message 9-9"),
        (
            "msg delete ~error 9-9",
            OPERATION,
            "0 messages deleted from ~error; left alone: 1 message not there",
        ),
        (
            "msg retry ~error --all",
            OPERATION,
            "2 messages whose queue is not there any more",
        ),
    ] {
        let line = fail_with_one_line(&bus(&site, words), code);
        assert!(line.contains(part), "{words}: {line}");
    }
    let peer = Peer::client(&site, "taker").await;
    let holding = SubscribeRequest {
        destination: Destination::queue("~error"),
        durable: None,
        ack: AckMode::Individual,
        prefetch: 1,
        ack_timeout: None,
    };
    let mut holding = peer.component.bus().subscribe(holding).await.unwrap();
    let _held = holding.next().await.unwrap();
    let listed = objects(&succeed(&bus(&site, "msg list ~error --json")));
    assert_eq!(listed[0]["state"], "in-flight");
    let id = listed[0]["id"].as_str().unwrap();
    let shown = succeed(&bus(&site, &format!("msg show ~error {id}")));
    assert!(shown.contains("In hand of: \ttaker\n"), "{shown}");
    let line = fail_with_one_line(&bus(&site, "msg delete ~error --all --yes"), OPERATION);
    let told = "1 message deleted from ~error; left alone: 1 message in a consumer's hands";
    assert!(line.ends_with(told), "{line}");
}

/// On a terminal a person is asked before many messages are deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_person_is_asked_before_many_messages_are_deleted() {
    let site = Site::new(&["north"]);
    let _parts = with_lost_messages(&site).await;
    for (answer, told) in [
        ("n\n", "nothing was deleted"),
        ("\n", "nothing was deleted"),
        ("y\n", "2 messages deleted from ~error"),
    ] {
        let shown = on_terminal(&bus_words(&site, "msg delete '~error' --all"), answer);
        assert!(
            shown.contains("Delete 2 messages from ~error for good? [y/N]"),
            "{shown}"
        );
        assert!(shown.contains(told), "{shown}");
    }
    let none = bus(&site, "msg delete ~error --all --yes");
    assert_eq!(succeed(&none), "");
    assert_eq!(stderr(&none), "0 messages deleted from ~error\n");
}

/// What is shown of a command on a terminal where this is typed.
fn on_terminal(words: &[String], typed: &str) -> String {
    let line = format!("{} {}", env!("CARGO_BIN_EXE_pillarbox"), words.join(" "));
    let mut script = Command::new("script");
    script.args(["-qefc", &line, "/dev/null"]);
    script.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut script = script.spawn().expect("script, of util-linux");
    let mut keys = script.stdin.take().expect("piped");
    keys.write_all(typed.as_bytes()).expect("it reads");
    let output = script.wait_with_output().expect("it ends");
    drop(keys);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The settings of the process that serves the bus will do, also where it calls the bus `embedded:` itself.
#[test]
fn the_bus_of_a_process_that_calls_it_embedded_is_reached_where_it_listens() {
    let site = Site::new(&["north"]);
    let settings = site.part("hub").join("node.toml");
    let node = std::fs::read_to_string(&settings).unwrap();
    std::fs::write(&settings, node + "[bus]\nurl = \"embedded:\"\n").unwrap();
    let _hub = site.start("hub");
    let hub = site.part("hub").display().to_string();
    let listed = succeed(&run(["bus", "queue", "list", "-s", &hub]));
    assert!(listed.contains("books.north \tqueue \t0 \t"), "{listed}");
}

/// Another broker is administered with its own tools, which is told at once.
#[test]
fn another_broker_is_told_of_with_its_own_tools() {
    let site = Site::new(&["north"]);
    for (server, tool) in [
        ("ActiveMQ/5.17.2", "'activemq browse'"),
        ("ActiveMQ-Artemis/2.33.0", "'artemis browser'"),
        ("RabbitMQ/3.10.8", "'rabbitmqctl list_queues'"),
        ("Pillarbox/0.1.0", "an older Pillarbox"),
    ] {
        let broker = TcpListener::bind(("127.0.0.1", site.bus_port)).unwrap();
        let accepting = thread::spawn(move || {
            let (mut peer, _) = broker.accept().unwrap();
            let mut connect = Vec::new();
            let mut reader = BufReader::new(peer.try_clone().unwrap());
            reader.read_until(0, &mut connect).unwrap();
            let connected = format!("CONNECTED\nversion:1.2\nserver:{server}\n\n\0");
            peer.write_all(connected.as_bytes()).unwrap();
            // What else comes, until it goes.
            let mut more = Vec::new();
            reader.read_to_end(&mut more).unwrap();
            String::from_utf8(more).unwrap()
        });
        let line = fail_with_one_line(&bus(&site, "queue list"), OPERATION);
        assert!(line.contains("not administered from here"), "{line}");
        assert!(line.contains(tool), "{line}");
        let more = accepting.join().unwrap();
        assert!(!more.contains("~admin"), "{more}");
    }
}
