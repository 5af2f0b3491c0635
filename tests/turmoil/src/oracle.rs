//! The facts known about the cluster from outside, and the invariants that check them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use atlas_sim::Coverage;
use atlas_state::State;
use atlas_types::{Event, FencingToken, Job, JobChange, JobId, Namespace, NodeId, Reason, Seq};

use crate::Options;
use crate::invariant::{self, Invariant, every_job};
use crate::seen::Seen;
use crate::wire::{Answer, Ask};

/// The facts available to all checks.
pub(crate) struct Facts {
    /// The time of the current observation.
    pub(crate) now: Duration,
    /// The newest state that any member has applied.
    pub(crate) newest: State,
    /// For each number of entries: the chain that every member must have, and the index of the last entry.
    pub(crate) marks: BTreeMap<Seq, ([u8; 32], u64)>,
    /// All jobs that existed.
    pub(crate) jobs: BTreeMap<JobId, JobFacts>,
    /// The actual executions by job.
    pub(crate) runs: BTreeMap<JobId, Vec<Run>>,
    /// The coverage counters.
    pub(crate) coverage: Coverage,
}

/// The facts about one job.
#[derive(Debug, Default)]
pub(crate) struct JobFacts {
    /// The latest record of the job.
    pub(crate) last: Option<Arc<Job>>,
    /// The lease under which it currently runs.
    pub(crate) live: Option<FencingToken>,
    /// True if it has ended.
    pub(crate) ended: bool,
}

/// One execution of an attempt.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) token: FencingToken,
    pub(crate) node: NodeId,
    /// The time of its end; none while it runs.
    pub(crate) to: Option<Duration>,
}

/// The checks and their results.
pub(crate) struct Oracle {
    facts: Facts,
    invariants: Vec<Box<dyn Invariant>>,
    violation: Option<String>,
    trace: Vec<String>,
}

impl Oracle {
    pub(crate) fn new(options: &Options) -> Self {
        let newest = State::new(0);
        let marks = BTreeMap::new();
        let facts = Facts {
            now: Duration::ZERO,
            newest,
            marks,
            jobs: BTreeMap::new(),
            runs: BTreeMap::new(),
            coverage: Coverage::default(),
        };
        Self { facts, invariants: invariant::all(options), violation: None, trace: Vec::new() }
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }

    pub(crate) fn violation(&self) -> Option<&String> {
        self.violation.as_ref()
    }

    /// All observations, one line each.
    pub(crate) fn into_trace(self) -> (Vec<String>, Coverage) {
        (self.trace, self.facts.coverage)
    }

    /// Adds a line to the trace.
    pub(crate) fn note(&mut self, line: &str) {
        self.trace.push(format!("{:>9.3} {line}", self.facts.now.as_secs_f64() * 1_000.0));
    }

    /// Records a violation. Only the first one is kept.
    pub(crate) fn violate(&mut self, what: String) {
        if self.violation.is_none() {
            self.note(&format!("VIOLATION {what}"));
            self.violation = Some(what);
        }
    }

    /// Checks an observation.
    pub(crate) fn see(&mut self, now: Duration, seen: &Seen) {
        self.facts.now = now;
        self.note(&in_words(seen));
        if let Seen::Applied { batch, .. } = seen
            && batch.seq > self.facts.newest.seq()
        {
            // A batch without events is an installed snapshot, whose index may be larger than that of its last entry.
            let index = if batch.events.is_empty() { 0 } else { batch.index };
            self.newer(&batch.state, &batch.events, index);
        }
        if let Seen::Up { state, .. } = seen
            && state.seq() > self.facts.newest.seq()
        {
            self.newer(state, &[], 0);
        }
        self.facts.run(seen);
        self.check(seen);
    }

    /// Checks the conditions for the end of the run.
    pub(crate) fn finish(&mut self) {
        for invariant in &mut self.invariants {
            if let Err(what) = invariant.finish(&mut self.facts) {
                self.violation.get_or_insert(format!("{}: {what}", invariant.name()));
            }
        }
    }

    fn check(&mut self, seen: &Seen) {
        let mut found = None;
        for invariant in &mut self.invariants {
            if let Err(what) = invariant.see(seen, &mut self.facts) {
                found.get_or_insert(format!("{}: {what}", invariant.name()));
            }
        }
        if let Some(what) = found {
            self.violate(what);
        }
    }

    /// Handles a state that no member had before.
    fn newer(&mut self, state: &State, events: &[atlas_types::EventRecord], index: u64) {
        let follows = state.seq().0 == self.facts.newest.seq().0 + 1 && index > 0;
        if follows {
            for event in events {
                if let Event::Job { change, job, .. } = &event.event {
                    self.facts.job(*change, job);
                }
                self.check(&Seen::Event { event: event.clone(), state: state.clone() });
            }
            self.facts.coverage.count("entries");
        } else {
            self.facts.coverage.count("entries nobody saw");
            self.facts.resume(state);
            self.check(&Seen::Missed { state: state.clone() });
        }
        self.facts.newest = state.clone();
        self.facts.marks.insert(state.seq(), (state.chain(), index));
    }
}

impl Facts {
    /// The jobs that have not ended and do not wait for a person.
    pub(crate) fn unended(&self) -> Option<String> {
        let namespace = Namespace::default_namespace();
        let open = self.newest.jobs(&namespace, None, None);
        let open = open.filter(|job| !job.status.is_terminal() && job.reason != Reason::InDoubt);
        let words = open.map(|job| {
            let why = atlas_duty::explain(&self.newest, job);
            format!("{} {} {:?} {:?} {why}", job.id, job.agent, job.status, job.reason)
        });
        let words: Vec<_> = words.collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// Records the executions of children.
    fn run(&mut self, seen: &Seen) {
        match seen {
            Seen::ChildStarted { node, job, token } => {
                let run = Run { token: *token, node: node.clone(), to: None };
                self.runs.entry(*job).or_default().push(run);
            }
            Seen::ChildEnded { token } => self.ended(|run| run.token == *token),
            Seen::WorkerDown { node } => self.ended(|run| run.node == *node),
            _ => {}
        }
    }

    fn ended(&mut self, which: impl Fn(&Run) -> bool) {
        let now = self.now;
        let runs = self.runs.values_mut().flatten();
        runs.filter(|run| run.to.is_none() && which(run)).for_each(|run| run.to = Some(now));
    }

    fn job(&mut self, change: JobChange, job: &Arc<Job>) {
        match change {
            JobChange::Granted => self.coverage.count("grants"),
            JobChange::Lost => self.coverage.count("lost leases"),
            JobChange::Ended => self.coverage.count("ended jobs"),
            _ => {}
        }
        let facts = self.jobs.entry(job.id).or_default();
        facts.live = job.lease.as_ref().map(|lease| lease.token);
        facts.ended = job.status.is_terminal();
        facts.last = Some(Arc::clone(job));
    }

    /// Updates the job facts from a state.
    fn resume(&mut self, state: &State) {
        for job in every_job(state) {
            let facts = self.jobs.entry(job.id).or_default();
            facts.live = job.lease.as_ref().map(|lease| lease.token);
            facts.ended = job.status.is_terminal();
            facts.last = Some(Arc::clone(job));
        }
    }
}

/// An observation as one line that distinguishes two runs.
fn in_words(seen: &Seen) -> String {
    let chain = |state: &State| state.chain().iter().take(4).map(|byte| format!("{byte:02x}")).collect::<String>();
    match seen {
        Seen::Applied { member, batch } => {
            format!("c{} applied {} at {} {}", member + 1, batch.seq, batch.index, chain(&batch.state))
        }
        Seen::Event { event, .. } => format!("event {}", event.seq),
        Seen::Missed { state } => format!("nobody saw what came before {}", state.seq()),
        Seen::Up { member, state } => format!("c{} up at {} {}", member + 1, state.seq(), chain(state)),
        Seen::Answered { client, ask, answer, .. } => {
            format!("u{client} {} -> {}", ask_in_words(ask), answer_in_words(answer))
        }
        Seen::Unanswered { client, ask, .. } => format!("u{client} {} -> ?", ask_in_words(ask)),
        Seen::Logged { member, entries } => format!("c{} holds {} entries", member + 1, entries.len()),
        other => format!("{other:?}"),
    }
}

fn ask_in_words(ask: &Ask) -> String {
    match ask {
        Ask::Change(request) => {
            let name = request.origin.request_id.as_ref().map(ToString::to_string).unwrap_or_default();
            format!("change {name}")
        }
        Ask::Read(job) => format!("read {job}"),
        Ask::Stale(job, seq) => format!("stale {job} from {seq}"),
        Ask::Wait(job) => format!("wait for {job}"),
    }
}

fn answer_in_words(answer: &Answer) -> String {
    match answer {
        Answer::Outcome(outcome) => format!("{outcome:?}"),
        Answer::Job { job, seq } => format!("{:?} at {seq}", job.as_ref().map(|job| job.status)),
        Answer::NotLeader => "not leader".to_owned(),
        Answer::Unknown => "unknown".to_owned(),
    }
}
