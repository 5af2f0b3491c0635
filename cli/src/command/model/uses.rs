//! Which model answers the jobs of an agent.

use std::path::Path;

use atlas_contract::Contract;
use serde_json::Value;

use super::{KIND, name_of, tier};
use crate::client::Client;
use crate::command::object;
use crate::failure::Failure;

/// A line about the model of an agent, for example `model: fast (gpt-4o-mini)`. None for agents without a model, and for those whose
/// input names it.
pub(crate) async fn model_of(client: &Client, contract: &Contract, folder: &Path) -> Result<Option<String>, Failure> {
    let asked = contract.model.name.as_deref().unwrap_or(&contract.model.preference);
    if !contract.calls_models() || asked.starts_with('{') {
        return Ok(None);
    }
    let models = object::all(client, KIND).await?;
    let tiers = tier::all(client, &models).await?;
    let of_tier = tiers.iter().find(|tier| tier.name == asked).and_then(|tier| tier.model.as_deref());
    let name = contract.model.name.as_deref().or(of_tier);
    let model = models.iter().find(|model| Some(name_of(model)) == name);
    // Programs may state a model and call none.
    if model.is_none() && !contract.provider.kind.has_models() {
        return Ok(None);
    }
    Ok(Some(line(asked, model, folder.join("mock.yaml").is_file())))
}

fn line(asked: &str, model: Option<&Value>, has_mock: bool) -> String {
    match model {
        Some(model) => {
            let id = model["spec"]["name"].as_str().unwrap_or_default();
            format!("model: {} ({id})", name_of(model))
        }
        // The CLI does not see the keys in the environments of workers.
        None if has_mock => "model: mock (no model configured)".to_owned(),
        None => format!("model: none yet; add it: atlasctl model add {asked} …"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_line_says_what_answers() {
        let model = json!({"metadata": {"name": "small"}, "spec": {"name": "gpt-4o-mini"}});
        assert_eq!(line("fast", Some(&model), true), "model: small (gpt-4o-mini)");
        assert_eq!(line("fast", None, true), "model: mock (no model configured)");
        assert_eq!(line("fast", None, false), "model: none yet; add it: atlasctl model add fast …");
    }
}
