//! Components that the tests play over STOMP, in the words of the product's own message types.

use std::sync::Arc;

use pillarbox_bus::{AckMode, Bus, ConnectOptions, Delivery, StompOptions, SubscribeRequest};
use pillarbox_component::{Component, ComponentOptions};
use pillarbox_messages::{
    ChecksumData, CollectionId, ComponentId, CorrelationId, Destination, GetFileFinalResponse,
    GetFileProgressResponse, GetFileRequest, HexBinary, IdentifyPillarsForGetFileResponse,
    IdentifyPillarsForPutFileResponse, Message, PutFileFinalResponse, PutFileRequest, ResponseCode,
    ResponseInfo, TimeToDeliver, clock::SystemClock,
};
use pillarbox_settings::{AlarmLevel, Repository};
use tokio::time::timeout;

use super::{PATIENCE, md5, site::Site};

/// A component of the test's own on a site's bus.
#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) component: Component,
}

impl Peer {
    /// A client of this name.
    pub(crate) async fn client(site: &Site, id: &str) -> Self {
        let (repository, bus) = connect(site, id).await;
        let options =
            ComponentOptions::client(id.into(), None, repository, bus, SystemClock::shared());
        Self {
            component: Component::new(options),
        }
    }

    /// A pillar of this name.
    pub(crate) async fn pillar(site: &Site, id: &str) -> Self {
        let (repository, bus) = connect(site, id).await;
        let clock = SystemClock::shared();
        let options =
            ComponentOptions::pillar(id.into(), repository, bus, clock, AlarmLevel::default());
        Self {
            component: Component::new(options),
        }
    }

    /// Where a pillar takes requests.
    pub(crate) fn pillar_destination(&self, pillar: &str) -> Destination {
        let repository = self.component.repository();
        repository
            .destinations(&books())
            .pillar(&ComponentId::from(pillar))
    }

    /// Where the collection's identify requests go.
    pub(crate) fn collection_destination(&self) -> Destination {
        self.component
            .repository()
            .destinations(&books())
            .collection()
    }

    /// Where the collection's alarms go.
    pub(crate) fn alarm_destination(&self) -> Destination {
        let alarms = self.component.repository().destinations(&books()).alarms();
        alarms.into_iter().next().expect("there is one")
    }

    /// Where its own answers go.
    pub(crate) fn address(&self) -> Destination {
        self.component.address(Some(&books()))
    }

    /// Hears everything that is sent there from now on.
    pub(crate) async fn listen(&self, destination: Destination) -> Ear {
        let request = SubscribeRequest {
            ack_timeout: None,
            destination,
            durable: None,
            ack: AckMode::Individual,
            prefetch: 100,
        };
        self.listen_as(request).await
    }

    /// Hears what comes to this subscription.
    pub(crate) async fn listen_as(&self, request: SubscribeRequest) -> Ear {
        let subscription = self.component.bus().subscribe(request).await;
        Ear {
            subscription: subscription.expect("can subscribe"),
        }
    }

    pub(crate) async fn send(&self, message: impl Into<Message>) {
        self.component
            .send(&message.into())
            .await
            .expect("the bus takes it");
    }

    /// Asks a pillar to store a file from an address.
    pub(crate) fn put_request(&self, pillar: &str, file: &str, put: &Put<'_>) -> PutFileRequest {
        let destination = self.pillar_destination(pillar);
        PutFileRequest {
            header: self.component.request_header(
                CorrelationId::from(put.correlation),
                &books(),
                destination,
                Some(pillar.into()),
            ),
            audit_trail_information: None,
            pillar_id: Some(pillar.into()),
            file_id: file.into(),
            file_address: put.address.clone(),
            file_size: Some(u64::try_from(put.content.len()).expect("small")),
            checksum_data_for_new_file: Some(self.checksum_data(put.content)),
            checksum_request_for_new_file: None,
        }
    }

    fn checksum_data(&self, content: &[u8]) -> ChecksumData {
        ChecksumData {
            checksum_spec: pillarbox_messages::ChecksumType::Md5.into(),
            checksum_value: md5(content).parse::<HexBinary>().expect("hex"),
            calculation_timestamp: self.component.timestamp(),
        }
    }
}

/// A put that the test asks for.
#[derive(Debug)]
pub(crate) struct Put<'a> {
    pub(crate) correlation: &'a str,
    pub(crate) content: &'a [u8],
    pub(crate) address: String,
}

/// A site's settings, and a connection of this name.
pub(crate) async fn connect(site: &Site, id: &str) -> (Arc<Repository>, Bus) {
    let repository = pillarbox_settings::load_repository(&site.part("client"));
    let options = StompOptions::new(format!("127.0.0.1:{}", site.bus_port));
    let connect = ConnectOptions {
        client_id: id.to_owned(),
    };
    let bus = Bus::stomp(options, connect);
    bus.ready(PATIENCE).await.expect("the bus is there");
    (Arc::new(repository.expect("good settings")), bus)
}

/// The collection of all sites.
pub(crate) fn books() -> CollectionId {
    CollectionId::from("books")
}

/// What arrives at one destination.
#[derive(Debug)]
pub(crate) struct Ear {
    subscription: pillarbox_bus::Subscription,
}

impl Ear {
    /// The next message, which stays unacknowledged as long as the delivery is kept.
    pub(crate) async fn delivery(&mut self) -> (Message, Delivery) {
        let next = timeout(PATIENCE, self.subscription.next()).await;
        let delivery = next.expect("a message comes").expect("still subscribed");
        let text = std::str::from_utf8(&delivery.message.body).expect("UTF-8");
        (Message::from_xml(text).expect("a message"), delivery)
    }

    /// The next message, acknowledged.
    pub(crate) async fn message(&mut self) -> Message {
        let (message, delivery) = self.delivery().await;
        delivery.ack().await.expect("can be acknowledged");
        message
    }

    /// The first message from now on for which this is true.
    pub(crate) async fn until(&mut self, fits: impl Fn(&Message) -> bool) -> Message {
        loop {
            let message = self.message().await;
            if fits(&message) {
                return message;
            }
        }
    }
}

/// A message of this type from this component.
pub(crate) fn is(message: &Message, kind: &str, from: &str) -> bool {
    message.message_type().as_str() == kind && message.header().from.as_str() == from
}

/// A pillar that the test plays, answer by answer.
#[derive(Debug)]
pub(crate) struct StandIn {
    pub(crate) peer: Peer,
    identify_requests: Ear,
    pub(crate) requests: Ear,
}

impl StandIn {
    /// Joins the collection under this id.
    pub(crate) async fn join(site: &Site, id: &str) -> Self {
        let peer = Peer::pillar(site, id).await;
        let identify_requests = peer.listen(peer.collection_destination()).await;
        let requests = peer.listen(peer.address()).await;
        Self {
            peer,
            identify_requests,
            requests,
        }
    }

    /// The next identify request to the collection.
    pub(crate) async fn identify_request(&mut self) -> Message {
        self.identify_requests.message().await
    }

    /// Ready to store the file that is asked about.
    pub(crate) async fn accept_put(&self, request: &Message) {
        let response = self.put_identification(request);
        self.peer.send(response).await;
    }

    /// Ready to deliver the file that is asked for.
    pub(crate) async fn accept_get(&self, request: &Message) {
        let response = IdentifyPillarsForGetFileResponse {
            header: self.peer.component.response_header(request.header()),
            response_info: ResponseInfo::new(ResponseCode::IdentificationPositive, "ready"),
            file_id: request.file_id().expect("a file").clone(),
            pillar_id: self.peer.component.id().clone(),
            time_to_deliver: Some(TimeToDeliver::from_millis(1000)),
        };
        self.peer.send(response).await;
    }

    /// The next get request to this pillar.
    pub(crate) async fn get_request(&mut self) -> GetFileRequest {
        match self.requests.message().await {
            Message::GetFileRequest(request) => request,
            other => panic!("not a get: {other:?}"),
        }
    }

    /// Says that the file is at the address that the next get request names, and what its checksum is.
    pub(crate) async fn complete_get(&mut self, content: &[u8]) {
        let request = self.get_request().await;
        let progress = GetFileProgressResponse {
            header: self.peer.component.response_header(&request.header),
            response_info: ResponseInfo::new(ResponseCode::OperationAcceptedProgress, "at work"),
            pillar_id: Some(self.peer.component.id().clone()),
            file_id: request.file_id.clone(),
            file_part: None,
            file_address: request.file_address.clone(),
            file_size: Some(content.len() as u64),
            checksum_data_for_existing_file: Some(self.peer.checksum_data(content)),
        };
        self.peer.send(progress).await;
        self.end_get(request).await;
    }

    /// Says that the file is at the address that this request names.
    pub(crate) async fn end_get(&self, request: GetFileRequest) {
        let response = GetFileFinalResponse {
            header: self.peer.component.response_header(&request.header),
            response_info: ResponseInfo::new(ResponseCode::OperationCompleted, "delivered"),
            pillar_id: Some(self.peer.component.id().clone()),
            file_id: request.file_id,
            file_part: None,
            file_address: request.file_address,
        };
        self.peer.send(response).await;
    }

    pub(crate) fn put_identification(
        &self,
        request: &Message,
    ) -> IdentifyPillarsForPutFileResponse {
        IdentifyPillarsForPutFileResponse {
            header: self.peer.component.response_header(request.header()),
            response_info: ResponseInfo::new(ResponseCode::IdentificationPositive, "ready"),
            pillar_id: self.peer.component.id().clone(),
            file_id: request.file_id().cloned(),
            pillar_checksum_spec: None,
            checksum_data_for_existing_file: None,
            time_to_deliver: Some(TimeToDeliver::from_millis(1000)),
        }
    }

    /// The next put request to this pillar.
    pub(crate) async fn put_request(&mut self) -> PutFileRequest {
        match self.requests.message().await {
            Message::PutFileRequest(request) => request,
            other => panic!("not a put: {other:?}"),
        }
    }

    /// Says how a put ended.
    pub(crate) async fn end_put(&self, request: &PutFileRequest, code: ResponseCode) {
        let response = PutFileFinalResponse {
            header: self.peer.component.response_header(&request.header),
            response_info: ResponseInfo::new(code, "so it ended"),
            pillar_id: Some(self.peer.component.id().clone()),
            pillar_checksum_spec: None,
            file_id: request.file_id.clone(),
            file_address: request.file_address.clone(),
            checksum_data_for_new_file: None,
            checksum_data_for_existing_file: None,
        };
        self.peer.send(response).await;
    }
}
