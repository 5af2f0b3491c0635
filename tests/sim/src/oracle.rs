//! Properties checked from outside: the oracle sees every committed entry, every answer and every execution.

mod chains;
mod circuits;
mod journal;
mod limits;
mod logs;
mod runs;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use atlas_replica::Replica;
use atlas_state::State;
use atlas_types::{
    ClusterTime, Event, EventRecord, FailureKind, FencingToken, Job, JobChange, JobId, JobStatus, LimitKey, Namespace,
    NodeHealth, NodeId, Outcome, Place, Question, QuestionId, Reason, RunId, RunStatus, Seq, StepKey,
};

use self::circuits::{Guarded, Seen};
use crate::coverage::Coverage;
use crate::options::MS;
use crate::workload::{self, Agent};
use crate::world::CLUSTER_ID;

/// Killing a process tree takes a moment: so long may an attempt that was paused beyond its time run on when it wakes up.
const KILL_TIME_MAX: u64 = 50 * MS;

pub(crate) struct Oracle {
    /// What all members will come to: entries are applied here when they are committed.
    truth: Replica,
    /// Sequence number and chain after so many entries of the log.
    marks: Vec<(Seq, [u8; 32])>,
    jobs: BTreeMap<JobId, Record>,
    /// The job of each client's submission.
    submitted: BTreeMap<u64, JobId>,
    acknowledged: BTreeSet<JobId>,
    cancelled: BTreeSet<JobId>,
    runs: BTreeMap<JobId, Vec<Run>>,
    token: FencingToken,
    event: u64,
    check_every: u64,
    /// The steps that attempts have begun.
    made: BTreeSet<(JobId, u64, FencingToken)>,
    /// The recorded calls of durable programs, in their order, and how many of them each attempt has used.
    calls: BTreeMap<JobId, Vec<StepKey>>,
    calls_used: BTreeMap<FencingToken, usize>,
    /// For each fork, the job whose steps it makes.
    paths: BTreeMap<JobId, JobId>,
    /// The job that each run carries.
    carried: BTreeMap<RunId, JobId>,
    /// Version and status of each run of a chain.
    chains: BTreeMap<RunId, (u64, RunStatus)>,
    /// The ids that the steps of runs have, and the jobs that these runs carry.
    steps: BTreeMap<JobId, JobId>,
    /// The stored log of each job: its attempts, and how many lines of each.
    logs: BTreeMap<JobId, Vec<(FencingToken, u64)>>,
    questions_ended: BTreeSet<QuestionId>,
    /// The selection of orchestrators in the namespace; 0 is the default one.
    generation: u64,
    /// When the latest jobs started that each rate counts.
    starts: BTreeMap<LimitKey, Vec<ClusterTime>>,
    circuits: BTreeMap<Guarded, Seen>,
    violation: Option<String>,
}

#[derive(Default)]
struct Record {
    live: Option<FencingToken>,
    ended: Option<Arc<Job>>,
    in_doubt: bool,
    original: Option<JobId>,
    /// The node of its latest attempt.
    node: Option<NodeId>,
    namespace: Option<Namespace>,
}

/// One execution of an attempt: the physical truth.
struct Run {
    token: FencingToken,
    from: u64,
    to: Option<u64>,
    /// It stood still from the one time to the other.
    frozen: Option<(u64, u64)>,
}

impl Run {
    /// The times in which it did something, as far as that is known at `now`.
    fn active(&self, now: u64) -> [(u64, u64); 2] {
        let to = self.to.unwrap_or(now);
        match self.frozen {
            Some((frozen, thawed)) => [(self.from, frozen.min(to)), (thawed + KILL_TIME_MAX, to)],
            None => [(self.from, to), (to, to)],
        }
    }

    fn overlaps(&self, other: &Self, now: u64) -> bool {
        let (a, b) = (self.active(now), other.active(now));
        a.iter().any(|a| b.iter().any(|b| a.0.max(b.0) < a.1.min(b.1)))
    }
}

impl Oracle {
    pub(crate) fn new(check_every: u64) -> Self {
        let truth = Replica::new(State::new(CLUSTER_ID));
        let mark = (truth.state().seq(), truth.state().chain());
        Self {
            truth,
            marks: vec![mark],
            jobs: BTreeMap::new(),
            submitted: BTreeMap::new(),
            acknowledged: BTreeSet::new(),
            cancelled: BTreeSet::new(),
            runs: BTreeMap::new(),
            token: FencingToken(0),
            event: 0,
            check_every,
            made: BTreeSet::new(),
            calls: BTreeMap::new(),
            calls_used: BTreeMap::new(),
            paths: BTreeMap::new(),
            carried: BTreeMap::new(),
            chains: BTreeMap::new(),
            steps: BTreeMap::new(),
            logs: BTreeMap::new(),
            questions_ended: BTreeSet::new(),
            generation: 0,
            starts: BTreeMap::new(),
            circuits: BTreeMap::new(),
            violation: None,
        }
    }

    /// The first violation is the one that counts.
    pub(crate) fn violate(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    pub(crate) fn violation(&self) -> Option<&String> {
        self.violation.as_ref()
    }

    pub(crate) fn state(&self) -> &State {
        self.truth.state()
    }

    pub(crate) fn seq(&self) -> Seq {
        self.truth.state().seq()
    }

    pub(crate) fn fingerprint(&self) -> u64 {
        let chain = self.truth.state().chain();
        u64::from_le_bytes(std::array::from_fn(|i| chain[i]))
    }

    /// A blank entry is committed.
    pub(crate) fn blank(&mut self) {
        self.marks.extend(self.marks.last().copied());
    }

    /// An entry is committed at `now`.
    pub(crate) fn commit(&mut self, bytes: &[u8], now: u64, coverage: &mut Coverage) -> Arc<[EventRecord]> {
        let before = self.truth.state().clone();
        let mut events: Arc<[EventRecord]> = Arc::from([]);
        match self.truth.apply(bytes) {
            Ok(applied) => {
                for outcome in &applied.outcomes {
                    match outcome {
                        Ok(Outcome::Pruned { jobs }) => coverage.add("jobs pruned", *jobs),
                        Ok(_) => {}
                        Err(rejection) => self.violate(format!("a planned command was refused: {rejection}")),
                    }
                }
                applied.events.iter().for_each(|record| self.event(record, coverage));
                events = applied.events;
            }
            Err(halt) => self.violate(format!("a committed entry stops every replica: {halt:?}")),
        }
        let state = self.truth.state();
        self.marks.push((state.seq(), state.chain()));
        // The cluster's clock stands still without a leader and never runs ahead of time itself.
        if state.clock().0 > now {
            self.violate(format!("the cluster's clock is at {} after {now}", self.truth.state().clock().0));
        }
        self.check_turns(&before, &events, coverage);
        self.check_places(coverage);
        self.check_keys(coverage);
        self.check_logs(coverage);
        self.check_state(coverage);
        events
    }

    /// What runs on a node and does not wait for a child has a place of its own, but for jobs that resumed while a deeper one still
    /// has the place that they had lent.
    fn check_places(&mut self, coverage: &mut Coverage) {
        let state = self.truth.state();
        let mut wrong = None;
        for node in state.nodes() {
            let jobs: Vec<_> = node.leases().filter_map(|(_, job)| state.job(job)).collect();
            let waits = |job: &&&Arc<Job>| state.children_awaited(job.id) > 0;
            for place in Place::ALL {
                let takes = |job: &&Arc<Job>| job.lease.as_ref().is_some_and(|lease| lease.allocation.place == place);
                let jobs: Vec<_> = jobs.iter().copied().filter(takes).collect();
                let active = jobs.iter().filter(|job| !waits(job)).count();
                let deeper = jobs.iter().filter(|job| job.depth() > 0).count();
                let places = node.node.inventory.places_of(place) as usize;
                if active > places + deeper {
                    wrong = Some(format!("{active} jobs run on {} at {places} {place:?} places", node.node.id));
                }
                if jobs.len() > places && active <= places {
                    coverage.count("places lent");
                }
                if place == Place::Llm && places > 0 && active == places {
                    coverage.count("llm places full");
                }
            }
        }
        wrong.into_iter().for_each(|wrong| self.violate(wrong));
    }

    fn check_state(&mut self, coverage: &mut Coverage) {
        let state = self.truth.state();
        let lost = |job: &&JobId| state.job(**job).is_none() && self.ended(**job).is_none();
        if let Some(job) = self.acknowledged.iter().find(lost) {
            return self.violate(format!("{job} was acknowledged and is lost"));
        }
        if self.seq().0.is_multiple_of(self.check_every) {
            coverage.count("invariant checks");
            if let Err(violation) = self.truth.state().check_invariants() {
                self.violate(format!("{violation:?}"));
            }
        }
    }

    fn event(&mut self, record: &EventRecord, coverage: &mut Coverage) {
        self.event += 1;
        if record.seq.0 != self.event {
            self.violate(format!("event {} follows {}", record.seq, self.event - 1));
        }
        match &record.event {
            Event::Job { change, job, .. } => self.job_event(*change, job, coverage),
            Event::StepsRecorded { job, from, steps } => self.steps_recorded(*job, *from, steps),
            Event::Run { change, run } => self.chain_changed(*change, run, coverage),
            Event::QuestionAsked { question } if question.rule.is_some() => coverage.count("approvals asked"),
            Event::QuestionAsked { .. } => coverage.count("questions asked"),
            Event::QuestionEnded { question } => self.question_ended(question, coverage),
            Event::ObjectPut { object } if object.key.kind.as_str() == "routing" => {
                coverage.count("orchestrators selected");
                self.generation = object.revision.0;
            }
            Event::ObjectDeleted { object } if object.key.kind.as_str() == "routing" => self.generation = 0,
            Event::MessageDelivered { .. } => coverage.count("messages delivered"),
            Event::Node { node } => {
                if node.health == NodeHealth::Down {
                    coverage.count("lost nodes");
                }
                self.circuit_changed(&Guarded::Node(node.id.clone()), &node.circuit, coverage);
            }
            Event::Agent { agent } if agent.spec.failures_max.is_some() => {
                self.circuit_changed(&Guarded::Agent(agent.name.to_string()), &agent.circuit, coverage);
            }
            _ => {}
        }
    }

    fn question_ended(&mut self, question: &Question, coverage: &mut Coverage) {
        if !self.questions_ended.insert(question.id) {
            self.violate(format!("{} ended twice", question.id));
        }
        let says = question.answer().map(|answer| answer.as_ref() == br#""approve""#);
        coverage.count(match question.status() {
            "answered" if question.rule.is_some() && says == Some(true) => "approvals given",
            "answered" if question.rule.is_some() => "approvals refused",
            "expired" if question.rule.is_some() => "approvals out of time",
            "cancelled" if question.rule.is_some() => "approvals cancelled",
            "answered" => "questions answered",
            "cancelled" => "questions cancelled",
            _ => "questions out of time",
        });
    }

    fn job_event(&mut self, change: JobChange, job: &Arc<Job>, coverage: &mut Coverage) {
        let id = job.id;
        let record = self.jobs.entry(id).or_default();
        if record.ended.is_some() {
            return self.violate(format!("{id} had ended, and then: {change:?}"));
        }
        let live = record.live;
        let held_on = record.node.clone();
        if change == JobChange::Granted && job.parks > 0 && record.node != job.node {
            coverage.count("parked jobs that moved");
        }
        record.original = job.original;
        record.namespace.get_or_insert_with(|| job.namespace.clone());
        record.node.clone_from(&job.node);
        record.in_doubt = job.reason == Reason::InDoubt;
        record.live = job.lease.as_ref().map(|lease| lease.token);
        let on = if change == JobChange::Granted { job.node.clone() } else { held_on };
        self.check_circuits(change, job, (on, live), coverage);
        match change {
            JobChange::Submitted if job.original.is_some() => coverage.count("retries"),
            JobChange::Submitted => match &job.fork {
                Some(fork) => self.forked(job, fork, coverage),
                None => {
                    self.submission(job);
                    self.step_submitted(job);
                }
            },
            JobChange::Granted => {
                self.granted_as_decided(job);
                if !job.is_approved() && job.lease.is_some() {
                    self.violate(format!("{id} was granted without its approval"));
                }
                self.check_rates(job, coverage);
                let token = job.lease.as_ref().map(|lease| lease.token);
                if live.is_some() && token.is_some() {
                    self.violate(format!("{id} has two live leases"));
                }
                if token.is_some_and(|token| token <= self.token) {
                    self.violate(format!("the token of {id} is not newer than {}", self.token));
                }
                self.token = self.token.max(token.unwrap_or_default());
            }
            JobChange::Lost => {
                coverage.count("lost leases");
                if job.reason == Reason::InDoubt {
                    coverage.count("jobs in doubt");
                }
            }
            JobChange::Ended => {
                if job.reason == Reason::Parked {
                    coverage.count("parked jobs cancelled");
                }
                self.ending(job, live, coverage);
            }
            JobChange::Parked => coverage.count("parked jobs"),
            JobChange::Routed => coverage.count("routed jobs"),
            JobChange::Carried => self.carried(job, coverage),
            JobChange::Started | JobChange::Woken | JobChange::Resolved | JobChange::Cancelling => {}
        }
    }

    /// The first lease of a job follows the decision of the orchestrator that is selected then; a retry follows the decision about its family.
    fn granted_as_decided(&mut self, job: &Job) {
        // No orchestrator is selected in the other namespace.
        if job.namespace == workload::team() || job.lease.is_none() || job.attempt.0 > 1 || job.original.is_some() {
            return;
        }
        let decided = job.route.as_ref().map_or(0, |route| route.generation.0);
        if decided != self.generation {
            self.violate(format!(
                "{} was granted under selection {}, decided under {decided}",
                job.id, self.generation
            ));
        }
    }

    fn submission(&mut self, job: &Job) {
        let Some(op) = workload::op_of(&job.input) else { return };
        if let Some(first) = self.submitted.insert(op, job.id) {
            self.violate(format!("one submission made two jobs, {first} and {}", job.id));
        }
    }

    fn ending(&mut self, job: &Arc<Job>, live: Option<FencingToken>, coverage: &mut Coverage) {
        let id = job.id;
        if let Some(carried) = job.carried {
            self.carried_ended(job, carried.run, coverage);
        } else if job.status == JobStatus::Completed {
            let by = job.output.as_ref().and_then(workload::token_of);
            if by.is_none() || by != live {
                self.violate(format!("{id} completed under lease {live:?} with the result of {by:?}"));
            }
        }
        if job.status == JobStatus::Completed {
            self.check_steps(job);
        }
        if self.cancelled.contains(&id) && job.status != JobStatus::Cancelled {
            self.violate(format!("{id} was cancelled and then {}", job.status.as_str()));
        }
        match job.failure.as_ref().map(|failure| failure.kind) {
            Some(FailureKind::QueueTimeout) => coverage.count("queue timeouts"),
            Some(FailureKind::Timeout) => coverage.count("overdue executions"),
            Some(FailureKind::LeaseLost) => coverage.count("attempts used up"),
            Some(FailureKind::Unsatisfiable) => coverage.count("unsatisfiable"),
            _ => {}
        }
        self.jobs.entry(id).or_default().ended = Some(Arc::clone(job));
    }

    /// The namespace of a job.
    pub(crate) fn namespace_of(&self, job: JobId) -> Namespace {
        let known = self.jobs.get(&job).and_then(|record| record.namespace.clone());
        known.unwrap_or_else(Namespace::default_namespace)
    }

    fn ended(&self, job: JobId) -> Option<&Arc<Job>> {
        self.jobs.get(&job)?.ended.as_ref()
    }

    /// A member has applied so many entries of the log.
    pub(crate) fn check_replica(&mut self, member: usize, applied: usize, state: &State) {
        let mark = (state.seq(), state.chain());
        if self.marks.get(applied) != Some(&mark) {
            self.violate(format!("member {member} differs after entry {applied}, at {}", state.seq()));
        }
    }

    /// A client was told that its submission is recorded.
    pub(crate) fn acknowledged(&mut self, op: Option<u64>, job: JobId) {
        self.acknowledged.insert(job);
        if op.and_then(|op| self.submitted.get(&op)) != Some(&job) {
            self.violate(format!("{job} was acknowledged and is not recorded"));
        }
    }

    /// A client was told the result of its cancel.
    pub(crate) fn cancelled(&mut self, job: JobId, accepted: bool) {
        let status = self.ended(job).map(|job| job.status);
        if accepted {
            self.cancelled.insert(job);
        }
        match (accepted, status) {
            (true, None | Some(JobStatus::Cancelled)) => {}
            (false, Some(_)) => {}
            _ => self.violate(format!("the cancel of {job} was answered {accepted}, and it is {status:?}")),
        }
    }

    /// A client was told that there is no such job.
    pub(crate) fn check_unknown(&mut self, job: JobId) {
        if self.ended(job).is_none() || self.truth.state().job(job).is_some() {
            self.violate(format!("{job} was acknowledged, and a client was told that there is no such job"));
        }
    }

    /// What was asked when the state was at `floor` was answered from a state at `seq`.
    pub(crate) fn check_age(&mut self, seq: Seq, floor: Seq) {
        if seq < floor {
            self.violate(format!("what was asked at {floor} was answered from {seq}"));
        }
    }

    /// A read was answered from a state at `seq`.
    pub(crate) fn check_read(&mut self, id: JobId, job: Option<&Job>, seq: Seq, floor: Seq) {
        self.check_age(seq, floor);
        match (job, self.ended(id)) {
            (None, None) => self.violate(format!("a read found no {id}, which was acknowledged and has not ended")),
            (Some(read), Some(ended)) if read.status.is_terminal() && *read != **ended => {
                self.violate(format!("a read found {id} other than it ended"));
            }
            _ => {}
        }
    }

    /// A child begins to run an attempt.
    pub(crate) fn child_started(&mut self, id: JobId, token: FencingToken, now: u64) {
        let runs = self.runs.entry(id).or_default();
        let again = runs.iter().any(|run| run.token == token);
        runs.push(Run { token, from: now, to: None, frozen: None });
        let once = self.truth.state().job(id).map(|job| Agent::named(&job.agent));
        let once = matches!(once, Some(Agent::Once | Agent::Fragile));
        if again || (once && self.runs[&id].len() > 1) {
            self.violate(format!("{id} ran again under token {token}, which must not be"));
        }
    }

    pub(crate) fn child_ended(&mut self, token: FencingToken, now: u64) {
        for (id, runs) in &mut self.runs {
            if let Some(run) = runs.iter_mut().find(|run| run.token == token) {
                // Not later than when it began to wait for the answer to its park.
                run.to.get_or_insert(now);
                let id = *id;
                return self.check_runs(id, now);
            }
        }
    }

    /// A child has asked to be parked: it does nothing until it is answered.
    pub(crate) fn child_waits(&mut self, token: FencingToken, now: u64) {
        self.child_ended(token, now);
    }

    /// It was answered that its wait is over.
    pub(crate) fn child_goes_on(&mut self, token: FencingToken) {
        let runs = self.runs.values_mut().flatten();
        runs.filter(|run| run.token == token).for_each(|run| run.to = None);
    }

    fn check_runs(&mut self, id: JobId, now: u64) {
        let runs = &self.runs[&id];
        let overlap = runs.iter().enumerate().find_map(|(i, run)| {
            let other = runs[..i].iter().find(|other| run.overlaps(other, now))?;
            Some((other.token, run.token))
        });
        if let Some((a, b)) = overlap {
            self.violate(format!("{id} ran twice at a time, under tokens {a} and {b}"));
        }
    }

    /// These attempts stand still for a while.
    pub(crate) fn freeze(&mut self, tokens: &[FencingToken], from: u64, to: u64) {
        let runs = self.runs.values_mut().flatten();
        runs.filter(|run| tokens.contains(&run.token)).for_each(|run| run.frozen = Some((from, to)));
    }

    /// True once every job has ended, or waits for a person.
    pub(crate) fn all_ended(&self) -> bool {
        self.jobs.values().all(|record| record.ended.is_some() || record.in_doubt)
    }

    /// The jobs that have not, for the report of a run that does not end.
    pub(crate) fn unended(&self) -> String {
        let open = self.jobs.iter().filter(|(_, record)| record.ended.is_none() && !record.in_doubt);
        let words = open.map(|(id, _)| match self.truth.state().job(*id) {
            Some(job) => {
                let lease = job.lease.as_ref().map(|lease| (&lease.node, lease.token, lease.started));
                format!("{id} {} {:?} {lease:?}: {}", job.agent, job.reason, atlas_duty::explain(self.state(), job))
            }
            None => format!("{id} is gone"),
        });
        words.collect::<Vec<_>>().join("; ")
    }

    /// What must hold at the very end.
    pub(crate) fn finish(&mut self, now: u64) {
        let jobs: Vec<JobId> = self.runs.keys().copied().collect();
        jobs.into_iter().for_each(|id| self.check_runs(id, now));
        if let Err(violation) = self.truth.state().check_invariants() {
            self.violate(format!("{violation:?}"));
        }
    }
}
