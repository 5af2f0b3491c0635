//! Nodes, the health of the cluster and figures of agents.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use atlas_limiter::{Grant, Session};
use atlas_platform::{ModelLimits, NodeAction, WorkFilter};
use atlas_types::JobId;
use serde_json::Value;

use crate::{Caller, Consistency, Error, LeadershipLost, Service};

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

/// Models.
impl Service {
    /// The tries of calls of limited models.
    pub fn model_limits(&self) -> &ModelLimits {
        &self.shared.model_limits
    }

    /// The tries that begin now, and when to look again if nothing changes before. `room` takes the place of a grant on a stream, if there is one.
    pub fn grant_models(&self, room: &mut dyn FnMut(&Session) -> bool) -> (Vec<Grant>, Option<Duration>) {
        atlas_platform::grant_models(&self.shared, &self.shared.model_limits, room)
    }

    /// Which limit of a model an attempt of a job waits for, as the leader knows.
    pub fn model_wait_here(&self, job: JobId) -> Result<Option<String>, LeadershipLost> {
        atlas_platform::model_wait_here(&self.shared, &self.shared.model_limits, job)
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
