//! Parents and children, and which children are awaited.

use atlas_types::{Job, JobId};

use crate::map::{Map, Set};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Spawns {
    /// The children of a job, ended ones and retries included, by their place in the queue.
    children: Map<JobId, Set<(u64, JobId)>>,
    /// How many unfinished children a job waits for; jobs that wait for none are absent.
    awaited: Map<JobId, u32>,
}

impl Spawns {
    pub(crate) fn change(&mut self, old: Option<&Job>, new: Option<&Job>) {
        let key = |job: &Job| job.spawned.map(|spawned| (spawned.by, (job.queue_seq, job.id)));
        let (was, is) = (old.and_then(key), new.and_then(key));
        if was.is_none() && is.is_none() {
            return;
        }
        if was != is {
            if let Some((parent, child)) = was
                && let Some(children) = self.children.get_mut(&parent)
            {
                children.remove(&child);
                if children.is_empty() {
                    self.children.remove(&parent);
                }
            }
            if let Some((parent, child)) = is {
                self.children.entry(parent).or_default().insert(child);
            }
        }
        let (was, is) = (old.and_then(Job::awaited_by), new.and_then(Job::awaited_by));
        if was != is {
            if let Some(count) = was.and_then(|parent| self.awaited.get_mut(&parent)) {
                *count -= 1;
            }
            if let Some(parent) = was.filter(|parent| self.awaited.get(parent) == Some(&0)) {
                self.awaited.remove(&parent);
            }
            if let Some(parent) = is {
                *self.awaited.entry(parent).or_default() += 1;
            }
        }
    }

    /// The children of a job, the oldest first.
    pub(crate) fn children(&self, parent: JobId) -> impl Iterator<Item = JobId> + '_ {
        self.children.get(&parent).into_iter().flat_map(|children| children.iter().map(|(_, child)| *child))
    }

    /// How many unfinished children a job waits for.
    pub(crate) fn awaited(&self, parent: JobId) -> u32 {
        self.awaited.get(&parent).copied().unwrap_or(0)
    }

    /// The jobs that wait for children.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = JobId> + '_ {
        self.awaited.keys().copied()
    }
}
