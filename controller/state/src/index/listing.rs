//! Jobs by creation, for listings that show the newest first. `queue_seq` is assigned at creation and never reused.

use atlas_types::{Job, JobId, JobStatus, Namespace};

use crate::map::Map;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    all: Map<Namespace, Map<u64, JobId>>,
    by_status: Map<(JobStatus, Namespace), Map<u64, JobId>>,
}

impl Listing {
    pub(crate) fn change(&mut self, old: Option<&Job>, new: Option<&Job>) {
        match (old, new) {
            (None, Some(job)) => insert(&mut self.all, job.namespace.clone(), job),
            (Some(job), None) => remove(&mut self.all, &job.namespace, job),
            _ => {}
        }
        if old.map(|job| job.status) == new.map(|job| job.status) {
            return;
        }
        if let Some(job) = old {
            remove(&mut self.by_status, &(job.status, job.namespace.clone()), job);
        }
        if let Some(job) = new {
            insert(&mut self.by_status, (job.status, job.namespace.clone()), job);
        }
    }

    /// Jobs of a namespace that were created before `before`, newest first.
    pub(crate) fn newest(&self, namespace: &Namespace, before: u64) -> impl Iterator<Item = JobId> + '_ {
        let jobs = self.all.get(namespace);
        jobs.into_iter().flat_map(move |jobs| jobs.range(..before).rev().map(|(_, job)| *job))
    }

    /// The same for those of one status.
    pub(crate) fn newest_with(
        &self,
        namespace: &Namespace,
        status: JobStatus,
        before: u64,
    ) -> impl Iterator<Item = JobId> + '_ {
        let jobs = self.by_status.get(&(status, namespace.clone()));
        jobs.into_iter().flat_map(move |jobs| jobs.range(..before).rev().map(|(_, job)| *job))
    }
}

fn insert<K: Ord + Clone>(map: &mut Map<K, Map<u64, JobId>>, key: K, job: &Job) {
    map.entry(key).or_default().insert(job.queue_seq, job.id);
}

fn remove<K: Ord + Clone>(map: &mut Map<K, Map<u64, JobId>>, key: &K, job: &Job) {
    let Some(jobs) = map.get_mut(key) else { return };
    jobs.remove(&job.queue_seq);
    if jobs.is_empty() {
        map.remove(key);
    }
}
