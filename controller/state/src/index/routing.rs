//! Jobs that wait for the decision of an orchestrator, by namespace and in the order of the queue.

use atlas_types::{Job, JobId, JobStatus, Namespace, Reason, Turn};

use crate::map::Map;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Undecided {
    /// Namespaces without any are absent.
    jobs: Map<Namespace, Map<Turn, JobId>>,
}

impl Undecided {
    pub(crate) fn change(&mut self, old: Option<&Job>, new: Option<&Job>) {
        let (was, is) = (old.filter(|job| waits(job)), new.filter(|job| waits(job)));
        if was.is_some() == is.is_some() {
            return;
        }
        if let Some(job) = was
            && let Some(jobs) = self.jobs.get_mut(&job.namespace)
        {
            jobs.remove(&Turn::of(job, None));
            if jobs.is_empty() {
                self.jobs.remove(&job.namespace);
            }
        }
        if let Some(job) = is {
            self.jobs.entry(job.namespace.clone()).or_default().insert(Turn::of(job, None), job.id);
        }
    }

    /// The namespaces with such jobs.
    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.jobs.keys()
    }

    /// The jobs of a namespace, in their order.
    pub(crate) fn of(&self, namespace: &Namespace) -> impl Iterator<Item = JobId> + '_ {
        self.jobs.get(namespace).into_iter().flat_map(|jobs| jobs.values().copied())
    }
}

fn waits(job: &Job) -> bool {
    job.status == JobStatus::Pending && matches!(job.reason, Reason::Routing { .. })
}
