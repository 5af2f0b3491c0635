//! Chains as agents: what calls an agent by its name calls a stored chain as well.
//!
//! When a chain is first called like an agent, the cluster registers a version of an agent of its name, with the provider `chain`: 0, the
//! revision of the chain, and a number that rises when the schemas of its first or last agent change. An agent that somebody
//! registered under the name comes first.

use atlas_desk::on_behalf;
use atlas_package::{PackFile, pack_files};
use atlas_registry::find_version;
use atlas_runs::Chain;
use atlas_state::State;
use atlas_types::{AgentName, AgentVersion, Namespace, Object, ObjectKey, ObjectKind, ObjectName, level};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use crate::{Caller, Error, Service};

/// The longest run of a chain that is called like an agent, in seconds. Its steps have limits of their own.
const TIMEOUT_SECONDS: u32 = 7 * 86_400;

/// Most chains that are looked at to find a cycle.
const LOOKED_AT_MAX: usize = 1_000;

/// A version that was made of a stored chain, and not registered by somebody.
pub(crate) fn is_made(agent: &AgentVersion) -> bool {
    agent.spec.carried && agent.version.major == 0
}

/// A stored chain that is called if its name is called.
fn stored<'a>(state: &'a State, namespace: &Namespace, name: &AgentName) -> Option<&'a Object> {
    if state.agent_latest(namespace, name).is_some_and(|agent| !is_made(agent)) {
        return None;
    }
    let (kind, name) = (ObjectKind::new("chain").ok()?, ObjectName::new(name.as_str()).ok()?);
    state.object(&ObjectKey { namespace: namespace.clone(), kind, name }).map(|object| &**object)
}

/// How a chain calls itself, for people.
pub(super) fn told(way: &[String]) -> String {
    format!("the chain calls itself: {}", way.join(" → "))
}

impl Service {
    /// Makes the stored chain of a name callable. Returns the state in which it is, if it was not before.
    pub(crate) fn with_chain<'a>(
        &'a self,
        caller: &'a Caller,
        state: &'a State,
        name: &'a AgentName,
        requirement: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<State>, Error>> {
        async move {
            if requirement.is_some_and(|requirement| requirement != "*") || state.level() < level::CARRY {
                return Ok(None);
            }
            let Some(object) = stored(state, &caller.namespace, name) else { return Ok(None) };
            let spec: Value = serde_json::from_slice(&object.spec).unwrap_or_default();
            let Ok(chain) = Chain::stored(name.as_str(), &spec) else { return Ok(None) };
            if self.cycle(state, &caller.namespace, name.as_str(), &chain).await?.is_some() {
                return Ok(None);
            }
            self.publish(caller, state, object, chain).await
        }
        .boxed()
    }

    async fn publish(
        &self,
        caller: &Caller,
        state: &State,
        object: &Object,
        chain: Chain,
    ) -> Result<Option<State>, Error> {
        let mut state = state.clone();
        let mut grown = false;
        let mut schemas = Vec::with_capacity(2);
        for (step, member) in [(chain.steps.first(), "input_schema"), (chain.steps.last(), "output_schema")] {
            let Some(step) = step else { return Ok(None) };
            // What a map makes of the input is not what the first agent takes.
            let mapped = member == "input_schema" && step.input_map.as_ref().is_some_and(|map| !map.is_empty());
            let branches = member == "output_schema" && chain.steps.iter().any(|step| step.extension.is_some());
            let Ok(agent) = AgentName::new(&step.agent) else { return Ok(None) };
            if let Some(newer) = self.with_chain(caller, &state, &agent, step.range.as_deref()).await? {
                (state, grown) = (newer, true);
            }
            let found = find_version(&state, caller, &agent, step.range.as_deref()).ok().flatten();
            schemas.push(match found.filter(|_| !mapped && !branches) {
                Some(agent) => self.shared.registry.contract(&agent).await?.value[member].clone(),
                None => json!({"type": "object"}),
            });
        }
        let name = AgentName::new(&chain.name)?;
        let latest = state.agent_latest(&caller.namespace, &name).cloned();
        let mut number = 0;
        if let Some(latest) = latest.filter(|latest| latest.version.minor == object.revision.0) {
            let known = self.shared.registry.contract(&latest).await?;
            let asks = known.value["provider"]["orchestrator"].as_str().unwrap_or_default();
            let is_same = known.value["input_schema"] == schemas[0] && known.value["output_schema"] == schemas[1];
            if is_same && asks == chain.orchestrator {
                return Ok(grown.then_some(state));
            }
            number = latest.version.patch + 1;
        }
        let version = format!("0.{}.{number}", object.revision);
        let document = json!({"agent": {
            "name": chain.name, "version": version, "description": chain.description,
            "input": {"schema": schemas[0]}, "output": {"schema": schemas[1]},
            "provider": {"type": "chain", "steps": chain.to_json()["steps"], "orchestrator": chain.orchestrator},
            "execution_timeout": TIMEOUT_SECONDS,
        }});
        let file =
            PackFile { path: "agent.yaml".to_owned(), bytes: document.to_string().into_bytes(), executable: false };
        let package = pack_files(vec![file]).map_err(|error| Error::internal("pack a chain", &error))?;
        let cluster = on_behalf::cluster_in(caller.namespace.clone());
        self.register_made(&cluster, package.bytes.into()).await?;
        Ok(Some(self.shared.read().await?))
    }

    /// How a chain would call itself: the names on the way, the first one again at the end.
    pub(crate) async fn cycle(
        &self,
        state: &State,
        namespace: &Namespace,
        name: &str,
        chain: &Chain,
    ) -> Result<Option<Vec<String>>, Error> {
        let agents = |chain: &Chain| chain.steps.iter().map(|step| step.agent.clone()).collect::<Vec<_>>();
        // An agent that somebody registered comes before a chain of its name, which then calls the agent.
        let agent = AgentName::new(name).ok().and_then(|name| state.agent_latest(namespace, &name));
        if agent.is_some_and(|agent| !agent.spec.carried) {
            return Ok(None);
        }
        let mut looked_at = vec![name.to_owned()];
        let mut ways: Vec<Vec<String>> = agents(chain).into_iter().map(|agent| vec![name.to_owned(), agent]).collect();
        while let Some(way) = ways.pop() {
            let Some(last) = way.last().cloned() else { continue };
            if last == name {
                return Ok(Some(way));
            }
            if looked_at.contains(&last) || looked_at.len() >= LOOKED_AT_MAX {
                continue;
            }
            for agent in self.agents_called(state, namespace, &last).await? {
                ways.push(way.iter().cloned().chain([agent]).collect());
            }
            looked_at.push(last);
        }
        Ok(None)
    }

    /// Refuses a chain that calls itself.
    pub(crate) async fn check_cycle(
        &self,
        state: &State,
        namespace: &Namespace,
        name: &str,
        chain: &Chain,
    ) -> Result<(), Error> {
        match self.cycle(state, namespace, name, chain).await? {
            Some(way) => Err(Error::ChainCycle(told(&way))),
            None => Ok(()),
        }
    }

    /// Makes the stored chains that are steps of a chain callable.
    pub(super) async fn with_chains(&self, caller: &Caller, state: &State, chain: &Chain) -> Result<State, Error> {
        let mut state = state.clone();
        for step in &chain.steps {
            let Ok(name) = AgentName::new(&step.agent) else { continue };
            if let Some(newer) = self.with_chain(caller, &state, &name, step.range.as_deref()).await? {
                state = newer;
            }
        }
        Ok(state)
    }

    /// The agents that the chain of a name calls; none if it is not that of a chain.
    fn agents_called<'a>(
        &'a self,
        state: &'a State,
        namespace: &'a Namespace,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Vec<String>, Error>> {
        async move {
            let Ok(name) = AgentName::new(name) else { return Ok(Vec::new()) };
            let steps = match (stored(state, namespace, &name), state.agent_latest(namespace, &name)) {
                (Some(object), _) => {
                    let spec: Value = serde_json::from_slice(&object.spec).unwrap_or_default();
                    spec["steps"].clone()
                }
                (None, Some(agent)) if agent.spec.carried => {
                    self.shared.registry.contract(agent).await?.value["provider"]["steps"].clone()
                }
                (None, _) => return Ok(Vec::new()),
            };
            let read = Chain::stored(name.as_str(), &json!({"steps": steps}));
            Ok(read.map(|chain| chain.steps.into_iter().map(|step| step.agent).collect()).unwrap_or_default())
        }
        .boxed()
    }
}
