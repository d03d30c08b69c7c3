//! The inside of a start tag: attributes, parsed as strictly as XML asks.

use quick_xml::escape::unescape;

use super::{characters::is_space, reader::Read};
use crate::error::{DecodeReason, shown};

/// The attributes of one start tag.
pub(crate) struct Attributes<'t> {
    rest: &'t str,
    left: usize,
    limit: usize,
}

/// One attribute, its value still escaped.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute<'t> {
    /// Name with prefix, as written.
    pub(crate) name: &'t str,
    /// Value as written, without quotes.
    pub(crate) value: &'t str,
}

impl<'t> Attributes<'t> {
    /// The attributes in what follows the element's name, at most so many.
    pub(crate) const fn new(text: &'t str, limit: usize) -> Self {
        Self {
            rest: text,
            left: limit,
            limit,
        }
    }

    /// The next attribute.
    pub(crate) fn next(&mut self) -> Read<Option<Attribute<'t>>> {
        let spaces = self.rest.bytes().take_while(|&byte| is_space(byte)).count();
        let text = self.rest.get(spaces..).unwrap_or_default();
        if text.is_empty() {
            return Ok(None);
        }
        if spaces == 0 {
            return Err(DecodeReason::not_well_formed(
                "no space before an attribute",
            ));
        }
        if self.left == 0 {
            return Err(Box::new(DecodeReason::TooManyAttributes {
                limit: self.limit,
            }));
        }
        self.left -= 1;
        let (attribute, rest) = split_attribute(text)
            .ok_or_else(|| DecodeReason::not_well_formed("bad attribute syntax"))?;
        self.rest = rest;
        Ok(Some(attribute))
    }
}

impl<'t> Attribute<'t> {
    /// The prefix that this attribute declares, if it is a namespace declaration; `""` for the default namespace.
    pub(crate) fn declares(&self) -> Option<&'t str> {
        match self.name.split_once(':') {
            None => (self.name == "xmlns").then_some(""),
            Some(("xmlns", prefix)) => Some(prefix),
            Some(_) => None,
        }
    }

    /// The value, references resolved.
    pub(crate) fn text(&self) -> Read<std::borrow::Cow<'t, str>> {
        unescape(self.value).map_err(|_| Box::new(DecodeReason::UnknownEntity(shown(self.value))))
    }
}

/// `name = "value"` and what follows.
fn split_attribute(text: &str) -> Option<(Attribute<'_>, &str)> {
    let spaces = [' ', '\t', '\n', '\r'];
    let (name, rest) = text.split_once('=')?;
    let name = name.trim_end_matches(spaces);
    let rest = rest.trim_start_matches(spaces);
    let quote = rest
        .chars()
        .next()
        .filter(|quote| matches!(quote, '"' | '\''))?;
    let (value, rest) = rest.strip_prefix(quote)?.split_once(quote)?;
    (is_name(name) && !value.contains('<')).then_some((Attribute { name, value }, rest))
}

/// Whether the text can be the (prefixed) name of an attribute, nearly as XML defines names: characters
/// above ASCII are not told apart.
fn is_name(text: &str) -> bool {
    let plain = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii())
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c) || !c.is_ascii())
    };
    match text.split_once(':') {
        None => plain(text),
        Some((prefix, local)) => plain(prefix) && plain(local),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Read<Vec<(String, String)>> {
        let mut attributes = Attributes::new(text, 3);
        let mut found = Vec::new();
        while let Some(Attribute { name, value }) = attributes.next()? {
            found.push((name.to_owned(), value.to_owned()));
        }
        Ok(found)
    }

    #[test]
    fn syntax() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            all(" a = '1'\n\tb:c=\"'\" ").unwrap(),
            [pair("a", "1"), pair("b:c", "'")]
        );
        assert_eq!(all("").unwrap(), []);
        for bad in [
            " a",
            " a=1",
            " a='1'b='2'",
            " a='<'",
            " 1a='1'",
            " a:='1'",
            " a='1",
            "a='1'",
        ] {
            assert!(all(bad).is_err(), "{bad:?}");
        }
        assert!(all(" a='' b='' c='' d=''").is_err());
    }
}
