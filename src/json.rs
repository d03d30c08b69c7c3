//! What programs read: one JSON object per line on standard output.
//!
//! Names are in snake case and never change their meaning; times are RFC 3339 in UTC; checksums are in lower-case hex.

use pillarbox_client::{ComponentFailure, Outcome};
use serde::Serialize;

/// One JSON object on a line.
pub(crate) fn line(object: &impl Serialize) -> String {
    // Maps with text keys and plain values always have a JSON form.
    let text = serde_json::to_string(object).unwrap_or_default();
    format!("{text}\n")
}

/// A pillar's part that was not done, or the operation's failure as a whole.
#[derive(Debug, Serialize)]
pub(crate) struct Failed<'a> {
    /// Always true: no other line has it.
    pub(crate) failed: bool,
    /// Who; none if the operation failed as a whole.
    pub(crate) pillar: Option<&'a str>,
    /// What it answered; none if it did not answer, or could not be asked.
    pub(crate) code: Option<&'a str>,
    /// Why, for people.
    pub(crate) text: &'a str,
}

/// The failures of an operation, of which there is at least one if it failed.
pub(crate) fn failures(outcome: &Outcome) -> String {
    let whole = (!outcome.complete && outcome.failures.is_empty()).then(|| {
        let text = outcome.info.as_deref();
        line(&Failed {
            failed: true,
            pillar: None,
            code: None,
            text: text.unwrap_or(&outcome.last_event),
        })
    });
    failed(&outcome.failures) + &whole.unwrap_or_default()
}

/// A line for each contributor that has not done its part.
pub(crate) fn failed(failures: &[ComponentFailure]) -> String {
    let one = |failure: &ComponentFailure| {
        line(&Failed {
            failed: true,
            pillar: Some(failure.contributor.as_str()),
            code: failure.code.map(|code| code.as_str()),
            text: failure.text.as_str(),
        })
    };
    failures.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use pillarbox_messages::ResponseCode;

    use super::*;

    fn outcome(complete: bool, failures: Vec<ComponentFailure>) -> Outcome {
        Outcome {
            complete,
            info: Some("nobody is ready".to_owned()),
            results: Vec::new(),
            failures,
            last_event: "FAILED".to_owned(),
        }
    }

    #[test]
    fn every_failure_is_a_line_and_a_failed_operation_has_one() {
        let refused = ComponentFailure {
            contributor: "north".into(),
            code: Some(ResponseCode::FileNotFoundFailure),
            text: "not \"here\"\n".to_owned(),
        };
        let silent = ComponentFailure {
            contributor: "south".into(),
            code: None,
            text: "no answer".to_owned(),
        };
        assert_eq!(
            failures(&outcome(false, vec![refused.clone(), silent])),
            concat!(
                r#"{"failed":true,"pillar":"north","code":"FILE_NOT_FOUND_FAILURE","text":"not \"here\"\n"}"#,
                "\n",
                r#"{"failed":true,"pillar":"south","code":null,"text":"no answer"}"#,
                "\n"
            )
        );
        assert_eq!(
            failures(&outcome(false, Vec::new())),
            "{\"failed\":true,\"pillar\":null,\"code\":null,\"text\":\"nobody is ready\"}\n"
        );
        assert_eq!(failures(&outcome(true, Vec::new())), "");
        assert_eq!(failures(&outcome(true, vec![refused])).lines().count(), 1);
    }
}
