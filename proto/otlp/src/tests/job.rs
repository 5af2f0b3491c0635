//! A job as the history has it.

use std::sync::Arc;

use atlas_types::{
    Attempt, ClusterTime, Door, Job, JobId, JobStatus, Journal, Micros, Namespace, Payload, Principal, Reason, Seq,
    Step, StepKey, StepKind, StepUsage, Timestamp,
};

/// 2026-11-25.
const BEGIN: i64 = 1_795_564_800_000_000;

/// A job that completed in a cold slot, with a model call and a round of tools.
pub(super) fn job(id: u64) -> Job {
    let at = |seconds: i64| Timestamp(BEGIN + seconds * 1_000_000);
    let step = |kind, millis: u64, outcome: &[u8]| {
        let usage =
            StepUsage { duration: Micros(millis * 1_000), tokens_input: 100, tokens_output: 20, cost_nanodollars: 1 };
        Arc::new(Step { kind, key: StepKey([1; 16]), outcome: Payload::inline(outcome), usage })
    };
    let answer = br#"{"parts":[{"text":"secret text"}],"model":"m-1"}"#;
    let steps =
        vec![step(StepKind::Start, 0, b"{}"), step(StepKind::Model, 2_000, answer), step(StepKind::Tools, 500, b"{}")];
    Job {
        namespace: Namespace::default_namespace(),
        id: JobId(id),
        agent: "summarize".parse().expect("a name"),
        pin: None,
        spec: None,
        status: JobStatus::Completed,
        reason: Reason::Running,
        priority: 3,
        queue_seq: id,
        submitted_seq: Seq(5),
        input: Payload::inline(b"{}"),
        output: Some(Payload::inline(b"{}")),
        failure: None,
        created_at: at(0),
        started_at: at(1),
        completed_at: at(5),
        queued_at: ClusterTime(4),
        warmup: Micros(500_000),
        execution: Micros(3_000_000),
        warm: false,
        attempt: Attempt(1),
        lease: None,
        carried: None,
        retry_count: 0,
        original: None,
        successor: None,
        spawned: None,
        node: Some("n1".parse().expect("a name")),
        metadata: b"{}".as_slice().into(),
        labels: Arc::default(),
        execution_timeout: None,
        principal: Principal::local(),
        door: Door::Http,
        request_id: None,
        trace: None,
        stream: None,
        journal: Some(Arc::new(Journal { steps, ..Journal::default() })),
        bearer: false,
        budget_nanodollars: None,
        waits_for_node: false,
        step: None,
        context: None,
        fork: None,
        questions: atlas_types::QuestionRule::Fail,
        route: None,
        evidence: None,
        approvals: None,
        parks: 0,
        used: Micros::default(),
        parked: None,
        slept_until: Timestamp::NOT_YET,
    }
}
