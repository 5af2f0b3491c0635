//! Remote instances as text: `name=url[@token]` (compatibility §19.5).

/// Longest call of a remote instance, if nothing else is said, in seconds.
const TIMEOUT_SECONDS: f64 = 30.0;

/// A remote instance.
#[derive(Clone, PartialEq)]
pub struct Remote {
    pub name: String,
    pub url: String,
    pub token: Option<String>,
    /// `streamable`, or `sse`.
    pub transport: &'static str,
    /// In seconds.
    pub timeout: f64,
}

/// Without the token.
impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { name, url, transport, timeout, token: _ } = self;
        write!(f, "{name}={url} ({transport}, {timeout} s)")
    }
}

impl Remote {
    /// Reads a text. Name and address are trimmed; the token is what follows the last `@` of the rest, so an address with a user name is
    /// cut there.
    ///
    /// ```
    /// use atlas_mcp_spec::Remote;
    ///
    /// let remote = Remote::parse("lab = http://h:8400/mcp@sekret").unwrap();
    /// assert_eq!((remote.name.as_str(), remote.url.as_str()), ("lab", "http://h:8400/mcp"));
    /// assert_eq!(remote.token.as_deref(), Some("sekret"));
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once('=').ok_or("Invalid remote spec: expected name=url[@token]")?;
        let (url, token) = match rest.rsplit_once('@') {
            Some((url, token)) => (url, Some(token.to_owned())),
            None => (rest, None),
        };
        let (name, url) = (name.trim().to_owned(), url.trim().to_owned());
        if name.is_empty() {
            return Err("Invalid remote spec: the name is empty".to_owned());
        }
        if url.is_empty() {
            return Err("Invalid remote spec: the URL is empty".to_owned());
        }
        Ok(Self { name, url, token, transport: "streamable", timeout: TIMEOUT_SECONDS })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_the_first_equals_sign_and_the_last_at_sign() {
        let parsed = |text: &str| Remote::parse(text).map(|remote| (remote.name, remote.url, remote.token));
        let some = |name: &str, url: &str, token: Option<&str>| {
            Ok((name.to_owned(), url.to_owned(), token.map(str::to_owned)))
        };
        assert_eq!(parsed("lab=http://h:8400/mcp"), some("lab", "http://h:8400/mcp", None));
        assert_eq!(parsed(" lab = http://h/?a=b @t"), some("lab", "http://h/?a=b", Some("t")));
        assert_eq!(parsed("lab=http://u@h/mcp"), some("lab", "http://u", Some("h/mcp")));
        assert_eq!(parsed("lab=http://u@h/mcp@t"), some("lab", "http://u@h/mcp", Some("t")));
        assert_eq!(parsed("lab=http://h@"), some("lab", "http://h", Some("")));
        for wrong in ["lab", "=http://h", "lab=", "lab=@t", " = x"] {
            assert!(Remote::parse(wrong).is_err(), "{wrong}");
        }
    }
}
