//! Deleting a file from one pillar.

use crate::{
    elements::{ChecksumData, ChecksumSpec, TimeToDeliver},
    ids::{ComponentId, FileId},
};

messages! {
    /// Asks who is ready to delete the file (root element `IdentifyPillarsForDeleteFileRequest`).
    request IdentifyPillarsForDeleteFileRequest {
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
    }

    /// Says whether one is ready (root element `IdentifyPillarsForDeleteFileResponse`).
    response IdentifyPillarsForDeleteFileResponse {
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// The pillar that answers (`PillarID`).
        pillar_id: required ComponentId = "PillarID",
        /// The only kind of checksum that the pillar has, if it stores no files (`PillarChecksumSpec`).
        pillar_checksum_spec: optional ChecksumSpec = "PillarChecksumSpec",
        /// How long the pillar thinks the operation will take (`TimeToDeliver`).
        time_to_deliver: optional TimeToDeliver = "TimeToDeliver",
    }

    /// Asks one component to delete the file (root element `DeleteFileRequest`).
    request DeleteFileRequest {
        /// The pillar that is asked (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// Checksum of the file that the pillar has (`ChecksumDataForExistingFile`).
        checksum_data_for_existing_file: optional ChecksumData = "ChecksumDataForExistingFile",
        /// Which checksum of the file that the pillar has is asked for (`ChecksumRequestForExistingFile`).
        checksum_request_for_existing_file: optional ChecksumSpec = "ChecksumRequestForExistingFile",
    }

    /// Says that the work has begun or goes on (root element `DeleteFileProgressResponse`).
    response DeleteFileProgressResponse {
        /// The pillar that answers (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
    }

    /// Says how the work ended (root element `DeleteFileFinalResponse`).
    response DeleteFileFinalResponse {
        /// The pillar that answers (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// Checksum of the file that the pillar has (`ChecksumDataForExistingFile`).
        checksum_data_for_existing_file: optional ChecksumData = "ChecksumDataForExistingFile",
    }
}
