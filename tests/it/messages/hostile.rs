//! Documents made to hurt: refused in bounded time, without holding more than they are.

use std::{
    env,
    process::Command,
    time::{Duration, Instant},
};

use pillarbox_messages::{DecodeReason, Message};

const ROOT: &str = "<m:AlarmMessage xmlns:m=\"http://bitrepository.org/BitRepositoryMessages.xsd\" \
                    xmlns=\"http://bitrepository.org/BitRepositoryElements.xsd\" version=\"31\" \
                    minVersion=\"24\">";

const HEADER: &str = "<CorrelationID>c</CorrelationID><CollectionID>books</CollectionID>\
                      <Destination>topic://alarms</Destination><ReplyTo>queue://q</ReplyTo>\
                      <From>peer</From>";

/// Long enough for whatever grows faster than the document to show.
const FLOOD_BYTES: usize = 4 * 1024 * 1024;

/// Far more than reading such a document takes, far less than anything quadratic.
const DEADLINE: Duration = Duration::from_secs(10);

fn refused(text: &str) -> DecodeReason {
    let begin = Instant::now();
    let error = Message::from_xml(text).unwrap_err();
    let took = begin.elapsed();
    assert!(took < DEADLINE, "{took:?} for {:?}", error.reason);
    assert!(
        error.to_string().len() < 2000,
        "the error itself is bounded"
    );
    error.reason
}

/// A long document of copies.
fn flood(before: &str, copies: &str) -> String {
    let count = (FLOOD_BYTES - before.len()) / copies.len();
    let mut text = String::with_capacity(FLOOD_BYTES);
    text.push_str(before);
    (0..count).for_each(|_| text.push_str(copies));
    text
}

#[test]
fn deep_nesting() {
    for name in ["a", "CorrelationID", "FileIDs"] {
        let tag = format!("<{name}>");
        assert!(matches!(
            refused(&format!("{ROOT}{HEADER}<Alarm>{}", tag.repeat(10_000))),
            DecodeReason::UnexpectedElement { .. }
        ));
        assert!(matches!(
            refused(&flood(&format!("{ROOT}<CorrelationID>"), &tag)),
            DecodeReason::UnexpectedElement { .. }
        ));
    }
    refused(&flood("", "<a>"));
}

#[test]
fn long_texts() {
    let huge = "x".repeat(200_000_000);
    assert!(matches!(refused(&huge), DecodeReason::TooLarge { .. }));
    drop(huge);
    let begin = format!("{ROOT}<CorrelationID>");
    for copies in [
        "x",
        "&amp;xx",
        "<!-- -->xxxxxxxx",
        "<![CDATA[xxxxxxxx]]>",
        "&#x1F4BE;",
        "\r",
    ] {
        assert!(
            matches!(
                refused(&flood(&begin, copies)),
                DecodeReason::TextTooLong { .. }
            ),
            "{copies}"
        );
    }
    for copies in ["<!-- -->", "<![CDATA[]]>"] {
        assert_eq!(
            refused(&flood(&begin, copies)),
            DecodeReason::CutOff,
            "{copies}"
        );
    }
}

#[test]
fn floods() {
    let header = "<CorrelationID>c</CorrelationID>";
    assert!(matches!(
        refused(&flood(ROOT, header)),
        DecodeReason::UnexpectedElement { .. }
    ));
    for copies in [" ", "<!-- c -->", "&#32;"] {
        assert_eq!(
            refused(&flood(ROOT, copies)),
            DecodeReason::CutOff,
            "{copies}"
        );
    }
    for before in ["<?a b?>", "<!-- c -->", "\n"] {
        assert_eq!(
            refused(&flood("", before)),
            DecodeReason::CutOff,
            "{before}"
        );
    }
    let attributes: String = (0..200_000)
        .map(|number| format!(" a{number}=\"\""))
        .collect();
    let declarations: String = (0..200_000)
        .map(|number| format!(" xmlns:a{number}=\"u\""))
        .collect();
    for text in [
        format!("<m{attributes}>"),
        format!("{ROOT}<CorrelationID{attributes}>"),
    ] {
        refused(&text);
    }
    for text in [
        format!("<m{declarations}>"),
        format!("{ROOT}<CorrelationID{declarations}>"),
    ] {
        refused(&text);
    }
    refused(&flood("<", "a"));
    refused(&flood("<!--", "a"));
    refused(&flood("<m a=\"", "a"));
    refused(&flood("<!DOCTYPE x [", "<!ENTITY a \"b\">"));
    refused(&flood(ROOT, "</"));
}

/// The floods once more, in a process of its own that may not use much memory.
#[test]
fn floods_need_little_memory() {
    let (_, module) = module_path!().split_once("::").unwrap();
    for test in ["floods", "deep_nesting"] {
        let output = Command::new("sh")
            .args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec \"$0\" \"$@\"")])
            .arg(env::current_exe().unwrap())
            .args([
                "--exact",
                &format!("{module}::{test}"),
                "--test-threads",
                "1",
            ])
            .env("MALLOC_ARENA_MAX", "1")
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && said.contains("1 passed"),
            "{output:?}"
        );
    }
}

/// For the program with everything else that is tested in it, and some documents.
const MEMORY_KIB: u32 = 384 * 1024;

#[test]
fn entities_do_not_grow() {
    let bomb = "<!DOCTYPE x [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;\">]>";
    assert_eq!(
        refused(&format!("{bomb}{ROOT}")),
        DecodeReason::DocumentType
    );
    assert_eq!(
        refused(&format!("{ROOT}<CorrelationID>&b;")),
        DecodeReason::UnknownEntity("b".into())
    );
}

#[test]
fn the_error_knows_whose_message_it_was() {
    let error = Message::from_xml(&format!("{ROOT}{HEADER}<Alarm><Bogus/>")).unwrap_err();
    assert_eq!(&*error.path, "/AlarmMessage/Alarm");
    assert_eq!(
        error.offset,
        u64::try_from(ROOT.len() + HEADER.len() + "<Alarm>".len()).unwrap()
    );
    assert_eq!(error.known.message_type.as_deref(), Some("AlarmMessage"));
    assert_eq!(error.known.from, Some("peer".into()));
    assert_eq!(error.known.correlation_id, Some("c".into()));
    assert_eq!(error.known.collection_id, Some("books".into()));
    assert_eq!(error.known.reply_to.unwrap().to_string(), "queue://q");

    let error =
        Message::from_xml(&format!("{ROOT}<CorrelationID>c\u{1}</CorrelationID>")).unwrap_err();
    assert_eq!(error.reason, DecodeReason::IllegalCharacter);
    assert_eq!(&*error.path, "/AlarmMessage/CorrelationID");
    assert_eq!(error.known.correlation_id, None);
}

#[test]
fn nothing_hides_behind_the_end() {
    let text = format!("{ROOT}{HEADER}{ALARM}</m:AlarmMessage>");
    Message::from_xml(&text).unwrap();
    assert_eq!(
        refused(&format!("{text}\0")),
        DecodeReason::IllegalCharacter
    );
    assert_eq!(refused(&format!("{text}\n{text}")), DecodeReason::AfterRoot);
}

const ALARM: &str = "<Alarm><OrigDateTime>2024-05-01T12:00:00Z</OrigDateTime><AlarmCode>TIMEOUT</AlarmCode>\
                     <AlarmRaiser>peer</AlarmRaiser><AlarmText/></Alarm>";
