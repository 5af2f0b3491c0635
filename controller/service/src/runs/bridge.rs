//! Conversions by a model (compatibility §11.6): each attempt is a job of the agent `chain-bridge`, with the model of the tier `fast`.
//!
//! The idempotency key of such a job names the run, the step and the attempt. A leader that continues a run submits the same jobs
//! again, gets those that the leader before it submitted, and reads their answers: no answer is paid for twice, and nothing has
//! to be kept here.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_desk::on_behalf;
use atlas_mediation::{ATTEMPTS_MAX, Bridge, MediationError};
use atlas_objects::models_of_tier;
use atlas_package::{PackFile, pack_files};
use atlas_records::View;
use atlas_runs::{Next, Plan, StepInput};
use atlas_state::State;
use atlas_types::{AgentName, JobStatus, RequestId, Run, RunStrategy, Version};
use bytes::Bytes;
use serde_json::json;

use super::drive::caller_of;
use crate::Submission;
use crate::{Caller, Error, Service};

/// The tier whose model converts outputs.
pub(super) const TIER: &str = "fast";

/// The agent that asks the model. A namespace gets it with its first conversion, unless it has an agent of this name and version.
const CONTRACT: &str = include_str!("bridge.yaml");
const AGENT: &str = "chain-bridge";
const VERSION: Version = Version { major: 1, minor: 0, patch: 0 };

/// How often it is looked whether a run has ended that waits for a model.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Asks the model until an answer counts; none if the run has changed meanwhile.
pub(super) async fn convert(
    service: &Service,
    state: &State,
    run: &Run,
    plan: &Plan,
    (index, bridge): (usize, &Bridge),
) -> Result<Option<Next>, Error> {
    if models_of_tier(state, &run.namespace, TIER).is_empty() {
        return Ok(Some(Next::no_model(plan, index)));
    }
    let caller = on_behalf::principal(caller_of(run), run.principal.clone()).with_trace(run.trace);
    let name = AgentName::new(AGENT)?;
    if state.agent(&run.namespace, &name, VERSION).is_none() {
        let file = PackFile { path: "agent.yaml".to_owned(), bytes: CONTRACT.into(), executable: false };
        let package = pack_files(vec![file]).map_err(|error| Error::internal("pack an agent", &error))?;
        service.register(&caller, package.bytes.into(), false).await?;
    }
    let mut attempt = 1;
    let why = loop {
        service.shared.env.clock.sleep(Duration::from_secs_f64(Bridge::pause_s(attempt))).await;
        let answer =
            match answer(service, &caller, run, submission(&name, run, index, &bridge.prompt(attempt), attempt)?)
                .await?
            {
                Answer::Text(text) => text,
                Answer::Failed(why) => break why,
                Answer::Unwanted => return Ok(None),
            };
        match bridge.accept(&answer) {
            Ok(input) => return Ok(Some(Next::Step(StepInput { index, input, strategy: RunStrategy::Bridge }))),
            Err(_) if attempt < ATTEMPTS_MAX => attempt += 1,
            Err(error) => break Bridge::failed(&error),
        }
    };
    let error = MediationError::Failed { strategy: "llm_bridge", why }.to_string();
    Ok(Some(Next::failed(plan, index, &error)))
}

fn submission(name: &AgentName, run: &Run, index: usize, prompt: &str, attempt: u32) -> Result<Submission, Error> {
    let key = format!("{}:bridge:{index}:{attempt}", run.id.shown());
    let mut submission = Submission::new(name.clone(), Bytes::from(json!({ "prompt": prompt }).to_string()));
    submission.version = Some(VERSION.to_string());
    submission.priority = run.priority;
    submission.request_id = Some(RequestId::new(&key)?);
    submission.labels = [("chain".to_owned(), run.id.shown()), ("step".to_owned(), index.to_string())]
        .into_iter()
        .collect::<BTreeMap<_, _>>()
        .into();
    Ok(submission)
}

/// How an attempt ended.
enum Answer {
    /// With the text of the model.
    Text(String),
    /// With an error, which is not tried again.
    Failed(String),
    /// The run has ended or changed; the job was cancelled.
    Unwanted,
}

/// Submits the job of an attempt, or finds it, and waits for its end.
async fn answer(service: &Service, caller: &Caller, run: &Run, submission: Submission) -> Result<Answer, Error> {
    let id = service.submit(caller, submission).await?;
    loop {
        let shown = service.wait_family(caller, id, View::Plain, LOOK_INTERVAL).await?;
        let job = shown.job();
        match job.status {
            JobStatus::Completed => {
                let output = shown.output().unwrap_or_default();
                return Ok(Answer::Text(output["result"].as_str().unwrap_or_default().to_owned()));
            }
            JobStatus::Cancelled => return Ok(Answer::Failed("Job was cancelled".to_owned())),
            JobStatus::Failed => {
                let error = job.failure.as_ref().map(|failure| failure.error.to_string());
                return Ok(Answer::Failed(error.unwrap_or_default()));
            }
            JobStatus::Pending | JobStatus::Running => {
                let now = service.shared.handle.applied();
                // In a run with branches, other steps may go on meanwhile.
                let is_other = |now: &Run| match run.branches {
                    Some(_) => now.status.is_terminal(),
                    None => now.version != run.version,
                };
                if now.run(run.id).is_none_or(|now| is_other(now)) {
                    service.shared.jobs.cancel_for(caller, id, true).await?;
                    return Ok(Answer::Unwanted);
                }
            }
        }
    }
}
