//! The body of a request to the messages protocol. Vertex AI takes the same body without the model.

use std::borrow::Cow;

use atlas_model::{Image, Message, OutputSchema, Part, Request, Role, Tool, ToolChoice, ToolResult};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use crate::body::{add_extra, put};
use crate::ids::{Ids, Rule};
use crate::{EncodeError, image, json};

/// The protocol requires a limit; this one is sent where the request has none.
const MAX_TOKENS_DEFAULT: u32 = 4096;

const IMAGES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

const MESSAGES: &str = "messages";

/// A body. Its messages are written as they are: they are sent again with each call of a conversation, and most of it.
pub(crate) struct Body<'a> {
    pub(crate) members: Map<String, Value>,
    /// What stands in place of the member of this name. None if the request's `extra` has it.
    messages: Option<Vec<Encoded<'a>>>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.members.len()))?;
        for (name, value) in &self.members {
            match &self.messages {
                Some(messages) if name == MESSAGES => map.serialize_entry(name, messages)?,
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

/// All members of the body but `model` and `stream`.
///
/// The members of a request without options are `max_tokens` and `messages`, and `system` and `tools` where they are not empty.
pub(crate) fn body<'a>(request: &'a Request, provider: &'static str) -> Result<Body<'a>, EncodeError> {
    let mut body = Map::new();
    body.insert("max_tokens".into(), request.max_tokens.unwrap_or(MAX_TOKENS_DEFAULT).into());
    let ids = Ids::new(&request.messages, Rule::Word);
    let messages = request.messages.iter().map(|message| encode(message, provider, &ids));
    let messages: Vec<Encoded<'_>> = messages.filter_map(Result::transpose).collect::<Result<_, _>>()?;
    body.insert(MESSAGES.into(), Value::Null);
    if !request.system.trim().is_empty() {
        body.insert("system".into(), request.system.clone().into());
    }
    if !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
        let choice = match &request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::None => Some(json!({"type": "none"})),
            ToolChoice::Required => Some(json!({"type": "any"})),
            ToolChoice::Tool(name) => Some(json!({"type": "tool", "name": name})),
        };
        put(&mut body, "tool_choice", choice);
    }
    put(&mut body, "temperature", request.temperature);
    put(&mut body, "top_p", request.top_p);
    put(&mut body, "top_k", request.top_k);
    if !request.stop.is_empty() {
        body.insert("stop_sequences".into(), request.stop.clone().into());
    }
    options(&mut body, request);
    add_extra(&mut body, &request.extra);
    Ok(Body { members: body, messages: (!request.extra.contains_key(MESSAGES)).then_some(messages) })
}

/// The schema of the answer and the effort of reasoning.
///
/// Models that know no effort take `thinking` with a budget of tokens in `extra`, which then stands for both members.
fn options(body: &mut Map<String, Value>, request: &Request) {
    let mut config = Map::new();
    if let Some(OutputSchema { schema, .. }) = &request.output {
        config.insert("format".into(), json!({"type": "json_schema", "schema": schema}));
    }
    if let Some(effort) = &request.reasoning_effort
        && !request.extra.contains_key("thinking")
    {
        config.insert("effort".into(), effort.clone().into());
        body.insert("thinking".into(), json!({"type": "adaptive"}));
    }
    if !config.is_empty() {
        body.insert("output_config".into(), config.into());
    }
}

/// A message as it is sent.
struct Encoded<'a> {
    role: &'static str,
    content: Content<'a>,
}

enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

enum Block<'a> {
    Text(&'a str),
    Image(&'a Image),
    ToolUse { id: Cow<'a, str>, name: &'a str, input: Cow<'a, Value> },
    ToolResult { id: Cow<'a, str>, content: &'a str, is_error: bool },
    Reasoning(Map<String, Value>),
}

impl Serialize for Encoded<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("role", self.role)?;
        match &self.content {
            Content::Text(text) => map.serialize_entry("content", text)?,
            Content::Blocks(blocks) => map.serialize_entry("content", blocks)?,
        }
        map.end()
    }
}

impl Serialize for Block<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Text(text) => {
                map.serialize_entry("type", "text")?;
                map.serialize_entry("text", text)?;
            }
            Self::Image(Image { mime, data }) => {
                map.serialize_entry("type", "image")?;
                map.serialize_entry("source", &json!({"type": "base64", "media_type": mime, "data": data}))?;
            }
            Self::ToolUse { id, name, input } => {
                map.serialize_entry("type", "tool_use")?;
                map.serialize_entry("id", id)?;
                map.serialize_entry("name", name)?;
                map.serialize_entry("input", input)?;
            }
            Self::ToolResult { id, content, is_error } => {
                map.serialize_entry("type", "tool_result")?;
                map.serialize_entry("tool_use_id", id)?;
                if !content.trim().is_empty() {
                    map.serialize_entry("content", content)?;
                }
                if *is_error {
                    map.serialize_entry("is_error", &true)?;
                }
            }
            Self::Reasoning(members) => {
                for (name, value) in members {
                    map.serialize_entry(name, value)?;
                }
            }
        }
        map.end()
    }
}

/// None for a message of which nothing is left to send.
fn encode<'a>(message: &'a Message, provider: &'static str, ids: &Ids) -> Result<Option<Encoded<'a>>, EncodeError> {
    let role = match message.role {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    if let [Part::Text { text }] = message.parts.as_slice() {
        return Ok((!text.trim().is_empty()).then_some(Encoded { role, content: Content::Text(text) }));
    }
    let mut results = Vec::new();
    let mut others = Vec::new();
    for part in &message.parts {
        match part {
            // The provider refuses empty texts, and those of white space alone.
            Part::Text { text } if text.trim().is_empty() => {}
            Part::Text { text } => others.push(Block::Text(text)),
            Part::Image(image) if message.role == Role::User => others.push(encode_image(image, provider)?),
            Part::ToolCall(call) if message.role == Role::Assistant => {
                let input = json::arguments(&call.arguments);
                others.push(Block::ToolUse { id: ids.sent(&call.id), name: &call.name, input });
            }
            Part::ToolResult(result) if message.role == Role::User => results.push(tool_result(result, ids)),
            Part::Reasoning { text, opaque } if message.role == Role::Assistant => {
                others.extend(reasoning(text, opaque))
            }
            Part::Image(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Reasoning { .. } => {
                return Err(EncodeError::misplaced(message.role));
            }
        }
    }
    // Results come before everything else in their message, or the provider refuses it.
    results.append(&mut others);
    Ok((!results.is_empty()).then_some(Encoded { role, content: Content::Blocks(results) }))
}

fn encode_image<'a>(image: &'a Image, provider: &'static str) -> Result<Block<'a>, EncodeError> {
    if !IMAGES.contains(&image.mime.as_str()) {
        return Err(EncodeError::Unsupported { provider, feature: format!("images of type {:?}", image.mime) });
    }
    image::check(image)?;
    Ok(Block::Image(image))
}

fn tool_result<'a>(result: &'a ToolResult, ids: &Ids) -> Block<'a> {
    // Atlas for Python sends no mark, but the error in the content. The mark is for contents that do not say it themselves.
    let is_error = result.error && !says_error(&result.content);
    Block::ToolResult { id: ids.sent(&result.call), content: &result.content, is_error }
}

fn says_error(content: &str) -> bool {
    // The name of a member can only be written in another way with this character.
    (content.contains("error") || content.contains('\\'))
        && json::parse(content.as_bytes()).is_ok_and(|value| value.get("error").is_some())
}

/// The block as it came. Reasoning without its block is another provider's, and this one would refuse it.
fn reasoning(text: &str, opaque: &Value) -> Option<Block<'static>> {
    let mut block = opaque.as_object()?.clone();
    match block.get("type").and_then(Value::as_str)? {
        "thinking" => drop(block.insert("thinking".into(), text.into())),
        "redacted_thinking" => {}
        _ => return None,
    }
    Some(Block::Reasoning(block))
}

fn tool(tool: &Tool) -> Value {
    let mut encoded = Map::new();
    encoded.insert("name".into(), tool.name.clone().into());
    if !tool.description.is_empty() {
        encoded.insert("description".into(), tool.description.clone().into());
    }
    encoded.insert("input_schema".into(), schema(&tool.input_schema));
    encoded.into()
}

/// The provider wants the schema of an object, also for a tool without parameters.
fn schema(schema: &Value) -> Value {
    let Some(members) = schema.as_object().filter(|members| !members.is_empty()) else {
        return json!({"type": "object", "properties": {}});
    };
    let mut members = members.clone();
    if !members.contains_key("type") {
        members.insert("type".into(), "object".into());
    }
    members.into()
}
