//! The performing phase.

use super::{Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "nobody selected: complete at once",
        "PutFile north",
        "identify north DUPLICATE existing=ours",
        "COMPONENT_COMPLETE north; IDENTIFICATION_COMPLETE []; COMPLETE [north]",
    )
    .asking(" "),
    row(
        "one event for all requests, with the list of ids",
        "GetChecksums north south sums",
        "identify sums POSITIVE; identify north POSITIVE; identify south POSITIVE",
        "COMPONENT_IDENTIFIED sums; COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; \
         IDENTIFICATION_COMPLETE [sums north south]; REQUEST_SENT [sums north south]",
    ),
    row(
        "progress of both kinds: an event, and the time runs on",
        "GetFileIDs north",
        "identify north POSITIVE; wait 9000; progress north ACCEPTED_PROGRESS; progress north PROGRESS; \
         timeout; no timer",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; PROGRESS north; \
         PROGRESS north; COMPONENT_FAILED north; FAILED []",
    ),
    row(
        "progress gives more time, if that is wanted",
        "GetFileIDs north extend=yes",
        "identify north POSITIVE; wait 9000; progress north PROGRESS; wait 9000; final north COMPLETED",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; PROGRESS north; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    ),
    row(
        "a progress code in a final response is progress",
        "GetFileIDs north",
        "identify north POSITIVE; final north PROGRESS; final north COMPLETED",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; PROGRESS north; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    ),
    row(
        "a completion that is no final response is none",
        "GetFileIDs north",
        "identify north POSITIVE; progress north COMPLETED",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]",
    ),
    row(
        "progress after completion, as it happens: no event more",
        "GetFileIDs north south",
        "identify north POSITIVE; identify south POSITIVE; final north COMPLETED; progress north PROGRESS",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [north south]; \
         REQUEST_SENT [north south]; COMPONENT_COMPLETE north",
    ),
    row(
        "completed: an event with the result, and all done without failure is complete",
        "GetFileIDs north south",
        "identify north POSITIVE; identify south POSITIVE; final south COMPLETED; final north COMPLETED",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [north south]; \
         REQUEST_SENT [north south]; COMPONENT_COMPLETE south; COMPONENT_COMPLETE north; \
         COMPLETE [south north]",
    ),
    row(
        "another code: a failure, the others go on, and the end is one",
        "GetFileIDs north south",
        "identify north POSITIVE; identify south POSITIVE; final south FAILURE; final north COMPLETED",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [north south]; \
         REQUEST_SENT [north south]; COMPONENT_FAILED south FAILURE; COMPONENT_COMPLETE north; FAILED [north]",
    ),
    row(
        "an identification's code in a final response: a failure",
        "GetFileIDs north",
        "identify north POSITIVE; final north POSITIVE",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_FAILED north IDENTIFICATION_POSITIVE; FAILED []",
    ),
    row(
        "a failure told in a progress response is one",
        "GetFileIDs north",
        "identify north POSITIVE; progress north FAILURE; final north COMPLETED",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_FAILED north FAILURE; FAILED []",
    ),
    row(
        "a failure of the identification counts in the end",
        "GetStatus north south",
        "identify north POSITIVE; identify south FAILURE; final north COMPLETED",
        "COMPONENT_IDENTIFIED north; COMPONENT_FAILED south FAILURE; IDENTIFICATION_COMPLETE [north]; \
         REQUEST_SENT [north]; COMPONENT_COMPLETE north; FAILED [north]",
    ),
    row(
        "time over: a failure for each who owes an answer, then the end; what came stays",
        "GetFileIDs north south sums",
        "identify north POSITIVE; identify south POSITIVE; identify sums POSITIVE; final south COMPLETED; \
         timeout; final north COMPLETED",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; COMPONENT_IDENTIFIED sums; \
         IDENTIFICATION_COMPLETE [north south sums]; REQUEST_SENT [north south sums]; \
         COMPONENT_COMPLETE south; COMPONENT_FAILED north; COMPONENT_FAILED sums; FAILED [south]",
    ),
    row(
        "a contributor answers once",
        "GetFileIDs north south",
        "identify north POSITIVE; identify south POSITIVE; final north COMPLETED; final north COMPLETED; \
         final north FAILURE; final south COMPLETED; final south COMPLETED",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [north south]; \
         REQUEST_SENT [north south]; COMPONENT_COMPLETE north; COMPONENT_COMPLETE south; \
         COMPLETE [north south]",
    ),
];
