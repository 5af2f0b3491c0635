//! The messages: JSON-RPC 2.0, without batches.

use serde_json::{Map, Value, json};

/// A malformed document.
pub(super) const PARSE_ERROR: i32 = -32700;
/// A document that is no message, or is not expected now.
pub(super) const INVALID_REQUEST: i32 = -32600;
/// No such method.
pub(super) const METHOD_NOT_FOUND: i32 = -32601;
/// Parameters that do not fit.
pub(super) const INVALID_PARAMS: i32 = -32602;
/// The server failed.
pub(super) const INTERNAL_ERROR: i32 = -32603;

/// The protocol's versions that are served, the newest first.
pub(super) const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// A message of the client.
#[derive(Debug, PartialEq)]
pub(super) enum Message {
    Request {
        id: Value,
        method: String,
        params: Map<String, Value>,
    },
    /// The client does not want the answer to an earlier request any more.
    Cancelled {
        request: Value,
    },
    /// Another notification, or an answer to a question that this server never asks.
    Other,
}

/// An error of the protocol.
#[derive(Debug, PartialEq)]
pub(super) struct RpcError {
    pub(super) code: i32,
    pub(super) text: String,
}

impl RpcError {
    pub(super) fn new(code: i32, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// The message that says so. Errors that belong to no request have the id of the official server.
    pub(super) fn answer(&self, id: Option<&Value>) -> Value {
        let id = id.cloned().unwrap_or_else(|| json!("server-error"));
        json!({ "jsonrpc": "2.0", "id": id, "error": { "code": self.code, "message": self.text } })
    }
}

/// Reads a message.
pub(super) fn read(bytes: &[u8]) -> Result<Message, RpcError> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| RpcError::new(PARSE_ERROR, format!("Parse error: {error}")))?;
    let invalid = |why: &str| RpcError::new(INVALID_PARAMS, format!("Validation error: {why}"));
    let Value::Object(mut message) = value else { return Err(invalid("a message is an object")) };
    if message.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(invalid("'jsonrpc' is \"2.0\""));
    }
    let mut params = match message.remove("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(invalid("'params' is an object")),
    };
    match (message.remove("method"), message.remove("id")) {
        (Some(Value::String(method)), Some(id)) if is_id(&id) => Ok(Message::Request { id, method, params }),
        (Some(Value::String(method)), None) if method == "notifications/cancelled" => {
            let request = params.remove("requestId").filter(is_id);
            Ok(request.map_or(Message::Other, |request| Message::Cancelled { request }))
        }
        (Some(Value::String(_)), None) => Ok(Message::Other),
        (Some(Value::String(_)), Some(_)) => Err(invalid("'id' is a text or a whole number")),
        (None, Some(_)) if message.contains_key("result") || message.contains_key("error") => Ok(Message::Other),
        _ => Err(invalid("'method' is a text")),
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_i64() || id.is_u64()
}

/// The answer of a server to a client that opens a session.
pub(super) fn initialized(params: &Map<String, Value>) -> Result<Value, RpcError> {
    let wanted = params.get("protocolVersion").and_then(Value::as_str);
    let wanted = wanted.ok_or_else(|| RpcError::new(INVALID_PARAMS, "Invalid request parameters"))?;
    let version = VERSIONS.into_iter().find(|version| *version == wanted).unwrap_or(VERSIONS[0]);
    Ok(json!({
        "protocolVersion": version,
        "capabilities": { "experimental": {}, "tools": { "listChanged": false } },
        "serverInfo": { "name": "atlas", "version": env!("CARGO_PKG_VERSION") },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Option<i32> {
        read(text.as_bytes()).err().map(|error| error.code)
    }

    #[test]
    fn messages_are_told_apart() {
        let request = read(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).expect("a request");
        assert_eq!(request, Message::Request { id: json!(1), method: "ping".to_owned(), params: Map::new() });
        assert_eq!(read(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#), Ok(Message::Other));
        assert_eq!(read(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Ok(Message::Other));
        let cancelled =
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a","reason":"x"}}"#;
        assert_eq!(read(cancelled), Ok(Message::Cancelled { request: json!("a") }));
        assert_eq!(read(br#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#), Ok(Message::Other));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        assert_eq!(code("{"), Some(PARSE_ERROR));
        for text in [
            "[]",
            "1",
            "{}",
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
        ] {
            assert_eq!(code(text), Some(INVALID_PARAMS), "{text}");
        }
    }

    #[test]
    fn an_unknown_version_gets_the_newest() {
        let agreed = |version: &str| {
            let params = Map::from_iter([("protocolVersion".to_owned(), json!(version))]);
            initialized(&params).expect("an answer")["protocolVersion"].clone()
        };
        assert_eq!(agreed("2025-03-26"), "2025-03-26");
        assert_eq!(agreed("1999-01-01"), "2025-11-25");
        assert!(initialized(&Map::new()).is_err());
    }
}
