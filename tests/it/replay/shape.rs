//! What two messages are compared by: every element in order with its path and text, where ids, times and free text
//! stand for themselves.

use pillarbox_messages::Timestamp;

use super::capture::{Captured, Sender};
use crate::messages::tree::Element;

/// A message, line by line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) kind: String,
    lines: Vec<String>,
}

impl Shape {
    /// Of a message as it came from the bus.
    pub(crate) fn of(message: &Captured) -> Self {
        let mut lines = vec![
            format!("(destination)={}", message.destination),
            format!("(reply-to)={}", message.reply_to),
            format!("(delivery)={}", message.delivery),
        ];
        for name in ["type", "collectionid", "to"] {
            let property = message.property(&format!("org.bitrepository.messages.{name}"));
            lines.extend(property.map(|value| format!("({name})={value}")));
        }
        let is_alarm = message.kind == "AlarmMessage";
        if !is_alarm {
            lines.push(format!("(correlation)={}", message.correlation));
        }
        let root = Element::parse(&message.text);
        for name in ["version", "minVersion"] {
            let mut values = root.attributes.iter().filter(|(known, _)| known == name);
            lines.extend(values.next().map(|(_, value)| format!("@{name}={value}")));
        }
        lines.extend(root.elements().flat_map(|child| element_lines("", child)));
        // An alarm begins a correlation of its own.
        lines.retain(|line| !(is_alarm && line.starts_with("CorrelationID=")));
        Self {
            kind: root.local_name().to_owned(),
            lines,
        }
    }
}

fn element_lines(path: &str, element: &Element) -> Vec<String> {
    let name = element.local_name();
    if name == "ResponseText" {
        // Optional, for people.
        return Vec::new();
    }
    let path = format!("{path}{name}");
    if element.is_leaf() {
        return vec![format!("{path}={}", text_of(name, &element.raw_text()))];
    }
    let below = format!("{path}/");
    let children = element.elements();
    // So that an element without children differs from none, and one with several from several with one.
    std::iter::once(path)
        .chain(children.flat_map(|child| element_lines(&below, child)))
        .collect()
}

fn text_of(name: &str, text: &str) -> String {
    match name {
        "AlarmText" | "Info" | "StatusText" => "(text)".to_owned(),
        "OperationID" => "(id)".to_owned(),
        "SequenceNumber" if text.parse::<u64>().is_ok() => "(number)".to_owned(),
        _ if is_time(name) && text.parse::<Timestamp>().is_ok() => "(time)".to_owned(),
        _ => text.trim().to_owned(),
    }
}

fn is_time(name: &str) -> bool {
    let times = [
        "CalculationTimestamp",
        "LastModificationTime",
        "OrigDateTime",
        "ActionDateTime",
        "StatusTimestamp",
    ];
    times.contains(&name)
}

/// What the recorded messages of each sender have that ours don't have (`-`), and the other way round (`+`).
pub(crate) fn differences(recorded: &[&Captured], ours: &[&Captured]) -> Vec<String> {
    let mut senders: Vec<&Sender> = recorded.iter().chain(ours).map(|it| &it.from).collect();
    senders.sort();
    senders.dedup();
    let mut differences = Vec::new();
    for sender in senders {
        let of_sender = |messages: &[&Captured]| -> Vec<Shape> {
            let own = messages.iter().filter(|message| message.from == *sender);
            own.map(|message| Shape::of(message)).collect()
        };
        let name = match sender {
            Sender::Component(id) => id,
            Sender::Client => "client",
        };
        let found = of_one_sender(&of_sender(recorded), &of_sender(ours));
        differences.extend(found.into_iter().map(|line| format!("{name} {line}")));
    }
    differences
}

fn of_one_sender(recorded: &[Shape], ours: &[Shape]) -> Vec<String> {
    let kinds = |shapes: &[Shape]| shapes.iter().map(|it| it.kind.clone()).collect::<Vec<_>>();
    let mut differences = Vec::new();
    let (mut next_recorded, mut next_ours) = (recorded.iter(), ours.iter());
    for step in compare(&kinds(recorded), &kinds(ours)) {
        match step {
            Step::Both(kind) => {
                let pair = (next_recorded.next().unwrap(), next_ours.next().unwrap());
                let lines = compare_lines(&pair.0.lines, &pair.1.lines);
                differences.extend(lines.iter().map(|line| format!("{kind} {line}")));
            }
            Step::Recorded(kind) => {
                next_recorded.next();
                differences.push(format!("-{kind}"));
            }
            Step::Ours(kind) => {
                let code = next_ours.next().unwrap().code();
                differences.push(format!("+{kind}{code}"));
            }
        }
    }
    differences
}

impl Shape {
    fn code(&self) -> String {
        let codes = ["ResponseInfo/ResponseCode=", "Alarm/AlarmCode="];
        let mut values = self.lines.iter().filter_map(|line| {
            let mut codes = codes.iter();
            codes.find_map(|code| line.strip_prefix(code))
        });
        values
            .next()
            .map_or_else(String::new, |code| format!(" {code}"))
    }
}

/// The lines that only the recording (`-`) or only ours (`+`) has.
pub(crate) fn compare_lines(recorded: &[String], ours: &[String]) -> Vec<String> {
    let steps = compare(recorded, ours).into_iter();
    let lines = steps.filter_map(|step| match step {
        Step::Both(_) => None,
        Step::Recorded(line) => Some(format!("-{line}")),
        Step::Ours(line) => Some(format!("+{line}")),
    });
    lines.collect()
}

/// A step from one sequence to the other.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Both(String),
    Recorded(String),
    Ours(String),
}

/// The steps of a longest common subsequence.
fn compare(recorded: &[String], ours: &[String]) -> Vec<Step> {
    let (rows, columns) = (recorded.len(), ours.len());
    let mut common = vec![vec![0_usize; columns + 1]; rows + 1];
    for row in (0..rows).rev() {
        for column in (0..columns).rev() {
            common[row][column] = if recorded[row] == ours[column] {
                common[row + 1][column + 1] + 1
            } else {
                common[row + 1][column].max(common[row][column + 1])
            };
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut steps = Vec::new();
    while row < rows || column < columns {
        if row < rows && column < columns && recorded[row] == ours[column] {
            steps.push(Step::Both(recorded[row].clone()));
            (row, column) = (row + 1, column + 1);
        } else if column == columns
            || row < rows && common[row + 1][column] >= common[row][column + 1]
        {
            steps.push(Step::Recorded(recorded[row].clone()));
            row += 1;
        } else {
            steps.push(Step::Ours(ours[column].clone()));
            column += 1;
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(code: &str, value: &str) -> Captured {
        let text = format!(
            "<m:GetFileFinalResponse xmlns:m='m' version='31' minVersion='24'><From>file1-pillar</From>\
             <ResponseInfo><ResponseCode>{code}</ResponseCode><ResponseText>free</ResponseText></ResponseInfo>\
             <CalculationTimestamp>{value}</CalculationTimestamp></m:GetFileFinalResponse>"
        );
        Captured {
            kind: "GetFileFinalResponse".to_owned(),
            from: Sender::of(&text),
            destination: String::new(),
            correlation: String::new(),
            reply_to: String::new(),
            delivery: String::new(),
            properties: Vec::new(),
            text,
        }
    }

    #[test]
    fn times_and_texts_may_differ_and_nothing_else() {
        let recorded = message("FAILURE", "2026-11-30T18:05:44.432Z");
        let later = message("FAILURE", "2027-01-01T00:00:00.000Z");
        assert_eq!(differences(&[&recorded], &[&later]), [] as [&str; 0]);
        let kind = "file1-pillar GetFileFinalResponse";
        let other = message("OPERATION_COMPLETED", "soon");
        assert_eq!(
            differences(&[&recorded], &[&other]),
            [
                format!("{kind} -ResponseInfo/ResponseCode=FAILURE"),
                format!("{kind} -CalculationTimestamp=(time)"),
                format!("{kind} +ResponseInfo/ResponseCode=OPERATION_COMPLETED"),
                format!("{kind} +CalculationTimestamp=soon"),
            ]
        );
        assert_eq!(
            differences(&[&recorded], &[]),
            ["file1-pillar -GetFileFinalResponse"]
        );
        assert_eq!(
            differences(&[], &[&recorded]),
            ["file1-pillar +GetFileFinalResponse FAILURE"]
        );
    }
}
