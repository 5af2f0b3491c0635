//! A request as an agent takes it: agents get messages, and have tools and formats of their own.

use atlas_model::{Image, Part, Request, Role, ToolChoice};

use crate::WireError;

/// What was said, for an agent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dialogue {
    /// The texts of the system and of developers, joined with an empty line. Empty if there are none.
    pub system: String,
    /// In their order; the last one is of the user.
    pub messages: Vec<DialogueMessage>,
}

/// One message.
#[derive(Debug, Clone, PartialEq)]
pub struct DialogueMessage {
    pub role: Role,
    /// Its texts, joined with a line break.
    pub text: String,
    pub images: Vec<Image>,
}

impl Dialogue {
    /// The messages of a request that [`check`] accepts.
    pub(crate) fn of(request: &Request) -> Self {
        let message = |message: &atlas_model::Message| {
            let mut text = String::new();
            let mut images = Vec::new();
            for part in &message.parts {
                match part {
                    Part::Text { text: more } => {
                        if !text.is_empty() {
                            text.push('\n');
                        }
                        text.push_str(more);
                    }
                    Part::Image(image) => images.push(image.clone()),
                    Part::ToolCall(_) | Part::ToolResult(_) | Part::Reasoning { .. } => {}
                }
            }
            DialogueMessage { role: message.role, text, images }
        };
        let is_said = |message: &DialogueMessage| !message.text.is_empty() || !message.images.is_empty();
        let messages = request.messages.iter().map(message).filter(is_said).collect();
        Self { system: request.system.clone(), messages }
    }
}

/// Refuses what an agent cannot follow. `list` and `format` are the names of the members with the messages and with the form of
/// the answer.
pub(crate) fn check(request: &Request, list: &str, format: &str) -> Result<(), WireError> {
    let why = |what: &str| format!("the model is an agent, which {what}; name a model instead, or leave it out");
    if !request.tools.is_empty() {
        return Err(WireError::unsupported("tools", &why("has its own tools")));
    }
    if request.tool_choice != ToolChoice::Auto {
        return Err(WireError::unsupported("tool_choice", &why("decides itself which tools it calls")));
    }
    if request.output.is_some() {
        return Err(WireError::unsupported(format, &why("answers in the form of its contract")));
    }
    let is_call = |part: &Part| matches!(part, Part::ToolCall(_) | Part::ToolResult(_));
    if request.messages.iter().flat_map(|message| &message.parts).any(is_call) {
        return Err(WireError::unsupported(list, &why("takes no tool calls and results of the client")));
    }
    if request.messages.last().is_none_or(|last| last.role != Role::User) {
        return Err(WireError::invalid("the last message to an agent is one of the user").at(list));
    }
    Ok(())
}
