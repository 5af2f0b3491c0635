//! `/api/policies/explain` and `/api/jobs/{id}/policies`: what policies decide, and what they leave an agent.

use atlas_service::{Caller, PolicyOperation, PolicyQuestion};
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::HttpDoor;
use super::answer::{Answer, Problem, json};
use super::request::Request;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExplainBody {
    agent: String,
    version: Option<String>,
    operation: Option<String>,
    input: Option<Box<RawValue>>,
    #[serde(default)]
    priority: i64,
}

/// `POST /api/policies/explain`: what policies would decide about an operation of the caller.
pub(crate) async fn explain(door: &HttpDoor, caller: &Caller, request: &mut Request) -> Answer {
    let ExplainBody { agent, version, operation, input, priority } = request.read_json(door).await?;
    let operation = match operation.as_deref() {
        None | Some("submit") => PolicyOperation::Submit,
        Some("deploy") => PolicyOperation::Deploy,
        Some(_) => return Err(Problem::malformed("'operation' must be deploy or submit")),
    };
    let input = input.map_or_else(|| Bytes::from_static(b"{}"), |input| Bytes::from(input.get().to_owned()));
    let question = PolicyQuestion { agent, version, operation, input, priority };
    Ok(json(StatusCode::OK, &door.service.explain_policies(caller, &question).await?))
}

/// `GET /api/jobs/{id}/policies`.
pub(crate) async fn of_job(door: &HttpDoor, caller: &Caller, id: &str) -> Answer {
    Ok(json(StatusCode::OK, &door.service.policies_of_job(caller, id).await?))
}
