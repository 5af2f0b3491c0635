//! The reference model: jobs and nodes in plain maps, no index, no sharing. It follows the documents, not the code.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{
    Attempt, Carried, CarriedEnd, ClusterTime, Command, Effects, EventSeq, FencingToken, JobId, JobStatus, Micros,
    NodeEpoch, NodeId, Place, Reason, Resolution, RunId, RunSpec, Step, Timestamp,
};

use crate::{EXECUTION_GRACE, PREPARATION_MAX, State};

mod journals;
mod nodes;

use nodes::Node;

#[derive(Debug, Clone)]
pub(super) struct Job {
    agent: u8,
    spec: Arc<RunSpec>,
    pub(super) status: JobStatus,
    reason: Reason,
    priority: i64,
    created: u64,
    queued_at: ClusterTime,
    attempt: u32,
    parks: u32,
    used: Micros,
    /// When it wakes, if it is parked.
    wakes: Option<ClusterTime>,
    /// The wall time of the wait, and the latest that came.
    sleeps_until: Timestamp,
    slept_until: Timestamp,
    lease: Option<Lease>,
    carried: Option<Carried>,
    retries: u32,
    /// Every step ever recorded, those that were folded as well, and how many those are.
    journal: Vec<Arc<Step>>,
    folded: usize,
    fold_end: Option<u64>,
}

#[derive(Debug, Clone)]
struct Lease {
    node: NodeId,
    token: u64,
    granted_at: ClusterTime,
    started: bool,
    holds: Holds,
}

/// GPUs with bytes, cores, memory, and the kind of place.
type Holds = (Vec<(u32, u64)>, u32, u64, Place);

/// What is compared: status, reason, attempt, and the token or the run of each job.
type View = BTreeMap<JobId, (JobStatus, Option<Reason>, Attempt, Option<FencingToken>, Option<Carried>)>;

#[derive(Debug)]
pub(super) struct Naive {
    agents: Vec<Arc<RunSpec>>,
    jobs: BTreeMap<JobId, Job>,
    nodes: BTreeMap<NodeId, Node>,
    /// Ended jobs in the order of their ends.
    ended: Vec<JobId>,
    /// How many of these history has.
    synced: usize,
    tokens: u64,
    created: u64,
    pub(super) clock: ClusterTime,
    /// The wall clock of the entry at work.
    pub(super) at: Timestamp,
}

impl Naive {
    /// Starts with the agents and nodes of `state`, which has no job yet.
    pub(super) fn new(state: &State) -> Self {
        let namespace = atlas_types::Namespace::default_namespace();
        let node = |node: &Arc<crate::NodeState>| {
            let node = &node.node;
            let (epoch, boot, inventory) = (node.epoch.0, node.boot_id, (*node.inventory).clone());
            let labels = BTreeMap::new();
            (node.id.clone(), Node { epoch, boot, inventory, labels, up: true, cordoned: false, draining: false })
        };
        Self {
            agents: state.agents(&namespace).map(|agent| Arc::clone(&agent.spec)).collect(),
            jobs: BTreeMap::new(),
            nodes: state.nodes().map(node).collect(),
            ended: Vec::new(),
            synced: 0,
            tokens: 0,
            created: 0,
            clock: state.clock(),
            at: state.at(),
        }
    }

    pub(super) fn view(state: &State) -> View {
        let jobs = state.to_image().jobs.into_iter();
        let view = |job: Arc<atlas_types::Job>| {
            let reason = (!job.status.is_terminal()).then_some(job.reason);
            let token = job.lease.as_ref().map(|lease| lease.token);
            (job.id, (job.status, reason, job.attempt, token, job.carried))
        };
        jobs.map(view).collect()
    }

    pub(super) fn jobs_view(&self) -> View {
        let view = |(id, job): (&JobId, &Job)| {
            let reason = (!job.status.is_terminal()).then_some(job.reason);
            let token = job.lease.as_ref().map(|lease| FencingToken(lease.token));
            (*id, (job.status, reason, Attempt(job.attempt), token, job.carried))
        };
        self.jobs.iter().map(view).collect()
    }

    pub(super) fn waiting(&self) -> Vec<JobId> {
        let queued =
            |job: &Job| job.status == JobStatus::Pending && matches!(job.reason, Reason::Queued | Reason::Lost);
        self.in_turn(|job| queued(job) && !job.spec.carried)
    }

    pub(super) fn waiting_for_runs(&self) -> Vec<JobId> {
        self.in_turn(|job| job.status == JobStatus::Pending && job.reason == Reason::Queued && job.spec.carried)
    }

    fn in_turn(&self, waits: impl Fn(&Job) -> bool) -> Vec<JobId> {
        let mut all: Vec<_> = self.jobs.iter().filter(|(_, job)| waits(job)).collect();
        all.sort_by_key(|(_, job)| (Reverse(job.priority), job.created));
        all.into_iter().map(|(id, _)| *id).collect()
    }

    pub(super) fn newest(&self, wanted: impl Fn(&Job) -> bool) -> Vec<JobId> {
        let mut all: Vec<_> = self.jobs.iter().filter(|(_, job)| wanted(job)).collect();
        all.sort_by_key(|(_, job)| Reverse(job.created));
        all.into_iter().map(|(id, _)| *id).collect()
    }

    pub(super) fn due(&self, now: ClusterTime) -> Vec<JobId> {
        let due = |job: &Job| match (job.status, job.reason, &job.lease) {
            (JobStatus::Pending, Reason::Backoff { until }, _) => Some(until),
            (JobStatus::Pending, Reason::Parked, _) => job.wakes,
            (JobStatus::Pending, Reason::Queued, _) if job.attempt == 0 => {
                job.spec.timeouts.queue.map(|limit| job.queued_at.plus(limit))
            }
            (JobStatus::Running, _, None) => Some(job.carried.as_ref()?.since.plus(job.spec.timeouts.execution)),
            (JobStatus::Running, _, Some(lease)) => {
                let timeouts = &job.spec.timeouts;
                let granted_at = lease.granted_at.plus(PREPARATION_MAX);
                let left = timeouts.execution.0.saturating_sub(job.used.0).max(1);
                Some(granted_at.plus(timeouts.startup).plus(Micros(left)).plus(EXECUTION_GRACE))
            }
            _ => None,
        };
        let mut all: Vec<_> = self.jobs.iter().filter_map(|(id, job)| Some((due(job)?, *id))).collect();
        all.retain(|(due, _)| *due <= now);
        all.sort_unstable();
        all.into_iter().map(|(_, id)| id).collect()
    }

    /// Does what the command asks; false if it must be refused.
    pub(super) fn apply(&mut self, command: &Command) -> bool {
        match command {
            Command::SubmitJob(command) => {
                let number = command.agent.as_str().as_bytes()[1] - b'0';
                let spec = Arc::clone(&self.agents[usize::from(number)]);
                !self.jobs.contains_key(&command.id)
                    && self.add(command.id, number, spec, command.priority, Reason::Queued, 0)
            }
            Command::GrantLease(command) => self.grant(command.job, &command.node, command.epoch),
            Command::StartJob(command) => {
                let Some((id, job)) = self.leased(command.job, command.token) else { return false };
                // What runs already has to be stopped first, whoever says again that it starts.
                let started = job.lease.as_ref().is_some_and(|lease| lease.started);
                if job.reason == Reason::Cancelling && !started {
                    self.end(id, JobStatus::Cancelled);
                } else if let Some(lease) = &mut job.lease {
                    lease.started = true;
                }
                true
            }
            Command::CompleteJob(command) => self.report(command.job, command.token, JobStatus::Completed),
            Command::FailJob(command) => self.report(command.job, command.token, JobStatus::Failed),
            Command::LoseLease(command) => {
                self.leased(command.job, command.token).map(|(id, _)| id).map(|id| self.lose(id)).is_some()
            }
            Command::CancelJob(command) => self.cancel(command.job, command.running),
            Command::FailPending(command) => {
                let refused = |job: &Job| matches!(job.reason, Reason::InDoubt) || job.parks > 0;
                let waits = |job: &Job| job.status == JobStatus::Pending && !refused(job);
                let found = self.jobs.get(&command.job).is_some_and(waits);
                if found {
                    self.end(command.job, JobStatus::Failed);
                }
                found
            }
            Command::WakeJob(command) => {
                let clock = self.clock;
                let Some(job) = self.jobs.get_mut(&command.job) else { return false };
                let until = match job.reason {
                    Reason::Backoff { until } => until,
                    Reason::Parked => job.wakes.expect("no stranger waits for a child"),
                    _ => return false,
                };
                let due = job.status == JobStatus::Pending && until <= clock;
                if due {
                    if job.reason == Reason::Parked {
                        job.slept_until = job.slept_until.max(job.sleeps_until);
                    }
                    (job.reason, job.queued_at) = (Reason::Queued, clock);
                }
                due
            }
            Command::RetryJob(command) => {
                let Some(job) = self.jobs.get(&command.job).cloned() else { return false };
                let new = job.status.is_terminal()
                    && !self.jobs.contains_key(&command.id)
                    && self.add(command.id, job.agent, job.spec, job.priority, Reason::Queued, job.retries);
                if let Some(next) = self.jobs.get_mut(&command.id).filter(|_| new && command.resume) {
                    (next.journal, next.folded, next.fold_end) = (job.journal, job.folded, job.fold_end);
                }
                new
            }
            Command::ForkJob(command) => {
                let Some(job) = self.jobs.get(&command.job).cloned() else { return false };
                let steps = command.steps as usize;
                let new = !self.jobs.contains_key(&command.id)
                    && (1..=job.journal.len()).contains(&steps)
                    && self.add(command.id, job.agent, job.spec, job.priority, Reason::Queued, 0);
                if let Some(next) = self.jobs.get_mut(&command.id).filter(|_| new) {
                    let cut = steps < job.folded;
                    next.journal = job.journal[..steps].to_vec();
                    (next.folded, next.fold_end) =
                        if cut { (steps, Some(command.steps)) } else { (job.folded, job.fold_end) };
                }
                new
            }
            Command::RecordSteps(command) => self.record(command),
            Command::FoldSteps(command) => self.fold(command),
            Command::ParkJob(command) => self.park(command),
            Command::CarryJob(command) => self.carry(command.job, command.run),
            Command::EndCarried(command) => {
                let held = |job: &Job| {
                    job.status == JobStatus::Running && job.carried.is_some_and(|carried| carried.run == command.run)
                };
                let carried = self.jobs.get(&command.job).is_some_and(held);
                if carried {
                    let done = matches!(command.end, CarriedEnd::Completed(_));
                    self.end(command.job, if done { JobStatus::Completed } else { JobStatus::Failed });
                }
                carried
            }
            Command::ResolveJob(command) => self.resolve(command.job, &command.resolution),
            Command::SinkAck(_) => {
                self.synced = self.ended.len();
                true
            }
            Command::PruneJobs(command) => {
                let count = self.synced.min(command.limit as usize);
                if command.event_seq > EventSeq(0) {
                    self.ended.drain(..count).for_each(|id| drop(self.jobs.remove(&id)));
                    self.synced -= count;
                }
                true
            }
            other => self.apply_to_node(other),
        }
    }

    fn add(&mut self, id: JobId, agent: u8, spec: Arc<RunSpec>, priority: i64, reason: Reason, retries: u32) -> bool {
        self.created += 1;
        let (created, queued_at, status) = (self.created, self.clock, JobStatus::Pending);
        let (attempt, parks, used, wakes, lease, carried) = (0, 0, Micros::default(), None, None, None);
        let (sleeps_until, slept_until) = (Timestamp::NOT_YET, Timestamp::NOT_YET);
        let (journal, folded, fold_end) = (Vec::new(), 0, None);
        let job = Job {
            agent,
            spec,
            status,
            reason,
            priority,
            created,
            queued_at,
            attempt,
            parks,
            used,
            wakes,
            sleeps_until,
            slept_until,
            lease,
            carried,
            retries,
            journal,
            folded,
            fold_end,
        };
        self.jobs.insert(id, job);
        true
    }

    fn grant(&mut self, id: JobId, node_id: &NodeId, epoch: NodeEpoch) -> bool {
        if !self.waiting().contains(&id) {
            return false;
        }
        let job = &self.jobs[&id];
        let Some(node) = self.nodes.get(node_id) else { return false };
        let takes = node.up && !node.cordoned && !node.draining && node.epoch == epoch.0;
        let running = self.jobs.values().filter(|other| other.agent == job.agent && other.lease.is_some()).count();
        let limited = job.spec.concurrency.is_some_and(|limit| running >= limit as usize);
        let Some(holds) = self.room(node_id, node, &job.spec.demand).filter(|_| takes && !limited) else {
            return false;
        };
        self.tokens += 1;
        let (token, granted_at) = (self.tokens, self.clock);
        let lease = Lease { node: node_id.clone(), token, granted_at, started: false, holds };
        let job = self.jobs.get_mut(&id).expect("it waits");
        job.attempt += 1;
        (job.status, job.reason, job.lease) = (JobStatus::Running, Reason::Running, Some(lease));
        true
    }

    fn carry(&mut self, id: JobId, run: RunId) -> bool {
        let carried = |job: &Job| job.status == JobStatus::Running && job.carried.is_some_and(|now| now.run == run);
        if self.jobs.get(&id).is_some_and(carried) {
            return true;
        }
        let (waits, taken) = (self.waiting_for_runs().contains(&id), self.jobs.values().any(carried));
        let Some(job) = self.jobs.get_mut(&id).filter(|_| waits && !taken) else { return false };
        (job.status, job.reason) = (JobStatus::Running, Reason::Running);
        job.carried = Some(Carried { run, since: self.clock });
        true
    }

    fn leased(&mut self, id: JobId, token: FencingToken) -> Option<(JobId, &mut Job)> {
        let job = self.jobs.get_mut(&id)?;
        (job.lease.as_ref()?.token == token.0).then_some((id, job))
    }

    fn report(&mut self, id: JobId, token: FencingToken, status: JobStatus) -> bool {
        let Some((id, job)) = self.leased(id, token) else { return false };
        let cancelling = job.reason == Reason::Cancelling;
        self.end(id, if cancelling { JobStatus::Cancelled } else { status });
        true
    }

    fn cancel(&mut self, id: JobId, running: bool) -> bool {
        let Some(job) = self.jobs.get_mut(&id) else { return false };
        match job.status {
            JobStatus::Pending if running || job.parks == 0 => self.end(id, JobStatus::Cancelled),
            JobStatus::Running if running && job.carried.is_some() => self.end(id, JobStatus::Cancelled),
            JobStatus::Running if running => job.reason = Reason::Cancelling,
            _ => {}
        }
        true
    }

    fn lose(&mut self, id: JobId) {
        let job = self.jobs.get_mut(&id).expect("it has a lease");
        let started = job.lease.as_ref().is_some_and(|lease| lease.started);
        let used_up = job.attempt - job.parks >= job.spec.max_attempts;
        let reason = match job.spec.effects {
            _ if job.reason == Reason::Cancelling => return self.end(id, JobStatus::Cancelled),
            Effects::Once | Effects::Reconcilable if started || used_up && job.parks > 0 => Reason::InDoubt,
            _ if used_up => return self.end(id, JobStatus::Failed),
            _ => Reason::Lost,
        };
        (job.status, job.reason, job.lease) = (JobStatus::Pending, reason, None);
    }

    fn resolve(&mut self, id: JobId, resolution: &Resolution) -> bool {
        let doubtful = |job: &&mut Job| job.status == JobStatus::Pending && job.reason == Reason::InDoubt;
        let Some(job) = self.jobs.get_mut(&id).filter(doubtful) else { return false };
        match resolution {
            Resolution::RunAgain => job.reason = Reason::Lost,
            Resolution::Completed(_) => drop(self.close(id, JobStatus::Completed)),
            Resolution::Failed(_) => drop(self.close(id, JobStatus::Failed)),
        }
        true
    }

    fn close(&mut self, id: JobId, status: JobStatus) -> Job {
        let job = self.jobs.get_mut(&id).expect("it is there");
        (job.status, job.lease) = (status, None);
        self.ended.push(id);
        job.clone()
    }

    fn end(&mut self, id: JobId, status: JobStatus) {
        let job = self.close(id, status);
        let rule = job.spec.retry;
        if status == JobStatus::Failed && job.retries < rule.max_retries {
            let number = u64::from(job.retries) + 1;
            let mut next = id.derive(number);
            while self.jobs.contains_key(&next) {
                next = next.derive(number);
            }
            let until = self.clock.plus(Micros(rule.backoff_base.0 << job.retries));
            let reason = Reason::Backoff { until };
            self.add(next, job.agent, job.spec, job.priority, reason, job.retries + 1);
        }
    }
}
