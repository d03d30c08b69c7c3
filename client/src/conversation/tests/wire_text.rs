//! What the machines say, text for text: the form in which the Java clients say it.

use pillarbox_messages::{
    ChecksumData, ChecksumType, ComponentId, Destination, Message, ResponseCode,
};

use super::{
    audit_trails::{trails_identify, trails_procedure},
    delete_file::{delete_identify, delete_procedure},
    listing::{checksums_procedure, ids_identify, ids_procedure, sums_identify},
    replace_file::{replace_identify, replace_procedure},
    status::status_identify,
    support::{Bench, OTHERS, POSITIVE, get_identify, md5, new_file, put_identify, put_procedure},
};
use crate::{
    conversation::{
        Context, Input, Procedure,
        delete_file::DeleteFileProcedure,
        get_audit_trails::GetAuditTrailsProcedure,
        get_file::GetFileProcedure,
        get_status::GetStatusProcedure,
        new_file::NewFile,
        paging::{PAGE_SIZE, Walks},
        put_file::PutFileProcedure,
        replace_file::ReplaceFileProcedure,
    },
    digests::plain_spec,
};

const FILE: &str = "hello.txt";
const ADDRESS: &str = "http://exchange.example:8180/room/hello.txt";

/// A request as the Java clients write it: type, the part of its header that differs, and its body.
fn request(kind: &str, correlation: &str, at: &str, body: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\
         <ns2:{kind} xmlns=\"http://bitrepository.org/BitRepositoryElements.xsd\" \
         xmlns:ns2=\"http://bitrepository.org/BitRepositoryMessages.xsd\" version=\"31\" minVersion=\"24\">\
         <CorrelationID>{correlation}</CorrelationID><CollectionID>books</CollectionID>\
         <Destination>topic://{at}</Destination>\
         <ReplyTo>topic://reading-room-kim's reading desk</ReplyTo>\
         <From>kim's reading desk</From>{body}</ns2:{kind}>"
    )
}

fn context(correlation: &str, file: Option<&str>) -> Context {
    let mut context = super::support::context(&["sums-pillar", "east-pillar", "west-pillar"], file);
    context.correlation = correlation.into();
    context.from = "kim's reading desk".into();
    context.reply_to = Destination::topic("reading-room-kim's reading desk");
    context.identify_at = vec![Destination::topic("reading-room")];
    context
}

/// A response of this pillar as the Java pillars answer: with its contributor topic as `ReplyTo`.
fn hear<P: Procedure>(bench: &mut Bench<P>, correlation: &str, message: impl Into<Message>) {
    let mut message = message.into();
    let header = message.header_mut();
    header.correlation_id = correlation.into();
    header.reply_to = Destination::topic(&format!("reading-room-{}-contributor", header.from));
    bench.hear(message);
}

#[test]
fn put_file() {
    const CORRELATION: &str = "7d0c2f4e-5b1a-4e68-8c93-2a9e6b0f1d35";
    let procedure = PutFileProcedure {
        new: NewFile {
            address: ADDRESS.to_owned(),
            checksum: Some(ChecksumData {
                calculation_timestamp: "2026-03-04T05:06:07.089Z".parse().unwrap(),
                ..md5("4A37F973B3C9FEDE0E1FB3F07B65A93B")
            }),
            ..new_file()
        },
        audit_trail_information: None,
        ..put_procedure()
    };
    let mut bench = Bench::new(context(CORRELATION, Some(FILE)), procedure);
    assert_eq!(
        bench.sent[0].to_xml(),
        request(
            "IdentifyPillarsForPutFileRequest",
            CORRELATION,
            "reading-room",
            "<FileID>hello.txt</FileID><FileSize>20</FileSize>",
        )
    );
    for pillar in ["west-pillar", "east-pillar"] {
        hear(&mut bench, CORRELATION, put_identify(pillar, POSITIVE));
    }
    let mut checksum_pillar = put_identify("sums-pillar", POSITIVE);
    checksum_pillar.pillar_checksum_spec = Some(plain_spec(ChecksumType::Md5));
    hear(&mut bench, CORRELATION, checksum_pillar);
    bench.step(Input::OfferReady);
    let body = "<PillarID>east-pillar</PillarID><FileID>hello.txt</FileID>\
                <FileAddress>http://exchange.example:8180/room/hello.txt</FileAddress><FileSize>20</FileSize>\
                <ChecksumDataForNewFile><ChecksumSpec><ChecksumType>MD5</ChecksumType></ChecksumSpec>\
                <ChecksumValue>4A37F973B3C9FEDE0E1FB3F07B65A93B</ChecksumValue>\
                <CalculationTimestamp>2026-03-04T05:06:07.089Z</CalculationTimestamp>\
                </ChecksumDataForNewFile><ChecksumRequestForNewFile><ChecksumType>MD5</ChecksumType>\
                </ChecksumRequestForNewFile>";
    for (message, pillar) in bench.sent[1..].iter().zip(["west", "east", "sums"]) {
        let body = body.replace("east-pillar", &format!("{pillar}-pillar"));
        let at = format!("reading-room-{pillar}-pillar-contributor");
        assert_eq!(
            message.to_xml(),
            request("PutFileRequest", CORRELATION, &at, &body)
        );
    }
    assert_eq!(bench.sent.len(), 4);
}

#[test]
fn get_file() {
    const CORRELATION: &str = "91b2c3d4-0a1b-4c2d-8e3f-405162738495";
    let procedure = GetFileProcedure::new(FILE.into(), ADDRESS.to_owned());
    let mut bench = Bench::new(context(CORRELATION, Some(FILE)), procedure);
    let identify = "IdentifyPillarsForGetFileRequest";
    let body = "<FileID>hello.txt</FileID>";
    assert_eq!(
        bench.sent[0].to_xml(),
        request(identify, CORRELATION, "reading-room", body)
    );
    hear(
        &mut bench,
        CORRELATION,
        get_identify("west-pillar", POSITIVE, Some(1000)),
    );
    hear(
        &mut bench,
        CORRELATION,
        get_identify("east-pillar", POSITIVE, Some(1000)),
    );
    let unsupported = get_identify("sums-pillar", ResponseCode::RequestNotSupported, None);
    hear(&mut bench, CORRELATION, unsupported);
    assert_eq!(
        bench.sent[1].to_xml(),
        request(
            "GetFileRequest",
            CORRELATION,
            "reading-room-east-pillar-contributor",
            "<PillarID>east-pillar</PillarID><FileID>hello.txt</FileID>\
             <FileAddress>http://exchange.example:8180/room/hello.txt</FileAddress>",
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
    const CORRELATION: &str = "a2c3d4e5-1b2c-4d3e-9f40-516273849506";
    let procedure = ids_procedure(PAGE_SIZE.get());
    let mut bench = Bench::new(context(CORRELATION, None), procedure);
    let identify = "IdentifyPillarsForGetFileIDsRequest";
    assert_eq!(
        bench.sent[0].to_xml(),
        request(identify, CORRELATION, "reading-room", ALL)
    );
    for pillar in ["sums-pillar", "east-pillar", "west-pillar"] {
        hear(&mut bench, CORRELATION, ids_identify(pillar, POSITIVE));
    }
    let body = format!("<PillarID>sums-pillar</PillarID>{ALL}{PAGE}");
    let at = "reading-room-sums-pillar-contributor";
    assert_eq!(
        bench.sent[1].to_xml(),
        request("GetFileIDsRequest", CORRELATION, at, &body)
    );
}

#[test]
fn get_checksums_of_all_files() {
    const CORRELATION: &str = "b3d4e5f6-2c3d-4e4f-8051-627384950617";
    let procedure = crate::conversation::get_checksums::GetChecksumsProcedure {
        walks: Walks::new(PAGE_SIZE),
        ..checksums_procedure()
    };
    let mut bench = Bench::new(context(CORRELATION, None), procedure);
    let identify = "IdentifyPillarsForGetChecksumsRequest";
    let body = format!("{ALL}{MD5}");
    assert_eq!(
        bench.sent[0].to_xml(),
        request(identify, CORRELATION, "reading-room", &body)
    );
    for pillar in ["sums-pillar", "east-pillar", "west-pillar"] {
        hear(&mut bench, CORRELATION, sums_identify(pillar, POSITIVE));
    }
    let body = format!("<PillarID>east-pillar</PillarID>{ALL}{PAGE}{MD5}");
    let at = "reading-room-east-pillar-contributor";
    assert_eq!(
        bench.sent[2].to_xml(),
        request("GetChecksumsRequest", CORRELATION, at, &body)
    );
}

const EXISTING: &str = "<ChecksumDataForExistingFile><ChecksumSpec><ChecksumType>MD5</ChecksumType></ChecksumSpec>\
                        <ChecksumValue>B2EA9F7FCEA831A4A63B213F41A8855B</ChecksumValue>\
                        <CalculationTimestamp>2023-11-14T22:13:20.000Z</CalculationTimestamp>\
                        </ChecksumDataForExistingFile>";

/// The Java clients' text of a request to one pillar, which names it.
fn request_to_one(kind: &str, correlation: &str, at: &str, body: &str) -> String {
    let from = "</From>";
    let named = "</From><To>east-pillar</To>";
    request(kind, correlation, at, body).replacen(from, named, 1)
}

fn context_of_one(correlation: &str) -> Context {
    let mut context = context(correlation, Some(FILE));
    context.expected = [ComponentId::from("east-pillar")].into();
    context
}

#[test]
fn delete_file() {
    const CORRELATION: &str = "c4d5e6f7-3d4e-4f50-8162-738495061728";
    let procedure = DeleteFileProcedure {
        existing_checksum: Some(md5(OTHERS)),
        request_checksum: None,
        audit_trail_information: None,
        ..delete_procedure()
    };
    let mut bench = Bench::new(context_of_one(CORRELATION), procedure);
    let body = "<FileID>hello.txt</FileID>";
    let identify = "IdentifyPillarsForDeleteFileRequest";
    assert_eq!(
        bench.sent[0].to_xml(),
        request_to_one(identify, CORRELATION, "reading-room", body)
    );
    hear(
        &mut bench,
        CORRELATION,
        delete_identify("east-pillar", POSITIVE),
    );
    let body = format!("<PillarID>east-pillar</PillarID><FileID>hello.txt</FileID>{EXISTING}");
    let at = "reading-room-east-pillar-contributor";
    assert_eq!(
        bench.sent[1].to_xml(),
        request_to_one("DeleteFileRequest", CORRELATION, at, &body)
    );
}

/// With two differences, which are meant: the identification tells the size, so that a full pillar can refuse then; and
/// checksums are asked for though nobody wants to see them, which tell whether the file was the new one already.
#[test]
fn replace_file() {
    const CORRELATION: &str = "d5e6f708-4e5f-4061-8273-849506172839";
    const MD5: &str = "<ChecksumType>MD5</ChecksumType>";
    let procedure = ReplaceFileProcedure {
        new: NewFile {
            address: ADDRESS.to_owned(),
            ..new_file()
        },
        existing_checksum: Some(md5(OTHERS)),
        request_existing_checksum: None,
        request_checksum: None,
        audit_trail_information: None,
        ..replace_procedure()
    };
    let mut bench = Bench::new(context_of_one(CORRELATION), procedure);
    let body = "<FileID>hello.txt</FileID><FileSize>20</FileSize>";
    let identify = "IdentifyPillarsForReplaceFileRequest";
    assert_eq!(
        bench.sent[0].to_xml(),
        request_to_one(identify, CORRELATION, "reading-room", body)
    );
    hear(
        &mut bench,
        CORRELATION,
        replace_identify("east-pillar", POSITIVE),
    );
    bench.step(Input::OfferReady);
    let new = EXISTING.replace("Existing", "New").replace(
        "B2EA9F7FCEA831A4A63B213F41A8855B",
        "4A37F973B3C9FEDE0E1FB3F07B65A93B",
    );
    let body = format!(
        "<PillarID>east-pillar</PillarID><FileID>hello.txt</FileID>{EXISTING}\
         <ChecksumRequestForExistingFile>{MD5}</ChecksumRequestForExistingFile>\
         <FileAddress>{ADDRESS}</FileAddress><FileSize>20</FileSize>{new}\
         <ChecksumRequestForNewFile>{MD5}</ChecksumRequestForNewFile>"
    );
    let at = "reading-room-east-pillar-contributor";
    assert_eq!(
        bench.sent[1].to_xml(),
        request_to_one("ReplaceFileRequest", CORRELATION, at, &body)
    );
}

#[test]
fn get_audit_trails() {
    const CORRELATION: &str = "e6f70819-5f60-4172-8384-95061728394a";
    let procedure = GetAuditTrailsProcedure {
        file: Some(FILE.into()),
        page_size: std::num::NonZeroU64::new(1000).unwrap(),
        ..trails_procedure()
    };
    let mut bench = Bench::new(context(CORRELATION, Some(FILE)), procedure);
    let identify = "IdentifyContributorsForGetAuditTrailsRequest";
    assert_eq!(
        bench.sent[0].to_xml(),
        request(identify, CORRELATION, "reading-room", "")
    );
    for pillar in ["sums-pillar", "east-pillar", "west-pillar"] {
        hear(&mut bench, CORRELATION, trails_identify(pillar, POSITIVE));
    }
    let body = "<Contributor>sums-pillar</Contributor><FileID>hello.txt</FileID>\
                <MaxNumberOfResults>1000</MaxNumberOfResults>";
    let at = "reading-room-sums-pillar-contributor";
    assert_eq!(
        bench.sent[1].to_xml(),
        request("GetAuditTrailsRequest", CORRELATION, at, body)
    );
}

#[test]
fn get_status() {
    const CORRELATION: &str = "f708192a-6071-4283-8495-061728394a5b";
    let mut about_nothing = context(CORRELATION, None);
    about_nothing.collection = None;
    let mut bench = Bench::new(about_nothing, GetStatusProcedure);
    let collection = "<CollectionID>books</CollectionID>";
    let text = |kind: &str, at: &str, body: &str| {
        request(kind, CORRELATION, at, body).replacen(collection, "", 1)
    };
    let identify = "IdentifyContributorsForGetStatusRequest";
    let empty = "<AuditTrailInformation></AuditTrailInformation>";
    assert_eq!(
        bench.sent[0].to_xml(),
        text(identify, "reading-room", empty)
    );
    for pillar in ["sums-pillar", "east-pillar", "west-pillar"] {
        hear(&mut bench, CORRELATION, status_identify(pillar, POSITIVE));
    }
    let body = format!("{empty}<Contributor>sums-pillar</Contributor>");
    let at = "reading-room-sums-pillar-contributor";
    assert_eq!(bench.sent[1].to_xml(), text("GetStatusRequest", at, &body));
}
