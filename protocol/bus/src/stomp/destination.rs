//! Which destinations may be named on the wire, and whose temporary queue a name means.

use pillarbox_messages::Destination;

use crate::{error::BusError, spelling};

const OWN_TEMPORARY: &str = "/temp-queue/";

/// Reads the value of a `destination` or `reply-to` header. `own` makes the full name of one of the
/// connection's own temporary queues.
///
/// # Errors
/// [`BusError::Refused`] with the name `INVALID`, saying what is wrong.
pub(crate) fn parse(
    text: &str,
    own: impl FnOnce(&str) -> Destination,
) -> Result<Destination, BusError> {
    if let Some(name) = text.strip_prefix(OWN_TEMPORARY) {
        check_name(name, text)?;
        return Ok(own(name));
    }
    let destination = spelling::from_stomp(text).ok_or_else(|| {
        refusal(
            text,
            "it must start with /queue/, /topic/, /temp-queue/ or /remote-temp-queue/",
        )
    })?;
    check_name(destination.name(), text)?;
    Ok(destination)
}

/// How a client spells a destination in its own frames: a temporary queue without the mark of somebody
/// else's connection is its own.
pub(crate) fn to_wire(destination: &Destination) -> String {
    if spelling::is_own_temporary(destination) {
        return format!("{OWN_TEMPORARY}{}", destination.name());
    }
    spelling::to_stomp(destination)
}

/// Refuses a destination whose name is none.
pub(crate) fn check_destination(destination: &Destination) -> Result<(), BusError> {
    check_name(destination.name(), &to_wire(destination))
}

fn check_name(name: &str, text: &str) -> Result<(), BusError> {
    match spelling::fault_of_name(name) {
        Some(fault) => Err(refusal(text, &format!("its name {fault}"))),
        None => Ok(()),
    }
}

fn refusal(text: &str, why: &str) -> BusError {
    BusError::invalid(format!("destination '{}': {why}", text.escape_debug()))
}

#[cfg(test)]
mod tests {
    use pillarbox_messages::DestinationKind;

    use super::*;

    fn own(name: &str) -> Destination {
        Destination::new(DestinationKind::TemporaryQueue, &format!("3.7.{name}"))
    }

    #[test]
    fn names_with_spaces_and_apostrophes_are_fine() {
        let text = "/topic/reading-room-kim's reading desk";
        let destination = parse(text, own).unwrap();
        assert_eq!(
            destination,
            Destination::topic("reading-room-kim's reading desk")
        );
        assert_eq!(to_wire(&destination), text);
    }

    #[test]
    fn own_and_other_temporary_queues() {
        let mine = parse("/temp-queue/answers", own).unwrap();
        assert_eq!(mine.name(), "3.7.answers");
        let others = parse("/remote-temp-queue/3.7.answers", own).unwrap();
        assert_eq!(others, mine);
        assert_eq!(to_wire(&others), "/remote-temp-queue/3.7.answers");
        let unresolved = Destination::new(DestinationKind::TemporaryQueue, "answers");
        assert_eq!(to_wire(&unresolved), "/temp-queue/answers");
    }

    #[test]
    fn bad_names() {
        let long = format!("/queue/{}", "x".repeat(256));
        for text in [
            "/queue/",
            "/queue/a,b",
            "/queue/*",
            "/topic/a.>",
            "/topic/#",
            "/queue/a/b",
            "/queue/a\u{1}",
            "/queue/ a",
            "/queue/a ",
            "/queue/.a",
            "/topic/a.",
            "/exchange/a",
            "",
            &long,
            "/temp-queue/",
        ] {
            assert!(parse(text, own).is_err(), "{text}");
        }
        assert!(parse(&format!("/queue/{}", "x".repeat(255)), own).is_ok());
    }
}
