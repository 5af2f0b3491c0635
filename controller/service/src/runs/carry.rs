//! Gives each job whose agent is a chain a run of that chain.
//!
//! The run has the id of the job, so a leader that takes over cannot start a second one. The end of the run ends the job, and the
//! end of the job stops the run, in one entry (`atlas-state`); nothing has to be followed here.

use std::sync::Arc;

use atlas_raft::Leadership;
use atlas_state::State;
use atlas_types::{
    CancelRun, CarryJob, Command, Event, EventRecord, FailPending, Failure, FailureKind, Job, Origin, Request,
    RunDefinition, RunId, StartRun,
};
use bytes::Bytes;
use serde_json::Value;
use tokio::sync::broadcast::error::RecvError;

use super::drive::PAUSE;
use crate::service::Shared;
use crate::{Error, Service};

/// Most jobs that get a run at once.
const AT_ONCE_MAX: usize = 64;
/// Most chains inside each other.
const NESTED_MAX: usize = 8;
/// Most jobs above a job that are looked at.
const ABOVE_MAX: usize = 64;

/// Gives jobs their runs as long as this member leads.
pub(crate) async fn carry(shared: Arc<Shared>) {
    let mut leadership = shared.handle.leadership();
    let leads = |leadership: &Leadership| matches!(leadership, Leadership::Leader { .. });
    while leadership.wait_for(leads).await.is_ok() {
        let service = Service { shared: Arc::clone(&shared) };
        tokio::select! {
            biased;
            ended = leadership.wait_for(|now| !leads(now)) => if ended.is_err() {
                return;
            },
            () = lead(&service) => return,
        }
    }
}

/// Completes when the log ends.
async fn lead(service: &Service) {
    let handle = &service.shared.handle;
    let clock = &service.shared.env.clock;
    let mut batches = handle.subscribe_to(|batch| batch.events.iter().any(waits));
    let mut over = clock.sleep(PAUSE);
    loop {
        let state = handle.applied();
        let jobs: Vec<Arc<Job>> = state.waiting_for_runs().take(AT_ONCE_MAX).cloned().collect();
        let more = jobs.len() == AT_ONCE_MAX;
        let began = jobs.is_empty() || begin(service, &state, &jobs).await;
        if began && more {
            continue;
        }
        tokio::select! {
            biased;
            batch = batches.recv() => if matches!(batch, Err(RecvError::Closed)) {
                return;
            },
            () = &mut over => over = clock.sleep(PAUSE),
        }
    }
}

fn waits(event: &EventRecord) -> bool {
    matches!(&event.event, Event::Job { job, .. } if job.is_for_a_run() && !job.status.is_terminal())
}

/// Starts the runs of jobs, and gives them the jobs. False if that has to be tried again.
async fn begin(service: &Service, state: &State, jobs: &[Arc<Job>]) -> bool {
    let (mut starts, mut carries) = (Vec::with_capacity(jobs.len()), Vec::with_capacity(jobs.len()));
    for job in jobs {
        let origin = Origin {
            principal: job.principal.clone(),
            door: job.door,
            trace: job.trace,
            ..Origin::duty(job.namespace.clone())
        };
        let request = |command| Request { origin: origin.clone(), command };
        match definition(service, state, job).await {
            Ok(Ok(definition)) => {
                let run = RunId(job.id.0);
                let (input, metadata) = (job.input.clone(), Arc::clone(&job.metadata));
                let start = StartRun { id: run, definition, input, priority: job.priority, metadata };
                starts.push(request(Command::StartRun(start)));
                carries.push(Some(request(Command::CarryJob(CarryJob { job: job.id, run }))));
            }
            Ok(Err(error)) => {
                let failure = Failure { kind: FailureKind::Dependency, error: error.into() };
                starts.push(request(Command::FailPending(FailPending { job: job.id, failure })));
                carries.push(None);
            }
            Err(error) => {
                tracing::warn!(job = %job.id, error = &error as &dyn std::error::Error, "a chain could not be started");
            }
        }
    }
    // A run that is refused, for example because there are too many, must not get its job. One that ends first ends the job when it gets it.
    let Some(started) = proposed(service, starts).await else { return false };
    let all = started.iter().all(|started| *started) && started.len() == jobs.len();
    let carries: Vec<Request> =
        carries.into_iter().zip(started).filter_map(|(carry, started)| carry.filter(|_| started)).collect();
    let Some(carried) = proposed(service, carries.clone()).await else { return false };
    // A job that was cancelled meanwhile needs no run.
    let unwanted = carries.into_iter().zip(carried).filter(|(_, carried)| !carried).filter_map(|(request, _)| {
        let Command::CarryJob(CarryJob { run, .. }) = request.command else { return None };
        Some(Request { command: Command::CancelRun(CancelRun { run }), origin: request.origin })
    });
    proposed(service, unwanted.collect()).await.is_some() && all
}

/// Whether each request was accepted; none if that is not known.
async fn proposed(service: &Service, requests: Vec<Request>) -> Option<Vec<bool>> {
    if requests.is_empty() {
        return Some(Vec::new());
    }
    match service.shared.handle.propose_here(requests).await {
        Ok(answers) => Some(answers.iter().map(Result::is_ok).collect()),
        Err(error) => {
            tracing::debug!(%error, "jobs did not get their runs");
            None
        }
    }
}

/// The chain of a job's agent version, or why it must not run.
async fn definition(service: &Service, state: &State, job: &Job) -> Result<Result<RunDefinition, String>, Error> {
    let above = chains_above(state, job);
    if let Some(error) = refusal(job.agent.as_str(), &above) {
        return Ok(Err(error));
    }
    let agent = job.pin.as_ref().and_then(|pin| state.agent(&job.namespace, &job.agent, pin.version));
    let Some(agent) = agent else {
        return Ok(Err(format!("No agent implementation found for: {}", job.agent)));
    };
    let known = service.shared.registry.contract(agent).await?;
    let steps = known.value["provider"]["steps"].as_array().cloned().unwrap_or_default();
    let count = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    let orchestrator = known.value["provider"]["orchestrator"].as_str().unwrap_or_default();
    let document =
        serde_json::json!({"name": job.agent.as_str(), "orchestrator": orchestrator, "steps": Value::Array(steps)});
    let document = service.payload(Bytes::from(document.to_string())).await?;
    Ok(Ok(RunDefinition::Given { chain: job.agent.as_str().into(), steps: count, document }))
}

/// The chains inside which a job runs, the outermost first.
fn chains_above(state: &State, job: &Job) -> Vec<String> {
    let mut names = Vec::new();
    let mut at = Some(Arc::new(job.clone()));
    for _ in 0..ABOVE_MAX {
        let Some(job) = at else { break };
        at = match (job.step, job.spawned) {
            (Some(step), _) => {
                let carried = state.carried_by(step.run).cloned();
                // A definition that came with a request has a name, but nobody can call it by that.
                let is_named = |run: &&Arc<atlas_types::Run>| run.revision.is_some() || carried.is_some();
                names.extend(state.run(step.run).filter(is_named).map(|run| run.chain.to_string()));
                carried
            }
            (None, Some(spawned)) => state.job(spawned.by).cloned(),
            (None, None) => None,
        };
    }
    names.reverse();
    names
}

/// Why a chain may not run inside of others.
fn refusal(chain: &str, above: &[String]) -> Option<String> {
    if let Some(at) = above.iter().position(|name| name == chain) {
        let cycle = above.iter().skip(at).map(String::as_str).chain([chain]).collect::<Vec<_>>().join(" → ");
        return Some(format!("the chain calls itself: {cycle}"));
    }
    (above.len() >= NESTED_MAX)
        .then(|| format!("more than {NESTED_MAX} chains are inside each other: {} → {chain}", above.join(" → ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_and_deep_nests_are_refused_by_name() {
        let names = |text: &str| text.split(' ').filter(|name| !name.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(refusal("c", &names("a b")), None);
        assert_eq!(refusal("b", &names("a b c")).as_deref(), Some("the chain calls itself: b → c → b"));
        assert_eq!(refusal("a", &names("a")).as_deref(), Some("the chain calls itself: a → a"));
        let deep = refusal("i", &names("a b c d e f g h")).expect("too deep");
        assert!(deep.ends_with("a → b → c → d → e → f → g → h → i"), "{deep}");
    }
}
