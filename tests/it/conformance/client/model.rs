//! What holds for every conversation in every phase.

use super::{Row, row};

pub(super) const ROWS: &[Row] = &[
    row(
        "requests say what they are about, from whom, to whom and where to answer; one pillar is named as receiver in both phases",
        "GetFile north",
        "identify north POSITIVE ms=1",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]",
    )
    .asking(
        "IdentifyPillarsForGetFileRequest books +CorrelationID=7d0c2f4e-5b1a-4e68-8c93-2a9e6b0f1d35 \
         +CollectionID=books +Destination=topic://books +ReplyTo=topic://books.client.reader +From=reader \
         +To=north +AuditTrailInformation=noted; \
         GetFileRequest north +CorrelationID=7d0c2f4e-5b1a-4e68-8c93-2a9e6b0f1d35 +CollectionID=books \
         +Destination=queue://at-north +ReplyTo=topic://books.client.reader +From=reader +To=north \
         +AuditTrailInformation=noted +PillarID=north +FileID=hello.txt",
    ),
    row(
        "of several contributors none is named as receiver",
        "DeleteFile north south",
        "identify north POSITIVE; identify south POSITIVE",
        "COMPONENT_IDENTIFIED north; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [north south]; \
         REQUEST_SENT [north south]",
    )
    .asking(
        "IdentifyPillarsForDeleteFileRequest books -To=north -To=south; \
         DeleteFileRequest north -To=north +PillarID=north; DeleteFileRequest south -To=south +PillarID=south",
    ),
    row(
        "GetFileIDs carries no text for the audit trail",
        "GetFileIDs north",
        "identify north POSITIVE",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]",
    )
    .asking(
        "IdentifyPillarsForGetFileIDsRequest books -AuditTrailInformation; \
         GetFileIDsRequest north -AuditTrailInformation",
    ),
    row(
        "who was not asked is ignored",
        "DeleteFile north",
        "identify stranger POSITIVE; identify stranger FAILURE; identify north POSITIVE; \
         final stranger COMPLETED; final north COMPLETED",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    ),
    row(
        "who was not selected is ignored while the others perform",
        "GetFileIDs north south",
        "identify north FAILURE; identify south POSITIVE; final north COMPLETED; progress north ACCEPTED_PROGRESS",
        "COMPONENT_FAILED north FAILURE; COMPONENT_IDENTIFIED south; IDENTIFICATION_COMPLETE [south]; \
         REQUEST_SENT [south]",
    ),
    row(
        "another conversation's messages are ignored",
        "DeleteFile north",
        "identify north POSITIVE correlation=another; identify north POSITIVE collection=dvds; \
         identify north POSITIVE file=hello.txt2",
        "",
    ),
    row(
        "a response of another operation, or of another phase, is out of sequence and ignored",
        "DeleteFile north",
        "identify north POSITIVE of=GetFile; final north COMPLETED; progress north ACCEPTED_PROGRESS; \
         identify north POSITIVE; final north COMPLETED of=ReplaceFile; final north COMPLETED of=GetFile",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]",
    ),
    row(
        "a late identification response of one that performs changes nothing, whatever it says",
        "DeleteFile north",
        "identify north POSITIVE; identify north POSITIVE; identify north FAILURE; final north COMPLETED",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    ),
    row(
        "a message that is no response is a warning, in both phases",
        "DeleteFile north",
        "request north; identify north POSITIVE; request north; final north COMPLETED",
        "WARNING north; COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         WARNING north; COMPONENT_COMPLETE north; COMPLETE [north]",
    ),
    row(
        "a message that can't be read is a warning, and another one may follow",
        "DeleteFile north",
        "unreadable north; identify north POSITIVE; unreadable north; final north COMPLETED",
        "WARNING north; COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         WARNING north; COMPONENT_COMPLETE north; COMPLETE [north]",
    ),
    row(
        "after the last event nothing comes",
        "DeleteFile north",
        "identify north FAILURE; identify north POSITIVE; final north COMPLETED; request north; \
         unreadable north; canceled",
        "COMPONENT_FAILED north FAILURE; FAILED []",
    ),
    row(
        "a conversation that is canceled has failed",
        "GetFileIDs north south",
        "identify north POSITIVE; canceled; identify south POSITIVE",
        "COMPONENT_IDENTIFIED north; FAILED []",
    ),
    row(
        "a time limit of zero is none",
        "GetFileIDs north unlimited=yes",
        "no timer; identify north POSITIVE; no timer; final north COMPLETED",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; \
         COMPONENT_COMPLETE north; COMPLETE [north]",
    ),
    row(
        "no conversation is longer than its limit, however much progress there is",
        "GetFileIDs north extend=yes",
        "identify north POSITIVE; wait 9000; progress north PROGRESS; wait 9000; progress north PROGRESS; timeout",
        "COMPONENT_IDENTIFIED north; IDENTIFICATION_COMPLETE [north]; REQUEST_SENT [north]; PROGRESS north; \
         PROGRESS north; COMPONENT_FAILED north; FAILED []",
    ),
];
