//! The jobs, by their place in the queue, and found by id.
//!
//! Ids are random, places are assigned in order. Jobs of one entry are therefore neighbours here, so that a change
//! copies few tree nodes; the map from random ids holds only numbers.

use std::ops::RangeInclusive;
use std::sync::Arc;

use atlas_types::{Job, JobId};

use crate::map::Map;

#[derive(Debug, Clone, Default)]
pub(crate) struct Jobs {
    by_place: Map<u64, Arc<Job>>,
    places: Map<JobId, u64>,
}

impl Jobs {
    /// Jobs that were read, by id and by place; none if two have one id or one place.
    pub(crate) fn of(by_id: &[(JobId, u64)], by_place: &[Arc<Job>]) -> Option<Self> {
        let mut all = Self::default();
        let known = by_id.iter().any(|(id, place)| all.places.insert(*id, *place).is_some());
        let taken = by_place.iter().any(|job| all.by_place.insert(job.queue_seq, Arc::clone(job)).is_some());
        (!known && !taken).then_some(all)
    }

    pub(crate) fn get(&self, id: JobId) -> Option<&Arc<Job>> {
        self.by_place.get(self.places.get(&id)?)
    }

    /// The job at a place in the queue.
    pub(crate) fn at(&self, place: u64) -> Option<&Arc<Job>> {
        self.by_place.get(&place)
    }

    pub(crate) fn contains(&self, id: JobId) -> bool {
        self.places.contains_key(&id)
    }

    pub(crate) fn len(&self) -> u64 {
        self.places.len() as u64
    }

    /// Stores a job and returns what was there under its id. A job keeps its place for life.
    pub(crate) fn insert(&mut self, job: Arc<Job>) -> Option<Arc<Job>> {
        let (id, place) = (job.id, job.queue_seq);
        let old = self.by_place.insert(place, job);
        if old.is_none() {
            self.places.insert(id, place);
        }
        old
    }

    pub(crate) fn remove(&mut self, id: JobId) -> Option<Arc<Job>> {
        let place = self.places.remove(&id)?;
        self.by_place.remove(&place)
    }

    /// All jobs, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.by_place.values()
    }

    /// All jobs by id.
    pub(crate) fn iter_by_id(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.places.values().filter_map(|place| self.by_place.get(place))
    }

    /// The jobs whose ids lie in a range, by id.
    pub(crate) fn range(&self, ids: RangeInclusive<JobId>) -> impl Iterator<Item = &Arc<Job>> {
        self.places.range(ids).filter_map(|(_, place)| self.by_place.get(place))
    }

    /// True if each job is found by its own id and place alone.
    pub(crate) fn is_consistent(&self) -> bool {
        let found =
            |(place, job): (&u64, &Arc<Job>)| job.queue_seq == *place && self.places.get(&job.id) == Some(place);
        self.by_place.len() == self.places.len() && self.by_place.iter().all(found)
    }
}
