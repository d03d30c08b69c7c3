//! Scripted pillars.

mod further;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use pillarbox_bus::Subscription;
use pillarbox_component::Component;
use pillarbox_exchange::ExchangeClient;
use pillarbox_messages::{
    ChecksumData, ChecksumType, ComponentId, FileId, FileIdsData, FileIdsDataItem, FilePart,
    GetFileFinalResponse, GetFileIdsFinalResponse, GetFileProgressResponse,
    IdentifyPillarsForGetFileIdsResponse, IdentifyPillarsForGetFileResponse,
    IdentifyPillarsForPutFileResponse, Message, PutFileFinalResponse, PutFileProgressResponse,
    ResponseCode, ResponseInfo, ResultingFileIds, TimeMeasureUnit, TimeToDeliver, Timestamp,
};
use tokio::sync::watch;

use super::site::PLENTY;
use crate::digests::{Hasher, plain_spec};

/// How long a slow one is silent.
pub(super) const SLOW_PROGRESS: Duration = Duration::from_millis(400);
/// How often it says that it is at work: longer altogether than four times that silence.
const SLOW_TIMES: usize = 6;

/// How a stand-in behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Temper {
    /// As a pillar should.
    Honest,
    /// Answers nothing at all.
    Mute,
    /// Is ready for nothing.
    Refusing,
    /// Needs hours, as it says, but tells now and then that it is at work.
    Slow,
    /// Is ready, and then says nothing more.
    Stuck,
    /// Answers with what is no message of the schema.
    Garbled,
    /// Says that it has delivered, but has not.
    Boastful,
    /// Delivers other bytes than it has, and faster than anybody.
    Corrupt,
    /// The same, without a checksum; it tells the right one when asked.
    Careless,
    /// Delivers without a checksum; it tells it when asked.
    Reticent,
    /// Delivers without a checksum, and tells none.
    Secretive,
}

/// A pillar that keeps its files in memory.
#[derive(Clone)]
pub(super) struct StandIn {
    component: Component,
    exchange: ExchangeClient,
    temper: Temper,
    pub(super) files: Arc<Mutex<BTreeMap<FileId, Bytes>>>,
    heard: Arc<watch::Sender<Vec<Message>>>,
    /// All requests so far.
    pub(super) requests: watch::Receiver<Vec<Message>>,
}

impl StandIn {
    pub(super) fn new(component: Component, exchange: ExchangeClient, temper: Temper) -> Self {
        let (heard, requests) = watch::channel(Vec::new());
        Self {
            component,
            exchange,
            temper,
            files: Arc::default(),
            heard: Arc::new(heard),
            requests,
        }
    }

    pub(super) fn id(&self) -> &ComponentId {
        self.component.id()
    }

    pub(super) fn keep(&self, file: &str, bytes: &'static [u8]) {
        self.files
            .lock()
            .unwrap()
            .insert(file.into(), Bytes::from_static(bytes));
    }

    pub(super) fn file(&self, file: &str) -> Option<Bytes> {
        self.files.lock().unwrap().get(file).cloned()
    }

    /// Waits for a request of which this is true.
    pub(super) async fn hears(&self, wanted: impl Fn(&Message) -> bool + Send + Sync) {
        let mut requests = self.requests.clone();
        let heard = requests.wait_for(|all| all.iter().any(&wanted));
        tokio::time::timeout(PLENTY, heard)
            .await
            .expect("no such request came")
            .unwrap();
    }

    /// How many requests of this type came.
    pub(super) fn count(&self, name: &str) -> usize {
        let requests = self.requests.borrow();
        requests
            .iter()
            .filter(|message| message.message_type().as_str() == name)
            .count()
    }

    pub(super) async fn serve(self, mut subscription: Subscription) {
        while let Some(delivery) = subscription.next().await {
            let Ok(received) = self.component.receive(&delivery.message) else {
                continue;
            };
            self.heard
                .send_modify(|all| all.push(received.message.clone()));
            let answers = self.answers(received.message).await;
            let slow = self.temper == Temper::Slow && answers.len() > 1;
            for answer in answers {
                let address = received.reply_address.as_deref();
                let mut outgoing = self.component.outgoing_reply(&answer, address);
                if self.temper == Temper::Garbled {
                    let text = String::from_utf8(outgoing.body.to_vec()).unwrap();
                    outgoing.body = text.replace("PillarID>", "Pillar>").into();
                }
                self.component.bus().publish(outgoing).await.unwrap();
                if slow {
                    tokio::time::sleep(SLOW_PROGRESS).await;
                }
            }
        }
    }

    async fn answers(&self, request: Message) -> Vec<Message> {
        let identify = request.message_type().is_identify_request();
        match self.temper {
            Temper::Mute => return Vec::new(),
            Temper::Stuck if !identify => return Vec::new(),
            _ => {}
        }
        match request {
            Message::IdentifyPillarsForPutFileRequest(request) => {
                let existing = request
                    .file_id
                    .as_ref()
                    .and_then(|file| self.file(file.as_str()));
                let code = match existing {
                    _ if self.temper == Temper::Refusing => ResponseCode::Failure,
                    Some(_) => ResponseCode::DuplicateFileFailure,
                    None => ResponseCode::IdentificationPositive,
                };
                let header = self.component.response_header(&request.header);
                vec![
                    IdentifyPillarsForPutFileResponse {
                        header,
                        response_info: info(code),
                        pillar_id: self.id().clone(),
                        file_id: request.file_id,
                        pillar_checksum_spec: None,
                        checksum_data_for_existing_file: existing.as_deref().map(md5),
                        time_to_deliver: None,
                    }
                    .into(),
                ]
            }
            Message::PutFileRequest(request) => self.put(request).await,
            Message::IdentifyPillarsForGetFileRequest(request) => {
                let code = match self.file(request.file_id.as_str()) {
                    Some(_) => ResponseCode::IdentificationPositive,
                    None => ResponseCode::FileNotFoundFailure,
                };
                let time = match self.temper {
                    Temper::Corrupt | Temper::Careless => TimeToDeliver::from_millis(1),
                    Temper::Slow => TimeToDeliver {
                        time_measure_unit: TimeMeasureUnit::Hours,
                        time_measure_value: 2,
                    },
                    _ => TimeToDeliver::from_millis(1000),
                };
                vec![
                    IdentifyPillarsForGetFileResponse {
                        header: self.component.response_header(&request.header),
                        response_info: info(code),
                        file_id: request.file_id,
                        pillar_id: self.id().clone(),
                        time_to_deliver: Some(time),
                    }
                    .into(),
                ]
            }
            Message::GetFileRequest(request) => self.get(request).await,
            Message::IdentifyPillarsForGetFileIdsRequest(request) => vec![
                IdentifyPillarsForGetFileIdsResponse {
                    header: self.component.response_header(&request.header),
                    response_info: info(ResponseCode::IdentificationPositive),
                    pillar_id: self.id().clone(),
                    file_ids: request.file_ids,
                    time_to_deliver: None,
                }
                .into(),
            ],
            Message::GetFileIdsRequest(request) => vec![self.list(request)],
            other => self.further_answers(other).await,
        }
    }

    async fn put(&self, request: pillarbox_messages::PutFileRequest) -> Vec<Message> {
        let header = self.component.response_header(&request.header);
        let progress = PutFileProgressResponse {
            header: header.clone(),
            response_info: info(ResponseCode::OperationAcceptedProgress),
            pillar_id: Some(self.id().clone()),
            pillar_checksum_spec: None,
            file_id: request.file_id.clone(),
            file_address: request.file_address.clone(),
        };
        let download = self.exchange.get(&request.file_address).await.unwrap();
        let bytes = download.bytes(1 << 20).await.unwrap();
        let sum = md5(&bytes);
        let told = request.checksum_data_for_new_file.unwrap();
        assert_eq!(told.checksum_value, sum.checksum_value);
        assert_eq!(request.file_size, Some(bytes.len() as u64));
        self.files
            .lock()
            .unwrap()
            .insert(request.file_id.clone(), bytes);
        let done = PutFileFinalResponse {
            header,
            response_info: info(ResponseCode::OperationCompleted),
            pillar_id: Some(self.id().clone()),
            pillar_checksum_spec: None,
            file_id: request.file_id,
            file_address: request.file_address,
            checksum_data_for_new_file: Some(sum),
            checksum_data_for_existing_file: None,
        };
        vec![progress.into(), done.into()]
    }

    async fn get(&self, request: pillarbox_messages::GetFileRequest) -> Vec<Message> {
        let header = self.component.response_header(&request.header);
        let bytes = self.file(request.file_id.as_str()).unwrap();
        let progress = GetFileProgressResponse {
            header: header.clone(),
            response_info: info(ResponseCode::OperationAcceptedProgress),
            pillar_id: Some(self.id().clone()),
            file_id: request.file_id.clone(),
            file_part: request.file_part.clone(),
            file_address: request.file_address.clone(),
            file_size: Some(bytes.len() as u64),
            checksum_data_for_existing_file: Some(md5(&bytes)).filter(|_| !self.is_reserved()),
        };
        let mut sent = cut(&bytes, request.file_part.as_ref());
        if matches!(self.temper, Temper::Corrupt | Temper::Careless) {
            sent[0] ^= 1;
        }
        if self.temper != Temper::Boastful {
            self.exchange
                .put_bytes(&request.file_address, sent.into())
                .await
                .unwrap();
        }
        let done = GetFileFinalResponse {
            header,
            response_info: info(ResponseCode::OperationCompleted),
            pillar_id: Some(self.id().clone()),
            file_id: request.file_id,
            file_part: request.file_part,
            file_address: request.file_address,
        };
        let mut answers = vec![progress.clone().into()];
        if self.temper == Temper::Slow {
            let mut progress = progress;
            progress.response_info = info(ResponseCode::OperationProgress);
            answers.resize(SLOW_TIMES, progress.into());
        }
        answers.push(done.into());
        answers
    }

    /// Whether it delivers files without their checksums.
    const fn is_reserved(&self) -> bool {
        matches!(
            self.temper,
            Temper::Careless | Temper::Reticent | Temper::Secretive
        )
    }

    /// The files in the order of their ids, one second apart.
    fn list(&self, request: pillarbox_messages::GetFileIdsRequest) -> Message {
        let from = request.min_timestamp.unwrap().millis();
        let size = usize::try_from(request.max_number_of_results.unwrap().get()).unwrap();
        let files = self.files.lock().unwrap();
        let all: Vec<FileIdsDataItem> = files
            .iter()
            .zip((0..).step_by(1000))
            .map(|((file, bytes), time)| FileIdsDataItem {
                file_id: file.clone(),
                last_modification_time: Timestamp::from_millis(time),
                file_size: Some(bytes.len() as u64),
            })
            .filter(|item| item.last_modification_time.millis() >= from)
            .collect();
        let partial = all.len() > size;
        GetFileIdsFinalResponse {
            header: self.component.response_header(&request.header),
            response_info: info(ResponseCode::OperationCompleted),
            pillar_id: Some(self.id().clone()),
            file_ids: Some(request.file_ids),
            resulting_file_ids: Some(ResultingFileIds::Data(FileIdsData {
                items: all.into_iter().take(size).collect(),
            })),
            partial_result: Some(partial),
        }
        .into()
    }
}

/// A part, as far as the file goes.
fn cut(bytes: &[u8], part: Option<&FilePart>) -> Vec<u8> {
    let Some(part) = part else {
        return bytes.to_vec();
    };
    let [from, length] = [part.part_offset, part.part_length].map(|n| usize::try_from(n).unwrap());
    bytes.iter().skip(from).take(length).copied().collect()
}

fn info(code: ResponseCode) -> ResponseInfo {
    ResponseInfo {
        response_code: code,
        response_text: None,
    }
}

pub(super) fn md5(bytes: &[u8]) -> ChecksumData {
    let spec = plain_spec(ChecksumType::Md5);
    let mut hasher = Hasher::new(&spec).unwrap();
    hasher.update(bytes);
    ChecksumData {
        checksum_spec: spec,
        checksum_value: hasher.finish(),
        calculation_timestamp: Timestamp::from_millis(0),
    }
}
