//! What the test suite of the Java clients fixes, and what a client must do to work with foreign pillars.

use super::{Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "no identification answer at all (put)",
        "PutFile north south",
        "timeout",
        "IDENTIFY_TIMEOUT [north south]; COMPONENT_FAILED north; COMPONENT_FAILED south; FAILED []",
    ),
    row(
        "one of two pillars silent, partial puts allowed",
        "PutFile north south",
        "identify north POSITIVE; timeout; final north COMPLETED",
        "COMPONENT_IDENTIFIED north; IDENTIFY_TIMEOUT [south]; COMPONENT_FAILED south; \
         IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; COMPONENT_COMPLETE north; FAILED [north]",
    ),
    row(
        "one of two pillars silent, partial puts not allowed",
        "PutFile north south whole=yes",
        "identify north POSITIVE; timeout",
        "COMPONENT_IDENTIFIED north; IDENTIFY_TIMEOUT [south]; COMPONENT_FAILED south; FAILED []",
    )
    .asking(" "),
    row(
        "one ready, one refuses, then the operation's time is over",
        "PutFile north south",
        "identify north POSITIVE; identify south FAILURE; timeout",
        "COMPONENT_IDENTIFIED north; COMPONENT_FAILED south FAILURE; IDENTIFICATION_COMPLETE [north]; \
         REQUEST_SENT [north]; COMPONENT_FAILED north; FAILED []",
    ),
    row(
        "delete, file absent",
        "DeleteFile north",
        "identify north NOT_FOUND",
        "COMPONENT_IDENTIFIED north; COMPONENT_COMPLETE north; IDENTIFICATION_COMPLETE []; COMPLETE [north]",
    )
    .asking(" "),
    row(
        "put, failed transfers, two retries: a warning and an identical request for each, then a failure",
        "PutFile north retries=2",
        "identify north POSITIVE; final north TRANSFER; pause; final north TRANSFER; pause; final north TRANSFER",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; WARNING north; \
         WARNING north; COMPONENT_FAILED north FILE_TRANSFER_FAILURE; FAILED []",
    )
    .asking(
        "PutFileRequest north +CorrelationID=7d0c2f4e-5b1a-4e68-8c93-2a9e6b0f1d35; \
         PutFileRequest north +CorrelationID=7d0c2f4e-5b1a-4e68-8c93-2a9e6b0f1d35; \
         PutFileRequest north +CorrelationID=7d0c2f4e-5b1a-4e68-8c93-2a9e6b0f1d35",
    ),
    row(
        "put without a wanted checksum: no pillar is asked for one",
        "PutFile north sums",
        "identify north POSITIVE; identify sums POSITIVE spec=MD5",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED sums; IDENTIFICATION_COMPLETE [north sums]; \
         REQUEST_SENT [north sums]",
    )
    .asking("PutFileRequest north -ChecksumRequestForNewFile; PutFileRequest sums -ChecksumRequestForNewFile"),
    row(
        "put with a salted wanted checksum: file pillars are asked for it, checksum pillars are not",
        "PutFile north sums request=HMAC_SHA1:abab",
        "identify north POSITIVE; identify sums POSITIVE spec=MD5",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED sums; IDENTIFICATION_COMPLETE [north sums]; \
         REQUEST_SENT [north sums]",
    )
    .asking(
        "PutFileRequest north +ChecksumRequestForNewFile +ChecksumSalt=ABAB; \
         PutFileRequest sums -ChecksumRequestForNewFile",
    ),
    row(
        "the whole of a put, in order",
        "PutFile north south",
        "identify north POSITIVE; identify south POSITIVE; progress south ACCEPTED_PROGRESS; \
         progress north ACCEPTED_PROGRESS; final north COMPLETED new=ours; final south COMPLETED new=ours",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [north south]; \
         REQUEST_SENT [north south]; PROGRESS south; PROGRESS north; COMPONENT_COMPLETE north; \
         COMPONENT_COMPLETE south; COMPLETE [north south]",
    ),
    row(
        "any refusal but REQUEST_NOT_SUPPORTED is a failure in the end, except of a get",
        "GetAuditTrails north south sums",
        "identify north NOT_SUPPORTED; identify south NEGATIVE; identify sums POSITIVE; \
         final sums COMPLETED items=1",
        "COMPONENT_FAILED south IDENTIFICATION_NEGATIVE; COMPONENT_IDENTIFIED sums; \
         IDENTIFICATION_COMPLETE [sums]; REQUEST_SENT [sums]; COMPONENT_COMPLETE sums; FAILED [sums]",
    ),
    row(
        "a full last page that says that there is more: an empty page follows",
        "GetAuditTrails north",
        "identify north POSITIVE; final north COMPLETED items=1,2 partial=yes; final north COMPLETED",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; PROGRESS north; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    ),
    row(
        "a full last listing page that says that there is more: the border comes again",
        "GetFileIDs north",
        "identify north POSITIVE; final north COMPLETED items=1,2 partial=yes; final north COMPLETED items=2",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; PROGRESS north; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    ),
];
