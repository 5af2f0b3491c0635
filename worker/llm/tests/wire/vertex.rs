//! Vertex AI with a strict server, for the protocol of each publisher.

use std::sync::Arc;

use atlas_llm::auth::Auth;
use atlas_llm::vertex::VertexAi;
use serde_json::json;

use crate::server::{Check, Reply, Seen};
use crate::talk::{KEY, Provider, body, converse, ensure, header};
use crate::{anthropic, gemini};

fn provider(model: &'static str, strict: Check) -> Provider {
    let protocol = VertexAi {
        project: "my-project".into(),
        location: "global".into(),
        auth: Auth::Bearer(KEY.into()),
        quota_project: None,
    };
    Provider { protocol: Arc::new(protocol), path: "/v1", model, strict }
}

fn path(publisher: &str) -> String {
    format!("/v1/projects/my-project/locations/global/publishers/{publisher}")
}

fn bearer(seen: &Seen) -> Result<(), String> {
    ensure(header(seen, "authorization") == format!("Bearer {KEY}"), "authorization")
}

fn claude(seen: &Seen) -> Result<(), String> {
    bearer(seen)?;
    let known = ["anthropic_version", "max_tokens", "messages", "system", "tools", "stream"];
    let body = body(seen, &path("anthropic/models/claude-test:streamRawPredict"), &known)?;
    ensure(body["anthropic_version"] == "vertex-2023-10-16" && body["stream"] == true, "version or stream")?;
    anthropic::messages(body)
}

fn google(seen: &Seen) -> Result<(), String> {
    bearer(seen)?;
    let known = ["contents", "systemInstruction", "tools"];
    gemini::contents(body(seen, &path("google/models/gemini-test:generateContent"), &known)?)
}

fn mistral(seen: &Seen) -> Result<(), String> {
    bearer(seen)?;
    let known = ["model", "messages", "tools", "stream"];
    body(seen, &path("mistralai/models/mistral-test:streamRawPredict"), &known).map(drop)
}

#[test]
fn conversations_with_the_models_of_each_publisher() {
    converse(&provider("claude-test", claude), true, anthropic::streams());
    converse(&provider("gemini-test", google), false, gemini::answers().map(|answer| Reply::json(200, &answer)));
    let call = |id: &str, name: &str| json!({"id": id, "function": {"name": name, "arguments": "{}"}});
    let chunk = |delta: serde_json::Value, reason: &str| {
        let usage = json!({"prompt_tokens": 3, "completion_tokens": 2});
        Reply::events(&[json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}], "usage": usage})])
    };
    let calls = json!({"tool_calls": [call("a", "weather"), call("b", "clock")]});
    let replies = [chunk(calls, "tool_calls"), chunk(json!({"content": "Sunny."}), "stop")];
    converse(&provider("mistral-test", mistral), true, replies);
}
