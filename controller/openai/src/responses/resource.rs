//! A response as one value, with all members that clients expect, whatever its status.

use atlas_model::{Answer, Request, Stop, ToolChoice};
use serde_json::{Map, Value, json};

use super::Events;
use crate::body::Node;
use crate::{AnswerMeta, WireError, settings, usage};

/// How far a response is.
#[derive(Debug, Clone, Copy)]
pub enum Phase<'a> {
    /// Its job waits.
    Queued,
    /// Its job runs.
    InProgress,
    /// Its job has ended: `completed`, or `incomplete` if the answer was cut.
    Answered(&'a Answer),
    /// Its job has failed.
    Failed(&'a WireError),
    /// Its job was cancelled.
    Cancelled,
}

/// The response as one value. `echo` is [`ResponsesRequest::echo`](super::ResponsesRequest::echo).
pub fn whole(phase: Phase<'_>, meta: &AnswerMeta, echo: &Map<String, Value>) -> Value {
    match phase {
        Phase::Answered(answer) => Events::completed(answer, meta, echo),
        Phase::Queued => Resource::of("queued").write(meta, echo),
        Phase::InProgress => Resource::of("in_progress").write(meta, echo),
        Phase::Failed(error) => Resource { error: failure(error), ..Resource::of("failed") }.write(meta, echo),
        Phase::Cancelled => Resource::of("cancelled").write(meta, echo),
    }
}

/// The members that change while a response is made.
#[derive(Debug)]
pub(super) struct Resource {
    pub(super) status: &'static str,
    pub(super) output: Vec<Value>,
    /// Null, or an object with code and message.
    pub(super) error: Value,
    /// Null, or an object with a reason.
    pub(super) incomplete: Value,
    /// Null until the answer is there.
    pub(super) usage: Value,
}

impl Resource {
    pub(super) fn of(status: &'static str) -> Self {
        Self { status, output: Vec::new(), error: Value::Null, incomplete: Value::Null, usage: Value::Null }
    }

    /// The end of an answer with its items.
    pub(super) fn answered(answer: &Answer, output: Vec<Value>) -> Self {
        let reason = incomplete(answer);
        Self {
            status: if reason.is_some() { "incomplete" } else { "completed" },
            output,
            error: Value::Null,
            incomplete: reason.map_or(Value::Null, |reason| json!({ "reason": reason })),
            usage: usage::response(&answer.usage),
        }
    }

    pub(super) fn write(self, meta: &AnswerMeta, echo: &Map<String, Value>) -> Value {
        let is_completed = self.status == "completed";
        let mut response = Map::from_iter([
            ("id".to_owned(), meta.id.as_str().into()),
            ("object".to_owned(), "response".into()),
            ("created_at".to_owned(), meta.created.into()),
            ("completed_at".to_owned(), meta.completed.filter(|_| is_completed).map_or(Value::Null, Value::from)),
            ("status".to_owned(), self.status.into()),
            ("error".to_owned(), self.error),
            ("incomplete_details".to_owned(), self.incomplete),
            ("model".to_owned(), meta.model.as_str().into()),
            ("output".to_owned(), self.output.into()),
            ("usage".to_owned(), self.usage),
        ]);
        let shown = echo.iter().filter(|(name, _)| name.as_str() != SEALED);
        response.extend(shown.map(|(name, value)| (name.clone(), value.clone())));
        Value::Object(response)
    }
}

/// Why an answer was cut, if it was.
pub(super) fn incomplete(answer: &Answer) -> Option<&'static str> {
    match answer.stop {
        Stop::Length => Some("max_output_tokens"),
        Stop::Refused => Some("content_filter"),
        _ => None,
    }
}

/// An error in the words of responses, which know few codes.
pub(super) fn failure(error: &WireError) -> Value {
    let code = match error.status {
        429 => "rate_limit_exceeded",
        400..=499 => "invalid_prompt",
        _ => "server_error",
    };
    json!({ "code": code, "message": error.message })
}

/// The member of the echo that says whether the client wants sealed reasoning back. No response shows it.
const SEALED: &str = "sealed_reasoning";

/// Whether the client wants reasoning with what its provider needs to recognise it.
pub(super) fn wants_sealed(echo: &Map<String, Value>) -> bool {
    echo.get(SEALED) == Some(&Value::Bool(true))
}

/// Whether the response is made in the background.
pub(super) fn is_background(echo: &Map<String, Value>) -> bool {
    echo.get("background") == Some(&Value::Bool(true))
}

/// The members of a request that its response repeats, and the defaults of those that are absent. `request` is what was read of it.
pub(super) fn echo(root: &Node<'_>, request: &Request) -> Result<Map<String, Value>, WireError> {
    let mut echo = Map::new();
    let mut set = |name: &str, value: Value| drop(echo.insert(name.to_owned(), value));
    let given = |name: &str, default: Value| root.member(name).map_or(default, |node| node.value.clone());
    set("background", settings::flag(root, "background")?.unwrap_or_default().into());
    let conversation = super::conversation(root)?;
    set("conversation", conversation.map_or(Value::Null, |id| json!({ "id": id })));
    set("frequency_penalty", given("frequency_penalty", json!(0.0)));
    set("instructions", given("instructions", Value::Null));
    set("max_output_tokens", request.max_tokens.map_or(Value::Null, Value::from));
    set("max_tool_calls", given("max_tool_calls", Value::Null));
    set("metadata", Value::Object(settings::metadata(root)?));
    set("parallel_tool_calls", settings::flag(root, "parallel_tool_calls")?.unwrap_or(true).into());
    set("presence_penalty", given("presence_penalty", json!(0.0)));
    set("previous_response_id", given("previous_response_id", Value::Null));
    set("prompt_cache_key", given("prompt_cache_key", Value::Null));
    set("reasoning", json!({ "effort": request.reasoning_effort, "summary": null }));
    set("safety_identifier", given("safety_identifier", Value::Null));
    set("service_tier", "default".into());
    set("store", settings::flag(root, "store")?.unwrap_or(true).into());
    set("temperature", request.temperature.unwrap_or(1.0).into());
    set("text", text(root, request));
    set("tool_choice", choice(&request.tool_choice));
    set("tools", request.tools.iter().map(tool).collect());
    set("top_logprobs", json!(0));
    set("top_p", request.top_p.unwrap_or(1.0).into());
    set("truncation", "disabled".into());
    set("user", given("user", Value::Null));
    if sealed(root)? {
        set(SEALED, true.into());
    }
    Ok(echo)
}

/// Whether `include` asks for sealed reasoning. Other members concern tools that this server does not have.
fn sealed(root: &Node<'_>) -> Result<bool, WireError> {
    let mut sealed = false;
    for node in root.member("include").map(|node| node.list(64)).transpose()?.unwrap_or_default() {
        match node.text()? {
            "message.output_text.logprobs" => {
                return Err(WireError::unsupported(&node.path, "answers have no probabilities of tokens"));
            }
            word => sealed |= word == "reasoning.encrypted_content",
        }
    }
    Ok(sealed)
}

fn text(root: &Node<'_>, request: &Request) -> Value {
    let given = root.member("text");
    let format = given.as_ref().and_then(|node| node.member("format"));
    let format = match (format, &request.output) {
        (Some(node), Some(output)) if node.value["type"] == "json_schema" => json!({
            "type": "json_schema", "name": output.name, "description": node.value["description"],
            "schema": output.schema, "strict": node.value["strict"].as_bool().unwrap_or_default(),
        }),
        (Some(_), Some(_)) => json!({ "type": "json_object" }),
        _ => json!({ "type": "text" }),
    };
    let verbosity = given.and_then(|node| node.member("verbosity").map(|node| node.value.clone()));
    json!({ "format": format, "verbosity": verbosity.unwrap_or_else(|| "medium".into()) })
}

fn tool(tool: &atlas_model::Tool) -> Value {
    json!({
        "type": "function", "name": tool.name, "description": tool.description, "parameters": tool.input_schema,
        "strict": false,
    })
}

fn choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Tool(name) => json!({ "type": "function", "name": name }),
    }
}
