//! Refusing answers: the response of a request's own type that says only that it failed.

use pillarbox_messages::{
    ChecksumSpec, ComponentId, DeleteFileFinalResponse, FileId, FileIds, FilePart,
    GetAuditTrailsFinalResponse, GetChecksumsFinalResponse, GetFileFinalResponse,
    GetFileIdsFinalResponse, GetStatusFinalResponse, Header,
    IdentifyContributorsForGetAuditTrailsResponse, IdentifyContributorsForGetStatusResponse,
    IdentifyPillarsForDeleteFileResponse, IdentifyPillarsForGetChecksumsResponse,
    IdentifyPillarsForGetFileIdsResponse, IdentifyPillarsForGetFileResponse,
    IdentifyPillarsForPutFileResponse, IdentifyPillarsForReplaceFileResponse, Message, MessageType,
    PutFileFinalResponse, ReplaceFileFinalResponse, ResponseInfo, ResultingStatus, StatusCode,
    StatusInfo, Timestamp,
};

/// What a request was about, as far as its refusal must repeat it. What could not be read stays empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// `FileID`; empty if unknown, since most responses must have one.
    pub file_id: FileId,
    /// `FileIDs` of a list request.
    pub file_ids: Option<FileIds>,
    /// `FilePart` of a `GetFileRequest`.
    pub file_part: Option<FilePart>,
    /// `FileAddress`; empty if unknown.
    pub file_address: String,
    /// `ChecksumRequestForExistingFile` of a checksum request.
    pub checksum_request: Option<ChecksumSpec>,
}

impl Default for Subject {
    fn default() -> Self {
        Self {
            file_id: FileId::from(""),
            file_ids: None,
            file_part: None,
            file_address: String::new(),
            checksum_request: None,
        }
    }
}

impl Subject {
    /// What this request is about.
    #[must_use]
    pub fn of(request: &Message) -> Self {
        let mut subject = Self::default();
        if let Some(file) = request.file_id() {
            subject.file_id = file.clone();
        }
        match request {
            Message::GetFileRequest(get) => {
                subject.file_part.clone_from(&get.file_part);
                subject.file_address.clone_from(&get.file_address);
            }
            Message::PutFileRequest(put) => subject.file_address.clone_from(&put.file_address),
            Message::ReplaceFileRequest(replace) => {
                subject.file_address.clone_from(&replace.file_address);
            }
            Message::IdentifyPillarsForGetChecksumsRequest(identify) => {
                subject.file_ids = Some(identify.file_ids.clone());
                subject
                    .checksum_request
                    .clone_from(&identify.checksum_request_for_existing_file);
            }
            Message::GetChecksumsRequest(get) => {
                subject.file_ids = Some(get.file_ids.clone());
                subject
                    .checksum_request
                    .clone_from(&get.checksum_request_for_existing_file);
            }
            Message::IdentifyPillarsForGetFileIdsRequest(identify) => {
                subject.file_ids.clone_from(&identify.file_ids);
            }
            Message::GetFileIdsRequest(get) => subject.file_ids = Some(get.file_ids.clone()),
            _ => {}
        }
        subject
    }
}

/// The response that refuses a request of type `kind`: to an identify request its identify response, to
/// an operation request its final response. None if `kind` is no request.
///
/// The header and the reason come from the caller; `responder` goes where the type names its pillar or
/// contributor, `now` into the status that a `GetStatusFinalResponse` can't leave out.
#[must_use]
pub fn refusal(
    kind: MessageType,
    header: Header,
    response_info: ResponseInfo,
    responder: &ComponentId,
    subject: Subject,
    now: Timestamp,
) -> Option<Message> {
    if kind.is_identify_request() {
        identify_refusal(kind, header, response_info, responder.clone(), subject)
    } else {
        final_refusal(kind, header, response_info, responder.clone(), subject, now)
    }
}

fn identify_refusal(
    kind: MessageType,
    header: Header,
    response_info: ResponseInfo,
    responder: ComponentId,
    subject: Subject,
) -> Option<Message> {
    Some(match kind {
        MessageType::IdentifyPillarsForGetFileRequest => IdentifyPillarsForGetFileResponse {
            header,
            response_info,
            file_id: subject.file_id,
            pillar_id: responder,
            time_to_deliver: None,
        }
        .into(),
        MessageType::IdentifyPillarsForPutFileRequest => IdentifyPillarsForPutFileResponse {
            header,
            response_info,
            pillar_id: responder,
            file_id: Some(subject.file_id).filter(|file| !file.as_str().is_empty()),
            pillar_checksum_spec: None,
            checksum_data_for_existing_file: None,
            time_to_deliver: None,
        }
        .into(),
        MessageType::IdentifyPillarsForDeleteFileRequest => IdentifyPillarsForDeleteFileResponse {
            header,
            response_info,
            file_id: subject.file_id,
            pillar_id: responder,
            pillar_checksum_spec: None,
            time_to_deliver: None,
        }
        .into(),
        MessageType::IdentifyPillarsForReplaceFileRequest => {
            IdentifyPillarsForReplaceFileResponse {
                header,
                response_info,
                file_id: subject.file_id,
                pillar_id: responder,
                pillar_checksum_spec: None,
                time_to_deliver: None,
            }
            .into()
        }
        MessageType::IdentifyPillarsForGetChecksumsRequest => {
            IdentifyPillarsForGetChecksumsResponse {
                header,
                response_info,
                file_ids: subject.file_ids.unwrap_or(FileIds::All),
                checksum_request_for_existing_file: subject.checksum_request,
                pillar_id: responder,
                pillar_checksum_spec: None,
                time_to_deliver: None,
            }
            .into()
        }
        MessageType::IdentifyPillarsForGetFileIdsRequest => IdentifyPillarsForGetFileIdsResponse {
            header,
            response_info,
            pillar_id: responder,
            file_ids: subject.file_ids,
            time_to_deliver: None,
        }
        .into(),
        MessageType::IdentifyContributorsForGetStatusRequest => {
            IdentifyContributorsForGetStatusResponse {
                header,
                response_info,
                contributor: responder,
                time_to_deliver: None,
            }
            .into()
        }
        MessageType::IdentifyContributorsForGetAuditTrailsRequest => {
            IdentifyContributorsForGetAuditTrailsResponse {
                header,
                response_info,
            }
            .into()
        }
        _ => return None,
    })
}

fn final_refusal(
    kind: MessageType,
    header: Header,
    response_info: ResponseInfo,
    responder: ComponentId,
    subject: Subject,
    now: Timestamp,
) -> Option<Message> {
    Some(match kind {
        MessageType::GetFileRequest => GetFileFinalResponse {
            header,
            response_info,
            pillar_id: Some(responder),
            file_id: subject.file_id,
            file_part: subject.file_part,
            file_address: subject.file_address,
        }
        .into(),
        MessageType::PutFileRequest => PutFileFinalResponse {
            header,
            response_info,
            pillar_id: Some(responder),
            pillar_checksum_spec: None,
            file_id: subject.file_id,
            file_address: subject.file_address,
            checksum_data_for_new_file: None,
            checksum_data_for_existing_file: None,
        }
        .into(),
        MessageType::DeleteFileRequest => DeleteFileFinalResponse {
            header,
            response_info,
            pillar_id: Some(responder),
            file_id: subject.file_id,
            checksum_data_for_existing_file: None,
        }
        .into(),
        MessageType::ReplaceFileRequest => ReplaceFileFinalResponse {
            header,
            response_info,
            pillar_id: Some(responder),
            pillar_checksum_spec: None,
            file_id: subject.file_id,
            file_address: subject.file_address,
            checksum_data_for_existing_file: None,
            checksum_data_for_new_file: None,
        }
        .into(),
        MessageType::GetChecksumsRequest => GetChecksumsFinalResponse {
            header,
            response_info,
            pillar_id: Some(responder),
            checksum_request_for_existing_file: subject.checksum_request,
            resulting_checksums: None,
            partial_result: None,
        }
        .into(),
        MessageType::GetFileIdsRequest => GetFileIdsFinalResponse {
            header,
            response_info,
            pillar_id: Some(responder),
            file_ids: subject.file_ids,
            resulting_file_ids: None,
            partial_result: None,
        }
        .into(),
        MessageType::GetStatusRequest => {
            status_refusal(header, response_info, responder, now).into()
        }
        MessageType::GetAuditTrailsRequest => GetAuditTrailsFinalResponse {
            header,
            response_info,
            contributor: Some(responder),
            resulting_audit_trails: None,
            partial_result: None,
        }
        .into(),
        _ => return None,
    })
}

fn status_refusal(
    header: Header,
    response_info: ResponseInfo,
    responder: ComponentId,
    now: Timestamp,
) -> GetStatusFinalResponse {
    let status_text = response_info.response_text.clone().unwrap_or_default();
    GetStatusFinalResponse {
        header,
        response_info,
        contributor: Some(responder),
        resulting_status: ResultingStatus {
            status_info: StatusInfo {
                status_code: StatusCode::Error,
                status_text,
            },
            status_timestamp: now,
        },
    }
}

#[cfg(test)]
mod tests {
    use pillarbox_messages::{
        CorrelationId, Destination, GetFileRequest, ProtocolVersion, ResponseCode,
    };

    use super::*;

    fn header() -> Header {
        Header {
            version: ProtocolVersion::CURRENT,
            correlation_id: CorrelationId::from("c-1"),
            collection_id: Some("books".into()),
            destination: Destination::topic("client"),
            reply_to: Destination::queue("books.north"),
            from: "north".into(),
            to: Some("client".into()),
        }
    }

    fn refused(kind: MessageType, subject: Subject) -> Option<Message> {
        let info = ResponseInfo {
            response_code: ResponseCode::RequestNotUnderstoodFailure,
            response_text: Some("what?".to_owned()),
        };
        refusal(
            kind,
            header(),
            info,
            &"north".into(),
            subject,
            Timestamp::EPOCH,
        )
    }

    #[test]
    fn every_request_has_a_refusal_of_its_own_operation_and_nothing_else_has() {
        let mut refusals = 0;
        for kind in MessageType::ALL.iter().copied() {
            let Some(answer) = refused(kind, Subject::default()) else {
                assert!(!kind.is_request(), "{kind:?}");
                continue;
            };
            refusals += 1;
            assert_eq!(answer.message_type().operation(), kind.operation());
            assert_eq!(
                answer.message_type().is_final_response(),
                !kind.is_identify_request()
            );
            if let Message::IdentifyPillarsForPutFileResponse(answer) = &answer {
                assert_eq!(answer.file_id, None, "left out, since it may be");
            }
            let info = answer.response_info().unwrap();
            assert_eq!(
                info.response_code,
                ResponseCode::RequestNotUnderstoodFailure
            );
            assert_eq!(
                Message::from_xml(&answer.to_xml()).unwrap(),
                answer,
                "{kind:?}"
            );
        }
        assert_eq!(refusals, 16);
    }

    #[test]
    fn a_refusal_repeats_what_was_asked() {
        let request: Message = GetFileRequest {
            header: header(),
            audit_trail_information: None,
            pillar_id: Some("north".into()),
            file_id: "a/../b".into(),
            file_part: Some(FilePart {
                part_offset: 1,
                part_length: 2,
            }),
            file_address: "http://x/y".to_owned(),
        }
        .into();
        let answer = refused(request.message_type(), Subject::of(&request)).unwrap();
        let Message::GetFileFinalResponse(answer) = answer else {
            panic!("{answer:?}")
        };
        assert_eq!(answer.file_id.as_str(), "a/../b");
        assert_eq!(
            answer.file_part,
            Some(FilePart {
                part_offset: 1,
                part_length: 2
            })
        );
        assert_eq!(answer.file_address, "http://x/y");
    }
}
