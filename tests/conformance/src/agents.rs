//! The agents of a row: the bundled agents, and those that the row defines.

use std::fs;
use std::path::{Path, PathBuf};

use atlas_package::Package;
use serde_json::{Value, json};

use crate::result::{Judged, Stop};
use crate::row::{items, members, text, unknown};

/// The example agents of Atlas for Python; a row that needs one that Atlas does not bundle is not covered.
const EXAMPLES: [&str; 19] = [
    "batch-processor",
    "claude-tools",
    "claude-writer",
    "decomposer",
    "echo",
    "exec-echo",
    "flexible-input",
    "formatter",
    "langchain-summarizer",
    "llm-classifier",
    "llm-summarizer",
    "multi-type",
    "openai-reviewer",
    "priority-router",
    "slow-starter",
    "summarizer",
    "translator",
    "user-profile",
    "yaml-summarizer",
];

/// An agent that is ready to be registered.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    pub(crate) name: String,
    pub(crate) archive: Vec<u8>,
}

impl From<Package> for Prepared {
    fn from(package: Package) -> Self {
        Self { name: package.contract.name.to_string(), archive: package.bytes }
    }
}

/// The bundled agents.
pub(crate) fn bundled() -> Result<Vec<Prepared>, String> {
    let packed = atlas_bundled::packages().map(|package| package.map(Prepared::from));
    packed.collect::<Result<_, _>>().map_err(|error| format!("could not pack a bundled agent: {error}"))
}

/// The name of the orchestrator that a row defines by its decisions.
const ORCHESTRATOR: &str = "mock-orchestrator";

/// Writes the orchestrator of a row to `folder`, if the row defines one by its decisions; returns the name of the selected one.
pub(crate) fn orchestrator_of_row(input: &Value, folder: &Path, mocks: &Path) -> Result<Option<String>, Stop> {
    match input.get("orchestrator") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Ok(Some(name.clone())),
        Some(decisions @ Value::Object(_)) => {
            let contract = json!({"agent": {"name": ORCHESTRATOR, "version": "1.0.0", "type": "orchestrator"}});
            write(&json!({"dir": ORCHESTRATOR, "agent.yaml": contract, "decision.json": decisions}), folder, mocks)?;
            Ok(Some(ORCHESTRATOR.to_owned()))
        }
        Some(other) => Err(Stop::skip(format!("the orchestrator {other}"))),
    }
}

/// Writes the agents of a row to `folder` and packs those with a valid contract, like discovery.
pub(crate) fn of_row(input: &Value, folder: &Path, mocks: &Path) -> Result<Vec<Prepared>, Stop> {
    for agent in items(input, "agents") {
        covered(agent)?;
        write(agent, folder, mocks)?;
    }
    found_in(folder)
}

/// The agents in a folder, in the order of discovery.
pub(crate) fn found_in(folder: &Path) -> Result<Vec<Prepared>, Stop> {
    let found = atlas_package::discover(&[folder]).found;
    let packed = found.iter().map(|found| atlas_package::pack(&found.dir).map(Prepared::from));
    packed.collect::<Result<_, _>>().map_err(|error| Stop::system("pack an agent of the row", error))
}

/// Skips a row that needs an example agent of Atlas for Python that is not in `ours`.
pub(crate) fn known_example(name: &str, ours: &[Prepared]) -> Judged {
    let missing = EXAMPLES.contains(&name) && !ours.iter().any(|agent| agent.name == name);
    if missing { Err(Stop::skip(format!("the example \"{name}\", which is not bundled"))) } else { Ok(()) }
}

/// Skips a row whose agent needs a feature that Atlas does not have yet.
fn covered(agent: &Value) -> Judged {
    if let Some(member) = unknown(agent, &["dir", "agent.yaml", "behaviour.json", "decision.json", "files"]) {
        return Err(Stop::skip(format!("agents with \"{member}\"")));
    }
    // An invalid contract gives no agent; the row defines the expected result.
    let Ok(contract) = atlas_contract::parse(contract_text(agent).as_bytes()) else { return Ok(()) };
    let contract = contract.to_json();
    let at = |pointer| contract.pointer(pointer).unwrap_or(&Value::Null);
    let needs = [
        ("containers", at("/permissions/isolation") == "container"),
        ("the llm provider", at("/provider/type") == "llm"),
    ];
    match needs.iter().find(|(_, needed)| *needed) {
        Some((what, _)) => Err(Stop::skip(*what)),
        None => Ok(()),
    }
}

/// The text of a contract. It may be an object in the row, because JSON is valid YAML.
pub(crate) fn contract_text(agent: &Value) -> String {
    match &agent["agent.yaml"] {
        Value::String(text) => text.clone(),
        object => object.to_string(),
    }
}

fn write(agent: &Value, folder: &Path, mocks: &Path) -> Judged {
    let dir = inside(folder, text(agent, "dir"))?;
    let failed = |error: std::io::Error| Stop::system("write an agent of the row", error);
    fs::create_dir_all(&dir).map_err(failed)?;
    // An agent with a decision is an orchestrator.
    let decision = agent.get("decision.json");
    let program = if decision.is_some() { "mock_orchestrator.py" } else { "mock_agent.py" };
    fs::copy(mocks.join(program), dir.join("agent.py")).map_err(failed)?;
    if let Some(decision) = decision {
        fs::write(dir.join("decision.json"), decision.to_string()).map_err(failed)?;
    }
    let behaviour = agent.get("behaviour.json").map_or_else(|| "{}".to_owned(), Value::to_string);
    fs::write(dir.join("behaviour.json"), behaviour).map_err(failed)?;
    fs::write(dir.join("agent.yaml"), contract_text(agent)).map_err(failed)?;
    for (name, content) in agent.get("files").into_iter().flat_map(members) {
        let path = inside(&dir, name)?;
        fs::create_dir_all(path.parent().unwrap_or(&dir)).map_err(failed)?;
        let content = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        fs::write(path, content).map_err(failed)?;
    }
    Ok(())
}

/// The path of `name` in `folder`; refuses a name that points outside the folder.
pub(crate) fn inside(folder: &Path, name: &str) -> Result<PathBuf, Stop> {
    let plain = Path::new(name).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if plain && !name.is_empty() {
        Ok(folder.join(name))
    } else {
        Err(Stop::fail(format!("\"{name}\" is no file name")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_brings_its_agents_along() {
        let dir = tempfile::tempdir().expect("a folder");
        let mocks = Path::new(env!("CARGO_MANIFEST_DIR")).join("mocks");
        let agent = |name: &str, requires: Value| {
            let contract = json!({"agent": {"name": name, "version": "1.0.0", "requires": requires}});
            json!({"agents": [{"dir": name, "agent.yaml": contract, "behaviour.json": {}, "files": {"a/b": "x"}}]})
        };
        let found = of_row(&agent("m", json!({})), dir.path(), &mocks).expect("an agent");
        assert_eq!(found.len(), 1);
        assert!(dir.path().join("m/agent.py").is_file() && dir.path().join("m/a/b").is_file());
        let contained = json!([{"dir": "n", "agent.yaml": {"agent": {"name": "n", "version": "1.0.0", "permissions": {"isolation": "container"}}}}]);
        let skipped = of_row(&json!({"agents": contained}), dir.path(), &mocks).map(|_| ());
        assert_eq!(skipped, Err(Stop::skip("containers")));
        assert!(inside(dir.path(), "../x").is_err());
    }

    #[test]
    fn an_example_that_is_not_bundled_is_not_covered() {
        let ours = [Prepared { name: "echo".to_owned(), archive: Vec::new() }];
        assert_eq!(known_example("echo", &ours), Ok(()));
        assert_eq!(known_example("ghost", &ours), Ok(()));
        assert!(matches!(known_example("claude-tools", &ours), Err(Stop::Skip(_))));
    }
}
