//! `/api/traces` (compatibility §15.6).

use atlas_service::{Caller, TraceQuery};
use atlas_types::AgentName;
use http::StatusCode;
use serde_json::Value;

use super::HttpDoor;
use super::answer::{Answer, json};
use super::request::Request;

/// `GET /api/traces`, the latest first.
pub(crate) async fn list(door: &HttpDoor, caller: &Caller, request: &Request) -> Answer {
    let query = request.query();
    let agent = match query.filled("agent").map(|text| AgentName::new(&text)) {
        // A name that no agent can have has no traces, as in Atlas for Python.
        Some(Err(_)) => return Ok(json(StatusCode::OK, &Value::Array(Vec::new()))),
        agent => agent.and_then(Result::ok),
    };
    let wanted = TraceQuery { agent, limit: query.limit() };
    let traces = door.service.traces(caller, &wanted, request.consistency()).await?;
    Ok(json(StatusCode::OK, &Value::Array(traces)))
}

/// `GET /api/traces/{id}`.
pub(crate) async fn get(door: &HttpDoor, caller: &Caller, request: &Request, id: &str) -> Answer {
    Ok(json(StatusCode::OK, &door.service.trace(caller, id, request.consistency()).await?))
}
