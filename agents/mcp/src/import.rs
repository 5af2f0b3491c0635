//! `mcp.json`, in which other programs keep their servers: `{"mcpServers": {NAME: ENTRY}}`. Loki names the transport in `type`; files
//! without it are read by whether an entry has a command or an address.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::{ServerSpec, Transport};

/// Largest file, and most servers in it.
const FILE_BYTES_MAX: usize = 1 << 20;
const SERVERS_MAX: usize = 256;

/// The members of an entry.
const KNOWN: [&str; 13] = [
    "type",
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "headers",
    "idle_timeout_seconds",
    "forward_inbound_auth",
    "tools",
    "timeout_seconds",
    "description",
    "oauth",
];

/// A server of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedServer {
    pub name: String,
    pub spec: ServerSpec,
    /// The entry has a block `oauth`: a person must log in before the server can be used.
    pub needs_login: bool,
}

/// Why a file is refused. An invalid entry refuses the file, even if nobody would use that server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    /// The server, if it is about one.
    pub server: Option<String>,
    /// A sentence without its subject.
    pub text: String,
}

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.server {
            Some(server) => write!(f, "the server \"{server}\" {}", self.text),
            None => write!(f, "the file {}", self.text),
        }
    }
}

impl std::error::Error for ImportError {}

/// Reads a file. An empty one has no servers. `nearest` finds the known name that a misspelt one means.
pub fn import(
    text: &str,
    nearest: &dyn Fn(&str, &[&'static str]) -> Option<&'static str>,
) -> Result<Vec<ImportedServer>, ImportError> {
    let refused = |text: String| ImportError { server: None, text };
    if text.len() > FILE_BYTES_MAX {
        return Err(refused(format!("has more than {FILE_BYTES_MAX} bytes")));
    }
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let document: Value = serde_json::from_str(text).map_err(|error| refused(format!("is not JSON: {error}")))?;
    let Value::Object(document) = document else { return Err(refused("is not a JSON object".to_owned())) };
    if let Some(name) = document.keys().find(|name| *name != "mcpServers") {
        return Err(refused(unknown(name, nearest(name, &["mcpServers"]))));
    }
    let servers = match document.get("mcpServers") {
        None => return Ok(Vec::new()),
        Some(Value::Object(servers)) => servers,
        Some(_) => return Err(refused("has a member mcpServers that is not an object".to_owned())),
    };
    if servers.len() > SERVERS_MAX {
        return Err(refused(format!("has more than {SERVERS_MAX} servers")));
    }
    let read = |(name, entry): (&String, &Value)| {
        Entry::of(entry, nearest)
            .and_then(|entry| entry.read(name))
            .map_err(|text| ImportError { server: Some(name.clone()), text })
    };
    servers.iter().map(read).collect()
}

fn unknown(name: &str, meant: Option<&str>) -> String {
    match meant {
        Some(meant) => format!("has an unknown member \"{name}\"; did you mean \"{meant}\"?"),
        None => format!("has an unknown member \"{name}\""),
    }
}

/// One entry of a file.
struct Entry<'a>(&'a Map<String, Value>);

impl<'a> Entry<'a> {
    fn of(entry: &'a Value, nearest: &dyn Fn(&str, &[&'static str]) -> Option<&'static str>) -> Result<Self, String> {
        let members = entry.as_object().ok_or("is not an object")?;
        match members.keys().find(|name| !KNOWN.contains(&name.as_str())) {
            Some(name) => Err(unknown(name, nearest(name, &KNOWN))),
            None => Ok(Self(members)),
        }
    }

    fn read(&self, name: &str) -> Result<ImportedServer, String> {
        let transport = self.transport()?;
        let mut spec = ServerSpec::of(transport);
        spec.description = self.text("description")?;
        spec.url = self.text("url")?;
        spec.command = self.text("command")?;
        spec.cwd = self.text("cwd")?;
        spec.args = self.texts("args")?.unwrap_or_default();
        spec.tools = self.texts("tools")?;
        spec.headers = self.headers()?;
        // Loki ignores the variables of servers that are no programs.
        spec.env = if transport == Transport::Stdio { self.variables()? } else { BTreeMap::new() };
        spec.forward_inbound_auth = match self.0.get("forward_inbound_auth") {
            None | Some(Value::Null) => false,
            Some(value) => value.as_bool().ok_or("has a member forward_inbound_auth that is not true or false")?,
        };
        spec.idle_timeout_seconds = self.seconds("idle_timeout_seconds")?.unwrap_or(spec.idle_timeout_seconds);
        spec.timeout_seconds = self.seconds("timeout_seconds")?.unwrap_or(spec.timeout_seconds);
        let needs_login = self.oauth(transport)?;
        spec.check().map_err(|error| {
            let field = error.field.strip_prefix("spec.").unwrap_or(error.field);
            format!("is refused: `{field}` {}", error.text)
        })?;
        Ok(ImportedServer { name: name.to_owned(), spec, needs_login })
    }

    fn transport(&self) -> Result<Transport, String> {
        match self.0.get("type") {
            None | Some(Value::Null) if self.0.contains_key("command") => Ok(Transport::Stdio),
            None | Some(Value::Null) if self.0.contains_key("url") => Ok(Transport::Http),
            None | Some(Value::Null) => Err("has no type, no command and no url".to_owned()),
            Some(Value::String(word)) => match word.as_str() {
                "stdio" => Ok(Transport::Stdio),
                "http" | "streamable-http" | "streamable_http" | "streamableHttp" => Ok(Transport::Http),
                "sse" => Ok(Transport::Sse),
                other => Err(format!("has the type \"{other}\"; types are stdio, http and sse")),
            },
            Some(_) => Err("has a type that is not a text".to_owned()),
        }
    }

    fn text(&self, name: &str) -> Result<Option<String>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("has a member {name} that is not a text")),
        }
    }

    fn texts(&self, name: &str) -> Result<Option<Vec<String>>, String> {
        let wrong = || format!("has a member {name} that is not a list of strings");
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Array(items)) => {
                let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
                texts.collect::<Option<_>>().map(Some).ok_or_else(wrong)
            }
            Some(_) => Err(wrong()),
        }
    }

    fn headers(&self) -> Result<BTreeMap<String, String>, String> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        self.map("headers", "an object of strings", &text)
    }

    /// Truth values and whole numbers are written as text.
    fn variables(&self) -> Result<BTreeMap<String, String>, String> {
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
            _ => None,
        };
        self.map("env", "an object of strings, truth values and whole numbers", &text)
    }

    fn map(
        &self,
        name: &str,
        what: &str,
        text: &dyn Fn(&Value) -> Option<String>,
    ) -> Result<BTreeMap<String, String>, String> {
        let wrong = || format!("has a member {name} that is not {what}");
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(BTreeMap::new()),
            Some(Value::Object(members)) => members
                .iter()
                .map(|(name, value)| Some((name.clone(), text(value)?)))
                .collect::<Option<_>>()
                .ok_or_else(wrong),
            Some(_) => Err(wrong()),
        }
    }

    fn seconds(&self, name: &str) -> Result<Option<u32>, String> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let seconds = value.as_u64().and_then(|seconds| u32::try_from(seconds).ok());
                seconds.map(Some).ok_or_else(|| format!("has a member {name} that is not a whole number of seconds"))
            }
        }
    }

    fn oauth(&self, transport: Transport) -> Result<bool, String> {
        match self.0.get("oauth") {
            None | Some(Value::Null) => Ok(false),
            Some(_) if transport == Transport::Stdio => Err("has a member oauth, which is for http and sse".to_owned()),
            Some(Value::Object(members)) => {
                let known = ["clientId", "clientSecret", "callbackPort", "redirectHost"];
                match members.keys().find(|name| !known.contains(&name.as_str())) {
                    Some(name) => {
                        Err(format!("has an unknown member \"{name}\" in oauth; members are {}", known.join(", ")))
                    }
                    None => Ok(true),
                }
            }
            Some(_) => Err("has a member oauth that is not an object".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn nearest(name: &str, known: &[&'static str]) -> Option<&'static str> {
        known.iter().find(|known| known[..3] == name[..3.min(name.len())]).copied()
    }

    fn check(text: &str, expected: &Expect) {
        let shown = match import(text, &nearest) {
            Ok(servers) => servers
                .iter()
                .map(|server| {
                    let spec = serde_json::to_string(&server.spec).expect("JSON");
                    format!("{}{} {spec}\n", server.name, if server.needs_login { " (login)" } else { "" })
                })
                .collect(),
            Err(error) => format!("error: {error}\n"),
        };
        expected.assert_eq(&shown);
    }

    fn entry(entry: &str, expected: &Expect) {
        check(&format!(r#"{{"mcpServers": {{"s": {entry}}}}}"#), expected);
    }

    #[test]
    fn servers_are_read() {
        entry(
            r#"{"type": "stdio", "command": "uvx", "args": ["x"], "env": {"A": "{{KEY}}", "B": true, "C": 5}}"#,
            &expect![[r#"
                s {"transport":"stdio","command":"uvx","args":["x"],"env":{"A":"{{KEY}}","B":"true","C":"5"},"timeout_seconds":60,"start_timeout_seconds":30,"idle_timeout_seconds":300}
            "#]],
        );
        entry(
            r#"{"type": "http", "url": "https://a.b/mcp", "headers": {"Authorization": "Bearer {{K}}"}, "oauth": {"clientId": "x"}, "idle_timeout_seconds": 9}"#,
            &expect![[r#"
                s (login) {"transport":"http","url":"https://a.b/mcp","headers":{"Authorization":"Bearer {{K}}"},"timeout_seconds":60,"start_timeout_seconds":30,"idle_timeout_seconds":9}
            "#]],
        );
        entry(
            r#"{"url": "http://a.b/sse", "type": "sse", "env": {"X": "ignored"}}"#,
            &expect![[r#"
                s {"transport":"sse","url":"http://a.b/sse","timeout_seconds":60,"start_timeout_seconds":30,"idle_timeout_seconds":300}
            "#]],
        );
        check("", &expect![""]);
        check("{}", &expect![""]);
    }

    #[test]
    fn wrong_files_are_refused() {
        check(
            "[",
            &expect![[r#"
            error: the file is not JSON: EOF while parsing a list at line 1 column 1
        "#]],
        );
        check(
            r#"{"mcpservers": {}}"#,
            &expect![[r#"
            error: the file has an unknown member "mcpservers"; did you mean "mcpServers"?
        "#]],
        );
        entry(
            r#"{"command": "x", "type": "pipe"}"#,
            &expect![[r#"
            error: the server "s" has the type "pipe"; types are stdio, http and sse
        "#]],
        );
        entry(
            r#"{"type": "http", "url": "http://a", "forward_auth": true}"#,
            &expect![[r#"
            error: the server "s" has an unknown member "forward_auth"; did you mean "forward_inbound_auth"?
        "#]],
        );
        entry(
            r#"{"type": "stdio", "command": "x", "url": "http://a"}"#,
            &expect![[r#"
            error: the server "s" is refused: `url` is for the transports http and sse, not for stdio
        "#]],
        );
        entry(
            r#"{"type": "http", "command": "x"}"#,
            &expect![[r#"
            error: the server "s" is refused: `command` is for the transport stdio, not for http
        "#]],
        );
        entry(
            r#"{"type": "http", "url": "http://a", "headers": {"Authorization": "Bearer sk-1"}}"#,
            &expect![[r#"
            error: the server "s" is refused: `headers` has a value of Authorization that contains no reference: write secret://NAME or {{NAME}}
        "#]],
        );
        entry(
            r#"{"type": "stdio", "command": "x", "env": {"A": 1.5}}"#,
            &expect![[r#"
                error: the server "s" has a member env that is not an object of strings, truth values and whole numbers
            "#]],
        );
        entry(
            "{}",
            &expect![[r#"
            error: the server "s" has no type, no command and no url
        "#]],
        );
    }
}
