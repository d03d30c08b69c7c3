//! What the machines say, compared with what the Java clients were heard to say.

use std::collections::BTreeMap;

use pillarbox_messages::{ChecksumData, ChecksumType, Destination, Message, ResponseCode};

use super::{
    listing::{checksums_procedure, ids_identify, ids_procedure, sums_identify},
    support::{Bench, POSITIVE, get_identify, md5, put_identify, put_procedure},
};
use crate::{
    conversation::{
        Context, Input, Procedure, get_file::GetFileProcedure, paging::PAGE_SIZE,
        put_file::PutFileProcedure,
    },
    digests::plain_spec,
};

const FILE: &str = "hello.txt";
const ADDRESS: &str = "http://127.0.0.1:8180/dav/hello.txt";

/// A captured request: type, the part of its header that differs, and its body.
fn request(kind: &str, correlation: &str, at: &str, body: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\
         <ns2:{kind} xmlns=\"http://bitrepository.org/BitRepositoryElements.xsd\" \
         xmlns:ns2=\"http://bitrepository.org/BitRepositoryMessages.xsd\" version=\"31\" minVersion=\"24\">\
         <CorrelationID>{correlation}</CorrelationID><CollectionID>books</CollectionID>\
         <Destination>topic://{at}</Destination>\
         <ReplyTo>topic://quick-start-root's cmdline client</ReplyTo>\
         <From>root's cmdline client</From>{body}</ns2:{kind}>"
    )
}

fn context(correlation: &str, file: Option<&str>) -> Context {
    let mut context =
        super::support::context(&["checksum-pillar", "file1-pillar", "file2-pillar"], file);
    context.correlation = correlation.into();
    context.from = "root's cmdline client".into();
    context.reply_to = Destination::topic("quick-start-root's cmdline client");
    context.identify_at = Destination::topic("quick-start");
    context
}

/// A response of this pillar as it was captured: with its contributor topic as `ReplyTo`.
fn hear<P: Procedure>(bench: &mut Bench<P>, correlation: &str, message: impl Into<Message>) {
    let mut message = message.into();
    let header = message.header_mut();
    header.correlation_id = correlation.into();
    header.reply_to = Destination::topic(&format!("quick-start-{}-contributor", header.from));
    bench.hear(message);
}

#[test]
fn put_file() {
    const CORRELATION: &str = "cc3f3f8e-aea8-4eb2-ac36-f09dc4f45464";
    let procedure = PutFileProcedure {
        address: ADDRESS.to_owned(),
        checksum: Some(ChecksumData {
            calculation_timestamp: "2026-11-30T18:05:43.473Z".parse().unwrap(),
            ..md5("2B0442658D8C004C5628C740B6F17C59")
        }),
        audit_trail_information: None,
        ..put_procedure()
    };
    let mut bench = Bench::new(context(CORRELATION, Some(FILE)), procedure);
    assert_eq!(
        bench.sent[0].to_xml(),
        request(
            "IdentifyPillarsForPutFileRequest",
            CORRELATION,
            "quick-start",
            "<FileID>hello.txt</FileID><FileSize>20</FileSize>",
        )
    );
    for pillar in ["file2-pillar", "file1-pillar"] {
        hear(&mut bench, CORRELATION, put_identify(pillar, POSITIVE));
    }
    let mut checksum_pillar = put_identify("checksum-pillar", POSITIVE);
    checksum_pillar.pillar_checksum_spec = Some(plain_spec(ChecksumType::Md5));
    hear(&mut bench, CORRELATION, checksum_pillar);
    bench.step(Input::OfferReady);
    let body = "<PillarID>file1-pillar</PillarID><FileID>hello.txt</FileID>\
                <FileAddress>http://127.0.0.1:8180/dav/hello.txt</FileAddress><FileSize>20</FileSize>\
                <ChecksumDataForNewFile><ChecksumSpec><ChecksumType>MD5</ChecksumType></ChecksumSpec>\
                <ChecksumValue>2B0442658D8C004C5628C740B6F17C59</ChecksumValue>\
                <CalculationTimestamp>2026-11-30T18:05:43.473Z</CalculationTimestamp>\
                </ChecksumDataForNewFile><ChecksumRequestForNewFile><ChecksumType>MD5</ChecksumType>\
                </ChecksumRequestForNewFile>";
    for (message, pillar) in bench.sent[1..].iter().zip(["file2", "file1", "checksum"]) {
        let body = body.replace("file1-pillar", &format!("{pillar}-pillar"));
        let at = format!("quick-start-{pillar}-pillar-contributor");
        assert_eq!(
            message.to_xml(),
            request("PutFileRequest", CORRELATION, &at, &body)
        );
    }
    assert_eq!(bench.sent.len(), 4);
}

#[test]
fn get_file() {
    const CORRELATION: &str = "c1586644-b91d-4789-bfe0-e9a34af686a0";
    let procedure = GetFileProcedure::new(FILE.into(), ADDRESS.to_owned(), None);
    let mut bench = Bench::new(context(CORRELATION, Some(FILE)), procedure);
    let identify = "IdentifyPillarsForGetFileRequest";
    let body = "<FileID>hello.txt</FileID>";
    assert_eq!(
        bench.sent[0].to_xml(),
        request(identify, CORRELATION, "quick-start", body)
    );
    hear(
        &mut bench,
        CORRELATION,
        get_identify("file2-pillar", POSITIVE, Some(1000)),
    );
    hear(
        &mut bench,
        CORRELATION,
        get_identify("file1-pillar", POSITIVE, Some(1000)),
    );
    let unsupported = get_identify("checksum-pillar", ResponseCode::RequestNotSupported, None);
    hear(&mut bench, CORRELATION, unsupported);
    assert_eq!(
        bench.sent[1].to_xml(),
        request(
            "GetFileRequest",
            CORRELATION,
            "quick-start-file1-pillar-contributor",
            "<PillarID>file1-pillar</PillarID><FileID>hello.txt</FileID>\
             <FileAddress>http://127.0.0.1:8180/dav/hello.txt</FileAddress>",
        )
    );
    assert_eq!(bench.sent.len(), 2);
}

const ALL: &str = "<FileIDs><AllFileIDs>true</AllFileIDs></FileIDs>";
const PAGE: &str = "<MinTimestamp>1970-01-01T00:00:00.000Z</MinTimestamp>\
                    <MaxNumberOfResults>10000</MaxNumberOfResults>";
const MD5: &str = "<ChecksumRequestForExistingFile><ChecksumType>MD5</ChecksumType>\
                   </ChecksumRequestForExistingFile>";

#[test]
fn get_file_ids_of_all_files() {
    const CORRELATION: &str = "ad915e78-05d9-4f3e-8a41-0334cb672daf";
    let procedure = ids_procedure(PAGE_SIZE.get());
    let mut bench = Bench::new(context(CORRELATION, None), procedure);
    let identify = "IdentifyPillarsForGetFileIDsRequest";
    assert_eq!(
        bench.sent[0].to_xml(),
        request(identify, CORRELATION, "quick-start", ALL)
    );
    for pillar in ["checksum-pillar", "file1-pillar", "file2-pillar"] {
        hear(&mut bench, CORRELATION, ids_identify(pillar, POSITIVE));
    }
    let body = format!("<PillarID>checksum-pillar</PillarID>{ALL}{PAGE}");
    let at = "quick-start-checksum-pillar-contributor";
    assert_eq!(
        bench.sent[1].to_xml(),
        request("GetFileIDsRequest", CORRELATION, at, &body)
    );
}

#[test]
fn get_checksums_of_all_files() {
    const CORRELATION: &str = "1fc473f0-4bec-441e-80b7-669228ef75c9";
    let procedure = crate::conversation::get_checksums::GetChecksumsProcedure {
        page_size: PAGE_SIZE,
        walks: BTreeMap::new(),
        ..checksums_procedure()
    };
    let mut bench = Bench::new(context(CORRELATION, None), procedure);
    let identify = "IdentifyPillarsForGetChecksumsRequest";
    let body = format!("{ALL}{MD5}");
    assert_eq!(
        bench.sent[0].to_xml(),
        request(identify, CORRELATION, "quick-start", &body)
    );
    for pillar in ["checksum-pillar", "file1-pillar", "file2-pillar"] {
        hear(&mut bench, CORRELATION, sums_identify(pillar, POSITIVE));
    }
    let body = format!("<PillarID>file1-pillar</PillarID>{ALL}{PAGE}{MD5}");
    let at = "quick-start-file1-pillar-contributor";
    assert_eq!(
        bench.sent[2].to_xml(),
        request("GetChecksumsRequest", CORRELATION, at, &body)
    );
}
