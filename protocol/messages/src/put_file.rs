//! Storing a new file: the pillars download it from an address.

use crate::{
    elements::{ChecksumData, ChecksumSpec, TimeToDeliver},
    ids::{ComponentId, FileId},
};

messages! {
    /// Asks who is ready to store the file (root element `IdentifyPillarsForPutFileRequest`).
    request IdentifyPillarsForPutFileRequest {
        /// The file (`FileID`).
        file_id: optional FileId = "FileID",
        /// Size of the file in bytes (`FileSize`).
        file_size: optional u64 = "FileSize",
    }

    /// Says whether one is ready (root element `IdentifyPillarsForPutFileResponse`).
    response IdentifyPillarsForPutFileResponse {
        /// The pillar that answers (`PillarID`).
        pillar_id: required ComponentId = "PillarID",
        /// The file (`FileID`).
        file_id: optional FileId = "FileID",
        /// The only kind of checksum that the pillar has, if it stores no files (`PillarChecksumSpec`).
        pillar_checksum_spec: optional ChecksumSpec = "PillarChecksumSpec",
        /// Checksum of the file that the pillar has (`ChecksumDataForExistingFile`).
        checksum_data_for_existing_file: optional ChecksumData = "ChecksumDataForExistingFile",
        /// How long the pillar thinks the operation will take (`TimeToDeliver`).
        time_to_deliver: optional TimeToDeliver = "TimeToDeliver",
    }

    /// Asks one component to store the file (root element `PutFileRequest`).
    request PutFileRequest {
        /// The pillar that is asked (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// Where the pillar shall fetch the file (`FileAddress`).
        file_address: required String = "FileAddress",
        /// Size of the file in bytes (`FileSize`).
        file_size: optional u64 = "FileSize",
        /// Checksum of the new file (`ChecksumDataForNewFile`).
        checksum_data_for_new_file: optional ChecksumData = "ChecksumDataForNewFile",
        /// Which checksum of the new file is asked for (`ChecksumRequestForNewFile`).
        checksum_request_for_new_file: optional ChecksumSpec = "ChecksumRequestForNewFile",
    }

    /// Says that the work has begun or goes on (root element `PutFileProgressResponse`).
    response PutFileProgressResponse {
        /// The pillar that answers (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// The only kind of checksum that the pillar has, if it stores no files (`PillarChecksumSpec`).
        pillar_checksum_spec: optional ChecksumSpec = "PillarChecksumSpec",
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// Where the pillar fetches the file (`FileAddress`).
        file_address: required String = "FileAddress",
    }

    /// Says how the work ended (root element `PutFileFinalResponse`).
    response PutFileFinalResponse {
        /// The pillar that answers (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// The only kind of checksum that the pillar has, if it stores no files (`PillarChecksumSpec`).
        pillar_checksum_spec: optional ChecksumSpec = "PillarChecksumSpec",
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// Where the pillar fetches the file (`FileAddress`).
        file_address: required String = "FileAddress",
        /// Checksum of the new file (`ChecksumDataForNewFile`).
        checksum_data_for_new_file: optional ChecksumData = "ChecksumDataForNewFile",
        /// Checksum of the file that the pillar has (`ChecksumDataForExistingFile`).
        checksum_data_for_existing_file: optional ChecksumData = "ChecksumDataForExistingFile",
    }
}
