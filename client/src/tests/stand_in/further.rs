//! What a scripted pillar answers to requests that change or report.

use std::num::NonZeroU64;

use bytes::Bytes;
use pillarbox_messages::{
    AuditTrailEvent, ChecksumData, ChecksumDataItem, DeleteFileFinalResponse, DeleteFileRequest,
    FileAction, FileId, FileIds, GetAuditTrailsFinalResponse, GetAuditTrailsRequest,
    GetChecksumsFinalResponse, GetChecksumsRequest, GetStatusFinalResponse,
    IdentifyContributorsForGetAuditTrailsResponse, IdentifyContributorsForGetStatusResponse,
    IdentifyPillarsForDeleteFileResponse, IdentifyPillarsForGetChecksumsResponse,
    IdentifyPillarsForReplaceFileResponse, Message, ReplaceFileFinalResponse,
    ReplaceFileProgressResponse, ReplaceFileRequest, ResponseCode, ResultingAuditTrails,
    ResultingChecksums, ResultingStatus, StatusCode, StatusInfo, Timestamp,
};

use super::{StandIn, Temper, info, md5};

impl StandIn {
    pub(super) async fn further_answers(&self, request: Message) -> Vec<Message> {
        vec![match request {
            Message::IdentifyPillarsForDeleteFileRequest(request) => {
                IdentifyPillarsForDeleteFileResponse {
                    header: self.component.response_header(&request.header),
                    response_info: info(self.known(&request.file_id)),
                    file_id: request.file_id,
                    pillar_id: self.id().clone(),
                    pillar_checksum_spec: None,
                    time_to_deliver: None,
                }
                .into()
            }
            Message::DeleteFileRequest(request) => self.delete(request),
            Message::IdentifyPillarsForReplaceFileRequest(request) => {
                IdentifyPillarsForReplaceFileResponse {
                    header: self.component.response_header(&request.header),
                    response_info: info(self.known(&request.file_id)),
                    file_id: request.file_id,
                    pillar_id: self.id().clone(),
                    pillar_checksum_spec: None,
                    time_to_deliver: None,
                }
                .into()
            }
            Message::ReplaceFileRequest(request) => return self.replace(request).await,
            Message::IdentifyContributorsForGetAuditTrailsRequest(request) => {
                IdentifyContributorsForGetAuditTrailsResponse {
                    header: self.component.response_header(&request.header),
                    response_info: info(ResponseCode::IdentificationPositive),
                }
                .into()
            }
            Message::GetAuditTrailsRequest(request) => self.trail(request),
            Message::IdentifyContributorsForGetStatusRequest(request) => {
                IdentifyContributorsForGetStatusResponse {
                    header: self.component.response_header(&request.header),
                    response_info: info(ResponseCode::IdentificationPositive),
                    contributor: self.id().clone(),
                    time_to_deliver: None,
                }
                .into()
            }
            Message::IdentifyPillarsForGetChecksumsRequest(request) => {
                let code = match self.temper {
                    Temper::Secretive => ResponseCode::Failure,
                    _ => ResponseCode::IdentificationPositive,
                };
                IdentifyPillarsForGetChecksumsResponse {
                    header: self.component.response_header(&request.header),
                    response_info: info(code),
                    file_ids: request.file_ids,
                    checksum_request_for_existing_file: request.checksum_request_for_existing_file,
                    pillar_id: self.id().clone(),
                    pillar_checksum_spec: None,
                    time_to_deliver: None,
                }
                .into()
            }
            Message::GetChecksumsRequest(request) => self.sums(request),
            Message::GetStatusRequest(request) => GetStatusFinalResponse {
                header: self.component.response_header(&request.header),
                response_info: info(ResponseCode::OperationCompleted),
                contributor: request.contributor,
                resulting_status: ResultingStatus {
                    status_info: StatusInfo {
                        status_code: StatusCode::Ok,
                        status_text: format!("{} is well", self.id()),
                    },
                    status_timestamp: Timestamp::from_millis(0),
                },
            }
            .into(),
            other => panic!("no stand-in answers {other:?}"),
        }]
    }

    fn known(&self, file: &FileId) -> ResponseCode {
        match self.file(file.as_str()) {
            Some(_) => ResponseCode::IdentificationPositive,
            None => ResponseCode::FileNotFoundFailure,
        }
    }

    fn delete(&self, request: DeleteFileRequest) -> Message {
        let existing = md5(&self.file(request.file_id.as_str()).unwrap());
        let code = verdict(request.checksum_data_for_existing_file.as_ref(), &existing);
        if code == ResponseCode::OperationCompleted {
            self.files.lock().unwrap().remove(&request.file_id);
        }
        DeleteFileFinalResponse {
            header: self.component.response_header(&request.header),
            response_info: info(code),
            pillar_id: request.pillar_id,
            file_id: request.file_id,
            checksum_data_for_existing_file: request
                .checksum_request_for_existing_file
                .map(|_| existing),
        }
        .into()
    }

    /// The default checksum of the one file that is asked for.
    fn sums(&self, request: GetChecksumsRequest) -> Message {
        let FileIds::File(file_id) = request.file_ids else {
            panic!("no stand-in lists all files' checksums");
        };
        let sum = md5(&self.file(file_id.as_str()).unwrap());
        GetChecksumsFinalResponse {
            header: self.component.response_header(&request.header),
            response_info: info(ResponseCode::OperationCompleted),
            pillar_id: request.pillar_id,
            checksum_request_for_existing_file: request.checksum_request_for_existing_file,
            resulting_checksums: Some(ResultingChecksums::Items(vec![ChecksumDataItem {
                file_id,
                checksum_value: sum.checksum_value,
                calculation_timestamp: sum.calculation_timestamp,
            }])),
            partial_result: None,
        }
        .into()
    }

    async fn replace(&self, request: ReplaceFileRequest) -> Vec<Message> {
        let header = self.component.response_header(&request.header);
        let progress = ReplaceFileProgressResponse {
            header: header.clone(),
            response_info: info(ResponseCode::OperationAcceptedProgress),
            pillar_id: request.pillar_id.clone(),
            pillar_checksum_spec: None,
            file_id: request.file_id.clone(),
            file_address: request.file_address.clone(),
        };
        let existing = md5(&self.file(request.file_id.as_str()).unwrap());
        let code = verdict(request.checksum_data_for_existing_file.as_ref(), &existing);
        let mut new = None;
        if code == ResponseCode::OperationCompleted {
            let bytes: Bytes = {
                let download = self.exchange.get(&request.file_address).await.unwrap();
                download.bytes(1 << 20).await.unwrap()
            };
            assert_eq!(request.file_size, bytes.len() as u64);
            let sum = md5(&bytes);
            let told = request.checksum_data_for_new_file.unwrap();
            assert_eq!(told.checksum_value, sum.checksum_value);
            new = Some(sum);
            let mut files = self.files.lock().unwrap();
            files.insert(request.file_id.clone(), bytes);
        }
        let done = ReplaceFileFinalResponse {
            header,
            response_info: info(code),
            pillar_id: request.pillar_id,
            pillar_checksum_spec: None,
            file_id: request.file_id,
            file_address: request.file_address,
            checksum_data_for_existing_file: Some(existing),
            checksum_data_for_new_file: new,
        };
        vec![progress.into(), done.into()]
    }

    /// One event for each file, numbered in the order of their ids.
    fn trail(&self, request: GetAuditTrailsRequest) -> Message {
        let from = request.min_sequence_number.map_or(1, NonZeroU64::get);
        let size = usize::try_from(request.max_number_of_results.unwrap().get()).unwrap();
        let files = self.files.lock().unwrap();
        let all: Vec<AuditTrailEvent> = (1..)
            .zip(files.keys())
            .filter(|(number, _)| *number >= from)
            .map(|(number, file)| self.noted(number, file))
            .collect();
        let partial = all.len() > size;
        GetAuditTrailsFinalResponse {
            header: self.component.response_header(&request.header),
            response_info: info(ResponseCode::OperationCompleted),
            contributor: request.contributor,
            resulting_audit_trails: Some(ResultingAuditTrails::Events(
                all.into_iter().take(size).collect(),
            )),
            partial_result: Some(partial),
        }
        .into()
    }

    fn noted(&self, number: u64, file: &FileId) -> AuditTrailEvent {
        AuditTrailEvent {
            sequence_number: NonZeroU64::new(number).unwrap(),
            file_id: file.clone(),
            reporting_component: self.id().clone(),
            actor_on_file: "somebody".to_owned(),
            action_on_file: FileAction::PutFile,
            action_date_time: Timestamp::from_millis(0),
            info: None,
            operation_id: None,
            certificate_id: None,
            audit_trail_information: None,
        }
    }
}

/// Whether a file may be changed by somebody who gives this checksum of it.
fn verdict(given: Option<&ChecksumData>, existing: &ChecksumData) -> ResponseCode {
    if given.is_some_and(|given| given.checksum_value == existing.checksum_value) {
        ResponseCode::OperationCompleted
    } else {
        ResponseCode::ExistingFileChecksumFailure
    }
}
