//! Templates of destination names: `queue://{collection}.{pillar}`.

use pillarbox_messages::{Destination, DestinationKind};
use thiserror::Error;

/// What a template leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placeholder {
    Collection,
    Pillar,
    Client,
    Sla,
}

impl Placeholder {
    const ALL: [Self; 4] = [Self::Collection, Self::Pillar, Self::Client, Self::Sla];

    const fn name(self) -> &'static str {
        match self {
            Self::Collection => "collection",
            Self::Pillar => "pillar",
            Self::Client => "client",
            Self::Sla => "sla",
        }
    }
}

/// Which destination a template names, and so what it may leave open and what kinds it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Collection,
    Pillar,
    Client,
    Alarms,
}

impl Role {
    pub(crate) const ALL: [Self; 4] = [Self::Collection, Self::Pillar, Self::Client, Self::Alarms];

    /// The role's key in the settings.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Collection => "collection",
            Self::Pillar => "pillar",
            Self::Client => "client",
            Self::Alarms => "alarms",
        }
    }

    const fn allowed(self) -> &'static [Placeholder] {
        match self {
            Self::Collection => &[Placeholder::Collection],
            Self::Pillar => &[Placeholder::Collection, Placeholder::Pillar],
            Self::Client => &[
                Placeholder::Collection,
                Placeholder::Client,
                Placeholder::Sla,
            ],
            Self::Alarms => &[Placeholder::Collection, Placeholder::Sla],
        }
    }

    const fn topics_only(self) -> bool {
        matches!(self, Self::Collection | Self::Alarms)
    }
}

/// Why a text is no template for its role.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum TemplateError {
    #[error("{0}; write it as in \"topic://name\" or \"queue://name\"")]
    Destination(#[from] pillarbox_messages::destination::DestinationError),
    #[error("the template `{text}` has the unknown placeholder `{{{name}}}`; use {known}")]
    UnknownPlaceholder {
        text: String,
        name: String,
        known: String,
    },
    #[error("the template `{0}` has a brace that does not belong to a placeholder; remove it")]
    Brace(String),
    #[error("the template `{text}` has `{{{name}}}` twice; write it once")]
    Twice { text: String, name: &'static str },
    #[error("`{text}` must be a topic, since many listen there; write \"topic://...\"")]
    NotTopic { text: String },
}

/// The ids put into a template.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Names<'a> {
    pub(crate) collection: &'a str,
    pub(crate) pillar: &'a str,
    pub(crate) client: &'a str,
    pub(crate) sla: Option<&'a str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    Open(Placeholder),
}

/// A destination name with placeholders for ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template {
    kind: DestinationKind,
    parts: Vec<Part>,
}

/// The names that a client template can give, whatever the client is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    kind: DestinationKind,
    before: String,
    /// What follows the client's id; none if the name does not depend on the client.
    after: Option<String>,
}

impl Template {
    pub(crate) fn parse(text: &str, role: Role) -> Result<Self, TemplateError> {
        let destination: Destination = text.parse()?;
        let kind = destination.kind();
        if role.topics_only() && kind != DestinationKind::Topic {
            return Err(TemplateError::NotTopic {
                text: text.to_owned(),
            });
        }
        let parts = parse_parts(text, destination.name(), role)?;
        for placeholder in Placeholder::ALL {
            if parts
                .iter()
                .filter(|part| **part == Part::Open(placeholder))
                .count()
                > 1
            {
                let name = placeholder.name();
                return Err(TemplateError::Twice {
                    text: text.to_owned(),
                    name,
                });
            }
        }
        Ok(Self { kind, parts })
    }

    pub(crate) const fn kind(&self) -> DestinationKind {
        self.kind
    }

    pub(crate) fn uses(&self, placeholder: Placeholder) -> bool {
        self.parts.contains(&Part::Open(placeholder))
    }

    pub(crate) fn render(&self, names: Names<'_>) -> Destination {
        Destination::new(self.kind, &render(&self.parts, names))
    }

    /// The names this template gives for any client.
    pub(crate) fn pattern(&self, names: Names<'_>) -> Pattern {
        let client = Part::Open(Placeholder::Client);
        let mut around = self.parts.split(|part| *part == client);
        let before = render(around.next().unwrap_or_default(), names);
        Pattern {
            kind: self.kind,
            before,
            after: around.next().map(|parts| render(parts, names)),
        }
    }
}

impl Pattern {
    /// The pattern of all names that begin like this.
    pub(crate) fn beginning_with(kind: DestinationKind, before: String) -> Self {
        Self {
            kind,
            before,
            after: Some(String::new()),
        }
    }

    pub(crate) const fn depends_on_client(&self) -> bool {
        self.after.is_some()
    }

    pub(crate) fn fits(&self, destination: &Destination) -> bool {
        if destination.kind() != self.kind {
            return false;
        }
        let Some(after) = &self.after else {
            return destination.name() == self.before;
        };
        let client = destination.name().strip_prefix(&self.before);
        client
            .and_then(|rest| rest.strip_suffix(after.as_str()))
            .is_some_and(|id| !id.is_empty())
    }

    /// Whether two patterns that are not the same give one name for two clients.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let (Some(after), Some(other_after)) = (&self.after, &other.after) else {
            return false;
        };
        self != other
            && self.kind == other.kind
            && either(&self.before, &other.before, |a, b| a.starts_with(b))
            && either(after, other_after, |a, b| a.ends_with(b))
    }
}

fn either(a: &str, b: &str, test: impl Fn(&str, &str) -> bool) -> bool {
    test(a, b) || test(b, a)
}

fn render(parts: &[Part], names: Names<'_>) -> String {
    let texts = parts.iter().map(|part| match part {
        Part::Text(text) => text.as_str(),
        Part::Open(Placeholder::Collection) => names.collection,
        Part::Open(Placeholder::Pillar) => names.pillar,
        Part::Open(Placeholder::Client) => names.client,
        Part::Open(Placeholder::Sla) => names.sla.unwrap_or(NO_SLA),
    });
    texts.collect()
}

fn parse_parts(text: &str, name: &str, role: Role) -> Result<Vec<Part>, TemplateError> {
    let mut parts = Vec::new();
    let mut rest = name;
    while let Some((before, after)) = rest.split_once('{') {
        let (inside, after) = after
            .split_once('}')
            .ok_or_else(|| TemplateError::Brace(text.to_owned()))?;
        let allowed = role.allowed();
        let Some(placeholder) = allowed.iter().find(|known| known.name() == inside) else {
            let known: Vec<_> = allowed
                .iter()
                .map(|known| format!("{{{}}}", known.name()))
                .collect();
            return Err(TemplateError::UnknownPlaceholder {
                text: text.to_owned(),
                name: inside.to_owned(),
                known: known.join(", "),
            });
        };
        push_text(&mut parts, before, text)?;
        parts.push(Part::Open(*placeholder));
        rest = after;
    }
    push_text(&mut parts, rest, text)?;
    Ok(parts)
}

fn push_text(parts: &mut Vec<Part>, piece: &str, text: &str) -> Result<(), TemplateError> {
    if piece.contains('}') {
        return Err(TemplateError::Brace(text.to_owned()));
    }
    if !piece.is_empty() {
        parts.push(Part::Text(piece.to_owned()));
    }
    Ok(())
}

/// What stands for `{sla}` where no agreement is known.
const NO_SLA: &str = "none";

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Names<'_> = Names {
        collection: "books",
        pillar: "north",
        client: "c 1",
        sla: Some("gold"),
    };

    fn rendered(text: &str, role: Role) -> String {
        match Template::parse(text, role) {
            Ok(template) => template.render(NAMES).to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn placeholders_are_replaced() {
        assert_eq!(
            rendered("topic://{collection}", Role::Collection),
            "topic://books"
        );
        assert_eq!(
            rendered("queue://{collection}.{pillar}", Role::Pillar),
            "queue://books.north"
        );
        assert_eq!(
            rendered("temporary-queue://{pillar}", Role::Pillar),
            "temporary-queue://north"
        );
        assert_eq!(
            rendered("{sla}-{client}-x", Role::Client),
            "topic://gold-c 1-x"
        );
    }

    #[test]
    fn what_is_no_template() {
        for (text, role, part) in [
            (
                "queue://{colection}",
                Role::Pillar,
                "unknown placeholder `{colection}`; use {collection}, {pillar}",
            ),
            (
                "topic://{client}",
                Role::Alarms,
                "unknown placeholder `{client}`",
            ),
            ("topic://{collection", Role::Alarms, "brace"),
            ("topic://collection}", Role::Alarms, "brace"),
            ("topic://{client}.{client}", Role::Client, "twice"),
            ("queue://{collection}", Role::Collection, "must be a topic"),
            ("vm://{collection}", Role::Collection, "unknown kind"),
            ("topic://", Role::Collection, "no name"),
        ] {
            assert!(
                rendered(text, role).contains(part),
                "{text}: {}",
                rendered(text, role)
            );
        }
    }

    #[test]
    fn patterns_fit_what_the_template_gives() {
        let pattern = |text| Template::parse(text, Role::Client).unwrap().pattern(NAMES);
        let open = pattern("topic://{collection}.client.{client}");
        assert!(open.fits(&Destination::topic("books.client.x")));
        assert!(!open.fits(&Destination::topic("books.client.")));
        assert!(!open.fits(&Destination::queue("books.client.x")));
        let shared = pattern("topic://{collection}.client");
        assert!(shared.fits(&Destination::topic("books.client")));
        assert!(!shared.fits(&Destination::topic("books.client.x")));
        assert!(open.overlaps(&pattern("topic://books.{client}")));
        assert!(!open.overlaps(&pattern("topic://maps.{client}")));
        assert!(!open.overlaps(&open.clone()));
    }
}
