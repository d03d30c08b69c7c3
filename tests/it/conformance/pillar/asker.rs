//! Requests in order, which rows then spoil.

use pillarbox_messages::{
    ChecksumData, ChecksumSpec, ChecksumType, CorrelationId, DeleteFileRequest, FileId, FileIds,
    FilePart, GetAuditTrailsRequest, GetChecksumsRequest, GetFileIdsRequest, GetFileRequest,
    GetStatusRequest, Header, IdentifyContributorsForGetAuditTrailsRequest,
    IdentifyContributorsForGetStatusRequest, IdentifyPillarsForDeleteFileRequest,
    IdentifyPillarsForGetChecksumsRequest, IdentifyPillarsForGetFileIdsRequest,
    IdentifyPillarsForGetFileRequest, IdentifyPillarsForPutFileRequest,
    IdentifyPillarsForReplaceFileRequest, PutFileRequest, ReplaceFileRequest, Timestamp,
};

use super::stage::{BOOKS, Stage};
use crate::support::md5;

/// What `here.bin` and a row's own file contain.
pub(super) const OLD: &[u8] = b"the old content";
/// What is offered.
pub(super) const NEW: &[u8] = b"the new content of the file";
/// What the files of `maps` contain, whose checksums everybody knows.
pub(super) const FOX: &[u8] = b"The quick brown fox jumps over the lazy dog";
/// Nobody listens there, but the pillar may fetch from it.
pub(super) const DEAD: &str = "http://127.0.0.1:9/dead";

/// A client of the pillar under test.
#[derive(Clone, Copy)]
pub(super) struct Asker<'a> {
    pub(super) stage: &'a Stage,
}

impl Asker<'_> {
    /// For a request to the pillar.
    pub(super) fn header(self) -> Header {
        let pillar = self.stage.kind.id();
        let client = &self.stage.client;
        let destinations = client.repository().destinations(&BOOKS.into());
        let destination = destinations.pillar(&pillar.into());
        let correlation = CorrelationId::random();
        client.request_header(correlation, &BOOKS.into(), destination, Some(pillar.into()))
    }

    /// For an identify request to all.
    pub(super) fn to_all(self) -> Header {
        let client = &self.stage.client;
        let destination = client.repository().destinations(&BOOKS.into()).collection();
        let correlation = CorrelationId::random();
        client.request_header(correlation, &BOOKS.into(), destination, None)
    }

    pub(super) fn own(self) -> FileId {
        self.stage.own().as_str().into()
    }

    pub(super) fn put_of(self, file: &str, content: &[u8], address: &str) -> PutFileRequest {
        PutFileRequest {
            header: self.header(),
            audit_trail_information: Some("conformance".to_owned()),
            pillar_id: Some(self.stage.kind.id().into()),
            file_id: file.into(),
            file_address: address.to_owned(),
            file_size: Some(content.len() as u64),
            checksum_data_for_new_file: Some(md5_data(content)),
            checksum_request_for_new_file: Some(ChecksumType::Md5.into()),
        }
    }

    /// A new file.
    pub(super) fn put(self, offered: &str) -> PutFileRequest {
        self.put_of(&self.stage.own(), NEW, offered)
    }

    pub(super) fn replace(self, file: &str, offered: &str) -> ReplaceFileRequest {
        ReplaceFileRequest {
            header: self.header(),
            audit_trail_information: Some("conformance".to_owned()),
            pillar_id: Some(self.stage.kind.id().into()),
            file_id: file.into(),
            checksum_data_for_existing_file: Some(md5_data(OLD)),
            checksum_request_for_existing_file: Some(ChecksumType::Md5.into()),
            file_address: offered.to_owned(),
            file_size: NEW.len() as u64,
            checksum_data_for_new_file: Some(md5_data(NEW)),
            checksum_request_for_new_file: Some(ChecksumType::Md5.into()),
        }
    }

    pub(super) fn delete(self, file: &str) -> DeleteFileRequest {
        DeleteFileRequest {
            header: self.header(),
            audit_trail_information: Some("conformance".to_owned()),
            pillar_id: Some(self.stage.kind.id().into()),
            file_id: file.into(),
            checksum_data_for_existing_file: Some(md5_data(OLD)),
            checksum_request_for_existing_file: Some(ChecksumType::Md5.into()),
        }
    }

    pub(super) fn get(self) -> GetFileRequest {
        GetFileRequest {
            header: self.header(),
            audit_trail_information: None,
            pillar_id: Some(self.stage.kind.id().into()),
            file_id: "here.bin".into(),
            file_part: None,
            file_address: self.stage.server.offers().address_for("got"),
        }
    }

    pub(super) fn ids(self, file_ids: FileIds) -> GetFileIdsRequest {
        GetFileIdsRequest {
            header: self.header(),
            audit_trail_information: None,
            pillar_id: Some(self.stage.kind.id().into()),
            file_ids,
            min_timestamp: None,
            max_timestamp: None,
            max_number_of_results: None,
            result_address: None,
        }
    }

    pub(super) fn sums(self, file_ids: FileIds) -> GetChecksumsRequest {
        GetChecksumsRequest {
            header: self.header(),
            audit_trail_information: None,
            pillar_id: Some(self.stage.kind.id().into()),
            file_ids,
            min_timestamp: None,
            max_timestamp: None,
            max_number_of_results: None,
            checksum_request_for_existing_file: Some(ChecksumType::Md5.into()),
            result_address: None,
        }
    }

    pub(super) fn trail(self) -> GetAuditTrailsRequest {
        GetAuditTrailsRequest {
            header: self.header(),
            audit_trail_information: None,
            contributor: Some(self.stage.kind.id().into()),
            file_id: None,
            min_sequence_number: None,
            max_sequence_number: None,
            min_timestamp: None,
            max_timestamp: None,
            max_number_of_results: None,
            result_address: None,
        }
    }

    pub(super) fn status(self) -> GetStatusRequest {
        GetStatusRequest {
            header: Header {
                collection_id: None,
                ..self.header()
            },
            audit_trail_information: None,
            contributor: Some(self.stage.kind.id().into()),
        }
    }

    pub(super) fn identify_put(self) -> IdentifyPillarsForPutFileRequest {
        IdentifyPillarsForPutFileRequest {
            header: self.to_all(),
            audit_trail_information: None,
            file_id: Some(self.own()),
            file_size: Some(3),
        }
    }

    pub(super) fn identify_get(self) -> IdentifyPillarsForGetFileRequest {
        IdentifyPillarsForGetFileRequest {
            header: self.to_all(),
            audit_trail_information: None,
            file_id: "here.bin".into(),
        }
    }

    pub(super) fn identify_delete(self) -> IdentifyPillarsForDeleteFileRequest {
        IdentifyPillarsForDeleteFileRequest {
            header: self.to_all(),
            audit_trail_information: None,
            file_id: "here.bin".into(),
        }
    }

    pub(super) fn identify_replace(self) -> IdentifyPillarsForReplaceFileRequest {
        IdentifyPillarsForReplaceFileRequest {
            header: self.to_all(),
            audit_trail_information: None,
            file_id: "here.bin".into(),
            file_size: Some(3),
        }
    }

    pub(super) fn identify_sums(self, file_ids: FileIds) -> IdentifyPillarsForGetChecksumsRequest {
        IdentifyPillarsForGetChecksumsRequest {
            header: self.to_all(),
            audit_trail_information: None,
            file_ids,
            checksum_request_for_existing_file: Some(ChecksumType::Md5.into()),
        }
    }

    pub(super) fn identify_ids(self, file_ids: FileIds) -> IdentifyPillarsForGetFileIdsRequest {
        IdentifyPillarsForGetFileIdsRequest {
            header: self.to_all(),
            audit_trail_information: None,
            file_ids: Some(file_ids),
        }
    }

    pub(super) fn identify_trail(self) -> IdentifyContributorsForGetAuditTrailsRequest {
        IdentifyContributorsForGetAuditTrailsRequest {
            header: self.to_all(),
            audit_trail_information: None,
        }
    }

    pub(super) fn identify_status(self) -> IdentifyContributorsForGetStatusRequest {
        IdentifyContributorsForGetStatusRequest {
            header: Header {
                collection_id: None,
                ..self.to_all()
            },
            audit_trail_information: None,
        }
    }
}

pub(super) fn here() -> FileIds {
    FileIds::File("here.bin".into())
}

pub(super) fn part(offset: u64, length: u64) -> Option<FilePart> {
    Some(FilePart {
        part_offset: offset,
        part_length: length,
    })
}

pub(super) fn spec(checksum_type: ChecksumType, salt: Option<&str>) -> ChecksumSpec {
    ChecksumSpec {
        checksum_type,
        checksum_salt: salt.map(|salt| salt.parse().unwrap()),
        other_checksum_type: None,
    }
}

/// A spec that nobody can compute.
pub(super) fn bad_spec() -> ChecksumSpec {
    spec(ChecksumType::HmacMd5, None)
}

pub(super) fn md5_data(content: &[u8]) -> ChecksumData {
    ChecksumData {
        checksum_spec: ChecksumType::Md5.into(),
        checksum_value: md5(content).parse().unwrap(),
        calculation_timestamp: Timestamp::EPOCH,
    }
}

/// With a spec that nobody can compute.
pub(super) fn bad_data() -> ChecksumData {
    ChecksumData {
        checksum_spec: bad_spec(),
        ..md5_data(b"")
    }
}
