//! Converts between frames and the types of the history. All limits are checked on received frames, because they come
//! from a peer.

use std::sync::Arc;

use atlas_format::{decode_job, encode_job};
use atlas_history::{JobFilter, JobKey, Part, Record};
use atlas_service::{AuditAsk, AuditDecision, AuditFilter, AuditPage, Query, QueryResult};
use atlas_types::{AgentName, EventSeq, JobId, Namespace, Timestamp};
use atlas_wire::ConvertError;
use atlas_wire::proto::peer::v1 as wire;
use wire::query_history_request::Question;

/// The most jobs in one answer, and the most events in one request.
const ITEMS_MAX: usize = 250_000;
/// The most records of an audit in one answer, and the most damaged lines before one of them.
const RECORDS_MAX: usize = 1_000;
const DAMAGED_MAX: usize = 16;

pub(super) fn part_out(part: Part) -> wire::FetchHistoryResponse {
    let record = |record: Record| wire::HistoryRecord {
        event_seq: record.seq.0,
        event: record.event.into(),
        job: record.job.into(),
    };
    wire::FetchHistoryResponse {
        reached: part.reached.0,
        floor: part.floor.0,
        known: part.known.0,
        records: part.records.into_iter().map(record).collect(),
    }
}

/// The content is checked where it is used: the history refuses a part with holes.
pub(super) fn part_in(part: wire::FetchHistoryResponse) -> Part {
    let record = |record: wire::HistoryRecord| Record {
        seq: EventSeq(record.event_seq),
        event: record.event.into(),
        job: record.job.into(),
    };
    Part {
        reached: EventSeq(part.reached),
        floor: EventSeq(part.floor),
        known: EventSeq(part.known),
        records: part.records.into_iter().map(record).collect(),
    }
}

pub(super) fn audit_out(ask: AuditAsk) -> wire::ReadAuditRequest {
    let AuditAsk { after, filter, limit } = ask;
    wire::ReadAuditRequest {
        cluster_id: bytes::Bytes::new(),
        after,
        limit: count_out(limit),
        principal: filter.principal,
        verb: filter.verb,
        object: filter.object,
        namespace: filter.namespace,
        decision: filter.decision.map(|decision| decision.as_str().to_owned()),
        since_ms: filter.since_ms,
        until_ms: filter.until_ms,
    }
}

pub(super) fn audit_in(request: wire::ReadAuditRequest) -> Result<AuditAsk, ConvertError> {
    let limit = request.limit as usize;
    if limit > RECORDS_MAX {
        return Err(ConvertError::TooLarge { field: "limit", found: limit, max: RECORDS_MAX });
    }
    let decision = match request.decision {
        None => None,
        Some(word) => Some(AuditDecision::of_word(&word).ok_or(ConvertError::Form { field: "decision" })?),
    };
    let filter = AuditFilter {
        principal: request.principal,
        verb: request.verb,
        object: request.object,
        namespace: request.namespace,
        decision,
        since_ms: request.since_ms,
        until_ms: request.until_ms,
    };
    Ok(AuditAsk { after: request.after, filter, limit })
}

/// A page that was read after a number. Its lines are checked where they are used.
pub(super) fn audit_page_in(ask: (u64, usize), page: wire::ReadAuditResponse) -> Result<AuditPage, ConvertError> {
    let (after, limit) = ask;
    let max = limit.saturating_add(1).saturating_mul(DAMAGED_MAX + 1);
    if page.lines.len() > max {
        return Err(ConvertError::TooLarge { field: "lines", found: page.lines.len(), max });
    }
    // A page that does not go on would be asked for again and again.
    if page.last < after || (page.more && page.last == after && page.lines.is_empty()) {
        return Err(ConvertError::Form { field: "last" });
    }
    let wire::ReadAuditResponse { lines, last, more, end } = page;
    Ok(AuditPage { lines, last, more, end })
}

pub(super) fn query_out(query: Query) -> Question {
    match query {
        Query::Job(id) => Question::JobId(id.0),
        Query::Between { first, last, limit } => {
            Question::Range(wire::JobRange { first: first.0, last: last.0, limit: count_out(limit) })
        }
        Query::List(filter) => Question::Filter(wire::JobFilter {
            namespace: filter.namespace.map(|name| name.as_str().to_owned()).unwrap_or_default(),
            status: filter.status.map(|status| status.as_str().to_owned()).unwrap_or_default(),
            agent: filter.agent.map(|name| name.as_str().to_owned()).unwrap_or_default(),
            since: filter.since.map(|time| time.0),
            until: filter.until.map(|time| time.0),
            by_end: filter.by_end,
            before: filter.before,
            labels: filter.labels.into_iter().map(|(key, value)| wire::JobLabel { key, value }).collect(),
            words: filter.words,
            limit: count_out(filter.limit),
        }),
        Query::EndedBy(events) => {
            Question::EndedBy(wire::EndedBy { events: events.into_iter().map(|event| event.0).collect() })
        }
    }
}

pub(super) fn query_in(question: Option<Question>) -> Result<Query, ConvertError> {
    match question.ok_or(ConvertError::Missing { field: "question" })? {
        Question::JobId(id) => Ok(Query::Job(JobId(id))),
        Question::Range(wire::JobRange { first, last, limit }) => Ok(Query::Between {
            first: JobId(first),
            last: JobId(last),
            limit: count_in("range.limit", limit as usize)?,
        }),
        Question::Filter(filter) => Ok(Query::List(JobFilter {
            namespace: given("filter.namespace", &filter.namespace, Namespace::new)?,
            status: given("filter.status", &filter.status, str::parse)?,
            agent: given("filter.agent", &filter.agent, AgentName::new)?,
            since: filter.since.map(Timestamp),
            until: filter.until.map(Timestamp),
            by_end: filter.by_end,
            before: filter.before,
            labels: filter.labels.into_iter().map(|label| (label.key, label.value)).collect(),
            // Cut again, because only words of this form have no meaning in the language of the history's index.
            words: filter.words.iter().flat_map(|word| atlas_history::words(word)).collect(),
            limit: count_in("filter.limit", filter.limit as usize)?,
        })),
        Question::EndedBy(wire::EndedBy { events }) => {
            count_in("ended_by.events", events.len())?;
            Ok(Query::EndedBy(events.into_iter().map(EventSeq).collect()))
        }
    }
}

pub(super) fn found_out(found: &QueryResult) -> wire::QueryHistoryResponse {
    let listed = |listed: &JobKey| wire::ListedJob {
        event_seq: listed.event.0,
        job_id: listed.id.0,
        queue_seq: listed.queue_seq,
    };
    wire::QueryHistoryResponse {
        jobs: found.jobs.iter().map(|job| encode_job(job).into()).collect(),
        job_ids: found.ids.iter().map(|id| id.0).collect(),
        listed: found.listed.iter().map(listed).collect(),
        answered: count_out(found.answered),
    }
}

pub(super) fn found_in(found: wire::QueryHistoryResponse) -> Result<QueryResult, ConvertError> {
    count_in("listed", found.listed.len())?;
    count_in("job_ids", found.job_ids.len())?;
    let job = |bytes: &bytes::Bytes| decode_job(bytes).map(Arc::new).map_err(|_| ConvertError::Form { field: "jobs" });
    let listed = |listed: &wire::ListedJob| JobKey {
        event: EventSeq(listed.event_seq),
        id: JobId(listed.job_id),
        queue_seq: listed.queue_seq,
    };
    Ok(QueryResult {
        jobs: found.jobs.iter().map(job).collect::<Result<_, _>>()?,
        ids: found.job_ids.into_iter().map(JobId).collect(),
        listed: found.listed.iter().map(listed).collect(),
        answered: found.answered as usize,
    })
}

/// Parses a text. An empty text means that the field is not set.
fn given<'t, T, E>(
    field: &'static str,
    text: &'t str,
    read: impl FnOnce(&'t str) -> Result<T, E>,
) -> Result<Option<T>, ConvertError> {
    if text.is_empty() { Ok(None) } else { read(text).map(Some).map_err(|_| ConvertError::Form { field }) }
}

fn count_out(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn count_in(field: &'static str, found: usize) -> Result<usize, ConvertError> {
    if found > ITEMS_MAX { Err(ConvertError::TooLarge { field, found, max: ITEMS_MAX }) } else { Ok(found) }
}
