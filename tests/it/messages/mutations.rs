//! Small changes to documents, most of which make them invalid.

use std::collections::BTreeSet;

use super::{
    corpus::Document,
    tree::{Element, Node, PLAIN},
};

/// Every change to every example. Changes at an element are tried once for each place it has in a message
/// type (once for all, if that is the header), texts once for each kind of leaf.
pub(crate) fn of_all(documents: &[Document]) -> Vec<Document> {
    let (mut tried, mut tried_texts) = (BTreeSet::new(), BTreeSet::new());
    let mut mutated = Vec::new();
    for document in documents {
        let tree = Element::parse(&document.text);
        let mut add = |what: &str, text: String| {
            let name = format!("{}: {what}", document.name);
            mutated.push(Document {
                name,
                family: document.family,
                text,
            });
        };
        around_the_root(&tree, &mut add);
        root_attributes(&tree, &mut add);
        for place in tree.places() {
            let mut copy = tree.clone();
            let parent = copy.at(&place[..place.len() - 1]).local_name().to_owned();
            let element = copy.at(&place);
            let name = element.local_name().to_owned();
            let shared = HEADER.contains(&name.as_str()) && parent == tree.local_name();
            let context = if shared { "header" } else { &parent }.to_owned();
            if element.is_leaf() && tried_texts.insert((context.clone(), name.clone())) {
                texts(&tree, &place, &mut add);
            }
            if tried.insert((context, name)) {
                one_element(&tree, &place, &mut add);
            }
        }
        siblings(&tree, &mut add);
    }
    mutated
}

type Add<'a> = dyn FnMut(&str, String) + 'a;

fn around_the_root(tree: &Element, add: &mut Add<'_>) {
    let text = tree.to_xml(PLAIN);
    let declaration = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>";
    for (what, before, after) in [
        ("nothing", "", ""),
        ("declaration", declaration, ""),
        ("byte order mark", "\u{FEFF}", ""),
        (
            "space before the declaration",
            " <?xml version=\"1.0\"?>",
            "",
        ),
        (
            "two declarations",
            "<?xml version=\"1.0\"?><?xml version=\"1.0\"?>",
            "",
        ),
        (
            "declaration of another encoding",
            "<?xml version=\"1.0\" encoding=\"UTF-16\"?>",
            "",
        ),
        (
            "declaration without a version",
            "<?xml encoding=\"UTF-8\"?>",
            "",
        ),
        (
            "declaration of a part of UTF-8",
            "<?xml version=\"1.0\" encoding=\"US-ASCII\"?>",
            "",
        ),
        ("declaration of version 1.1", "<?xml version=\"1.1\"?>", ""),
        ("comments", "<!-- a --><!-- b -->\n", "\n<!-- c -->\n"),
        ("comment with two hyphens", "<!-- a -- b -->", ""),
        ("text before", "x", ""),
        ("text after", "", "x"),
        ("reference after", "", "&#32;"),
        ("a section after", "", "<![CDATA[ ]]>"),
        ("a second root", "", &text),
        ("an end tag after", "", "</x>"),
        ("a processing instruction before", "<?a b?>", ""),
        ("a processing instruction after", "", "<?a b?>"),
        ("a document type", "<!DOCTYPE x>", ""),
        (
            "a document type with entities",
            "<!DOCTYPE x [<!ENTITY a \"b\">]>",
            "",
        ),
    ] {
        add(what, format!("{before}{text}{after}"));
    }
    for cut in (1..text.len()).step_by(97) {
        if let Some(beginning) = text.get(..cut) {
            add("cut off", beginning.to_owned());
        }
    }
    add("empty", String::new());
}

fn root_attributes(tree: &Element, add: &mut Add<'_>) {
    let mut change = |what: &str, change: &dyn Fn(&mut Element)| {
        let mut copy = tree.clone();
        change(&mut copy);
        add(what, copy.to_xml(PLAIN));
    };
    for name in ["version", "minVersion"] {
        change("attribute missing", &|root| {
            root.attributes.retain(|(own, _)| own != name);
        });
        change("attribute twice", &|root| {
            root.attributes.push((name.into(), "31".into()));
        });
        for value in [
            "0", "-1", "-0", "+31", " 31 ", "031", "x", "", "3 1", "&#51;1", "31.0",
        ] {
            change("attribute value", &|root| {
                let attribute = root.attributes.iter_mut().find(|(own, _)| own == name);
                attribute.unwrap().1 = value.into();
            });
        }
    }
    for (name, value) in [
        ("extra", "1"),
        ("Version", "31"),
        ("xml:lang", "en"),
        ("zz:extra", "1"),
        ("xmlns:zz", "urn:zz"),
        ("xmlns:zz", ""),
        ("xmlns", "urn:wrong"),
        ("xmlns", ""),
    ] {
        change("extra attribute", &|root| {
            root.attributes.retain(|(own, _)| own != name);
            root.attributes.push((name.into(), value.into()));
        });
    }
    for namespace in ["Messages", "Data", "Elements"] {
        change("another root namespace", &|root| {
            for (name, value) in &mut root.attributes {
                if name.starts_with("xmlns:") {
                    *value = format!("http://bitrepository.org/BitRepository{namespace}.xsd");
                }
            }
        });
    }
    change("another root", &|root| root.name += "s");
    change("root without prefix", &|root| {
        root.name = root.local_name().to_owned();
    });
    change("root of another type", &|root| {
        root.name = root
            .name
            .replace("Request", "FinalResponse")
            .replace("Progress", "Final");
    });
}

/// Changes at one element.
fn one_element(tree: &Element, place: &[usize], add: &mut Add<'_>) {
    let mut change = |what: &str, change: &dyn Fn(&mut Element)| {
        let mut copy = tree.clone();
        change(copy.at(place));
        add(what, copy.to_xml(PLAIN));
    };
    let attribute = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let element = |name: &str| {
        Node::Element(Element {
            name: name.to_owned(),
            ..Element::default()
        })
    };
    change("renamed", &|element| element.name += "X");
    change("renamed to a known element", &|element| {
        element.name = "FileID".into();
    });
    change("lower case", &|element| {
        element.name = element.name.to_lowercase();
    });
    change("undeclared prefix", &|element| {
        element.name = format!("zz:{}", element.name);
    });
    change("wrong namespace", &|element| {
        element.attributes.push(attribute("xmlns", "urn:wrong"));
    });
    change("no namespace", &|element| {
        element.attributes.push(attribute("xmlns", ""));
    });
    change("extra attribute", &|element| {
        element.attributes.push(attribute("extra", "1"));
    });
    change("language", &|element| {
        element.attributes.push(attribute("xml:lang", "en"));
    });
    change("schema hint", &|element| {
        element.attributes.push(attribute(
            "xmlns:i",
            "http://www.w3.org/2001/XMLSchema-instance",
        ));
        element
            .attributes
            .push(attribute("i:schemaLocation", "urn:a b"));
    });
    change("nil", &|element| {
        element.attributes.push(attribute(
            "xmlns:i",
            "http://www.w3.org/2001/XMLSchema-instance",
        ));
        element.attributes.push(attribute("i:nil", "true"));
    });
    change("a child first", &|parent| {
        parent.children.insert(0, element("Extra"));
    });
    change("a child last", &|parent| {
        parent.children.push(element("FileID"));
    });
    change("emptied", &|element| element.children.clear());
    for (what, raw) in RAW {
        change(what, &|element| {
            element.children.insert(0, Node::Raw(raw.into()));
        });
    }
}

/// What is put where an element begins.
const RAW: [(&str, &str); 18] = [
    ("comment", "<!-- c -->"),
    ("section", "<![CDATA[]]>"),
    ("section of text", "<![CDATA[x]]>"),
    ("processing instruction", "<?a b?>"),
    ("text", "x"),
    ("space", "\r\n\t "),
    ("reference to a space", "&#x20;"),
    ("unknown entity", "&unknown;"),
    ("ampersand", "&"),
    ("less-than", "<"),
    ("end of a section", "]]>"),
    ("control character", "\u{1}"),
    ("reference to a control character", "&#1;"),
    ("reference to no character", "&#xFFFE;"),
    ("reference to half a character", "&#xD800;"),
    ("no character", "\u{FFFF}"),
    ("unclosed comment", "<!-- "),
    ("document type", "<!DOCTYPE x>"),
];

/// Changes to the order and number of children.
fn siblings(tree: &Element, add: &mut Add<'_>) {
    let mut parents = vec![Vec::new()];
    parents.extend(tree.places());
    for parent in parents {
        let count = tree.clone().at(&parent).elements().count();
        for number in 0..count {
            let mut change = |what: &str, change: &dyn Fn(&mut Vec<Node>)| {
                let mut copy = tree.clone();
                change(&mut copy.at(&parent).children);
                add(what, copy.to_xml(PLAIN));
            };
            change("deleted", &|children| {
                children.remove(number);
            });
            change("duplicated", &|children| {
                children.insert(number, children[number].clone());
            });
            change("repeated at the end", &|children| {
                children.push(children[number].clone());
            });
            change("moved to the front", &|children| {
                let child = children.remove(number);
                children.insert(0, child);
            });
            if number + 1 < count {
                change("swapped", &|children| children.swap(number, number + 1));
            }
        }
    }
}

/// Texts in place of a leaf's own.
fn texts(tree: &Element, place: &[usize], add: &mut Add<'_>) {
    for text in TEXTS {
        let mut copy = tree.clone();
        copy.at(place).set_raw(text);
        add(&format!("text '{text}'"), copy.to_xml(PLAIN));
    }
    let own = tree.clone().at(place).raw_text();
    for text in [
        format!(" {own}"),
        format!("{own}\n"),
        format!("\r\n\t{own} "),
        format!("<![CDATA[{own}]]>"),
        format!("<!-- c -->{own}<!-- d -->"),
        format!("&#x{:X};{own}", 0x20),
        own.to_lowercase(),
    ] {
        let mut copy = tree.clone();
        copy.at(place).set_raw(&text);
        add(&format!("text '{text}'"), copy.to_xml(PLAIN));
    }
}

const TEXTS: [&str; 63] = [
    "",
    " ",
    "\u{A0}",
    "not a value",
    "rød grød &amp; 漢字 \u{1F4BE} &#x1F4BE;",
    "0",
    "1",
    "-0",
    "-1",
    "+1",
    "+0",
    "007",
    " 1 ",
    "1 1",
    "1.0",
    "1e3",
    "0x1",
    "&#49;2",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999",
    "true",
    "false",
    " true ",
    "True",
    "MD5",
    " MD5",
    "md5",
    "SHA-1",
    "OK",
    "FAILURE",
    "HOURS",
    "abc",
    "ABCD",
    "abCd",
    " ab ",
    "ab cd",
    "0g",
    "2024-05-01T12:00:00",
    "2024-05-01T12:00:00Z",
    " 2024-05-01T12:00:00Z\n",
    "2024-05-01T12:00:00.1Z",
    "2024-05-01T12:00:00.123456789+05:45",
    "2024-05-01T12:00:00.Z",
    "2024-05-01T12:00:00-00:00",
    "2024-05-01T12:00:00+14:00",
    "2024-05-01T12:00:00+14:01",
    "2024-05-01T12:00:00+00:60",
    "2024-05-01T12:00:60Z",
    "2024-05-01T24:00:00Z",
    "2024-05-01T24:00:01Z",
    "2024-02-30T12:00:00Z",
    "2023-02-29T12:00:00Z",
    "2024-05-01 12:00:00Z",
    "2024-05-01t12:00:00Z",
    "2024-05-01T12:00:00z",
    "12024-05-01T12:00:00Z",
    "02024-05-01T12:00:00Z",
    "-0044-03-15T12:00:00Z",
    "300000-01-01T00:00:00Z",
    "2024-05-01",
    "topic://a://b",
    "ftp://a",
];

/// Elements that all messages begin with.
const HEADER: [&str; 8] = [
    "CorrelationID",
    "CollectionID",
    "Destination",
    "ReplyTo",
    "From",
    "To",
    "AuditTrailInformation",
    "ResponseInfo",
];
