//! Whether an agent can answer: what the cluster knows, and whether its servers and its model can be reached. No model is called. The members and texts are those of Pallas.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use atlas_jobs::passes_on;
use atlas_platform::model_health;
use atlas_state::State;
use atlas_telemetry::{ByAgent, ByAgentPort, ByMessageOutcome, MessageOutcome};
use atlas_types::{Namespace, Object, ObjectKey, ObjectKind, ObjectName, Timestamp};
use atlas_vault::Asks;
use futures::future::{join, join_all};
use serde_json::Value;

use crate::kept::Verdict;
use crate::service::Shared;
use crate::{Caller, Consistency, Error, Service, ShownAgent};

/// How long it counts that a model was reached.
const MODEL_KEPT: Duration = Duration::from_secs(60);

/// The kinds of health.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    Ok,
    /// It answers, but something is missing.
    Degraded,
    /// It cannot run.
    Error,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
            Self::Error => "error",
        }
    }

    /// Its value in metrics.
    fn share(self) -> f64 {
        match self {
            Self::Ok => 1.0,
            Self::Degraded => 0.5,
            Self::Error => 0.0,
        }
    }
}

/// The health of an agent at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentHealth {
    /// `ok`; `degraded` if something is missing; `error` if the agent cannot run.
    pub status: &'static str,
    pub at: Timestamp,
    /// What is wrong; none if nothing is.
    pub message: Option<String>,
}

/// A call of `send_message` that is being measured.
pub struct MessageTiming {
    service: Service,
    agent: Arc<str>,
    since: Duration,
}

impl MessageTiming {
    /// Counts the call.
    pub fn ended(self, well: bool) {
        let metrics = &self.service.shared.metrics;
        let outcome = if well { MessageOutcome::ok } else { MessageOutcome::error };
        let agent = self.service.shared.series_of(&self.agent);
        metrics.send_message.get_or_create(&ByMessageOutcome { agent: agent.clone(), outcome }).inc();
        let took = self.service.shared.env.clock.monotonic().saturating_sub(self.since);
        metrics.send_message_duration.get_or_create(&ByAgent { agent }).observe(took.as_secs_f64());
    }
}

impl Service {
    /// The health of an agent.
    pub async fn agent_health(&self, caller: &Caller, name: &str) -> Result<AgentHealth, Error> {
        let agent = self.agent(caller, name, None, Consistency::Linearizable).await?;
        let state = self.state(Consistency::Stale).await?;
        let found = judged(&state, &caller.namespace, &agent).into_iter();
        // What has no worker to ask is not asked.
        let needs = match state.nodes().any(|node| node.takes_leases()) {
            true => self.needs_of(&state, &caller.namespace, &agent).await,
            false => Vec::new(),
        };
        let found: Vec<_> = found.chain(needs).collect();
        let status = found.iter().map(|(status, _)| *status).max().unwrap_or(Status::Ok);
        let reasons: Vec<String> = found.into_iter().map(|(_, reason)| reason).collect();
        let by = ByAgent { agent: self.shared.series_of(agent.agent.name.as_str()) };
        self.shared.metrics.agent_health_status.get_or_create(&by).set(status.share());
        let message = (!reasons.is_empty()).then(|| reasons.join("; "));
        Ok(AgentHealth { status: status.as_str(), at: self.shared.env.clock.wall(), message })
    }

    /// Whether the servers and the model of an agent answer.
    async fn needs_of(&self, state: &State, namespace: &Namespace, agent: &ShownAgent) -> Vec<(Status, String)> {
        let (spec, contract) = (&agent.agent.spec, &agent.contract.value);
        let asks = Asks { namespace, input: None };
        let servers = spec.servers.iter().filter_map(|name| asks.server(name));
        let servers = join_all(servers.map(|key| async move { (self.server_answers(state, &key).await, key) }));
        let calls_models = atlas_registry::calls_models(contract);
        let model =
            spec.model.as_ref().filter(|_| calls_models).and_then(|name| asks.models(state, name).into_iter().next());
        let object = model.as_ref().and_then(|key| state.object(key));
        let model = async {
            let object = object?;
            Some((provider_of(object), object.key.name.to_string(), self.model_is_up(object).await))
        };
        let (servers, model) = join(servers, model).await;
        let mut found = Vec::new();
        // An agent that is a tool cannot run without its server.
        let is_tool = contract.pointer("/provider/type").and_then(Value::as_str) == Some("mcp");
        let down = servers.iter().filter(|(verdict, _)| matches!(verdict, Verdict::Down(_)));
        let unreachable = down.map(|(_, key)| key.name.as_str()).collect::<Vec<_>>().join(", ");
        if !unreachable.is_empty() {
            let status = if is_tool { Status::Error } else { Status::Degraded };
            found.push((status, format!("Unreachable: {unreachable}")));
        }
        let of_model = model.as_ref().map(|(_, name, verdict)| (name.as_str(), verdict));
        let asked = servers.iter().map(|(verdict, key)| (key.name.as_str(), verdict)).chain(of_model);
        let unknown = asked.filter_map(|(name, verdict)| match verdict {
            Verdict::Unknown(why) => Some(format!("{name} ({why})")),
            _ => None,
        });
        let unknown: Vec<String> = unknown.collect();
        if !unknown.is_empty() {
            found.push((Status::Degraded, format!("Not asked: {}", unknown.join(", "))));
        }
        if let Some((provider, _, Verdict::Down(why))) = model {
            found.push((Status::Degraded, format!("LLM: {provider}: {why}")));
        }
        found
    }

    /// The stored state of a model, or what a worker finds if that is old or bad. A model that shows its provider the credentials of callers
    /// is not asked without one.
    async fn model_is_up(&self, object: &Object) -> Verdict {
        let now = self.shared.env.clock.wall().0 as f64 / 1e6;
        let known = model_health::reached_at(object);
        if known.is_some_and(|at| now - at <= MODEL_KEPT.as_secs_f64()) || passes_on(object) {
            return Verdict::Up;
        }
        self.model_answers(&object.key).await
    }

    /// Notes that an agent is served on a port.
    pub fn agent_served(&self, agent: &str, port: u16) {
        let agent = self.shared.series_of(agent);
        self.shared.metrics.agent_info.get_or_create(&ByAgentPort { agent, port }).set(1);
    }

    /// Begins to measure a call of `send_message`. The agent is known.
    pub fn message_began(&self, agent: &Arc<str>) -> MessageTiming {
        MessageTiming { service: self.clone(), agent: agent.clone(), since: self.shared.env.clock.monotonic() }
    }
}

impl Shared {
    /// The agent's name in metrics.
    fn series_of(&self, agent: &str) -> String {
        let mut series = self.agent_series.lock().unwrap_or_else(PoisonError::into_inner);
        let [agent] = series.labels([agent.to_owned()]);
        agent
    }
}

/// The word for the provider of a model.
fn provider_of(object: &Object) -> String {
    let spec: Value = serde_json::from_slice(&object.spec).unwrap_or_default();
    spec["provider"].as_str().unwrap_or_default().to_owned()
}

fn judged(state: &State, namespace: &Namespace, agent: &ShownAgent) -> Vec<(Status, String)> {
    let mut found = Vec::new();
    if !state.nodes().any(|node| node.takes_leases()) {
        found.push((Status::Error, "no worker is ready".to_owned()));
    }
    let missing = state.missing_agents(namespace, &agent.contract.dependencies);
    if !missing.is_empty() {
        found.push((Status::Error, format!("Unreachable: {}", missing.join(", "))));
    }
    if let Some(model) = missing_model(state, namespace, &agent.contract.value) {
        found.push((Status::Degraded, format!("LLM: model '{model}' not found")));
    }
    found
}

/// The model that an llm agent names, if the namespace does not have it. Tiers may also come from a worker's environment.
fn missing_model<'c>(state: &State, namespace: &Namespace, contract: &'c Value) -> Option<&'c str> {
    let name = contract.pointer("/model/name").and_then(Value::as_str).filter(|name| !name.starts_with('{'))?;
    if !atlas_registry::calls_models(contract) {
        return None;
    }
    let key = ObjectKey {
        namespace: namespace.clone(),
        kind: ObjectKind::new("model").ok()?,
        name: ObjectName::new(name).ok()?,
    };
    state.object(&key).is_none().then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_counts() {
        assert!(Status::Error > Status::Degraded && Status::Degraded > Status::Ok);
        assert_eq!([Status::Ok, Status::Degraded, Status::Error].map(Status::share), [1.0, 0.5, 0.0]);
    }
}
