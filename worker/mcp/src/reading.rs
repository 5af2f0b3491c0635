//! Reads what servers send before `rmcp` does, which refuses a whole message for one member that it does not know. What is malformed is
//! replaced by a text that says what it was, and an answer reaches the request that it belongs to.

mod content;
mod listing;

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, NumberOrString, RequestId, ServerJsonRpcMessage,
};
use serde_json::{Map, Value, json};

pub(crate) use self::listing::left_out;

/// The code of an error whose own one cannot be read.
const ERROR_CODE: i64 = -32_603;
/// Most messages in one batch.
const BATCH_MAX: usize = 256;

/// What a request asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A page of tools.
    Tools,
    /// The result of a tool.
    Call,
    Other,
}

impl Kind {
    /// What a result of this form answers.
    fn by_form(result: &Value) -> Self {
        match result {
            Value::Object(members) if members.contains_key("tools") => Self::Tools,
            Value::Object(members) if members.contains_key("content") => Self::Call,
            _ => Self::Other,
        }
    }
}

/// A request that waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Awaited {
    pub(crate) id: RequestId,
    pub(crate) kind: Kind,
}

impl Awaited {
    /// The request in a message of this side.
    pub(crate) fn of(message: &ClientJsonRpcMessage) -> Option<Self> {
        let ClientJsonRpcMessage::Request(request) = message else { return None };
        let kind = match &request.request {
            ClientRequest::ListToolsRequest(_) => Kind::Tools,
            ClientRequest::CallToolRequest(_) => Kind::Call,
            _ => Kind::Other,
        };
        Some(Self { id: request.id.clone(), kind })
    }
}

/// The request for which nobody waits any more after this message.
pub(crate) fn cancelled(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    match message {
        ClientJsonRpcMessage::Notification(notification) => match &notification.notification {
            ClientNotification::CancelledNotification(cancelled) => cancelled.params.request_id.as_ref(),
            _ => None,
        },
        _ => None,
    }
}

/// The messages in a text: one, or those of a batch. `whose` finds the request of an answer by its id, which is null if there is none.
/// What is no message is skipped.
pub(crate) fn messages(text: &[u8], whose: &dyn Fn(&Value) -> Option<Awaited>) -> Vec<ServerJsonRpcMessage> {
    items(text).into_iter().filter_map(|one| message(one, whose)).collect()
}

fn items(text: &[u8]) -> Vec<Value> {
    let Ok(read) = serde_json::from_slice::<Value>(text) else {
        tracing::debug!("something without JSON from an MCP server is skipped");
        return Vec::new();
    };
    match read {
        Value::Array(mut batch) => {
            batch.truncate(BATCH_MAX);
            batch
        }
        one => vec![one],
    }
}

/// The messages in what a server sends for one request: answers to others are skipped. One without an id, or with an id that this side
/// has not sent, is the answer to the request, if none with its own id stands beside it. `last` is the largest id sent so far.
pub(crate) fn messages_for(text: &[u8], awaited: &Awaited, last: i64) -> Vec<ServerJsonRpcMessage> {
    let items = items(text);
    let is_own = items.iter().any(|item| is_answer_to(item, awaited));
    let is_for = |item: &Value| match id_of(&item["id"]) {
        _ if item.get("method").is_some() => true,
        Some(id) if id == awaited.id => true,
        _ if is_own => false,
        Some(RequestId::Number(other @ 0..)) => other > last,
        _ => true,
    };
    items.into_iter().filter(is_for).filter_map(|item| message(item, &|_| Some(awaited.clone()))).collect()
}

/// The answer among these messages.
pub(crate) fn answer(text: &[u8], awaited: &Awaited, last: i64) -> Option<ServerJsonRpcMessage> {
    let is_answer = |message: &ServerJsonRpcMessage| {
        matches!(message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
    };
    messages_for(text, awaited, last).into_iter().find(is_answer)
}

/// Whether a text has an answer with the request's own id.
pub(crate) fn answers(text: &[u8], awaited: &Awaited) -> bool {
    items(text).iter().any(|item| is_answer_to(item, awaited))
}

fn is_answer_to(item: &Value, awaited: &Awaited) -> bool {
    let is_answer = ["error", "result"].iter().any(|name| item.get(*name).is_some());
    is_answer && item.get("method").is_none() && id_of(&item["id"]).is_some_and(|id| id == awaited.id)
}

fn message(read: Value, whose: &dyn Fn(&Value) -> Option<Awaited>) -> Option<ServerJsonRpcMessage> {
    let Value::Object(members) = read else { return None };
    if members.contains_key("method") {
        let read = serde_json::from_value(Value::Object(members));
        return read.inspect_err(|error| tracing::debug!("a message of an MCP server is skipped: {error}")).ok();
    }
    let error = members.get("error").filter(|error| !error.is_null());
    if error.is_none() && !members.contains_key("result") {
        return None;
    }
    let id = members.get("id").unwrap_or(&Value::Null);
    let awaited = whose(id);
    let id = awaited.as_ref().map_or_else(|| id.clone(), |awaited| json!(awaited.id));
    let tidy = match error {
        Some(error) => json!({ "jsonrpc": "2.0", "id": id, "error": self::error(error) }),
        None => {
            let result = members.get("result").cloned().unwrap_or_default();
            // On a stream that was resumed nobody knows which request it answers, and its form says what it is.
            let kind = awaited.as_ref().map_or_else(|| Kind::by_form(&result), |awaited| awaited.kind);
            match tidied(kind, result) {
                Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
                Err(why) => json!({ "jsonrpc": "2.0", "id": id, "error": unreadable(&why) }),
            }
        }
    };
    serde_json::from_value(tidy).ok().or_else(|| {
        let why = unreadable("it is not what the protocol says");
        serde_json::from_value(json!({ "jsonrpc": "2.0", "id": id, "error": why })).ok()
    })
}

fn tidied(kind: Kind, result: Value) -> Result<Value, String> {
    match kind {
        Kind::Tools => listing::tidied(&result),
        Kind::Call => Ok(content::tidied(result)),
        Kind::Other => Ok(result),
    }
}

/// An error with its code and a text, whatever the server made of it.
fn error(error: &Value) -> Value {
    let members = error.as_object();
    let code = members.and_then(|members| members.get("code")).and_then(Value::as_i64);
    let code = code.filter(|code| i32::try_from(*code).is_ok()).unwrap_or(ERROR_CODE);
    let message = match (error, members.and_then(|members| members.get("message"))) {
        (_, Some(Value::String(message))) if !message.is_empty() => message.clone(),
        (Value::String(message), _) => message.clone(),
        (other, _) => other.to_string(),
    };
    let mut tidy = Map::from_iter([("code".to_owned(), json!(code)), ("message".to_owned(), json!(message))]);
    if let Some(data) = members.and_then(|members| members.get("data")) {
        tidy.insert("data".to_owned(), data.clone());
    }
    Value::Object(tidy)
}

fn unreadable(why: &str) -> Value {
    json!({ "code": ERROR_CODE, "message": format!("the answer cannot be read: {why}") })
}

/// An id as a server sent it: a number, or a text, also one that holds a number.
pub(crate) fn id_of(id: &Value) -> Option<RequestId> {
    match id {
        Value::Number(number) => number.as_i64().map(NumberOrString::Number),
        Value::String(text) => {
            Some(text.parse().map_or_else(|_| NumberOrString::String(text.as_str().into()), NumberOrString::Number))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn awaited(kind: Kind) -> Awaited {
        Awaited { id: NumberOrString::Number(7), kind }
    }

    fn told(kind: Kind, text: &str) -> Option<String> {
        answer(text.as_bytes(), &awaited(kind), 9).map(|message| serde_json::to_string(&message).expect("JSON"))
    }

    #[test]
    fn an_answer_belongs_to_its_request_whatever_its_id_is() {
        let wanted = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no session"}}"#;
        for id in ["null", "7", "\"7\"", "99", "\"server-error\"", "{}", "1.5"] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"no session"}}}}"#);
            assert_eq!(told(Kind::Call, &text).as_deref(), Some(wanted), "{id}");
        }
        let bare = r#"{"error":{"code":-32000,"message":"no session"},"result":null}"#;
        assert_eq!(told(Kind::Call, bare).as_deref(), Some(wanted));
    }

    #[test]
    fn an_answer_to_another_request_is_not_that_of_this_one() {
        let result = |text: &str| {
            let told: Value = serde_json::from_str(&told(Kind::Other, text)?).expect("JSON");
            Some((told["id"].clone(), told["result"].clone()))
        };
        let own = Some((json!(7), json!({"of": 7})));
        for other in ["3", "\"3\"", "null", "99", "\"x\"", "8"] {
            let text = format!(r#"[{{"id":{other},"result":{{"of":3}}}},{{"id":7,"result":{{"of":7}}}}]"#);
            assert_eq!(result(&text), own, "{other}");
        }
        for other in ["3", "8", "\"9\"", "0"] {
            assert_eq!(result(&format!(r#"{{"id":{other},"result":{{}}}}"#)), None, "{other}");
        }
        assert_eq!(result(r#"[{"id":3,"result":{}},{"id":10,"result":{"of":7}}]"#), own);
    }

    #[test]
    fn errors_in_other_forms_are_read() {
        let error = |text: &str| {
            let told = told(Kind::Other, &format!(r#"{{"id":7,"error":{text}}}"#)).expect("an answer");
            serde_json::from_str::<Value>(&told).expect("JSON")["error"].clone()
        };
        assert_eq!(error(r#""broken""#), json!({"code": -32603, "message": "broken"}));
        assert_eq!(error(r#"{"code":"E1","detail":"x"}"#)["message"], r#"{"code":"E1","detail":"x"}"#);
        assert_eq!(
            error(r#"{"code":9999999999999,"message":"m","data":1}"#),
            json!({"code": -32603, "message": "m", "data": 1})
        );
    }

    #[test]
    fn what_is_no_message_is_skipped() {
        for text in ["", "ping", "[]", "1", "null", "{}", r#"{"id":7}"#, r#"{"method":7}"#] {
            assert!(messages(text.as_bytes(), &|_| None).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_batch_is_read_one_by_one() {
        let text = r#"["x", {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}, {"id": 30, "result": {}}]"#;
        assert_eq!(messages(text.as_bytes(), &|_| None).len(), 2);
        assert!(told(Kind::Other, text).expect("an answer").contains(r#""id":7"#));
    }
}
