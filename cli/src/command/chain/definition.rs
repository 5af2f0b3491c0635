//! Definitions of chains in files: the format of Atlas for Python.

use std::path::Path;

use atlas_contract::yaml::{self, Budget};
use atlas_contract::{Warning, nearest};
use serde_json::{Map, Value, json};

use super::KIND;
use crate::client::Client;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::input;

/// Whether a path names a file with the definition of a chain, and not a folder of agents.
pub(crate) fn is_definition(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") && !path.is_dir()
}

/// The definition in a file, without the key `chain`.
fn read(path: &Path) -> Result<Map<String, Value>, Failure> {
    parse(&input::read_file(path)?, path)
}

/// The definition in a text that comes from `path`.
fn parse(text: &str, path: &Path) -> Result<Map<String, Value>, Failure> {
    let wrong = |what: String| Failure::new("E1104", Exit::Invalid, format!("{}: {what}", path.display()));
    let document = yaml::load_strictly(text.as_bytes(), Budget::default()).map_err(|error| wrong(error.to_string()))?;
    if document.get("agent").is_some() {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let failure = wrong("this is the contract of an agent, not a chain".to_owned());
        return Err(failure.with_next(format!("deploy its folder: atlasctl deploy {}", folder.display())));
    }
    let definition = document.get("chain").unwrap_or(&document);
    match definition {
        Value::Object(members) if members.get("name").is_some_and(Value::is_string) => Ok(members.clone()),
        _ => Err(wrong("a chain has a `name` and `steps`, also under the key `chain`".to_owned())
            .with_next("the format: atlasctl docs chains")),
    }
}

/// The member `chain` of requests: the definition in a file, or the name of a stored chain.
pub(super) fn chain(text: &str) -> Result<Value, Failure> {
    let path = Path::new(text);
    if is_definition(path) { read(path).map(Value::Object) } else { Ok(text.into()) }
}

/// The schema by which `key=value` arguments for a chain get their types: that of its first agent, unless a map makes the input of that
/// step. Null if it cannot be told; the values then stay strings.
pub(crate) async fn input_schema(client: &Client, chain: &Value) -> Value {
    let stored = match chain {
        Value::String(name) => {
            client.get(&["api", "objects", KIND, name], &[]).await.unwrap_or_default()["spec"].clone()
        }
        definition => definition.clone(),
    };
    let first = &stored["steps"][0];
    let mapped = first["input_map"].as_object().is_some_and(|map| !map.is_empty());
    let Some(agent) = first["agent"].as_str().filter(|_| !mapped) else { return Value::Null };
    let (name, version) = agent.rsplit_once('@').unwrap_or((agent, ""));
    let query = [("version", version)];
    let query = if version.is_empty() { &query[..0] } else { &query[..] };
    client.get(&["api", "agents", name], query).await.unwrap_or_default()["input_schema"].clone()
}

/// Stores the definition in a file as an object of its name, and returns the object.
pub(crate) async fn put(client: &Client, path: &Path, dry_run: bool) -> Result<Value, Failure> {
    store(client, read(path)?, dry_run).await
}

/// Stores the definition in a text.
pub(crate) async fn put_text(client: &Client, text: &str) -> Result<Value, Failure> {
    store(client, parse(text, Path::new("the definition"))?, false).await
}

async fn store(client: &Client, mut definition: Map<String, Value>, dry_run: bool) -> Result<Value, Failure> {
    let name = definition.remove("name").unwrap_or_default();
    let name = name.as_str().unwrap_or_default();
    let query: &[(&str, &str)] = if dry_run { &[("dry_run", "true")] } else { &[] };
    client.put(&["api", "objects", KIND, name], query, &json!({"spec": known(definition)})).await
}

/// The members of a definition, besides its name.
const MEMBERS: [&str; 3] = ["description", "orchestrator", "steps"];
/// The members of a step.
const OF_STEPS: [&str; 4] = ["agent", "name", "input_map", "atlas"];

/// The members that a stored chain has. Files may have others, which Atlas for Python ignores; objects may not.
fn known(mut definition: Map<String, Value>) -> Value {
    let keep = |members: &mut Map<String, Value>, known: &[&str]| {
        members.retain(|name, value| known.contains(&name.as_str()) && !value.is_null());
    };
    keep(&mut definition, &MEMBERS);
    for step in definition.get_mut("steps").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(step) = step {
            keep(step, &OF_STEPS);
        }
    }
    Value::Object(definition)
}

/// The members of the definition in a file that mean nothing.
pub(crate) fn unknown(path: &Path) -> Result<Vec<Warning>, Failure> {
    let file = path.display().to_string();
    let found = left_out(&read(path)?);
    Ok(found.into_iter().map(|warning| warning.in_file(&file)).collect())
}

fn left_out(definition: &Map<String, Value>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut look = |members: &Map<String, Value>, at: &str, known: &[&str]| {
        for name in members.keys().filter(|name| !known.contains(&name.as_str())) {
            warnings.push(Warning::unknown_key(format!("{at}/{name}"), nearest(name, known.iter().copied())));
        }
    };
    look(definition, "", &[&MEMBERS[..], &["name"]].concat());
    for (index, step) in definition.get("steps").and_then(Value::as_array).into_iter().flatten().enumerate() {
        if let Value::Object(step) = step {
            look(step, &format!("/steps/{index}"), &OF_STEPS);
        }
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_members_are_left_out() {
        let definition = json!({"name": "c", "on_failure": "x", "description": null, "steps": [{"agent": "a", "if": 1, "input_map": {"x": 1}}]});
        let Value::Object(definition) = definition else { panic!("an object") };
        assert_eq!(known(definition), json!({"steps": [{"agent": "a", "input_map": {"x": 1}}]}));
    }

    #[test]
    fn unknown_members_are_told_with_the_nearest_known_one() {
        let definition = json!({"name": "c", "descripton": "x", "steps": [{"agent": "a", "input_mpa": {}}, 5, {"agent": "b", "if": "x"}]});
        let Value::Object(definition) = definition else { panic!("an object") };
        let told: String = left_out(&definition).iter().map(|warning| format!("{warning}\n")).collect();
        expect_test::expect![[r#"
            /descripton: unknown key, ignored; did you mean "description"?
            /steps/0/input_mpa: unknown key, ignored; did you mean "input_map"?
            /steps/2/if: unknown key, ignored
        "#]]
        .assert_eq(&told);
    }

    #[test]
    fn files_are_read_with_and_without_the_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c.yaml");
        for text in ["chain:\n  name: c\n  steps: []\n", "name: c\nsteps: []\n"] {
            std::fs::write(&path, text).expect("written");
            assert_eq!(Value::Object(read(&path).expect("a chain")), json!({"name": "c", "steps": []}));
        }
        for text in ["steps: []", "- a", "chain: 1", "chain: {", "name: 5", "agent: {name: a}"] {
            std::fs::write(&path, text).expect("written");
            assert_eq!(read(&path).expect_err(text).code.as_deref(), Some("E1104"));
        }
        assert!(is_definition(&path) && is_definition(Path::new("gone.yml")) && !is_definition(folder.path()));
        assert_eq!(chain("greet"), Ok("greet".into()));
    }
}
