//! URLs of file exchanges.

use thiserror::Error;
use url::Url;

/// Why a text is no base URL of a file exchange.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ExchangeUrlError {
    #[error("`{url}` is no URL ({reason}); write it as in \"http://HOST:PORT/\"")]
    Malformed { url: String, reason: String },
    #[error("`{url}` has the scheme `{scheme}`, which no file exchange speaks; use {known}")]
    Scheme {
        url: String,
        scheme: String,
        known: &'static str,
    },
    #[error("`{0}` carries a user name, a query or a fragment; remove it")]
    Extras(String),
}

/// The base URL of an HTTP exchange, ending with a slash.
pub(crate) fn http_base(text: &str) -> Result<String, ExchangeUrlError> {
    base(text, &["http", "https"], "http or https")
}

/// The base URL under which files are offered, ending with a slash.
pub(crate) fn offer_base(text: &str) -> Result<String, ExchangeUrlError> {
    base(text, &["http", "https", "file"], "http, https or file")
}

/// `host:port` of an HTTP URL; none if it is another kind of URL.
pub(crate) fn host_and_port(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    Some(format!(
        "{}:{}",
        url.host_str()?,
        url.port_or_known_default()?
    ))
}

/// `host:port` in the form of [`host_and_port`]; none if the text is something else.
pub(crate) fn normal_host(text: &str) -> Option<String> {
    let (_, port) = text.rsplit_once(':')?;
    port.parse::<u16>().ok().filter(|port| *port != 0)?;
    let url = Url::parse(&format!("http://{text}/")).ok()?;
    let plain = url.path() == "/" && url.username().is_empty() && url.password().is_none();
    let plain = plain && url.query().is_none() && url.fragment().is_none();
    host_and_port(url.as_str()).filter(|_| plain)
}

fn base(text: &str, schemes: &[&str], known: &'static str) -> Result<String, ExchangeUrlError> {
    let url = Url::parse(text).map_err(|error| ExchangeUrlError::Malformed {
        url: text.to_owned(),
        reason: error.to_string(),
    })?;
    if !schemes.contains(&url.scheme()) {
        let scheme = url.scheme().to_owned();
        return Err(ExchangeUrlError::Scheme {
            url: text.to_owned(),
            scheme,
            known,
        });
    }
    let credentials = !url.username().is_empty() || url.password().is_some();
    if credentials || url.query().is_some() || url.fragment().is_some() {
        return Err(ExchangeUrlError::Extras(text.to_owned()));
    }
    let url = String::from(url);
    Ok(if url.ends_with('/') {
        url
    } else {
        format!("{url}/")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls() {
        assert_eq!(
            http_base("http://127.0.0.1:8181").as_deref(),
            Ok("http://127.0.0.1:8181/")
        );
        assert_eq!(http_base("https://h/dav").as_deref(), Ok("https://h/dav/"));
        assert_eq!(offer_base("file:///srv/x").as_deref(), Ok("file:///srv/x/"));
        for text in [
            "127.0.0.1:8181",
            "file:///x",
            "http://u:p@h/",
            "http://h/?q",
            "http://h/#f",
            "",
        ] {
            assert!(http_base(text).is_err(), "{text}");
        }
    }

    #[test]
    fn hosts() {
        assert_eq!(
            host_and_port("https://H.example/x").as_deref(),
            Some("h.example:443")
        );
        assert_eq!(host_and_port("file:///x"), None);
        assert_eq!(normal_host("H.example:80").as_deref(), Some("h.example:80"));
        assert_eq!(normal_host("[::1]:80").as_deref(), Some("[::1]:80"));
        for text in ["h", "h:0", "h:x", "http://h:80", "h:80/x", "u@h:80", ""] {
            assert_eq!(normal_host(text), None, "{text}");
        }
    }
}
