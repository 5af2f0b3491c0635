//! A plan: the next placements, in the order of the jobs.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};
use std::iter::Peekable;

use atlas_types::{AgentName, Demand, GrantLease, Job, JobId, Limit, Namespace, NodeId, Share, Turn};

use crate::choice::{Choice, Taken};
use crate::cluster::{Cluster, Shape};
use crate::room::Room;

/// How a node is chosen among those with room but without a warm slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// The fullest node, which leaves whole nodes free for large jobs.
    #[default]
    BinPack,
    /// The emptiest node, so that jobs disturb each other least.
    Spread,
}

/// The scheduler's proposal for a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Plan {
    /// Jobs that fit now, in the order of their priority and age.
    pub placements: Vec<Placement>,
    /// Jobs that no registered node could ever run, except those that wait for one.
    pub never: Vec<Never>,
    /// True if the plan ended because of its budget, so that more placements may be possible.
    pub more: bool,
}

/// One job on one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// The job's namespace.
    pub namespace: Namespace,
    /// The job's place in the queue, by which it is found fastest.
    pub queue_seq: u64,
    /// The command that grants the lease.
    pub grant: GrantLease,
}

/// A job that no registered node, ready or down, could ever run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Never {
    /// The job's namespace.
    pub namespace: Namespace,
    pub job: JobId,
    pub agent: AgentName,
    /// Its demand.
    pub demand: Demand,
}

/// Plans up to `budget` placements and refusals.
///
/// The plan counts its own placements, so that all of them fit together. It changes nothing: once its placements are
/// applied, the next plan continues where this one ended. A plan for a cluster without room is empty.
pub fn plan<C: Cluster>(cluster: &C, strategy: Strategy, budget: usize) -> Plan {
    plan_without(cluster, &BTreeSet::new(), strategy, budget)
}

/// [`plan`], with no placement on the nodes that are `away`.
pub fn plan_without<C: Cluster>(cluster: &C, away: &BTreeSet<NodeId>, strategy: Strategy, budget: usize) -> Plan {
    let mut plan = Plan::default();
    let (mut taken, mut room) = (Taken::without(away), Room::default());
    let mut queues: Vec<Queue<'_>> = Vec::new();
    let mut order = BinaryHeap::new();
    let mut unopened = cluster.namespaces().peekable();
    let mut progress = cluster.progress();
    loop {
        while let Some(&namespace) = unopened.peek() {
            let share = cluster.share(namespace);
            if order.peek().is_some_and(|(Reverse(Place { share: first, .. }), _)| share > *first) {
                break;
            }
            let mut queue = Queue::open(cluster, namespace, share);
            order.extend(queue.place().map(|place| (Reverse(place), queues.len())));
            queues.push(queue);
            unopened.next();
        }
        let Some((_, index)) = order.pop() else { return plan };
        if plan.placements.len() + plan.never.len() == budget {
            plan.more = true;
            return plan;
        }
        let queue = &mut queues[index];
        let Some(mut next) = queue.pop() else { continue };
        let goes_on = match next.decide(cluster, strategy, (&mut taken, &mut room)) {
            Decision::Place(placement) => {
                progress = progress.max(queue.share.progress);
                queue.share = queue.share.after_start(cluster.weight(&placement.namespace), progress);
                plan.placements.push(placement);
                true
            }
            Decision::Never(never) => {
                plan.never.push(never);
                true
            }
            Decision::SetAside if room.is_over(cluster, strategy, &taken) => return plan,
            Decision::SetAside => false,
        };
        queue.open.extend(if goes_on { next.advance(cluster) } else { None });
        order.extend(queue.place().map(|place| (Reverse(place), index)));
    }
}

/// What decides which namespace is next: the lowest share, and among equals the job of the highest priority, then the oldest one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    share: Share,
    priority: Reverse<i64>,
    queue_seq: u64,
}

/// The classes of a namespace.
struct Queue<'a> {
    share: Share,
    open: BinaryHeap<Next<'a>>,
    unopened: Peekable<Box<dyn Iterator<Item = Next<'a>> + 'a>>,
}

impl<'a> Queue<'a> {
    fn open<C: Cluster>(cluster: &'a C, namespace: &'a Namespace, share: Share) -> Self {
        let classes = cluster.classes(namespace).filter_map(|class| Next::open(cluster, class));
        let classes: Box<dyn Iterator<Item = Next<'a>> + 'a> = Box::new(classes);
        Self { share, open: BinaryHeap::new(), unopened: classes.peekable() }
    }

    fn is_fresh_first(&mut self) -> bool {
        match (self.open.peek(), self.unopened.peek()) {
            (Some(open), Some(fresh)) => fresh > open,
            (open, _) => open.is_none(),
        }
    }

    /// The place of its next job; none if it has no further one.
    fn place(&mut self) -> Option<Place> {
        let next = if self.is_fresh_first() { self.unopened.peek() } else { self.open.peek() };
        let job = next?.job;
        Some(Place { share: self.share, priority: Reverse(job.priority), queue_seq: job.queue_seq })
    }

    fn pop(&mut self) -> Option<Next<'a>> {
        if self.is_fresh_first() { self.unopened.next() } else { self.open.pop() }
    }
}

enum Decision {
    Place(Placement),
    Never(Never),
    SetAside,
}

/// A class with its next job. The greatest is decided first.
struct Next<'a> {
    job: &'a Job,
    turn: Turn,
    rest: Box<dyn Iterator<Item = &'a Job> + 'a>,
    choice: Option<Choice<'a>>,
    /// Those of all its jobs.
    limits: Option<Vec<Limit>>,
    never: bool,
}

impl<'a> Next<'a> {
    fn open<C: Cluster>(cluster: &'a C, class: &'a C::Class) -> Option<Self> {
        let mut rest = cluster.waiting(class);
        let job = rest.next()?;
        Some(Self { job, turn: cluster.turn(job), rest: Box::new(rest), choice: None, limits: None, never: false })
    }

    fn advance<C: Cluster>(mut self, cluster: &C) -> Option<Self> {
        self.job = self.rest.next()?;
        self.turn = cluster.turn(self.job);
        Some(self)
    }

    /// Decides on the class's next job. If the job is set aside, so is the whole class, because all its jobs have the
    /// same demand.
    fn decide<C: Cluster>(
        &mut self,
        cluster: &'a C,
        strategy: Strategy,
        (taken, room): (&mut Taken<'a>, &mut Room<'a>),
    ) -> Decision {
        let job = self.job;
        // A job without a version failed at submission and never waits for a node.
        let (Some(spec), Some(pin)) = (&job.spec, &job.pin) else { return Decision::SetAside };
        if self.never {
            return Decision::Never(never(cluster, job, &spec.demand));
        }
        if taken.is_broken(cluster, job) {
            return Decision::SetAside;
        }
        let depth = job.depth();
        let limits = &**self.limits.get_or_insert_with(|| cluster.limits(job));
        if limits.iter().any(|limit| taken.is_at(cluster, limit, depth)) {
            return Decision::SetAside;
        }
        let shape = Shape { demand: &spec.demand, depth, patient: job.is_patient() };
        let decided =
            |never| if never { Decision::Never(self::never(cluster, job, &spec.demand)) } else { Decision::SetAside };
        if let Some(never) = room.without(shape) {
            self.never = never;
            return decided(never);
        }
        let choice = self.choice.get_or_insert_with(|| Choice::new(cluster, &spec.demand, depth, strategy));
        if let Some((node, allocation)) = choice.next(cluster, &pin.digest, taken) {
            limits.iter().for_each(|limit| taken.count(cluster, limit, depth));
            taken.probe(cluster, job);
            let grant = GrantLease { job: job.id, node: node.id.clone(), epoch: node.epoch, allocation };
            let (namespace, queue_seq) = (job.namespace.clone(), job.queue_seq);
            return Decision::Place(Placement { namespace, queue_seq, grant });
        }
        self.never = room.has_none(cluster, shape);
        decided(self.never)
    }
}

fn never(cluster: &impl Cluster, job: &Job, demand: &Demand) -> Never {
    Never { namespace: job.namespace.clone(), job: job.id, agent: job.agent.clone(), demand: told(cluster, demand) }
}

/// The demand as people are told of it: with Python or Node.js only if that is what the nodes lack.
pub(crate) fn told(cluster: &impl Cluster, demand: &Demand) -> Demand {
    let without = Demand { python: false, nodejs: false, ..demand.clone() };
    let is_it = without != *demand && unsatisfiable(cluster, demand) && !unsatisfiable(cluster, &without);
    if is_it { demand.clone() } else { without }
}

/// True if nodes are registered and none of them, ready or down, could ever run `demand`.
pub(crate) fn unsatisfiable(cluster: &impl Cluster, demand: &Demand) -> bool {
    !cluster.could_ever(demand) && cluster.nodes().next().is_some()
}

impl PartialEq for Next<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.turn == other.turn
    }
}

impl Eq for Next<'_> {}

impl PartialOrd for Next<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Next<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.turn.cmp(&self.turn)
    }
}
