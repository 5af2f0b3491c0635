//! Which conversation a message belongs to, and the prompt with its messages.

use atlas_service::{Consistency, ConversationScope, Error, Mapping, ShownAgent, digest_of};
use rmcp::ErrorData;
use rmcp::model::{ContentBlock, GetPromptRequestParams, GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::Value;

use super::{AgentServer, Asked, refused};

/// Who shares the conversations of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InstanceScope {
    Shared,
    Connection,
    Request,
}

impl InstanceScope {
    /// As the contract says. An agent that does not see what was said before has no conversations unless it asks for them.
    pub(super) fn of(agent: &ShownAgent) -> Self {
        match agent.contract.text("/conversation") {
            "shared" => Self::Shared,
            "connection" => Self::Connection,
            "" if Mapping::of(&agent.contract.value).is_ok_and(|mapping| mapping.remembers()) => Self::Connection,
            _ => Self::Request,
        }
    }
}

/// The conversation of a message: its name and its scope; none if the message stands alone.
pub(super) fn conversation(asked: &Asked, agent: &ShownAgent, id: Option<&str>) -> Option<(String, ConversationScope)> {
    if let Some(id) = id {
        return Some((id.to_owned(), ConversationScope::Named));
    }
    let name = plain(agent.agent.name.as_str());
    match (InstanceScope::of(agent), &asked.session) {
        (InstanceScope::Shared, _) => Some((format!("shared-{name}"), ConversationScope::Shared)),
        (InstanceScope::Connection, Some(session)) => {
            // Who knows the id of a session can use it, so it is not stored.
            let session = short(session);
            Some((format!("mcp-{session}-{name}"), ConversationScope::Connection))
        }
        (InstanceScope::Connection, None) | (InstanceScope::Request, _) => None,
    }
}

/// A name that can be part of the name of an object.
fn plain(name: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    match name.len() <= 200 && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => short(name),
    }
}

/// Sixteen digits that follow from a text.
fn short(text: &str) -> String {
    digest_of(text.as_bytes()).0.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// The prompt of an agent with conversations.
pub(super) fn prompts(agent: &ShownAgent) -> Vec<Prompt> {
    if InstanceScope::of(agent) == InstanceScope::Request {
        return Vec::new();
    }
    let id = PromptArgument::new("conversation_id").with_description("Another conversation than the current one.");
    let about = format!("What was said to {} and what it answered.", agent.agent.name);
    vec![Prompt::new(name_of(agent.agent.name.as_str()), Some(about), Some(vec![id.with_required(false)]))]
}

fn name_of(agent: &str) -> String {
    format!("{agent}_history")
}

/// The messages of the current conversation, or of one that is named.
pub(super) async fn prompt(
    server: &AgentServer,
    asked: &Asked,
    request: &GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let agent = server.agent(asked).await.map_err(|error| refused(&error))?;
    if request.name != name_of(&asked.agent) || InstanceScope::of(&agent) == InstanceScope::Request {
        let name: String = request.name.chars().take(100).collect();
        return Err(ErrorData::invalid_params(format!("unknown prompt {name:?}; list them with prompts/list"), None));
    }
    let id = request.arguments.as_ref().and_then(|arguments| arguments.get("conversation_id"));
    let Some((name, _)) = conversation(asked, &agent, id.and_then(Value::as_str)) else {
        return Ok(GetPromptResult::new(Vec::new()));
    };
    let found = match server.service.conversation(&asked.caller, &name, Consistency::Linearizable).await {
        Ok(found) => found,
        // Nothing was said yet.
        Err(Error::UnknownObject(_)) if id.is_none() => return Ok(GetPromptResult::new(Vec::new())),
        Err(error) => return Err(refused(&error)),
    };
    if found["agent"] != *asked.agent {
        return Err(ErrorData::invalid_params(format!("the conversation {name} is with another agent"), None));
    }
    let messages = found["messages"].as_array().into_iter().flatten().flat_map(shown);
    Ok(GetPromptResult::new(messages.collect::<Vec<_>>()))
}

/// A message, and one for each of its images.
fn shown(message: &Value) -> Vec<PromptMessage> {
    let role = || if message["role"] == "assistant" { Role::Assistant } else { Role::User };
    let text = PromptMessage::new_text(role(), message["content"].as_str().unwrap_or_default());
    let images = message["images"].as_array().into_iter().flatten().map(|image| {
        let member = |name: &str| image[name].as_str().unwrap_or_default().to_owned();
        PromptMessage::new(role(), ContentBlock::image(member("data"), member("mime_type")))
    });
    std::iter::once(text).chain(images).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_conversations_are_plain() {
        assert_eq!(plain("tech_research-2.0"), "tech_research-2.0");
        assert_eq!(plain("a/b").len(), 16);
        assert_ne!(short("a"), short("b"));
    }

    #[test]
    fn messages_keep_their_images() {
        let message = serde_json::json!({
            "role": "user", "content": "What is this?", "images": [{ "data": "AA==", "mime_type": "image/png" }]
        });
        assert_eq!(shown(&message).len(), 2);
    }
}
