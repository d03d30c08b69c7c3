//! A request to a pillar that is not running: it waits in a queue, is lost with a topic, and expires.

use std::{fs, time::Duration};

use pillarbox_messages::{Destination, Message, PutFileRequest, ResponseCode};

use crate::support::{
    pause,
    peers::{Ear, Peer, Put, books},
    process::Running,
    site::Site,
    whole,
};

const CONTENT: &[u8] = b"asked for while nobody was there\n";

/// A repository whose pillar has been there and is stopped, and a client.
struct Stopped {
    site: Site,
    hub: Running,
    client: Peer,
    answers: Ear,
}

impl Stopped {
    async fn start(site: Site) -> Self {
        let hub = site.start("hub");
        let mut north = site.start("north");
        north.terminate();
        north.wait_for_success();
        let client = Peer::client(&site, "waiting").await;
        let answers = client.listen(client.address()).await;
        Self {
            site,
            hub,
            client,
            answers,
        }
    }

    /// A request to the pillar to store this as the file.
    fn put(&self, correlation: &str, content: &[u8]) -> PutFileRequest {
        let put = Put {
            correlation,
            content,
            address: whole::offer(self.site.exchange_port, FILE, content),
        };
        self.client.put_request("north", FILE, &put)
    }

    /// The file as the pillar has it.
    fn stored(&self) -> Vec<u8> {
        fs::read(self.site.archive("north").join("fileDir").join(FILE)).unwrap()
    }

    /// Everything that the client hears from the pillar up to the answer to a later request about the same file,
    /// which a pillar does not begin with before it has ended the earlier.
    async fn answers_up_to_a_later_one(&mut self) -> Vec<(String, ResponseCode)> {
        let request = self.put(LATER, OTHER);
        self.client.send(request).await;
        let mut heard = Vec::new();
        loop {
            let message = self.answers.message().await;
            let correlation = message.header().correlation_id.as_str().to_owned();
            let last = correlation == LATER && message.message_type().is_final_response();
            heard.push((correlation, code(&message)));
            if last {
                return heard;
            }
        }
    }
}

fn code(message: &Message) -> ResponseCode {
    message.response_info().expect("a response").response_code
}

fn of(answers: &[(String, ResponseCode)], correlation: &str) -> Vec<ResponseCode> {
    let own = answers.iter().filter(|(known, _)| known == correlation);
    own.map(|(_, code)| *code).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn it_is_done_at_the_pillars_return_if_the_destination_is_a_queue() {
    let mut stopped = Stopped::start(Site::new(&["north"])).await;
    let request = stopped.put(EARLY, CONTENT);
    stopped.client.send(request).await;
    let _north = stopped.site.start("north");
    let answers = stopped.answers_up_to_a_later_one().await;
    assert_eq!(of(&answers, EARLY), [ACCEPTED, COMPLETED]);
    assert_eq!(of(&answers, LATER), [ResponseCode::DuplicateFileFailure]);
    assert_eq!(stopped.stored(), CONTENT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn it_outlives_a_restart_of_the_bus_in_a_queue() {
    let mut stopped = Stopped::start(Site::new(&["north"])).await;
    let request = stopped.put(EARLY, CONTENT);
    stopped.client.send(request).await;
    stopped.hub.kill();
    stopped.hub = stopped.site.start("hub");
    stopped.client = Peer::client(&stopped.site, "back").await;
    let _north = stopped.site.start("north");
    stopped.answers = stopped.client.listen(stopped.client.address()).await;
    stopped.answers_up_to_a_later_one().await;
    assert_eq!(stopped.stored(), CONTENT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn it_is_lost_if_the_destination_is_a_topic() {
    let site = Site::with_pillar_destinations(&["north"], "topic://{collection}.{pillar}");
    let mut stopped = Stopped::start(site).await;
    let request = stopped.put(EARLY, CONTENT);
    stopped.client.send(request).await;
    let _north = stopped.site.start("north");
    stopped.assert_nothing_came_of_it().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn it_has_expired_if_the_pillar_comes_back_too_late() {
    let mut stopped = Stopped::start(Site::with_timeouts(&["north"], "20s", "2s")).await;
    let request = stopped.put(EARLY, CONTENT);
    stopped.client.send(request).await;
    pause(Duration::from_millis(2100));
    let _north = stopped.site.start("north");
    stopped.assert_nothing_came_of_it().await;
}

impl Stopped {
    /// Of the earlier request: the later one finds no file.
    async fn assert_nothing_came_of_it(&mut self) {
        let answers = self.answers_up_to_a_later_one().await;
        assert_eq!(of(&answers, EARLY), []);
        assert_eq!(of(&answers, LATER), [ACCEPTED, COMPLETED]);
        assert_eq!(self.stored(), OTHER);
    }
}

const OTHER: &[u8] = b"asked for later\n";
const FILE: &str = "late.txt";
const EARLY: &str = "early";
const LATER: &str = "later";
const ACCEPTED: ResponseCode = ResponseCode::OperationAcceptedProgress;
const COMPLETED: ResponseCode = ResponseCode::OperationCompleted;

/// A pillar that fails with a request again and again loses it, others don't wait for it, and people are told once.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_fails_three_times_is_moved_aside_and_an_alarm_tells_of_it() {
    let stopped = Stopped::start(Site::new(&["north"])).await;
    let watcher = Peer::client(&stopped.site, "watcher").await;
    let mut alarms = watcher.listen(watcher.alarm_destination()).await;
    let failing = Peer::pillar(&stopped.site, "north").await;
    stopped.client.send(stopped.put("c-bad", CONTENT)).await;
    let queue = failing.pillar_destination("north");
    let mut requests = failing.listen(queue.clone()).await;
    for count in 0..3 {
        let (_, delivery) = requests.delivery().await;
        assert_eq!(delivery.message.backout_count, count);
        delivery.nack().await.unwrap();
    }
    let alarm = alarms.message().await;
    let Message::AlarmMessage(alarm) = alarm else {
        panic!("{alarm:?}");
    };
    let text = &alarm.alarm.alarm_text;
    assert!(
        text.contains("'c-bad'") && text.contains("failed 3 times"),
        "{text}"
    );
    let backout = Destination::queue(&format!("{}.backout", queue.name()));
    let mut aside = failing.listen(backout).await;
    let (moved, delivery) = aside.delivery().await;
    assert_eq!(moved.header().correlation_id.as_str(), "c-bad");
    assert_eq!(delivery.message.property("q-reason"), Some("backout"));
    assert_eq!(alarm.alarm.collection_id, Some(books()));
}
