//! Text beyond ASCII through a broker whose own texts are Java's: characters above U+FFFF come as two halves of three
//! bytes each, and may not go as four.

use crate::support::{
    PATIENCE,
    brokers::ActiveMq,
    joined::{Joined, Scheme},
    md5,
    process::{self, succeed},
    raw_peer::{checksum_of_new_file, document},
    stomp::Stomp,
};

/// U58.
const ID: &str = "Ærø_€_漢字_𝄞.tif";
const AUDIT: &str = "put by a Java sender: æ 漢字 𝄞 💾";
const CONTENT: &[u8] = b"content of a file with a difficult name\n";

/// Every character above U+FFFF as Java writes it: each half of its UTF-16 spelling as if it were a character.
fn as_java_writes_it(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(ascii) if ascii < 0x80 => bytes.push(ascii),
            _ if unit < 0x800 => {
                bytes.extend([0xC0 | byte(unit >> 6), 0x80 | byte(unit & 0x3F)]);
            }
            _ => bytes.extend([
                0xE0 | byte(unit >> 12),
                0x80 | byte((unit >> 6) & 0x3F),
                0x80 | byte(unit & 0x3F),
            ]),
        }
    }
    bytes
}

fn byte(bits: u16) -> u8 {
    u8::try_from(bits).expect("few bits")
}

#[test]
fn u58_text_of_a_java_sender_and_to_a_java_receiver() {
    let broker = ActiveMq::shared();
    let site = Joined::new(broker, Scheme::Reference);
    let _node = site.start("node");
    let own = site.name("java client");
    let mut java = Stomp::connect(broker.port(), None);
    java.subscribe(&format!("/topic/{own}"));
    let body = put(&site, &own);
    let bytes = as_java_writes_it(&body);
    assert!(std::str::from_utf8(&bytes).is_err(), "nothing above U+FFFF");
    let headers = [
        ("org.bitrepository.messages.type", "PutFileRequest"),
        ("org.bitrepository.messages.signature", "null"),
        ("amq-msg-type", "text"),
    ];
    java.send(&site.requests_of("north"), &headers, &bytes);
    let last = loop {
        let answer = java.message(PATIENCE).expect("an answer");
        assert!(is_safe_for_java(&answer.body), "{}", answer.text());
        if answer.text().contains("PutFileFinalResponse") {
            break answer.text();
        }
    };
    assert!(last.contains("OPERATION_COMPLETED"), "{last}");
    // Java reads what can't stand as it is from references.
    assert!(last.contains("Ærø_€_漢字_&#x1D11E;.tif"), "{last}");
    let north = site.name("north");
    for locale in ["C", "C.UTF-8"] {
        let mut ids = site.prepare("get-file-ids", ["-p", &north]);
        ids.env("LANG", locale).env("LC_ALL", locale);
        let ids = succeed(&process::finish(ids));
        assert!(ids.contains(ID), "{locale}: {ids}");
        let mut trail = site.prepare("get-audit-trails", ["-p", &north]);
        trail.env("LANG", locale).env("LC_ALL", locale);
        let trail = succeed(&process::finish(trail));
        assert!(
            trail.contains(AUDIT) && trail.contains(ID),
            "{locale}: {trail}"
        );
    }
    assert_eq!(std::fs::read(&site.archived("north")[0]).unwrap(), CONTENT);
}

/// U58: the command line under LANG=C, and its messages as a Java receiver gets them.
#[test]
fn u58_our_own_messages_are_safe_for_java() {
    let broker = ActiveMq::shared();
    let site = Joined::new(broker, Scheme::Reference);
    let _node = site.start("node");
    let mut java = Stomp::connect(broker.port(), None);
    java.subscribe(&site.topic());
    java.subscribe(&site.requests_of("south"));
    let file = site.file(ID, CONTENT);
    let mut put = site.prepare("put-file", ["-f".into(), file.into_os_string()]);
    put.env("LANG", "C").env("LC_ALL", "C");
    succeed(&process::finish(put));
    let mut kinds = Vec::new();
    while kinds.len() < 2 {
        let message = java.message(PATIENCE).expect("a message");
        assert!(is_safe_for_java(&message.body), "{}", message.text());
        assert!(
            message.text().contains("Ærø_€_漢字_&#x1D11E;.tif"),
            "{}",
            message.text()
        );
        kinds.push(
            message
                .header("org.bitrepository.messages.type")
                .unwrap()
                .to_owned(),
        );
    }
    assert_eq!(
        kinds,
        ["IdentifyPillarsForPutFileRequest", "PutFileRequest"]
    );
    let copy = site.path().join("copy");
    succeed(&site.run("get-file", ["-i", ID, "-l", copy.to_str().unwrap()]));
    assert_eq!(std::fs::read(copy).unwrap(), CONTENT);
}

/// No four bytes for one character: Java loses such a text without a word.
fn is_safe_for_java(body: &[u8]) -> bool {
    std::str::from_utf8(body).is_ok_and(|text| text.chars().all(|it| u32::from(it) <= 0xFFFF))
}

fn put(site: &Joined, own: &str) -> String {
    let pillar = site.name("north");
    let address = crate::support::whole::offer(site.exchange_port, "java", CONTENT);
    let content = format!(
        "<CorrelationID>java-1</CorrelationID><CollectionID>{collection}</CollectionID>\
         <Destination>topic://{base}-{pillar}-contributor</Destination><ReplyTo>topic://{own}</ReplyTo>\
         <From>java</From><AuditTrailInformation>{AUDIT}</AuditTrailInformation><PillarID>{pillar}</PillarID>\
         <FileID>{ID}</FileID><FileAddress>{address}</FileAddress><FileSize>{size}</FileSize>{checksum}",
        collection = site.collection(),
        base = site.name("base"),
        size = CONTENT.len(),
        checksum = checksum_of_new_file(&md5(CONTENT)),
    );
    document("PutFileRequest", &content)
}
