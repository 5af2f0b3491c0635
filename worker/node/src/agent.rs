//! An agent's package, unpacked and parsed, in the form that a slot needs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use atlas_contract::schema::Validator;
use atlas_contract::{Contract, ContractError, ProviderKind, Violation, joined, pip_requirement, python, range};
use atlas_llm::scripted::Script;
use atlas_types::{AgentKind, Bounds, Failure, FailureKind};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::cgroup::Limits;
use crate::python::Environment;
use crate::texts::bounded;

/// The command of the in-process agent that answers with its input. Available only if the operator enabled it
/// (benchmarks).
pub(crate) const NOOP: &str = "@noop";

/// An agent version on this node. Shared by all its slots.
#[derive(Debug)]
pub(crate) struct Agent {
    /// The directory of the unpacked package.
    pub(crate) directory: PathBuf,
    pub(crate) contract: Contract,
    /// None if the schema accepts anything.
    input: Option<Arc<Validator>>,
    /// None if the schema accepts anything.
    output: Option<Arc<Validator>>,
    /// The answers of its model where none is configured: `mock.yaml` of an llm agent, or why it cannot be used.
    pub(crate) mock: Option<Result<Arc<Script>, String>>,
    /// True for the in-process agent that answers with its input.
    pub(crate) noop: bool,
    /// The Python packages for which it needs an environment.
    requirements: Vec<String>,
    /// Its Python environment, if it needs one, once that exists.
    pub(crate) python: OnceCell<Arc<Environment>>,
    /// True once the environment is being created or exists.
    pub(crate) is_furnished: AtomicBool,
    /// The agent that this one was made of; as long as it is used, its package stays.
    _whole: Option<Arc<Agent>>,
}

/// Why an output is not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OutputFault {
    /// The output breaks the contract. It is kept for people to see.
    Violations(Vec<Violation>),
    /// No controller would accept the output, for this reason.
    Unusable(String),
}

impl OutputFault {
    /// The places where the output breaks its schema. None if the schema rejects the output as a whole.
    pub(crate) fn places(&self) -> Option<String> {
        match self {
            Self::Violations(violations) => atlas_contract::places(violations),
            Self::Unusable(_) => None,
        }
    }

    /// The failure of the attempt, with the text of Atlas for Python.
    pub(crate) fn into_failure(self) -> Failure {
        let why = match self {
            Self::Violations(violations) => joined(&violations),
            Self::Unusable(why) => why,
        };
        Failure { kind: FailureKind::OutputInvalid, error: bounded(format!("Output validation: {why}")).into() }
    }
}

/// The deepest nesting of an output that controllers accept.
const DEPTH_MAX: usize = 100;

/// True if a well-formed JSON text is nested deeper than [`DEPTH_MAX`].
fn too_deep(json: &str) -> bool {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    json.bytes().any(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => depth += 1,
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > DEPTH_MAX
    })
}

/// Why an unpacked package is not a valid agent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AgentError {
    #[error("could not read agent.yaml of the package")]
    Read { source: std::io::Error },
    #[error("the package's agent.yaml is not a contract")]
    Contract { source: ContractError },
}

impl Agent {
    /// The largest size of an `agent.yaml`.
    const CONTRACT_BYTES_MAX: u64 = 1 << 20;

    /// Parses the contract in `directory`. `noop` permits the in-process agent.
    pub(crate) fn load(directory: &Path, noop: bool) -> Result<Self, AgentError> {
        let text = read_bounded(&directory.join("agent.yaml"), Self::CONTRACT_BYTES_MAX)
            .map_err(|source| AgentError::Read { source })?;
        let contract = atlas_contract::parse(&text).map_err(|source| AgentError::Contract { source })?;
        let (input, output) = contract.check_schemas().map_err(|source| AgentError::Contract { source })?;
        let anything = json!({"type": "object"});
        // An orchestrator gets calls and gives decisions, whatever its schemas say.
        let checks = contract.kind == AgentKind::Agent;
        let input = (checks && contract.input_schema != anything).then(|| Arc::new(input));
        let output = (checks && contract.output_schema != anything).then(|| Arc::new(output));
        let mock = contract.calls_models().then(|| mock(directory)).flatten();
        let noop = noop && contract.provider.command == [NOOP];
        let is_python = contract.provider.kind == ProviderKind::Python;
        let entries = contract.packages.iter().flatten().filter(|_| is_python);
        let requirements = entries.filter_map(|entry| pip_requirement(entry)).map(str::to_owned).collect();
        Ok(Self {
            directory: directory.to_owned(),
            contract,
            input,
            output,
            mock,
            noop,
            requirements,
            python: OnceCell::new(),
            is_furnished: AtomicBool::new(false),
            _whole: None,
        })
    }

    /// The agent with what policies leave of its permissions. They confine it also if its contract states none.
    pub(crate) fn within(self: Arc<Self>, bounds: Option<&Bounds>) -> Arc<Self> {
        let Some(bounds) = bounds else { return self };
        let mut contract = self.contract.clone();
        let permissions = &mut contract.permissions;
        permissions.filesystem = bounds.files_left(&permissions.filesystem);
        permissions.network = bounds.network_left(&permissions.network);
        contract.states_access |= bounds.filesystem.is_some() || bounds.network.is_some();
        let least = |stated: Option<u64>, bound: Option<u64>| stated.into_iter().chain(bound).min();
        let stated = &mut contract.stated_limits;
        stated.memory_mb = least(stated.memory_mb, bounds.memory_mb);
        stated.cpu_seconds = least(stated.cpu_seconds, bounds.cpu_seconds);
        for (amount, bound) in
            [(&mut permissions.max_memory_mb, bounds.memory_mb), (&mut permissions.max_cpu_seconds, bounds.cpu_seconds)]
        {
            let Some(bound) = bound.and_then(|bound| i64::try_from(bound).ok()) else { continue };
            // 0 or less is no limit.
            *amount = if *amount > 0 { bound.min(*amount) } else { bound };
        }
        Arc::new(Self {
            directory: self.directory.clone(),
            contract,
            input: self.input.clone(),
            output: self.output.clone(),
            mock: self.mock.clone(),
            noop: self.noop,
            requirements: self.requirements.clone(),
            python: OnceCell::new_with(self.python.get().cloned()),
            is_furnished: AtomicBool::new(true),
            _whole: Some(self),
        })
    }

    /// The Python packages for which it needs an environment.
    pub(crate) fn requirements(&self) -> &[String] {
        &self.requirements
    }

    /// The limits of its processes: only those that its contract states.
    pub(crate) fn limits(&self) -> Limits {
        let (hardware, stated) = (&self.contract.hardware, self.contract.stated_limits);
        let reserved = hardware.min_memory_gb.filter(|&gb| gb > 0).map(|gb| gb.saturating_mul(1 << 30));
        let permitted = stated.memory_mb.map(|mb| mb.saturating_mul(1 << 20));
        // The stricter one counts.
        let watches_memory = permitted.is_some_and(|permitted| reserved.is_none_or(|reserved| permitted < reserved));
        Limits {
            memory_bytes: if watches_memory { permitted } else { reserved },
            watches_memory,
            cores: hardware.min_cpu_cores.filter(|&cores| cores > 0),
            cpu: stated.cpu_seconds.map(Duration::from_secs),
        }
    }

    /// True if nothing must be installed before it can run.
    pub(crate) fn is_ready(&self) -> bool {
        self.requirements().is_empty() || self.python.initialized()
    }

    /// Checks an input. The error contains the messages of all violations.
    pub(crate) fn check_input(&self, input: &[u8]) -> Result<(), String> {
        let Some(validator) = &self.input else { return Ok(()) };
        let input: Value = serde_json::from_slice(input).map_err(|error| error.to_string())?;
        validator.validate(&input).map_err(|violations| joined(&violations))
    }

    /// Checks an output.
    pub(crate) fn check_output(&self, output: &RawValue) -> Result<(), OutputFault> {
        if too_deep(output.get()) {
            return Err(OutputFault::Unusable(format!("the output is nested more than {DEPTH_MAX} levels")));
        }
        // The output is parsed even without a schema: a number beyond the range of floats is valid JSON, but most readers
        // refuse it.
        let value: Value = serde_json::from_str(output.get()).map_err(|error| {
            let why = match range::out_of_range(output.get()) {
                Some(place) => format!("the number at {place:?} is beyond the range of numbers"),
                None => error.to_string(),
            };
            OutputFault::Unusable(format!("could not pass on the output: {why}"))
        })?;
        if let Some(validator) = &self.output {
            validator.validate(&value).map_err(OutputFault::Violations)?;
        }
        // Any program can print a JSON value. Only an object counts as an answer, whatever the schema allows
        // (compatibility §20.2).
        if self.contract.provider.kind == ProviderKind::Exec && !value.is_object() {
            let message = format!("{} is not of type 'object'", python::repr(&value));
            let (pointer, rule) = ("/".to_owned(), "type".to_owned());
            return Err(OutputFault::Violations(vec![Violation { pointer, rule, message, suggestion: None }]));
        }
        Ok(())
    }
}

/// The script of an llm agent, if it has one.
fn mock(directory: &Path) -> Option<Result<Arc<Script>, String>> {
    /// The largest size of a script.
    const BYTES_MAX: u64 = 1 << 20;
    match read_bounded(&directory.join("mock.yaml"), BYTES_MAX) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => Some(Err(error.to_string())),
        Ok(text) => Some(Script::parse(&text).map(Arc::new).map_err(|error| atlas_env::chain(&error))),
    }
}

fn read_bounded(path: &Path, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_counted_outside_of_texts() {
        assert!(too_deep(&"[".repeat(101)) && !too_deep(&"[".repeat(100)));
        assert!(!too_deep(&"[]".repeat(1_000)) && !too_deep(&format!("\"{}\\\"[\"", "[".repeat(200))));
    }

    #[test]
    fn what_policies_leave_confines_an_agent_and_keeps_its_package_in_use() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let text = "agent:\n  name: a\n  version: 1.0.0\n  provider: {type: exec, command: [x]}\n  permissions: {max_memory_mb: 512}\n";
        std::fs::write(folder.path().join("agent.yaml"), text).expect("written");
        let whole = Arc::new(Agent::load(folder.path(), false).expect("an agent"));
        assert!(Arc::ptr_eq(&whole, &Arc::clone(&whole).within(None)));
        let bounds =
            Bounds { network: Some(Vec::new()), memory_mb: Some(64), cpu_seconds: Some(5), ..Bounds::default() };
        let bounded = Arc::clone(&whole).within(Some(&bounds));
        assert_eq!(Arc::strong_count(&whole), 2, "a package that is in use is not evicted");
        let Contract { permissions, states_access, .. } = &bounded.contract;
        assert!(permissions.network.is_empty() && *states_access && !whole.contract.states_access);
        assert_eq!(permissions.filesystem, ["read"]);
        let limits = bounded.limits();
        assert_eq!((limits.memory_bytes, limits.cpu), (Some(64 << 20), Some(Duration::from_secs(5))));
    }
}
