//! The jobs of a namespace by status and creation, for listings that show the newest first: their places in the queue, which are
//! assigned at creation and never reused.

use atlas_types::{Job, JobStatus};

use crate::map::Set;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// One for each status, in the order of the type.
    by_status: [Set<u64>; 5],
}

impl Listing {
    pub(crate) fn change(&mut self, old: Option<&Job>, new: Option<&Job>) {
        if old.map(|job| job.status) == new.map(|job| job.status) {
            return;
        }
        if let Some(job) = old {
            self.by_status[job.status as usize].remove(&job.queue_seq);
        }
        if let Some(job) = new {
            self.by_status[job.status as usize].insert(job.queue_seq);
        }
    }

    /// Jobs that were created before `before`, newest first.
    pub(crate) fn newest(&self, before: u64) -> impl Iterator<Item = u64> + '_ {
        let mut rest = self.by_status.each_ref().map(|places| places.range(..before).rev().copied());
        let mut next = rest.each_mut().map(Iterator::next);
        std::iter::from_fn(move || {
            let (newest, place) = next.iter().copied().enumerate().max_by_key(|(_, place)| *place)?;
            next[newest] = rest[newest].next();
            place
        })
    }

    /// The same for those of one status.
    pub(crate) fn newest_with(&self, status: JobStatus, before: u64) -> impl Iterator<Item = u64> + '_ {
        self.by_status[status as usize].range(..before).rev().copied()
    }
}
