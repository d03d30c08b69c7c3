//! Writing XML: straight into a string, everything escaped in one pass.

use std::fmt::Write as _;

use super::content::Content;

/// A document being written.
#[derive(Debug)]
pub(crate) struct Writer {
    out: String,
}

/// The tags of an element; see the macro `tags`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tags {
    pub(crate) start: &'static str,
    pub(crate) end: &'static str,
}

impl Writer {
    /// An empty document.
    pub(crate) fn new() -> Self {
        Self {
            out: String::with_capacity(INITIAL_BYTES),
        }
    }

    /// What is written so far.
    pub(crate) fn out(&mut self) -> &mut String {
        &mut self.out
    }

    /// The document.
    pub(crate) fn into_string(self) -> String {
        self.out
    }

    /// Writes one element.
    #[inline]
    pub(crate) fn required<T: Content>(&mut self, tags: Tags, content: &T) {
        self.open(tags);
        content.write(self);
        self.close(tags);
    }

    /// Writes one element, if there is one.
    #[inline]
    pub(crate) fn optional<T: Content>(&mut self, tags: Tags, content: &Option<T>) {
        if let Some(content) = content {
            self.required(tags, content);
        }
    }

    /// Writes an element for each.
    pub(crate) fn repeated<T: Content>(&mut self, tags: Tags, contents: &[T]) {
        if let [first, rest @ ..] = contents {
            let before = self.out.len();
            self.required(tags, first);
            // Lists are long and their entries alike.
            self.out
                .reserve((self.out.len() - before + SPARE_BYTES).saturating_mul(rest.len()));
            for content in rest {
                self.required(tags, content);
            }
        }
    }

    /// Writes a start tag.
    #[inline]
    pub(crate) fn open(&mut self, tags: Tags) {
        self.out.push_str(tags.start);
    }

    /// Writes an end tag.
    #[inline]
    pub(crate) fn close(&mut self, tags: Tags) {
        self.out.push_str(tags.end);
    }

    /// Writes the declaration and the root's start tag, in the shape that the Java components use.
    pub(crate) fn open_root(
        &mut self,
        namespace: &str,
        name: &str,
        version: u64,
        min_version: u64,
    ) {
        // Writing to a String cannot fail.
        let _ = write!(
            self.out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?><ns2:{name} \
             xmlns=\"{}\" xmlns:ns2=\"{namespace}\" version=\"{version}\" minVersion=\"{min_version}\">",
            super::ELEMENTS
        );
    }

    /// Writes the root's end tag.
    pub(crate) fn close_root(&mut self, name: &str) {
        self.out.push_str("</ns2:");
        self.out.push_str(name);
        self.out.push('>');
    }
}

/// Appends text so that a reader finds it again, except for characters that XML 1.0 does not have, which
/// become U+FFFD.
///
/// Characters above U+FFFF are written as references: raw, they do not survive the way through a Java
/// message bus. A carriage return is too, because a raw one is read as a line feed.
#[inline]
pub(crate) fn escape(text: &str, out: &mut String) {
    // Not ending at the first one found lets several bytes be looked at together.
    if text
        .bytes()
        .fold(false, |found, byte| found | needs_care(byte))
    {
        escape_slowly(text, out);
    } else {
        out.push_str(text);
    }
}

const fn needs_care(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t' && byte != b'\n')
        || byte == b'&'
        || byte == b'<'
        || byte == b'>'
        || byte >= 0xEF
}

fn escape_slowly(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\r' => out.push_str("&#13;"),
            '\t' | '\n' => out.push(character),
            '\0'..'\u{20}' | '\u{FFFE}' | '\u{FFFF}' => out.push(char::REPLACEMENT_CHARACTER),
            '\u{10000}'.. => {
                let _ = write!(out, "&#x{:X};", u32::from(character));
            }
            _ => out.push(character),
        }
    }
}

/// Room for an entry of a list to be longer than the first.
const SPARE_BYTES: usize = 8;
/// Room for an ordinary message.
const INITIAL_BYTES: usize = 1536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes() {
        let mut out = String::new();
        escape("a<b>&\"'\t\n\r\u{1}\u{FFFE}é漢\u{1F4BE}]]>", &mut out);
        assert_eq!(
            out,
            "a&lt;b&gt;&amp;\"'\t\n&#13;\u{FFFD}\u{FFFD}é漢&#x1F4BE;]]&gt;"
        );
    }
}
