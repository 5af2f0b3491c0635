//! Contracts in the form that doors need. They are compiled once per package and cached, because compiling may cost
//! more than a job.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use atlas_contract::Violation;
use atlas_contract::schema::Validator;
use atlas_types::{AgentVersion, Digest, RequiredAgent};
use serde_json::Value;

use crate::dependencies;

/// A parsed contract.
#[derive(Debug)]
pub struct KnownContract {
    /// The normalised contract.
    pub value: Value,
    /// The validator of inputs. None if the input schema accepts everything, so that inputs are not even parsed.
    input: Option<Validator>,
    /// The agents that this agent requires.
    pub dependencies: Vec<RequiredAgent>,
    /// True if a check was slow. Later checks then do not run on a door's thread.
    slow: AtomicBool,
}

impl KnownContract {
    /// Parses the normalised contract of an agent version.
    pub(crate) fn new(contract: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(contract).unwrap_or_default();
        let schema = value.get("input_schema").cloned().unwrap_or_default();
        // Schemas are checked at registration. One that does not compile comes from another release, and the worker
        // will check the input.
        let input = (!accepts_anything(&schema)).then(|| Validator::compile(&schema).ok()).flatten();
        let dependencies = dependencies::of(&value);
        Self { value, input, dependencies, slow: AtomicBool::new(false) }
    }

    /// True if inputs must be parsed and checked.
    pub fn checks_input(&self) -> bool {
        self.input.is_some()
    }

    /// True if a check was slow before.
    pub fn is_slow(&self) -> bool {
        self.slow.load(Ordering::Relaxed)
    }

    /// Records that a check was slow.
    pub fn mark_slow(&self) {
        self.slow.store(true, Ordering::Relaxed);
    }

    /// Checks an input. The violations have the texts of Atlas for Python.
    pub fn check_input(&self, input: &Value) -> Result<(), Vec<Violation>> {
        self.input.as_ref().map_or(Ok(()), |validator| validator.validate(input))
    }

    /// The violations of an input with our own texts.
    pub fn explain_input(&self, input: &Value) -> Vec<Violation> {
        self.input.as_ref().map(|validator| validator.explain(input)).unwrap_or_default()
    }

    /// The violations of an output that an operator provides, with our own texts. The schema is compiled each time,
    /// because this is rare.
    pub fn explain_output(&self, output: &Value) -> Vec<Violation> {
        let schema = self.value.get("output_schema").cloned().unwrap_or_default();
        if accepts_anything(&schema) {
            return Vec::new();
        }
        Validator::compile(&schema).map(|validator| validator.explain(output)).unwrap_or_default()
    }

    /// A text member, such as `description`.
    pub fn text(&self, pointer: &str) -> &str {
        self.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }
}

/// A missing schema, `{}` and exactly `{"type": "object"}` accept anything (compatibility §4).
fn accepts_anything(schema: &Value) -> bool {
    match schema {
        Value::Null => true,
        Value::Object(members) => {
            members.is_empty() || (members.len() == 1 && members.get("type").is_some_and(|kind| kind == "object"))
        }
        _ => false,
    }
}

/// Whether the jobs of an agent call models.
pub fn calls_models(contract: &Value) -> bool {
    let kind = contract.pointer("/provider/type").and_then(Value::as_str);
    matches!(kind, Some("llm" | "graph" | "normal"))
}

/// The most cached contracts. When the cache is full, it is emptied.
const KEPT_MAX: usize = 4_096;

/// Contracts by the digest of their package.
#[derive(Clone, Default)]
pub(crate) struct Contracts {
    known: Arc<Mutex<HashMap<Digest, Arc<KnownContract>>>>,
}

impl Contracts {
    /// The contract of a version, if it is cached.
    pub(crate) fn get(&self, agent: &AgentVersion) -> Option<Arc<KnownContract>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&agent.digest).cloned()
    }

    /// Parses and caches a contract. Compiling its schemas may take a while.
    pub(crate) fn keep(&self, digest: Digest, contract: &[u8]) -> Arc<KnownContract> {
        let known = Arc::new(KnownContract::new(contract));
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= KEPT_MAX {
            all.clear();
        }
        all.entry(digest).or_insert(known).clone()
    }
}
