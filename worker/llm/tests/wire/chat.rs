//! What a strict server of OpenAI's chat completions accepts, and pieces of its answers.

use std::collections::BTreeSet;
use std::time::Duration;

use atlas_http::Proxy;
use atlas_llm::client::{Backend, Http, Target};
use atlas_llm::{Endpoint, openai};
use atlas_model::Purpose;
use serde_json::{Value, json};

use crate::server::Seen;
use crate::strict::ensure;

/// The key that clients of these tests send.
pub(crate) const KEY: &str = "sk-canary-0123456789abcdef";

/// Where the server of these tests is.
pub(crate) const HOST: &str = "localhost:1";

const MEMBERS: [&str; 14] = [
    "model",
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "stop",
    "reasoning_effort",
    "tools",
    "tool_choice",
    "response_format",
    "stream",
    "stream_options",
    "seed",
];

/// A target at [`HOST`].
pub(crate) fn target() -> Target {
    let http = Http {
        protocol: std::sync::Arc::new(openai::Chat::openai(KEY.into())),
        endpoint: Endpoint { base_url: format!("http://{HOST}/v1"), headers: Vec::new() },
        patches: Vec::new(),
        proxy: Proxy::Direct,
        login: None,
        plain: false,
        read_timeout: Duration::from_secs(20),
    };
    Target {
        name: "small".to_owned(),
        model: "gpt-test".to_owned(),
        backend: Backend::Http(Box::new(http)),
        purpose: Purpose::Chat,
        stream: true,
        timeout: Duration::from_secs(60),
        attempts: 3,
        deadline: Duration::from_secs(600),
        context_window: None,
        output_tokens_max: None,
        capabilities: None,
        gate: None,
    }
}

/// A chunk of a stream with a piece of text.
pub(crate) fn text(piece: &str) -> Value {
    json!({"id": "c", "model": "gpt-test-1", "choices": [{"index": 0, "delta": {"content": piece}}]})
}

/// The last chunk of a stream.
pub(crate) fn finish() -> Value {
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 2});
    json!({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": usage})
}

/// A whole answer.
pub(crate) fn whole(content: &str) -> Value {
    let message = json!({"role": "assistant", "content": content});
    json!({"id": "c", "model": "gpt-test-1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
}

/// Refuses requests that OpenAI would refuse, and some that it would let pass.
pub(crate) fn strict(seen: &Seen) -> Result<(), String> {
    let header = |name: &str| seen.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    ensure(seen.method == "POST" && seen.uri.path() == "/v1/chat/completions", "method or path")?;
    ensure(header("authorization") == format!("Bearer {KEY}"), "authorization")?;
    ensure(header("content-type") == "application/json", "content-type")?;
    ensure(header("user-agent").starts_with("atlas/"), "user-agent")?;
    let body = seen.body.as_object().ok_or("the body is no object")?;
    for (name, value) in body {
        ensure(MEMBERS.contains(&name.as_str()), &format!("unknown member {name}"))?;
        ensure(!value.is_null(), &format!("{name} is null"))?;
    }
    // OpenAI's models that reason refuse these.
    if body["model"].as_str().is_some_and(|model| model.starts_with("gpt-5")) {
        ensure(["max_tokens", "temperature", "top_p"].iter().all(|name| !body.contains_key(*name)), "a setting")?;
    }
    ensure(body.contains_key("stream") || !body.contains_key("stream_options"), "stream_options without stream")?;
    ensure(body.contains_key("tools") || !body.contains_key("tool_choice"), "tool_choice without tools")?;
    for tool in body.get("tools").and_then(Value::as_array).into_iter().flatten() {
        ensure(tool["type"] == "function" && tool["function"]["parameters"]["type"] == "object", "a tool")?;
    }
    messages(body["messages"].as_array().ok_or("messages are no list")?)
}

/// Every call has exactly one result, right after it.
fn messages(messages: &[Value]) -> Result<(), String> {
    let mut open: BTreeSet<String> = BTreeSet::new();
    for message in messages {
        let text = |value: &Value| value.as_str().map(str::to_owned).ok_or("a text is missing".to_owned());
        match message["role"].as_str() {
            Some("tool") => {
                let id = text(&message["tool_call_id"])?;
                ensure(open.remove(&id), &format!("a result for {id}, which nobody called"))?;
                text(&message["content"])?;
            }
            Some("assistant") => {
                ensure(open.is_empty(), "a call without a result")?;
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let arguments: Value = serde_json::from_str(&text(&call["function"]["arguments"])?)
                        .map_err(|error| error.to_string())?;
                    ensure(arguments.is_object(), "arguments are no object")?;
                    ensure(open.insert(text(&call["id"])?), "an id twice")?;
                }
            }
            Some("system" | "user") => ensure(open.is_empty(), "a call without a result")?,
            _ => return Err("an unknown role".to_owned()),
        }
    }
    ensure(open.is_empty(), "a call without a result")
}
