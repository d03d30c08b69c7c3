//! Asking components how they are.

use crate::{
    elements::{ResultingStatus, TimeToDeliver},
    ids::ComponentId,
};

messages! {
    /// Asks who is ready to say how they are (root element `IdentifyContributorsForGetStatusRequest`).
    request IdentifyContributorsForGetStatusRequest {
    }

    /// Says whether one is ready (root element `IdentifyContributorsForGetStatusResponse`).
    response IdentifyContributorsForGetStatusResponse {
        /// The component that answers (`Contributor`).
        contributor: required ComponentId = "Contributor",
        /// How long the pillar thinks the operation will take (`TimeToDeliver`).
        time_to_deliver: optional TimeToDeliver = "TimeToDeliver",
    }

    /// Asks one component to say how it is (root element `GetStatusRequest`).
    request GetStatusRequest {
        /// The component that is asked (`Contributor`).
        contributor: optional ComponentId = "Contributor",
    }

    /// Says that the work has begun or goes on (root element `GetStatusProgressResponse`).
    response GetStatusProgressResponse {
        /// The component that answers (`Contributor`).
        contributor: optional ComponentId = "Contributor",
    }

    /// Says how the work ended (root element `GetStatusFinalResponse`).
    response GetStatusFinalResponse {
        /// The component that answers (`Contributor`).
        contributor: optional ComponentId = "Contributor",
        /// How the contributor is (`ResultingStatus`).
        resulting_status: required ResultingStatus = "ResultingStatus",
    }
}
