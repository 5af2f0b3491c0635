//! How many jobs need workers: what autoscalers ask.

use atlas_desk::{Desk, Error};
use atlas_types::{AgentName, Demand, JobStatus, Namespace};

/// Which jobs count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkFilter {
    pub namespace: Namespace,
    /// Those of one agent; none for all.
    pub agent: Option<AgentName>,
    /// Those that need a GPU, or those that do not; none for all.
    pub gpu: Option<bool>,
}

impl WorkFilter {
    fn admits(&self, demand: &Demand) -> bool {
        self.gpu.is_none_or(|gpu| gpu == (demand.gpus > 0))
    }

    fn admits_agent(&self, agent: &AgentName) -> bool {
        self.agent.as_ref().is_none_or(|wanted| wanted == agent)
    }
}

/// The jobs that wait for a node, and those that have one, as this controller has applied them. Jobs that wait for a time, a person or
/// another job need no worker, and neither do those that runs carry.
pub async fn jobs_for_workers(desk: &Desk, filter: WorkFilter) -> Result<u64, Error> {
    let state = desk.handle.applied();
    // A long queue takes milliseconds to count.
    let counting = desk.env.spawn_blocking("count-work", move || {
        let classes = state
            .class_heads()
            .filter(|(class, _)| class.namespace == filter.namespace && filter.admits(&class.demand));
        let waiting: usize = match &filter.agent {
            None => classes.map(|(class, _)| state.waiting_count(class)).sum(),
            Some(agent) => {
                classes.map(|(class, _)| state.waiting_in(class).filter(|job| job.agent == *agent).count()).sum()
            }
        };
        let running = state.jobs(&filter.namespace, Some(JobStatus::Running), None).filter(|job| {
            let demanded = job.spec.as_ref().is_none_or(|spec| filter.admits(&spec.demand));
            job.lease.is_some() && demanded && filter.admits_agent(&job.agent)
        });
        u64::try_from(waiting + running.count()).unwrap_or(u64::MAX)
    });
    counting.join().await.map_err(|_| Error::Internal)
}
