//! The package of an agent of a deployment: its folder, with what the file says in its contract.

use std::path::PathBuf;

use atlas_contract::yaml::{self, Budget};
use atlas_package::{CONTRACT_FILE, Package};
use serde_json::{Map, Value, json};

use super::{Deployment, Entry, ITERATIONS, REPEATS};
use crate::failure::Failure;

impl Deployment {
    /// Packs an agent. The folder of its module comes with the package.
    pub(crate) fn package(&self, entry: &Entry) -> Result<(PathBuf, Package), Failure> {
        let failed = |why: String| Failure::usage(format!("agents.{}: {why}", entry.name));
        let folder = self.folder_of(entry).map_err(failed)?;
        let text = match std::fs::read(folder.join(CONTRACT_FILE)) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let derived = atlas_package::contract_of_folder(&folder);
                let derived = derived.map_err(|error| failed(atlas_env::chain(&error)))?;
                derived.ok_or_else(|| failed(format!("\"{}\" has no definition", folder.display())))?
            }
            Err(error) => return Err(failed(error.to_string())),
        };
        let contract = self.contract(entry, &text).map_err(failed)?;
        let package = atlas_package::pack_with_contract(&folder, contract.to_string().into_bytes());
        let package = package.map_err(|error| failed(atlas_env::chain(&error)))?;
        Ok((folder, package))
    }

    /// The folder of a module: `agents.jarvis` and `agents/jarvis` are the same.
    fn folder_of(&self, entry: &Entry) -> Result<PathBuf, String> {
        let places = [self.folder.join(&entry.module), self.folder.join(entry.module.replace('.', "/"))];
        let found = places.iter().find(|place| atlas_package::is_agent(place));
        found.cloned().ok_or_else(|| {
            format!(
                "the module \"{}\" is no folder with {CONTRACT_FILE}, config.yaml or graph.yaml (looked in {}); make one for each agent: atlasctl init NAME --template llm",
                entry.module,
                places[1].display()
            )
        })
    }

    /// The contract with the members of the file.
    pub(super) fn contract(&self, entry: &Entry, text: &[u8]) -> Result<Value, String> {
        let document = yaml::load_strictly(text, Budget::default()).map_err(|error| error.to_string())?;
        let Value::Object(mut members) = document else { return Err(format!("{CONTRACT_FILE} is not a mapping")) };
        let mut agent = match members.remove("agent") {
            Some(Value::Object(agent)) => agent,
            _ => members,
        };
        agent.insert("name".to_owned(), json!(entry.name));
        let texts = [
            ("version", &self.version),
            ("title", &entry.title),
            ("description", &entry.description),
            ("conversation", &entry.instance_scope),
        ];
        for (key, value) in texts {
            if let Some(value) = value {
                agent.insert(key.to_owned(), json!(value));
            }
        }
        if !entry.depends_on.is_empty() {
            depend(&mut agent, &entry.depends_on);
        }
        let caps = [
            ("max_iterations", entry.max_iterations, ITERATIONS),
            ("loop_repeat_threshold", entry.loop_repeat_threshold, REPEATS),
        ];
        match agent.get_mut("provider") {
            Some(Value::Object(provider)) if provider.get("type").is_some_and(|kind| kind == "llm") => {
                for (key, value, usual) in caps {
                    provider.insert(key.to_owned(), json!(value.unwrap_or(usual)));
                }
                provider.entry("partial_at_limit").or_insert(json!(true));
            }
            _ => {
                if let Some((key, ..)) = caps.iter().find(|(_, value, _)| value.is_some()) {
                    return Err(format!(
                        "{key} is for agents with the provider llm, which this one has not; remove it"
                    ));
                }
            }
        }
        Ok(json!({ "agent": agent }))
    }
}

/// Adds agents to `requires.agents`, unless they are there.
fn depend(agent: &mut Map<String, Value>, names: &[String]) {
    let requires = agent.entry("requires").or_insert_with(|| json!({}));
    let Some(requires) = requires.as_object_mut() else { return };
    let all = requires.entry("agents").or_insert_with(|| json!([]));
    let Some(all) = all.as_array_mut() else { return };
    for name in names {
        if !all.iter().any(|known| known == name || known["name"] == **name) {
            all.push(json!(name));
        }
    }
}
