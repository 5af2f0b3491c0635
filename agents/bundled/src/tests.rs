//! Every bundled agent fulfils its own contract: fixtures are checked against schemas, and programs without
//! dependencies against their fixtures.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use atlas_contract::fixture::{Expectation, Fixture};
use atlas_contract::yaml::{Budget, load};
use atlas_contract::{Contract, ProviderKind, joined};
use atlas_package::{discover, pack};
use serde_json::{Value, json};

use super::*;

fn agents_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn file<'a>(agent: &'a BundledAgent, path: &str) -> Option<&'a PackFile> {
    agent.files.iter().find(|file| file.path == path)
}

fn contract(agent: &BundledAgent) -> Contract {
    let text = file(agent, "agent.yaml").expect("an agent has a contract");
    atlas_contract::parse(&text.bytes).unwrap_or_else(|error| panic!("{}: {error}", agent.dir))
}

fn is_orchestrator(contract: &Contract) -> bool {
    contract.to_json()["type"] == "orchestrator"
}

fn fixtures(agent: &BundledAgent) -> Vec<(String, Fixture)> {
    let files = agent.files.iter().filter(|file| file.path.starts_with("tests/") && file.path.ends_with(".yaml"));
    files
        .map(|file| {
            let fixture = Fixture::parse(&file.bytes);
            let path = format!("{}/{}", agent.dir, file.path);
            (path.clone(), fixture.unwrap_or_else(|error| panic!("{path}: {error}")))
        })
        .collect()
}

#[test]
fn the_list_is_that_of_the_directories() {
    let discovery = discover(&[agents_dir()]);
    assert!(discovery.skipped.is_empty(), "{:?}", discovery.skipped);
    let mut on_disk: Vec<String> = discovery
        .found
        .iter()
        .map(|found| found.dir.file_name().expect("a directory has a name").to_string_lossy().into_owned())
        .collect();
    on_disk.sort();
    let embedded: Vec<&str> = bundled().iter().map(|agent| agent.dir).collect();
    assert_eq!(embedded, on_disk);
}

#[test]
fn an_embedded_agent_is_the_package_of_its_directory() {
    for agent in bundled() {
        let embedded = atlas_package::pack_files(agent.files).expect("it packs");
        let on_disk = pack(&agents_dir().join(agent.dir)).expect("it packs");
        assert_eq!(embedded.digest, on_disk.digest, "{}", agent.dir);
    }
}

#[test]
fn contracts_hold_and_say_nothing_unknown() {
    for agent in bundled() {
        let contract = contract(&agent);
        assert_eq!(contract.warnings, [], "{}", agent.dir);
        assert!(!contract.description.is_empty() && !contract.capabilities.is_empty(), "{}", agent.dir);
        contract.check_schemas().unwrap_or_else(|error| panic!("{}: {error}", agent.dir));
    }
}

#[test]
fn fixtures_fit_the_schemas() {
    for agent in bundled() {
        let contract = contract(&agent);
        // Orchestrators decide on jobs and have no input of their own.
        if is_orchestrator(&contract) {
            continue;
        }
        let (input, output) = contract.check_schemas().expect("checked above");
        let fixtures = fixtures(&agent);
        assert!(!fixtures.is_empty(), "{} has no fixture", agent.dir);
        for (path, fixture) in fixtures {
            let taken = input.validate(&fixture.input).map_err(|violations| joined(&violations));
            match &fixture.expected {
                Expectation::Output(expected) => {
                    assert_eq!(taken, Ok(()), "{path}");
                    assert_eq!(output.validate(expected), Ok(()), "{path}");
                }
                // A bundled agent fails only if its schema refuses the input.
                Expectation::Error(_) => {
                    let error = taken.expect_err(&path);
                    assert_eq!(fixture.check(Err(&error)), Ok(()), "{path}");
                }
            }
        }
    }
}

/// Every step names a bundled agent, and maps outputs of earlier steps to all of its required inputs.
#[test]
fn chains_fit_the_agents_that_they_name() {
    let contracts: Vec<Contract> = bundled().iter().map(contract).collect();
    let chains = std::fs::read_dir(agents_dir().join("chains")).expect("there are chains").flatten();
    for path in chains.map(|entry| entry.path()) {
        let text = std::fs::read(&path).expect("it can be read");
        let chain = load(&text, Budget::default()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(
            path.file_stem().map(|stem| stem.to_string_lossy()),
            chain["chain"]["name"].as_str().map(Into::into)
        );
        let mut given: Option<&Contract> = None;
        for step in chain["chain"]["steps"].as_array().expect("it has steps") {
            let agent = contracts.iter().find(|contract| step["agent"] == contract.name.as_str());
            let agent = agent.unwrap_or_else(|| panic!("{}: no agent {}", path.display(), step["agent"]));
            if let Some(given) = given {
                let needed = agent.input_schema["required"].as_array().expect("it says what it needs");
                let mapped = |name: &&Value| step["input_map"].get(name.as_str().unwrap_or_default()).is_none();
                assert_eq!(needed.iter().find(mapped), None, "{}", path.display());
                let fields = given.output_schema["properties"].as_object().expect("it says what it gives");
                let sources = step["input_map"].as_object().expect("a mapping").values();
                let from_before = |source: &&Value| source.as_str().is_some_and(|source| fields.contains_key(source));
                assert!(sources.filter(from_before).count() > 0, "{}: nothing is passed on", path.display());
            }
            given = Some(agent);
        }
    }
}

/// Runs the fixtures of an agent that expect an output.
fn check_outputs(agent: &BundledAgent, run: impl Fn(&Value) -> Result<Value, String>) {
    for (path, fixture) in fixtures(agent) {
        if matches!(fixture.expected, Expectation::Output(_)) {
            let ended = run(&fixture.input);
            let checked = fixture.check(ended.as_ref().map_err(String::as_str));
            checked.unwrap_or_else(|mismatch| panic!("{path}: {mismatch}"));
        }
    }
}

#[test]
fn wordcount_counts() {
    let bundled = bundled();
    let agent = bundled.iter().find(|agent| agent.dir == "wordcount").expect("it is bundled");
    check_outputs(agent, |input| {
        wordcount(json!({"input": input}).to_string().as_bytes()).map_err(|error| error.to_string())
    });
    assert!(wordcount(b"{").is_err());
    assert!(wordcount(b"{}").is_err());
}

#[test]
fn search_docs_finds() {
    let bundled = bundled();
    let agent = bundled.iter().find(|agent| agent.dir == "search-docs").expect("it is bundled");
    check_outputs(agent, |input| {
        search_docs(json!({"input": input}).to_string().as_bytes()).map_err(|error| error.to_string())
    });
}

#[test]
fn exec_agents_answer_as_their_fixtures_say() {
    for agent in bundled() {
        let contract = contract(&agent);
        let [program, arguments @ ..] = contract.provider.command.as_slice() else { continue };
        if contract.provider.kind != ProviderKind::Exec || program == "@atlas" {
            continue;
        }
        let dir = agents_dir().join(agent.dir);
        check_outputs(&agent, |input| {
            let mut command = Command::new(program);
            answer(command.args(arguments).current_dir(&dir), &json!({"input": input, "context": {}}))
        });
    }
}

/// Runs `python3` on the class of each agent, with the SDK of the repository.
#[test]
fn python_agents_answer_as_their_fixtures_say() {
    const HARNESS: &str = "
import asyncio, importlib.util, json, sys
from atlas.runtime.base import AgentBase
spec = importlib.util.spec_from_file_location('agent', sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
agent = next(
    kind for name, kind in sorted(vars(module).items())
    if isinstance(kind, type) and issubclass(kind, AgentBase) and kind is not AgentBase
)(None, None)
async def run():
    await agent.on_startup()
    return await agent.execute(json.load(sys.stdin)['input'])
json.dump(asyncio.run(run()), sys.stdout)
";
    let sdk = agents_dir().join("../sdk/python");
    let recent = "import sys; sys.exit(sys.version_info < (3, 11))";
    let python = Command::new("python3").args(["-c", recent]).status();
    if !python.is_ok_and(|status| status.success()) {
        atlas_notice::skip("no python3 of version 3.11 or later here");
        return;
    }
    for agent in bundled() {
        let contract = contract(&agent);
        // Agents that spawn jobs, call models or record their steps need a cluster, and orchestrators run none.
        let needs_cluster = contract.requires.spawn_agents || contract.calls_models() || contract.durable;
        let runs = !is_orchestrator(&contract) && !needs_cluster;
        if contract.provider.kind != ProviderKind::Python || !runs {
            continue;
        }
        let program = agents_dir().join(agent.dir).join("agent.py");
        check_outputs(&agent, |input| {
            let mut command = Command::new("python3");
            let command = command.args(["-B", "-c", HARNESS]).arg(&program).env("PYTHONPATH", &sdk);
            answer(command, &json!({"input": input}))
        });
    }
}

/// The decisions of the bundled orchestrator, through the part of the SDK that workers call.
#[test]
fn the_priority_router_decides_by_the_length_of_texts() {
    const HARNESS: &str = "
import asyncio, json, sys
from pathlib import Path
from atlas.orchestrator._calls import Calls
from atlas.runtime.loader import load_orchestrator_class
calls = Calls(load_orchestrator_class(Path(sys.argv[1]))(), None)
json.dump(asyncio.run(calls.execute(json.load(sys.stdin))), sys.stdout)
";
    let recent = "import sys; sys.exit(sys.version_info < (3, 11))";
    if !Command::new("python3").args(["-c", recent]).status().is_ok_and(|status| status.success()) {
        atlas_notice::skip("no python3 of version 3.11 or later here");
        return;
    }
    let call = |input: Value| json!({"call": "route", "job": {"id": "j", "agent_name": "echo", "input_data": input}});
    let texts = |length: usize| json!({"a": "x".repeat(length / 2), "b": "x".repeat(length - length / 2), "n": [1]});
    let calls = [json!({}), texts(199), texts(200), texts(1_000), texts(1_001)].map(call);
    let mut command = Command::new("python3");
    let command = command.args(["-B", "-c", HARNESS]).arg(agents_dir().join("priority-router"));
    let command = command.env("PYTHONPATH", agents_dir().join("../sdk/python"));
    let answers = answer(command, &json!({"calls": calls, "registry": [], "timeout": 5})).expect("an answer");
    let decided = |answer: &Value| (answer["action"].clone(), answer["priority"].clone(), answer["reason"].clone());
    let decided: Vec<_> = answers["answers"].as_array().expect("a list").iter().map(decided).collect();
    let allowed = |priority: Value| (json!("execute"), priority, Value::Null);
    let rejected = (json!("reject"), Value::Null, json!("Empty input data"));
    let medium = allowed(Value::Null);
    assert_eq!(decided, [rejected, allowed(json!(-1)), medium.clone(), medium, allowed(json!(10))]);
}

/// Sends one document to a program and reads its answer.
fn answer(command: &mut Command, document: &Value) -> Result<Value, String> {
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let stdin = child.stdin.take().expect("it is piped");
    serde_json::to_writer(stdin, document).map_err(|error| error.to_string())?;
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}
