//! Selectors: which messages a consumer wants, in the words of JMS.
//!
//! `AND`, `OR`, `NOT`, `=`, `<>`, `<`, `<=`, `>`, `>=`, `[NOT] IN (...)`, `[NOT] BETWEEN ... AND ...`, `[NOT] LIKE ...
//! [ESCAPE ...]`, `IS [NOT] NULL`, parentheses; texts in single quotes, numbers, `TRUE` and `FALSE`. No arithmetic.
//! Names are letters, digits, `_` and `$`; any other name stands in double quotes. Headers are texts: compared with a
//! number they are taken for one, and with `TRUE` and `FALSE` for these; what can't be is unknown, and so is what isn't
//! there, and whether a text of more than 4 KiB is `LIKE` a pattern. Only a message of which the whole is true is
//! selected.

mod parse;
#[cfg(test)]
mod tests;

use std::{cmp::Ordering, str::FromStr};

use super::message::{Parts, QueuedMessage};
use crate::error::BusError;

/// The longest text that is compared with a pattern, in bytes: every message would take its sender's time of everybody.
const LONGEST_LIKE: usize = 4 << 10;

/// What a consumer wants of a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Selector {
    text: String,
    condition: Condition,
}

/// What is true, false or (`None`) unknown of a message.
#[derive(Clone, Debug, PartialEq)]
enum Condition {
    And(Vec<Self>),
    Or(Vec<Self>),
    Not(Box<Self>),
    Compare(Operand, Relation, Operand),
    In(String, Vec<String>),
    Like(String, Vec<Glyph>),
    IsNull(String),
    /// A property, or a literal, that is true by itself.
    Holds(Operand),
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Property(String),
    Text(String),
    Number(f64),
    Bool(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// A part of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Glyph {
    /// This character.
    One(char),
    /// Any character.
    Any,
    /// Any number of characters.
    Rest,
}

/// A property's value.
#[derive(Clone, Debug, PartialEq)]
enum Value<'a> {
    Text(&'a str),
    Owned(String),
    Number(f64),
    Bool(bool),
}

impl FromStr for Selector {
    type Err = BusError;

    /// # Errors
    /// [`BusError::Refused`] with the name `INVALID`, saying what is wrong where.
    fn from_str(text: &str) -> Result<Self, BusError> {
        let condition = parse::condition(text)
            .map_err(|fault| BusError::invalid(format!("selector: {fault}")))?;
        Ok(Self {
            text: text.to_owned(),
            condition,
        })
    }
}

impl Selector {
    /// The selector as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The text that a property must be equal to, if that is all the selector says.
    pub(crate) fn only_equal(&self, property: &str) -> Option<&str> {
        match &self.condition {
            Condition::Compare(Operand::Property(name), Relation::Equal, Operand::Text(text))
            | Condition::Compare(Operand::Text(text), Relation::Equal, Operand::Property(name))
                if name == property =>
            {
                Some(text)
            }
            _ => None,
        }
    }

    /// Whether the message is selected.
    #[must_use]
    pub fn selects(&self, message: &QueuedMessage) -> bool {
        self.selects_of(&message.parts())
    }

    /// The same of a message that may not be one yet.
    pub(crate) fn selects_of(&self, message: &Parts<'_>) -> bool {
        self.condition.of(message) == Some(true)
    }
}

impl Condition {
    fn of(&self, message: &Parts<'_>) -> Option<bool> {
        match self {
            Self::And(all) => combine(all, message, false),
            Self::Or(any) => combine(any, message, true),
            Self::Not(inner) => inner.of(message).map(|it| !it),
            Self::Compare(one, relation, other) => {
                relation.holds(&one.value(message)?, &other.value(message)?)
            }
            Self::In(name, texts) => {
                let value = text_of(message, name)?;
                Some(texts.contains(&value))
            }
            Self::Like(name, pattern) => {
                let text = text_of(message, name)?;
                (text.len() <= LONGEST_LIKE).then(|| is_like(&text, pattern))
            }
            Self::IsNull(name) => Some(property(message, name).is_none()),
            Self::Holds(operand) => match operand.value(message)? {
                Value::Bool(holds) => Some(holds),
                other => other.as_bool(),
            },
        }
    }
}

/// The first that is `decisive` decides; without one, anything unknown makes the whole unknown.
fn combine(all: &[Condition], message: &Parts<'_>, decisive: bool) -> Option<bool> {
    let mut known = true;
    for condition in all {
        match condition.of(message) {
            Some(it) if it == decisive => return Some(decisive),
            Some(_) => {}
            None => known = false,
        }
    }
    known.then_some(!decisive)
}

impl Operand {
    fn value<'a>(&'a self, message: &Parts<'a>) -> Option<Value<'a>> {
        match self {
            Self::Property(name) => property(message, name),
            Self::Text(text) => Some(Value::Text(text)),
            Self::Number(number) => Some(Value::Number(*number)),
            Self::Bool(holds) => Some(Value::Bool(*holds)),
        }
    }
}

impl Value<'_> {
    fn text(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text),
            Value::Owned(text) => Some(text),
            Value::Number(_) | Value::Bool(_) => None,
        }
    }

    fn as_number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Bool(_) => None,
            Value::Text(_) | Value::Owned(_) => {
                let number: f64 = self.text()?.trim().parse().ok()?;
                number.is_finite().then_some(number)
            }
        }
    }

    fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(holds) => Some(*holds),
            other => match other.text()? {
                text if text.eq_ignore_ascii_case("true") => Some(true),
                text if text.eq_ignore_ascii_case("false") => Some(false),
                _ => None,
            },
        }
    }
}

impl Relation {
    /// Numbers are ordered; texts and truths are only equal or not.
    fn holds(self, one: &Value<'_>, other: &Value<'_>) -> Option<bool> {
        let is_number = |it: &Value<'_>| matches!(it, Value::Number(_));
        let is_bool = |it: &Value<'_>| matches!(it, Value::Bool(_));
        let ordered = !matches!(self, Self::Equal | Self::Unequal);
        let compared = if ordered || is_number(one) || is_number(other) {
            one.as_number()?.partial_cmp(&other.as_number()?)?
        } else if is_bool(one) || is_bool(other) {
            one.as_bool()?.cmp(&other.as_bool()?)
        } else {
            one.text()?.cmp(other.text()?)
        };
        Some(match self {
            Self::Equal => compared == Ordering::Equal,
            Self::Unequal => compared != Ordering::Equal,
            Self::Less => compared == Ordering::Less,
            Self::AtMost => compared != Ordering::Greater,
            Self::Greater => compared == Ordering::Greater,
            Self::AtLeast => compared != Ordering::Less,
        })
    }
}

fn text_of(message: &Parts<'_>, name: &str) -> Option<String> {
    let value = property(message, name)?;
    value.text().map(str::to_owned).or_else(|| match value {
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// What a message says under this name: JMS's own names, else its sender's header.
fn property<'a>(message: &Parts<'a>, name: &str) -> Option<Value<'a>> {
    let time = |at: i64| Value::Owned(at.to_string());
    match name {
        "JMSMessageID" => Some(Value::Owned(message.id.to_string())),
        "JMSCorrelationID" => message.correlation_id.map(Value::Text),
        "JMSReplyTo" => message.reply_to.map(Value::Text),
        "JMSDestination" => Some(Value::Text(message.destination_text)),
        "JMSXGroupID" => message.group.map(Value::Text),
        "JMSPriority" => Some(Value::Number(f64::from(message.priority))),
        "JMSTimestamp" => Some(time(message.enqueued_at)),
        "JMSExpiration" => Some(time(message.expires_at.unwrap_or(0))),
        "JMSDeliveryMode" if message.persistent => Some(Value::Text("PERSISTENT")),
        "JMSDeliveryMode" => Some(Value::Text("NON_PERSISTENT")),
        name => {
            let mut headers = message.headers.iter();
            let found = headers.find(|(known, _)| *known == name);
            found.map(|(_, value)| Value::Text(value))
        }
    }
}

/// Whether a text fits a pattern; goes back to the latest [`Glyph::Rest`] only, so that no pattern takes long.
fn is_like(text: &str, pattern: &[Glyph]) -> bool {
    let text: Vec<char> = text.chars().collect();
    let (mut at, mut glyph) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while at < text.len() {
        let fits = match pattern.get(glyph) {
            Some(Glyph::Rest) => {
                back = Some((at, glyph + 1));
                glyph += 1;
                continue;
            }
            Some(Glyph::Any) => true,
            Some(Glyph::One(one)) => text.get(at) == Some(one),
            None => false,
        };
        if fits {
            (at, glyph) = (at + 1, glyph + 1);
        } else if let Some((from, next)) = back {
            (at, glyph) = (from + 1, next);
            back = Some((from + 1, next));
        } else {
            return false;
        }
    }
    let rest = pattern.get(glyph..).unwrap_or_default();
    rest.iter().all(|glyph| *glyph == Glyph::Rest)
}
