//! Jobs that may be granted, by class: within a class one job is as hard to place as another, so a planner that finds
//! no capacity for the head of a class skips the whole class.

use std::cmp::Reverse;
use std::sync::Arc;

use atlas_types::{Demand, Job, JobId, JobStatus, Limit, Namespace, Reason};

use crate::map::Map;

/// What decides whether and where a job can be placed now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    pub namespace: Namespace,
    /// What its jobs ask of a node.
    pub demand: Demand,
    /// The limits of their agent that hold for its jobs.
    pub limits: Vec<Limit>,
    /// How deep they were spawned: the deeper, the more jobs lend them a place.
    pub depth: u32,
    /// They have parked: they wait even if no node could ever run them.
    pub parked: bool,
}

impl Class {
    /// The class of a job; none for one that can never run, because its agent was unknown.
    pub fn of(job: &Job) -> Option<Self> {
        let demand = job.spec.as_ref()?.demand.clone();
        let (namespace, limits) = (job.namespace.clone(), crate::limits::of_agent(job));
        Some(Self { namespace, demand, limits, depth: job.depth(), parked: job.has_parked() })
    }
}

/// The order of the queue: higher priority first, then age.
pub(crate) type Turn = (Reverse<i64>, u64);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    classes: Map<Arc<Class>, Map<Turn, JobId>>,
    /// The first job's turn of each class.
    heads: Map<Turn, Arc<Class>>,
}

impl Waiting {
    pub(crate) fn change(&mut self, old: Option<&Job>, new: Option<&Job>) {
        let (was, is) = (old.filter(|job| waits(job)), new.filter(|job| waits(job)));
        match (was, is) {
            (Some(old), Some(new)) if turn(old) == turn(new) => {}
            (was, is) => {
                if let Some(job) = was {
                    self.remove(job);
                }
                if let Some(job) = is {
                    self.insert(job);
                }
            }
        }
    }

    /// Each class with its first job, the first of all first.
    pub(crate) fn heads(&self) -> impl Iterator<Item = (&Arc<Class>, JobId)> {
        self.heads.iter().filter_map(|(turn, class)| Some((class, *self.classes.get(class)?.get(turn)?)))
    }

    /// The jobs of a class in their order.
    pub(crate) fn of(&self, class: &Class) -> impl Iterator<Item = JobId> + '_ {
        self.classes.get(class).into_iter().flat_map(|queue| queue.values().copied())
    }

    pub(crate) fn len_of(&self, class: &Class) -> usize {
        self.classes.get(class).map_or(0, Map::len)
    }

    fn insert(&mut self, job: &Job) {
        let Some(class) = Class::of(job) else { return };
        let turn = turn(job);
        let Some((known, _)) = self.classes.get_key_value(&class) else {
            let class = Arc::new(class);
            self.heads.insert(turn, Arc::clone(&class));
            self.classes.insert(class, Map::unit(turn, job.id));
            return;
        };
        let known = Arc::clone(known);
        let Some(queue) = self.classes.get_mut(&class) else { return };
        let head = queue.get_min().map(|(turn, _)| *turn);
        queue.insert(turn, job.id);
        if let Some(head) = head.filter(|head| turn < *head) {
            self.heads.remove(&head);
            self.heads.insert(turn, known);
        }
    }

    fn remove(&mut self, job: &Job) {
        let Some(class) = Class::of(job) else { return };
        let turn = turn(job);
        let Some(queue) = self.classes.get_mut(&class) else { return };
        queue.remove(&turn);
        let next = queue.get_min().map(|(turn, _)| *turn);
        if next.is_none() {
            self.classes.remove(&class);
        }
        if next.is_none_or(|next| turn < next)
            && let (Some(class), Some(next)) = (self.heads.remove(&turn), next)
        {
            self.heads.insert(next, class);
        }
    }
}

fn waits(job: &Job) -> bool {
    job.status == JobStatus::Pending && matches!(job.reason, Reason::Queued | Reason::Lost) && !job.is_for_a_run()
}

pub(crate) fn turn(job: &Job) -> Turn {
    (Reverse(job.priority), job.queue_seq)
}
