//! What a bridge has to know of a JSON-RPC message: whether it wants an answer, and the headers that HTTP asks for beside it.

use serde_json::{Value, json};

/// The version from which on there are no sessions and each request names its version.
const STATELESS: &str = "2026-07-28";

/// A message of the client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Envelope {
    /// None for notifications, and for answers of the client to requests of the server.
    pub(crate) id: Option<Value>,
    /// Empty for answers.
    pub(crate) method: String,
    /// The version that the message itself names.
    version: Option<String>,
    /// What the message is about: a tool, a prompt or a resource.
    name: Option<String>,
}

impl Envelope {
    /// Reads a line. The error is the answer to the client.
    pub(crate) fn read(line: &str) -> Result<Self, Value> {
        let refused = |code: i32, text: &str| failure(&Value::Null, code, text);
        let message: Value =
            serde_json::from_str(line).map_err(|error| refused(-32700, &format!("the line is not JSON: {error}")))?;
        if !message.is_object() || message["jsonrpc"] != "2.0" {
            return Err(refused(-32600, "the line is not one JSON-RPC 2.0 message"));
        }
        let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let method = text("/method").unwrap_or_default();
        let id = message.get("id").filter(|_| !method.is_empty()).cloned();
        let version = text("/params/_meta/io.modelcontextprotocol~1protocolVersion");
        Ok(Self { id, method, version, name: text("/params/name").or_else(|| text("/params/uri")) })
    }

    /// Whether the message opens a session.
    pub(crate) fn is_initialize(&self) -> bool {
        self.method == "initialize"
    }

    /// Whether the message belongs to no session.
    pub(crate) fn is_stateless(&self) -> bool {
        self.version.as_deref().is_some_and(|version| version >= STATELESS)
    }

    /// The headers of the message.
    pub(crate) fn headers(&self, session: Option<&Session>) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        match (&self.version, session) {
            (Some(version), _) if self.is_stateless() => {
                headers.push(("mcp-protocol-version", version.clone()));
                headers.push(("mcp-method", self.method.clone()));
                headers.extend(self.name.clone().map(|name| ("mcp-name", name)));
            }
            (_, Some(session)) if !self.is_initialize() => headers.extend(session.headers()),
            _ => {}
        }
        headers
    }
}

/// An open session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Session {
    pub(crate) id: String,
    /// The version that was agreed on.
    pub(crate) version: String,
}

impl Session {
    /// The headers of every message in the session.
    pub(crate) fn headers(&self) -> Vec<(&'static str, String)> {
        vec![("mcp-session-id", self.id.clone()), ("mcp-protocol-version", self.version.clone())]
    }
}

/// An error as an answer.
pub(crate) fn failure(id: &Value, code: i32, text: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(line: &str, session: Option<&Session>) -> String {
        let envelope = Envelope::read(line).expect("a message");
        let headers = envelope.headers(session).into_iter().map(|(name, value)| format!("{name}: {value}"));
        headers.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_message_of_a_session_names_it() {
        let session = Session { id: "s1".into(), version: "2025-11-25".into() };
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
        assert_eq!(headers(initialize, Some(&session)), "");
        let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"agent_run"}}"#;
        assert_eq!(headers(call, Some(&session)), "mcp-session-id: s1; mcp-protocol-version: 2025-11-25");
        assert_eq!(headers(call, None), "");
    }

    #[test]
    fn a_message_without_a_session_says_what_it_is_about() {
        let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"agent_run",
            "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        let session = Session { id: "s1".into(), version: "2025-11-25".into() };
        assert_eq!(
            headers(call, Some(&session)),
            "mcp-protocol-version: 2026-07-28; mcp-method: tools/call; mcp-name: agent_run"
        );
    }

    #[test]
    fn answers_and_notifications_want_no_answer() {
        let id = |line: &str| Envelope::read(line).expect("a message").id;
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#), None);
        assert_eq!(id(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), None);
        assert_eq!(id(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#), Some(json!("a")));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        let code = |line: &str| Envelope::read(line).expect_err("refused")["error"]["code"].clone();
        assert_eq!(code("{"), json!(-32700));
        assert_eq!(code("[]"), json!(-32600));
        assert_eq!(code(r#"{"id":1,"method":"ping"}"#), json!(-32600));
    }
}
