//! Hardware: fitting, allocating, freeing, and descriptions.

use std::collections::BTreeMap;

use atlas_allocation::{Free, suits};
use atlas_inventory::{DeclaredHardware, architecture};
use atlas_types::{Allocation, BootId, Demand, Inventory, Node, NodeId, Timestamp};
use serde_json::{Value, json};

use crate::matcher::Captures;
use crate::result::{Judged, Stop, compare};
use crate::row::{Row, items, text};

const GB: u64 = 1 << 30;

/// Operations on one inventory, in order.
pub(super) fn sequence(row: &Row) -> Judged {
    let name = NodeId::new("local").map_err(|error| Stop::system("name a node", error))?;
    let node = Node::new(name, BootId(1), inventory(&row.input["inventory"])?, Timestamp::NOT_YET);
    let mut free = Free::of(&node.inventory);
    let mut slots: BTreeMap<&str, Allocation> = BTreeMap::new();
    let mut results = Vec::new();
    for operation in items(&row.input, "ops") {
        let slot = text(operation, "slot");
        results.push(match text(operation, "op") {
            "can" => json!(fits(&free, &node, &operation["spec"])?.is_some()),
            "allocate" => match fits(&free, &node, &operation["spec"])? {
                Some(allocation) => {
                    free.hold(&allocation);
                    let shown = shown(&allocation);
                    // A slot has one allocation, so the previous one is freed.
                    if let Some(before) = slots.insert(slot, allocation) {
                        free.give(&before);
                    }
                    shown
                }
                None => json!("unavailable"),
            },
            "release" => {
                if let Some(allocation) = slots.remove(slot) {
                    free.give(&allocation);
                }
                Value::Null
            }
            other => return Err(Stop::skip(format!("the operation \"{other}\" on hardware"))),
        });
    }
    let answer = json!({"results": results, "status": status(&node.inventory, &free)});
    compare(&row.expect, &answer, &Captures::new())
}

/// The text for a demand.
pub(super) fn describe(row: &Row) -> Judged {
    let answer = json!({"text": atlas_scheduler::describe(&demand(&row.input["spec"])?)});
    compare(&row.expect, &answer, &Captures::new())
}

fn fits(free: &Free, node: &Node, spec: &Value) -> Result<Option<Allocation>, Stop> {
    let demand = demand(spec)?;
    Ok(if suits(&demand, node) { free.hardware_for(&node.inventory, &demand) } else { None })
}

/// The demand of a contract with this hardware.
fn demand(spec: &Value) -> Result<Demand, Stop> {
    let contract = json!({"agent": {"name": "a", "version": "1.0.0", "hardware": spec}}).to_string();
    let contract = atlas_contract::parse(contract.as_bytes());
    Ok(contract.map_err(|error| Stop::fail(format!("the contract is refused: {error}")))?.hardware.demand())
}

/// The inventory that flags with these amounts declare. Rows have no concurrency permits.
fn inventory(given: &Value) -> Result<Inventory, Stop> {
    let amount = |member| given.get(member).and_then(Value::as_u64).unwrap_or(0);
    let small = |member| u32::try_from(amount(member)).unwrap_or(u32::MAX);
    let architecture = match text(given, "architecture") {
        "" | "any" => None,
        word => Some(architecture(word).ok_or_else(|| Stop::skip(format!("the architecture \"{word}\"")))?),
    };
    let declared = DeclaredHardware {
        gpus: Some(small("total_gpus")),
        gpu_vram_gb: items(given, "gpu_vram_gb").filter_map(Value::as_u64).collect(),
        memory_gb: Some(amount("total_memory_gb")),
        cores: Some(small("total_cpu_cores")),
        architecture,
        devices: items(given, "available_devices").filter_map(Value::as_str).map(str::to_owned).collect(),
    };
    let inventory = declared.inventory().ok_or_else(|| Stop::fail("the flags declare no inventory"))?;
    Ok(Inventory { places: u32::MAX, ..inventory })
}

fn shown(allocation: &Allocation) -> Value {
    json!({
        "gpu_devices": allocation.gpus.iter().map(|gpu| gpu.index).collect::<Vec<_>>(),
        "memory_gb": allocation.memory_bytes / GB,
        "cpu_cores": allocation.cores,
    })
}

fn status(inventory: &Inventory, free: &Free) -> Value {
    let vram = inventory.gpus.iter().map(|gpu| gpu.memory_bytes / GB).filter(|&gb| gb > 0);
    // For resources that are not tracked, the total is reported as free.
    let (memory, cores) = (inventory.memory_bytes.min(free.memory_bytes), inventory.cores.min(free.cores));
    json!({
        "total_gpus": inventory.gpus.len(),
        "free_gpus": free.gpus.iter().filter(|gpu| gpu.holders == 0).count(),
        "gpu_vram_gb": vram.collect::<Vec<_>>(),
        "total_memory_gb": inventory.memory_bytes / GB,
        "free_memory_gb": memory / GB,
        "total_cpu_cores": inventory.cores,
        "free_cpu_cores": cores,
        "architecture": inventory.architecture.map_or("any", |architecture| architecture.as_str()),
    })
}
