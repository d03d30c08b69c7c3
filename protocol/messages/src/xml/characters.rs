//! The characters of XML 1.0 (section 2.2), found by bytes.

/// White space as XML means it (section 2.3).
pub(crate) const fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether the text is white space or nothing.
pub(crate) fn is_blank(text: &str) -> bool {
    text.bytes().all(is_space)
}

/// The text without white space at either end, as the types with `whiteSpace="collapse"` see it.
pub(crate) fn collapsed(text: &str) -> &str {
    text.trim_matches([' ', '\t', '\n', '\r'])
}

/// Whether XML 1.0 allows the character.
pub(crate) const fn is_allowed(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// Where the first character stands that XML 1.0 does not allow.
pub(crate) fn first_illegal(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut blocks = bytes.chunks(BLOCK);
    let mut start = 0;
    for block in &mut blocks {
        // Control characters and the lead byte of U+FFFE and U+FFFF: rare, so whole blocks pass at once.
        let suspect = block.iter().fold(false, |suspect, &byte| {
            suspect | ((byte < 0x20) & !is_space(byte)) | (byte == 0xEF)
        });
        if suspect && let Some(found) = illegal_from(text, start, start + block.len()) {
            return Some(found);
        }
        start += block.len();
    }
    None
}

fn illegal_from(text: &str, start: usize, end: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    (start..end).find(|&at| match bytes.get(at) {
        Some(0xEF) => matches!(bytes.get(at + 1..at + 3), Some([0xBF, 0xBE | 0xBF])),
        Some(&byte) => byte < 0x20 && !is_space(byte),
        None => false,
    })
}

/// Bytes looked at together.
const BLOCK: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_a_slow_search_finds() {
        let pad = "é".repeat(40);
        for bad in ['\0', '\u{1}', '\u{1F}', '\u{FFFE}', '\u{FFFF}'] {
            for before in 0..130 {
                let text = format!("{}{bad}{pad}", "x".repeat(before));
                assert_eq!(first_illegal(&text), Some(before));
            }
        }
        let fine = "\t\n\r \u{7F}\u{85}\u{D7FF}\u{E000}\u{FFFD}\u{FEFF}\u{10000}\u{10FFFF}";
        assert_eq!(first_illegal(&fine.repeat(9)), None);
        assert!(fine.chars().all(is_allowed));
    }
}
