//! What `-C`, `-R` and `-S` mean: the same as to the Java clients, with mistakes found before anything is sent.

use std::collections::BTreeMap;

use pillarbox_client::digests::{length, plain_spec, same_spec};
use pillarbox_messages::{
    ChecksumData, ChecksumSpec, ChecksumType, CollectionId, ComponentId, FileId, HexBinary,
    wording::with_article,
};

use crate::{
    args::operations::ChecksumArgs,
    failure::Failure,
    output::{one_line, quoted, say},
};

/// A checksum to ask for, and what the user should be told about how it was understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChecksumRequest {
    pub(crate) spec: ChecksumSpec,
    pub(crate) notice: Option<String>,
}

/// The checksum that `-R` and `-S` ask for; `None` without either.
///
/// With a salt, a plain type becomes its HMAC (`default` if no type is given); without one, an HMAC type becomes
/// the plain one, with a notice.
///
/// # Errors
/// An unknown type, `OTHER`, or a salt that isn't hex.
pub(crate) fn requested(
    args: &ChecksumArgs,
    default: ChecksumType,
) -> Result<Option<ChecksumRequest>, Failure> {
    let named = args
        .checksum_type
        .as_deref()
        .map(checksum_type)
        .transpose()?;
    let salt = args
        .salt
        .as_deref()
        .map(|text| hex("-S", text))
        .transpose()?;
    let salt = salt.filter(|salt| !salt.as_bytes().is_empty());
    Ok(match (named, salt) {
        (None, None) => None,
        (named, Some(salt)) => {
            let checksum_type = with_hmac(named.unwrap_or(default));
            Some(ChecksumRequest {
                spec: ChecksumSpec {
                    checksum_salt: Some(salt),
                    ..plain_spec(checksum_type)
                },
                notice: None,
            })
        }
        (Some(named), None) => {
            let plain = without_hmac(named);
            let notice = (plain != named).then(|| {
                format!("{named} needs a salt (-S HEX); asking for {plain}, which needs none")
            });
            Some(ChecksumRequest {
                spec: plain_spec(plain),
                notice,
            })
        }
    })
}

/// The checksum that `-R` asks for of a file that is to go, and `-S` with it; `-S` alone asks for nothing.
///
/// # Errors
/// As [`requested`].
pub(crate) fn requested_by_type(
    args: &ChecksumArgs,
    default: ChecksumType,
) -> Result<Option<ChecksumSpec>, Failure> {
    let Some(asked) = requested(args, default)? else {
        return Ok(None);
    };
    if args.checksum_type.is_none() {
        say("-S has no effect without -R TYPE: no checksum is asked for");
        return Ok(None);
    }
    asked.notice.as_deref().into_iter().for_each(say);
    Ok(Some(asked.spec))
}

/// Tells of pillars whose answer is not of the kind that was asked for: one that had a file already tells what it
/// has of it. If it still has the file, it can be asked again.
pub(crate) fn tell_other_kinds(
    asked: &ChecksumSpec,
    told: &[Told<'_>],
    file: Option<(&CollectionId, &FileId)>,
) {
    let mut others: BTreeMap<(&str, bool), Vec<&str>> = BTreeMap::new();
    for answer in told {
        let other = match answer.checksum.map(|it| &it.checksum_spec) {
            Some(spec) if same_spec(spec, asked) => continue,
            Some(spec) => spec.checksum_type.as_str(),
            None => "no checksum",
        };
        let pillars = others.entry((other, answer.checksums_only)).or_default();
        pillars.push(answer.pillar.as_str());
    }
    let kind = asked.checksum_type;
    for ((other, checksums_only), pillars) in others {
        let next_step = match file {
            _ if checksums_only => ", which keeps no other kind of checksums".to_owned(),
            Some((collection, file)) => format!("; {} asks for it", ask(asked, collection, file)),
            None => String::new(),
        };
        let pillars = one_line(pillars.join(", "));
        say(&format!(
            "{other} instead of {kind} told by {pillars}{next_step}"
        ));
    }
}

/// What a pillar told of the checksum that it was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told<'a> {
    pub(crate) pillar: &'a ComponentId,
    pub(crate) checksum: Option<&'a ChecksumData>,
    /// Whether it keeps checksums only, so that it can't be asked for others.
    pub(crate) checksums_only: bool,
}

/// The command that asks for such a checksum of a file; its settings are those of the command before.
fn ask(spec: &ChecksumSpec, collection: &CollectionId, file: &FileId) -> String {
    let (collection, file) = (quoted(collection.as_str()), quoted(&one_line(file)));
    let kind = spec.checksum_type;
    let salt = spec.checksum_salt.as_ref();
    let salt = salt.map_or_else(String::new, |salt| format!(" -S {salt}"));
    format!("get-checksums -c {collection} -i {file} -R {kind}{salt}")
}

/// The checksum value that an option gives, which must have the length of `checksum_type`'s values.
///
/// # Errors
/// If it is no hex, or of another length.
pub(crate) fn value(
    option: &str,
    text: &str,
    checksum_type: ChecksumType,
) -> Result<HexBinary, Failure> {
    let value = hex(option, text)?;
    let expected = length(checksum_type);
    let given = value.as_bytes().len();
    if expected.is_some_and(|expected| expected != given) {
        return Err(Failure::usage(format!(
            "{option} '{text}': {} checksum has {} hex digits, this has {}",
            with_article(checksum_type),
            expected.unwrap_or_default() * 2,
            given * 2
        )));
    }
    Ok(value)
}

fn hex(option: &str, text: &str) -> Result<HexBinary, Failure> {
    text.parse::<HexBinary>().map_err(|error| {
        Failure::usage(format!(
            "{option} '{text}': {error}; give an even number of hex digits (0-9, a-f)"
        ))
    })
}

fn checksum_type(text: &str) -> Result<ChecksumType, Failure> {
    text.to_ascii_uppercase()
        .parse()
        .ok()
        .filter(|named| *named != ChecksumType::Other)
        .ok_or_else(|| {
            Failure::usage(format!(
                "-R '{text}' is no checksum type; known are MD5, SHA1, SHA256, SHA384, SHA512, and these with HMAC_ before them"
            ))
        })
}

const fn with_hmac(checksum_type: ChecksumType) -> ChecksumType {
    match checksum_type {
        ChecksumType::Md5 => ChecksumType::HmacMd5,
        ChecksumType::Sha1 => ChecksumType::HmacSha1,
        ChecksumType::Sha256 => ChecksumType::HmacSha256,
        ChecksumType::Sha384 => ChecksumType::HmacSha384,
        ChecksumType::Sha512 => ChecksumType::HmacSha512,
        other => other,
    }
}

const fn without_hmac(checksum_type: ChecksumType) -> ChecksumType {
    match checksum_type {
        ChecksumType::HmacMd5 => ChecksumType::Md5,
        ChecksumType::HmacSha1 => ChecksumType::Sha1,
        ChecksumType::HmacSha256 => ChecksumType::Sha256,
        ChecksumType::HmacSha384 => ChecksumType::Sha384,
        ChecksumType::HmacSha512 => ChecksumType::Sha512,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(
        checksum_type: Option<&str>,
        salt: Option<&str>,
    ) -> Result<Option<ChecksumRequest>, Failure> {
        let args = ChecksumArgs {
            checksum_type: checksum_type.map(str::to_owned),
            salt: salt.map(str::to_owned),
        };
        requested(&args, ChecksumType::Md5)
    }

    fn asked(checksum_type: Option<&str>, salt: Option<&str>) -> (ChecksumType, bool, bool) {
        let request = ask(checksum_type, salt).unwrap().unwrap();
        let spec = request.spec;
        (
            spec.checksum_type,
            spec.checksum_salt.is_some(),
            request.notice.is_some(),
        )
    }

    #[test]
    fn salt_and_type_as_the_java_clients_take_them() {
        assert_eq!(ask(None, None).unwrap(), None);
        assert_eq!(
            asked(Some("sha1"), None),
            (ChecksumType::Sha1, false, false)
        );
        assert_eq!(
            asked(Some("hmac_md5"), Some("abcd")),
            (ChecksumType::HmacMd5, true, false)
        );
        assert_eq!(
            asked(Some("MD5"), Some("abcd")),
            (ChecksumType::HmacMd5, true, false)
        );
        assert_eq!(
            asked(None, Some("abcd")),
            (ChecksumType::HmacMd5, true, false)
        );
        assert_eq!(
            asked(Some("HMAC_SHA256"), None),
            (ChecksumType::Sha256, false, true)
        );
    }

    #[test]
    fn the_command_that_asks_has_all_that_it_needs() {
        let request = ask(Some("MD5"), Some("ABCD")).unwrap().unwrap();
        assert_eq!(
            super::ask(&request.spec, &"books".into(), &"a b.tif".into()),
            "get-checksums -c books -i 'a b.tif' -R HMAC_MD5 -S abcd"
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (checksum_type, salt) in [
            (None, Some("abc")),
            (None, Some("zz")),
            (Some("OTHER"), None),
            (Some("CRC32"), None),
        ] {
            assert!(
                ask(checksum_type, salt).is_err(),
                "{checksum_type:?} {salt:?}"
            );
        }
        assert!(value("-C", "xyz", ChecksumType::Md5).is_err());
        assert!(value("-C", "4a37f973b3c9fede0e1fb3f07b65a9", ChecksumType::Md5).is_err());
        assert!(value("-r", "4A37F973B3C9FEDE0E1FB3F07B65A93B", ChecksumType::Md5).is_ok());
    }
}
