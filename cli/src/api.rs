//! The members of the API's objects that this program reads; JSON output prints the server's answer unchanged.

use std::collections::BTreeMap;

pub(crate) use atlas_api::types::{
    AgentRevision, JobApproval, Line as LogLine, Member as Controller, NeededApproval, Quorum, RolledBack,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;
use crate::words;

/// Reads an answer. A missing member gets its default, because the server may be too old to know it.
pub(crate) fn read<T: DeserializeOwned>(value: &Value) -> Result<T, Failure> {
    T::deserialize(value).map_err(Failure::answer)
}

/// A job with `view=full`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Job {
    pub(crate) id: String,
    pub(crate) agent_name: String,
    pub(crate) status: String,
    pub(crate) output_data: Option<Value>,
    pub(crate) error: String,
    pub(crate) priority: i64,
    pub(crate) created_at: f64,
    pub(crate) started_at: f64,
    pub(crate) completed_at: f64,
    pub(crate) warmup_ms: f64,
    pub(crate) execution_ms: f64,
    pub(crate) retry_count: u32,
    pub(crate) original_job_id: String,
    /// The retry that followed its failure.
    pub(crate) retried_by: String,
    pub(crate) reason: String,
    pub(crate) waiting_for: String,
    pub(crate) agent_version: String,
    pub(crate) attempt: u32,
    pub(crate) max_attempts: u32,
    pub(crate) node: String,
    /// The run that carries it, or carried it.
    pub(crate) run: String,
    pub(crate) warm: bool,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) principal: String,
    pub(crate) door: String,
    pub(crate) input_data: Value,
    pub(crate) log: u64,
    pub(crate) request_id: String,
    pub(crate) metadata: BTreeMap<String, Value>,
    pub(crate) tokens_input: u64,
    pub(crate) tokens_output: u64,
    pub(crate) cost_usd: f64,
    pub(crate) budget_usd: Option<f64>,
    /// With the jobs below it.
    pub(crate) tree_cost_usd: f64,
    /// The job whose first steps it began with.
    pub(crate) forked_from: String,
    pub(crate) fork_steps: u64,
    /// The model or tier that it calls instead of the one in its contract.
    pub(crate) fork_model: String,
    /// What the orchestrator decided.
    pub(crate) route: Option<Route>,
    /// Open questions, also of the jobs below it.
    pub(crate) needs_answer: Vec<String>,
    /// Those of them that policies ask.
    pub(crate) needs_approval: Vec<NeededApproval>,
    /// The approvals that policies demand of it.
    pub(crate) approvals: Vec<JobApproval>,
    /// What happens to its questions; empty if it fails with one.
    pub(crate) questions: String,
}

/// What an orchestrator decided about a job.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Route {
    pub(crate) action: String,
    pub(crate) decider: String,
    pub(crate) asked_agent: String,
    /// Empty if no rule decided.
    pub(crate) rule: String,
}

impl Route {
    /// `redirected from echo by the rule "long"`; none while nothing is decided.
    pub(crate) fn words(&self) -> Option<String> {
        let action = match self.action.as_str() {
            "undecided" | "" => return None,
            "redirect" => format!("redirected from {}", self.asked_agent),
            "reject" => "rejected".to_owned(),
            _ => "allowed".to_owned(),
        };
        Some(match (self.rule.as_str(), self.decider.as_str()) {
            ("", "deadline") => format!("{action} by the fall-back: the orchestrator was late"),
            ("", "fault") => format!("{action} by the fall-back: the orchestrator failed"),
            ("", "default") => format!("{action} by the default orchestrator"),
            ("", _) => format!("{action} by the orchestrator"),
            (rule, _) => format!("{action} by the rule \"{rule}\""),
        })
    }
}

impl Job {
    /// The error text. If the text is unclear by itself, the type of the exception precedes it (`KeyError: 'missing'`).
    /// The code of the error precedes it, if it has one.
    /// If the error concerns a place in the output, or has a reason besides its text, that follows: `5 is not of type 'string' (at /a: type)`.
    pub(crate) fn error_text(&self) -> String {
        let text = self.error_sentence();
        self.error_code().map_or_else(|| text.clone(), |code| format!("{code}: {text}"))
    }

    /// The code of its error: the one that Atlas added, otherwise the one with which the text begins.
    pub(crate) fn error_code(&self) -> Option<&str> {
        let added = self.metadata.get("_error_code").and_then(Value::as_str).filter(|code| !code.is_empty());
        added.or_else(|| coded(&self.error).map(|(code, _)| code))
    }

    /// The error text without its code.
    pub(crate) fn error_sentence(&self) -> String {
        let added = |name: &str| self.metadata.get(name).and_then(Value::as_str);
        let text = coded(&self.error).map_or(self.error.as_str(), |(_, text)| text);
        let error = match added("_error_type") {
            Some(kind) if text.is_empty() => kind.to_owned(),
            Some(kind) if text.starts_with('\'') || !text.contains(char::is_alphabetic) => format!("{kind}: {text}"),
            _ => text.to_owned(),
        };
        match (added("_error_at"), added("_error_why")) {
            (Some(place), _) => format!("{error} (at {place})"),
            (None, Some(why)) => format!("{error} ({why})"),
            (None, None) => error,
        }
    }

    /// Whether it failed because a model call could have exceeded its budget.
    pub(crate) fn is_over_budget(&self) -> bool {
        self.error_code() == Some("E3203")
    }

    /// Whether the status is final: completed, failed or cancelled.
    pub(crate) fn is_terminal(&self) -> bool {
        ["completed", "failed", "cancelled"].contains(&self.status.as_str())
    }

    /// `hello 0.1.0`; a job of an unknown agent has no version.
    pub(crate) fn agent(&self) -> String {
        format!("{} {}", self.agent_name, self.agent_version).trim_end().to_owned()
    }

    /// The status; for a job that is not final, also the reason.
    pub(crate) fn standing(&self) -> String {
        if self.is_terminal() || self.reason.is_empty() || self.reason == self.status {
            return self.status.clone();
        }
        format!("{}: {}", self.status, self.reason)
    }

    /// From submission to the latest grant.
    pub(crate) fn queued_ms(&self) -> f64 {
        (self.started_at - self.created_at) * 1000.0
    }

    /// The model that answered it, if one did. Prepared answers say so.
    pub(crate) fn model(&self) -> Option<&str> {
        let model = self.metadata.get("_trace_model").and_then(Value::as_str).filter(|model| !model.is_empty())?;
        Some(if model == "mock" { "mock (no model configured)" } else { model })
    }

    /// Its price for people; empty if it cost nothing.
    pub(crate) fn cost(&self) -> String {
        if self.cost_usd > 0.0 { words::dollars(self.cost_usd) } else { String::new() }
    }

    /// From submission to the end.
    pub(crate) fn total_ms(&self) -> f64 {
        (self.completed_at - self.created_at) * 1000.0
    }
}

/// The code with which a text begins, and the rest: `E3044: nobody is there to answer`.
fn coded(text: &str) -> Option<(&str, &str)> {
    let (code, rest) = text.split_once(": ")?;
    let digits = code.strip_prefix('E')?;
    (digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some((code, rest))
}

/// A registered agent version.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Agent {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) description: String,
    pub(crate) capabilities: Vec<String>,
    pub(crate) digest: String,
    pub(crate) provider: String,
    pub(crate) package_bytes: u64,
    pub(crate) retired: bool,
    /// The deprecation message, if there is one.
    pub(crate) deprecated: Option<String>,
    pub(crate) registered_at: f64,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) input_schema: Value,
    pub(crate) output_schema: Value,
    pub(crate) circuit: Circuit,
    /// The number of its package.
    pub(crate) revision: u32,
    pub(crate) registered_by: Option<String>,
    /// The packages it has and had.
    pub(crate) revisions: Vec<AgentRevision>,
}

/// The circuit of an agent version or a node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Circuit {
    /// `closed`, `open` or `half_open`.
    pub(crate) state: String,
    pub(crate) failures: u32,
    pub(crate) since: Option<f64>,
    pub(crate) pause_s: Option<u64>,
}

impl Circuit {
    /// The sentence about an open one.
    pub(crate) fn sentence(&self) -> Option<String> {
        self.since?;
        let failures = words::count(self.failures.into(), "failure");
        let next = match &*self.state {
            "half_open" => "one job probes it".to_owned(),
            _ => format!("one job probes it after {}", words::age(self.pause_s.unwrap_or_default() as f64)),
        };
        Some(format!("open after {failures} in a row; {next}"))
    }
}

/// A worker machine.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) health: String,
    pub(crate) cordoned: bool,
    pub(crate) draining: bool,
    pub(crate) drain_ends_at: Option<f64>,
    pub(crate) cores: u32,
    pub(crate) memory_bytes: u64,
    pub(crate) gpus: Vec<Gpu>,
    pub(crate) places: u32,
    pub(crate) llm_places: u32,
    pub(crate) llm_places_free: u32,
    pub(crate) running: u32,
    pub(crate) warm: u32,
    pub(crate) cores_free: u32,
    pub(crate) memory_bytes_free: u64,
    pub(crate) arch: String,
    pub(crate) labels: BTreeMap<String, String>,
    /// Labels set by operators; none if a document does not mention them.
    pub(crate) operator_labels: Option<BTreeMap<String, String>>,
    pub(crate) registered_at: f64,
    pub(crate) circuit: Circuit,
    pub(crate) rival: Option<Rival>,
}

/// A worker that was refused because another one has its name.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Rival {
    pub(crate) address: String,
    pub(crate) holder: String,
    pub(crate) at: f64,
}

impl Rival {
    /// How long a refused worker counts as one that still asks: it asks every few seconds, and the cluster notes it once per minute.
    const LASTS: f64 = 180.0;

    /// Whether it still asked a short time ago.
    pub(crate) fn is_recent(&self, now: f64) -> bool {
        now - self.at < Self::LASTS
    }
}

impl Node {
    /// Jobs of `llm` agents that it runs.
    pub(crate) fn llm_running(&self) -> u32 {
        self.llm_places.saturating_sub(self.llm_places_free)
    }

    /// Jobs that run a process, idle slots and the bound of the former.
    pub(crate) fn slots(&self) -> String {
        format!("{}/{}/{}", self.running.saturating_sub(self.llm_running()), self.warm, self.places)
    }

    /// Jobs of `llm` agents that it runs, and their bound.
    pub(crate) fn llm(&self) -> String {
        format!("{}/{}", self.llm_running(), self.llm_places)
    }
}

/// One device of a node.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Gpu {
    pub(crate) index: u32,
    pub(crate) uuid: String,
    pub(crate) healthy: bool,
    pub(crate) mig_profile: String,
    pub(crate) model: String,
    pub(crate) memory_bytes: u64,
    pub(crate) free_bytes: Option<u64>,
}

/// The controllers, their leader and their quorum.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Cluster {
    pub(crate) cluster_id: String,
    pub(crate) mode: String,
    pub(crate) version: String,
    pub(crate) leader: Option<String>,
    pub(crate) term: u64,
    pub(crate) commit: u64,
    pub(crate) quorum: Quorum,
    pub(crate) members: Vec<Controller>,
}

impl Cluster {
    /// Whether enough voters answer for changes and confirmed reads.
    pub(crate) fn has_majority(&self) -> bool {
        self.quorum.voters == 0 || self.quorum.reachable * 2 > self.quorum.voters
    }

    /// The voters that answer, and those that do not.
    pub(crate) fn voters_by_answer(&self) -> (Vec<&str>, Vec<&str>) {
        let voters = self.members.iter().filter(|member| member.role != "learner");
        let (mut here, mut away) = (Vec::new(), Vec::new());
        for member in voters {
            if member.reachable { here.push(&*member.name) } else { away.push(&*member.name) }
        }
        (here, away)
    }
}

/// One transition of a job (compatibility §16).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct JobEvent {
    pub(crate) change: String,
    pub(crate) old_status: String,
    pub(crate) new_status: String,
    pub(crate) timestamp: f64,
    pub(crate) job: Job,
}
