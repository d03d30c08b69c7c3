//! What single operations add.

use super::{Row, row};

pub(super) const ROWS: &[Row] = &[
    // GetFile
    row(
        "get: the fastest is asked, and nobody else",
        "GetFile north south",
        "identify north POSITIVE ms=1000; identify south POSITIVE ms=10",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [south]; \
         REQUEST_SENT [south]",
    )
    .asking("GetFileRequest south +FileAddress=http://127.0.0.1:8181/token/hello.txt -FilePart"),
    row(
        "get: hours are compared with milliseconds, and the greatest number with all",
        "GetFile north south sums",
        "identify north POSITIVE hours=9223372036854775807; identify south POSITIVE hours=2; \
         identify sums POSITIVE ms=7200001",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; COMPONENT_IDENTIFIED sums; \
         IDENTIFICATION_COMPLETE [south]; REQUEST_SENT [south]",
    ),
    row(
        "get: of equally fast ones the last that answered",
        "GetFile north south",
        "identify south POSITIVE ms=5; identify north POSITIVE ms=5",
        "COMPONENT_IDENTIFIED south; COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; \
         REQUEST_SENT [north]",
    ),
    row(
        "get: one that does not say how fast it is comes last",
        "GetFile north south",
        "identify south POSITIVE hours=1000; identify north POSITIVE",
        "COMPONENT_IDENTIFIED south; COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [south]; \
         REQUEST_SENT [south]",
    ),
    row(
        "get: checksum pillars vanish without a word; failures and silence of some are no failure in the end",
        "GetFile north south sums mute",
        "identify sums NOT_SUPPORTED; identify north NOT_FOUND; identify south POSITIVE ms=1; timeout; \
         progress south ACCEPTED_PROGRESS existing=ours; final south COMPLETED; fetched",
        "COMPONENT_FAILED north FILE_NOT_FOUND_FAILURE; COMPONENT_IDENTIFIED south; IDENTIFY_TIMEOUT [mute]; \
         COMPONENT_FAILED mute; IDENTIFICATION_COMPLETE [south]; REQUEST_SENT [south]; PROGRESS south; \
         COMPONENT_COMPLETE south; COMPLETE [south]",
    ),
    row(
        "get: a failed delivery is asked of the next fastest",
        "GetFile north south sums",
        "identify north POSITIVE ms=1; identify south POSITIVE ms=3; identify sums POSITIVE ms=2; \
         final north TRANSFER; final sums FAILURE; progress south ACCEPTED_PROGRESS existing=ours; \
         final south COMPLETED; fetched",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; COMPONENT_IDENTIFIED sums; \
         IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_FAILED north FILE_TRANSFER_FAILURE; REQUEST_SENT [sums]; COMPONENT_FAILED sums FAILURE; \
         REQUEST_SENT [south]; PROGRESS south; COMPONENT_COMPLETE south; COMPLETE [south]",
    )
    .asking("GetFileRequest north; GetFileRequest sums; GetFileRequest south"),
    row(
        "get: wrong bytes are fetched from the next fastest",
        "GetFile north south",
        "identify north POSITIVE ms=1; identify south POSITIVE ms=3; \
         progress north ACCEPTED_PROGRESS existing=ours; final north COMPLETED; wrong bytes; \
         progress south ACCEPTED_PROGRESS existing=ours; final south COMPLETED; fetched",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [north]; \
         REQUEST_SENT [north]; PROGRESS north; COMPONENT_FAILED north; REQUEST_SENT [south]; PROGRESS south; \
         COMPONENT_COMPLETE south; COMPLETE [south]",
    ),
    row(
        "get: when nobody is left it has failed",
        "GetFile north",
        "identify north POSITIVE ms=1; final north TRANSFER",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_FAILED north FILE_TRANSFER_FAILURE; FAILED []",
    ),
    row(
        "get: complete when the file is here, not when it is on the exchange; uncompared bytes are told of",
        "GetFile north",
        "identify north POSITIVE ms=1; final north COMPLETED; fetched",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; WARNING north; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    ),
    row(
        "get: a part is asked for, and told to be compared by its length only",
        "GetFile north part=5:5",
        "identify north POSITIVE ms=1; progress north ACCEPTED_PROGRESS part=5:5 existing=ours; \
         final north COMPLETED part=5:5; fetched",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; PROGRESS north; \
         WARNING north; COMPONENT_COMPLETE north; COMPLETE [north]",
    )
    .asking("GetFileRequest north +FilePart +PartOffSet=5 +PartLength=5"),
    row(
        "get: another part than the one asked for is none",
        "GetFile north part=5:5",
        "identify north POSITIVE ms=1; final north COMPLETED part=0:5",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_FAILED north; FAILED []",
    ),
    // PutFile
    row(
        "put: id and size in the identification; address, size and checksum in the request",
        "PutFile north request=SHA1",
        "identify north POSITIVE",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]",
    )
    .asking(
        "IdentifyPillarsForPutFileRequest books +FileID=hello.txt +FileSize=20; \
         PutFileRequest north +PillarID=north +FileID=hello.txt +FileSize=20 +ChecksumDataForNewFile \
         +ChecksumValue=4A37F973B3C9FEDE0E1FB3F07B65A93B +ChecksumRequestForNewFile",
    ),
    row(
        "put: the file is offered once somebody is ready for it, and asked for once it is there",
        "PutFile north offer=yes",
        "identify north POSITIVE; wait 100; offered",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]",
    ),
    row(
        "put: the identical file is there: done, not asked again",
        "PutFile north south",
        "identify north DUPLICATE existing=ours; identify south POSITIVE; final south COMPLETED",
        "COMPONENT_COMPLETE north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [south]; \
         REQUEST_SENT [south]; COMPONENT_COMPLETE south; COMPLETE [north south]",
    )
    .asking("PutFileRequest south"),
    row(
        "put: another file is there: the end, nobody gets the file",
        "PutFile north south",
        "identify south POSITIVE; identify north DUPLICATE existing=other",
        "COMPONENT_IDENTIFIED south; COMPONENT_FAILED north DUPLICATE_FILE_FAILURE; FAILED []",
    )
    .asking(" "),
    row(
        "put: a file is there and the caller's checksum is unknown: the end",
        "PutFile north unchecked=yes",
        "identify north DUPLICATE existing=ours",
        "COMPONENT_FAILED north DUPLICATE_FILE_FAILURE; FAILED []",
    ),
    row(
        "put: a file is there and its checksum is not told: the end",
        "PutFile north",
        "identify north DUPLICATE",
        "COMPONENT_FAILED north DUPLICATE_FILE_FAILURE; FAILED []",
    ),
    row(
        "put: equal digits of another kind of checksum say nothing: the end",
        "PutFile north",
        "identify north DUPLICATE existing=sha1",
        "COMPONENT_FAILED north DUPLICATE_FILE_FAILURE; FAILED []",
    ),
    row(
        "put: another refusal: on to the others, FAILED in the end",
        "PutFile north south",
        "identify north FAILURE; identify south POSITIVE; final south COMPLETED",
        "COMPONENT_FAILED north FAILURE; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [south]; \
         REQUEST_SENT [south]; COMPONENT_COMPLETE south; FAILED [south]",
    ),
    row(
        "put: without retries a failed transfer is a failure",
        "PutFile north south",
        "identify north POSITIVE; identify south POSITIVE; final north TRANSFER; final south COMPLETED",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [north south]; \
         REQUEST_SENT [north south]; COMPONENT_FAILED north FILE_TRANSFER_FAILURE; COMPONENT_COMPLETE south; \
         FAILED [south]",
    ),
    row(
        "put: a retry gets no more time",
        "PutFile north retries=1",
        "identify north POSITIVE; wait 9000; final north TRANSFER; pause; timeout; no timer",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; WARNING north; \
         COMPONENT_FAILED north; FAILED []",
    ),
    row(
        "put: a duplicate found while performing, of the same kind and value: done",
        "PutFile north",
        "identify north POSITIVE; final north DUPLICATE existing=ours",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    ),
    row(
        "put: a duplicate found while performing that differs: a failure",
        "PutFile north",
        "identify north POSITIVE; final north DUPLICATE existing=other",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_FAILED north DUPLICATE_FILE_FAILURE; FAILED []",
    ),
    row(
        "put: a duplicate found while performing, no checksum on either side: not equal",
        "PutFile north unchecked=yes",
        "identify north POSITIVE; final north DUPLICATE",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_FAILED north DUPLICATE_FILE_FAILURE; FAILED []",
    ),
    row(
        "put: another failure: the others go on",
        "PutFile north south",
        "identify north POSITIVE; identify south POSITIVE; final north NEW; final south COMPLETED new=ours",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [north south]; \
         REQUEST_SENT [north south]; COMPONENT_FAILED north NEW_FILE_CHECKSUM_FAILURE; \
         COMPONENT_COMPLETE south; FAILED [south]",
    ),
    row(
        "put: who tells the checksum of other bytes has not stored the file",
        "PutFile north",
        "identify north POSITIVE; final north COMPLETED new=other",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_FAILED north; FAILED []",
    ),
    // DeleteFile
    row(
        "delete: the file's checksum and the wanted one are in the request",
        "DeleteFile north request=SHA1",
        "identify north POSITIVE; progress north ACCEPTED_PROGRESS; final north COMPLETED existing=other",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; PROGRESS north; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    )
    .asking(
        "DeleteFileRequest north +PillarID=north +To=north +ChecksumDataForExistingFile \
         +ChecksumRequestForExistingFile",
    ),
    row(
        "delete: a file that goes away meanwhile is deleted",
        "DeleteFile north",
        "identify north POSITIVE; final north NOT_FOUND",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    ),
    row(
        "delete: another refusal is the end",
        "DeleteFile north",
        "identify north NOT_UNDERSTOOD",
        "COMPONENT_FAILED north REQUEST_NOT_UNDERSTOOD_FAILURE; FAILED []",
    ),
    row(
        "delete: another checksum is a failure",
        "DeleteFile north",
        "identify north POSITIVE; final north EXISTING",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_FAILED north EXISTING_FILE_CHECKSUM_FAILURE; FAILED []",
    ),
    // ReplaceFile
    row(
        "replace: both checksums, both wanted ones, the address and the size are in the request",
        "ReplaceFile north request=SHA1",
        "identify north POSITIVE; final north COMPLETED existing=other new=ours",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    )
    .asking(
        "IdentifyPillarsForReplaceFileRequest books +FileID=hello.txt; \
         ReplaceFileRequest north +ChecksumDataForExistingFile +ChecksumRequestForExistingFile \
         +FileAddress=http://127.0.0.1:8181/token/hello.txt +FileSize=20 +ChecksumDataForNewFile \
         +ChecksumRequestForNewFile",
    ),
    row(
        "replace: every refusal is the end",
        "ReplaceFile north",
        "identify north NOT_FOUND",
        "COMPONENT_FAILED north FILE_NOT_FOUND_FAILURE; FAILED []",
    ),
    row(
        "replace: a pillar that says that it has the new file already is done",
        "ReplaceFile north",
        "identify north POSITIVE; final north EXISTING existing=ours",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    ),
    row(
        "replace: a pillar whose file is another one is not",
        "ReplaceFile north",
        "identify north POSITIVE; final north EXISTING existing=sha1",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_FAILED north EXISTING_FILE_CHECKSUM_FAILURE; FAILED []",
    ),
    row(
        "replace: no second attempt after a failed transfer",
        "ReplaceFile north",
        "identify north POSITIVE; final north TRANSFER",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_FAILED north FILE_TRANSFER_FAILURE; FAILED []",
    )
    .asking("ReplaceFileRequest north"),
    // Listings
    row(
        "listing: all files are asked for in both phases",
        "GetFileIDs north",
        "identify north POSITIVE",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]",
    )
    .asking(
        "IdentifyPillarsForGetFileIDsRequest books +AllFileIDs=true; \
         GetFileIDsRequest north +AllFileIDs=true -ResultAddress",
    ),
    row(
        "checksums: the wanted kind is in both phases",
        "GetChecksums north",
        "identify north POSITIVE",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]",
    )
    .asking(
        "IdentifyPillarsForGetChecksumsRequest books +ChecksumRequestForExistingFile; \
         GetChecksumsRequest north +ChecksumRequestForExistingFile",
    ),
    row(
        "listing: the next page begins with the newest time; items at the border may come again",
        "GetFileIDs north",
        "identify north POSITIVE; final north COMPLETED items=1,2 partial=yes; \
         final north COMPLETED items=2,3 partial=yes; final north COMPLETED items=3",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; PROGRESS north; \
         PROGRESS north; COMPONENT_COMPLETE north; COMPLETE [north]",
    )
    .asking(
        "GetFileIDsRequest north +MinTimestamp=1970-01-01T00:00:00.000Z; \
         GetFileIDsRequest north +MinTimestamp=1970-01-01T00:00:02.000Z; \
         GetFileIDsRequest north +MinTimestamp=1970-01-01T00:00:03.000Z",
    ),
    row(
        "listing: a page full of one time is asked for larger, so that the walk ends",
        "GetChecksums north",
        "identify north POSITIVE; final north COMPLETED items=7,7 partial=yes; \
         final north COMPLETED items=7,7,7",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; PROGRESS north; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    )
    .asking("GetChecksumsRequest north +MaxNumberOfResults=2; GetChecksumsRequest north +MaxNumberOfResults=4"),
    row(
        "listing: without PartialResult there is no more",
        "GetChecksums north",
        "identify north POSITIVE; final north COMPLETED items=1,2",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    ),
    row(
        "listing: more, but nothing sent: a failure",
        "GetFileIDs north",
        "identify north POSITIVE; final north COMPLETED partial=yes",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_FAILED north; FAILED []",
    ),
    // GetAuditTrails
    row(
        "audit trails: the next page begins after the last number",
        "GetAuditTrails north south",
        "identify north POSITIVE; identify south POSITIVE; final north COMPLETED items=1,2 partial=yes; \
         final south COMPLETED items=5; final north COMPLETED items=9",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [north south]; \
         REQUEST_SENT [north south]; PROGRESS north; COMPONENT_COMPLETE south; COMPONENT_COMPLETE north; \
         COMPLETE [south north]",
    )
    .asking(
        "GetAuditTrailsRequest north +Contributor=north +MaxNumberOfResults=2 -ResultAddress; \
         GetAuditTrailsRequest south +Contributor=south; \
         GetAuditTrailsRequest north +MinSequenceNumber=3",
    ),
    row(
        "audit trails: a second final response, FAILURE after COMPLETED, is ignored",
        "GetAuditTrails north south",
        "identify north POSITIVE; identify south POSITIVE; final north COMPLETED items=1; final north FAILURE; \
         final south COMPLETED items=1",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [north south]; \
         REQUEST_SENT [north south]; COMPONENT_COMPLETE north; COMPONENT_COMPLETE south; \
         COMPLETE [north south]",
    ),
    // GetStatus
    row(
        "status: about no collection, asked in each, an empty text for the audit trail, one answer of each counts",
        "GetStatus north south",
        "identify north POSITIVE; identify north POSITIVE; identify south POSITIVE; \
         progress north ACCEPTED_PROGRESS; final north COMPLETED; final south COMPLETED",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [north south]; \
         REQUEST_SENT [north south]; PROGRESS north; COMPONENT_COMPLETE north; COMPONENT_COMPLETE south; \
         COMPLETE [north south]",
    )
    .asking(
        "IdentifyContributorsForGetStatusRequest books -CollectionID=books +AuditTrailInformation; \
         IdentifyContributorsForGetStatusRequest dvds -CollectionID=dvds +AuditTrailInformation; \
         GetStatusRequest north -CollectionID=books +Contributor=north; \
         GetStatusRequest south +Contributor=south",
    ),
];
