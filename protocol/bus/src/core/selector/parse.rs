//! A selector's text, and what it means.

use std::{iter::Peekable, str::Chars};

use super::{Condition, Glyph, Operand, Relation};

/// How long a selector may be, in bytes.
const LONGEST: usize = 8 << 10;
/// How long a pattern may be, in characters.
const LONGEST_PATTERN: usize = 128;
/// How deep parentheses and `NOT` may be nested.
const DEEPEST: usize = 32;

#[derive(Clone, Debug, PartialEq)]
enum Token {
    /// A name or a word.
    Word(String),
    /// A name in double quotes, which is no word.
    Quoted(String),
    Text(String),
    Number(f64),
    Relation(Relation),
    Open,
    Close,
    Comma,
}

pub(super) fn condition(text: &str) -> Result<Condition, String> {
    if text.len() > LONGEST {
        return Err(format!("it is longer than {LONGEST} bytes"));
    }
    let tokens = tokens(text)?;
    let mut parser = Parser {
        tokens: tokens.into_iter().peekable(),
        depth: 0,
    };
    let condition = parser.or()?;
    match parser.tokens.next() {
        None => Ok(condition),
        Some(token) => Err(format!("nothing can follow where {} stands", shown(&token))),
    }
}

fn shown(token: &Token) -> String {
    match token {
        Token::Word(word) | Token::Quoted(word) => format!("`{}`", word.escape_debug()),
        Token::Text(text) => format!("'{}'", text.escape_debug()),
        Token::Number(number) => format!("`{number}`"),
        Token::Relation(_) => "a comparison".to_owned(),
        Token::Open => "`(`".to_owned(),
        Token::Close => "`)`".to_owned(),
        Token::Comma => "`,`".to_owned(),
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut chars = text.chars().peekable();
    let mut tokens = Vec::new();
    while let Some(first) = chars.peek().copied() {
        if first.is_whitespace() {
            chars.next();
            continue;
        }
        tokens.push(match first {
            '\'' => Token::Text(quoted(&mut chars, '\'')?),
            '"' => Token::Quoted(quoted(&mut chars, '"')?),
            '(' | ')' | ',' | '=' | '<' | '>' => sign(&mut chars)?,
            '0'..='9' | '.' | '-' | '+' => number(&mut chars)?,
            c if c.is_alphabetic() || c == '_' || c == '$' => {
                let mut word = String::new();
                while let Some(c) = chars.next_if(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
                {
                    word.push(c);
                }
                Token::Word(word)
            }
            other => {
                let other = other.escape_debug();
                return Err(format!(
                    "`{other}` means nothing here; names with it stand in double quotes"
                ));
            }
        });
    }
    Ok(tokens)
}

/// A doubled quote stands for itself.
fn quoted(chars: &mut Peekable<Chars<'_>>, quote: char) -> Result<String, String> {
    chars.next();
    let mut text = String::new();
    loop {
        match chars.next() {
            Some(c) if c == quote => {
                if chars.next_if_eq(&quote).is_none() {
                    return Ok(text);
                }
                text.push(quote);
            }
            Some(c) => text.push(c),
            None => return Err(format!("a {quote} is never closed")),
        }
    }
}

fn sign(chars: &mut Peekable<Chars<'_>>) -> Result<Token, String> {
    let equal = |chars: &mut Peekable<Chars<'_>>| chars.next_if_eq(&'=').is_some();
    Ok(match chars.next() {
        Some('(') => Token::Open,
        Some(')') => Token::Close,
        Some(',') => Token::Comma,
        Some('=') => Token::Relation(Relation::Equal),
        Some('<') if equal(chars) => Token::Relation(Relation::AtMost),
        Some('<') if chars.next_if_eq(&'>').is_some() => Token::Relation(Relation::Unequal),
        Some('<') => Token::Relation(Relation::Less),
        Some('>') if equal(chars) => Token::Relation(Relation::AtLeast),
        Some('>') => Token::Relation(Relation::Greater),
        _ => return Err("a sign is missing".to_owned()),
    })
}

fn number(chars: &mut Peekable<Chars<'_>>) -> Result<Token, String> {
    let mut text = String::new();
    let mut last = ' ';
    while let Some(c) = chars.next_if(|c| {
        let exponent = matches!(last, 'e' | 'E') || last == ' ';
        c.is_ascii_alphanumeric() || *c == '.' || (exponent && matches!(c, '-' | '+'))
    }) {
        text.push(c);
        last = c;
    }
    let parsed = text.parse::<f64>().ok().filter(|number| number.is_finite());
    parsed
        .map(Token::Number)
        .ok_or_else(|| format!("`{}` is no number", text.escape_debug()))
}

struct Parser {
    tokens: Peekable<std::vec::IntoIter<Token>>,
    depth: usize,
}

impl Parser {
    fn or(&mut self) -> Result<Condition, String> {
        let mut any = vec![self.and()?];
        while self.word("OR") {
            any.push(self.and()?);
        }
        Ok(single(any, Condition::Or))
    }

    fn and(&mut self) -> Result<Condition, String> {
        let mut all = vec![self.not()?];
        while self.word("AND") {
            all.push(self.not()?);
        }
        Ok(single(all, Condition::And))
    }

    fn not(&mut self) -> Result<Condition, String> {
        if !self.word("NOT") {
            return self.term();
        }
        self.deeper()?;
        let inner = self.not()?;
        self.depth -= 1;
        Ok(Condition::Not(Box::new(inner)))
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("it is nested deeper than {DEEPEST} levels"));
        }
        Ok(())
    }

    fn term(&mut self) -> Result<Condition, String> {
        if self.tokens.next_if_eq(&Token::Open).is_some() {
            self.deeper()?;
            let inner = self.or()?;
            self.depth -= 1;
            self.expect(&Token::Close, "`)`")?;
            return Ok(inner);
        }
        let one = self.operand()?;
        if let Some(Token::Relation(relation)) = self
            .tokens
            .next_if(|token| matches!(token, Token::Relation(_)))
        {
            return Ok(Condition::Compare(one, relation, self.operand()?));
        }
        if self.word("IS") {
            let negated = self.word("NOT");
            if !self.word("NULL") {
                return Err("after IS comes NULL or NOT NULL".to_owned());
            }
            return Ok(negate(negated, Condition::IsNull(name(one)?)));
        }
        let negated = self.word("NOT");
        let condition = if self.word("BETWEEN") {
            self.between(one)?
        } else if self.word("IN") {
            self.list(name(one)?)?
        } else if self.word("LIKE") {
            self.pattern(name(one)?)?
        } else if negated {
            return Err("after NOT comes BETWEEN, IN or LIKE".to_owned());
        } else {
            Condition::Holds(one)
        };
        Ok(negate(negated, condition))
    }

    fn between(&mut self, one: Operand) -> Result<Condition, String> {
        let from = self.operand()?;
        if !self.word("AND") {
            return Err("after BETWEEN come two values with AND between them".to_owned());
        }
        let to = self.operand()?;
        let above = Condition::Compare(one.clone(), Relation::AtLeast, from);
        let below = Condition::Compare(one, Relation::AtMost, to);
        Ok(Condition::And(vec![above, below]))
    }

    fn list(&mut self, name: String) -> Result<Condition, String> {
        self.expect(&Token::Open, "`(`")?;
        let mut texts = vec![self.text()?];
        while self.tokens.next_if_eq(&Token::Comma).is_some() {
            texts.push(self.text()?);
        }
        self.expect(&Token::Close, "`)`")?;
        Ok(Condition::In(name, texts))
    }

    fn pattern(&mut self, name: String) -> Result<Condition, String> {
        let pattern = self.text()?;
        let escape = match self.word("ESCAPE").then(|| self.text()).transpose()? {
            Some(text) => {
                let mut chars = text.chars();
                let (Some(one), None) = (chars.next(), chars.next()) else {
                    return Err("after ESCAPE comes one character in quotes".to_owned());
                };
                Some(one)
            }
            None => None,
        };
        let glyphs = glyphs(&pattern, escape)?;
        Ok(Condition::Like(name, glyphs))
    }

    fn operand(&mut self) -> Result<Operand, String> {
        match self.tokens.next() {
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("true") => Ok(Operand::Bool(true)),
            Some(Token::Word(word)) if word.eq_ignore_ascii_case("false") => {
                Ok(Operand::Bool(false))
            }
            Some(Token::Word(word)) if is_reserved(&word) => {
                Err(format!("`{word}` can't stand here"))
            }
            Some(Token::Word(name) | Token::Quoted(name)) => Ok(Operand::Property(name)),
            Some(Token::Text(text)) => Ok(Operand::Text(text)),
            Some(Token::Number(number)) => Ok(Operand::Number(number)),
            Some(token) => Err(format!("{} can't stand here", shown(&token))),
            None => Err("it ends where a value is missing".to_owned()),
        }
    }

    fn text(&mut self) -> Result<String, String> {
        match self.tokens.next() {
            Some(Token::Text(text)) => Ok(text),
            Some(token) => Err(format!(
                "a text in single quotes is missing before {}",
                shown(&token)
            )),
            None => Err("it ends where a text in single quotes is missing".to_owned()),
        }
    }

    fn word(&mut self, word: &str) -> bool {
        let is_word =
            |token: &Token| matches!(token, Token::Word(found) if found.eq_ignore_ascii_case(word));
        self.tokens.next_if(is_word).is_some()
    }

    fn expect(&mut self, token: &Token, what: &str) -> Result<(), String> {
        match self.tokens.next_if_eq(token) {
            Some(_) => Ok(()),
            None => Err(format!("{what} is missing")),
        }
    }
}

fn single(mut all: Vec<Condition>, many: fn(Vec<Condition>) -> Condition) -> Condition {
    match (all.pop(), all.is_empty()) {
        (Some(only), true) => only,
        (last, _) => {
            all.extend(last);
            many(all)
        }
    }
}

fn negate(negated: bool, condition: Condition) -> Condition {
    if negated {
        Condition::Not(Box::new(condition))
    } else {
        condition
    }
}

fn name(operand: Operand) -> Result<String, String> {
    match operand {
        Operand::Property(name) => Ok(name),
        _ => Err("a property's name must stand before IS, IN and LIKE".to_owned()),
    }
}

fn is_reserved(word: &str) -> bool {
    const RESERVED: [&str; 9] = [
        "AND", "OR", "NOT", "BETWEEN", "IN", "LIKE", "IS", "NULL", "ESCAPE",
    ];
    RESERVED
        .iter()
        .any(|reserved| reserved.eq_ignore_ascii_case(word))
}

fn glyphs(pattern: &str, escape: Option<char>) -> Result<Vec<Glyph>, String> {
    if pattern.chars().count() > LONGEST_PATTERN {
        return Err(format!(
            "a pattern is longer than {LONGEST_PATTERN} characters"
        ));
    }
    let mut glyphs = Vec::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        glyphs.push(match c {
            c if Some(c) == escape => {
                let next = chars.next();
                Glyph::One(next.ok_or("a pattern ends with its escape character")?)
            }
            '%' => Glyph::Rest,
            '_' => Glyph::Any,
            c => Glyph::One(c),
        });
    }
    Ok(glyphs)
}
