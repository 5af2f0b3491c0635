//! What the jobs of each namespace come to: their lists, and counts of them. It is one record for each namespace, so that an
//! entry copies it once, whatever its jobs change.

use std::sync::Arc;

use atlas_allocation::ConcurrencyPermits;
use atlas_types::{AgentName, Job, JobStatus, Namespace, Share, Version};

use super::listing::Listing;
use crate::map::Map;

/// The totals by namespace; namespaces of which nothing is known are absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    of: Map<Namespace, Arc<Total>>,
}

/// Those of one namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Total {
    pub(crate) listing: Listing,
    /// Running jobs, carried ones left out.
    pub(crate) running: ConcurrencyPermits,
    /// The same by agent name; agents without one are absent.
    pub(crate) running_of: Map<AgentName, ConcurrencyPermits>,
    /// How many jobs that have not ended each agent version has; those without any are absent.
    pub(crate) active_of: Map<(AgentName, Version), u64>,
    /// Waiting jobs.
    pub(crate) pending: u64,
    /// The bytes of the inputs of jobs that have not ended.
    pub(crate) input_bytes: u64,
    /// What it has had so far for its weight; none while it has no waiting jobs.
    pub(crate) share: Option<Share>,
    /// Noted progress.
    pub(crate) progress: Option<u64>,
}

impl Totals {
    pub(crate) fn get(&self, namespace: &Namespace) -> Option<&Total> {
        self.of.get(namespace).map(|total| &**total)
    }

    /// The namespaces of which something is known.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.of.keys()
    }

    /// Changes the totals of a namespace.
    pub(crate) fn change<T>(&mut self, namespace: &Namespace, change: impl FnOnce(&mut Total) -> T) -> T {
        let Some(total) = self.of.get_mut(namespace) else {
            let mut total = Total::default();
            let changed = change(&mut total);
            if total != Total::default() {
                self.of.insert(namespace.clone(), Arc::new(total));
            }
            return changed;
        };
        let total = Arc::make_mut(total);
        let changed = change(total);
        if *total == Total::default() {
            self.of.remove(namespace);
        }
        changed
    }
}

impl Total {
    /// One job more runs, or one less. `waits` tells whether it waits for children.
    pub(super) fn count_running(&mut self, job: &Job, more: bool, waits: bool) {
        count_running(&mut self.running, job, more, waits);
        let permits = self.running_of.entry(job.agent.clone()).or_default();
        count_running(permits, job, more, waits);
        if *permits == ConcurrencyPermits::default() {
            self.running_of.remove(&job.agent);
        }
    }

    /// A job that has not ended is there, or gone: waits, runs, has ended or takes another version.
    pub(super) fn count_active(&mut self, job: &Job, more: bool) {
        let Some(pin) = &job.pin else { return };
        let key = (job.agent.clone(), pin.version);
        let count = self.active_of.entry(key.clone()).or_default();
        if more {
            *count += 1;
        } else {
            *count -= 1;
        }
        if *count == 0 {
            self.active_of.remove(&key);
        }
    }

    /// The input of a job that has not ended, and its place among those that wait.
    pub(super) fn count_waiting(&mut self, job: &Job, more: bool) {
        if job.status.is_terminal() {
            return;
        }
        let (one, bytes) = (u64::from(job.status == JobStatus::Pending), job.input.bytes());
        if more {
            (self.pending, self.input_bytes) = (self.pending + one, self.input_bytes + bytes);
        } else {
            (self.pending, self.input_bytes) = (self.pending - one, self.input_bytes - bytes);
        }
    }
}

/// Counts a running job.
pub(super) fn count_running(permits: &mut ConcurrencyPermits, job: &Job, more: bool, waits: bool) {
    if more { permits.add(job.depth()) } else { permits.remove(job.depth(), waits) }
}
