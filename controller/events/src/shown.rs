//! Events of every kind: filters for readers, and their JSON form.

use std::sync::Arc;

use atlas_desk::{Error, json};
use atlas_records::{View, change_word, shown_question, write_frame};
use atlas_types::{AgentVersion, ClusterConfig, Event, EventRecord, Node, NodeHealth, Object, Run, Timestamp};
use serde_json::{Value, json};

use crate::Events;

/// The subject of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// A job.
    Job,
    /// An agent version.
    Agent,
    /// A node.
    Node,
    /// An object.
    Object,
    /// A run of a chain.
    Run,
    /// The configuration of the cluster.
    Cluster,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [Self; 6] = [Self::Job, Self::Agent, Self::Node, Self::Object, Self::Run, Self::Cluster];

    /// The name in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Agent => "agent",
            Self::Node => "node",
            Self::Object => "object",
            Self::Run => "run",
            Self::Cluster => "cluster",
        }
    }

    /// Parses a kind.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The kind of an event.
    pub fn of(event: &Event) -> Self {
        match event {
            Event::Job { .. }
            | Event::StepsRecorded { .. }
            | Event::StepsFolded { .. }
            | Event::MessageDelivered { .. }
            | Event::Erased { .. }
            | Event::QuestionAsked { .. }
            | Event::QuestionEnded { .. } => Self::Job,
            Event::Agent { .. } | Event::AgentDeleted { .. } => Self::Agent,
            Event::Node { .. } | Event::NodeRemoved { .. } => Self::Node,
            Event::ObjectPut { .. } | Event::ObjectDeleted { .. } => Self::Object,
            Event::Run { .. } => Self::Run,
            Event::Configured { .. } => Self::Cluster,
        }
    }
}

/// Selects events.
#[derive(Debug, Clone, Default)]
pub struct EventFilter {
    /// The wanted kinds; empty for all.
    pub kinds: Vec<EventKind>,
    /// The name of the subject: the id of a job, or the name of an agent, node or object.
    pub name: Option<String>,
}

impl EventFilter {
    pub(crate) fn admits(&self, event: &Event) -> bool {
        let of_kind = self.kinds.is_empty() || self.kinds.contains(&EventKind::of(event));
        of_kind && self.name.as_ref().is_none_or(|name| name_of(event) == *name)
    }
}

/// What an event is called: `KIND.CHANGE` and the name of its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventLabel {
    /// The subject.
    pub kind: EventKind,
    /// What changed, a word such as `ended`.
    pub change: &'static str,
    /// The name of the subject.
    pub name: String,
}

impl EventLabel {
    /// The label of an event.
    pub fn of(record: &EventRecord) -> Self {
        let event = &record.event;
        let change = match event {
            Event::Job { change, .. } => change_word(*change),
            other => described(other, record.at).0,
        };
        Self { kind: EventKind::of(event), change, name: name_of(event) }
    }
}

/// The name of an event's subject.
fn name_of(event: &Event) -> String {
    match event {
        Event::Job { job, .. } => job.id.to_string(),
        Event::StepsRecorded { job, .. } | Event::StepsFolded { job, .. } | Event::MessageDelivered { job, .. } => {
            job.to_string()
        }
        Event::Erased { job, .. } => job.map(|job| job.to_string()).unwrap_or_default(),
        Event::QuestionAsked { question } | Event::QuestionEnded { question } => question.job.to_string(),
        Event::Agent { agent } | Event::AgentDeleted { agent } => agent.name.to_string(),
        Event::Node { node } => node.id.to_string(),
        Event::NodeRemoved { node } => node.to_string(),
        Event::ObjectPut { object } | Event::ObjectDeleted { object } => object.key.name.to_string(),
        Event::Run { run, .. } => run.id.shown(),
        Event::Configured { .. } => String::new(),
    }
}

impl Events {
    /// Appends an event as JSON. Events of jobs have the members of the frames of `GET /api/events?view=full`.
    pub async fn write_event(&self, out: &mut Vec<u8>, record: &EventRecord) -> Result<(), Error> {
        out.extend_from_slice(format!("{{\"event\":{},\"kind\":\"", record.seq.0).as_bytes());
        out.extend_from_slice(EventKind::of(&record.event).as_str().as_bytes());
        out.extend_from_slice(b"\",\"name\":");
        json::string(out, &name_of(&record.event));
        out.push(b',');
        if let Event::Job { change, old_status, job } = &record.event {
            let shown = self.records.show(Arc::clone(job), View::Plain, None).await?;
            let mut frame = Vec::with_capacity(1024);
            write_frame(&mut frame, &shown, *old_status, record.at, Some(*change), View::Full);
            out.extend_from_slice(frame.get(1..).unwrap_or_default());
            return Ok(());
        }
        let (change, member, body) = described(&record.event, record.at);
        out.extend_from_slice(b"\"timestamp\":");
        json::time(out, record.at);
        out.extend_from_slice(format!(",\"change\":\"{change}\",\"{member}\":{body}}}").as_bytes());
        Ok(())
    }
}

/// The change as a word, the name of the member for the subject, and the subject's value.
fn described(event: &Event, at: Timestamp) -> (&'static str, &'static str, Value) {
    match event {
        Event::Job { .. } => ("", "job", Value::Null),
        Event::Agent { agent } => (agent_word(agent), "agent", agent_value(agent)),
        Event::AgentDeleted { agent } => ("deleted", "agent", agent_value(agent)),
        // The one that notes a rival has its time.
        Event::Node { node } if node.rival.as_ref().is_some_and(|rival| rival.at == at) => {
            ("contested", "node", node_value(node))
        }
        Event::Node { node } => (node_word(node), "node", node_value(node)),
        Event::NodeRemoved { .. } => ("removed", "node", Value::Null),
        Event::Configured { config } => ("configured", "config", config_value(config)),
        Event::ObjectPut { object } if object.uid == object.revision => ("created", "object", object_value(object)),
        Event::ObjectPut { object } => ("changed", "object", object_value(object)),
        Event::ObjectDeleted { object } => ("deleted", "object", object_value(object)),
        Event::Run { change, run } => (change.as_str(), "run", run_value(run)),
        Event::StepsRecorded { from, steps, .. } => {
            let kinds: Vec<_> = steps.iter().map(|step| step.kind.as_str()).collect();
            ("recorded", "steps", json!({ "from": from, "kinds": kinds }))
        }
        Event::StepsFolded { upto, .. } => ("folded", "steps", json!({ "upto": upto })),
        Event::MessageDelivered { message, number, .. } => {
            ("delivered", "message", json!({ "id": message.as_str(), "number": number }))
        }
        Event::Erased { namespace, .. } => ("erased", "namespace", json!(namespace.as_str())),
        Event::QuestionAsked { question } => ("asked", "question", shown_question(question)),
        Event::QuestionEnded { question } => (question.status(), "question", shown_question(question)),
    }
}

fn object_value(object: &Object) -> Value {
    json!({
        "kind": object.key.kind.as_str(),
        "namespace": object.key.namespace.as_str(),
        "uid": object.uid.0,
        "revision": object.revision.0,
        "labels": *object.labels,
        "spec": atlas_desk::shown_spec(object),
        "by": object.by.as_str(),
    })
}

fn agent_word(agent: &AgentVersion) -> &'static str {
    match (agent.retired, &agent.deprecated) {
        (false, _) if agent.circuit.open.is_some() => "failing",
        (true, _) => "retired",
        (false, Some(_)) => "deprecated",
        (false, None) => "registered",
    }
}

fn node_word(node: &Node) -> &'static str {
    match node.health {
        NodeHealth::Down => "down",
        NodeHealth::Ready if node.draining => "draining",
        NodeHealth::Ready if node.cordoned => "cordoned",
        NodeHealth::Ready if node.circuit.open.is_some() => "failing",
        NodeHealth::Ready => "ready",
    }
}

fn agent_value(agent: &AgentVersion) -> Value {
    json!({
        "name": agent.name.as_str(),
        "version": agent.version.to_string(),
        "digest": agent.digest.to_string(),
        "labels": agent.labels,
        "retired": agent.retired,
        "deprecated": agent.deprecated.as_deref(),
        "circuit": atlas_platform::shown_circuit(&agent.circuit),
    })
}

fn node_value(node: &Node) -> Value {
    json!({
        "name": node.id.as_str(),
        "epoch": node.epoch.0,
        "health": if node.health == NodeHealth::Ready { "ready" } else { "down" },
        "cordoned": node.cordoned,
        "draining": node.draining,
        "labels": node.labels(),
        "circuit": atlas_platform::shown_circuit(&node.circuit),
        "rival": atlas_platform::rival(node),
    })
}

fn config_value(config: &ClusterConfig) -> Value {
    json!({
        "jobs_active_max": config.jobs_active_max,
        "jobs_total_max": config.jobs_total_max,
        "inline_bytes_max": config.inline_bytes_max,
        "dedupe_max": config.dedupe_max,
        "dedupe_retention_s": config.dedupe_retention.0 / 1_000_000,
        "jobs_ended_kept": config.jobs_ended_kept,
        "agents_max": config.agents_max,
        "nodes_max": config.nodes_max,
        "spawn_depth_max": config.spawn_depth_max,
        "retry_deterministic": config.retry_deterministic,
        "backoff_max_s": config.backoff_max.map(|longest| longest.0 / 1_000_000),
        "journal_bytes_max": config.journal_bytes_max,
        "node_failures_max": config.node_failures_max,
    })
}

/// A run in an event: without its data.
fn run_value(run: &Run) -> Value {
    json!({
        "id": run.id.shown(),
        "chain_name": *run.chain,
        "namespace": run.namespace.as_str(),
        "status": run.status.as_str(),
        "current_step": run.current_step(),
        "total_steps": run.total_steps,
        "error": run.error(),
    })
}
