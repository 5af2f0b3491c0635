//! Remote instances as a command line names them: `name=url[@token]` (compatibility §19.5).

use std::fmt;

use atlas_types::SecretText;

/// Longest text.
const BYTES_MAX: usize = 8 << 10;

/// Another instance, whose tools and agents have its name and a dot before their own.
#[derive(Clone, PartialEq)]
pub struct Remote {
    pub name: String,
    pub url: String,
    /// The bearer token for calls.
    pub token: Option<SecretText>,
    /// The transport of MCP: `streamable` or `sse`.
    pub transport: &'static str,
    /// Longest call, in seconds.
    pub timeout: f64,
}

/// Why a text names no remote instance. No text shows the token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    #[error("a remote instance is written as name=url or name=url@token")]
    NoEqualsSign,
    #[error("the remote instance has no name")]
    NoName,
    #[error("the remote instance has no URL")]
    NoUrl,
    #[error("the text of a remote instance has more than {BYTES_MAX} bytes")]
    TooLong,
}

impl Remote {
    /// Reads a text. Name and URL are trimmed, the token is what follows the last `@`.
    ///
    /// ```
    /// let remote = atlas_contract::Remote::parse("lab = http://h:8400/mcp@sekret").unwrap();
    /// assert_eq!((remote.name.as_str(), remote.url.as_str()), ("lab", "http://h:8400/mcp"));
    /// assert_eq!(remote.token.unwrap().expose(), "sekret");
    /// ```
    pub fn parse(text: &str) -> Result<Self, RemoteError> {
        if text.len() > BYTES_MAX {
            return Err(RemoteError::TooLong);
        }
        let (name, rest) = text.split_once('=').ok_or(RemoteError::NoEqualsSign)?;
        let (url, token) = match rest.rsplit_once('@') {
            Some((before, after)) if !ends_in_user(before, after) => (before, Some(SecretText::new(after))),
            _ => (rest, None),
        };
        let (name, url) = (name.trim(), url.trim());
        if name.is_empty() {
            return Err(RemoteError::NoName);
        }
        if url.is_empty() {
            return Err(RemoteError::NoUrl);
        }
        let (name, url) = (name.to_owned(), url.to_owned());
        Ok(Self { name, url, token, transport: "streamable", timeout: 30.0 })
    }
}

/// Without the token, and without the URL, which may contain a password.
impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Whether an `@` separates user and host of a URL: no path has begun before it, and one follows. In Atlas for Python such a URL is cut
/// there.
fn ends_in_user(before: &str, after: &str) -> bool {
    let authority = before.split_once("://").map(|(_, authority)| authority);
    authority.is_some_and(|authority| !authority.contains(['/', '?', '#'])) && after.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, name: &str, url: &str, token: Option<&str>) {
        let remote = Remote::parse(text).expect("a remote instance");
        let found = remote.token.as_ref().map(SecretText::expose);
        assert_eq!((remote.name.as_str(), remote.url.as_str(), found), (name, url, token));
        assert_eq!(format!("{remote:?}"), format!("Remote {{ name: {name:?}, .. }}"));
    }

    #[test]
    fn texts_are_cut_at_the_first_equals_sign_and_the_last_at_sign() {
        check("lab=http://h:8400/mcp", "lab", "http://h:8400/mcp", None);
        check(" lab = http://h/?a=b @t", "lab", "http://h/?a=b", Some("t"));
        check("lab=http://h:8400@t", "lab", "http://h:8400", Some("t"));
        check("lab=http://h/mcp@a@b", "lab", "http://h/mcp@a", Some("b"));
        check("lab=http://h/mcp@a/b", "lab", "http://h/mcp", Some("a/b"));
        check("lab=http://h@", "lab", "http://h", Some(""));
        check("lab=h@t", "lab", "h", Some("t"));
    }

    #[test]
    fn a_user_in_a_url_is_no_end_of_it() {
        check("lab=http://u:p@h/mcp", "lab", "http://u:p@h/mcp", None);
        check("lab=http://u:p@h/mcp@t", "lab", "http://u:p@h/mcp", Some("t"));
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, error) in [
            ("", RemoteError::NoEqualsSign),
            ("lab", RemoteError::NoEqualsSign),
            ("=http://h", RemoteError::NoName),
            (" = http://h", RemoteError::NoName),
            ("lab=", RemoteError::NoUrl),
            ("lab= @t", RemoteError::NoUrl),
        ] {
            assert_eq!(Remote::parse(text), Err(error), "{text}");
        }
        assert_eq!(Remote::parse(&format!("lab=http://{}", "h".repeat(BYTES_MAX))), Err(RemoteError::TooLong));
    }
}
