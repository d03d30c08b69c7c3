//! What people and programs read: notices and errors on standard error, results on standard output.

use std::{
    fmt::Display,
    io::{self, Write as _},
};

use chrono::SecondsFormat;
use pillarbox_messages::Timestamp;

use crate::failure::Failure;

/// Whatever a name or a peer's text has in it, it stays on one line and is seen as it is: what controls, can't be seen, or
/// turns the direction of the text around is escaped.
pub(crate) fn one_line(text: impl Display) -> String {
    let mut line = String::new();
    for char in text.to_string().chars() {
        if char.is_control() || is_unseen(char) {
            line.extend(char.escape_default());
        } else {
            line.push(char);
        }
    }
    line
}

/// Format characters: of no width, or for another direction of what follows, and ends of lines and paragraphs.
const fn is_unseen(char: char) -> bool {
    matches!(
        char,
        '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}'
    )
}

/// Prose on one line, with one space between its words.
pub(crate) fn in_words(text: &str) -> String {
    one_line(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A time as people and programs read it: RFC 3339, in UTC, in milliseconds.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    time.to_utc().to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// Tells the person something that is no result.
pub(crate) fn say(text: &str) {
    // Nobody may be listening any more.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Writes a result after which more may come; a reader that has gone away ends the command.
///
/// # Errors
/// Standard output can't be written, or nobody reads it any more.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
        .map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe => Failure::unheard(),
            _ => Failure::operation(format!("standard output: {error}")),
        })
}

/// Writes a result of what is done: whether somebody reads it changes nothing.
///
/// # Errors
/// Standard output can't be written.
pub(crate) fn print_done(text: &str) -> Result<(), Failure> {
    print(text).or_else(|failure| {
        if failure.is_unheard() {
            Ok(())
        } else {
            Err(failure)
        }
    })
}

/// This program, as a shell finds it.
pub(crate) fn own_program() -> String {
    let path = std::env::current_exe().ok();
    let path = path.filter(|path| path.exists());
    path.as_deref()
        .and_then(|path| path.to_str())
        .map_or_else(|| "pillarbox".to_owned(), quoted)
}

/// As a shell takes it for one word.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "/._-+:@%".contains(char);
    if text.chars().all(plain) && !text.is_empty() {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_each() {
        assert_eq!(
            one_line("a\n b\x1b[1m  \u{e6}\u{9b}"),
            "a\\n b\\u{1b}[1m  \u{e6}\\u{9b}"
        );
        // An override, an isolate, a mark of no width, a separator.
        for char in [
            '\u{202e}', '\u{2066}', '\u{200b}', '\u{200f}', '\u{2028}', '\u{2029}', '\u{feff}',
        ] {
            let told = one_line(format!("a{char}b"));
            assert_eq!(told, format!("a\\u{{{:x}}}b", u32::from(char)));
        }
        let seen = "\u{200a}\u{2010}\u{2027}\u{202f}\u{2065}\u{5d0}";
        assert_eq!(one_line(seen), seen);
        assert_eq!(in_words(" a\n b\t\x1b[1m"), "a b \\u{1b}[1m");
    }

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted("/a/b-1.2"), "/a/b-1.2");
        assert_eq!(quoted("/my files"), "'/my files'");
        assert_eq!(quoted("/it's"), r"'/it'\''s'");
    }
}
