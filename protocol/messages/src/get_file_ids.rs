//! Asking which files there are.

use std::num::NonZeroU64;

use crate::{
    elements::{FileIds, ResultingFileIds, TimeToDeliver},
    ids::ComponentId,
    timestamp::Timestamp,
};

messages! {
    /// Asks who is ready to list files (root element `IdentifyPillarsForGetFileIDsRequest`).
    request IdentifyPillarsForGetFileIdsRequest {
        /// Which files (`FileIDs`).
        file_ids: optional FileIds = "FileIDs",
    }

    /// Says whether one is ready (root element `IdentifyPillarsForGetFileIDsResponse`).
    response IdentifyPillarsForGetFileIdsResponse {
        /// The pillar that answers (`PillarID`).
        pillar_id: required ComponentId = "PillarID",
        /// Which files (`FileIDs`).
        file_ids: optional FileIds = "FileIDs",
        /// How long the pillar thinks the operation will take (`TimeToDeliver`).
        time_to_deliver: optional TimeToDeliver = "TimeToDeliver",
    }

    /// Asks one component to list files (root element `GetFileIDsRequest`).
    request GetFileIdsRequest {
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
        /// Where the results are delivered; in the final response if absent (`ResultAddress`).
        result_address: optional String = "ResultAddress",
    }

    /// Says that the work has begun or goes on (root element `GetFileIDsProgressResponse`).
    response GetFileIdsProgressResponse {
        /// The pillar that answers (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// Which files (`FileIDs`).
        file_ids: optional FileIds = "FileIDs",
        /// Where the results will be delivered (`ResultAddress`).
        result_address: optional String = "ResultAddress",
    }

    /// Says how the work ended (root element `GetFileIDsFinalResponse`).
    response GetFileIdsFinalResponse {
        /// The pillar that answers (`PillarID`).
        pillar_id: optional ComponentId = "PillarID",
        /// Which files (`FileIDs`).
        file_ids: optional FileIds = "FileIDs",
        /// The file ids (`ResultingFileIDs`).
        resulting_file_ids: optional ResultingFileIds = "ResultingFileIDs",
        /// Whether there are more results than delivered here; `None` means no (`PartialResult`).
        partial_result: optional bool = "PartialResult",
    }
}
