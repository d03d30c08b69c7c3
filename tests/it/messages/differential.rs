//! Our reader and writer beside the reference schemas.

use std::collections::{BTreeMap, BTreeSet};

use pillarbox_messages::{DecodeReason, MessageType};

use super::{
    corpus::{Document, Family, captured, examples, own_schemas, shared},
    meaning::meaning,
    mutations,
    tree::{Element, PLAIN, Style},
    xmllint::Judge,
};

#[test]
fn what_the_reference_accepts_is_read_and_written_again() {
    let Some(shared) = shared("what_the_reference_accepts_is_read_and_written_again") else {
        return;
    };
    let reference = shared.join("schemas-ref");
    let mut documents = examples(&shared);
    documents.extend(captured(&shared));
    let judge = Judge::new(&documents);
    let verdicts = judge.accepts(&reference);
    assert_eq!(
        verdicts,
        judge.accepts(&own_schemas()),
        "our schemas differ"
    );

    let (mut rewritten, mut refused) = (Vec::new(), 0);
    for (document, accepted) in documents.iter().zip(&verdicts) {
        match (document.decode(), accepted) {
            (Ok(decoded), true) => {
                let again = Document {
                    text: decoded.to_xml(),
                    ..document.clone()
                };
                assert_eq!(again.decode().unwrap(), decoded, "{}", document.name);
                assert_eq!(
                    meaning(&again.text),
                    meaning(&document.text),
                    "{}",
                    document.name
                );
                rewritten.push(again);
            }
            (Err(_), false) => refused += 1,
            (ours, _) => panic!("{}: accepted {accepted}, ours {ours:?}", document.name),
        }
    }
    let judge = Judge::new(&rewritten);
    for schemas in [reference, own_schemas()] {
        assert!(judge.accepts(&schemas).iter().all(|&accepted| accepted));
    }
    println!(
        "read, written, accepted again: {}; refused by both: {refused}",
        rewritten.len()
    );
    assert!(!rewritten.is_empty() && refused > 0);
    assert_all_types(&documents);
}

/// The examples must show every message type, or the test proves less than it says.
fn assert_all_types(documents: &[Document]) {
    let roots: BTreeSet<String> = documents
        .iter()
        .filter(|document| document.family == Family::Messages && document.decode().is_ok())
        .map(|document| Element::parse(&document.text).local_name().to_owned())
        .collect();
    let missing: Vec<&str> = MessageType::ALL
        .iter()
        .map(|kind| kind.as_str())
        .filter(|name| !roots.contains(*name))
        .collect();
    assert!(missing.is_empty(), "no document of {missing:?}");
}

#[test]
fn what_the_reference_refuses_is_refused() {
    let Some(shared) = shared("what_the_reference_refuses_is_refused") else {
        return;
    };
    let documents = mutations::of_all(&examples(&shared));
    let judge = Judge::new(&documents);
    let reference = judge.accepts(&shared.join("schemas-ref"));
    let own = judge.accepts(&own_schemas());
    let (mut accepted, mut refused) = (0, 0);
    let mut deliberate: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for ((document, reference), own) in documents.iter().zip(reference).zip(own) {
        if own != reference {
            wrong.push(format!(
                "{}: reference {reference}, our schemas {own}",
                document.name
            ));
        }
        match (document.decode(), reference) {
            (Ok(_), true) => accepted += 1,
            (Err(_), false) => refused += 1,
            (Ok(_), false) => wrong.push(format!("{}: read\n  {}", document.name, document.text)),
            (Err(error), true) => match difference(&error.reason) {
                Some(what) => *deliberate.entry(what).or_default() += 1,
                None => wrong.push(format!("{}: {error}\n  {}", document.name, document.text)),
            },
        }
    }
    println!("changed documents: {accepted} accepted by both, {refused} refused by both");
    for (what, count) in &deliberate {
        println!("deliberately refused, though the reference accepts: {count} x {what}");
    }
    assert!(accepted > 0 && refused > 0 && deliberate.len() == 6);
    assert!(
        wrong.is_empty(),
        "{} differences:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

/// What we refuse although the reference schemas accept it.
fn difference(reason: &DecodeReason) -> Option<&'static str> {
    match reason {
        DecodeReason::DocumentType => Some("a document type declaration: no message has one"),
        DecodeReason::ProcessingInstruction => Some("a processing instruction after the prolog"),
        DecodeReason::BadValue { expected, .. } if expected.starts_with("a destination") => {
            Some("a destination that names no place, or an unknown kind of place")
        }
        DecodeReason::BadValue { text, .. } if text.starts_with("300000-") => {
            Some("a date too far away")
        }
        DecodeReason::Encoding(_) => Some("a declared encoding other than UTF-8"),
        DecodeReason::Declaration => Some("a declared version other than 1.0"),
        _ => None,
    }
}

#[test]
fn styles_make_no_difference() {
    let Some(shared) = shared("styles_make_no_difference") else {
        return;
    };
    let mut compared = 0;
    for document in examples(&shared) {
        let Ok(decoded) = document.decode() else {
            continue;
        };
        for (name, text) in styles(&Element::parse(&document.text)) {
            let styled = Document {
                text,
                ..document.clone()
            };
            let again = styled.decode();
            assert_eq!(
                again.as_ref(),
                Ok(&decoded),
                "{}, {name}: {}",
                document.name,
                styled.text
            );
            compared += 1;
        }
    }
    println!("styles compared: {compared}");
    assert!(compared >= 4 * 46);
}

/// The document as four kinds of serializer write it.
fn styles(root: &Element) -> Vec<(&'static str, String)> {
    let jaxb = Style {
        declaration: "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>",
        ..PLAIN
    };
    let indented = Style {
        declaration: "\u{FEFF}<?xml version='1.0' encoding='utf-8' standalone='no' ?>\r\n",
        indent: Some("\r\n"),
        ..PLAIN
    };
    let turned = Style {
        quote: '\'',
        reverse_attributes: true,
        ..PLAIN
    };
    let prefixed = |prefix: &str, child: Option<&str>| {
        let mut copy = root.clone();
        if let Some(child) = child {
            copy.rename_all(&|name| format!("{child}:{name}"));
        }
        copy.name = format!("{prefix}:{}", root.local_name());
        for (name, _) in &mut copy.attributes {
            if name.starts_with("xmlns:") {
                *name = format!("xmlns:{prefix}");
            } else if let (Some(child), "xmlns") = (child, name.as_str()) {
                *name = format!("xmlns:{child}");
            }
        }
        copy
    };
    vec![
        ("one line, ns2", prefixed("ns2", None).to_xml(jaxb)),
        (
            "every element prefixed",
            prefixed("bro", Some("bre")).to_xml(PLAIN),
        ),
        ("indented with CRLF", prefixed("m", None).to_xml(indented)),
        (
            "attributes turned around",
            prefixed("ns2", Some("ns3")).to_xml(turned),
        ),
    ]
}
