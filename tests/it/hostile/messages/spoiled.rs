//! The ways in which a good request is spoiled.

use crate::support::raw_peer::{ELEMENTS, MESSAGES};

/// Whether it is known whom to answer when the mistake shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// The header was read before the mistake.
    Known,
    /// It wasn't.
    Unknown,
}

use Sender::{Known, Unknown};

/// A request that can't be read.
pub(super) struct Spoiled {
    pub(super) name: &'static str,
    pub(super) sender: Sender,
    pub(super) xml: Vec<u8>,
}

/// Spoils good requests of this type in every way. Each has a correlation id of its own, `bad-` and its number.
pub(super) fn spoiled(kind: &str, good: impl Fn(&str) -> String) -> Vec<Spoiled> {
    let ways = [
        PROLOGS, SIZES, NAMESPACES, STRUCTURE, ENDS, BYTES, ATTRIBUTES,
    ]
    .concat();
    let spoil = |(number, (name, sender, way)): (usize, &Way)| {
        let good = Good {
            xml: good(&format!("bad-{number}")),
            end: format!("</m:{kind}>"),
        };
        let xml = way(&good);
        assert_ne!(xml, good.xml.as_bytes(), "{name}: not spoiled");
        Spoiled {
            name,
            sender: *sender,
            xml,
        }
    };
    ways.iter().enumerate().map(spoil).collect()
}

type Way = (&'static str, Sender, fn(&Good) -> Vec<u8>);

/// Entities, which let a few bytes stand for many, or for a file.
const PROLOGS: &[Way] = &[
    ("DOCTYPE", Unknown, |good| {
        good.first("?>", "?><!DOCTYPE a>")
    }),
    ("entities", Unknown, |good| {
        let bomb = "<!DOCTYPE a [<!ENTITY b \"bbbbbbbbbb\"><!ENTITY c \"&b;&b;&b;&b;\">]>";
        good.first("?>", &format!("?>{bomb}"))
    }),
    ("an external entity", Unknown, |good| {
        let file = "<!DOCTYPE a [<!ENTITY x SYSTEM \"file:///etc/passwd\">]>";
        good.first("?>", &format!("?>{file}"))
    }),
    ("an undefined entity", Known, |good| good.before_end("&x;")),
];

const SIZES: &[Way] = &[
    ("10,000 levels", Known, |good| {
        good.before_end(&deep(10_000))
    }),
    ("10,000 levels at the start", Unknown, |good| {
        good.first(
            "<CorrelationID>",
            &format!("{}<CorrelationID>", deep(10_000)),
        )
    }),
    ("15 MB of text", Known, |good| {
        let text = "x".repeat(15 << 20);
        let after = if good.xml.contains("</To>") {
            "</To>"
        } else {
            "</From>"
        };
        good.first(
            after,
            &format!("{after}<AuditTrailInformation>{text}</AuditTrailInformation>"),
        )
    }),
];

const NAMESPACES: &[Way] = &[
    ("the root in a wrong namespace", Unknown, |good| {
        good.all(MESSAGES, ELEMENTS)
    }),
    ("the rest in a wrong namespace", Unknown, |good| {
        good.all(ELEMENTS, MESSAGES)
    }),
    ("no namespace", Unknown, |good| {
        good.all(&format!(" xmlns=\"{ELEMENTS}\""), "")
    }),
];

const STRUCTURE: &[Way] = &[
    ("wrong order", Unknown, |good| {
        let (start, rest) = good.xml.split_once("<CorrelationID>").expect("is there");
        let (id, rest) = rest.split_once("</CorrelationID>").expect("is there");
        let (middle, rest) = rest.split_once("<ReplyTo>").expect("is there");
        let late = format!("<CorrelationID>{id}</CorrelationID><ReplyTo>{rest}");
        format!("{start}{middle}{late}").into_bytes()
    }),
    ("an unknown element", Known, |good| {
        good.before_end("<Surprise>x</Surprise>")
    }),
    ("an unknown attribute", Unknown, |good| {
        good.first("<From>", "<From surprise=\"x\">")
    }),
    ("text between elements", Known, |good| {
        good.before_end("surprise")
    }),
    ("an element twice", Known, |good| {
        good.first("<From>", "<From>x</From><From>")
    }),
    ("a wrong end", Unknown, |good| {
        good.first("</From>", "</Form>")
    }),
    ("a bad destination", Unknown, |good| {
        good.first("<ReplyTo>topic:", "<ReplyTo>heap:")
    }),
];

const ENDS: &[Way] = &[
    ("junk after the root", Known, |good| good.after_end(b"junk")),
    ("a second root", Known, |good| {
        good.after_end(good.xml.as_bytes())
    }),
    ("cut off", Known, |good| good.all(&good.end, "")),
    ("cut off early", Unknown, |good| {
        good.xml.as_bytes()[..good.xml.len() / 4].to_vec()
    }),
    ("empty", Unknown, |_| Vec::new()),
    ("blank", Unknown, |_| b"  \n ".to_vec()),
    ("no XML", Unknown, |_| b"PutFile, please".to_vec()),
];

const BYTES: &[Way] = &[
    ("an illegal character", Known, |good| {
        good.before_end("\u{1}")
    }),
    ("a reference to one", Known, |good| good.before_end("&#1;")),
    ("not UTF-8", Unknown, |good| good.after_end(b"\xff\xfe")),
    ("a surrogate", Unknown, |good| {
        good.after_end(b"\xed\xa0\x80")
    }),
];

const ATTRIBUTES: &[Way] = &[
    ("no version", Known, |good| {
        good.first(" version=\"31\"", "")
    }),
    ("a version in words", Known, |good| {
        good.first("\"31\"", "\"newest\"")
    }),
    ("a version of nothing", Known, |good| {
        good.first("\"31\"", "\"0\"")
    }),
];

/// The request to be spoiled.
struct Good {
    xml: String,
    /// Its last tag.
    end: String,
}

impl Good {
    fn first(&self, from: &str, to: &str) -> Vec<u8> {
        self.xml.replacen(from, to, 1).into_bytes()
    }

    fn all(&self, from: &str, to: &str) -> Vec<u8> {
        self.xml.replace(from, to).into_bytes()
    }

    fn before_end(&self, insert: &str) -> Vec<u8> {
        self.all(&self.end, &format!("{insert}{}", self.end))
    }

    fn after_end(&self, more: &[u8]) -> Vec<u8> {
        [self.xml.as_bytes(), more].concat()
    }
}

pub(super) fn deep(levels: usize) -> String {
    format!("{}{}", "<a>".repeat(levels), "</a>".repeat(levels))
}
