//! Forks: new jobs that begin with the first steps of another job's journal.

use std::sync::Arc;

use atlas_artifacts::hash;
use atlas_desk::{Caller, Error, requests};
use atlas_format::{decode_steps, encode_steps};
use atlas_registry::{RunAgain, calls_models, find_version, unknown_agent};
use atlas_state::State;
use atlas_types::{
    AgentPin, AgentVersion, Command, ForkJob, Job, JobId, Journal, ObjectKey, ObjectKind, ObjectName, Outcome, Payload,
    RequestId, Step, StepKey, StepKind, StepUsage,
};
use serde_json::{Map, Value, json};

use crate::Jobs;

/// Most bytes of the values that a person sets.
const SET_BYTES_MAX: usize = 16 << 10;

/// How often a fork is tried while the steps of a running job are being folded.
const TRIES_MAX: usize = 5;

/// What a fork is asked for.
#[derive(Debug, Clone, Default)]
pub struct ForkRequest {
    /// How many steps are copied.
    pub steps: u64,
    /// The model or tier that is called after them, in place of the one in the contract.
    pub model: Option<String>,
    /// A requirement for the version that goes on; without one, the version of the other job does.
    pub version: Option<String>,
    /// Values that are set in the state of a graph.
    pub set: Option<Set>,
    pub request_id: Option<RequestId>,
}

/// Values that a person sets in the state of a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct Set {
    /// The super-step whose nodes see them first.
    pub before: u64,
    pub values: Map<String, Value>,
}

/// The beginning of a journal whose last step is folded.
#[derive(Default)]
struct Folded {
    /// The steps of the last fold, if not all of them belong to the beginning.
    cut: Option<Payload>,
    /// What the folded steps of the beginning cost.
    usage: StepUsage,
}

impl Jobs {
    /// Begins a new job with the first steps of a job that is in the state, whether it has ended or not.
    pub async fn fork(&self, caller: &Caller, id: JobId, fork: &ForkRequest) -> Result<JobId, Error> {
        self.desk.may_control_job(caller, id).await?;
        for _ in 1..TRIES_MAX {
            match self.fork_once(caller, id, fork).await {
                // The step is recorded. It was folded after the journal had been read, so the fold has to be cut.
                Err(Error::NoSuchStep { steps, recorded }) if (1..=recorded).contains(&steps) => {}
                end => return end,
            }
        }
        self.fork_once(caller, id, fork).await
    }

    async fn fork_once(&self, caller: &Caller, id: JobId, fork: &ForkRequest) -> Result<JobId, Error> {
        let state = self.desk.read().await?;
        let job = self.desk.job_in(caller, &state, id).await?;
        let journal = state.journal(id).or(job.journal.as_ref()).cloned().unwrap_or_default();
        if fork.steps == 0 || fork.steps > journal.next() {
            return Err(Error::NoSuchStep { steps: fork.steps, recorded: journal.next() });
        }
        if state.job(id).is_none() {
            return Err(Error::JournalGone);
        }
        let agent = self.version_of_fork(caller, &state, &job, fork).await?;
        let changes = fork.model.is_some() || fork.set.is_some();
        self.registry.may_run_again(caller, &state, &job, &agent, RunAgain { name: "a fork", changes }).await?;
        let model = fork.model.as_deref().map(|name| model(caller, &state, name)).transpose()?;
        let added = match &fork.set {
            Some(set) => Some(self.added(&agent, set).await?),
            None => None,
        };
        let Folded { cut, usage } = self.folded(&journal, fork.steps).await?;
        let command = ForkJob {
            job: id,
            id: self.draw_id(),
            steps: fork.steps,
            pin: AgentPin { version: agent.version, digest: agent.digest },
            model,
            cut,
            folded: usage,
            added,
        };
        let mut request = requests::of(caller, Command::ForkJob(command));
        if fork.request_id.is_some() {
            // The drawn id is not part of what is asked.
            let ForkRequest { steps, model, version, set, .. } = fork;
            let set = set.as_ref().map(|set| format!(" {} {}", set.before, Value::Object(set.values.clone())));
            let asked = format!("fork {id} {steps} {model:?} {version:?}{}", set.unwrap_or_default());
            (request.origin.request_id, request.origin.body_hash) = (fork.request_id.clone(), hash(asked.as_bytes()));
        }
        match self.desk.propose(request).await? {
            Outcome::Submitted { job, .. } => Ok(job),
            _ => Err(Error::OutcomeUnknown),
        }
    }

    /// The version that goes on. Another version than before has to be able to: it is an agent with a model or a durable program, takes the
    /// input, and takes its images from the same member of it, so that the recorded requests stay the same.
    async fn version_of_fork(
        &self,
        caller: &Caller,
        state: &State,
        job: &Job,
        fork: &ForkRequest,
    ) -> Result<Arc<AgentVersion>, Error> {
        let pinned = job.pin.as_ref().map(|pin| pin.version.to_string());
        let asked = fork.version.as_deref().or(pinned.as_deref());
        let found = find_version(state, caller, &job.agent, asked)?;
        let agent = found.ok_or_else(|| unknown_agent(state, caller, job.agent.as_str(), asked))?;
        if job.pin.as_ref().is_some_and(|pin| pin.digest == agent.digest) {
            return Ok(agent);
        }
        let known = self.registry.contract(&agent).await?;
        let version = agent.version;
        let differs = |why: &str| Err(Error::ForkDiffers(format!("{} {version} {why}", agent.name)));
        if !calls_models(&known.value) && known.value["durable"] != true {
            return differs("is neither an agent with a model nor durable, so it cannot go on after recorded steps");
        }
        if let Some(before) = job.pin.as_ref().and_then(|pin| state.agent(&job.namespace, &job.agent, pin.version)) {
            let images = |value: &Value| value["provider"]["images"].clone();
            if images(&self.registry.contract(before).await?.value) != images(&known.value) {
                return differs("takes its images from another member of the input: step 1 would differ");
            }
        }
        let input: Value = serde_json::from_slice(&self.desk.bytes(&job.input).await?).unwrap_or_default();
        if known.checks_input() && known.check_input(&input).is_err() {
            let violations = known.explain_input(&input);
            return Err(Error::InputRefused { agent: agent.name.clone(), version, violations });
        }
        Ok(agent)
    }

    /// The step with the values that a person sets. Only graphs have such values.
    async fn added(&self, agent: &AgentVersion, set: &Set) -> Result<Arc<Step>, Error> {
        if self.registry.contract(agent).await?.value.pointer("/provider/type").and_then(Value::as_str) != Some("graph")
        {
            let (name, version) = (&agent.name, agent.version);
            return Err(Error::ForkDiffers(format!(
                "{name} {version} is no graph, so it has no values that can be set"
            )));
        }
        let outcome = json!({ "step": set.before, "set": set.values }).to_string();
        if outcome.len() > SET_BYTES_MAX {
            return Err(Error::TooLarge { what: "the values to set", limit: SET_BYTES_MAX as u64 });
        }
        Ok(Arc::new(Step {
            kind: StepKind::Effect,
            key: StepKey::set_before(set.before),
            outcome: Payload::inline(outcome.as_bytes()),
            usage: StepUsage::default(),
        }))
    }

    /// What the state does not know about folded steps. Their artifacts are read as far as the beginning goes, one at a time.
    async fn folded(&self, journal: &Journal, steps: u64) -> Result<Folded, Error> {
        let mut folded = Folded::default();
        if steps >= journal.first() {
            return Ok(folded);
        }
        let mut from = 0;
        for fold in &journal.folds {
            if from >= steps {
                break;
            }
            let content = decode_steps(&self.desk.bytes(&fold.artifact).await?);
            let content = content.map_err(|error| Error::internal("read folded steps", &error))?;
            let count = usize::try_from(fold.upto.min(steps) - from).unwrap_or(usize::MAX);
            let kept: Vec<Arc<Step>> = content.into_iter().take(count).collect();
            kept.iter().for_each(|step| folded.usage += step.usage);
            if fold.upto > steps {
                folded.cut = Some(self.desk.artifact_of(encode_steps(&kept).into()).await?);
            }
            from = fold.upto;
        }
        Ok(folded)
    }
}

/// The name of a model or tier that the namespace has.
fn model(caller: &Caller, state: &State, text: &str) -> Result<ObjectName, Error> {
    let name = ObjectName::new(text)?;
    let exists = ["model", "tier"].into_iter().any(|kind| {
        let Ok(kind) = ObjectKind::new(kind) else { return false };
        let key = ObjectKey { namespace: caller.namespace.clone(), kind, name: name.clone() };
        state.object(&key).is_some()
    });
    if exists { Ok(name) } else { Err(Error::UnknownObject(format!("no such model: \"{name}\""))) }
}
