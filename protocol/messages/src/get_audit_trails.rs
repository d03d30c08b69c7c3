//! Asking what was done to files.

use std::num::NonZeroU64;

use crate::{
    elements::ResultingAuditTrails,
    ids::{ComponentId, FileId},
    timestamp::Timestamp,
};

messages! {
    /// Asks who is ready to deliver audit trails (root element `IdentifyContributorsForGetAuditTrailsRequest`).
    request IdentifyContributorsForGetAuditTrailsRequest {
    }

    /// Says whether one is ready (root element `IdentifyContributorsForGetAuditTrailsResponse`).
    response IdentifyContributorsForGetAuditTrailsResponse {
    }

    /// Asks one component to deliver audit trails (root element `GetAuditTrailsRequest`).
    request GetAuditTrailsRequest {
        /// The component that is asked (`Contributor`).
        contributor: optional ComponentId = "Contributor",
        /// Only events of this file (`FileID`).
        file_id: optional FileId = "FileID",
        /// Nothing numbered lower than this (`MinSequenceNumber`).
        min_sequence_number: optional NonZeroU64 = "MinSequenceNumber",
        /// Nothing numbered higher than this (`MaxSequenceNumber`).
        max_sequence_number: optional NonZeroU64 = "MaxSequenceNumber",
        /// Nothing older than this (`MinTimestamp`).
        min_timestamp: optional Timestamp = "MinTimestamp",
        /// Nothing younger than this (`MaxTimestamp`).
        max_timestamp: optional Timestamp = "MaxTimestamp",
        /// The most results to deliver at once (`MaxNumberOfResults`).
        max_number_of_results: optional NonZeroU64 = "MaxNumberOfResults",
        /// Where the results are delivered; in the final response if absent (`ResultAddress`).
        result_address: optional String = "ResultAddress",
    }

    /// Says that the work has begun or goes on (root element `GetAuditTrailsProgressResponse`).
    response GetAuditTrailsProgressResponse {
        /// The component that answers (`Contributor`).
        contributor: optional ComponentId = "Contributor",
        /// Where the results will be delivered (`ResultAddress`).
        result_address: optional String = "ResultAddress",
    }

    /// Says how the work ended (root element `GetAuditTrailsFinalResponse`).
    response GetAuditTrailsFinalResponse {
        /// The component that answers (`Contributor`).
        contributor: optional ComponentId = "Contributor",
        /// The events (`ResultingAuditTrails`).
        resulting_audit_trails: optional ResultingAuditTrails = "ResultingAuditTrails",
        /// Whether there are more results than delivered here; `None` means no (`PartialResult`).
        partial_result: optional bool = "PartialResult",
    }
}
