//! The package of an agent of a deployment: its folder, with what the file says in its contract.

use std::path::PathBuf;

use atlas_contract::yaml::{self, Budget};
use atlas_package::{CONTRACT_FILE, Package};
use serde_json::{Map, Value, json};

use super::{Deployment, Entry};
use crate::failure::Failure;

impl Deployment {
    /// Packs an agent.
    pub(crate) fn package(&self, entry: &Entry) -> Result<Package, Failure> {
        let failed = |why: String| Failure::usage(format!("agents.{}: {why}", entry.name));
        let folder = self.folder_of(entry).map_err(failed)?;
        let text = std::fs::read(folder.join(CONTRACT_FILE)).map_err(|error| failed(error.to_string()))?;
        let contract = self.contract(entry, &text).map_err(failed)?;
        let package = atlas_package::pack_with_contract(&folder, contract.to_string().into_bytes());
        package.map_err(|error| failed(atlas_env::chain(&error)))
    }

    /// The folder of a module: `agents.jarvis` and `agents/jarvis` are the same.
    fn folder_of(&self, entry: &Entry) -> Result<PathBuf, String> {
        let places = [self.folder.join(&entry.module), self.folder.join(entry.module.replace('.', "/"))];
        let found = places.iter().find(|place| place.join(CONTRACT_FILE).is_file());
        found.cloned().ok_or_else(|| {
            format!(
                "the module \"{}\" is no folder with {CONTRACT_FILE} (looked in {}); make one for each agent: atlasctl init NAME --template llm",
                entry.module,
                places[1].display()
            )
        })
    }

    /// The contract with the members of the file.
    pub(super) fn contract(&self, entry: &Entry, text: &[u8]) -> Result<Value, String> {
        let document = yaml::load(text, Budget::default()).map_err(|error| error.to_string())?;
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
        if let Some(Value::Object(provider)) = agent.get_mut("provider")
            && provider.get("type").is_some_and(|kind| kind == "llm")
        {
            provider.insert("max_iterations".to_owned(), json!(entry.max_iterations));
            provider.insert("loop_repeat_threshold".to_owned(), json!(entry.loop_repeat_threshold));
            provider.entry("partial_at_limit").or_insert(json!(true));
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
