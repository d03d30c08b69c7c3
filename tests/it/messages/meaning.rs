//! What a document says, apart from how it is written; found without the reader under test.

use super::tree::Element;

/// The document's elements and texts in order, each text in one form per type.
pub(crate) fn meaning(text: &str) -> Vec<(String, String)> {
    let root = Element::parse(text);
    let mut found = vec![(root.local_name().to_owned(), versions(&root))];
    collect(&root, &mut found);
    found
}

fn versions(root: &Element) -> String {
    let of = |wanted: &str| {
        let value = root.attributes.iter().find(|(name, _)| name == wanted);
        value.map(|(_, value)| value.clone()).unwrap_or_default()
    };
    format!("{} {}", of("version"), of("minVersion"))
}

fn collect(element: &Element, found: &mut Vec<(String, String)>) {
    for child in element.elements() {
        let name = child.local_name();
        let text = if child.is_leaf() {
            one_form(name, &plain(child))
        } else {
            String::new()
        };
        found.push((name.to_owned(), text));
        collect(child, found);
    }
}

fn plain(leaf: &Element) -> String {
    quick_xml::escape::unescape(&leaf.raw_text())
        .unwrap()
        .into_owned()
}

fn one_form(name: &str, text: &str) -> String {
    match name {
        "ChecksumValue" | "ChecksumSalt" => text.to_ascii_lowercase(),
        "AllFileIDs" => String::new(),
        "PartialResult" => (text == "true" || text == "1").to_string(),
        "Destination" | "ReplyTo" if !text.contains("://") => format!("topic://{text}"),
        _ if name.ends_with("Time") || name.to_lowercase().ends_with("timestamp") => instant(text),
        _ => text.to_owned(),
    }
}

/// With exactly three fractional digits.
fn instant(text: &str) -> String {
    let (date, time) = text.split_once('T').unwrap();
    let zone = time.find(['Z', '+', '-']).unwrap();
    let (time, zone) = time.split_at(zone);
    let (time, fraction) = time.split_once('.').unwrap_or((time, ""));
    format!(
        "{date}T{time}.{:0<3.3}{}",
        fraction,
        zone.replace("+00:00", "Z")
    )
}
