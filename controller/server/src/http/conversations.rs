//! `/api/conversations`: what was said to agents, and what they answered.

use atlas_api::types::Deletion;
use atlas_service::Caller;
use http::StatusCode;
use serde_json::Value;

use super::HttpDoor;
use super::answer::{self, Answer, json};
use super::request::Request;

/// `GET /api/conversations`.
pub(crate) async fn list(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let conversations = door.service.conversations(caller, request.consistency()).await?;
    Ok(json(StatusCode::OK, &Value::Array(conversations)))
}

/// `GET /api/conversations/{id}`.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    Ok(json(StatusCode::OK, &door.service.conversation(caller, id, request.consistency()).await?))
}

/// `DELETE /api/conversations/{id}`.
pub(crate) async fn delete(door: &HttpDoor, caller: &Caller, id: &str) -> Answer {
    door.service.delete_conversation(caller, id).await?;
    Ok(answer::body(StatusCode::OK, &Deletion { deleted: true }))
}
