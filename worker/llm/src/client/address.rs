//! Which addresses requests may go to.

use atlas_http::address::is_loopback;
use http::Uri;

/// Why nothing is sent to an address. The address is not repeated: it may hold a key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// It is not an address.
    #[error("the address of the model is not valid: {problem}")]
    Invalid { problem: &'static str },
    /// It is plain HTTP to another machine.
    #[error(
        "the address of the model is plain HTTP to {host:?}: requests and keys would be readable on the way; use https"
    )]
    Plain { host: String },
}

/// Accepts `https`, and `http` to this machine or where `plain` allows it.
pub fn check(url: &str, plain: bool) -> Result<Uri, AddressError> {
    let invalid = |problem| AddressError::Invalid { problem };
    let uri: Uri = url.parse().map_err(|_| invalid("it is not a URL"))?;
    let host = uri.host().filter(|host| !host.is_empty()).ok_or(invalid("it names no host"))?;
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(invalid("it contains a user name"));
    }
    match uri.scheme_str() {
        Some("https") => Ok(uri),
        Some("http") if plain || is_loopback(host) => Ok(uri),
        Some("http") => Err(AddressError::Plain { host: host.to_owned() }),
        _ => Err(invalid("it is neither http nor https")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let invalid = |problem| Err(AddressError::Invalid { problem });
        let plain = |host: &str| Err(AddressError::Plain { host: host.to_owned() });
        let cases = [
            ("https://api.openai.com/v1", Ok(())),
            ("http://localhost:11434", Ok(())),
            ("http://a.localhost", Ok(())),
            ("http://127.0.0.9:1/x?y", Ok(())),
            ("http://[::1]:80", Ok(())),
            ("http://[::ffff:127.0.0.1]", Ok(())),
            ("http://10.0.0.1", plain("10.0.0.1")),
            ("http://localhost.example.org", plain("localhost.example.org")),
            ("http://127.0.0.1.example.org", plain("127.0.0.1.example.org")),
            ("https://key@host", invalid("it contains a user name")),
            ("http://localhost:80@evil.org", invalid("it contains a user name")),
            ("file:///etc/passwd", invalid("it is not a URL")),
            ("ftp://host/x", invalid("it is neither http nor https")),
            ("/v1", invalid("it names no host")),
            ("https://a b", invalid("it is not a URL")),
            ("", invalid("it is not a URL")),
        ];
        for (url, expected) in cases {
            assert_eq!(check(url, false).map(drop), expected, "{url}");
        }
        assert!(check("http://10.0.0.1", true).is_ok());
    }
}
