//! The orchestrator that a chain names decides on the jobs of its steps (compatibility §12.2). A namespace that has selected one asks that
//! instead, about all its jobs.
//!
//! It is asked before the job is submitted, by the leader that continues the run, so the job is submitted as decided. Two things are
//! remembered, in memory only: what was decided about a job, because a run that cannot go on is tried again, and who did not answer,
//! because one that hangs must not hold up every step.

use std::sync::Arc;
use std::time::Duration;

use atlas_state::{State, submitted};
use atlas_types::{ClusterTime, Decision, Failure, FailureKind, Job, Origin, Run, SubmitJob, Timestamp, Verdict};
use serde_json::{Map, Value};

use super::candidate::{Candidate, NoAnswer};
use super::router::PATIENCE;
use crate::kept::remember;
use crate::wish::{Will, Wish};
use crate::{Error, Service};

/// How long one that did not answer is not asked again.
const SILENT: Duration = Duration::from_secs(30);
/// Most characters that the log shows of a name under which there is no orchestrator: it may be any text.
const NAME_SHOWN_MAX: usize = 64;

impl Service {
    /// The job of a step of a run, as the orchestrator `name` wants it. One that is not there, or does not answer, decides nothing.
    pub(crate) async fn routed_step(
        &self,
        state: &State,
        run: &Run,
        name: &str,
        submit: SubmitJob,
    ) -> Result<SubmitJob, Error> {
        if name.is_empty() || state.routing(&run.namespace).is_some() {
            return Ok(submit);
        }
        let Some(wish) = self.wish_about_step(state, run, name, &submit).await? else { return Ok(submit) };
        let priority = wish.priority.unwrap_or(submit.priority);
        let submit = SubmitJob { priority, ..submit };
        Ok(match wish.will() {
            Will::Execute => submit,
            Will::Reject(reason) => rejected(told(submit, name, &wish), reason),
            Will::Redirect(agent) => {
                let submit = told(submit, name, &wish);
                let input = self.bytes(&submit.input).await?;
                let caller = (run.namespace.clone(), run.principal.clone());
                match self.redirected(caller, input, priority, agent).await? {
                    Decision::Redirect(agent, verdict) => SubmitJob { agent, verdict, ..submit },
                    Decision::Reject(reason) => rejected(submit, reason.to_string()),
                    Decision::Execute => submit,
                }
            }
        })
    }

    /// What the orchestrator wants for the job; none if it says nothing. An error if it could not be asked, and can be later.
    async fn wish_about_step(
        &self,
        state: &State,
        run: &Run,
        name: &str,
        submit: &SubmitJob,
    ) -> Result<Option<Wish>, Error> {
        let now = self.shared.env.clock.monotonic();
        let key = (run.namespace.clone(), name.to_owned());
        {
            let remembered = self.shared.chain_orchestrators.remembered();
            if let Some(wish) = remembered.decided.get(&submit.id) {
                return Ok(Some(wish.clone()));
            }
            if remembered.silent.get(&key).is_some_and(|until| now < *until) {
                return Ok(None);
            }
        }
        // A run that was cancelled meanwhile asks nobody: its step will not begin.
        if self.shared.handle.applied().run(run.id).is_none_or(|now| now.status.is_terminal()) {
            return Ok(None);
        }
        let Some(candidate) = Candidate::of(state, &run.namespace, name) else {
            let name: String = name.chars().take(NAME_SHOWN_MAX).collect();
            tracing::warn!(namespace = %run.namespace, orchestrator = name, "a chain names an orchestrator that is not there");
            return Ok(None);
        };
        let job = Arc::new(self.undecided(run, submit));
        let (why, is_silent) = match self.answers_of(&candidate, &[job], PATIENCE).await.map(|mut wishes| wishes.pop())
        {
            Ok(Some(Ok(wish))) => {
                remember(&mut self.shared.chain_orchestrators.remembered().decided, submit.id, wish.clone());
                return Ok(Some(wish));
            }
            Ok(answer) => {
                let why = answer.and_then(Result::err).unwrap_or_default();
                (why, matches!(candidate, Candidate::External(_)))
            }
            Err(NoAnswer::Silent(why)) => (why, true),
            Err(NoAnswer::Error(error)) => return Err(error),
        };
        tracing::warn!(namespace = %run.namespace, orchestrator = name, why, "the orchestrator of a chain did not decide");
        if is_silent {
            let until = self.shared.env.clock.monotonic().saturating_add(SILENT);
            remember(&mut self.shared.chain_orchestrators.remembered().silent, key, until);
        }
        Ok(None)
    }

    /// The job as its orchestrator sees it.
    fn undecided(&self, run: &Run, submit: &SubmitJob) -> Job {
        let now = Timestamp(self.shared.env.clock.wall().0);
        let origin = Origin {
            principal: run.principal.clone(),
            door: run.door,
            trace: run.trace,
            ..Origin::duty(run.namespace.clone())
        };
        let pin = match &submit.verdict {
            Verdict::Accepted(pin) | Verdict::Asked { pin, .. } => Some(pin.clone()),
            Verdict::Refused { pin, .. } => pin.clone(),
        };
        Job { pin, ..submitted(submit, &origin, now, ClusterTime::default()) }
    }
}

/// The job fails at once. Without a version, the contract's retries do not run what was rejected.
fn rejected(submit: SubmitJob, reason: String) -> SubmitJob {
    let failure = Failure { kind: FailureKind::Rejected, error: reason.into() };
    SubmitJob { verdict: Verdict::Refused { pin: None, failure }, ..submit }
}

/// The job with what happened to it in its metadata: who decided, by which rule, and on which agent.
fn told(submit: SubmitJob, name: &str, wish: &Wish) -> SubmitJob {
    let mut metadata: Map<String, Value> = serde_json::from_slice(&submit.metadata).unwrap_or_default();
    metadata.insert("_routed_by".to_owned(), name.into());
    metadata.insert("_routed_from".to_owned(), submit.agent.as_str().into());
    if let Some(rule) = &wish.rule {
        metadata.insert("_routed_rule".to_owned(), rule.as_str().into());
    }
    SubmitJob { metadata: Value::Object(metadata).to_string().into_bytes().into(), ..submit }
}
