//! Circuits of agent versions and of nodes ([`Circuit`]): which ends of attempts count, and for what.
//!
//! A failure counts for the version if the agent is the likely cause, and for the node if the worker is. What people and budgets decide,
//! lost leases and waits count for neither. Jobs of the cluster itself count for nodes only.

use std::sync::Arc;

use atlas_types::{
    AgentVersion, Bound, Circuit, Failed, Failure, FailureKind, FencingToken, Job, Lease, NodeId, Place, level,
};
use serde_json::Value;

use crate::change::Change;
use crate::index::CircuitKey;
use crate::state::State;

/// The code of a failure because of a budget, in the metadata of an attempt.
const BUDGET_CODE: &str = "E3203";

/// What the end of an attempt says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Success,
    Failure,
    Nothing,
}

/// What it says of the agent version.
fn of_version(job: &Job, failure: Option<&Failure>) -> Verdict {
    match failure.map(|failure| failure.kind) {
        None => Verdict::Success,
        Some(FailureKind::Agent) if is_of_budget(job) => Verdict::Nothing,
        // Its caller left it less time than its contract does.
        Some(FailureKind::Timeout) if job.execution_timeout.is_some() => Verdict::Nothing,
        Some(
            FailureKind::Agent
            | FailureKind::NoAgent
            | FailureKind::OutputInvalid
            | FailureKind::Startup
            | FailureKind::Timeout,
        ) => Verdict::Failure,
        Some(
            FailureKind::InputInvalid
            | FailureKind::QueueTimeout
            | FailureKind::Unsatisfiable
            | FailureKind::Rejected
            | FailureKind::Dependency
            | FailureKind::LeaseLost
            | FailureKind::Internal,
        ) => Verdict::Nothing,
    }
}

/// What it says of the node. Agents can make their own start fail, so it says nothing; those that call models fail with the service of the model, wherever they run.
fn of_node(job: &Job, failure: Option<&Failure>) -> Verdict {
    let calls_models = job.spec.as_ref().is_some_and(|spec| spec.demand.place == Place::Llm);
    match failure.map(|failure| failure.kind) {
        None | Some(FailureKind::Agent | FailureKind::OutputInvalid) => Verdict::Success,
        Some(FailureKind::Internal) if !calls_models => Verdict::Failure,
        Some(_) => Verdict::Nothing,
    }
}

fn is_of_budget(job: &Job) -> bool {
    let metadata: Option<Value> = serde_json::from_slice(&job.metadata).ok();
    metadata.is_some_and(|metadata| metadata.get("_error_code").and_then(Value::as_str) == Some(BUDGET_CODE))
}

impl State {
    /// Stores an agent version without an event.
    pub(crate) fn store_agent(&mut self, agent: &Arc<AgentVersion>) {
        let agents = self.agents.entry(agent.namespace.clone()).or_default();
        let old = agents.insert((agent.name.clone(), agent.version), Arc::clone(agent));
        self.index.agent(old.as_deref(), Some(agent));
    }

    /// The agent version whose circuit counts the attempts of a job; none for a job whose contract has no bound.
    fn guarded(&self, job: &Job) -> Option<&Arc<AgentVersion>> {
        job.spec.as_ref()?.failures_max?;
        let pin = job.pin.as_ref().filter(|_| !job.is_system())?;
        self.agent(&job.namespace, &job.agent, pin.version).filter(|agent| agent.digest == pin.digest)
    }

    /// The circuit of the agent version that a job runs, if its contract says after how many failures that opens.
    pub fn circuit_of(&self, job: &Job) -> Option<&Circuit> {
        self.guarded(job).map(|agent| &agent.circuit)
    }

    /// How many agent versions and how many nodes have an open circuit.
    pub fn circuits_open(&self) -> (u64, u64) {
        (self.index.circuits.agents, self.index.circuits.nodes)
    }

    /// Ends the pauses of circuits that have passed.
    pub(crate) fn end_pauses(&mut self) {
        while let Some(key) = self.index.circuits.next_due(self.clock) {
            match key {
                CircuitKey::Node(id) => {
                    let Some(found) = self.nodes.get(&id) else { return };
                    let mut circuit = found.node.circuit;
                    circuit.end_pause();
                    self.set_node_circuit(&id, circuit);
                }
                CircuitKey::Agent(namespace, name, version) => {
                    let Some(agent) = self.agent(&namespace, &name, version) else { return };
                    let mut agent = (**agent).clone();
                    agent.circuit.end_pause();
                    self.store_agent(&Arc::new(agent));
                }
            }
        }
    }
}

impl Change<'_> {
    /// An attempt starts: it is the probe of the circuits that wait for one.
    pub(crate) fn probe_circuits(&mut self, job: &Job, lease: &Lease) {
        self.change_circuits(job, &lease.node, |circuit, _| circuit.start(lease.token));
    }

    /// The attempt of a job ended as its worker reports; none is a success.
    pub(crate) fn judge(&mut self, job: &Job, failure: Option<&Failure>) {
        let (Some(lease), Some(pin)) = (&job.lease, &job.pin) else { return };
        if self.state.level < level::CIRCUITS {
            return;
        }
        let failed = Failed { token: lease.token, package: pin.digest, at: self.at, now: self.clock };
        let of_agent = job.spec.as_ref().and_then(|spec| spec.failures_max).unwrap_or(u32::MAX);
        let of_node = match self.state.config.node_failures_max {
            0 => u32::MAX,
            most => most,
        };
        let (version, node) = (of_version(job, failure), self::of_node(job, failure));
        let node_id = lease.node.clone();
        self.change_circuits(job, &node_id, |circuit, is_node| {
            let (verdict, bound) = match is_node {
                true => (node, Bound { failures: of_node, several: true }),
                false => (version, Bound { failures: of_agent, several: false }),
            };
            match verdict {
                Verdict::Success => circuit.succeed(failed.token),
                Verdict::Failure => circuit.fail(failed, bound),
                Verdict::Nothing => {}
            }
        });
    }

    /// An attempt holds its lease no longer. If it was a probe and its end said nothing, another one follows.
    pub(crate) fn abandon_probe(&mut self, job: &Job, node: &NodeId, token: FencingToken) {
        let clock = self.clock;
        self.change_circuits(job, node, |circuit, _| circuit.abandon(token, clock));
    }

    /// Changes the circuits of a job's version and of a node. Events tell that one opened or closed.
    fn change_circuits(&mut self, job: &Job, node: &NodeId, change: impl Fn(&mut Circuit, bool)) {
        if let Some(agent) = self.state.guarded(job) {
            let (old, mut new) = (agent.circuit, agent.circuit);
            change(&mut new, false);
            if old != new {
                let agent = Arc::new(AgentVersion { circuit: new, ..(**agent).clone() });
                match old.open.is_some() == new.open.is_some() {
                    true => self.state.store_agent(&agent),
                    false => self.put_agent(agent),
                }
            }
        }
        let Some(found) = self.state.nodes.get(node) else { return };
        let (old, mut new) = (found.node.circuit, found.node.circuit);
        change(&mut new, true);
        if old != new {
            self.state.set_node_circuit(node, new);
            if old.open.is_some() != new.open.is_some() {
                self.emit_node(node);
            }
        }
    }
}

#[cfg(test)]
mod tests;
