//! Runs of chains: those that go on with a step, those that have ended, the lists of a namespace, and the jobs of their steps.

use atlas_types::{EventSeq, Job, JobId, Namespace, Run, RunId};

use crate::map::{Map, Set};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Chains {
    /// Runs whose next step can begin.
    ready: Set<RunId>,
    /// Runs that have ended, by the event that ended them.
    ended: Map<EventSeq, RunId>,
    /// Runs by the event that started them.
    started: Map<Namespace, Map<EventSeq, RunId>>,
    /// The unended job of each step, by the first job of its family.
    jobs: Map<JobId, JobId>,
    pub(crate) active: u64,
    /// Payload bytes of all runs.
    pub(crate) bytes: u64,
}

impl Chains {
    /// One run changed, appeared or went.
    pub(crate) fn run(&mut self, old: Option<&Run>, new: Option<&Run>) {
        if let Some(run) = old {
            self.remove(run);
        }
        if let Some(run) = new {
            self.add(run);
        }
    }

    fn add(&mut self, run: &Run) {
        self.bytes += run.inline_bytes();
        self.active += u64::from(!run.status.is_terminal());
        if run.is_ready() {
            self.ready.insert(run.id);
        }
        if let Some(event) = run.ended {
            self.ended.insert(event, run.id);
        }
        self.started.entry(run.namespace.clone()).or_default().insert(run.started, run.id);
    }

    fn remove(&mut self, run: &Run) {
        self.bytes -= run.inline_bytes();
        self.active -= u64::from(!run.status.is_terminal());
        self.ready.remove(&run.id);
        if let Some(event) = run.ended {
            self.ended.remove(&event);
        }
        let of_namespace = self.started.entry(run.namespace.clone()).or_default();
        of_namespace.remove(&run.started);
        if of_namespace.is_empty() {
            self.started.remove(&run.namespace);
        }
    }

    /// One job changed, appeared or went.
    pub(crate) fn job(&mut self, old: Option<&Job>, new: Option<&Job>) {
        let live = |job: &&Job| job.step.is_some() && !job.status.is_terminal();
        if let Some(job) = old.filter(live)
            && self.jobs.get(&job.first()) == Some(&job.id)
        {
            self.jobs.remove(&job.first());
        }
        if let Some(job) = new.filter(live) {
            self.jobs.insert(job.first(), job.id);
        }
    }

    /// Runs whose next step can begin.
    pub(crate) fn ready(&self) -> impl Iterator<Item = RunId> + '_ {
        self.ready.iter().copied()
    }

    /// How many runs that have ended are kept.
    pub(crate) fn ended_total(&self) -> u64 {
        self.ended.len() as u64
    }

    /// The run that ended first.
    pub(crate) fn ended_first(&self) -> Option<RunId> {
        self.ended.get_min().map(|(_, run)| *run)
    }

    /// The runs of a namespace, the newest first.
    pub(crate) fn newest<'a>(&'a self, namespace: &Namespace) -> impl Iterator<Item = RunId> + use<'a> {
        self.started.get(namespace).into_iter().flat_map(|runs| runs.iter().rev().map(|(_, run)| *run))
    }

    /// The job of a step that has not ended, by the first job of its family.
    pub(crate) fn job_of(&self, first: JobId) -> Option<JobId> {
        self.jobs.get(&first).copied()
    }
}
