//! Parameters that several operations have.

use std::collections::BTreeSet;

use atlas_model::{OutputSchema, Request, Tool, ToolChoice};
use serde_json::{Map, Value, json};

use crate::WireError;
use crate::body::Node;
use crate::error::bounded;

/// Most tools of a request.
const TOOLS_MAX: usize = 128;
/// Longest name of a tool or schema.
const NAME_BYTES_MAX: usize = 64;
/// Longest name of a model or agent, and of a user of the client.
const ID_BYTES_MAX: usize = 512;
/// Most texts that end an answer, and the longest one.
const STOPS_MAX: usize = 4;
const STOP_BYTES_MAX: usize = 1_024;
/// Most members of `metadata`, the longest name and the longest text, in characters.
const METADATA_MAX: usize = 16;
const METADATA_NAME_CHARS_MAX: usize = 64;
const METADATA_TEXT_CHARS_MAX: usize = 512;
/// Words of the effort of reasoning. Providers refuse those that they do not know.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];

/// The model or agent.
pub(crate) fn model(root: &Node<'_>) -> Result<String, WireError> {
    root.required("model")?.short_text(ID_BYTES_MAX).map(str::to_owned)
}

/// Temperature and the share of likely tokens.
pub(crate) fn sampling(root: &Node<'_>, request: &mut Request) -> Result<(), WireError> {
    request.temperature = root.member("temperature").map(|node| node.number(0.0, 2.0)).transpose()?;
    request.top_p = root.member("top_p").map(|node| node.number(0.0, 1.0)).transpose()?;
    Ok(())
}

/// A limit of tokens.
pub(crate) fn tokens(root: &Node<'_>, name: &str) -> Result<Option<u32>, WireError> {
    root.member(name).map(|node| node.count(1, u32::MAX)).transpose()
}

/// How much the model reasons.
pub(crate) fn effort(node: Option<Node<'_>>) -> Result<Option<String>, WireError> {
    node.map(|node| node.word(&EFFORTS).map(str::to_owned)).transpose()
}

/// The texts that end an answer.
pub(crate) fn stop(root: &Node<'_>) -> Result<Vec<String>, WireError> {
    let Some(node) = root.member("stop") else { return Ok(Vec::new()) };
    let nodes = if node.value.is_string() { vec![node] } else { node.list(STOPS_MAX)? };
    nodes.iter().map(|node| node.short_text(STOP_BYTES_MAX).map(str::to_owned)).collect()
}

/// Whether the answer arrives in pieces, and whether the last one has the usage.
pub(crate) fn stream(root: &Node<'_>) -> Result<(bool, bool), WireError> {
    let stream = flag(root, "stream")?.unwrap_or_default();
    let Some(options) = root.member("stream_options") else { return Ok((stream, false)) };
    options.object()?;
    if !stream {
        return Err(options.wrong("is only allowed with \"stream\": true"));
    }
    flag(&options, "include_obfuscation")?;
    Ok((stream, flag(&options, "include_usage")?.unwrap_or_default()))
}

/// A member that is true or false.
pub(crate) fn flag(root: &Node<'_>, name: &str) -> Result<Option<bool>, WireError> {
    root.member(name).map(|node| node.boolean()).transpose()
}

/// The client's own user.
pub(crate) fn user(root: &Node<'_>) -> Result<Option<String>, WireError> {
    let text = |name: &str| root.member(name).map(|node| node.text().map(|text| (node.clone(), text))).transpose();
    let (identifier, user) = (text("safety_identifier")?, text("user")?);
    let Some((node, text)) = identifier.or(user) else { return Ok(None) };
    if text.len() > ID_BYTES_MAX {
        return Err(node.wrong(&format!("has {} bytes, and may have {ID_BYTES_MAX}", text.len())));
    }
    Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
}

/// Texts of the client.
pub(crate) fn metadata(root: &Node<'_>) -> Result<Map<String, Value>, WireError> {
    let Some(node) = root.member("metadata") else { return Ok(Map::new()) };
    let members = node.object()?;
    if members.len() > METADATA_MAX {
        return Err(node.wrong(&format!("has {} members, and may have {METADATA_MAX}", members.len())));
    }
    for (name, value) in members {
        if name.chars().count() > METADATA_NAME_CHARS_MAX {
            return Err(node.wrong(&format!("has a name with more than {METADATA_NAME_CHARS_MAX} characters")));
        }
        let node = Node { value, path: node.path_of(name) };
        if node.text()?.chars().count() > METADATA_TEXT_CHARS_MAX {
            return Err(node.wrong(&format!("has more than {METADATA_TEXT_CHARS_MAX} characters")));
        }
    }
    Ok(members.clone())
}

/// Where an operation has the parts of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// In a member of its own, as in chat completions.
    Nested(&'static str),
    /// Beside the type, as in responses.
    Flat,
}

impl Layout {
    fn inner<'a>(self, node: &Node<'a>) -> Result<Node<'a>, WireError> {
        match self {
            Self::Nested(name) => {
                let inner = node.required(name)?;
                inner.object()?;
                Ok(inner)
            }
            Self::Flat => Ok(node.clone()),
        }
    }
}

/// Tools, which of them the model has to call, and whether it may call several at once.
pub(crate) fn tools(root: &Node<'_>, layout: Layout, request: &mut Request) -> Result<(), WireError> {
    let nodes = root.member("tools").map(|node| node.list(TOOLS_MAX)).transpose()?.unwrap_or_default();
    let mut names = BTreeSet::new();
    for node in &nodes {
        node.object()?;
        let kind = node.required("type")?;
        if kind.text()? != "function" {
            let text = format!("tools are of the type \"function\", not {:?}", bounded(kind.text()?));
            return Err(WireError::unsupported(&kind.path, &text));
        }
        let function = layout.inner(node)?;
        let tool = tool(&function)?;
        if !names.insert(tool.name.clone()) {
            return Err(function.wrong(&format!("has the name {:?}, as another tool", tool.name)));
        }
        request.tools.push(tool);
    }
    request.tool_choice = choice(root, layout, &names)?;
    if flag(root, "parallel_tool_calls")? == Some(false) && !request.tools.is_empty() {
        request.extra.insert("parallel_tool_calls".to_owned(), Value::Bool(false));
    }
    Ok(())
}

fn tool(function: &Node<'_>) -> Result<Tool, WireError> {
    let description = function.member("description").map(|node| node.text()).transpose()?.unwrap_or_default();
    let schema = function.member("parameters").map(|node| node.object().map(|_| node.value.clone())).transpose()?;
    flag(function, "strict")?;
    Ok(Tool {
        name: name(&function.required("name")?)?,
        description: description.to_owned(),
        input_schema: schema.unwrap_or_else(|| json!({ "type": "object", "properties": {} })),
    })
}

/// A name that every provider accepts.
pub(crate) fn name(node: &Node<'_>) -> Result<String, WireError> {
    let text = node.text()?;
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_legal) {
        return Ok(text.to_owned());
    }
    Err(node.wrong(&format!("must match [a-zA-Z0-9_-]{{1,{NAME_BYTES_MAX}}}, and is {:?}", bounded(text))))
}

fn choice(root: &Node<'_>, layout: Layout, names: &BTreeSet<String>) -> Result<ToolChoice, WireError> {
    let Some(node) = root.member("tool_choice") else { return Ok(ToolChoice::Auto) };
    let choice = if node.value.is_string() {
        match node.word(&["auto", "none", "required"])? {
            "none" => ToolChoice::None,
            "required" => ToolChoice::Required,
            _ => ToolChoice::Auto,
        }
    } else {
        node.object()?;
        let kind = node.required("type")?;
        if kind.text()? != "function" {
            let text = format!("a tool choice is a word or of the type \"function\", not {:?}", bounded(kind.text()?));
            return Err(WireError::unsupported(&kind.path, &text));
        }
        let named = layout.inner(&node)?.required("name")?;
        let text = named.text()?;
        if !names.contains(text) {
            return Err(named.wrong(&format!("is {:?}, which no tool of the request is named", bounded(text))));
        }
        ToolChoice::Tool(text.to_owned())
    };
    match choice {
        ToolChoice::Required if names.is_empty() => Err(node.wrong("is only allowed with tools")),
        // Without tools there is nothing to choose.
        ToolChoice::None if names.is_empty() => Ok(ToolChoice::Auto),
        choice => Ok(choice),
    }
}

/// The form of the answer. JSON of any form is the schema of an object, which providers with other protocols understand too.
pub(crate) fn format(node: Option<&Node<'_>>, layout: Layout) -> Result<Option<OutputSchema>, WireError> {
    let Some(node) = node else { return Ok(None) };
    node.object()?;
    let any = || json!({ "type": "object" });
    match node.required("type")?.word(&["text", "json_object", "json_schema"])? {
        "json_object" => Ok(Some(OutputSchema { name: "json_object".to_owned(), schema: any() })),
        "json_schema" => {
            let inner = layout.inner(node)?;
            let schema = inner.member("schema").map(|node| node.object().map(|_| node.value.clone())).transpose()?;
            flag(&inner, "strict")?;
            Ok(Some(OutputSchema { name: name(&inner.required("name")?)?, schema: schema.unwrap_or_else(any) }))
        }
        _ => Ok(None),
    }
}
