//! From `repository.toml` as written to a repository that makes sense.

mod collections;
mod names;

use pillarbox_messages::{ChecksumType, ComponentId, Destination, file_id::FileIdPattern};

use super::{
    Repository, Requirements, Timeouts,
    raw::{RawNaming, RawRepository, Requirement, Scheme},
};
use crate::{
    checker::Checker,
    duration::HumaneDuration,
    http_url::offer_base,
    naming::{Naming, Templates},
    problem::SettingsError,
    raw_value::{OneOf, Text},
    reading::{Document, did_you_mean},
    template::{Role, Template, TemplateError},
};

/// Checks everything that can be known from the file alone.
pub(crate) fn repository(document: &Document<RawRepository>) -> Result<Repository, SettingsError> {
    let raw = &document.values;
    let mut checker = Checker::new(&document.lines);
    let repository = build(raw, &mut checker);
    if let Some(repository) = &repository {
        names::unambiguous(repository, &mut checker);
    }
    match repository {
        Some(repository) => SettingsError::unless_empty(checker.finish(), repository),
        None => Err(SettingsError::new(checker.finish())),
    }
}

fn build(raw: &RawRepository, checker: &mut Checker<'_>) -> Option<Repository> {
    let general = &raw.repository;
    let name = checker
        .require("repository.name", general.name.as_ref(), NAME_EXAMPLE)
        .cloned();
    let default_checksum = default_checksum(general.checksum.as_deref(), checker);
    let pattern_text = general.file_id_pattern.as_deref();
    let file_id_pattern = pattern_text.map(|pattern| file_id_pattern(pattern, checker));
    let require = requirements(general.require.as_deref().unwrap_or_default(), checker);
    let status_contributors = contributors(
        "repository.status_contributors",
        &general.status_contributors,
        checker,
    );
    let audit_contributors = contributors(
        "repository.audit_contributors",
        &general.audit_contributors,
        checker,
    );
    let bus_url = checker.require("bus.url", raw.bus.url.as_ref(), URL_EXAMPLE);
    let bus = bus_url.map(|Text(url)| checker.bus_address("bus.url", url));
    let exchange_url = raw.exchange.url.as_deref().map(offer_base);
    let exchange_url = exchange_url.and_then(|url| checker.accept("exchange.url", url));
    let timeouts = timeouts(raw, checker);
    let (naming, templates) = naming(&raw.destinations, checker)?;
    let collections = collections::all(raw, &naming, &templates, checker);
    let warnings = warnings(raw);
    Some(Repository {
        name: name?,
        default_checksum: default_checksum?,
        file_id_pattern: match file_id_pattern {
            None => None,
            Some(compiled) => Some(compiled?),
        },
        require,
        status_contributors,
        audit_contributors,
        bus: bus?,
        timeouts,
        exchange_url,
        collections: collections?,
        warnings,
        naming,
        templates,
    })
}

/// Who is asked besides the pillars.
fn contributors(path: &str, ids: &[String], checker: &mut Checker<'_>) -> Vec<ComponentId> {
    checker.once(path, "contributor", ids);
    for (at, id) in ids.iter().enumerate() {
        checker.id(&format!("{path}.{at}"), "contributor", id);
    }
    ids.iter()
        .map(|id| ComponentId::from(id.as_str()))
        .collect()
}

fn default_checksum(text: Option<&str>, checker: &mut Checker<'_>) -> Option<ChecksumType> {
    let path = "repository.checksum";
    let text = checker.require(path, text.as_ref(), "checksum = \"MD5\"")?;
    let known = PLAIN_CHECKSUMS
        .iter()
        .find(|it| it.as_str().eq_ignore_ascii_case(text));
    if let Some(checksum) = known {
        return Some(*checksum);
    }
    let upper = text.to_ascii_uppercase();
    let all: Vec<&str> = PLAIN_CHECKSUMS.iter().map(|it| it.as_str()).collect();
    let reason = match upper.as_str() {
        "OTHER" => Some("names no type"),
        upper if upper.starts_with("HMAC_") => Some("needs a salt"),
        _ => None,
    };
    if let Some(reason) = reason {
        let cause = format!("the default checksum can't be `{text}`, which {reason}");
        checker.problem(path, cause, format!("use {}", all.join(", ")));
    } else {
        let cause = format!("unknown checksum type `{text}`");
        checker.problem(path, cause, did_you_mean(&upper, &all));
    }
    None
}

fn file_id_pattern(pattern: &str, checker: &mut Checker<'_>) -> Option<FileIdPattern> {
    let path = "repository.file_id_pattern";
    match pattern.parse::<FileIdPattern>() {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let cause = format!("`repository.file_id_pattern`: {error}").replace("; ", ", ");
            checker.problem(
                path,
                cause,
                "write it without that construct, or leave the key out",
            );
            None
        }
    }
}

fn requirements(required: &[OneOf<Requirement>], checker: &mut Checker<'_>) -> Requirements {
    let has = |requirement| required.iter().any(|OneOf(it)| *it == requirement);
    for (at, OneOf(requirement)) in required.iter().enumerate() {
        let name = match requirement {
            Requirement::MessageAuthentication => "message-authentication",
            Requirement::OperationAuthorization => "operation-authorization",
            Requirement::ChecksumForNewFile | Requirement::ChecksumForDestructive => continue,
        };
        let cause = format!("`{name}` is not supported by this version");
        checker.problem(
            &format!("repository.require.{at}"),
            cause,
            "remove it from `require`",
        );
    }
    Requirements {
        checksum_for_new_file: has(Requirement::ChecksumForNewFile),
        checksum_for_destructive: has(Requirement::ChecksumForDestructive),
        message_authentication: has(Requirement::MessageAuthentication),
        operation_authorization: has(Requirement::OperationAuthorization),
    }
}

fn timeouts(raw: &RawRepository, checker: &mut Checker<'_>) -> Timeouts {
    let given = &raw.timeouts;
    let mut time = |path, given: &Option<Text<HumaneDuration>>, default| {
        positive(path, given.as_ref(), checker);
        given.as_ref().map_or(default, |it| it.0.0)
    };
    let default = Timeouts::default();
    Timeouts {
        identification: time(
            "timeouts.identification",
            &given.identification,
            default.identification,
        ),
        operation: time("timeouts.operation", &given.operation, default.operation),
        conversation: time(
            "timeouts.conversation",
            &given.conversation,
            default.conversation,
        ),
    }
}

fn positive(path: &str, duration: Option<&Text<HumaneDuration>>, checker: &mut Checker<'_>) {
    if duration.is_some_and(|Text(duration)| duration.0.is_zero()) {
        let key = path.rsplit('.').next().unwrap_or(path);
        let cause = format!("`{key}` is zero, so that nobody could answer in time");
        checker.problem(path, cause, "write a longer time, as in \"3m\"");
    }
}

fn naming(raw: &RawNaming, checker: &mut Checker<'_>) -> Option<(Naming, Templates)> {
    let mut templates = default_templates(checker)?;
    let given = [&raw.collection, &raw.pillar, &raw.client, &raw.alarms];
    if raw.scheme != Some(OneOf(Scheme::Reference)) {
        let of_reference = [
            ("base", &raw.base),
            ("alarm_destination", &raw.alarm_destination),
        ];
        for (key, _) in of_reference.iter().filter(|(_, value)| value.is_some()) {
            let cause = format!("`{key}` belongs to the reference scheme");
            let path = format!("destinations.{key}");
            checker.problem(&path, cause, "add scheme = \"reference\", or remove it");
        }
        set_templates(&mut templates, given, "destinations", checker);
        return Some((Naming::Collection, templates));
    }
    for (role, _) in Role::ALL
        .iter()
        .zip(given)
        .filter(|(_, value)| value.is_some())
    {
        no_template_with_reference(&format!("destinations.{}", role.key()), role.key(), checker);
    }
    let base = topic(
        "destinations.base",
        raw.base.as_ref(),
        BASE_EXAMPLE,
        checker,
    );
    let alarms = raw.alarm_destination.as_ref();
    let alarms = topic(
        "destinations.alarm_destination",
        alarms,
        ALARMS_EXAMPLE,
        checker,
    );
    Some((
        Naming::Reference {
            base: base?,
            alarms: alarms?,
        },
        templates,
    ))
}

fn no_template_with_reference(path: &str, key: &str, checker: &mut Checker<'_>) {
    let cause = format!("the template `{key}` has no meaning with the reference scheme");
    checker.problem(path, cause, "remove it, or remove scheme = \"reference\"");
}

fn topic(
    path: &str,
    text: Option<&String>,
    example: &str,
    checker: &mut Checker<'_>,
) -> Option<Destination> {
    let text = checker.require(path, text, example)?;
    let template = checker.accept(path, Template::parse(text, Role::Collection))?;
    if text.contains('{') {
        let cause = format!("`{text}` must be a whole name with the reference scheme");
        checker.problem(path, cause, "write it without placeholders");
        return None;
    }
    Some(template.render(crate::template::Names::default()))
}

fn default_templates(checker: &mut Checker<'_>) -> Option<Templates> {
    let parse =
        |text: &str, role| -> Result<Template, TemplateError> { Template::parse(text, role) };
    let templates = || -> Result<Templates, TemplateError> {
        Ok(Templates {
            collection: parse("topic://{collection}", Role::Collection)?,
            pillar: parse("queue://{collection}.{pillar}", Role::Pillar)?,
            client: parse("topic://{collection}.client.{client}", Role::Client)?,
            alarms: parse("topic://{collection}.alarms", Role::Alarms)?,
        })
    };
    checker.accept("destinations", templates())
}

/// Puts the given templates in their place.
fn set_templates(
    templates: &mut Templates,
    given: [&Option<String>; 4],
    path: &str,
    checker: &mut Checker<'_>,
) {
    for (role, text) in Role::ALL.into_iter().zip(given) {
        let path = format!("{path}.{}", role.key());
        let parsed = text.as_deref().map(|text| Template::parse(text, role));
        if let Some(template) = parsed.and_then(|parsed| checker.accept(&path, parsed)) {
            templates.set(role, template);
        }
    }
}

fn warnings(raw: &RawRepository) -> Vec<String> {
    let mut warnings = Vec::new();
    let slas: usize = raw
        .collections
        .iter()
        .map(|collection| collection.slas.len())
        .sum();
    if slas > 0 {
        warnings.push(format!(
            "{slas} service level agreement(s) are set: this version checks that they are consistent, but does \
             not enforce or watch them yet"
        ));
    }
    if raw
        .repository
        .file_id_pattern
        .as_deref()
        .is_some_and(|pattern| pattern.contains("A-z"))
    {
        let text = "file_id_pattern has the range `A-z`, which also lets [ \\ ] ^ _ and the back-tick through";
        warnings.push(text.to_owned());
    }
    warnings
}

const PLAIN_CHECKSUMS: [ChecksumType; 5] = [
    ChecksumType::Md5,
    ChecksumType::Sha1,
    ChecksumType::Sha256,
    ChecksumType::Sha384,
    ChecksumType::Sha512,
];
const NAME_EXAMPLE: &str = "name = \"My archive\" under [repository]";
const URL_EXAMPLE: &str = "url = \"stomp://127.0.0.1:61613\" under [bus]";
const BASE_EXAMPLE: &str = "base = \"topic://quick-start\" under [destinations]";
const ALARMS_EXAMPLE: &str =
    "alarm_destination = \"topic://quick-start.alarms\" under [destinations]";

#[cfg(test)]
mod tests;
