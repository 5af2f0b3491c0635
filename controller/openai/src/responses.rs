//! `POST /v1/responses`, and what is read of a response later.

mod events;
mod input;
mod items;
mod resource;
mod settle;
#[cfg(test)]
mod tests;

use atlas_model::{Message, Request};
use serde_json::{Map, Value, json};

pub use events::Events;
pub use items::{input_items, page};
pub use resource::{Phase, whole};

use crate::body::{self, Node};
use crate::settings::{self, Layout};
use crate::{Dialogue, WireError, dialogue, parameters};

/// A request that was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ResponsesRequest {
    /// The model or agent, as the client names it.
    pub model: String,
    /// The request without `model` and `stream`: what goes into the job ([`job_input`](crate::job_input)).
    pub request: Request,
    /// Whether the client wants events.
    pub stream: bool,
    /// The response is made whether or not its client stays, and asked for by its id.
    pub background: bool,
    /// Whether the response can be asked for later.
    pub store: bool,
    /// The response that this one continues. The door adds its messages with [`ResponsesRequest::continue_from`].
    pub previous_response_id: Option<String>,
    /// The conversation that this one belongs to. The door adds its messages in the same way.
    pub conversation: Option<String>,
    /// The client's own user (`safety_identifier` or `user`), for records; not sent to providers.
    pub user: Option<String>,
    /// At most 16 texts of the client; also in `echo`.
    pub metadata: Map<String, Value>,
    /// The members of the request that every form of the response repeats. The door keeps them with the job.
    pub echo: Map<String, Value>,
}

/// Longest id of a response or conversation.
const ID_BYTES_MAX: usize = 256;

/// Reads a body. Errors name the member that is wrong. A request that continues a response or conversation is checked as a whole once its
/// earlier messages are there ([`ResponsesRequest::continue_from`]).
pub fn read(body: &[u8]) -> Result<ResponsesRequest, WireError> {
    let value = body::parse(body)?;
    let root = Node::root(&value);
    let extra = parameters::admit(root.object()?, parameters::RESPONSES)?;
    let model = settings::model(&root)?;
    let (texts, messages) = input::read(&root.required("input")?)?;
    let instructions = root.member("instructions").map(|node| node.text()).transpose()?;
    let system: Vec<&str> = instructions.into_iter().chain(texts.iter().map(String::as_str)).collect();
    let system = system.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
    let mut request = Request { system, messages: messages.into(), extra, ..Request::default() };
    settings::sampling(&root, &mut request)?;
    request.max_tokens = settings::tokens(&root, "max_output_tokens")?;
    let reasoning = root.member("reasoning");
    reasoning.as_ref().map(|node| node.object()).transpose()?;
    request.reasoning_effort = settings::effort(reasoning.and_then(|node| node.member("effort")))?;
    settings::tools(&root, Layout::Flat, &mut request)?;
    text(&root, &mut request)?;
    let id = |name: &str| root.member(name).map(|node| node.short_text(ID_BYTES_MAX).map(str::to_owned)).transpose();
    let mut read = ResponsesRequest {
        model,
        stream: settings::flag(&root, "stream")?.unwrap_or_default(),
        background: settings::flag(&root, "background")?.unwrap_or_default(),
        store: settings::flag(&root, "store")?.unwrap_or(true),
        previous_response_id: id("previous_response_id")?,
        conversation: conversation(&root)?,
        user: settings::user(&root)?,
        metadata: settings::metadata(&root)?,
        echo: resource::echo(&root, &request)?,
        request,
    };
    if read.background && !read.store {
        return Err(WireError::invalid("a response in the background is stored; leave store out").at("store"));
    }
    match (&read.previous_response_id, &read.conversation) {
        (Some(_), Some(_)) => {
            let text = "a request continues a response or a conversation, and not both";
            Err(WireError::invalid(text).at("previous_response_id"))
        }
        (None, None) => read.continue_from(&[]).map(|()| read),
        _ => Ok(read),
    }
}

/// The form of the answer, and how much it says.
fn text(root: &Node<'_>, request: &mut Request) -> Result<(), WireError> {
    let Some(node) = root.member("text") else { return Ok(()) };
    node.object()?;
    request.output = settings::format(node.member("format").as_ref(), Layout::Flat)?;
    if let Some(verbosity) = node.member("verbosity") {
        let word = verbosity.word(&["low", "medium", "high"])?;
        // What most models do without it.
        if word != "medium" {
            request.extra.insert("verbosity".to_owned(), word.into());
        }
    }
    Ok(())
}

/// The id of a conversation, or an object with it.
fn conversation(root: &Node<'_>) -> Result<Option<String>, WireError> {
    let Some(node) = root.member("conversation") else { return Ok(None) };
    let id = if node.value.is_string() {
        node
    } else {
        node.object()?;
        node.required("id")?
    };
    id.short_text(ID_BYTES_MAX).map(|id| Some(id.to_owned()))
}

impl ResponsesRequest {
    /// Puts the messages of earlier responses before those of this one, with the last answer at their end.
    ///
    /// # Errors
    ///
    /// 400 if a call has no output, or an output no call.
    pub fn continue_from(&mut self, earlier: &[Message]) -> Result<(), WireError> {
        let mut messages = earlier.to_vec();
        messages.extend(self.request.messages.iter().cloned());
        let mut messages = settle::settle(messages)?;
        if messages.is_empty() {
            // Most providers want a message besides the system text.
            if self.request.system.is_empty() {
                return Err(WireError::invalid("all items are empty").at("input"));
            }
            messages.push(Message::user(std::mem::take(&mut self.request.system)));
        }
        self.request.messages = messages.into();
        Ok(())
    }

    /// Refuses what an agent behind the name of a model cannot follow.
    pub fn check_for_agent(&self) -> Result<(), WireError> {
        dialogue::check(&self.request, "input", "text.format")
    }

    /// The messages for an agent, once [`ResponsesRequest::check_for_agent`] has accepted the request.
    pub fn said(&self) -> Dialogue {
        Dialogue::of(&self.request)
    }
}

/// The answer to `DELETE /v1/responses/ID`.
pub fn deleted(id: &str) -> Value {
    json!({ "id": id, "object": "response", "deleted": true })
}
