use proptest::prelude::*;

use super::*;
use crate::core::message::{Addresses, MessageId, NewMessage, Parts};

fn message() -> QueuedMessage {
    with(&[])
}

/// The message with these headers besides.
fn with(more: &[(&str, &str)]) -> QueuedMessage {
    let headers = [
        ("color", "blue"),
        ("count", "12"),
        ("fragile", "true"),
        ("org.bitrepository.messages.type", "PutFileRequest"),
        ("quote", "it's 100%"),
    ];
    let headers = headers.iter().chain(more);
    let headers = headers.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let new = NewMessage {
        headers: headers.collect(),
        correlation_id: Some("c-1".to_owned()),
        priority: 7,
        ..NewMessage::new(pillarbox_messages::Destination::queue("q"), "".into())
    };
    let id = MessageId { boot: 3, seq: 9 };
    Parts::of(&new, id, "", 1_000, true).pack(&mut Addresses::default())
}

#[test]
fn what_is_selected() {
    let message = message();
    for (text, expected) in [
        ("color = 'blue'", true),
        ("color <> 'blue'", false),
        ("color = 'red' OR count = 12", true),
        ("color = 'blue' AND count > 12", false),
        ("count >= 12 and count <= 12", true),
        ("count BETWEEN 10 AND 12.5", true),
        ("count NOT BETWEEN 10 AND 12.5", false),
        ("count = 1.2e1", true),
        ("count > -1", true),
        ("color IN ('red', 'blue')", true),
        ("color NOT IN ('red', 'blue')", false),
        ("color LIKE 'b%'", true),
        ("color LIKE '_lue'", true),
        ("color LIKE 'b_e'", false),
        ("color NOT LIKE '%u%'", false),
        ("quote LIKE '%!%' ESCAPE '!'", true),
        ("quote = 'it''s 100%'", true),
        ("fragile", true),
        ("NOT fragile", false),
        ("fragile = TRUE", true),
        ("fragile <> FALSE", true),
        ("missing IS NULL", true),
        ("color IS NOT NULL", true),
        ("JMSPriority > 6", true),
        ("JMSMessageID = '3-9'", true),
        ("JMSCorrelationID = 'c-1'", true),
        ("JMSDeliveryMode = 'PERSISTENT'", true),
        ("JMSExpiration = 0", true),
        (
            "\"org.bitrepository.messages.type\" = 'PutFileRequest'",
            true,
        ),
        ("NOT (color = 'red' OR count < 3) AND fragile", true),
        ("TRUE", true),
        ("color = 'blue' OR color = 'red' AND FALSE", true),
    ] {
        let selector: Selector = text.parse().unwrap();
        assert_eq!(selector.selects(&message), expected, "{text}");
        assert_eq!(selector.as_str(), text);
    }
}

/// What is unknown selects nothing, and neither does its contrary.
#[test]
fn what_is_unknown() {
    let message = message();
    for text in [
        "missing = 'x'",
        "missing <> 'x'",
        "missing > 1",
        "color > 1",
        "color = 1",
        "color",
        "missing LIKE '%'",
        "missing IN ('x')",
        "missing BETWEEN 1 AND 2",
        "color = TRUE",
        "missing = 'x' AND color = 'blue'",
        "missing = 'x' OR color = 'red'",
    ] {
        for text in [text.to_owned(), format!("NOT ({text})")] {
            let selector: Selector = text.parse().unwrap();
            assert!(!selector.selects(&message), "{text}");
        }
    }
    for (text, expected) in [
        ("missing = 'x' OR color = 'blue'", true),
        ("NOT (missing = 'x' AND color = 'red')", true),
    ] {
        let selector: Selector = text.parse().unwrap();
        assert_eq!(selector.selects(&message), expected, "{text}");
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let nested = format!("{}a{}", "(".repeat(50), ")".repeat(50));
    let nots = format!("{}a", "NOT ".repeat(50));
    let long = format!("a = '{}'", "x".repeat(10_000));
    let pattern = format!("a LIKE '{}'", "x".repeat(200));
    for text in [
        "",
        "a =",
        "= 1",
        "a = 'x",
        "a ! b",
        "a.b = 1",
        "a + 1 = 2",
        "(a = 1",
        "a = 1)",
        "a = 1 b",
        "a IN ()",
        "a IN (1)",
        "'a' IN ('b')",
        "a LIKE b",
        "a LIKE 'x' ESCAPE 'yy'",
        "a LIKE 'x!' ESCAPE '!'",
        "a IS 'x'",
        "a NOT = 1",
        "a BETWEEN 1",
        "AND = 1",
        "a = 1x",
        "a = 1e999",
        &nested,
        &nots,
        &long,
        &pattern,
    ] {
        let error = text.parse::<Selector>().unwrap_err();
        assert_eq!(error.name(), "INVALID", "{text}");
    }
}

#[test]
fn what_asks_for_one_id_is_known_to_do_so() {
    let id = |text: &str| {
        let selector: Selector = text.parse().unwrap();
        selector.only_equal("JMSMessageID").map(str::to_owned)
    };
    assert_eq!(id("JMSMessageID = '3-9'").as_deref(), Some("3-9"));
    assert_eq!(id("('3-9' = JMSMessageID)").as_deref(), Some("3-9"));
    assert_eq!(id("JMSMessageID <> '3-9'"), None);
    assert_eq!(id("JMSCorrelationID = '3-9'"), None);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[a-c '\"%_()=<>.,0-9NOTANDIkelin-]{0,40}") {
        if let Ok(selector) = text.parse::<Selector>() {
            let _ = selector.selects(&message());
        }
    }

    #[test]
    fn patterns_mean_what_they_say(text in "[ab]{0,8}", pattern in "[ab%_]{0,6}") {
        fn like(text: &[u8], pattern: &[u8]) -> bool {
            match pattern.split_first() {
                None => text.is_empty(),
                Some((b'%', rest)) => (0..=text.len()).any(|at| like(&text[at..], rest)),
                Some((b'_', rest)) => !text.is_empty() && like(&text[1..], rest),
                Some((c, rest)) => text.first() == Some(c) && like(&text[1..], rest),
            }
        }
        let selector: Selector = format!("x LIKE '{pattern}'").parse().unwrap();
        let message = with(&[("x", &text)]);
        prop_assert_eq!(selector.selects(&message), like(text.as_bytes(), pattern.as_bytes()));
    }
}

#[test]
fn whether_a_very_long_text_is_like_a_pattern_is_unknown() {
    let selects = |text: &str, length: usize| {
        let selector: Selector = text.parse().unwrap();
        selector.selects(&with(&[("long", &"x".repeat(length))]))
    };
    assert!(selects("long LIKE 'x%'", 4_096));
    assert!(!selects("long LIKE 'x%'", 4_097));
    assert!(!selects("long NOT LIKE 'y%'", 4_097));
    assert!(selects("long LIKE 'x%' OR color = 'blue'", 4_097));
}
