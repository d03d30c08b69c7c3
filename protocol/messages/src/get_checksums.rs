//! Asking for checksums of one file or all.

use std::num::NonZeroU64;

use crate::{
    elements::{ChecksumSpec, FileIds, ResultingChecksums, TimeToDeliver},
    ids::ComponentId,
    timestamp::Timestamp,
};

messages! {
    /// Asks who is ready to deliver checksums (root element `IdentifyPillarsForGetChecksumsRequest`).
    request IdentifyPillarsForGetChecksumsRequest {
        /// Which files (`FileIDs`).
        file_ids: required FileIds = "FileIDs",
        /// Which checksum of the file that the pillar has is asked for (`ChecksumRequestForExistingFile`).
        checksum_request_for_existing_file: optional ChecksumSpec = "ChecksumRequestForExistingFile",
    }

    /// Says whether one is ready (root element `IdentifyPillarsForGetChecksumsResponse`).
    response IdentifyPillarsForGetChecksumsResponse {
        /// Which files (`FileIDs`).
        file_ids: required FileIds = "FileIDs",
        /// Which checksum of the file that the pillar has is asked for (`ChecksumRequestForExistingFile`).
        checksum_request_for_existing_file: optional ChecksumSpec = "ChecksumRequestForExistingFile",
        /// The pillar that answers (`PillarID`).
        pillar_id: required ComponentId = "PillarID",
        /// The only kind of checksum that the pillar has, if it stores no files (`PillarChecksumSpec`).
        pillar_checksum_spec: optional ChecksumSpec = "PillarChecksumSpec",
        /// How long the pillar thinks the operation will take (`TimeToDeliver`).
        time_to_deliver: optional TimeToDeliver = "TimeToDeliver",
    }

    /// Asks one component to deliver checksums (root element `GetChecksumsRequest`).
    request GetChecksumsRequest {
        /// The pillar that is asked (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// Which files (`FileIDs`).
        file_ids: required FileIds = "FileIDs",
        /// Nothing older than this (`MinTimestamp`).
        min_timestamp: optional Timestamp = "MinTimestamp",
        /// Nothing younger than this (`MaxTimestamp`).
        max_timestamp: optional Timestamp = "MaxTimestamp",
        /// The most results to deliver at once (`MaxNumberOfResults`).
        max_number_of_results: optional NonZeroU64 = "MaxNumberOfResults",
        /// Which checksum of the file that the pillar has is asked for (`ChecksumRequestForExistingFile`).
        checksum_request_for_existing_file: optional ChecksumSpec = "ChecksumRequestForExistingFile",
        /// Where the results are delivered; in the final response if absent (`ResultAddress`).
        result_address: optional String = "ResultAddress",
    }

    /// Says that the work has begun or goes on (root element `GetChecksumsProgressResponse`).
    response GetChecksumsProgressResponse {
        /// The pillar that answers (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// Which files (`FileIDs`).
        file_ids: optional FileIds = "FileIDs",
        /// Which checksum of the file that the pillar has is asked for (`ChecksumRequestForExistingFile`).
        checksum_request_for_existing_file: optional ChecksumSpec = "ChecksumRequestForExistingFile",
        /// Where the results will be delivered (`ResultAddress`).
        result_address: optional String = "ResultAddress",
    }

    /// Says how the work ended (root element `GetChecksumsFinalResponse`).
    response GetChecksumsFinalResponse {
        /// The pillar that answers (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// Which checksum of the file that the pillar has is asked for (`ChecksumRequestForExistingFile`).
        checksum_request_for_existing_file: optional ChecksumSpec = "ChecksumRequestForExistingFile",
        /// The checksums (`ResultingChecksums`).
        resulting_checksums: optional ResultingChecksums = "ResultingChecksums",
        /// Whether there are more results than delivered here; `None` means no (`PartialResult`).
        partial_result: optional bool = "PartialResult",
    }
}
