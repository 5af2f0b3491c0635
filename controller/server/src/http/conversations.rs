//! `/api/conversations`: what was said to agents, and what they answered.

use atlas_api::types::{ConversationBranch, Deletion};
use atlas_service::Caller;
use http::StatusCode;
use serde_json::Value;

use super::HttpDoor;
use super::answer::{self, Answer, Problem, json};
use super::request::Request;

/// Most bytes of a request for a branch.
const BRANCH_BYTES_MAX: usize = 4 << 10;

/// `GET /api/conversations`.
pub(crate) async fn list(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let conversations = door.service.conversations(caller, request.consistency()).await?;
    Ok(json(StatusCode::OK, &Value::Array(conversations)))
}

/// `GET /api/conversations/{id}`.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    Ok(json(StatusCode::OK, &door.service.conversation(caller, id, request.consistency()).await?))
}

/// `POST /api/conversations/{id}/branch`.
pub(crate) async fn branch(door: &HttpDoor, caller: &Caller, request: &mut Request, id: &str) -> Answer {
    let body = request.json_text(door, BRANCH_BYTES_MAX).await?;
    let wanted: ConversationBranch =
        serde_json::from_slice(&body).map_err(|error| Problem::malformed(format!("the branch: {error}")))?;
    let made = door.service.branch_conversation(caller, id, &wanted.id, wanted.turns).await?;
    Ok(json(StatusCode::CREATED, &made))
}

/// `DELETE /api/conversations/{id}`.
pub(crate) async fn delete(door: &HttpDoor, caller: &Caller, id: &str) -> Answer {
    door.service.delete_conversation(caller, id).await?;
    Ok(answer::body(StatusCode::OK, &Deletion { deleted: true }))
}
