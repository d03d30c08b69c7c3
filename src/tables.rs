//! What the pillars answered, file by file, as the rows that users of the Java clients know: columns separated by
//! a space and a tab.

use std::{cmp::Reverse, collections::BTreeMap};

use pillarbox_client::listing::Entry;
use pillarbox_messages::{ComponentId, HexBinary};
use serde::Serialize;

use crate::{json::line, output::one_line};

/// `get-file-ids`: heading.
pub(crate) const FILE_IDS: &str = "Count: \tSize: \tFileID:\n";
/// `get-checksums` of all files: heading.
pub(crate) const CHECKSUMS_OF_ALL: &str = "Checksum: \tCount: \tFileID:\n";
/// `get-checksums` of one file: heading.
pub(crate) const CHECKSUMS_OF_ONE: &str = "Count: \tChecksum: \tPillars: \tFileID: \n";

/// Whether the pillars that told a size told the same.
pub(crate) fn sizes_agree(entry: &Entry<Option<u64>>) -> bool {
    let mut known = entry.values.values().flatten();
    known
        .next()
        .is_none_or(|first| known.all(|other| other == first))
}

/// Whether the pillars that have the file told one checksum.
pub(crate) fn checksums_agree(entry: &Entry<HexBinary>) -> bool {
    by_value(entry).len() <= 1
}

/// `get-file-ids`: how many pillars have the file, and its size if they agree on one.
pub(crate) fn file_ids(entry: &Entry<Option<u64>>, _asked: usize) -> String {
    let size = match entry.values.values().flatten().next() {
        None => "???".to_owned(),
        Some(size) if sizes_agree(entry) => size.to_string(),
        Some(_) => "disagreed".to_owned(),
    };
    let file = one_line(&entry.file);
    format!("{} \t{size} \t{file}\n", entry.values.len())
}

/// `get-checksums` of all files: the checksum that all have, or `disagreed`.
pub(crate) fn checksums_of_all(entry: &Entry<HexBinary>, _asked: usize) -> String {
    let checksum = match by_value(entry).as_slice() {
        [(value, _)] => value.to_string(),
        _ => "disagreed".to_owned(),
    };
    let file = one_line(&entry.file);
    format!("{checksum} \t{} \t{file}\n", entry.values.len())
}

/// `get-checksums` of one file: one row per distinct checksum, for `All` if all that were asked have told that one.
pub(crate) fn checksums_of_one(entry: &Entry<HexBinary>, asked: usize) -> String {
    let distinct = by_value(entry);
    let agreed = all_agree(entry, asked);
    let file = one_line(&entry.file);
    let row = |(value, pillars): (&HexBinary, Vec<&str>)| {
        let who = if agreed {
            "All".to_owned()
        } else {
            format!("[{}]", pillars.join(", "))
        };
        format!("{} \t{value} \t{who} \t{file}\n", pillars.len())
    };
    distinct.into_iter().map(row).collect()
}

/// Whether all pillars that were asked have told one checksum.
fn all_agree(entry: &Entry<HexBinary>, asked: usize) -> bool {
    entry.values.len() == asked && checksums_agree(entry)
}

/// The distinct checksums of one file with the pillars that have them, most pillars first.
fn by_value(entry: &Entry<HexBinary>) -> Vec<(&HexBinary, Vec<&str>)> {
    let mut distinct: Vec<(&HexBinary, Vec<&str>)> = Vec::new();
    for (pillar, value) in &entry.values {
        match distinct.iter_mut().find(|(known, _)| *known == value) {
            Some((_, pillars)) => pillars.push(pillar.as_str()),
            None => distinct.push((value, vec![pillar.as_str()])),
        }
    }
    distinct.sort_by_key(|(_, pillars)| Reverse(pillars.len()));
    distinct
}

/// One file of `get-file-ids --json`.
#[derive(Debug, Serialize)]
struct FileIdsLine<'a> {
    file_id: &'a str,
    count: usize,
    sizes: BTreeMap<&'a str, Option<u64>>,
}

/// `get-file-ids --json`: one object on a line.
pub(crate) fn file_ids_json(entry: &Entry<Option<u64>>, _asked: usize) -> String {
    line(&FileIdsLine {
        file_id: entry.file.as_str(),
        count: entry.values.len(),
        sizes: by_pillar(&entry.values, |size| *size),
    })
}

/// One file of `get-checksums --json`.
#[derive(Debug, Serialize)]
struct ChecksumsLine<'a> {
    file_id: &'a str,
    count: usize,
    agreed: bool,
    checksums: BTreeMap<&'a str, String>,
}

/// `get-checksums --json`: one object on a line.
pub(crate) fn checksums_json(entry: &Entry<HexBinary>, asked: usize) -> String {
    line(&ChecksumsLine {
        file_id: entry.file.as_str(),
        count: entry.values.len(),
        agreed: all_agree(entry, asked),
        checksums: by_pillar(&entry.values, ToString::to_string),
    })
}

fn by_pillar<V, T>(values: &BTreeMap<ComponentId, V>, show: impl Fn(&V) -> T) -> BTreeMap<&str, T> {
    values
        .iter()
        .map(|(pillar, value)| (pillar.as_str(), show(value)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry<V>(values: impl IntoIterator<Item = (&'static str, V)>) -> Entry<V> {
        let values = values
            .into_iter()
            .map(|(pillar, value)| (pillar.into(), value))
            .collect();
        Entry {
            file: "f".into(),
            values,
        }
    }

    fn hex(text: &str) -> HexBinary {
        text.parse().unwrap()
    }

    #[test]
    fn sizes() {
        assert_eq!(
            file_ids(&entry([("p1", Some(20)), ("p2", Some(20))]), 2),
            "2 \t20 \tf\n"
        );
        assert_eq!(
            file_ids(&entry([("p1", Some(1)), ("p2", Some(2))]), 2),
            "2 \tdisagreed \tf\n"
        );
        assert_eq!(file_ids(&entry([("p1", None)]), 1), "1 \t??? \tf\n");
        let mut hostile = entry([("p1", Some(1))]);
        hostile.file = "a  b\n9 \t9 \tc\u{9b}".into();
        assert_eq!(
            file_ids(&hostile, 1),
            "1 \t1 \ta  b\\n9 \\t9 \\tc\\u{9b}\n",
            "a pillar makes no rows of its own"
        );
        assert_eq!(
            file_ids_json(&entry([("p1", Some(20)), ("p2", None)]), 2),
            "{\"file_id\":\"f\",\"count\":2,\"sizes\":{\"p1\":20,\"p2\":null}}\n"
        );
    }

    #[test]
    fn checksums() {
        let split = entry([("p1", hex("aa")), ("p2", hex("bb")), ("p3", hex("AA"))]);
        assert_eq!(
            checksums_of_one(&split, 3),
            "2 \taa \t[p1, p3] \tf\n1 \tbb \t[p2] \tf\n"
        );
        assert_eq!(checksums_of_all(&split, 3), "disagreed \t3 \tf\n");
        let agreed = entry([("p1", hex("aa")), ("p2", hex("aa"))]);
        assert_eq!(checksums_of_one(&agreed, 2), "2 \taa \tAll \tf\n");
        assert_eq!(checksums_of_all(&agreed, 2), "aa \t2 \tf\n");
        assert_eq!(
            checksums_json(&agreed, 2),
            "{\"file_id\":\"f\",\"count\":2,\"agreed\":true,\"checksums\":{\"p1\":\"aa\",\"p2\":\"aa\"}}\n"
        );
        // A third one was asked, and has not told any.
        assert_eq!(checksums_of_one(&agreed, 3), "2 \taa \t[p1, p2] \tf\n");
        assert_eq!(checksums_of_all(&agreed, 3), "aa \t2 \tf\n");
        let told = checksums_json(&agreed, 3);
        assert!(told.contains("\"agreed\":false"), "{told}");
    }
}
