//! Whether a node is of the sort that a demand asks for. Amounts are another question: [`Free::fit`](crate::Free::fit).

use atlas_types::{Demand, Inventory, Node};

/// Whether a node is of the right sort: architecture, devices, labels, affinity.
pub fn suits(demand: &Demand, node: &Node) -> bool {
    has_architecture(demand, &node.inventory)
        && has_devices(demand, &node.inventory)
        && demand.node.as_ref().is_none_or(|wanted| *wanted == node.id)
        && has_labels(demand, node)
        && has_python(demand, node)
        && has_nodejs(demand, node)
}

/// Whether the processor family of a node will do.
pub fn has_architecture(demand: &Demand, inventory: &Inventory) -> bool {
    match (demand.architecture, inventory.architecture) {
        (Some(wanted), Some(found)) => wanted == found || inventory.unchecked,
        _ => true,
    }
}

/// Whether a node has the device files.
pub fn has_devices(demand: &Demand, inventory: &Inventory) -> bool {
    inventory.unchecked || demand.devices.iter().all(|device| inventory.devices.contains(device))
}

/// Whether a node has the labels with these values, whoever gave it them.
pub fn has_labels(demand: &Demand, node: &Node) -> bool {
    demand.labels.iter().all(|(key, value)| node.label(key) == Some(value.as_str()))
}

/// Whether a node has a Python interpreter, if that is wanted. A node of which nothing is known has one.
pub fn has_python(demand: &Demand, node: &Node) -> bool {
    !demand.python || node.label(Demand::PYTHON) != Some(Demand::NONE)
}

/// Whether a node has Node.js, if that is wanted. A node of which nothing is known has it.
pub fn has_nodejs(demand: &Demand, node: &Node) -> bool {
    !demand.nodejs || node.label(Demand::NODE) != Some(Demand::NONE)
}
