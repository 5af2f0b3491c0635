//! Objects of the API in their JSON form: exactly the members of Atlas for Python, and ours with [`View::Full`].

use std::borrow::Cow;
use std::sync::Arc;

use atlas_api::words;
use atlas_desk::json;
use atlas_duty::Why;
use atlas_state::State;
use atlas_types::{
    Approval, Approvals, Digest, Job, JobChange, JobStatus, METADATA_OURS, Payload, PayloadBody, Question,
    QuestionRule, Reason, Route, StepUsage, Timestamp,
};
use bytes::Bytes;

use crate::outage::{self, Outage};
use crate::questions::{approvals_needed, open_below};

/// The members that an object contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum View {
    /// The members of Atlas for Python (compatibility §5.1).
    #[default]
    Plain,
    /// Also our members.
    Full,
}

/// A job with its payloads that are not inline, and data for the full view.
#[derive(Debug, Clone)]
pub struct Shown {
    pub(crate) job: Arc<Job>,
    pub(crate) artifacts: Vec<(Digest, Bytes)>,
    /// The reason why it waits, as a word and a sentence.
    pub(crate) waiting: Option<(&'static str, String)>,
    /// What its recorded steps cost.
    pub(crate) usage: StepUsage,
    /// What its recorded steps and those of its children cost; none if it has no children.
    pub(crate) tree: Option<StepUsage>,
    /// The open questions of the job and of those below it.
    pub(crate) questions: Vec<Arc<Question>>,
}

impl Shown {
    /// The job.
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// The open questions of the job and of those below it.
    pub fn questions(&self) -> &[Arc<Question>] {
        &self.questions
    }

    /// A job whose payloads are all inline.
    pub fn inline(job: Arc<Job>) -> Self {
        let usage = job.journal.as_ref().map(|journal| journal.usage()).unwrap_or_default();
        Self { job, artifacts: Vec::new(), waiting: None, usage, tree: None, questions: Vec::new() }
    }

    /// The same with its open questions and with what its steps have cost so far: the journal of a job that has not ended is beside it in the state.
    pub(crate) fn with_usage(self, state: &State) -> Self {
        let usage = state.journal(self.job.id).map(|journal| journal.usage());
        let questions = open_below(state, self.job.id);
        Self { usage: usage.unwrap_or(self.usage), questions, ..self }
    }

    /// Why it makes no progress, a sentence; none if nothing is known, and for what is not shown in full.
    pub fn waiting_for(&self) -> Option<&str> {
        self.waiting.as_ref().map(|(_, sentence)| sentence.as_str()).filter(|sentence| !sentence.is_empty())
    }

    /// The code of the error of a failed job.
    pub fn error_code(&self) -> Option<String> {
        error_code(&self.job)
    }

    /// The output of the job; none if it has none.
    pub fn output(&self) -> Option<serde_json::Value> {
        let mut text = Vec::new();
        self.payload(&mut text, self.job.output.as_ref());
        serde_json::from_slice(&text).ok().filter(|output: &serde_json::Value| !output.is_null())
    }

    /// The input of the job; none if it is not readable.
    pub fn input(&self) -> Option<serde_json::Value> {
        let mut text = Vec::new();
        self.payload(&mut text, Some(&self.job.input));
        serde_json::from_slice(&text).ok().filter(|input: &serde_json::Value| !input.is_null())
    }

    /// Appends the job as JSON.
    pub fn write(&self, out: &mut Vec<u8>, view: View) {
        let job = &*self.job;
        out.reserve(512);
        out.extend_from_slice(b"{\"id\":\"");
        out.extend_from_slice(job.id.to_string().as_bytes());
        out.extend_from_slice(b"\",\"agent_name\":");
        json::string(out, job.agent.as_str());
        out.extend_from_slice(b",\"status\":\"");
        out.extend_from_slice(job.status.as_str().as_bytes());
        out.extend_from_slice(b"\",\"input_data\":");
        self.payload(out, Some(&job.input));
        out.extend_from_slice(b",\"output_data\":");
        self.payload(out, job.output.as_ref());
        out.extend_from_slice(b",\"error\":");
        json::string(out, job.failure.as_ref().map_or("", |failure| &failure.error));
        out.extend_from_slice(b",\"priority\":");
        json::integer(out, i128::from(job.priority));
        for (name, time) in [
            (",\"created_at\":", job.created_at),
            (",\"started_at\":", job.started_at),
            (",\"completed_at\":", job.completed_at),
        ] {
            out.extend_from_slice(name.as_bytes());
            json::time(out, time);
        }
        out.extend_from_slice(b",\"warmup_ms\":");
        json::millis(out, job.warmup);
        out.extend_from_slice(b",\"execution_ms\":");
        json::millis(out, job.execution);
        out.extend_from_slice(b",\"retry_count\":");
        json::integer(out, i128::from(job.retry_count));
        out.extend_from_slice(b",\"original_job_id\":\"");
        if let Some(original) = job.original {
            out.extend_from_slice(original.to_string().as_bytes());
        }
        out.extend_from_slice(b"\",\"metadata\":");
        match (view, job.metadata.is_empty()) {
            (_, true) => json::raw(out, b"{}"),
            (View::Full, false) => json::raw(out, &job.metadata),
            (_, false) => json::raw(out, &without_ours(&job.metadata)),
        }
        if view == View::Full {
            self.ours(out);
        }
        out.push(b'}');
    }

    /// The members that Atlas for Python does not have.
    fn ours(&self, out: &mut Vec<u8>) {
        let job = &*self.job;
        let (word, sentence) = match &self.waiting {
            Some((word, sentence)) => (*word, sentence.as_str()),
            None if over_budget(job) => ("budget", ""),
            None if job.status.is_terminal() => ("", ""),
            None => (reason_word(job.reason), ""),
        };
        let text = |out: &mut Vec<u8>, name: &str, value: &str| {
            out.extend_from_slice(name.as_bytes());
            json::string(out, value);
        };
        let number = |out: &mut Vec<u8>, name: &str, value: u64| {
            out.extend_from_slice(name.as_bytes());
            json::integer(out, i128::from(value));
        };
        debug_assert!(words::REASONS.contains(&word), "{word} is described");
        text(out, ",\"reason\":", word);
        text(out, ",\"waiting_for\":", sentence);
        if let Some(title) = &job.title {
            text(out, ",\"title\":", title);
        }
        text(out, ",\"namespace\":", job.namespace.as_str());
        text(out, ",\"agent_version\":", &job.pin.as_ref().map(|pin| pin.version.to_string()).unwrap_or_default());
        text(out, ",\"digest\":", &job.pin.as_ref().map(|pin| pin.digest.to_string()).unwrap_or_default());
        number(out, ",\"log\":", job.submitted_seq.0);
        number(out, ",\"attempt\":", u64::from(job.attempt.0));
        if job.parks > 0 {
            number(out, ",\"parks\":", u64::from(job.parks));
        }
        number(out, ",\"max_attempts\":", job.spec.as_ref().map_or(0, |spec| u64::from(spec.max_attempts)));
        text(out, ",\"node\":", job.node.as_ref().map_or("", |node| node.as_str()));
        if let Some(lease) = &job.lease {
            number(out, ",\"epoch\":", lease.epoch.0);
            number(out, ",\"fencing_token\":", lease.token.0);
        }
        if let Some(carried) = &job.carried {
            text(out, ",\"run\":", &carried.run.to_string());
        }
        if let Some(route) = &job.route {
            self.route(out, route);
        }
        out.extend_from_slice(if job.warm { b",\"warm\":true" } else { b",\"warm\":false" });
        let failure = job.failure.as_ref().map_or("", |failure| failure.kind.as_str());
        debug_assert!(words::FAILURES.contains(&failure), "{failure} is described");
        text(out, ",\"failure_kind\":", failure);
        text(out, ",\"error_code\":", &error_code(job).unwrap_or_default());
        text(out, ",\"parent\":", &job.spawned.map(|spawned| spawned.by.to_string()).unwrap_or_default());
        number(out, ",\"depth\":", u64::from(job.depth()));
        text(out, ",\"retried_by\":", &job.successor.map(|id| id.to_string()).unwrap_or_default());
        if let Some(fork) = &job.fork {
            text(out, ",\"forked_from\":", &fork.from.to_string());
            number(out, ",\"fork_steps\":", fork.steps);
            if let Some(model) = &fork.model {
                text(out, ",\"fork_model\":", model.as_str());
            }
        }
        text(out, ",\"principal\":", job.principal.as_str());
        text(out, ",\"door\":", job.door.as_str());
        text(out, ",\"request_id\":", job.request_id.as_ref().map_or("", |id| id.as_str()));
        out.extend_from_slice(b",\"labels\":{");
        for (index, (key, value)) in job.labels.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            json::string(out, key);
            out.push(b':');
            json::string(out, value);
        }
        out.extend_from_slice(b"},\"queue_ms\":");
        json::millis(out, between(job.created_at, job.started_at));
        out.extend_from_slice(b",\"total_ms\":");
        json::millis(out, between(job.created_at, job.completed_at));
        if self.job.questions != QuestionRule::Fail {
            text(out, ",\"questions\":", &self.job.questions.to_string());
        }
        if !self.questions.is_empty() {
            let ids: Vec<String> = self.questions.iter().map(|question| format!("\"{}\"", question.id)).collect();
            out.extend_from_slice(format!(",\"needs_answer\":[{}]", ids.join(",")).as_bytes());
            let needed = approvals_needed(&self.questions);
            if !needed.is_empty() {
                let needed = serde_json::Value::Array(needed);
                out.extend_from_slice(format!(",\"needs_approval\":{needed}").as_bytes());
            }
        }
        if let Some(approvals) = &job.approvals {
            approvals_shown(out, approvals);
        }
        self.costs(out);
    }

    /// What an orchestrator decided about it.
    fn route(&self, out: &mut Vec<u8>, route: &Route) {
        let (action, decider) = (route.action.as_str(), route.decider.as_str());
        out.extend_from_slice(
            format!(",\"route\":{{\"action\":\"{action}\",\"decider\":\"{decider}\",\"selection\":").as_bytes(),
        );
        json::integer(out, i128::from(route.generation.0));
        out.extend_from_slice(b",\"asked_agent\":");
        json::string(out, route.asked.as_str());
        if let Some(rule) = &route.rule {
            out.extend_from_slice(b",\"rule\":");
            json::string(out, rule);
        }
        out.push(b'}');
    }

    /// What it cost, if it recorded anything that costs.
    fn costs(&self, out: &mut Vec<u8>) {
        let dollars = |usage: StepUsage| usage.cost_nanodollars as f64 / 1e9;
        let StepUsage { tokens_input, tokens_output, cost_nanodollars, .. } = self.usage;
        if tokens_input > 0 || tokens_output > 0 || cost_nanodollars > 0 {
            let cost = dollars(self.usage);
            let members =
                format!(",\"tokens_input\":{tokens_input},\"tokens_output\":{tokens_output},\"cost_usd\":{cost}");
            out.extend_from_slice(members.as_bytes());
        }
        if let Some(budget) = self.job.budget_nanodollars {
            out.extend_from_slice(format!(",\"budget_usd\":{}", budget as f64 / 1e9).as_bytes());
        }
        if self.job.waits_for_node {
            out.extend_from_slice(b",\"unsatisfiable\":\"wait\"");
        }
        if let Some(tree) = self.tree.filter(|tree| tree.cost_nanodollars > 0) {
            out.extend_from_slice(format!(",\"tree_cost_usd\":{}", dollars(tree)).as_bytes());
        }
    }

    fn payload(&self, out: &mut Vec<u8>, payload: Option<&Payload>) {
        let bytes = match payload.map(|payload| &payload.body) {
            Some(PayloadBody::Inline(bytes)) => Some(&**bytes),
            Some(PayloadBody::Artifact { digest, .. }) => {
                self.artifacts.iter().find(|(known, _)| known == digest).map(|(_, bytes)| &**bytes)
            }
            None => None,
        };
        json::raw(out, bytes.filter(|bytes| !bytes.is_empty()).unwrap_or(b"null"));
    }
}

/// The approvals that policies demand, and who gave them.
fn approvals_shown(out: &mut Vec<u8>, approvals: &Approvals) {
    let shown = |approval: &Approval| {
        serde_json::json!({
            "policy": approval.policy.as_str(),
            "rule": &*approval.rule,
            "question": approval.question.to_string(),
            "agent": approval.agent.as_str(),
            "approved_by": approval.by.as_ref().map_or("", |by| by.as_str()),
        })
    };
    let all: serde_json::Value = approvals.all.iter().map(shown).collect();
    out.extend_from_slice(format!(",\"approvals\":{all}").as_bytes());
}

fn between(start: Timestamp, end: Timestamp) -> atlas_types::Micros {
    atlas_types::Micros(if end == Timestamp::NOT_YET { 0 } else { u64::try_from(end.0 - start.0).unwrap_or(0) })
}

/// Appends the frame of an event stream (compatibility §16). A full frame also contains the kind of the change and its
/// number.
pub fn write_frame(
    out: &mut Vec<u8>,
    shown: &Shown,
    old_status: JobStatus,
    at: Timestamp,
    change: Option<JobChange>,
    view: View,
) {
    out.extend_from_slice(b"{\"job_id\":\"");
    out.extend_from_slice(shown.job.id.to_string().as_bytes());
    out.extend_from_slice(b"\",\"agent_name\":");
    json::string(out, shown.job.agent.as_str());
    out.extend_from_slice(b",\"old_status\":\"");
    out.extend_from_slice(old_status.as_str().as_bytes());
    out.extend_from_slice(b"\",\"new_status\":\"");
    out.extend_from_slice(shown.job.status.as_str().as_bytes());
    out.extend_from_slice(b"\",\"timestamp\":");
    json::time(out, at);
    if let (Some(change), View::Full) = (change, view) {
        out.extend_from_slice(b",\"change\":\"");
        let word = change_word(change);
        debug_assert!(words::CHANGES.contains(&word), "{word} is described");
        out.extend_from_slice(word.as_bytes());
        out.push(b'"');
    }
    out.extend_from_slice(b",\"job\":");
    shown.write(out, view);
    out.push(b'}');
}

/// The word for a reason in the state.
pub(crate) fn reason_word(reason: Reason) -> &'static str {
    match reason {
        Reason::Queued => "queued",
        Reason::Backoff { .. } => "backoff",
        Reason::Lost => "lost",
        Reason::InDoubt => "in_doubt",
        Reason::Parked => "parked",
        Reason::Running => "running",
        Reason::Cancelling => "cancelling",
        Reason::Delayed { .. } => "delayed",
        Reason::Routing { .. } => "routing",
        Reason::Approval => "approval",
    }
}

/// The word and the sentence for a waiting reason that only the planner knows.
pub(crate) fn waiting(state: &State, job: &Job) -> Option<(&'static str, String)> {
    let awaited = state.children_awaited(job.id);
    if job.reason == Reason::Running && awaited > 0 {
        let plural = if awaited == 1 { "" } else { "s" };
        return Some(("waiting", format!("waiting for {awaited} spawned job{plural}")));
    }
    if job.status != JobStatus::Pending {
        return None;
    }
    let waiting = atlas_duty::explain(state, job);
    let word = match &waiting.why {
        Why::NotWaiting { .. } => return None,
        Why::Turn | Why::NoRun => reason_word(job.reason),
        Why::NoNode => "no_node",
        Why::NoRoom { .. } => "no_room",
        Why::NeverSatisfiable { .. } => "unsatisfiable",
        Why::Concurrency { .. } => "concurrency",
        Why::NamespaceLimit { .. } => "namespace_limit",
        Why::KeyLimit { .. } => "key_limit",
        Why::Rate { .. } => "rate_limit",
        Why::Circuit { .. } => "circuit",
        Why::Backoff { .. } => "backoff",
        Why::Delayed { .. } => "delayed",
        Why::Parked { .. } => "parked",
        Why::InDoubt => "in_doubt",
        Why::Routing => "routing",
        Why::Approval { .. } => "approval",
    };
    let mut sentence = waiting.to_string();
    if let Some(Outage { model, error }) = outage::awaited(state, job) {
        sentence = sentence.replacen("waits until", &format!("waits for the model \"{model}\" until"), 1);
        sentence.push_str(&format!(": {error}"));
    }
    Some((word, sentence))
}

/// The word for a change of a job.
pub fn change_word(change: JobChange) -> &'static str {
    match change {
        JobChange::Submitted => "submitted",
        JobChange::Granted => "granted",
        JobChange::Carried => "carried",
        JobChange::Started => "started",
        JobChange::Lost => "lost",
        JobChange::Woken => "woken",
        JobChange::Resolved => "resolved",
        JobChange::Parked => "parked",
        JobChange::Routed => "routed",
        JobChange::Cancelling => "cancelling",
        JobChange::Ended => "ended",
    }
}

/// The code of a job's error: the one that its worker added, or the one with which the text begins. Another failure is that of the agent.
fn error_code(job: &Job) -> Option<String> {
    const AGENT_FAILED: &str = "E3101";
    let failure = job.failure.as_ref().filter(|_| job.status == JobStatus::Failed)?;
    let is_code = |text: &&str| {
        let digits = text.strip_prefix('E').filter(|digits| digits.len() == 4);
        digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let metadata: serde_json::Value = serde_json::from_slice(&job.metadata).unwrap_or_default();
    let added = metadata["_error_code"].as_str().filter(is_code);
    let begins = || failure.error.split_once(": ").map(|(code, _)| code).filter(is_code);
    Some(added.or_else(begins).unwrap_or(AGENT_FAILED).to_owned())
}

/// Whether a job failed because its budget did not suffice. Its worker says so with the error's code.
fn over_budget(job: &Job) -> bool {
    let code = || String::from_utf8_lossy(&job.metadata).contains(r#""_error_code":"E3203""#);
    job.status == JobStatus::Failed && job.budget_nanodollars.is_some() && code()
}

/// Metadata without the members that Atlas for Python does not have.
fn without_ours(metadata: &[u8]) -> Cow<'_, [u8]> {
    let text = String::from_utf8_lossy(metadata);
    if !METADATA_OURS.iter().any(|name| text.contains(name)) {
        return metadata.into();
    }
    // Invalid JSON is not repaired here.
    let Ok(mut members) = serde_json::from_str::<serde_json::Map<_, _>>(&text) else { return metadata.into() };
    members.retain(|name, _| !METADATA_OURS.contains(&name.as_str()));
    serde_json::Value::Object(members).to_string().into_bytes().into()
}

#[cfg(test)]
mod tests;
