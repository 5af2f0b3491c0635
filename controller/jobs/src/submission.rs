//! What a caller asks for: a job to be submitted.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_artifacts::hash;
use atlas_desk::{Caller, Error, json};
use atlas_platform::labels;
use atlas_registry::{find_version, unknown_agent};
use atlas_state::State;
use atlas_types::{
    AgentName, AgentVersion, CALLED_FROM_METADATA, CONVERSATION_METADATA, Job, JobId, Micros, Payload, QuestionRule,
    RequestId, SpawnedBy, SubmitJob, Timestamp, Verdict,
};
use bytes::Bytes;
use serde_json::Value;

use crate::relations::{Relations, SEARCH_METADATA};

/// A job to be submitted.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The requested agent.
    pub agent: AgentName,
    /// The version requirement, in the grammar of compatibility §3.3; none for the highest version.
    pub version: Option<String>,
    /// The input, a JSON text.
    pub input: Bytes,
    /// Higher runs first.
    pub priority: i64,
    /// Free-form labels.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Overrides the contract's execution timeout.
    pub execution_timeout: Option<Micros>,
    /// The caller's idempotency key.
    pub request_id: Option<RequestId>,
    /// Whether a job that cannot run is refused instead of being accepted and then failing.
    pub refuse: bool,
    /// Whether the name of a stored chain is that of no agent.
    pub only_agents: bool,
    /// The earliest time at which the job may run.
    pub not_before: Option<Timestamp>,
    /// Most that its model calls may cost, in billionths of a dollar.
    pub budget_nanodollars: Option<u64>,
    /// Whether it waits while no registered node could run it; none for what its namespace says. Without waiting it fails.
    pub waits_for_node: Option<bool>,
    /// What it is about, a sentence for people.
    pub title: Option<Arc<str>>,
    /// What happens to its questions to people. A spawned job has the rule of its parent.
    pub questions: QuestionRule,
    /// The conversation that the caller names.
    pub continues: Option<String>,
    /// How it is related to what is there already, which only functions behind the doors say.
    pub relations: Relations,
}

impl Submission {
    /// A job with only an agent and an input.
    pub fn new(agent: AgentName, input: Bytes) -> Self {
        Self {
            agent,
            version: None,
            input: json::mended("an input", input),
            priority: 0,
            labels: Arc::default(),
            execution_timeout: None,
            request_id: None,
            refuse: false,
            only_agents: false,
            not_before: None,
            budget_nanodollars: None,
            waits_for_node: None,
            title: None,
            questions: QuestionRule::Fail,
            continues: None,
            relations: Relations::default(),
        }
    }

    /// What an ended job asked for, as a new submission.
    pub fn again(job: &Job, input: Bytes) -> Self {
        Self {
            version: job.pin.as_ref().map(|pin| pin.version.to_string()),
            priority: job.priority,
            labels: job.labels.clone(),
            execution_timeout: job.execution_timeout,
            questions: job.questions.clone(),
            budget_nanodollars: job.budget_nanodollars,
            waits_for_node: Some(job.waits_for_node),
            title: job.title.clone(),
            ..Self::new(job.agent.clone(), input)
        }
    }

    /// The command for it, without what the cluster adds: policies, and whether it waits for a node.
    pub fn command(&self, id: JobId, verdict: Verdict, input: Payload) -> SubmitJob {
        SubmitJob {
            priority: self.priority,
            metadata: self.metadata(),
            labels: self.labels.clone(),
            execution_timeout: self.execution_timeout,
            spawner: self.relations.family.as_ref().map(|family| SpawnedBy::Attempt(family.spawner)),
            not_before: self.not_before,
            bearer: self.relations.bearer,
            budget_nanodollars: self.budget_nanodollars,
            questions: self.questions.clone(),
            title: self.title.clone(),
            ..SubmitJob::new(id, self.agent.clone(), verdict, input)
        }
    }

    /// Refuses requests that are invalid in any state.
    pub(crate) fn check(&self) -> Result<(), Error> {
        labels::check(&self.labels)?;
        json::check(&self.input).map_err(|error| Error::Malformed(error.to_string()))
    }

    /// What the job knows about where it comes from, a JSON object.
    pub(crate) fn metadata(&self) -> Arc<[u8]> {
        let mut members = self.relations.family.as_ref().map(|family| family.metadata.clone()).unwrap_or_default();
        if let Some(turn) = &self.relations.conversation {
            members.insert(CONVERSATION_METADATA.to_owned(), turn.name.as_str().into());
        }
        if let Some(namespace) = &self.relations.called_from {
            members.insert(CALLED_FROM_METADATA.to_owned(), namespace.as_str().into());
        }
        if self.relations.search {
            members.insert(SEARCH_METADATA.to_owned(), true.into());
        }
        Value::Object(members).to_string().into_bytes().into()
    }

    /// A hash that distinguishes submissions with the same idempotency key.
    pub(crate) fn body_hash(&self) -> u64 {
        let mut text = format!("{}\0{:?}\0{}\0{:?}\0", self.agent, self.version, self.priority, self.execution_timeout);
        if let Some(time) = self.not_before {
            text.push_str(&format!("{}\0", time.0));
        }
        if let Some(budget) = self.budget_nanodollars {
            text.push_str(&format!("budget {budget}\0"));
        }
        if let Some(waits) = self.waits_for_node {
            text.push_str(&format!("waits for a node {waits}\0"));
        }
        if let Some(title) = &self.title {
            text.push_str(&format!("title {title}\0"));
        }
        if self.questions != QuestionRule::Fail {
            text.push_str(&format!("questions {}\0", self.questions));
        }
        for (key, value) in self.labels.iter() {
            text.push_str(&format!("{key}\0{value}\0"));
        }
        if let Some(name) = &self.continues {
            text.push_str(&format!("conversation {name}\0"));
        }
        // What the conversation of an agent adds is not part of what was asked.
        let input = self.relations.conversation.as_ref().map_or(&self.input, |conversation| &conversation.asked);
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(input);
        hash(&bytes)
    }
}

/// The version to run. None if no version matches and the job must be recorded as failed.
pub(crate) fn resolve(
    caller: &Caller,
    submission: &Submission,
    state: &State,
) -> Result<Option<Arc<AgentVersion>>, Error> {
    let found = find_version(state, caller, &submission.agent, submission.version.as_deref())?;
    if found.is_none() && submission.refuse {
        return Err(unknown_agent(state, caller, submission.agent.as_str(), submission.version.as_deref()));
    }
    Ok(found)
}
