//! Nodes.

use atlas_types::{BootId, Command, Inventory, Node, RegisterNode, Timestamp};

/// A node with no room for jobs.
pub fn node(name: &str) -> NodeBuilder {
    let node = name.parse().expect("the name of a node");
    NodeBuilder(RegisterNode { node, boot_id: BootId(1), inventory: Inventory::default() })
}

/// A node that is about to be registered.
#[derive(Debug, Clone)]
pub struct NodeBuilder(RegisterNode);

impl NodeBuilder {
    /// Room for so many processes.
    #[must_use]
    pub fn with_places(mut self, places: u32) -> Self {
        self.0.inventory.places = places;
        self
    }

    #[must_use]
    pub fn with_inventory(mut self, inventory: Inventory) -> Self {
        self.0.inventory = inventory;
        self
    }

    pub fn registered(self) -> Command {
        Command::RegisterNode(self.0)
    }

    /// As the state has it.
    pub fn ready(self) -> Node {
        let RegisterNode { node, boot_id, inventory } = self.0;
        Node::new(node, boot_id, inventory, Timestamp(1))
    }
}
