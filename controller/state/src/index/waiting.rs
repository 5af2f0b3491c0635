//! Jobs that may be granted, by class: within a class one job is as hard to place as another, so a planner that finds
//! no capacity for the head of a class skips the whole class.

use std::sync::Arc;

use atlas_types::{AgentName, Demand, Digest, Job, JobStatus, Limit, Micros, Namespace, Reason, Turn, Version};

use crate::map::{Map, Set};

/// What decides whether and where a job can be placed now.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class {
    pub namespace: Namespace,
    /// What its jobs ask of a node.
    pub demand: Demand,
    /// The limits of their agent that hold for its jobs.
    pub limits: Vec<Limit>,
    /// The agent version whose circuit counts their attempts, as long as it has this package.
    pub circuit: Option<(AgentName, Version, Digest)>,
    /// How deep they were spawned: the deeper, the more jobs lend them a place.
    pub depth: u32,
    /// They wait even if no node could ever run them: they have parked, or were submitted so.
    pub patient: bool,
}

impl Class {
    /// The class of a job; none for one that can never run, because its agent was unknown.
    pub fn of(job: &Job) -> Option<Self> {
        let demand = job.spec.as_ref()?.demand.clone();
        let (namespace, limits) = (job.namespace.clone(), super::limits_of_agent(job));
        let guarded = job.spec.as_ref()?.failures_max.filter(|_| !job.is_system());
        let circuit = guarded.and_then(|_| {
            let pin = job.pin.as_ref()?;
            Some((job.agent.clone(), pin.version, pin.digest))
        });
        Some(Self { namespace, demand, limits, circuit, depth: job.depth(), patient: job.is_patient() })
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    /// The turns of its jobs, which say their places in the queue.
    classes: Map<Arc<Class>, Set<Turn>>,
    /// The first job's turn of each class.
    heads: Map<(Namespace, Turn), Arc<Class>>,
    /// How many classes ask the same of a node: what they ask, how deep their jobs were spawned, and whether these are patient.
    shapes: Map<(Demand, u32, bool), u32>,
    /// What a priority is worth in namespaces whose jobs age.
    aging: Map<Namespace, Micros>,
}

impl Waiting {
    pub(crate) fn change(&mut self, old: Option<&Job>, new: Option<&Job>) {
        let (was, is) = (old.filter(|job| waits(job)), new.filter(|job| waits(job)));
        match (was, is) {
            (Some(old), Some(new)) if self.turn(old) == self.turn(new) => {}
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

    /// The turn of a job in its namespace.
    pub(crate) fn turn(&self, job: &Job) -> Turn {
        Turn::of(job, self.aging.get(&job.namespace).copied())
    }

    /// Each class with the place of its first job, by namespace, the first of a namespace first.
    pub(crate) fn heads(&self) -> impl Iterator<Item = (&Arc<Class>, u64)> {
        self.heads.iter().map(|((_, turn), class)| (class, turn.queue_seq()))
    }

    /// The classes of a namespace, the one with the first job first.
    pub(crate) fn of_namespace<'a>(&'a self, namespace: &'a Namespace) -> impl Iterator<Item = &'a Arc<Class>> + 'a {
        let from = self.heads.range((namespace.clone(), Turn::FIRST)..);
        from.take_while(move |((of, _), _)| of == namespace).map(|(_, class)| class)
    }

    /// What the classes ask of a node, each only once.
    pub(crate) fn shapes(&self) -> impl Iterator<Item = &(Demand, u32, bool)> {
        self.shapes.keys()
    }

    /// How much a priority is worth in a namespace.
    pub(crate) fn aging(&self, namespace: &Namespace) -> Option<Micros> {
        self.aging.get(namespace).copied()
    }

    /// Changes how much a priority is worth in a namespace, and with it the order of the jobs that wait there.
    pub(crate) fn reorder<'j>(
        &mut self,
        namespace: &Namespace,
        aging: Option<Micros>,
        job: impl Fn(u64) -> Option<&'j Job>,
    ) {
        if self.aging(namespace) == aging {
            return;
        }
        let classes: Vec<_> = self.of_namespace(namespace).cloned().collect();
        let jobs: Vec<_> =
            classes.iter().flat_map(|class| self.of(class).collect::<Vec<_>>()).filter_map(job).collect();
        jobs.iter().for_each(|job| self.remove(job));
        match aging {
            Some(step) => drop(self.aging.insert(namespace.clone(), step)),
            None => drop(self.aging.remove(namespace)),
        }
        jobs.iter().for_each(|job| self.insert(job));
    }

    /// The places of the jobs of a class, in their order.
    pub(crate) fn of(&self, class: &Class) -> impl Iterator<Item = u64> + '_ {
        self.classes.get(class).into_iter().flat_map(|queue| queue.iter().map(Turn::queue_seq))
    }

    pub(crate) fn len_of(&self, class: &Class) -> usize {
        self.classes.get(class).map_or(0, Set::len)
    }

    fn insert(&mut self, job: &Job) {
        let Some(class) = Class::of(job) else { return };
        let turn = self.turn(job);
        let Some((known, _)) = self.classes.get_key_value(&class) else {
            let class = Arc::new(class);
            *self.shapes.entry(shape(&class)).or_default() += 1;
            self.heads.insert((job.namespace.clone(), turn), Arc::clone(&class));
            self.classes.insert(class, Set::unit(turn));
            return;
        };
        let known = Arc::clone(known);
        let Some(queue) = self.classes.get_mut(&class) else { return };
        let head = queue.get_min().copied();
        queue.insert(turn);
        if let Some(head) = head.filter(|head| turn < *head) {
            self.heads.remove(&(job.namespace.clone(), head));
            self.heads.insert((job.namespace.clone(), turn), known);
        }
    }

    fn remove(&mut self, job: &Job) {
        let Some(class) = Class::of(job) else { return };
        let turn = self.turn(job);
        let Some(queue) = self.classes.get_mut(&class) else { return };
        queue.remove(&turn);
        let next = queue.get_min().copied();
        if next.is_none() {
            self.classes.remove(&class);
            let shape = shape(&class);
            let left = self.shapes.get(&shape).copied().unwrap_or_default();
            match left.checked_sub(1).filter(|left| *left > 0) {
                Some(left) => drop(self.shapes.insert(shape, left)),
                None => drop(self.shapes.remove(&shape)),
            }
        }
        if next.is_none_or(|next| turn < next)
            && let (Some(class), Some(next)) = (self.heads.remove(&(job.namespace.clone(), turn)), next)
        {
            self.heads.insert((job.namespace.clone(), next), class);
        }
    }
}

fn shape(class: &Class) -> (Demand, u32, bool) {
    (class.demand.clone(), class.depth, class.patient)
}

fn waits(job: &Job) -> bool {
    job.status == JobStatus::Pending && matches!(job.reason, Reason::Queued | Reason::Lost) && !job.is_for_a_run()
}
