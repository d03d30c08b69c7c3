//! An independent client: Python's stomp.py.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    task::spawn_blocking,
    time::{sleep, timeout},
};

use super::Site;
use crate::{StompLimits, stomp::testing::DEADLINE};

/// What all scripts start with.
const PRELUDE: &str = r#"
import queue, socket, sys, time, stomp

class Listener(stomp.ConnectionListener):
    def __init__(self):
        self.frames = queue.Queue()
        self.over = queue.Queue()
    def on_message(self, frame):
        self.frames.put(frame)
    def on_receipt(self, frame):
        self.frames.put(frame)
    def on_error(self, frame):
        self.frames.put(frame)
    def on_disconnected(self):
        self.over.put(True)

def connect(client_id=None, heartbeats=(500, 500)):
    connection = stomp.Connection12([("127.0.0.1", int(sys.argv[1]))], heartbeats=heartbeats)
    connection.listener = Listener()
    connection.set_listener("", connection.listener)
    connection.connect(wait=True, headers={"client-id": client_id} if client_id else {})
    return connection

def next(connection, cmd):
    frame = connection.listener.frames.get(timeout=60)
    assert frame.cmd == cmd, (frame.cmd, frame.headers, frame.body)
    return frame

def receipt(connection, name):
    assert next(connection, "RECEIPT").headers["receipt-id"] == name

def nothing(connection):
    # What the bus has to say before it confirms this.
    connection.send("/topic/nobody", "", headers={"receipt": "nothing"})
    receipt(connection, "nothing")

def durable(connection, ack="client-individual"):
    connection.subscribe("/topic/t", id="1", ack=ack,
                         headers={"activemq.subscriptionName": "python", "receipt": "subscribed"})
    receipt(connection, "subscribed")

def listen(connection, destination, ack):
    connection.subscribe(destination, id="1", ack=ack, headers={"receipt": "subscribed"})
    receipt(connection, "subscribed")

def end(connection):
    connection.disconnect(receipt="bye")
    receipt(connection, "bye")

def say(word):
    print(word, flush=True)

def hear(word):
    heard = sys.stdin.readline().strip()
    assert heard == word, heard
"#;

/// A script that runs, and is talked with line by line. Ends with its owner.
struct Script {
    child: Guarded,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Script {
    /// None, said loudly, if the peer is not there.
    fn start(text: &str, site: &Site) -> Option<Self> {
        let has_peer = Command::new("python3")
            .args(["-c", "import stomp"])
            .output();
        if has_peer.is_ok_and(|output| output.status.success()) {
            return Some(Self::spawn(text, site));
        }
        eprintln!("SKIPPED: python3 with stomp.py is not installed (pip install stomp.py)");
        None
    }

    fn spawn(text: &str, site: &Site) -> Self {
        let mut child = Command::new("python3")
            .args(["-c", &[PRELUDE, text].concat()])
            .arg(site.address().port().to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take().unwrap(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child: Guarded(child),
        }
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.child.0.id().try_into().unwrap()).unwrap();
        kill_process(pid, signal).unwrap();
    }

    fn say(&mut self, word: &str) {
        writeln!(self.input, "{word}").unwrap();
    }

    /// The next line; nothing after an end.
    async fn hears(mut self, word: &'static str) -> Self {
        spawn_blocking(move || {
            let mut line = String::new();
            self.output.read_line(&mut line).unwrap();
            assert_eq!(line.trim_end(), word, "see standard error");
            self
        })
        .await
        .unwrap()
    }

    async fn ends(self) {
        let mut script = self.hears("all fine").await;
        let ended = spawn_blocking(move || script.child.0.wait().unwrap());
        assert!(ended.await.unwrap().success());
    }
}

struct Guarded(Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn run(text: &str) {
    let site = Site::start(StompLimits::default()).await;
    if let Some(script) = Script::start(text, &site) {
        script.ends().await;
    }
}

#[tokio::test]
async fn stomp_py_understands_this_server() {
    run(r#"
connection = connect("python's client")
durable(connection)
connection.begin(transaction="tx")
connection.send("/topic/t", "<xml>\u00e6</xml>", transaction="tx", persistent="true",
                headers={"ab": "c:d\\e", "reply-to": "/topic/client x"})
connection.commit(transaction="tx", headers={"receipt": "c"})
frames = [connection.listener.frames.get(timeout=20) for _ in range(2)]
message, = [frame for frame in frames if frame.cmd == "MESSAGE"]
assert message.body == "<xml>\u00e6</xml>", message.body
assert message.headers["ab"] == "c:d\\e", message.headers
assert message.headers["destination"] == "/topic/t"
connection.nack(message.headers["ack"])
again = next(connection, "MESSAGE")
assert again.headers["redelivered"] == "true"
assert again.headers["message-id"] == message.headers["message-id"]
connection.ack(again.headers["ack"], receipt="k")
receipt(connection, "k")
end(connection)

connection = connect("python's client")
connection.send("/queue/a,b", "x")
assert next(connection, "ERROR").headers["message"] == "INVALID"
say("all fine")
"#)
    .await;
}

#[tokio::test]
async fn stomp_py_commits_all_of_a_transaction_and_aborts_all() {
    run(r#"
worker, reader = connect("worker"), connect("reader")
listen(reader, "/topic/t", "auto")
worker.send("/queue/q", "request", headers={"receipt": "sent"})
receipt(worker, "sent")
listen(worker, "/queue/q", "client-individual")

def answer(transaction, body):
    request = next(worker, "MESSAGE")
    worker.begin(transaction=transaction)
    worker.ack(request.headers["ack"], transaction=transaction)
    for number in range(3):
        worker.send("/topic/t", body + str(number), transaction=transaction)
    return request

first = answer("a", "never")
worker.abort(transaction="a", headers={"receipt": "aborted"})
frames = [worker.listener.frames.get(timeout=20)]
assert frames[0].cmd == "RECEIPT", frames[0]
second = answer("b", "answer")
assert second.headers["message-id"] == first.headers["message-id"]
assert second.headers["redelivered"] == "true"
assert second.headers["q-backout-count"] == "1"
assert second.headers["ack"] != first.headers["ack"]
worker.commit(transaction="b", headers={"receipt": "committed"})
receipt(worker, "committed")
for number in range(3):
    assert next(reader, "MESSAGE").body == "answer" + str(number)
end(worker)
worker = connect("worker")
listen(worker, "/queue/q", "client-individual")
nothing(worker)
# A transaction that its owner leaves open has never been.
worker.begin(transaction="c")
worker.send("/queue/q", "never", transaction="c")
end(worker)
worker = connect("worker")
listen(worker, "/queue/q", "client-individual")
nothing(worker)
worker.commit(transaction="c")
assert next(worker, "ERROR").headers["message"] == "TX-UNKNOWN"
say("all fine")
"#)
    .await;
}

#[tokio::test]
async fn stomp_py_sends_and_gets_ten_thousand_messages_in_order() {
    run(r#"
COUNT = 10000
sender, reader = connect("sender"), connect("reader")
durable(reader)
bodies = [str(number) + " " + "x" * (number % 200) for number in range(COUNT)]
for number, body in enumerate(bodies):
    sender.send("/topic/t", body, headers={"persistent": "true", "receipt": str(number)})
ids = []
for number in range(COUNT):
    frame = next(sender, "RECEIPT")
    assert frame.headers["receipt-id"] == str(number), (number, frame.headers)
    ids.append(frame.headers["message-id"])
assert len(set(ids)) == COUNT
for number in range(COUNT):
    message = next(reader, "MESSAGE")
    assert message.body == bodies[number], (number, message.body)
    assert message.headers["message-id"] == ids[number]
    assert "redelivered" not in message.headers
    reader.ack(message.headers["ack"])
end(reader)
reader = connect("reader")
durable(reader)
nothing(reader)
say("all fine")
"#)
    .await;
}

/// Half of a backlog is taken by a client that then vanishes, the other half after the bus was away.
#[tokio::test]
async fn stomp_py_finds_the_backlog_of_its_durable_subscription() {
    const SCRIPT: &str = r#"
COUNT = 1000
connection = connect("reader")
durable(connection)
end(connection)
sender = connect("sender")
for number in range(COUNT):
    sender.send("/topic/t", str(number), headers={"persistent": "true", "receipt": str(number)})
for number in range(COUNT):
    receipt(sender, str(number))

connection = connect("reader")
durable(connection)
for number in range(COUNT // 2):
    message = next(connection, "MESSAGE")
    assert message.body == str(number), (number, message.body)
    connection.ack(message.headers["ack"], receipt="a" if number == COUNT // 2 - 1 else None)
while connection.listener.frames.get(timeout=20).cmd == "MESSAGE":
    pass
say("half")
hear("restarted")
# The bus had gone in order, which is nobody's failure.
connection.listener.over.get(timeout=20)
connection = connect("reader")
durable(connection)
for number in range(COUNT // 2, COUNT):
    message = next(connection, "MESSAGE")
    assert message.body == str(number), (number, message.body)
    assert message.headers["q-backout-count"] == "0", message.headers
    connection.ack(message.headers["ack"])
nothing(connection)
end(connection)
say("all fine")
"#;
    let site = Site::start(StompLimits::default()).await;
    let Some(script) = Script::start(SCRIPT, &site) else {
        return;
    };
    let mut script = script.hears("half").await;
    let _site = site.restart().await;
    script.say("restarted");
    script.ends().await;
}

/// Both sides beat in time, over many intervals without a message; then the client's machine stands still.
#[tokio::test]
async fn stomp_py_and_this_server_hear_each_others_hearts() {
    const SCRIPT: &str = r#"
connection = connect("beating", heartbeats=(500, 500))
listen(connection, "/queue/q", "client-individual")
time.sleep(5)
assert connection.is_connected() and connection.listener.over.empty()
connection.send("/queue/q", "alive")
message = next(connection, "MESSAGE")
say("alive")
hear("look")
# It has stood still for longer than anybody waits for it.
connection.listener.over.get(timeout=20)
connection = connect("beating", heartbeats=(500, 500))
listen(connection, "/queue/q", "client-individual")
again = next(connection, "MESSAGE")
assert again.headers["message-id"] == message.headers["message-id"]
assert again.headers["redelivered"] == "true"
connection.ack(message.headers["ack"])
assert next(connection, "ERROR").headers["message"] == "STALE-ACK"
say("all fine")
"#;
    let limits = StompLimits {
        heart_beat: Duration::from_millis(500),
        ..StompLimits::default()
    };
    let site = Site::start(limits).await;
    let Some(script) = Script::start(SCRIPT, &site) else {
        return;
    };
    let mut script = script.hears("alive").await;
    script.signal(Signal::STOP);
    let given_up = async {
        while site.broker.stats().connections > 0 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(DEADLINE, given_up).await.unwrap();
    script.signal(Signal::CONT);
    script.say("look");
    script.ends().await;
}
