//! An exchange address taken apart, without changing it.

use std::{borrow::Cow, ffi::OsString, os::unix::ffi::OsStringExt, path::PathBuf};

use percent_encoding::percent_decode_str;
use url::Url;

use crate::error::ExchangeError;

/// A parsed address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    /// An http or https address.
    Http(Url),
    /// The decoded path of a file: address: absolute, without `.` and `..`.
    File(PathBuf),
}

impl Address {
    /// Takes `text` apart. White space around it is dropped, as XML does with addresses.
    pub(crate) fn parse(text: &str) -> Result<Self, ExchangeError> {
        let text = text.trim_matches([' ', '\t', '\r', '\n']);
        let bad = |reason| ExchangeError::BadAddress {
            address: text.to_owned(),
            reason,
        };
        let (scheme, rest) = text
            .split_once(':')
            .ok_or_else(|| bad("it has no scheme"))?;
        let starts_well = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
        if !starts_well || !scheme.chars().all(is_scheme_char) {
            return Err(bad("it has no scheme"));
        }
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => parse_http(text, rest).map(Self::Http),
            "file" => file_path(rest).map(Self::File).map_err(bad),
            other => Err(ExchangeError::UnsupportedScheme {
                address: text.to_owned(),
                scheme: other.to_owned(),
            }),
        }
    }
}

fn is_scheme_char(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '+' | '-' | '.')
}

fn parse_http(text: &str, rest: &str) -> Result<Url, ExchangeError> {
    let bad = |reason| ExchangeError::BadAddress {
        address: text.to_owned(),
        reason,
    };
    let after_slashes = rest
        .strip_prefix("//")
        .ok_or_else(|| bad("it has no host"))?;
    let url = Url::parse(text).map_err(|_| bad("it isn't a URL"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ExchangeError::NotAllowed {
            address: format!("{}://{}", url.scheme(), url.host_str().unwrap_or_default()),
            reason: "user names and passwords in addresses are refused".to_owned(),
        });
    }
    if text.contains('#') {
        return Err(bad("it has a fragment; # in a name is written %23"));
    }
    let (before_query, _query) = after_slashes.split_once('?').unwrap_or((after_slashes, ""));
    let path = before_query
        .find('/')
        .and_then(|start| before_query.get(start..))
        .unwrap_or("");
    if !same_path(path, url.path()) {
        return Err(bad("its path would change on the way"));
    }
    Ok(url)
}

/// Whether a URL parser left a path alone: it may have percent-encoded a character that has to be,
/// but not have removed `..`, turned `\` around, or the like.
fn same_path(sent: &str, parsed: &str) -> bool {
    let sent = if sent.is_empty() { "/" } else { sent };
    let decoded = |text| Cow::from(percent_decode_str(text));
    sent == parsed || decoded(sent) == decoded(parsed)
}

/// The path of a file: address, from what follows the colon.
fn file_path(rest: &str) -> Result<PathBuf, &'static str> {
    let path = match rest.strip_prefix("//") {
        Some(with_host) => {
            let start = with_host.find('/').ok_or("it has no path")?;
            let (host, path) = with_host.split_at_checked(start).ok_or("it has no path")?;
            if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
                return Err("a file: address can't name another host");
            }
            path
        }
        None => rest,
    };
    if path.contains(['?', '#']) {
        return Err("it has a query or a fragment; in a name ? is written %3F and # is %23");
    }
    let decoded = decode(path).ok_or("a % isn't followed by two hexadecimal digits")?;
    check_file_path(&decoded)?;
    Ok(PathBuf::from(OsString::from_vec(decoded)))
}

fn check_file_path(path: &[u8]) -> Result<(), &'static str> {
    let relative = path.strip_prefix(b"/").ok_or("its path isn't absolute")?;
    if path.contains(&0) {
        return Err("its path has a zero byte in it");
    }
    if relative
        .split(|byte| *byte == b'/')
        .any(|part| matches!(part, b"" | b"." | b".."))
    {
        return Err("its path has empty or relative parts");
    }
    Ok(())
}

/// Percent-decodes once; nothing if an escape is broken.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut escapes = text.split('%');
    escapes.next();
    let whole = |escape: &str| {
        escape
            .as_bytes()
            .get(..2)
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    escapes
        .all(whole)
        .then(|| percent_decode_str(text).collect())
}

/// Whether `name` is a UUID of the random kind, in its usual form: what nobody guesses.
pub(crate) fn is_token(name: &str) -> bool {
    name.len() == TOKEN_LENGTH
        && uuid::Uuid::try_parse(name)
            .is_ok_and(|token| token.get_version() == Some(uuid::Version::Random))
}

/// Whether `name` is a token, a hyphen and something more.
pub(crate) fn begins_with_token(name: &str) -> bool {
    name.split_at_checked(TOKEN_LENGTH)
        .is_some_and(|(token, rest)| is_token(token) && rest.len() > 1 && rest.starts_with('-'))
}

const TOKEN_LENGTH: usize = 36;

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> String {
        match Address::parse(text).unwrap() {
            Address::Http(url) => url.to_string(),
            Address::File(path) => panic!("{}", path.display()),
        }
    }

    fn path(text: &str) -> String {
        match Address::parse(text).unwrap() {
            Address::File(path) => path.to_str().unwrap().to_owned(),
            Address::Http(url) => panic!("{url}"),
        }
    }

    fn refused(text: &str) -> ExchangeError {
        Address::parse(text).unwrap_err()
    }

    #[test]
    fn http_paths_stay_as_sent() {
        for text in [
            "http://h:1/a%20b%2Bc%2541%231%3Fx%26y.tif",
            "http://h/a+b",
            "http://h/a%2fb//c/",
            "http://h/%7Euser/~user?query=a+b",
            "http://h/%C3%86/%E2%82%AC",
            "http://h/a!$&'()*,;=:@b",
            "http://h/?a/b",
        ] {
            assert_eq!(url(text), text);
        }
        assert_eq!(url(" HTTP://Host:80/X\n"), "http://host/X");
        assert_eq!(url("http://h/Ærø fil"), "http://h/%C3%86r%C3%B8%20fil");
    }

    #[test]
    fn an_empty_path_is_the_root() {
        assert_eq!(url("http://h?a/b"), "http://h/?a/b");
        assert_eq!(url("https://h"), "https://h/");
    }

    #[test]
    fn addresses_that_would_change_are_refused() {
        for text in [
            "http://h/a/../b",
            "http://h/a/./b",
            "http://h/%2e%2E/b",
            "http://h/a\\b",
            "http://h\\a/b",
            "http://h/a\tb",
            "http://h/a\nb",
            "http:/h/a",
            "http:h",
            "http://h/a#b",
            "http://",
            "http://[::1/a",
            "http://h:99999/",
            "no scheme",
            "",
            ":x",
            "1a:x",
        ] {
            assert!(
                matches!(refused(text), ExchangeError::BadAddress { .. }),
                "{text}"
            );
        }
    }

    #[test]
    fn other_schemes_are_told_apart_from_nonsense() {
        let ExchangeError::UnsupportedScheme { scheme, .. } = refused("FTP://h/a") else {
            panic!("not refused for its scheme");
        };
        assert_eq!(scheme, "ftp");
    }

    #[test]
    fn passwords_are_refused_and_not_repeated() {
        let error = refused("http://user:secret@h/a");
        assert!(matches!(error, ExchangeError::NotAllowed { .. }));
        assert!(!error.to_string().contains("secret"));
    }

    #[test]
    fn file_paths_are_decoded_once() {
        assert_eq!(path("file:/a/b%2541%20c"), "/a/b%41 c");
        assert_eq!(path("file:///a/b+c"), "/a/b+c");
        assert_eq!(path("FILE://LocalHost/%C3%86r%C3%B8"), "/Ærø");
        assert_eq!(path("file:/Ærø 1"), "/Ærø 1");
    }

    #[test]
    fn odd_file_paths_are_refused() {
        for text in [
            "file:a",
            "file://a",
            "file://host/a",
            "file:/",
            "file:/a/../b",
            "file:/a/%2E%2e/b",
            "file:/a/%2e%2e%2fb",
            "file:/a/./b",
            "file:/a//b",
            "file:/a/",
            "file:/a%00",
            "file:/a%zz",
            "file:/a%2",
            "file:/a?b",
            "file:/a#b",
        ] {
            assert!(
                matches!(refused(text), ExchangeError::BadAddress { .. }),
                "{text}"
            );
        }
    }

    #[test]
    fn tokens_are_random_uuids() {
        assert!(is_token(&uuid::Uuid::new_v4().to_string()));
        for text in [
            "",
            "secret",
            "00000000-0000-0000-0000-000000000000",
            "5eb63bbbe01eeed093cb22bb8f5acdc3",
            "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
        ] {
            assert!(!is_token(text), "{text}");
        }
    }
}
