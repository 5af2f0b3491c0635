//! Tests that frames convert both ways, and that hostile frames are refused.

use atlas_history::{JobFilter, JobKey, Part, Record};
use atlas_service::{AuditAsk, AuditDecision, AuditFilter, Query, QueryResult};
use atlas_types::{EventSeq, JobId, JobStatus, Namespace, Timestamp};
use atlas_wire::proto::peer::v1 as wire;
use expect_test::expect;
use wire::query_history_request::Question;

use super::convert::{audit_in, audit_out, audit_page_in, found_in, found_out, part_in, part_out, query_in, query_out};

#[test]
fn a_part_comes_back_as_it_was_sent() {
    let record = |seq, event: &[u8], job: &[u8]| Record { seq: EventSeq(seq), event: event.into(), job: job.into() };
    let part = Part {
        reached: EventSeq(9),
        floor: EventSeq(4),
        known: EventSeq(12),
        records: vec![record(3, b"", b"job"), record(5, b"event", b"")],
    };
    assert_eq!(part_in(part_out(part.clone())), part);
}

#[test]
fn questions_come_back_as_they_were_asked() {
    let filter = JobFilter {
        namespace: Some(Namespace::default_namespace()),
        status: Some(JobStatus::Failed),
        agent: Some("echo".parse().expect("a name")),
        since: Some(Timestamp(-1)),
        until: None,
        before: Some(9),
        labels: vec![("team".to_owned(), "blue".to_owned())],
        words: vec!["refused".to_owned()],
        by_end: true,
        limit: 7,
    };
    let questions = [
        Query::Job(JobId(u64::MAX)),
        Query::Between { first: JobId(1), last: JobId(2), limit: 3 },
        Query::List(filter),
        Query::List(JobFilter::default()),
        Query::EndedBy(vec![EventSeq(1), EventSeq(9)]),
    ];
    for query in questions {
        let back = query_in(Some(query_out(query.clone()))).expect("reads");
        assert_eq!(format!("{back:?}"), format!("{query:?}"));
    }
}

#[test]
fn answers_come_back_as_they_were_given() {
    let listed = JobKey { event: EventSeq(1), id: JobId(2), queue_seq: 3 };
    let found = QueryResult { jobs: Vec::new(), ids: vec![JobId(4)], listed: vec![listed], answered: 5 };
    let back = found_in(found_out(&found)).expect("reads");
    assert_eq!((back.ids, back.listed, back.answered), (found.ids, found.listed, found.answered));
}

#[test]
fn hostile_questions_and_answers_are_refused() {
    let filter = |change: fn(&mut wire::JobFilter)| {
        let mut filter = wire::JobFilter::default();
        change(&mut filter);
        Some(Question::Filter(filter))
    };
    let questions = [
        None,
        filter(|filter| filter.namespace = "../etc".to_owned()),
        filter(|filter| filter.status = "dead".to_owned()),
        filter(|filter| filter.agent = "x".repeat(10_000)),
        filter(|filter| filter.limit = u32::MAX),
        Some(Question::Range(wire::JobRange { first: 0, last: 1, limit: u32::MAX })),
        Some(Question::EndedBy(wire::EndedBy { events: vec![0; 250_001] })),
    ];
    let told: String = questions
        .into_iter()
        .map(|question| match query_in(question) {
            Ok(query) => format!("taken: {query:?}\n"),
            Err(error) => format!("{error}\n"),
        })
        .collect();
    expect![[r#"
        field "question" is missing
        field "filter.namespace" is malformed
        field "filter.status" is malformed
        field "filter.agent" is malformed
        field "filter.limit" has 4294967295 bytes or items, more than 250000
        field "range.limit" has 4294967295 bytes or items, more than 250000
        field "ended_by.events" has 250001 bytes or items, more than 250000
    "#]]
    .assert_eq(&told);
    let jobs = vec![b"not a job".as_slice().into()];
    assert!(found_in(wire::QueryHistoryResponse { jobs, ..Default::default() }).is_err());
    let listed = vec![wire::ListedJob::default(); 250_001];
    assert!(found_in(wire::QueryHistoryResponse { listed, ..Default::default() }).is_err());
}

#[test]
fn questions_to_an_audit_come_back_as_they_were_asked_and_hostile_ones_are_refused() {
    let filter = AuditFilter {
        principal: Some("ann".to_owned()),
        verb: Some("submitJob".to_owned()),
        object: Some("agent/".to_owned()),
        namespace: Some(String::new()),
        decision: Some(AuditDecision::Deny),
        since_ms: Some(3),
        until_ms: Some(7),
    };
    for ask in [AuditAsk { after: u64::MAX, filter, limit: 1_000 }, AuditAsk::default()] {
        let back = audit_in(audit_out(ask.clone())).expect("reads");
        assert_eq!(format!("{back:?}"), format!("{ask:?}"));
    }
    let sent = audit_out(AuditAsk { limit: 5, ..AuditAsk::default() });
    assert!(audit_in(wire::ReadAuditRequest { decision: Some("maybe".to_owned()), ..sent.clone() }).is_err());
    assert!(audit_in(wire::ReadAuditRequest { limit: 1_001, ..sent }).is_err());
}

#[test]
fn pages_of_an_audit_that_do_not_go_on_are_refused() {
    let page = wire::ReadAuditResponse { lines: vec![String::new()], last: 4, more: true, end: 9 };
    assert_eq!(audit_page_in((3, 5), page.clone()).expect("reads").last, 4);
    assert!(audit_page_in((5, 5), page.clone()).is_err());
    let idle = wire::ReadAuditResponse { lines: Vec::new(), last: 4, more: true, end: 9 };
    assert!(audit_page_in((4, 5), idle).is_err());
    assert!(audit_page_in((4, 5), wire::ReadAuditResponse { more: false, ..page.clone() }).is_ok());
    let long = wire::ReadAuditResponse { lines: vec![String::new(); 200], ..page };
    assert!(audit_page_in((3, 5), long).is_err());
}
