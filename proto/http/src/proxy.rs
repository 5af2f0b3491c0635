//! Proxies on the way to a server: HTTP (`CONNECT`) and SOCKS5.

use std::fmt;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;

use crate::Secret;
use crate::address::is_loopback;

/// The way to a server.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum Proxy {
    /// No proxy.
    #[default]
    Direct,
    /// A tunnel through an HTTP proxy. The secret is the value of `Proxy-Authorization`.
    Http { address: Uri, authorization: Option<Secret> },
    /// SOCKS5. The proxy resolves names.
    Socks { address: Uri, user: Option<(String, Secret)> },
}

/// The setting is not a proxy. Its text is not repeated: it may hold a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the proxy is neither \"-\" nor an address that starts with http:// or socks5://")]
pub struct ProxyError;

impl Proxy {
    /// The proxy for an address. `setting` is that of the server, as a model has one: an address, or empty or `-` for no proxy. Without it the usual
    /// variables of `environment` decide: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`, also in lower case. Requests to
    /// this machine use no proxy of the environment.
    pub fn choose(
        setting: Option<&str>,
        environment: &dyn Fn(&str) -> Option<String>,
        base_url: &str,
    ) -> Result<Self, ProxyError> {
        let Ok(target) = base_url.parse::<Uri>() else { return Ok(Self::Direct) };
        match setting.map(str::trim) {
            Some("" | "-") => Ok(Self::Direct),
            Some(setting) => {
                Self::read(&Matcher::builder().all(setting.to_owned()).build(), &target)?.ok_or(ProxyError)
            }
            None if target.host().is_some_and(is_loopback) => Ok(Self::Direct),
            None => {
                let value = |name: &str| {
                    environment(name).or_else(|| environment(&name.to_ascii_lowercase())).unwrap_or_default()
                };
                let matcher = Matcher::builder()
                    .all(value("ALL_PROXY"))
                    .https(value("HTTPS_PROXY"))
                    .http(value("HTTP_PROXY"))
                    .no(value("NO_PROXY"))
                    .build();
                Ok(Self::read(&matcher, &target)?.unwrap_or_default())
            }
        }
    }

    /// Distinguishes proxies, also by their users.
    pub fn key(&self) -> String {
        match self {
            Self::Direct => String::new(),
            Self::Http { address, authorization } => {
                format!("{address} {}", authorization.as_ref().map_or("", Secret::expose))
            }
            Self::Socks { address, user } => match user {
                Some((user, password)) => format!("{address} {user} {}", password.expose()),
                None => address.to_string(),
            },
        }
    }

    fn read(matcher: &Matcher, target: &Uri) -> Result<Option<Self>, ProxyError> {
        let Some(found) = matcher.intercept(target) else { return Ok(None) };
        let address = found.uri().clone();
        match address.scheme_str() {
            Some("http") => {
                let text = |value: &HeaderValue| value.to_str().ok().map(Secret::from);
                Ok(Some(Self::Http { address, authorization: found.basic_auth().and_then(text) }))
            }
            Some("socks5" | "socks5h") => {
                let user = found.raw_auth().map(|(user, password)| (user.to_owned(), password.into()));
                Ok(Some(Self::Socks { address, user }))
            }
            _ => Err(ProxyError),
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Direct => f.write_str("direct"),
            Self::Http { address, .. } | Self::Socks { address, .. } => {
                write!(f, "{}://{}", address.scheme_str().unwrap_or_default(), address.host().unwrap_or_default())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(setting: Option<&str>, environment: &[(&str, &str)], url: &str, expected: &str) {
        let lookup =
            |name: &str| environment.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
        let chosen = Proxy::choose(setting, &lookup, url);
        assert_eq!(chosen.map_or("refused".to_owned(), |proxy| format!("{proxy:?}")), expected, "{setting:?} {url}");
    }

    #[test]
    fn settings_come_before_the_environment() {
        let environment = [("https_proxy", "http://corp:3128"), ("NO_PROXY", "example.org")];
        let url = "https://api.test/v1";
        check(None, &environment, url, "http://corp");
        check(None, &environment, "https://a.example.org", "direct");
        check(None, &environment, "https://localhost/v1", "direct");
        check(None, &[], url, "direct");
        check(Some("-"), &environment, url, "direct");
        check(Some(""), &environment, url, "direct");
        check(Some("http://user:pass@other:1"), &environment, url, "http://other");
        check(Some("socks5://user:pass@other:1"), &environment, url, "socks5://other");
        for wrong in ["https://other", "ftp://other", "http://", "socks4://other"] {
            check(Some(wrong), &environment, url, "refused");
        }
    }

    #[test]
    fn passwords_are_taken_out_of_the_address() {
        let proxy = Proxy::choose(Some("http://user:pass@other:1"), &|_| None, "https://api.test");
        let Ok(Proxy::Http { address, authorization: Some(value) }) = proxy else { panic!("an HTTP proxy") };
        assert_eq!((address.to_string().as_str(), value.expose()), ("http://other:1/", "Basic dXNlcjpwYXNz"));
    }
}
