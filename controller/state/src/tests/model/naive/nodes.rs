//! Nodes of the reference model: their commands, and what fits on them.

use std::collections::BTreeMap;

use atlas_types::{BootId, Command, Demand, Inventory, NodeId};

use super::{Holds, Naive};

#[derive(Debug)]
pub(super) struct Node {
    pub(super) epoch: u64,
    pub(super) boot: BootId,
    pub(super) inventory: Inventory,
    /// Those of an operator.
    pub(super) labels: BTreeMap<String, String>,
    pub(super) up: bool,
    pub(super) cordoned: bool,
    pub(super) draining: bool,
}

impl Naive {
    pub(super) fn apply_to_node(&mut self, command: &Command) -> bool {
        match command {
            Command::RegisterNode(command) => {
                let old = self.nodes.get_mut(&command.node);
                let (epoch, cordoned, labels) = match old {
                    Some(old) if old.boot == command.boot_id => {
                        (old.up, old.inventory) = (true, command.inventory.clone());
                        return true;
                    }
                    Some(old) => (old.epoch + 1, old.cordoned, old.labels.clone()),
                    None => (1, false, BTreeMap::new()),
                };
                self.lose_all(&command.node);
                let (boot, inventory) = (command.boot_id, command.inventory.clone());
                let node = Node { epoch, boot, inventory, labels, up: true, cordoned, draining: false };
                self.nodes.insert(command.node.clone(), node);
                true
            }
            Command::LoseNode(command) => {
                let node = self.nodes.get_mut(&command.node).filter(|node| node.up && node.epoch == command.epoch.0);
                let Some(node) = node else { return false };
                node.up = false;
                self.lose_all(&command.node);
                true
            }
            Command::Cordon(command) => {
                let Some(node) = self.nodes.get_mut(&command.node) else { return false };
                node.cordoned = command.cordoned;
                node.draining &= command.cordoned;
                true
            }
            Command::DrainNode(command) => self.nodes.get_mut(&command.node).map(|node| node.draining = true).is_some(),
            Command::LabelNode(command) => {
                let Some(node) = self.nodes.get_mut(&command.node) else { return false };
                let told = &node.inventory.labels;
                let workers = |key: &String| told.contains_key(key) && !node.labels.contains_key(key);
                if command.labels.iter().any(|(key, value)| value.is_none() && workers(key)) {
                    return false;
                }
                for (key, value) in command.labels.clone() {
                    node.labels.remove(&key);
                    node.labels.extend(value.map(|value| (key, value)));
                }
                true
            }
            Command::RemoveNode(command) => {
                let free =
                    self.jobs.values().all(|job| job.lease.as_ref().is_none_or(|lease| lease.node != command.node));
                free && self.nodes.remove(&command.node).is_some()
            }
            Command::WarmChanged(command) => {
                self.nodes.get(&command.node).is_some_and(|node| node.up && node.epoch == command.epoch.0)
            }
            other => unreachable!("no step makes {other:?}"),
        }
    }

    /// What a demand would hold on a node, by adding up what all jobs hold there.
    pub(super) fn room(&self, id: &NodeId, node: &Node, demand: &Demand) -> Option<Holds> {
        let held: Vec<_> =
            self.jobs.values().filter_map(|job| job.lease.as_ref()).filter(|lease| lease.node == *id).collect();
        let inventory = &node.inventory;
        let mut labels = inventory.labels.clone();
        labels.extend(node.labels.clone());
        let cores: u32 = held.iter().map(|lease| lease.holds.1).sum();
        let memory: u64 = held.iter().map(|lease| lease.holds.2).sum();
        let shares = |index: u32| held.iter().flat_map(|lease| &lease.holds.0).filter(move |share| share.0 == index);
        let vram = |index: u32| shares(index).map(|share| share.1).sum::<u64>();
        let short = demand.labels.iter().any(|(key, value)| labels.get(key) != Some(value))
            || held.iter().filter(|lease| lease.holds.3 == demand.place).count()
                >= inventory.places_of(demand.place) as usize
            || inventory.cores > 0 && demand.cores > 0 && cores + demand.cores > inventory.cores
            || inventory.memory_bytes > 0 && memory + demand.memory_bytes > inventory.memory_bytes;
        let gpus = inventory.gpus.iter().filter(|gpu| vram(gpu.index) + demand.vram_bytes <= gpu.memory_bytes);
        let gpus: Vec<_> = gpus.map(|gpu| (gpu.index, demand.vram_bytes)).take(demand.gpus as usize).collect();
        (!short && gpus.len() == demand.gpus as usize).then_some((
            gpus,
            demand.cores,
            demand.memory_bytes,
            demand.place,
        ))
    }

    fn lose_all(&mut self, node: &NodeId) {
        let held = self.jobs.iter().filter_map(|(id, job)| Some((job.lease.as_ref()?, *id)));
        let mut held: Vec<_> =
            held.filter(|(lease, _)| lease.node == *node).map(|(lease, id)| (lease.token, id)).collect();
        held.sort_unstable();
        held.into_iter().for_each(|(_, id)| self.lose(id));
    }
}
