//! `/api/orchestrator` (compatibility §15.7). Its other settings are at `/api/objects/routing/default`.

use atlas_api::types::{self, of};
use atlas_service::Caller;
use http::StatusCode;
use serde_json::Value;

use super::HttpDoor;
use super::answer::{self, Answer, Problem, with_warnings};
use super::names::ignored_members;
use super::request::Request;

/// `GET /api/orchestrator`.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let selected = door.service.orchestrator(caller, request.consistency()).await?;
    let kind = if selected.custom { "custom" } else { "default" };
    Ok(answer::body(StatusCode::OK, &types::Orchestrator { name: selected.name, kind: kind.to_owned() }))
}

/// `POST /api/orchestrator` with `{"name": ""}`. Without a name, the default one is selected.
pub(crate) async fn select(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let text = request.body(door, door.limits.body_bytes_max).await?;
    let text: &[u8] = if text.is_empty() { b"{}" } else { &text };
    let mut body = match serde_json::from_slice(text) {
        Ok(Value::Object(body)) => body,
        Ok(_) => return Err(Problem::malformed("the body must be a JSON object")),
        Err(_) => return Err(Problem::malformed("Invalid JSON")),
    };
    let given = body.remove("name");
    // Without the name, a misspelt one would select the default orchestrator.
    let strict = given.is_none() || request.query().flag("strict")?;
    let warnings = ignored_members(of::<types::OrchestratorName>(), body.keys().map(String::as_str), strict)?;
    let name = match &given {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name.as_str()).filter(|name| !name.is_empty()),
        Some(_) => return Err(Problem::malformed("'name' must be text")),
    };
    let selected = door.service.select_orchestrator(caller, name).await?;
    let selected = types::SelectedOrchestrator { orchestrator: selected.name };
    Ok(with_warnings(answer::body(StatusCode::OK, &selected), warnings))
}
