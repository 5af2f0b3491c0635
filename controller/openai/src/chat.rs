//! `POST /v1/chat/completions`.

mod chunks;
mod messages;
#[cfg(test)]
mod tests;

use atlas_model::{Answer, Part, Request, Stop};
use serde_json::{Map, Value, json};

pub use chunks::Chunks;
pub(crate) use messages::{CALL_ID_BYTES_MAX, MESSAGES_MAX, PARTS_MAX, parsed};

use crate::body::{self, Node};
use crate::settings::{self, Layout};
use crate::{AnswerMeta, Dialogue, WireError, dialogue, parameters, pieces, usage};

/// A request that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChatRequest {
    /// The model or agent, as the client names it.
    pub model: String,
    /// The request without `model` and `stream`: what goes into the job ([`job_input`](crate::job_input)).
    pub request: Request,
    /// Whether the client wants chunks.
    pub stream: bool,
    /// Whether the last chunk has the usage.
    pub include_usage: bool,
    /// The client's own user (`safety_identifier` or `user`), for records; not sent to providers.
    pub user: Option<String>,
    /// At most 16 texts of the client, for records; not sent to providers.
    pub metadata: Map<String, Value>,
}

/// Reads a body. Errors name the member that is wrong.
pub fn read(body: &[u8]) -> Result<ChatRequest, WireError> {
    let value = body::parse(body)?;
    let root = Node::root(&value);
    let extra = parameters::admit(root.object()?, parameters::CHAT)?;
    let model = settings::model(&root)?;
    let (system, messages) = messages::read(&root.required("messages")?)?;
    let mut request = Request { system, messages: messages.into(), extra, ..Request::default() };
    settings::sampling(&root, &mut request)?;
    request.top_k = settings::tokens(&root, "top_k")?;
    request.max_tokens = limit(&root)?;
    request.stop = settings::stop(&root)?;
    request.reasoning_effort = settings::effort(root.member("reasoning_effort"))?;
    settings::tools(&root, Layout::Nested("function"), &mut request)?;
    request.output = settings::format(root.member("response_format").as_ref(), Layout::Nested("json_schema"))?;
    let (stream, include_usage) = settings::stream(&root)?;
    let (user, metadata) = (settings::user(&root)?, settings::metadata(&root)?);
    Ok(ChatRequest { model, request, stream, include_usage, user, metadata })
}

/// The limit of the answer, which has two names.
fn limit(root: &Node<'_>) -> Result<Option<u32>, WireError> {
    let (old, new) = (settings::tokens(root, "max_tokens")?, settings::tokens(root, "max_completion_tokens")?);
    if old.is_some() && new.is_some() {
        let text = "max_tokens and max_completion_tokens mean the same; send one of them";
        return Err(WireError::invalid(text).at("max_tokens"));
    }
    Ok(new.or(old))
}

impl ChatRequest {
    /// Refuses what an agent behind the name of a model cannot follow.
    pub fn check_for_agent(&self) -> Result<(), WireError> {
        dialogue::check(&self.request, "messages", "response_format")
    }

    /// The messages for an agent, once [`ChatRequest::check_for_agent`] has accepted the request.
    pub fn said(&self) -> Dialogue {
        Dialogue::of(&self.request)
    }
}

/// The answer as one value.
pub fn whole(answer: &Answer, meta: &AnswerMeta) -> Value {
    let text = answer.text();
    let calls: Vec<Value> = answer.tool_calls().map(call).collect();
    let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { Value::from(text) };
    let mut message = json!({ "role": "assistant", "content": content, "refusal": null });
    let reasoning = pieces::reasoning(answer);
    if !reasoning.is_empty() {
        message[REASONING] = reasoning.into();
    }
    // Clients take an empty list, or null, for calls.
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({
        "id": meta.id,
        "object": "chat.completion",
        "created": meta.created,
        "model": meta.model,
        "choices": [{
            "index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(answer),
        }],
        "usage": usage::completion(&answer.usage),
    })
}

/// The member of a message with the reasoning of the model, which many clients read and send back. OpenAI has none.
const REASONING: &str = "reasoning_content";
/// The member of a call with what providers want back unchanged, and the member of that for Atlas. OpenAI has none; Gemini has one of this name.
const EXTRA: &str = "extra_content";
const OURS: &str = "atlas";

fn call(call: &atlas_model::ToolCall) -> Value {
    let mut value = json!({
        "id": call.id, "type": "function",
        "function": { "name": call.name, "arguments": pieces::arguments(&call.arguments) },
    });
    if !call.opaque.is_null() {
        value[EXTRA] = json!({ OURS: call.opaque });
    }
    value
}

/// Why the answer ended, in a word that clients know.
pub(crate) fn finish_reason(answer: &Answer) -> &'static str {
    let has_calls = answer.parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    match &answer.stop {
        Stop::Length => "length",
        Stop::Refused => "content_filter",
        _ if has_calls => "tool_calls",
        Stop::End | Stop::Text | Stop::Tools | Stop::Other(_) => "stop",
    }
}
