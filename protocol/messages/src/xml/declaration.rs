//! The XML declaration: `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>`.

use super::{reader::Read, tag::Attributes};
use crate::error::{DecodeReason, shown};

/// Checks what stands between `<?xml` and `?>`: version 1.0, then perhaps an encoding, which must be UTF-8,
/// then perhaps whether the document stands alone.
pub(crate) fn check(content: &str) -> Read<()> {
    let mut pseudo = Attributes::new(content, PSEUDO_ATTRIBUTES);
    let mut due = 0;
    while let Some(attribute) = pseudo.next()? {
        let place = match (attribute.name, attribute.value) {
            ("version", "1.0") => 1,
            ("encoding", value) if value.eq_ignore_ascii_case("utf-8") => 2,
            ("encoding", value) => return Err(Box::new(DecodeReason::Encoding(shown(value)))),
            ("standalone", "yes" | "no") => 3,
            _ => return Err(Box::new(DecodeReason::Declaration)),
        };
        if place <= due || (due == 0 && place != 1) {
            return Err(Box::new(DecodeReason::Declaration));
        }
        due = place;
    }
    if due == 0 {
        Err(Box::new(DecodeReason::Declaration))
    } else {
        Ok(())
    }
}

const PSEUDO_ATTRIBUTES: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for good in [
            " version=\"1.0\"",
            " version='1.0' encoding='utf-8'",
            " version=\"1.0\" standalone=\"no\"",
            " version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\" ",
        ] {
            assert!(check(good).is_ok(), "{good:?}");
        }
        for bad in [
            "",
            " encoding='UTF-8'",
            " version='1.1'",
            " version='1.0' version='1.0'",
            " version='1.0' encoding='ISO-8859-1'",
            " version='1.0' standalone='yes' encoding='UTF-8'",
            " version='1.0' standalone='maybe'",
            " version='1.0' other='1'",
        ] {
            assert!(check(bad).is_err(), "{bad:?}");
        }
    }
}
