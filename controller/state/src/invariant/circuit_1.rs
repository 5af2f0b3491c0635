//! CIRCUIT-1: an open circuit counts failures, and the attempt that probes it holds a lease, of that node if it is a node's.

use atlas_types::{Circuit, FencingToken, NodeId, Probe};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    let live = |token: FencingToken, on: Option<&NodeId>| {
        let mut nodes = state.nodes.values().filter(|node| on.is_none_or(|on| node.node.id == *on));
        nodes.any(|node| node.leases.contains_key(&token))
    };
    let check = |circuit: &Circuit, on: Option<&NodeId>, name: String| {
        let Some(open) = circuit.open else { return Ok(()) };
        ensure(circuit.failures > 0, || format!("the circuit of {name} is open without a failure"))?;
        match open.probe {
            Probe::Runs(token) => ensure(live(token, on), || format!("{token:?} probes {name} without a lease")),
            Probe::At(_) | Probe::Ready => Ok(()),
        }
    };
    for agent in state.agents.values().flat_map(|agents| agents.values()) {
        check(&agent.circuit, None, format!("{} {}", agent.name, agent.version))?;
    }
    state.nodes.values().try_for_each(|node| check(&node.node.circuit, Some(&node.node.id), node.node.id.to_string()))
}
