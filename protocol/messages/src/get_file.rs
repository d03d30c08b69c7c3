//! Fetching a file: a pillar uploads it to an address.

use crate::{
    elements::{ChecksumData, FilePart, TimeToDeliver},
    ids::{ComponentId, FileId},
};

messages! {
    /// Asks who is ready to deliver the file (root element `IdentifyPillarsForGetFileRequest`).
    request IdentifyPillarsForGetFileRequest {
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
    }

    /// Says whether one is ready (root element `IdentifyPillarsForGetFileResponse`).
    response IdentifyPillarsForGetFileResponse {
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// The pillar that answers (`PillarID`).
        pillar_id: required ComponentId = "PillarID",
        /// How long the pillar thinks the operation will take (`TimeToDeliver`).
        time_to_deliver: optional TimeToDeliver = "TimeToDeliver",
    }

    /// Asks one component to deliver the file (root element `GetFileRequest`).
    request GetFileRequest {
        /// The pillar that is asked (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// The part of the file that is meant; the whole file if absent (`FilePart`).
        file_part: optional FilePart = "FilePart",
        /// Where the pillar shall deliver the file (`FileAddress`).
        file_address: required String = "FileAddress",
    }

    /// Says that the work has begun or goes on (root element `GetFileProgressResponse`).
    response GetFileProgressResponse {
        /// The pillar that answers (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// The part of the file that is meant; the whole file if absent (`FilePart`).
        file_part: optional FilePart = "FilePart",
        /// Where the pillar delivers the file (`FileAddress`).
        file_address: required String = "FileAddress",
        /// Size of the file in bytes (`FileSize`).
        file_size: optional u64 = "FileSize",
        /// Checksum of the file that the pillar has (`ChecksumDataForExistingFile`).
        checksum_data_for_existing_file: optional ChecksumData = "ChecksumDataForExistingFile",
    }

    /// Says how the work ended (root element `GetFileFinalResponse`).
    response GetFileFinalResponse {
        /// The pillar that answers (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// The file (`FileID`).
        file_id: required FileId = "FileID",
        /// The part of the file that is meant; the whole file if absent (`FilePart`).
        file_part: optional FilePart = "FilePart",
        /// Where the pillar delivers the file (`FileAddress`).
        file_address: required String = "FileAddress",
    }
}
