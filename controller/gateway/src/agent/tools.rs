//! The tools of an agent: names, descriptions, schemas.

use std::borrow::Cow;
use std::sync::Arc;

use atlas_service::ShownAgent;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

pub(super) const SEND_MESSAGE: &str = "send_message";
pub(super) const GET_HEALTH: &str = "get_health";

/// The tools of an agent.
pub(super) fn of(agent: &ShownAgent) -> Vec<Tool> {
    let about = agent.contract.text("/description");
    let about = match about.is_empty() {
        true => format!("Sends a message to {} and returns its answer.", agent.agent.name),
        false => format!("Sends a message to {} and returns its answer. {about}", agent.agent.name),
    };
    vec![send_message(about.into()), get_health()]
}

/// The definition of a tool, whatever the agent.
pub(super) fn named(name: &str) -> Option<Tool> {
    match name {
        SEND_MESSAGE => Some(send_message("Sends a message to the agent and returns its answer.".into())),
        GET_HEALTH => Some(get_health()),
        _ => None,
    }
}

fn send_message(about: Cow<'static, str>) -> Tool {
    let schema = json!({
        "type": "object",
        "properties": {
            "message": { "type": "string", "description": "The text for the agent." },
            "images": {
                "type": "array",
                "description": "Images, if the model of the agent takes them.",
                "items": {
                    "type": "object",
                    "properties": {
                        "data": { "type": "string", "description": "The image in Base64." },
                        "mime_type": { "type": "string", "description": "Such as image/png." }
                    },
                    "required": ["data", "mime_type"]
                }
            },
            "conversation_id": {
                "type": "string", "maxLength": 200,
                "description": "Continues the conversation of this id, or begins it."
            }
        },
        "required": ["message"]
    });
    Tool::new(SEND_MESSAGE, about, object(schema))
        .with_annotations(ToolAnnotations::new().read_only(false).open_world(true))
}

fn get_health() -> Tool {
    let schema = json!({ "type": "object", "properties": {} });
    Tool::new(GET_HEALTH, "Says whether the agent can answer, without a model call.", object(schema))
        .with_annotations(ToolAnnotations::new().read_only(true).open_world(false))
}

fn object(schema: Value) -> Arc<JsonObject> {
    Arc::new(match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    })
}
