//! Text that peers wrote, within bounds.

use std::borrow::Cow;

/// The beginning of a text, at most so many bytes; what was cut off shows.
pub(crate) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let room = most.saturating_sub(CUT_OFF.len());
    let beginning = (0..=room).rev().find_map(|end| text.get(..end));
    let beginning = beginning.unwrap_or_default();
    Cow::Owned(format!("{beginning}{CUT_OFF}"))
}

const CUT_OFF: &str = "\u{2026}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters_and_shows_it() {
        assert_eq!(cut("twelve bytes", 12), "twelve bytes");
        assert_eq!(cut("twelve bytes", 11), "twelve b\u{2026}");
        assert_eq!(cut("\u{6f22}\u{6f22}\u{6f22}", 8), "\u{6f22}\u{2026}");
        assert_eq!(cut("twelve", 2), "\u{2026}");
        assert_eq!(cut("", 0), "");
    }
}
