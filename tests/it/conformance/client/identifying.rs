//! The identifying phase.

use super::{Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "nobody to ask: the end, without a message",
        "GetFileIDs",
        "",
        "FAILED []",
    )
    .asking(" "),
    row(
        "nobody to ask: a put that stores nothing is no success",
        "PutFile",
        "",
        "IDENTIFICATION_COMPLETE []; FAILED []",
    ),
    row(
        "ready: an event, and the request goes where the response said",
        "GetFileIDs north south",
        "identify north POSITIVE; identify south POSITIVE",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [north south]; \
         REQUEST_SENT [north south]",
    )
    .asking(
        "GetFileIDsRequest north +Destination=queue://at-north; \
         GetFileIDsRequest south +Destination=queue://at-south",
    ),
    row(
        "a put to a checksum pillar: not asked for another checksum than the default",
        "PutFile north sums request=SHA1",
        "identify north POSITIVE; identify sums POSITIVE spec=MD5",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED sums; IDENTIFICATION_COMPLETE [north sums]; \
         REQUEST_SENT [north sums]",
    )
    .asking("PutFileRequest north +ChecksumRequestForNewFile; PutFileRequest sums -ChecksumRequestForNewFile"),
    row(
        "a delete at a checksum pillar: not asked for another checksum than the default",
        "DeleteFile sums request=SHA1",
        "identify sums POSITIVE spec=MD5",
        "COMPONENT_IDENTIFIED sums; IDENTIFICATION_COMPLETE [sums]; REQUEST_SENT [sums]",
    )
    .asking("DeleteFileRequest sums -ChecksumRequestForExistingFile"),
    row(
        "a replace at a checksum pillar: asked for the default checksum, which tells whether anything is replaced",
        "ReplaceFile sums request=SHA1",
        "identify sums POSITIVE spec=MD5",
        "COMPONENT_IDENTIFIED sums; IDENTIFICATION_COMPLETE [sums]; REQUEST_SENT [sums]",
    )
    .asking(
        "ReplaceFileRequest sums \
         +ChecksumRequestForExistingFile=<ChecksumType>MD5</ChecksumType> \
         +ChecksumRequestForNewFile=<ChecksumType>MD5</ChecksumType>",
    ),
    row(
        "REQUEST_NOT_SUPPORTED: answered, no event, no failure",
        "GetChecksums north sums",
        "identify sums NOT_SUPPORTED; identify north POSITIVE; final north COMPLETED",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    )
    .asking("GetChecksumsRequest north"),
    row(
        "FAILURE: a failure with code and text",
        "GetFileIDs north south",
        "identify north FAILURE; identify south POSITIVE; final south COMPLETED",
        "COMPONENT_FAILED north FAILURE; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [south]; \
         REQUEST_SENT [south]; COMPONENT_COMPLETE south; FAILED [south]",
    )
    .asking("GetFileIDsRequest south"),
    row(
        "IDENTIFICATION_NEGATIVE: a failure",
        "GetFileIDs north",
        "identify north NEGATIVE",
        "COMPONENT_FAILED north IDENTIFICATION_NEGATIVE; FAILED []",
    ),
    row(
        "FILE_NOT_FOUND_FAILURE: a failure",
        "GetFileIDs north",
        "identify north NOT_FOUND",
        "COMPONENT_FAILED north FILE_NOT_FOUND_FAILURE; FAILED []",
    ),
    row(
        "REQUEST_NOT_UNDERSTOOD_FAILURE: a failure",
        "GetFileIDs north",
        "identify north NOT_UNDERSTOOD",
        "COMPONENT_FAILED north REQUEST_NOT_UNDERSTOOD_FAILURE; FAILED []",
    ),
    row(
        "an operation's code where an identification's belongs: a failure",
        "GetFileIDs north",
        "identify north COMPLETED",
        "COMPONENT_FAILED north OPERATION_COMPLETED; FAILED []",
    ),
    row(
        "progress codes do not count as answers",
        "GetFileIDs north",
        "identify north ACCEPTED_PROGRESS; identify north PROGRESS; identify north POSITIVE",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]",
    ),
    row(
        "a second answer does not count",
        "GetFileIDs north south",
        "identify north POSITIVE; identify north POSITIVE; identify north FAILURE; identify south POSITIVE",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [north south]; \
         REQUEST_SENT [north south]",
    ),
    row(
        "all are waited for, also by GetFile",
        "GetFile north south",
        "identify north POSITIVE ms=1; wait 900",
        "COMPONENT_IDENTIFIED north",
    ),
    row(
        "silence: one event, one failure for each, and on with the others",
        "GetFileIDs north south sums",
        "identify south POSITIVE; timeout; final south COMPLETED",
        "COMPONENT_IDENTIFIED south; IDENTIFY_TIMEOUT [north sums]; COMPONENT_FAILED north; \
         COMPONENT_FAILED sums; IDENTIFICATION_COMPLETE [south]; REQUEST_SENT [south]; \
         COMPONENT_COMPLETE south; FAILED [south]",
    ),
    row(
        "who answers after the time is over is not asked",
        "GetFileIDs north south",
        "identify south POSITIVE; timeout; identify north POSITIVE; final south COMPLETED",
        "COMPONENT_IDENTIFIED south; IDENTIFY_TIMEOUT [north]; COMPONENT_FAILED north; \
         IDENTIFICATION_COMPLETE [south]; REQUEST_SENT [south]; COMPONENT_COMPLETE south; FAILED [south]",
    )
    .asking("GetFileIDsRequest south"),
    row(
        "one is needed (GetFile)",
        "GetFile north",
        "timeout",
        "IDENTIFY_TIMEOUT [north]; COMPONENT_FAILED north; FAILED []",
    ),
    row(
        "one is needed (GetFileIDs)",
        "GetFileIDs north",
        "timeout",
        "IDENTIFY_TIMEOUT [north]; COMPONENT_FAILED north; FAILED []",
    ),
    row(
        "one is needed (GetChecksums)",
        "GetChecksums north south",
        "identify north NOT_SUPPORTED; identify south NOT_SUPPORTED",
        "FAILED []",
    ),
    row(
        "one is needed (GetAuditTrails)",
        "GetAuditTrails north south",
        "identify north FAILURE; timeout",
        "COMPONENT_FAILED north FAILURE; IDENTIFY_TIMEOUT [south]; COMPONENT_FAILED south; FAILED []",
    ),
    row(
        "one is needed (GetStatus)",
        "GetStatus north",
        "timeout",
        "IDENTIFY_TIMEOUT [north]; COMPONENT_FAILED north; FAILED []",
    ),
    row(
        "one is enough to go on (GetAuditTrails)",
        "GetAuditTrails north south",
        "identify north POSITIVE; identify south FAILURE; final north COMPLETED items=1",
        "COMPONENT_IDENTIFIED north; COMPONENT_FAILED south FAILURE; IDENTIFICATION_COMPLETE [north]; \
         REQUEST_SENT [north]; COMPONENT_COMPLETE north; FAILED [north]",
    ),
    row(
        "a put goes on with one, if that is allowed",
        "PutFile north south",
        "identify north POSITIVE; timeout",
        "COMPONENT_IDENTIFIED north; IDENTIFY_TIMEOUT [south]; COMPONENT_FAILED south; \
         IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]",
    ),
    row(
        "a put that must be whole does not go on without a silent pillar",
        "PutFile north south whole=yes",
        "identify north POSITIVE; timeout",
        "COMPONENT_IDENTIFIED north; IDENTIFY_TIMEOUT [south]; COMPONENT_FAILED south; FAILED []",
    ),
    row(
        "a put that must be whole goes on without one that refused: nobody is outstanding",
        "PutFile north south whole=yes",
        "identify north POSITIVE; identify south FAILURE",
        "COMPONENT_IDENTIFIED north; COMPONENT_FAILED south FAILURE; IDENTIFICATION_COMPLETE [north]; \
         REQUEST_SENT [north]",
    ),
    row(
        "a delete does not go on without its pillar",
        "DeleteFile north",
        "timeout",
        "IDENTIFY_TIMEOUT [north]; COMPONENT_FAILED north; FAILED []",
    ),
    row(
        "a replace does not go on without its pillar",
        "ReplaceFile north",
        "timeout",
        "IDENTIFY_TIMEOUT [north]; COMPONENT_FAILED north; FAILED []",
    ),
    row(
        "a delete that nobody supports has deleted nothing",
        "DeleteFile north",
        "identify north NOT_SUPPORTED",
        "IDENTIFICATION_COMPLETE []; FAILED []",
    ),
];
