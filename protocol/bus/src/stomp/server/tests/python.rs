//! An independent client: Python's stomp.py.

use std::process::Command;

use super::Site;
use crate::StompLimits;

const SCRIPT: &str = r#"
import queue, sys, stomp

class Listener(stomp.ConnectionListener):
    def __init__(self):
        self.frames = queue.Queue()
    def on_message(self, frame):
        self.frames.put(frame)
    def on_receipt(self, frame):
        self.frames.put(frame)
    def on_error(self, frame):
        self.frames.put(frame)

def connect(client_id):
    connection = stomp.Connection12([("127.0.0.1", int(sys.argv[1]))], heartbeats=(500, 500))
    listener = Listener()
    connection.set_listener("", listener)
    connection.connect(wait=True, headers={"client-id": client_id})
    return connection, listener.frames

def expect(frames, cmd):
    frame = frames.get(timeout=20)
    assert frame.cmd == cmd, (frame.cmd, frame.headers, frame.body)
    return frame

connection, frames = connect("python's client")
connection.subscribe("/topic/t", id="1", ack="client-individual",
                     headers={"activemq.subscriptionName": "python", "receipt": "s"})
assert expect(frames, "RECEIPT").headers["receipt-id"] == "s"
connection.begin(transaction="tx")
connection.send("/topic/t", "<xml>\u00e6</xml>", transaction="tx", persistent="true",
                headers={"ab": "c:d\\e", "reply-to": "/topic/client x"})
connection.commit(transaction="tx", headers={"receipt": "c"})
first, second = frames.get(timeout=20), frames.get(timeout=20)
message = first if first.cmd == "MESSAGE" else second
assert message.body == "<xml>\u00e6</xml>", message.body
assert message.headers["ab"] == "c:d\\e", message.headers
assert message.headers["destination"] == "/topic/t"
connection.nack(message.headers["ack"])
again = expect(frames, "MESSAGE")
assert again.headers["redelivered"] == "true"
assert again.headers["message-id"] == message.headers["message-id"]
connection.ack(again.headers["ack"], receipt="k")
assert expect(frames, "RECEIPT").headers["receipt-id"] == "k"
connection.disconnect(receipt="bye")
assert expect(frames, "RECEIPT").headers["receipt-id"] == "bye"

connection, frames = connect("python's client")
connection.send("/queue/a,b", "x")
assert expect(frames, "ERROR").headers["message"] == "INVALID"
print("all fine")
"#;

#[tokio::test]
async fn stomp_py_understands_this_server() {
    let has_peer = Command::new("python3")
        .args(["-c", "import stomp"])
        .output();
    if !has_peer.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: python3 with stomp.py is not installed (pip install stomp.py)");
        return;
    }
    let site = Site::start(StompLimits::default()).await;
    let port = site.address().port().to_string();
    let run = move || {
        Command::new("timeout")
            .args(["60", "python3", "-c", SCRIPT, &port])
            .output()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "all fine\n",
        "{errors}"
    );
}
