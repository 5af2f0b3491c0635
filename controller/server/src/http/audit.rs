//! `/api/audit`: who did what, through all controllers; and what this door records.

use atlas_api::Operation;
use atlas_api::types::{AuditMember, AuditPage, AuditRecord, MissingMember};
use atlas_service::{Attempted, AuditDecision, AuditFilter, AuditQuery, Caller, MissingAudit, is_denial};
use atlas_types::MemberId;
use http::StatusCode;

use super::HttpDoor;
use super::answer::{self, Answer, Problem};
use super::query::Query;
use super::request::Request;

/// Most records in one answer.
const LIMIT_MAX: u64 = 1_000;

/// `GET /api/audit?cursor=&limit=…`: records as they are written, of all controllers or of one.
pub(crate) async fn read(door: &HttpDoor, request: &Request) -> Answer {
    let query = request.query();
    let member = query.filled("member").map(|name| door.cluster.find(&name)).transpose()?;
    let cursor = query.filled("cursor").unwrap_or_default().parse()?;
    let limit = usize::try_from(query.count("limit")?.unwrap_or(100).clamp(1, LIMIT_MAX)).unwrap_or(1);
    let found = door.service.audit_of_all(AuditQuery { cursor, filter: filter(&query)?, limit, member }).await?;
    let label = |member: MemberId| door.cluster.label(member);
    let record = |(member, line): &(MemberId, String)| AuditRecord { member: label(*member), line: line.clone() };
    let answered = |(member, end): (&MemberId, &u64)| AuditMember { member: label(*member), end: *end };
    let missing = |away: &MissingAudit| MissingMember { member: label(away.member), reason: away.reason.to_string() };
    let page = AuditPage {
        records: found.lines.iter().map(record).collect(),
        cursor: found.cursor.to_string(),
        more: found.more,
        members: found.answered.iter().map(answered).collect(),
        missing: found.missing.iter().map(missing).collect(),
    };
    Ok(answer::body(StatusCode::OK, &page))
}

fn filter(query: &Query<'_>) -> Result<AuditFilter, Problem> {
    let time = |name: &str| match query.filled(name) {
        None => Ok(None),
        Some(text) => match text.parse::<f64>() {
            Ok(seconds) if (0.0..1e12).contains(&seconds) => Ok(Some((seconds * 1e3) as u64)),
            _ => Err(Problem::malformed(format!("'{name}' must be Unix seconds"))),
        },
    };
    let decision = match query.filled("decision") {
        None => None,
        Some(word) => {
            let unknown = || Problem::malformed("'decision' must be allow, failed, deny or dropped");
            Some(AuditDecision::of_word(&word).ok_or_else(unknown)?)
        }
    };
    Ok(AuditFilter {
        principal: query.filled("principal"),
        verb: query.filled("verb"),
        object: query.filled("object"),
        namespace: query.filled("namespace"),
        decision,
        since_ms: time("since")?,
        until_ms: time("until")?,
    })
}

/// Records what an operation came to, if the service functions did not. An error if something was done and is not recorded.
pub(super) async fn note(
    door: &HttpDoor,
    caller: &Caller,
    operation: &Operation,
    path: &str,
    error: Option<&Problem>,
) -> Result<(), Problem> {
    let (audit, attempted) = (door.service.audit(), Attempted { verb: operation.id.name(), object: path });
    match error {
        Some(Problem::Service(error)) if is_denial(error) => audit.denied(caller, attempted, error).await,
        None if operation.beside_the_log => audit.done(caller, attempted).await?,
        _ => {}
    }
    Ok(())
}
