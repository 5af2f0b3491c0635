//! Conversations that go on with another provider: what one provider signed never reaches another one.

use atlas_model::{Message, Part, Request, Role, ToolResult};
use serde_json::{Value, json};

use super::{ask, clock, decode, typed, weather};
use crate::anthropic::Anthropic;
use crate::auth::Auth;
use crate::bedrock::{Access, Bedrock};
use crate::cohere::Cohere;
use crate::gemini::Gemini;
use crate::ollama::Ollama;
use crate::openai::{Chat, Responses};
use crate::vertex::VertexAi;
use crate::{Endpoint, Event, Protocol, Secret};

/// A provider and what it answers.
struct Speaker {
    name: &'static str,
    protocol: Box<dyn Protocol>,
    /// A whole answer with a call and, where the provider signs, reasoning with the signature `SIGNED`.
    answer: String,
}

fn speakers() -> Vec<Speaker> {
    let key = || Auth::Key("key".into());
    let secret = || Secret::from("key");
    let chat = json!({"choices": [{"message": {
        "content": "Done.",
        "reasoning": "Hm.",
        "reasoning_details": [{"type": "reasoning.encrypted", "data": "SIGNED"}],
        "tool_calls": [{"id": "a", "function": {"name": "weather", "arguments": "{}"}}],
    }, "finish_reason": "tool_calls"}]});
    let responses = json!({"id": "r", "status": "completed", "output": [
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "SIGNED"},
        {"type": "function_call", "id": "fc", "call_id": "a", "name": "weather", "arguments": "{}"},
    ]});
    let ollama = json!({"model": "m", "done": true, "done_reason": "stop", "message": {
        "role": "assistant",
        "content": "Done.",
        "thinking": "Hm.",
        "tool_calls": [{"function": {"name": "weather", "arguments": {}}}],
    }});
    let gemini = json!({"candidates": [{"finishReason": "STOP", "content": {"parts": [
        {"text": "Hm.", "thought": true, "thoughtSignature": "SIGNED"},
        {"functionCall": {"name": "weather", "args": {}}, "thoughtSignature": "SIGNED"},
        {"text": "Done.", "thoughtSignature": "SIGNED"},
    ]}}]});
    let signed = |text: &str| text.replace("c2ln", "SIGNED").replace("cmVk", "SIGNED");
    let bedrock = Bedrock { access: Access::Bearer(secret()), region: "eu-central-1".into() };
    let speaker = |name, protocol, answer| Speaker { name, protocol, answer };
    vec![
        speaker("chat", Box::new(Chat::openai(secret())), chat.to_string()),
        speaker("responses", Box::new(Responses::openai(secret())), responses.to_string()),
        speaker("ollama", Box::<Ollama>::default(), ollama.to_string()),
        speaker(
            "anthropic",
            Box::new(Anthropic { auth: key() }),
            signed(include_str!("../anthropic/tests/whole.json")),
        ),
        speaker("gemini", Box::new(Gemini { auth: key() }), gemini.to_string()),
        speaker("bedrock", Box::new(bedrock), signed(include_str!("../bedrock/tests/whole.json"))),
        speaker("cohere", Box::new(Cohere { auth: key() }), include_str!("../cohere/tests/whole.json").to_owned()),
    ]
}

/// The conversation after an answer, with a result for each of its calls.
fn after(speaker: &Speaker) -> Request {
    let (events, error) =
        decode(speaker.protocol.decoder(&ask("hi"), &typed("application/json")), speaker.answer.as_bytes(), &[]);
    assert_eq!(error, None, "{}", speaker.name);
    let Some(Event::Answer(answer)) = events.last() else { panic!("an answer") };
    let result = |call: &atlas_model::ToolCall| {
        let (call, name) = (call.id.clone(), call.name.clone());
        Part::ToolResult(ToolResult { call, name, content: "sunny".into(), error: false })
    };
    let mut request = ask("hi");
    request.messages.push(answer.message());
    request.messages.push(Message { role: Role::User, parts: answer.tool_calls().map(result).collect() });
    request.tools = vec![weather(), clock()];
    request
}

fn body(protocol: &dyn Protocol, request: &Request) -> String {
    let parts = protocol.encode(&Endpoint::default(), request).expect("encoded");
    serde_json::from_slice::<Value>(&parts.body).expect("JSON").to_string()
}

#[test]
fn signatures_reach_their_own_provider_alone() {
    let speakers = speakers();
    for from in &speakers {
        let request = after(from);
        for to in &speakers {
            let body = body(&*to.protocol, &request);
            let expected = from.name == to.name && from.answer.contains("SIGNED");
            assert_eq!(body.contains("SIGNED"), expected, "from {} to {}: {body}", from.name, to.name);
            assert!(body.contains("weather") && body.contains("sunny"), "from {} to {}: {body}", from.name, to.name);
        }
    }
}

#[test]
fn claude_and_gemini_are_the_same_at_vertex_ai() {
    let vertex = |model: &str, mut request: Request| {
        request.model = model.into();
        let vertex = VertexAi { project: "p".into(), location: "global".into(), auth: Auth::None, quota_project: None };
        body(&vertex, &request)
    };
    for from in speakers() {
        let request = after(&from);
        assert_eq!(vertex("claude-x", request.clone()).contains("SIGNED"), from.name == "anthropic", "{}", from.name);
        assert_eq!(vertex("gemini-x", request).contains("SIGNED"), from.name == "gemini", "{}", from.name);
    }
}
