//! Java's regular expressions (`java.util.regex.Pattern`) in the words of the `regex` crate.
//!
//! Everything is parsed and written anew, so that nothing passes that means one thing there and another here.

mod sets;

use std::{iter::Peekable, str::Chars};

use thiserror::Error;

use self::sets::{BLANK, CATEGORIES, LINE_END, NOT_LINE_END, POSIX, SPACE, VERTICAL};

/// Why a pattern was not compiled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PatternError {
    /// A construct of Java's that is not supported.
    #[error("{construct} at character {at} is not supported")]
    Unsupported {
        /// What it is called.
        construct: &'static str,
        /// Which character of the pattern, from 1.
        at: usize,
    },
    /// Not a regular expression.
    #[error("{what} at character {at}")]
    Invalid {
        /// What is wrong.
        what: Box<str>,
        /// Which character of the pattern, from 1; 0 if it is the whole.
        at: usize,
    },
    /// It would take too much memory.
    #[error("the pattern is too large (more than {limit} bytes)")]
    TooLarge {
        /// The most allowed, in bytes.
        limit: usize,
    },
}

/// The pattern in the `regex` crate's syntax, to be matched against the whole text.
pub(super) fn translate(pattern: &str) -> Result<String, PatternError> {
    if pattern.len() > MAX_PATTERN_BYTES {
        return Err(PatternError::TooLarge {
            limit: MAX_PATTERN_BYTES,
        });
    }
    let mut translator = Translator {
        input: pattern.chars().peekable(),
        at: 0,
        out: String::new(),
    };
    translator.sequence()?;
    Ok(translator.out)
}

struct Translator<'p> {
    input: Peekable<Chars<'p>>,
    /// How many characters were taken.
    at: usize,
    out: String,
}

/// One character, or a set of them already translated into a class.
enum Atom {
    One(char),
    Set(String),
}

impl Translator<'_> {
    /// The whole pattern.
    fn sequence(&mut self) -> Result<(), PatternError> {
        let mut open = 0usize;
        // Whether what stands before can be repeated.
        let mut repeatable = false;
        while let Some(character) = self.take() {
            repeatable = match character {
                '(' => {
                    self.group()?;
                    open += 1;
                    false
                }
                ')' => {
                    open = open
                        .checked_sub(1)
                        .ok_or_else(|| self.invalid("unmatched ')'"))?;
                    self.out.push(')');
                    true
                }
                '|' | '^' | '$' => {
                    self.out.push(character);
                    false
                }
                '*' | '+' | '?' | '{' => {
                    if !repeatable {
                        return Err(self.invalid("repetition of nothing"));
                    }
                    self.repetition(character)?;
                    false
                }
                '[' => {
                    let class = self.class(0)?;
                    self.out.push_str(&class);
                    true
                }
                '.' => {
                    self.out.push_str(NOT_LINE_END);
                    true
                }
                '\\' => self.escape()?,
                other => {
                    push_literal(&mut self.out, other);
                    true
                }
            };
        }
        if open > 0 {
            Err(self.invalid("unclosed group"))
        } else {
            Ok(())
        }
    }

    fn take(&mut self) -> Option<char> {
        let character = self.input.next()?;
        self.at += 1;
        Some(character)
    }

    fn take_if(&mut self, wanted: char) -> bool {
        let found = self.input.peek() == Some(&wanted);
        if found {
            self.take();
        }
        found
    }

    fn take_or(&mut self, what: &str) -> Result<char, PatternError> {
        self.take().ok_or_else(|| self.invalid(what))
    }

    fn invalid(&self, what: &str) -> PatternError {
        PatternError::Invalid {
            what: what.into(),
            at: self.at,
        }
    }

    const fn unsupported(&self, construct: &'static str) -> PatternError {
        PatternError::Unsupported {
            construct,
            at: self.at,
        }
    }

    /// What follows an opening parenthesis.
    fn group(&mut self) -> Result<(), PatternError> {
        self.out.push_str("(?:");
        if !self.take_if('?') {
            return Ok(());
        }
        match self.take_or("unclosed group")? {
            ':' => Ok(()),
            '=' => Err(self.unsupported("look-ahead '(?='")),
            '!' => Err(self.unsupported("negative look-ahead '(?!'")),
            '>' => Err(self.unsupported("atomic group '(?>'")),
            '<' => match self.take_or("unclosed group")? {
                '=' => Err(self.unsupported("look-behind '(?<='")),
                '!' => Err(self.unsupported("negative look-behind '(?<!'")),
                first if first.is_ascii_alphabetic() => self.group_name(),
                _ => Err(self.invalid("bad group name")),
            },
            _ => Err(self.unsupported("inline flags '(?...)'")),
        }
    }

    /// The rest of a group's name, which nothing refers to.
    fn group_name(&mut self) -> Result<(), PatternError> {
        loop {
            match self.take_or("unclosed group name")? {
                '>' => return Ok(()),
                letter if letter.is_ascii_alphanumeric() => {}
                _ => return Err(self.invalid("bad group name")),
            }
        }
    }

    /// A repetition, and that it is not possessive; laziness makes no difference to a match of the whole.
    fn repetition(&mut self, first: char) -> Result<(), PatternError> {
        self.out.push(first);
        if first == '{' {
            self.bounds()?;
        }
        if self.input.peek() == Some(&'+') {
            self.take();
            return Err(self.unsupported("possessive quantifier"));
        }
        self.take_if('?');
        Ok(())
    }

    /// `n}`, `n,}` or `n,m}`.
    fn bounds(&mut self) -> Result<(), PatternError> {
        let least = self.number()?;
        if self.take_if(',') {
            self.out.push(',');
            if self.input.peek() != Some(&'}') {
                let most = self.number()?;
                if most < least {
                    return Err(self.invalid("repetition bounds in the wrong order"));
                }
            }
        }
        if !self.take_if('}') {
            return Err(self.invalid("bad repetition"));
        }
        self.out.push('}');
        Ok(())
    }

    fn number(&mut self) -> Result<u32, PatternError> {
        let mut digits = String::new();
        while let Some(digit) = self.input.peek().copied().filter(char::is_ascii_digit) {
            self.take();
            digits.push(digit);
        }
        self.out.push_str(&digits);
        digits.parse().map_err(|_| self.invalid("bad repetition"))
    }

    /// An escape outside a class; says whether it can be repeated.
    fn escape(&mut self) -> Result<bool, PatternError> {
        let boundary = match self.input.peek() {
            Some('A') => r"\A",
            // Before a last line end or at the end: nothing may follow, so it is the end.
            Some('z' | 'Z') => r"\z",
            Some('b') => r"(?-u:\b)",
            Some('R') => {
                self.take();
                self.out.push_str(LINE_END);
                return Ok(true);
            }
            Some('Q') => {
                self.take();
                return Ok(self.quoted());
            }
            _ => {
                match self.atom()? {
                    Atom::One(character) => push_literal(&mut self.out, character),
                    Atom::Set(set) => self.out.push_str(&set),
                }
                return Ok(true);
            }
        };
        self.take();
        self.out.push_str(boundary);
        Ok(false)
    }

    /// Literal text up to `\E` or the end.
    fn quoted(&mut self) -> bool {
        let mut any = false;
        while let Some(character) = self.take() {
            if character == '\\' && self.take_if('E') {
                break;
            }
            push_literal(&mut self.out, character);
            any = true;
        }
        any
    }

    /// What follows a backslash and stands for one character, or a set of which one must match.
    fn atom(&mut self) -> Result<Atom, PatternError> {
        let character = self.take_or("nothing after a backslash")?;
        let set = |items: &str| Ok(Atom::Set(format!("[{items}]")));
        match character {
            'd' => set("0-9"),
            'D' => set("^0-9"),
            's' => set(SPACE),
            'S' => set(&format!("^{SPACE}")),
            'w' => set("a-zA-Z_0-9"),
            'W' => set("^a-zA-Z_0-9"),
            'h' => set(BLANK),
            'H' => set(&format!("^{BLANK}")),
            'v' => set(VERTICAL),
            'V' => set(&format!("^{VERTICAL}")),
            'p' | 'P' => self.property(character == 'P'),
            't' => Ok(Atom::One('\t')),
            'n' => Ok(Atom::One('\n')),
            'r' => Ok(Atom::One('\r')),
            'f' => Ok(Atom::One('\u{C}')),
            'a' => Ok(Atom::One('\u{7}')),
            'e' => Ok(Atom::One('\u{1B}')),
            'c' => self.control(),
            'x' => self.hexadecimal(2, true),
            'u' => self.hexadecimal(4, false),
            '0' => self.octal(),
            '1'..='9' | 'k' => Err(self.unsupported("back-reference")),
            'B' => Err(self.unsupported(r"non-boundary '\B'")),
            'G' => Err(self.unsupported(r"end of the previous match '\G'")),
            'N' => Err(self.unsupported(r"character name '\N'")),
            'X' => Err(self.unsupported(r"grapheme cluster '\X'")),
            'R' => Err(self.unsupported(r"line end '\R' in a class")),
            'Q' => Err(self.unsupported(r"quotation '\Q' in a class")),
            'b' => Err(self.unsupported(r"boundary '\b' in a class")),
            letter if letter.is_ascii_alphabetic() => Err(self.invalid("unknown escape")),
            other => Ok(Atom::One(other)),
        }
    }

    fn control(&mut self) -> Result<Atom, PatternError> {
        let letter = self.take_or(r"nothing after '\c'")?;
        let code = u8::try_from(letter).map_err(|_| self.invalid(r"bad '\c'"))?;
        Ok(Atom::One(char::from(code ^ 64)))
    }

    fn hexadecimal(&mut self, width: usize, braces: bool) -> Result<Atom, PatternError> {
        let mut code = 0u32;
        let mut count = 0;
        let braced = braces && self.take_if('{');
        while braced || count < width {
            let character = self.take_or("bad hexadecimal escape")?;
            if braced && character == '}' && count > 0 {
                break;
            }
            let digit = character
                .to_digit(16)
                .ok_or_else(|| self.invalid("bad hexadecimal escape"))?;
            code = code.saturating_mul(16).saturating_add(digit);
            count += 1;
        }
        if (0xD800..=0xDFFF).contains(&code) {
            return Err(self.unsupported("half of a surrogate pair"));
        }
        char::from_u32(code)
            .map(Atom::One)
            .ok_or_else(|| self.invalid("no such character"))
    }

    fn octal(&mut self) -> Result<Atom, PatternError> {
        let mut code = 0;
        for place in 0..3 {
            let Some(digit) = self.input.peek().and_then(|digit| digit.to_digit(8)) else {
                if place == 0 {
                    return Err(self.invalid("bad octal escape"));
                }
                break;
            };
            if code * 8 + digit > 0o377 {
                break;
            }
            self.take();
            code = code * 8 + digit;
        }
        char::from_u32(code)
            .map(Atom::One)
            .ok_or_else(|| self.invalid("no such character"))
    }

    /// What follows `\p` or `\P`.
    fn property(&mut self, negated: bool) -> Result<Atom, PatternError> {
        let mut name = String::new();
        if self.take_if('{') {
            loop {
                match self.take_or("unclosed property name")? {
                    '}' => break,
                    other => name.push(other),
                }
            }
        } else {
            name.push(self.take_or("missing property name")?);
        }
        let negation = if negated { "^" } else { "" };
        if let Some((_, items)) = POSIX.iter().find(|(posix, _)| *posix == name) {
            return Ok(Atom::Set(format!("[{negation}{items}]")));
        }
        let category = name.strip_prefix("Is").unwrap_or(&name);
        if CATEGORIES.contains(&category) {
            return Ok(Atom::Set(format!("[{negation}\\p{{{category}}}]")));
        }
        Err(self.unsupported(r"this property '\p{...}'"))
    }

    /// A class, after its opening bracket.
    fn class(&mut self, depth: usize) -> Result<String, PatternError> {
        if depth > MAX_CLASS_DEPTH {
            return Err(self.invalid("classes nested too deep"));
        }
        let mut class = String::from("[");
        if self.take_if('^') {
            class.push('^');
        }
        let mut empty = true;
        loop {
            match self.take_or("unclosed character class")? {
                ']' if empty => return Err(self.invalid("empty character class")),
                ']' => break,
                '[' => class.push_str(&self.class(depth + 1)?),
                '&' if self.input.peek() == Some(&'&') => {
                    return Err(self.unsupported("intersection of character classes '&&'"));
                }
                '\\' => match self.atom()? {
                    Atom::One(first) => self.range(&mut class, first)?,
                    Atom::Set(set) => class.push_str(&set),
                },
                first => self.range(&mut class, first)?,
            }
            empty = false;
        }
        class.push(']');
        Ok(class)
    }

    /// One character of a class, or a range that begins with it.
    fn range(&mut self, class: &mut String, first: char) -> Result<(), PatternError> {
        push_literal(class, first);
        let mut after = self.input.clone();
        // A hyphen before the end of the class, or before a nested one, is a character of its own.
        if after.next() != Some('-') || matches!(after.next(), Some(']' | '[') | None) {
            return Ok(());
        }
        self.take();
        let last = match self.take_or("unclosed character class")? {
            '\\' => match self.atom()? {
                Atom::One(last) => last,
                Atom::Set(_) => return Err(self.invalid("bad character range")),
            },
            last => last,
        };
        if last < first {
            return Err(self.invalid("character range in the wrong order"));
        }
        class.push('-');
        push_literal(class, last);
        Ok(())
    }
}

/// Appends a character so that it means itself, inside a class or outside.
fn push_literal(out: &mut String, character: char) {
    if character.is_ascii_alphanumeric() || (!character.is_ascii() && !character.is_control()) {
        out.push(character);
    } else {
        out.push_str(&format!("\\x{{{:X}}}", u32::from(character)));
    }
}

/// The longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 4096;
/// How deep classes may nest.
const MAX_CLASS_DEPTH: usize = 20;
