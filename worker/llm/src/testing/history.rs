//! Parts of a conversation that a provider would refuse as another one wrote them: blank texts, and ids of calls.

use std::collections::BTreeSet;

use atlas_model::{Message, Part, Request, Role, ToolCall, ToolResult};
use serde_json::{Value, json};

use super::ask;
use crate::anthropic::Anthropic;
use crate::auth::Auth;
use crate::bedrock::{Access, Bedrock};
use crate::openai::{Chat, Responses};
use crate::vertex::VertexAi;
use crate::{Endpoint, Protocol};

fn anthropic() -> Anthropic {
    Anthropic { auth: Auth::Key("key".into()) }
}

fn bedrock() -> Bedrock {
    Bedrock { access: Access::Bearer("key".into()), region: "eu-central-1".into() }
}

fn call(id: &str) -> Part {
    Part::ToolCall(ToolCall { id: id.into(), name: "f".into(), arguments: json!({}), opaque: Value::Null })
}

fn result(id: &str, content: &str) -> Part {
    Part::ToolResult(ToolResult { call: id.into(), name: "f".into(), content: content.into(), error: false })
}

fn text(text: &str) -> Part {
    Part::Text { text: text.into() }
}

fn message(role: Role, parts: Vec<Part>) -> Message {
    Message { role, parts }
}

fn body(protocol: &dyn Protocol, request: &Request) -> Value {
    let parts = protocol.encode(&Endpoint::default(), request).expect("encoded");
    serde_json::from_slice(&parts.body).expect("JSON")
}

/// All texts at members of the name, at any depth.
fn found<'a>(value: &'a Value, name: &str, texts: &mut Vec<&'a str>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                texts.extend(value.as_str().filter(|_| key == name));
                found(value, name, texts);
            }
        }
        Value::Array(list) => list.iter().for_each(|value| found(value, name, texts)),
        _ => {}
    }
}

fn all<'a>(value: &'a Value, name: &str) -> Vec<&'a str> {
    let mut texts = Vec::new();
    found(value, name, &mut texts);
    texts
}

#[test]
fn blank_texts_are_not_sent() {
    let mut request = ask("hi");
    request.system = " \n".into();
    request.messages.extend([
        message(Role::Assistant, vec![text("\n\n"), call("a")]),
        message(Role::User, vec![result("a", "\n"), text(" ")]),
        message(Role::Assistant, vec![text("\n\n")]),
        message(Role::User, vec![text("go on")]),
    ]);
    let vertex = VertexAi { project: "p".into(), location: "global".into(), auth: Auth::None, quota_project: None };
    let claude = Request { model: "claude-x".into(), ..request.clone() };
    let bodies = [body(&anthropic(), &request), body(&bedrock(), &request), body(&vertex, &claude)];
    for body in &bodies {
        for name in ["text", "content"] {
            let texts = all(body, name);
            assert!(texts.iter().all(|text| !text.trim().is_empty()), "{body}");
        }
        assert_eq!(body.get("system"), None);
        assert!(body.to_string().contains("go on"));
    }
    // Bedrock wants the sides to take turns.
    let roles = all(&bodies[1], "role");
    assert_eq!(roles, ["user", "assistant", "user"]);
}

#[test]
fn ids_take_the_form_of_the_provider() {
    let ids = ["call_1_0", "call_1_1", "call.1.1", "abcDEF123", "functions.weather:0", &"x".repeat(70), "", "é"];
    let mut request = ask("hi");
    let calls = ids.iter().map(|id| call(id)).collect();
    request.messages.push(message(Role::Assistant, calls));
    request.messages.push(message(Role::User, ids.iter().map(|id| result(id, "1")).collect()));
    let is_word = |id: &str| crate::names::is_legal(id);
    let is_nine = |id: &str| id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric());
    let is_short = |id: &str| (1..=64).contains(&id.len());
    let mistral = Request { model: "mistralai/mistral-large".into(), ..request.clone() };
    type Legal<'a> = &'a dyn Fn(&str) -> bool;
    let protocols: [(Value, [&str; 2], Legal<'_>); 5] = [
        (body(&Chat::compatible("mistral", None), &request), ["id", "tool_call_id"], &is_nine),
        (body(&Chat::compatible("", None), &mistral), ["id", "tool_call_id"], &is_nine),
        (body(&Responses::default(), &request), ["call_id", "call_id"], &is_short),
        (body(&anthropic(), &request), ["id", "tool_use_id"], &is_word),
        (body(&bedrock(), &request), ["toolUseId", "toolUseId"], &is_word),
    ];
    for (body, [of_call, of_result], is_legal) in &protocols {
        let (mut calls, mut results) = (all(body, of_call), all(body, of_result));
        if of_call == of_result {
            results = calls.split_off(ids.len());
        }
        assert_eq!(calls, results, "a result has the id of its call");
        assert_eq!(calls.iter().collect::<BTreeSet<_>>().len(), ids.len(), "different ids stay different");
        assert!(calls.iter().all(|id| is_legal(id)), "{calls:?}");
    }
    // What is legal stays as it is.
    assert!(all(&protocols[0].0, "id").contains(&"abcDEF123"));
    assert!(all(&protocols[3].0, "id").contains(&"call_1_0"));
    let short = all(&body(&Chat::default(), &request), "id").len();
    assert_eq!(short, ids.len());
}
