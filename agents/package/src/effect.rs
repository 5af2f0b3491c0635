//! Members of a `config.yaml` that are unknown or have no effect.

use std::path::Path;

use atlas_contract::yaml::{Budget, load_core};
use atlas_contract::{Warning, nearest};
use atlas_loki_agent::{Config, OF_HELPERS, WITHOUT_EFFECT};
use serde_json::Value;

use crate::derive::DefinitionError;
use crate::graph::{self, CONFIG_FILE};

/// The members of the `config.yaml` of a folder that do nothing, with the nearest known name or the reason.
pub fn config_warnings(folder: &Path) -> Result<Vec<Warning>, DefinitionError> {
    let (path, budget) = (folder.join(CONFIG_FILE), Budget::default());
    let text = graph::read(&path, budget.bytes_max as u64 + 1);
    let text = text.map_err(|source| DefinitionError::Read { path, source })?;
    let marked = load_core(&text, budget).map_err(|error| DefinitionError::Syntax { problem: error.to_string() })?;
    Ok(warnings(&marked.value))
}

fn warnings(document: &Value) -> Vec<Warning> {
    let known = Config::members();
    let helpers = document.get("can_spawn_agents") == Some(&Value::Bool(true));
    let warning = |(name, value): (&String, &Value)| {
        let path = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        if !known.contains(&name.as_str()) {
            return Some(Warning::unknown_key(path, nearest(name, known.iter().copied())));
        }
        let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        let unused = WITHOUT_EFFECT.iter().find(|(unused, _)| unused == name);
        match unused {
            _ if is_empty => None,
            Some((_, why)) => Some(Warning::new(path, "has no effect").with_hint(*why)),
            None if !helpers && OF_HELPERS.contains(&name.as_str()) => {
                Some(Warning::new(path, "has no effect without helpers").with_hint("set can_spawn_agents: true"))
            }
            None => None,
        }
    };
    document.as_object().into_iter().flatten().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_do_nothing_are_told() {
        let document = json!({
            "name": "A", "conversation_starters": ["hello"], "compression_threshold": 4000, "instuctions": "x",
            "summarization_model": "small", "max_agent_depth": null, "skills_enabled": true,
        });
        let told: String = warnings(&document).iter().map(|warning| format!("{warning}\n")).collect();
        expect![[r#"
            /conversation_starters: has no effect; nothing suggests prompts to people
            /compression_threshold: has no effect; sessions are kept whole, within the limits of conversations
            /instuctions: unknown key, ignored; did you mean "instructions"?
            /summarization_model: has no effect without helpers; set can_spawn_agents: true
            /skills_enabled: unknown key, ignored
        "#]]
        .assert_eq(&told);
        let plain = json!({"name": "A", "conversation_starters": [], "can_spawn_agents": true, "max_agent_depth": 2});
        assert_eq!(warnings(&plain), []);
    }
}
