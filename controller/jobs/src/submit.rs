//! Submitting: resolve the version, check the input, store large payloads, propose.

use std::sync::Arc;
use std::time::Duration;

use atlas_contract::{Violation, joined};
use atlas_desk::{Caller, Error, on_behalf, requests};
use atlas_duty::waits_for_node;
use atlas_registry::{KnownContract, Operation, PolicyOperation, unknown_agent};
use atlas_state::State;
use atlas_types::{
    AgentKind, AgentPin, AgentVersion, Command, Door, Failure, FailureKind, JobId, Origin, Outcome, Payload, PolicyRef,
    Rejection, Request, RequiredAgent, SubmitJob, Verdict,
};
use bytes::Bytes;
use serde_json::Value;

use crate::inbound::IntendedJob;
use crate::named;
use crate::submission::resolve;
use crate::{Jobs, Submission};

/// A submission in progress, and its result.
pub struct Draft<'s> {
    submission: &'s Submission,
    origin: Origin,
    id: JobId,
    stored: Option<Payload>,
    /// Its result, once there is one.
    pub answer: Option<Result<JobId, Error>>,
}

impl<'s> Draft<'s> {
    /// A submission under an id.
    pub fn new(caller: &Caller, submission: &'s Submission, id: JobId) -> Self {
        let mut origin = requests::origin(caller);
        if let Some(request_id) = &submission.request_id {
            (origin.request_id, origin.body_hash) = (Some(request_id.clone()), submission.body_hash());
        }
        Self { submission, origin, id, stored: None, answer: None }
    }

    /// The first answer, if the submission's idempotency key was used before.
    pub fn remembered(&self, state: &State) -> Option<Result<JobId, Error>> {
        self.submission.request_id.as_ref()?;
        Some(match state.remembered(&self.origin)? {
            Ok(Outcome::Submitted { job, .. }) => Ok(job),
            Ok(_) => Err(Error::RequestConflict),
            Err(rejection) => Err(rejection.into()),
        })
    }

    /// The request. None until the input is stored.
    fn request(&self, verdict: Verdict, waits_for_node: bool, policies: Vec<PolicyRef>) -> Option<Request> {
        let Self { submission, origin, id, stored, .. } = self;
        let command = submission.command(*id, verdict, stored.clone()?);
        let command = Command::SubmitJob(SubmitJob { waits_for_node, policies, ..command });
        Some(Request { origin: origin.clone(), command })
    }
}

/// The state against which submissions are checked.
///
/// `apply` checks accepted submissions against the state, but nothing checks a refusal. A deposed leader that does not
/// know it yet must not refuse based on old data, so a refusal needs a state with everything acknowledged.
struct Judge {
    state: State,
    sure: Option<State>,
}

impl Judge {
    /// The newest state that it judged by.
    fn latest(&self) -> &State {
        self.sure.as_ref().unwrap_or(&self.state)
    }

    /// Resolves the version and checks the input. The outer error applies to all submissions.
    async fn verdict(
        &mut self,
        jobs: &Jobs,
        caller: &Caller,
        submission: &Submission,
    ) -> Result<Result<Verdict, Error>, Error> {
        let found = jobs.judge(caller, submission, &self.state).await;
        if matches!(found, Ok(Verdict::Accepted(_)) | Err(Error::Malformed(_))) {
            return Ok(found);
        }
        let sure = match &self.sure {
            Some(sure) => sure,
            None => &*self.sure.insert(jobs.desk.read().await?),
        };
        if sure.seq() == self.state.seq() {
            return Ok(found);
        }
        Ok(jobs.judge(caller, submission, sure).await)
    }
}

/// Why an input is refused, with two texts.
struct Refusal {
    /// The text of Atlas for Python, for the job's error.
    told: Vec<Violation>,
    /// Our own text with places and suggestions, for refusals.
    explained: Vec<Violation>,
}

/// Inputs up to this size are checked on the door's own thread.
const SMALL_BYTES_MAX: usize = 16 * 1024;
/// A contract with a slower check is not checked on that thread again.
const SLOW_CHECK: Duration = Duration::from_millis(1);
/// How often a submission is repeated if the agent was replaced or the random id was taken between look-up and commit.
const RACES_MAX: usize = 5;

impl Jobs {
    /// Submits a job, under this id if there is one.
    pub async fn submit_as(&self, caller: &Caller, submission: &Submission, id: Option<JobId>) -> Result<JobId, Error> {
        let intended = IntendedJob { id: id.unwrap_or_else(|| self.draw_id()), stays: id.is_some() };
        self.submit_by(caller, submission, intended, None).await
    }

    /// Submits a job. It is checked first against a state that was just read, if there is one.
    pub async fn submit_by(
        &self,
        caller: &Caller,
        submission: &Submission,
        intended: IntendedJob,
        read: Option<State>,
    ) -> Result<JobId, Error> {
        let IntendedJob { id, .. } = intended;
        // On the heap: what is awaited here is large, and stacks of threads are not.
        let carrying = match on_behalf::credential(caller) {
            Some(_) => Box::pin(self.hold_inbound(caller, submission, intended)).await?,
            None => None,
        };
        let submission = carrying.as_ref().unwrap_or(submission);
        let submitted = Box::pin(self.submit_one(caller, submission, id, read)).await;
        if carrying.is_some() {
            match &submitted {
                Ok(submitted) if *submitted == id => {}
                Ok(_) => self.forget_unused(id),
                Err(error) => self.forget_unsubmitted(intended, error),
            }
        }
        submitted
    }

    /// Refuses what submitting it would refuse.
    pub async fn refuses(&self, caller: &Caller, submission: &Submission, state: State) -> Result<(), Error> {
        let mut judge = Judge { state, sure: None };
        Box::pin(judge.verdict(self, caller, submission)).await?.map(drop)
    }

    async fn submit_one(
        &self,
        caller: &Caller,
        submission: &Submission,
        id: JobId,
        read: Option<State>,
    ) -> Result<JobId, Error> {
        let mut drafts = [Draft::new(caller, submission, id)];
        // Boxed, because it is part of the futures of many operations, one within the other.
        Box::pin(self.submit_drafts(caller, &mut drafts, read)).await?;
        let [draft] = drafts;
        draft.answer.unwrap_or(Err(Error::Overloaded))
    }

    /// An id for a new job.
    pub fn draw_id(&self) -> JobId {
        JobId(self.desk.env.entropy.u64())
    }

    /// Submits jobs in order with one proposal and stores the answer of each. An error applies to all jobs that have no
    /// answer then.
    pub(crate) async fn submit_drafts(
        &self,
        caller: &Caller,
        drafts: &mut [Draft<'_>],
        mut read: Option<State>,
    ) -> Result<(), Error> {
        for draft in &mut *drafts {
            draft.answer = draft.submission.check().err().map(Err);
        }
        if drafts.iter().any(|draft| draft.submission.request_id.is_some()) {
            // A repeat gets the first answer, even if the agent has changed.
            let state = match read.take() {
                Some(state) => state,
                None => self.desk.current().await?,
            };
            for draft in drafts.iter_mut().filter(|draft| draft.answer.is_none()) {
                draft.answer = draft.remembered(&state);
            }
            read = Some(state);
        }
        for _ in 0..RACES_MAX {
            let (places, requests) = self.requests(caller, drafts, read.take()).await?;
            if requests.is_empty() {
                return Ok(());
            }
            let outcomes = self.desk.propose_all(requests).await?;
            let mut outcomes = outcomes.into_iter();
            for place in places {
                let Some(draft) = drafts.get_mut(place) else { continue };
                self.settle(caller, draft, outcomes.next()).await;
            }
        }
        Ok(())
    }

    /// The requests of the jobs without an answer, with their indexes. Jobs that are refused here get their answer.
    async fn requests(
        &self,
        caller: &Caller,
        drafts: &mut [Draft<'_>],
        read: Option<State>,
    ) -> Result<(Vec<usize>, Vec<Request>), Error> {
        let (mut places, mut requests) = (Vec::with_capacity(drafts.len()), Vec::with_capacity(drafts.len()));
        if drafts.iter().all(|draft| draft.answer.is_some()) {
            return Ok((places, requests));
        }
        let state = match read {
            Some(state) => state,
            None => self.desk.current().await?,
        };
        let mut judge = Judge { state, sure: None };
        for (place, draft) in drafts.iter_mut().enumerate().filter(|(_, draft)| draft.answer.is_none()) {
            let verdict = match Box::pin(judge.verdict(self, caller, draft.submission)).await? {
                Ok(verdict) => verdict,
                Err(error) => {
                    draft.answer = Some(Err(error));
                    continue;
                }
            };
            if draft.stored.is_none() {
                // The input is stored only now, so that a refused job leaves no artifact.
                match self.store_input(draft.submission).await {
                    Ok(input) => draft.stored = Some(input),
                    Err(error) => {
                        draft.answer = Some(Err(error));
                        continue;
                    }
                }
            }
            places.push(place);
            let policies = self.registry.policies_of(judge.latest(), &caller.namespace);
            let waits = waits_for_node(judge.latest(), &caller.namespace, draft.submission.waits_for_node);
            if let Some(mut request) = draft.request(verdict, waits, policies) {
                named::add(&mut request, &draft.submission.input, judge.latest());
                requests.push(request);
            }
        }
        Ok((places, requests))
    }

    /// Stores the result of a job, unless it must be proposed again.
    async fn settle(&self, caller: &Caller, draft: &mut Draft<'_>, outcome: Option<Result<Outcome, Rejection>>) {
        draft.answer = Some(match outcome {
            Some(Ok(Outcome::Submitted { job, .. })) => Ok(job),
            Some(Err(Rejection::StaleAgent)) => return,
            // A child's id is derived from its parent, so the child was already submitted.
            Some(Err(Rejection::DuplicateJob { job })) if draft.submission.relations.family.is_some() => Ok(job),
            // The proposal was repeated after a change of leadership, and the state no longer remembered its request
            // id. The job exists once.
            Some(Err(Rejection::DuplicateJob { job })) => match self.is_it(caller, draft, job).await {
                Ok(true) => Ok(job),
                Ok(false) => {
                    draft.id = self.draw_id();
                    return;
                }
                Err(error) => Err(error),
            },
            // It never fits, however many jobs end.
            Some(Err(Rejection::NamespaceLimit { what: "bytes of inputs", limit }))
                if draft.submission.input.len() as u64 > limit =>
            {
                Err(Error::TooLarge { what: "the input, for its namespace", limit })
            }
            Some(Err(rejection)) => Err(rejection.into()),
            Some(Ok(_)) | None => Err(Error::OutcomeUnknown),
        });
    }

    /// Makes a payload from the input. Large inputs are not stored if the queue is already full.
    pub async fn store_input(&self, submission: &Submission) -> Result<Payload, Error> {
        if submission.input.len() > atlas_types::INLINE_BYTES_MAX {
            let state = self.desk.handle.applied();
            if state.active() >= state.config().jobs_active_max {
                return Err(Rejection::QueueFull { active: state.active() }.into());
            }
        }
        self.desk.payload(submission.input.clone()).await
    }

    /// True if a job is this submission, and not another job that happened to draw the same id.
    async fn is_it(&self, caller: &Caller, draft: &Draft<'_>, id: JobId) -> Result<bool, Error> {
        let Draft { submission, stored, .. } = draft;
        match self.desk.job_in(caller, &self.desk.read().await?, id).await {
            Ok(job) => {
                let same_input = stored.as_ref() == Some(&job.input);
                Ok(job.agent == submission.agent && same_input && job.labels == submission.labels)
            }
            Err(Error::UnknownJob) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What happens to a job, by a state.
    pub async fn judge(&self, caller: &Caller, submission: &Submission, state: &State) -> Result<Verdict, Error> {
        let (name, version) = (&submission.agent, submission.version.as_deref());
        let is_made = state.agent_latest(&caller.namespace, name).map(|agent| self.names.is_made(agent));
        let newer = match (is_made, submission.only_agents) {
            // An agent that somebody registered comes before a chain of its name: nearly all jobs.
            (Some(false), _) | (None, true) => None,
            (Some(true), true) => return Err(unknown_agent(state, caller, name.as_str(), version)),
            (Some(true) | None, false) => self.names.with_chain(caller, state, name, version).await?,
        };
        let state = newer.as_ref().unwrap_or(state);
        // An orchestrator decides on jobs and runs none.
        let found = resolve(caller, submission, state)?.filter(|agent| agent.kind == AgentKind::Agent);
        let Some(agent) = found else {
            let text = format!("Pool error: Agent not found or no implementation: {}", submission.agent);
            let failure = Failure { kind: FailureKind::NoAgent, error: text.into() };
            return Ok(Verdict::Refused { pin: None, failure });
        };
        self.judge_submission(caller, submission, &agent, state).await
    }

    /// What happens to a job of one version with this input.
    pub async fn judge_version(
        &self,
        caller: &Caller,
        agent: &AgentVersion,
        (input, priority): (&Bytes, i64),
        state: &State,
    ) -> Result<Verdict, Error> {
        let submission = Submission { priority, ..Submission::new(agent.name.clone(), input.clone()) };
        self.judge_submission(caller, &submission, agent, state).await
    }

    async fn judge_submission(
        &self,
        caller: &Caller,
        submission: &Submission,
        agent: &AgentVersion,
        state: &State,
    ) -> Result<Verdict, Error> {
        let pin = AgentPin { version: agent.version, digest: agent.digest };
        let known = self.registry.contract(agent).await?;
        let operation = Operation {
            kind: PolicyOperation::Submit,
            caller,
            contract: &known.value,
            input: Some(&submission.input),
            priority: submission.priority,
        };
        // A child is a job that its parent waits for, so that it can tell what failed.
        let is_client = caller.door != Door::Duty && submission.relations.family.is_none();
        if let Some(failure) = lacks(caller, submission, agent, &known, state)? {
            return Ok(match self.registry.under_policies(state, agent, operation, is_client).await? {
                Verdict::Accepted(pin) => Verdict::Refused { pin: Some(pin), failure },
                // Retries would run it unasked once the agents are there.
                Verdict::Asked { .. } => Verdict::Refused { pin: None, failure },
                denied @ Verdict::Refused { .. } => denied,
            });
        }
        let checked = match known.checks_input() {
            true => self.check(known.clone(), &submission.input).await?,
            false => Ok(()),
        };
        match checked {
            Ok(()) => self.registry.under_policies(state, agent, operation, is_client).await,
            Err(refusal) if submission.refuse => Err(Error::InputRefused {
                agent: agent.name.clone(),
                version: agent.version,
                violations: refusal.explained,
            }),
            Err(refusal) => {
                let text = format!("Input validation: {}", joined(&refusal.told));
                let failure = Failure { kind: FailureKind::InputInvalid, error: text.into() };
                Ok(Verdict::Refused { pin: Some(pin), failure })
            }
        }
    }

    /// Checks an input. Large inputs, and inputs of contracts with slow checks, are checked on a blocking thread.
    async fn check(&self, known: Arc<KnownContract>, input: &Bytes) -> Result<Result<(), Refusal>, Error> {
        let here = input.len() <= SMALL_BYTES_MAX && !known.is_slow();
        let (clock, input) = (self.desk.env.clock.clone(), input.clone());
        let check = move || {
            let start = clock.monotonic();
            let input: Value = serde_json::from_slice(&input).map_err(|_| Error::Malformed("Invalid JSON".into()))?;
            let checked = known.check_input(&input);
            let checked = checked.map_err(|told| Refusal { told, explained: known.explain_input(&input) });
            if clock.monotonic().saturating_sub(start) > SLOW_CHECK {
                known.mark_slow();
            }
            Ok(checked)
        };
        if here {
            return check();
        }
        self.desk.env.spawn_blocking("check-input", check).join().await.map_err(|_| Error::Internal)?
    }
}

/// The failure of a job whose agent requires missing agents.
fn lacks(
    caller: &Caller,
    submission: &Submission,
    agent: &AgentVersion,
    known: &KnownContract,
    state: &State,
) -> Result<Option<Failure>, Error> {
    if known.dependencies.is_empty() {
        return Ok(None);
    }
    let missing = state.missing_agents(&caller.namespace, &known.dependencies);
    if missing.is_empty() {
        return Ok(None);
    }
    if submission.refuse {
        return Err(Error::DependencyMissing { agent: agent.name.clone(), version: agent.version, missing });
    }
    Ok(Some(Failure { kind: FailureKind::Dependency, error: RequiredAgent::told_missing(&missing).into() }))
}
