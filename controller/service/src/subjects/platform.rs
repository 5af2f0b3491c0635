//! Nodes, the health of the cluster and figures of agents.

use std::collections::{BTreeMap, BTreeSet};

use atlas_platform::{NodeAction, WorkFilter};
use serde_json::Value;

use crate::{Caller, Consistency, Error, Service};

/// Nodes.
impl Service {
    /// All nodes by name.
    pub async fn nodes(
        &self,
        _: &Caller,
        offset: usize,
        limit: usize,
        consistency: Consistency,
    ) -> Result<Vec<Value>, Error> {
        atlas_platform::nodes(&self.shared, offset, limit, consistency).await
    }

    /// One node.
    pub async fn node(&self, _: &Caller, name: &str, consistency: Consistency) -> Result<Value, Error> {
        atlas_platform::node(&self.shared, name, consistency).await
    }

    /// Performs an operator's action.
    pub async fn act_on_node(&self, caller: &Caller, name: &str, action: NodeAction) -> Result<(), Error> {
        atlas_platform::act_on_node(&self.shared, caller, name, action).await
    }

    /// Sets labels of a node, which override those of its worker, and removes labels that an operator set.
    pub async fn label_node(
        &self,
        caller: &Caller,
        name: &str,
        set: BTreeMap<String, String>,
        remove: BTreeSet<String>,
    ) -> Result<(), Error> {
        atlas_platform::label_node(&self.shared, caller, name, set, remove).await
    }

    /// The jobs that wait for a node, and those that have one, as this controller has applied them.
    pub async fn jobs_for_workers(&self, filter: WorkFilter) -> Result<u64, Error> {
        atlas_platform::jobs_for_workers(&self.shared, filter).await
    }
}

/// The cluster.
impl Service {
    /// The health object (compatibility §15.1). `hardware` is present if an operator declared hardware.
    pub async fn health(&self, _: &Caller, consistency: Consistency) -> Result<Value, Error> {
        atlas_platform::health(&self.shared, consistency).await
    }

    /// True if this controller can serve requests, which is the case if a linearizable read succeeds.
    pub async fn ready(&self) -> bool {
        atlas_platform::ready(&self.shared).await
    }

    /// Statistics of all agents (compatibility §15.5).
    pub fn figures(&self, _: &Caller) -> Value {
        self.shared.stats.all(self.shared.env.clock.wall())
    }

    /// Statistics of one agent.
    pub fn figures_of(&self, _: &Caller, agent: &str) -> Result<Value, Error> {
        let found = self.shared.stats.of(agent, self.shared.env.clock.wall());
        found.ok_or_else(|| Error::NoFigures(agent.chars().take(255).collect()))
    }

    /// All instruments in the OpenMetrics text form.
    pub fn render_metrics(&self) -> String {
        atlas_platform::render_metrics(&self.shared)
    }
}
