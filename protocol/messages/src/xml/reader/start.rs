//! Start tags: namespace and attributes.

use std::num::NonZeroU64;

use quick_xml::{
    events::BytesStart,
    name::{Namespace, QName, ResolveResult},
};

use super::{Read, Reader};
use crate::{
    error::{DecodeReason, shown},
    limits::MAX_ATTRIBUTES,
    version::ProtocolVersion,
    xml::{SCHEMA_INSTANCE, characters, tag::Attributes, value::Value},
};

impl Reader<'_> {
    /// The root's `version` and `minVersion`, or what is wrong with them; an error is one of the tag.
    pub(super) fn versions(&self, start: &BytesStart<'_>) -> Read<Read<ProtocolVersion>> {
        let (mut version, mut min_version) = (missing("version"), missing("minVersion"));
        self.each_attribute(start, |name, text| {
            match name {
                "version" => version = number("version", text).map(NonZeroU64::get),
                "minVersion" => min_version = number("minVersion", text),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(version.and_then(|version| {
            Ok(ProtocolVersion {
                version,
                min_version: min_version?,
            })
        }))
    }

    /// Refuses attributes other than namespace declarations and schema hints.
    #[inline]
    pub(super) fn check_attributes(&self, start: &BytesStart<'_>) -> Read<()> {
        if start.attributes_raw().is_empty() {
            return Ok(());
        }
        self.each_attribute(start, |_, _| Ok(false))
    }

    /// Goes through the attributes; `own` says whether it knows one by its name and value.
    fn each_attribute(
        &self,
        start: &BytesStart<'_>,
        mut own: impl FnMut(&str, &str) -> Read<bool>,
    ) -> Read<()> {
        let mut attributes = Attributes::new(start.attributes_raw(), MAX_ATTRIBUTES);
        let mut seen = Vec::new();
        while let Some(attribute) = attributes.next()? {
            if seen.contains(&attribute.name) {
                return Err(DecodeReason::not_well_formed("attribute given twice"));
            }
            seen.push(attribute.name);
            let text = attribute.text()?;
            if !text.chars().all(characters::is_allowed) {
                return Err(Box::new(DecodeReason::IllegalCharacter));
            }
            if attribute.declares().is_none()
                && !own(attribute.name, &text)?
                && !self.is_schema_hint(attribute.name)?
            {
                return Err(Box::new(DecodeReason::UnknownAttribute(shown(
                    attribute.name,
                ))));
            }
        }
        Ok(())
    }

    fn is_schema_hint(&self, name: &str) -> Read<bool> {
        let name = QName(name);
        match self.source.resolver().resolve_attribute(name) {
            (ResolveResult::Bound(Namespace(SCHEMA_INSTANCE)), local) => Ok(matches!(
                local.as_ref(),
                "schemaLocation" | "noNamespaceSchemaLocation"
            )),
            (ResolveResult::Unknown(prefix), _) => {
                Err(Box::new(DecodeReason::UndeclaredPrefix(shown(&prefix))))
            }
            _ => Ok(false),
        }
    }

    /// Where the local name begins.
    #[inline]
    pub(super) fn check_namespace(&self, start: &BytesStart<'_>, expected: &str) -> Read<usize> {
        let name = start.name();
        match self.source.resolver().resolve_element(name) {
            (ResolveResult::Bound(Namespace(found)), local) if found == expected => {
                Ok(name.0.len() - local.as_ref().len())
            }
            (ResolveResult::Unknown(prefix), _) => {
                Err(Box::new(DecodeReason::UndeclaredPrefix(shown(&prefix))))
            }
            (_, local) => Err(Box::new(DecodeReason::WrongNamespace(shown(
                local.as_ref(),
            )))),
        }
    }
}

fn missing<T>(attribute: &'static str) -> Read<T> {
    Err(Box::new(DecodeReason::MissingAttribute(attribute)))
}

fn number<T: Value>(attribute: &'static str, text: &str) -> Read<T> {
    T::from_text(text).ok_or_else(|| {
        let text = shown(text);
        Box::new(DecodeReason::BadVersion { attribute, text })
    })
}
