//! Metrics from events: counted once, from the log, whichever door or leader task caused them.

use atlas_duty::Brief;
use atlas_state::State;
use atlas_telemetry::{
    ByCircuit, ByDecision, ByHealth, ByOutcome, ByReason, ByStatus, Metrics, NodeHealth, Outcome, Status,
};
use atlas_types::{Event, EventRecord, FailureKind, Job, JobChange, JobStatus, RouteAction, Timestamp};

/// Updates the metrics for the events of an entry.
pub fn record(metrics: &Metrics, events: &[EventRecord]) {
    metrics.raft_entries.inc();
    for event in events {
        if let Event::Job { change, job, .. } = &event.event
            && !job.is_system()
        {
            job_changed(metrics, *change, job);
            decided(metrics, *change, job);
        }
    }
}

fn job_changed(metrics: &Metrics, change: JobChange, job: &Job) {
    match change {
        JobChange::Submitted => {
            metrics.job_submissions.inc();
            if job.retry_count > 0 {
                metrics.job_retries.inc();
            }
        }
        // Without a lease, the event is the first half of a failure of a job that never ran.
        JobChange::Granted if job.lease.is_some() => {
            metrics.job_attempts.inc();
            if job.attempt.0 == 1 {
                metrics.job_queue_wait.observe(seconds(job.created_at, job.started_at));
            }
        }
        JobChange::Carried => {
            metrics.job_queue_wait.observe(seconds(job.created_at, job.started_at));
        }
        JobChange::Lost => {
            metrics.lease_losses.inc();
        }
        JobChange::Ended => {
            metrics.job_ends.get_or_create(&ByOutcome { atlas_job_outcome: outcome(job) }).inc();
            if job.execution.0 > 0 {
                metrics.job_execution_duration.observe(job.execution.0 as f64 / 1e6);
            }
            if !job.warm && job.warmup.0 > 0 {
                metrics.slot_warmup_duration.observe(job.warmup.0 as f64 / 1e6);
            }
        }
        JobChange::Granted
        | JobChange::Started
        | JobChange::Woken
        | JobChange::Resolved
        | JobChange::Parked
        | JobChange::Routed
        | JobChange::Cancelling => {}
    }
}

/// Counts a decision of an orchestrator. A rejected job ends with it.
fn decided(metrics: &Metrics, change: JobChange, job: &Job) {
    let Some(route) = &job.route else { return };
    let decided = match change {
        JobChange::Routed => route.action.runs(),
        JobChange::Ended => route.action == RouteAction::Reject,
        _ => false,
    };
    if decided {
        let (atlas_route_action, atlas_route_decider) = (route.action.as_str(), route.decider.as_str());
        metrics.orchestrator_decisions.get_or_create(&ByDecision { atlas_route_action, atlas_route_decider }).inc();
    }
}

fn outcome(job: &Job) -> Outcome {
    match (job.status, job.failure.as_ref().map(|failure| failure.kind)) {
        (JobStatus::Completed, _) => Outcome::completed,
        (JobStatus::Cancelled, _) => Outcome::cancelled,
        (_, Some(FailureKind::LeaseLost)) => Outcome::lease_lost,
        (_, Some(FailureKind::Timeout | FailureKind::QueueTimeout)) => Outcome::timeout,
        (
            _,
            Some(
                FailureKind::NoAgent
                | FailureKind::InputInvalid
                | FailureKind::Unsatisfiable
                | FailureKind::Rejected
                | FailureKind::Dependency,
            ),
        ) => Outcome::refused,
        _ => Outcome::failed,
    }
}

fn seconds(start: Timestamp, end: Timestamp) -> f64 {
    (end.0 - start.0).max(0) as f64 / 1e6
}

/// The most classes of waiting jobs that one scrape examines.
const CLASSES_MAX: usize = 1_000;

/// Sets the gauges of waiting jobs. Reasons without jobs are set to 0, so that their series do not stay at an old value.
fn waiting(metrics: &Metrics, state: &State) {
    let classes = atlas_duty::waiting_by_reason(state, CLASSES_MAX);
    let of = |brief| classes.get(&brief).map_or(0, |count| *count as u64);
    let held = state.held_back();
    for (atlas_job_reason, count) in [
        ("queued", of(Brief::Turn) + held.carried),
        ("no_node", of(Brief::NoNode)),
        ("no_room", of(Brief::NoRoom)),
        ("unsatisfiable", of(Brief::NeverSatisfiable)),
        ("concurrency", of(Brief::Concurrency)),
        ("namespace_limit", of(Brief::NamespaceLimit)),
        ("key_limit", of(Brief::KeyLimit)),
        ("rate_limit", of(Brief::Rate)),
        ("circuit", of(Brief::Circuit)),
        ("backoff", held.backoff),
        ("delayed", held.delayed),
        ("parked", held.parked),
        ("routing", held.routing),
        ("approval", held.approval),
        ("in_doubt", held.in_doubt),
    ] {
        let gauge = metrics.job_waiting.get_or_create(&ByReason { atlas_job_reason });
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}

/// Sets the gauges that are computed from a state.
pub(crate) fn gauges(metrics: &Metrics, state: &State) {
    let set = |status, count: u64| {
        let gauge = metrics.job_count.get_or_create(&ByStatus { atlas_job_status: status });
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    };
    set(Status::pending, state.pending());
    set(Status::running, state.running());
    waiting(metrics, state);
    let (agents, nodes) = state.circuits_open();
    for (atlas_circuit_kind, count) in [("agent", agents), ("node", nodes)] {
        let gauge = metrics.circuit_open.get_or_create(&ByCircuit { atlas_circuit_kind });
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
    let ready = state.nodes().filter(|node| node.node.health == atlas_types::NodeHealth::Ready).count();
    for (health, count) in [(NodeHealth::ready, ready), (NodeHealth::down, state.nodes().len() - ready)] {
        let gauge = metrics.node_count.get_or_create(&ByHealth { atlas_node_health: health });
        gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    }
}
