//! Timers on the cluster's clock: backoffs that have passed, waits and runs that took too long, expired join tokens.

use atlas_state::{State, Timer, TimerKey, TimerKind, job_timer};
use atlas_types::{
    Carried, CarriedEnd, ClusterTime, Command, EndCarried, ExpireQuestion, FailJob, FailPending, Failure, FailureKind,
    Job, JobId, Micros, Namespace, Reason, Request, RevokeJoinToken, Usage, WakeJob,
};

use crate::{request, requirements, route};

/// Up to `budget` commands for what is due at `now`, the first due first.
pub fn expire(state: &State, now: ClusterTime, budget: usize) -> Vec<Request> {
    state.due(now).take(budget).filter_map(|timer| command(state, timer)).collect()
}

fn command(state: &State, timer: &Timer) -> Option<Request> {
    match &timer.key {
        TimerKey::Job(id) => job_command(state, *id),
        TimerKey::JoinToken(hash) => {
            let command = Command::RevokeJoinToken(RevokeJoinToken { hash: *hash });
            Some(request(&Namespace::default_namespace(), command))
        }
        TimerKey::Question(id) => {
            let command = Command::ExpireQuestion(ExpireQuestion { question: *id });
            Some(request(&state.question(*id)?.namespace, command))
        }
        // Kept for as long as the leader's options say: see `delete_retired`.
        TimerKey::RetiredAgent(..) => None,
    }
}

fn job_command(state: &State, id: JobId) -> Option<Request> {
    let job = state.job(id)?;
    let (_, kind) = job_timer(job)?;
    let command = match kind {
        TimerKind::Wake => {
            // A parked job has started: the agents that it requires were there.
            let failed = requirements::failed(state, job).filter(|_| job.reason != Reason::Parked);
            failed.unwrap_or(Command::WakeJob(WakeJob { job: id }))
        }
        TimerKind::QueueTimeout => {
            let waited = job.spec.as_ref()?.timeouts.queue?;
            let error = format!("Queue timeout: not started within {}", seconds(waited));
            Command::FailPending(FailPending { job: id, failure: failure(FailureKind::QueueTimeout, error) })
        }
        TimerKind::Route => route::overdue(state, job),
        TimerKind::Execution => overdue(job)?,
    };
    Some(request(&job.namespace, command))
}

/// The end of an attempt whose worker should have ended it: it holds a session and yet does not keep to its own limits. Or the end
/// of a job that a run carries, whose limit nobody else enforces.
///
/// The leader reports in place of the lease's holder, so the lease ends and later reports are fenced.
fn overdue(job: &Job) -> Option<Command> {
    let limit = job.execution_timeout.unwrap_or(job.spec.as_ref()?.timeouts.execution);
    let failure = failure(FailureKind::Timeout, format!("Execution timed out after {}", seconds(limit)));
    if let Some(Carried { run, .. }) = job.carrier() {
        let end = CarriedEnd::Failed { failure, output: None };
        return Some(Command::EndCarried(EndCarried { job: job.id, run, end, metadata: None }));
    }
    let lease = job.lease.as_ref()?;
    Some(Command::FailJob(FailJob {
        job: job.id,
        node: lease.node.clone(),
        token: lease.token,
        failure,
        output: None,
        usage: Usage::default(),
        metadata: None,
        stream: None,
    }))
}

fn failure(kind: FailureKind, error: String) -> Failure {
    Failure { kind, error: error.into() }
}

/// Seconds as Atlas for Python prints them: always with a fraction (`60.0s`, `0.3s`).
fn seconds(duration: Micros) -> String {
    format!("{:?}s", duration.0 as f64 / 1e6)
}
