//! A server with the values that its definition refers to.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_http::Secret;
use atlas_llm::auth::LoginTokens;
use atlas_mcp_spec::{ServerSpec, Transport};
use atlas_model::CallErrorKind;
use atlas_secrets::{Reference, Template};
use atlas_types::SecretText;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Uri};
use sha2::{Digest as _, Sha256};

use crate::connection::Own;
use crate::error::{McpError, McpErrorKind};

/// What the machine adds to a definition.
pub struct Surroundings<'a> {
    /// The value of a secret of the namespace.
    pub secret: &'a dyn Fn(&str) -> Option<SecretText>,
    /// The value of a variable of the environment.
    pub variable: &'a dyn Fn(&str) -> Option<SecretText>,
    /// The credential of the caller, as the `Authorization` header has it.
    pub bearer: Option<&'a SecretText>,
}

/// What connections are shared by: the hash of a definition with all of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// The key of something that differs in this too.
    fn and(self, more: &[u8]) -> Self {
        let mut hash = Sha256::new();
        hash.update(self.0);
        hash.update(more);
        Self(hash.finalize().into())
    }
}

/// A server that can be called. It has no `Debug`, because it contains values.
pub struct Target {
    pub(crate) name: String,
    pub(crate) spec: ServerSpec,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) args: Vec<SecretText>,
    pub(crate) env: BTreeMap<String, SecretText>,
    pub(crate) key: Key,
    /// What its program may do, in the words of who starts programs; none if that is not restricted.
    pub(crate) rights: Option<String>,
    /// Set if it gets the credential of a caller: its connection is its own, and ends with it.
    pub(crate) own: Option<Own>,
    /// The W3C trace context of the calls.
    pub(crate) trace: Option<String>,
    /// Where the tokens of its login come from.
    login: Option<Arc<dyn LoginTokens>>,
}

/// A target as it is called now.
pub(crate) struct Entry<'a> {
    target: &'a Target,
    /// The same with the token of its login.
    with: Option<(Target, Secret)>,
}

impl Target {
    /// Fills in the values. `owner` is whose definition it is: equal definitions of different owners share nothing.
    pub fn resolve(owner: &str, name: &str, spec: &ServerSpec, around: &Surroundings<'_>) -> Result<Self, McpError> {
        let fill = |text: &str, place: &'static str| fill(name, text, place, around);
        let mut headers = Vec::new();
        for (header, value) in &spec.headers {
            headers.push(self::header(name, header, &fill(value, "headers")?)?);
        }
        let bearer = around.bearer.filter(|_| spec.forwards());
        if let Some(bearer) = bearer {
            headers.push(header(name, "authorization", bearer)?);
        }
        if spec.transport != Transport::Stdio {
            check_plain(name, spec)?;
        }
        let args = spec.args.iter().map(|argument| fill(argument, "args")).collect::<Result<Vec<_>, _>>()?;
        let env = spec.env.iter().map(|(variable, value)| Ok((variable.clone(), fill(value, "env")?)));
        let env = env.collect::<Result<BTreeMap<_, _>, McpError>>()?;
        let key = key(owner, name, spec, &headers, &args, &env);
        let own = bearer.is_some().then(Own::default);
        let (name, spec) = (name.to_owned(), spec.clone());
        Ok(Self { name, spec, headers, args, env, key, rights: None, own, trace: None, login: None })
    }

    /// The same server, whose calls are part of a trace, given as a W3C `traceparent`.
    #[must_use]
    pub fn with_trace(self, trace: Option<String>) -> Self {
        Self { trace, ..self }
    }

    /// The same server, with the tokens of a login as its credential.
    #[must_use]
    pub fn with_login(self, login: Arc<dyn LoginTokens>) -> Self {
        let login = self.spec.login_refused().is_none().then_some(login);
        Self { login, ..self }
    }

    /// The same server, whose program may do only what these words of the one who starts programs say. It is not shared with agents
    /// that have other rights.
    #[must_use]
    pub fn confined(self, rights: &str) -> Self {
        if self.spec.transport != Transport::Stdio {
            return self;
        }
        Self { key: self.key.and(rights.as_bytes()), rights: Some(rights.to_owned()), ..self }
    }

    /// The target for a call: with a token that is valid now, if it has a login. Each token has a connection of its own.
    pub(crate) async fn enter(&self) -> Result<Entry<'_>, McpError> {
        let Some(login) = &self.login else { return Ok(Entry { target: self, with: None }) };
        let token = login.token().await.map_err(|error| {
            let kind = match error.kind {
                CallErrorKind::Login | CallErrorKind::Credentials => McpErrorKind::Unauthorized,
                _ => McpErrorKind::Unreachable,
            };
            McpError::new(kind, format!("the MCP server {} cannot be called: {}", self.name, error.message))
        })?;
        let bearer = header(&self.name, "authorization", &SecretText::new(format!("Bearer {}", token.expose())))?;
        let mut headers = self.headers.clone();
        headers.push(bearer);
        let with = Self {
            name: self.name.clone(),
            spec: self.spec.clone(),
            headers,
            args: Vec::new(),
            env: BTreeMap::new(),
            key: self.key.and(token.expose().as_bytes()),
            rights: None,
            own: None,
            trace: self.trace.clone(),
            login: None,
        };
        Ok(Entry { target: self, with: Some((with, token)) })
    }

    /// The name of the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its definition.
    pub fn spec(&self) -> &ServerSpec {
        &self.spec
    }
}

impl Entry<'_> {
    pub(crate) fn target(&self) -> &Target {
        self.with.as_ref().map_or(self.target, |(target, _)| target)
    }

    /// Whether another token may help. The server refused the request, so it had no effect.
    pub(crate) fn is_outdated<T>(&self, end: &Result<T, McpError>) -> bool {
        let refused = matches!(end, Err(error) if error.kind == McpErrorKind::Unauthorized);
        match (&self.target.login, &self.with) {
            (Some(login), Some((_, token))) if refused => login.refused(token),
            _ => false,
        }
    }
}

/// A text with values instead of references.
fn fill(server: &str, text: &str, place: &'static str, around: &Surroundings<'_>) -> Result<SecretText, McpError> {
    let refused = |why: String| McpError::new(McpErrorKind::Configuration, format!("the MCP server {server} {why}"));
    let template = Template::parse(text).map_err(|error| refused(format!("cannot be used: {place}: {error}")))?;
    template.fill(|reference| {
        let (what, name, value) = match reference {
            Reference::Secret(name) => ("the secret", name, (around.secret)(name)),
            Reference::Variable(name) => ("the variable", name, (around.variable)(name)),
        };
        value.ok_or_else(|| {
            refused(format!("cannot be used: {what} \"{name}\", to which its {place} refer, is not set"))
        })
    })
}

fn header(server: &str, name: &str, value: &SecretText) -> Result<(HeaderName, HeaderValue), McpError> {
    let refused = || {
        let text = format!("the MCP server {server} cannot be used: the value of the header {name} is not one");
        McpError::new(McpErrorKind::Configuration, text)
    };
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused())?;
    // The value shares the buffer of the text, which is overwritten when nobody needs it any more.
    let shared = Bytes::from_owner(value.clone());
    let mut value = HeaderValue::from_maybe_shared(shared).map_err(|_| refused())?;
    value.set_sensitive(true);
    Ok((name, value))
}

/// Refuses to send to another machine without encryption, unless the definition allows it.
fn check_plain(server: &str, spec: &ServerSpec) -> Result<(), McpError> {
    let url = spec.url.as_deref().unwrap_or_default();
    if spec.plain_http || !url.starts_with("http://") || is_local(url) {
        return Ok(());
    }
    let text = format!(
        "the MCP server {server} is on another machine and its address begins with http://; use https, or set plain_http"
    );
    Err(McpError::new(McpErrorKind::Configuration, text))
}

/// Whether an address is on this machine.
pub(crate) fn is_local(url: &str) -> bool {
    let uri: Option<Uri> = url.parse().ok();
    let host = uri.as_ref().and_then(Uri::host).unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The order of arguments counts, and so does the directory: two programs that differ in them are not the same.
fn key(
    owner: &str,
    name: &str,
    spec: &ServerSpec,
    headers: &[(HeaderName, HeaderValue)],
    args: &[SecretText],
    env: &BTreeMap<String, SecretText>,
) -> Key {
    let mut hash = Sha256::new();
    let mut add = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    for text in [owner, name, spec.transport.as_str()] {
        add(text.as_bytes());
    }
    for text in [&spec.url, &spec.command, &spec.cwd] {
        add(text.as_deref().unwrap_or_default().as_bytes());
    }
    for (name, value) in headers {
        add(name.as_str().as_bytes());
        add(value.as_bytes());
    }
    add(&(args.len() as u64).to_le_bytes());
    for text in args {
        add(text.as_ref());
    }
    for (name, value) in env {
        add(name.as_bytes());
        add(value.as_ref());
    }
    Key(hash.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(spec: &ServerSpec, bearer: Option<&SecretText>) -> Result<Target, McpError> {
        let secret = |name: &str| (name == "K").then(|| SecretText::new("value"));
        Target::resolve("ns", "s", spec, &Surroundings { secret: &secret, variable: &|_| None, bearer })
    }

    fn authorization(target: &Target) -> Vec<String> {
        target.headers.iter().map(|(_, value)| value.to_str().expect("ASCII").to_owned()).collect()
    }

    #[test]
    fn values_replace_references_and_are_not_shown() {
        let mut spec = ServerSpec::http("https://a.b");
        spec.headers.insert("X-Key".to_owned(), "Key {{K}}".to_owned());
        let target = resolve(&spec, None).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(authorization(&target), ["Key value"]);
        assert!(!format!("{:?}", target.headers).contains("value"));
        spec.headers.insert("X-Other".to_owned(), "secret://missing".to_owned());
        let error = resolve(&spec, None).err().expect("refused").text;
        assert_eq!(
            error,
            "the MCP server s cannot be used: the secret \"missing\", to which its headers refer, is not set"
        );
    }

    #[test]
    fn the_credential_of_a_caller_goes_only_where_it_may() {
        let bearer = SecretText::new("Bearer canary");
        let mut spec = ServerSpec::http("https://a.b");
        let target = |spec: &ServerSpec| resolve(spec, Some(&bearer)).unwrap_or_else(|error| panic!("{error}"));
        assert!(target(&spec).own.is_none() && target(&spec).headers.is_empty());
        spec.forward_inbound_auth = true;
        assert!(target(&spec).own.is_some());
        assert_eq!(authorization(&target(&spec)), ["Bearer canary"]);
        spec.headers.insert("Authorization".to_owned(), "Bearer {{K}}".to_owned());
        assert!(target(&spec).own.is_none());
        assert_eq!(authorization(&target(&spec)), ["Bearer value"]);
    }

    #[test]
    fn every_part_of_a_definition_tells_connections_apart() {
        let key = |spec: &ServerSpec| resolve(spec, None).unwrap_or_else(|error| panic!("{error}")).key;
        let stdio = |args: &[&str]| ServerSpec::stdio("x", args.iter().map(|arg| (*arg).to_owned()).collect());
        assert!(key(&stdio(&["a", "b"])) != key(&stdio(&["b", "a"])));
        let elsewhere = ServerSpec { cwd: Some("/srv".to_owned()), ..stdio(&["a"]) };
        assert!(key(&elsewhere) != key(&stdio(&["a"])));
        // What does not change the connection does not close it.
        let slower = ServerSpec { timeout_seconds: 9, ..stdio(&["a"]) };
        assert!(key(&slower) == key(&stdio(&["a"])));
        let confined = |rights: &str| {
            let target = resolve(&stdio(&["a"]), None).unwrap_or_else(|error| panic!("{error}"));
            target.confined(rights).key
        };
        assert!(confined("files") != key(&stdio(&["a"])) && confined("files") != confined("network"));
        assert!(confined("files") == confined("files"));
    }

    #[test]
    fn other_machines_are_reached_over_https() {
        let refused = |url: &str| resolve(&ServerSpec::http(url), None).is_err();
        assert!(refused("http://example.com/mcp"));
        for url in ["https://example.com", "http://127.0.0.1:9", "http://localhost/x", "http://[::1]:9"] {
            assert!(!refused(url), "{url}");
        }
        let plain = ServerSpec { plain_http: true, ..ServerSpec::http("http://example.com") };
        assert!(resolve(&plain, None).is_ok());
    }
}
