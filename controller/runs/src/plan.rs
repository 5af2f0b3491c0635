//! A chain whose agents are looked up: the versions that run, and the schemas between which outputs are converted.

use std::borrow::Cow;
use std::sync::Arc;

use atlas_types::{Micros, Run, SubmitJob};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::definition::Chain;
use crate::flow::Flow;

/// A chain with the versions and schemas of its agents, as they were when its run began.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The name of the chain.
    pub chain: String,
    /// The orchestrator that decides on its steps; empty for that of the namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub orchestrator: String,
    pub steps: Vec<PlannedStep>,
}

/// A step with the version of its agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedStep {
    /// The name of the agent.
    pub agent: String,
    /// The version that runs.
    pub version: String,
    /// The digest of its package.
    pub digest: String,
    /// The name by which paths refer to the step.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_map: Option<Map<String, Value>>,
    pub input_schema: Value,
    pub output_schema: Value,
    /// When it runs, in a chain with branches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<Flow>,
}

/// Larger schemas are not compared where that has to be quick.
const PROPERTIES_MAX: usize = 32;
/// Longer names of fields are not compared there either.
const NAME_BYTES_MAX: usize = 32;

impl Plan {
    /// Whether its steps need not run one after the other.
    pub fn has_branches(&self) -> bool {
        self.steps.iter().any(|step| step.flow.is_some())
    }

    /// When the step at `index` runs.
    pub fn flow(&self, index: usize) -> Cow<'_, Flow> {
        let flow = self.steps.get(index).and_then(|step| step.flow.as_ref());
        flow.map_or_else(|| Cow::Owned(Flow::of_next(index)), Cow::Borrowed)
    }

    /// Whether the schemas between the step at `index` and the one before are compared in little time.
    pub fn is_light(&self, index: usize) -> bool {
        let before = index.checked_sub(1).and_then(|before| self.steps.get(before));
        let schemas = [before.map(|step| &step.output_schema), self.steps.get(index).map(|step| &step.input_schema)];
        schemas.into_iter().flatten().all(|schema| {
            let properties = schema.get("properties").and_then(Value::as_object);
            let required = schema.get("required").and_then(Value::as_array).map_or(0, Vec::len);
            let is_short = |properties: &Map<String, Value>| {
                properties.len() <= PROPERTIES_MAX && properties.keys().all(|name| name.len() <= NAME_BYTES_MAX)
            };
            required <= PROPERTIES_MAX && properties.is_none_or(is_short)
        })
    }
}

/// The metadata of the job of a step: that of the run, and which step it is.
fn metadata(run: &Run, index: usize) -> Arc<[u8]> {
    let mut metadata: Map<String, Value> = serde_json::from_slice(&run.metadata).unwrap_or_default();
    metadata.insert("_chain_name".to_owned(), json!(*run.chain));
    metadata.insert("_step_index".to_owned(), json!(index));
    metadata.entry("_parent_trace_id").or_insert_with(|| json!(run.id.shown()));
    Value::Object(metadata).to_string().into_bytes().into()
}

/// The job of a step, as its run wants it. `submit` has its id, its verdict and its payloads.
pub fn step_job(run: &Run, plan: &Plan, index: usize, submit: SubmitJob) -> SubmitJob {
    let timeout = plan.steps.get(index).and_then(|planned| planned.flow.as_ref()?.timeout);
    SubmitJob {
        priority: run.priority,
        metadata: metadata(run, index),
        execution_timeout: timeout.map(|seconds| Micros((seconds * 1e6) as u64)),
        ..submit
    }
}

/// What the agent of a step is told about its chain: `chain_name`, `step_index` and `chain_data` with the input of the chain and the
/// outputs of the steps before.
pub fn context(chain: &str, index: usize, trigger: &Value, outputs: &[Value]) -> Value {
    json!({"chain_name": chain, "step_index": index, "chain_data": {"trigger": trigger, "step_outputs": outputs}})
}

/// The error of a chain whose agents are not all registered.
pub fn unknown_agents(chain: &Chain, is_known: impl Fn(&str, Option<&str>) -> bool) -> Option<String> {
    let mut unknown: Vec<&str> = Vec::new();
    for step in &chain.steps {
        if !is_known(&step.agent, step.range.as_deref()) && !unknown.contains(&step.agent.as_str()) {
            unknown.push(&step.agent);
        }
    }
    (!unknown.is_empty()).then(|| format!("Chain '{}' references unknown agents: {}", chain.name, unknown.join(", ")))
}
