//! `GET /v1/models`.

use atlas_model::{Capability, Purpose};
use atlas_openai::WireError;
use atlas_openai::models::{self, ModelEntry};
use atlas_service::{Caller, UsableForm, UsableModel};
use http::StatusCode;
use serde_json::{Map, Value};

use super::errors::failed;
use crate::http::HttpDoor;
use crate::http::answer::{Answer, json};

/// `GET /v1/models`: all that the caller may use.
pub(in crate::http) async fn list(door: &HttpDoor, caller: &Caller) -> Answer {
    let all = door.service.usable_models(caller).await?;
    let entries: Vec<ModelEntry> = all.into_iter().map(|model| entry(caller, model)).collect();
    Ok(json(StatusCode::OK, &models::list(&entries)))
}

/// `GET /v1/models/{model}`.
pub(in crate::http) async fn model(door: &HttpDoor, caller: &Caller, name: &str) -> Answer {
    match door.service.usable_model(caller, name).await? {
        Some(model) => {
            Ok(json(StatusCode::OK, &models::one(&entry(caller, UsableModel { id: name.to_owned(), ..model }))))
        }
        None => Ok(failed(&WireError::model_not_found(name), None)),
    }
}

/// `GET /v1/models/{form}/{model}`.
pub(in crate::http) async fn model_of(door: &HttpDoor, caller: &Caller, form: &str, name: &str) -> Answer {
    model(door, caller, &format!("{form}/{name}")).await
}

fn entry(caller: &Caller, model: UsableModel) -> ModelEntry {
    let UsableModel { id, created, form } = model;
    let mut metadata = Map::new();
    let mut say = |name: &str, value: Value| drop(metadata.insert(name.to_owned(), value));
    let owned_by = match form {
        UsableForm::Model { spec, .. } => {
            say("kind", if spec.purpose == Purpose::Embedding { "embedding" } else { "model" }.into());
            if let Some(window) = spec.context_window {
                say("context_window", window.into());
            }
            if let Some(most) = spec.output_tokens_max {
                say("max_output_tokens", most.into());
            }
            let has = |capability| spec.capabilities.contains(&capability);
            for (name, capability) in [
                ("vision", Capability::Vision),
                ("tools", Capability::Tools),
                ("json_schema", Capability::JsonSchema),
                ("reasoning", Capability::Reasoning),
            ] {
                if has(capability) {
                    say(name, true.into());
                }
            }
            spec.provider.as_str().to_owned()
        }
        UsableForm::Agent { agent, .. } => {
            say("kind", "agent".into());
            say("version", agent.agent.version.to_string().into());
            if let Some(text) = agent.contract.value["description"].as_str() {
                say("description", text.into());
            }
            caller.namespace.to_string()
        }
        UsableForm::Chain => {
            say("kind", "chain".into());
            caller.namespace.to_string()
        }
    };
    let created = u64::try_from(created.0 / 1_000_000).unwrap_or_default();
    ModelEntry { id, created, owned_by, metadata }
}
