//! A job as the history has it.

use std::sync::Arc;

use atlas_types::{
    Attempt, ClusterTime, Door, Job, JobStatus, Journal, Micros, Payload, Reason, Seq, Step, StepKey, StepKind,
    StepUsage, Timestamp,
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
        pin: None,
        spec: None,
        status: JobStatus::Completed,
        reason: Reason::Running,
        priority: 3,
        submitted_seq: Seq(5),
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
        node: Some("n1".parse().expect("a name")),
        door: Door::Http,
        journal: Some(Arc::new(Journal { steps, ..Journal::default() })),
        ..atlas_kit::job(id).of("summarize").pending()
    }
}
