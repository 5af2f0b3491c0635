//! `/api/audit`: who did what through this controller; and what this door records.

use atlas_service::{Attempted, AuditDecision, AuditFilter, Caller, is_denial};
use http::StatusCode;
use serde_json::json;

use super::HttpDoor;
use super::answer::{self, Answer, Problem};
use super::api::Operation;
use super::request::Request;

/// Most records in one answer.
const LIMIT_MAX: u64 = 1_000;

/// `GET /api/audit?after=&limit=…`: records as they are written.
pub(crate) async fn read(door: &HttpDoor, request: &Request) -> Answer {
    let query = request.query();
    let time = |name: &str| match query.filled(name) {
        None => Ok(None),
        Some(text) => match text.parse::<f64>() {
            Ok(seconds) if (0.0..1e12).contains(&seconds) => Ok(Some((seconds * 1e3) as u64)),
            _ => Err(Problem::malformed(format!("'{name}' must be Unix seconds"))),
        },
    };
    let decision = match query.filled("decision").as_deref() {
        None => None,
        Some("allow") => Some(AuditDecision::Allow),
        Some("deny") => Some(AuditDecision::Deny),
        Some("failed") => Some(AuditDecision::Failed),
        Some("dropped") => Some(AuditDecision::Dropped),
        Some(_) => return Err(Problem::malformed("'decision' must be allow, failed, deny or dropped")),
    };
    let filter = AuditFilter {
        principal: query.filled("principal"),
        verb: query.filled("verb"),
        object: query.filled("object"),
        namespace: query.filled("namespace"),
        decision,
        since_ms: time("since")?,
        until_ms: time("until")?,
    };
    let limit = query.count("limit")?.unwrap_or(100).clamp(1, LIMIT_MAX);
    let after = query.count("after")?.unwrap_or(0);
    let page = door.service.audit().page(after, filter, usize::try_from(limit).unwrap_or(1)).await?;
    Ok(answer::json(
        StatusCode::OK,
        &json!({ "lines": page.lines, "last": page.last, "more": page.more, "end": page.end }),
    ))
}

/// Records what an operation came to, if the service functions did not. An error if something was done and is not recorded.
pub(super) async fn note(
    door: &HttpDoor,
    caller: &Caller,
    operation: &Operation,
    path: &str,
    error: Option<&Problem>,
) -> Result<(), Problem> {
    let (audit, attempted) = (door.service.audit(), Attempted { verb: operation.id(), object: path });
    match error {
        Some(Problem::Service(error)) if is_denial(error) => audit.denied(caller, attempted, error).await,
        None if operation.is_beside_the_log() => audit.done(caller, attempted).await?,
        _ => {}
    }
    Ok(())
}
