//! Java's sets of characters in the words of the `regex` crate.

/// Java's `\s`, as items of a class.
pub(super) const SPACE: &str = r" \t\n\x0B\x0C\r";
/// Java's `\h`.
pub(super) const BLANK: &str =
    r" \t\x{A0}\x{1680}\x{180E}\x{2000}-\x{200A}\x{202F}\x{205F}\x{3000}";
/// Java's `\v`.
pub(super) const VERTICAL: &str = r"\n\x0B\x0C\r\x{85}\x{2028}\x{2029}";
/// Java's `.`: not a line terminator.
pub(super) const NOT_LINE_END: &str = r"[^\n\r\x{85}\x{2028}\x{2029}]";
/// Java's `\R`.
pub(super) const LINE_END: &str = r"(?:\r\n|[\n\x0B\x0C\r\x{85}\x{2028}\x{2029}])";

/// The POSIX classes, which are ASCII in Java, as items of a class.
pub(super) const POSIX: [(&str, &str); 13] = [
    ("Lower", "a-z"),
    ("Upper", "A-Z"),
    ("ASCII", r"\x00-\x7F"),
    ("Alpha", "a-zA-Z"),
    ("Digit", "0-9"),
    ("Alnum", "a-zA-Z0-9"),
    ("Punct", r"!-/:-@\x5B-\x60\x7B-\x7E"),
    ("Graph", "!-~"),
    ("Print", r"\x20-\x7E"),
    ("Blank", r" \t"),
    ("Cntrl", r"\x00-\x1F\x7F"),
    ("XDigit", "0-9a-fA-F"),
    ("Space", SPACE),
];

/// Unicode's general categories, the same in both.
pub(super) const CATEGORIES: [&str; 35] = [
    "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc",
    "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp", "C",
    "Cc", "Cf", "Co",
];
