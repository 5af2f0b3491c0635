//! Nodes and the cluster's health.

use std::collections::{BTreeMap, BTreeSet};

use atlas_desk::{Caller, Consistency, Desk, Error, requests};
use atlas_state::{NodeState, State};
use atlas_types::{
    Command, Cordon, DrainNode, Inventory, LabelNode, Micros, Node, NodeHealth, NodeId, RemoveNode, ResumeNode,
    Timestamp,
};
use serde_json::{Value, json};

use crate::{circuit, labels, observe};

/// An operator's action on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeAction {
    /// No new leases until it is empty.
    Drain {
        /// After this time its worker gives back the jobs that still run.
        deadline: Option<Micros>,
    },
    /// No new leases.
    Cordon,
    /// Allows new leases again and ends a drain.
    Uncordon,
    /// Closes its circuit.
    Resume,
    /// Removes the node, which must hold no lease.
    Remove,
}

const GB: f64 = (1_u64 << 30) as f64;

/// All nodes by name.
pub async fn nodes(desk: &Desk, offset: usize, limit: usize, consistency: Consistency) -> Result<Vec<Value>, Error> {
    let state = desk.state(consistency).await?;
    Ok(state.nodes().skip(offset).take(limit).map(|node| shown(node, &state)).collect())
}

/// One node.
pub async fn node(desk: &Desk, name: &str, consistency: Consistency) -> Result<Value, Error> {
    let state = desk.state(consistency).await?;
    let node = NodeId::new(name).ok().and_then(|id| state.node(&id).cloned());
    node.map(|node| shown(&node, &state)).ok_or_else(|| Error::UnknownNode(name.chars().take(253).collect()))
}

/// Performs an operator's action.
pub async fn act_on_node(desk: &Desk, caller: &Caller, name: &str, action: NodeAction) -> Result<(), Error> {
    let node = named(name)?;
    let command = match action {
        NodeAction::Drain { deadline } => Command::DrainNode(DrainNode { node, deadline }),
        NodeAction::Cordon => Command::Cordon(Cordon { node, cordoned: true }),
        NodeAction::Uncordon => Command::Cordon(Cordon { node, cordoned: false }),
        NodeAction::Resume => Command::ResumeNode(ResumeNode { node }),
        NodeAction::Remove => Command::RemoveNode(RemoveNode { node }),
    };
    desk.propose(requests::of(caller, command)).await.map(|_| ())
}

/// Sets labels of a node, which override those of its worker, and removes labels that an operator set.
pub async fn label_node(
    desk: &Desk,
    caller: &Caller,
    name: &str,
    set: BTreeMap<String, String>,
    remove: BTreeSet<String>,
) -> Result<(), Error> {
    let (node, labels) = (named(name)?, labels::change(set, remove)?);
    desk.propose(requests::of(caller, Command::LabelNode(LabelNode { node, labels }))).await.map(|_| ())
}

/// The health object (compatibility §15.1). `hardware` is present if an operator declared hardware.
pub async fn health(desk: &Desk, consistency: Consistency) -> Result<Value, Error> {
    let state = desk.state(consistency).await?;
    let mut health = json!({
        "status": "ok",
        "pending": state.pending(),
        "running": state.running(),
        "capacity_remaining": state.config().jobs_active_max.saturating_sub(state.active()),
    });
    let declared: Vec<_> = state.nodes().filter(|node| node.node.inventory.declared).collect();
    if let (false, Some(members)) = (declared.is_empty(), health.as_object_mut()) {
        let allocations = declared.iter().flat_map(|node| state.leases_of(&node.node.id)).map(|lease| {
            json!({
                "slot_id": lease.job.to_string(),
                "gpu_devices": lease.allocation.gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>(),
                "memory_gb": whole(lease.allocation.memory_bytes as f64 / GB),
                "cpu_cores": lease.allocation.cores,
            })
        });
        let allocations: Vec<Value> = allocations.collect();
        members.insert("hardware".to_owned(), hardware(&declared, &allocations));
    }
    Ok(health)
}

/// True if this controller can serve requests, which is the case if a linearizable read succeeds.
pub async fn ready(desk: &Desk) -> bool {
    desk.read().await.is_ok()
}

/// All instruments in the OpenMetrics text form.
pub fn render_metrics(desk: &Desk) -> String {
    observe::gauges(&desk.metrics, &desk.handle.applied());
    desk.metrics.render()
}

/// Parses the name of a node. Text that is not a valid name counts as an unknown node.
fn named(name: &str) -> Result<NodeId, Error> {
    NodeId::new(name).map_err(|_| Error::UnknownNode(name.chars().take(253).collect()))
}

/// The status object of compatibility §8.3, over all nodes whose hardware was declared.
fn hardware(nodes: &[&std::sync::Arc<NodeState>], allocations: &[Value]) -> Value {
    let inventories = || nodes.iter().map(|node| &*node.node.inventory);
    let gpus = || inventories().flat_map(|inventory| &inventory.gpus);
    let free_gpus: usize = nodes.iter().map(|node| node.free.gpus.iter().filter(|gpu| gpu.holders == 0).count()).sum();
    let vram: Vec<Value> =
        gpus().filter(|gpu| gpu.memory_bytes > 0).map(|gpu| whole(gpu.memory_bytes as f64 / GB)).collect();
    json!({
        "total_gpus": gpus().count(),
        "free_gpus": free_gpus,
        "gpu_vram_gb": vram,
        "total_memory_gb": whole(inventories().map(|inventory| inventory.memory_bytes as f64 / GB).sum()),
        "free_memory_gb": whole(nodes.iter().map(|node| memory_free(node) as f64 / GB).sum()),
        "total_cpu_cores": inventories().map(|inventory| u64::from(inventory.cores)).sum::<u64>(),
        "free_cpu_cores": nodes.iter().map(|node| u64::from(cores_free(node))).sum::<u64>(),
        "architecture": architecture(inventories()),
        "allocations": allocations,
    })
}

/// Cores without a lease; 0 if they are not tracked.
fn cores_free(node: &NodeState) -> u32 {
    node.free.cores.min(node.node.inventory.cores)
}

/// Memory without a lease; 0 if it is not tracked.
fn memory_free(node: &NodeState) -> u64 {
    node.free.memory_bytes.min(node.node.inventory.memory_bytes)
}

/// The one architecture of all nodes, or `any`.
fn architecture<'a>(mut inventories: impl Iterator<Item = &'a Inventory>) -> &'static str {
    let first = inventories.next().and_then(|inventory| inventory.architecture);
    match first {
        Some(architecture) if inventories.all(|inventory| inventory.architecture == first) => architecture.as_str(),
        _ => "any",
    }
}

/// A number without a fraction as an integer, as in Atlas for Python.
fn whole(number: f64) -> Value {
    if number.fract() == 0.0 && number.abs() < 9e15 { json!(number as i64) } else { json!(number) }
}

/// The latest worker that was refused because it asked for the node's name; null if there is none.
pub fn rival(node: &Node) -> Value {
    node.rival.as_deref().map_or(
        Value::Null,
        |rival| json!({ "address": &*rival.address, "holder": &*rival.holder, "at": rival.at.as_unix_seconds() }),
    )
}

fn shown(node: &NodeState, state: &State) -> Value {
    let Node { id, epoch, inventory, health, cordoned, draining, drain_until, warm, registered_at, .. } = &*node.node;
    let free_of = |index: u32| node.free.gpus.iter().find(|gpu| gpu.index == index).map_or(0, |gpu| gpu.free_bytes);
    // Cluster time has no dates. The date is derived from the last entry, which has both times.
    let drain_ends_at = drain_until.map(|until| {
        let (ahead, behind) = (until.since(state.clock()).0, state.clock().since(until).0);
        Timestamp(state.at().0.saturating_add_unsigned(ahead).saturating_sub_unsigned(behind))
    });
    let gpus = inventory.gpus.iter().map(|gpu| {
        json!({
            "index": gpu.index,
            "uuid": gpu.uuid,
            "vendor": gpu.vendor,
            "model": gpu.model,
            "memory_bytes": gpu.memory_bytes,
            "free_bytes": free_of(gpu.index),
            "mig_profile": gpu.mig_profile.as_deref().unwrap_or_default(),
            "healthy": gpu.healthy,
        })
    });
    json!({
        "id": id.as_str(),
        "epoch": epoch.0,
        "health": match health { NodeHealth::Ready => "ready", NodeHealth::Down => "down" },
        "cordoned": cordoned,
        "draining": draining,
        "drain_ends_at": drain_ends_at.map(Timestamp::as_unix_seconds),
        "cores": inventory.cores,
        "cores_free": cores_free(node),
        "memory_bytes": inventory.memory_bytes,
        "memory_bytes_free": memory_free(node),
        "arch": inventory.architecture.map_or("any", |architecture| architecture.as_str()),
        "gpus": gpus.collect::<Vec<_>>(),
        "devices": inventory.devices,
        "hardware_checks": !inventory.unchecked,
        "places": inventory.places,
        "places_free": node.free.processes.free,
        "llm_places": inventory.llm_places,
        "llm_places_free": node.free.llm.free,
        "running": node.leases().len(),
        "warm": warm.values().sum::<u32>(),
        "labels": node.node.labels(),
        "operator_labels": node.node.operator_labels,
        "registered_at": registered_at.as_unix_seconds(),
        "circuit": circuit::shown(&node.node.circuit),
        "rival": rival(&node.node),
    })
}
