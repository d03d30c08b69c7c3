//! Replacing a file on one pillar by another of the same id.

use crate::{
    elements::{ChecksumData, ChecksumSpec, TimeToDeliver},
    ids::{ComponentId, FileId},
};

messages! {
    /// Asks who is ready to replace the file (root element `IdentifyPillarsForReplaceFileRequest`).
    request IdentifyPillarsForReplaceFileRequest {
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// Size of the file in bytes (`FileSize`).
        file_size: optional u64 = "FileSize",
    }

    /// Says whether one is ready (root element `IdentifyPillarsForReplaceFileResponse`).
    response IdentifyPillarsForReplaceFileResponse {
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// The pillar that answers (`PillarID`).
        pillar_id: required ComponentId = "PillarID",
        /// The only kind of checksum that the pillar has, if it stores no files (`PillarChecksumSpec`).
        pillar_checksum_spec: optional ChecksumSpec = "PillarChecksumSpec",
        /// How long the pillar thinks the operation will take (`TimeToDeliver`).
        time_to_deliver: optional TimeToDeliver = "TimeToDeliver",
    }

    /// Asks one component to replace the file (root element `ReplaceFileRequest`).
    request ReplaceFileRequest {
        /// The pillar that is asked (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// Checksum of the file that the pillar has (`ChecksumDataForExistingFile`).
        checksum_data_for_existing_file: optional ChecksumData = "ChecksumDataForExistingFile",
        /// Which checksum of the file that the pillar has is asked for (`ChecksumRequestForExistingFile`).
        checksum_request_for_existing_file: optional ChecksumSpec = "ChecksumRequestForExistingFile",
        /// Where the pillar shall fetch the new file (`FileAddress`).
        file_address: required String = "FileAddress",
        /// Size of the file in bytes (`FileSize`).
        file_size: required u64 = "FileSize",
        /// Checksum of the new file (`ChecksumDataForNewFile`).
        checksum_data_for_new_file: optional ChecksumData = "ChecksumDataForNewFile",
        /// Which checksum of the new file is asked for (`ChecksumRequestForNewFile`).
        checksum_request_for_new_file: optional ChecksumSpec = "ChecksumRequestForNewFile",
    }

    /// Says that the work has begun or goes on (root element `ReplaceFileProgressResponse`).
    response ReplaceFileProgressResponse {
        /// The pillar that answers (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// The only kind of checksum that the pillar has, if it stores no files (`PillarChecksumSpec`).
        pillar_checksum_spec: optional ChecksumSpec = "PillarChecksumSpec",
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// Where the pillar fetches the new file (`FileAddress`).
        file_address: required String = "FileAddress",
    }

    /// Says how the work ended (root element `ReplaceFileFinalResponse`).
    response ReplaceFileFinalResponse {
        /// The pillar that answers (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// The only kind of checksum that the pillar has, if it stores no files (`PillarChecksumSpec`).
        pillar_checksum_spec: optional ChecksumSpec = "PillarChecksumSpec",
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// Where the pillar fetches the new file (`FileAddress`).
        file_address: required String = "FileAddress",
        /// Checksum of the file that the pillar has (`ChecksumDataForExistingFile`).
        checksum_data_for_existing_file: optional ChecksumData = "ChecksumDataForExistingFile",
        /// Checksum of the new file (`ChecksumDataForNewFile`).
        checksum_data_for_new_file: optional ChecksumData = "ChecksumDataForNewFile",
    }
}
