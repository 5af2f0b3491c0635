//! Probes: whether models can be reached, without a call of one.

use std::collections::BTreeSet;

use atlas_llm::client::Health;
use atlas_types::StreamKind;
use serde_json::{Value, json};
use tracing::{info, warn};

use super::drive::Driver;
use super::fault::Fault;
use super::fixed::Fixed;
use super::health::milliseconds;
use super::model;
use crate::model_environment::Chosen;
use crate::provider::Shared;

impl Driver<'_, '_> {
    /// The job of a contract with `probe: yes`. It asks the first model of the agent and records no step.
    pub(super) async fn probe(mut self) -> Result<Value, Fault> {
        let fixed = Fixed::of(&self.work.agent, &self.work.assignment.attachments, self.shared)?;
        let models = self.open(&fixed).await?;
        let Some(target) = models.targets.first() else { return Err(Fault::internal("there is no model to probe")) };
        let health = models.client.probe(target).await;
        models.hide(self.control);
        if let Some(seen) = &models.seen {
            match &health {
                Health::Reachable { latency } => seen.reached(&target.name, *latency),
                Health::Failed(error) => seen.failed(&target.name, error),
                Health::Unknown => {}
            }
            self.metadata.extend(seen.value().map(|seen| ("_models".to_owned(), seen)));
        }
        let text = format!("{}: {}", target.name, words(&health));
        self.control.say(StreamKind::Log, "info", text).await;
        let mut output = json!({"model": target.model, "health": word(&health)});
        match health {
            Health::Reachable { latency } => output["latency_ms"] = milliseconds(latency).into(),
            Health::Failed(error) => {
                output["error"] = error.message.into();
                output["kind"] = error.kind.name().into();
            }
            Health::Unknown => {}
        }
        Ok(output)
    }
}

fn word(health: &Health) -> &'static str {
    match health {
        Health::Reachable { .. } => "reachable",
        Health::Failed(_) => "failed",
        Health::Unknown => "unknown",
    }
}

fn words(health: &Health) -> String {
    match health {
        Health::Reachable { latency } => format!("reachable in {} ms", milliseconds(*latency)),
        Health::Failed(error) => format!("not reachable: {error}"),
        Health::Unknown => "the protocol has no request that would show it".to_owned(),
    }
}

/// Asks the provider that the worker's environment chooses for its models, once at the start. The result is logged, and nothing waits for it.
pub(crate) async fn preflight(shared: Shared) {
    let variables = &shared.settings.models;
    let Some(chosen) = variables.chosen() else { return };
    let provider = match chosen {
        Chosen::Anthropic => "anthropic",
        Chosen::Openai => "openai",
    };
    let models: BTreeSet<String> =
        ["fast", "balanced", "powerful"].map(|tier| variables.model(chosen, tier)).into_iter().collect();
    for model in models {
        let Ok(target) = model::environment(chosen, &model, &shared) else { continue };
        match shared.models.probe(&target).await {
            Health::Failed(error) => {
                warn!(event = "llm_preflight", provider, model, %error, "the model is not reachable")
            }
            health => info!(event = "llm_preflight", provider, model, "{}", words(&health)),
        }
    }
}
