//! Timers on the cluster's clock: one ordered index for every kind of object.
//!
//! An object has at most one timer, which is a function of that object alone. The leader tasks read the index by due
//! time and handle due timers; `apply` checks the time again. Triggers alone fire by the wall clock, because their times are those of
//! people.

use atlas_objects::TriggerStatus;
use atlas_types::{
    AgentName, AgentVersion, ClusterTime, Digest, Job, JobId, JobStatus, JoinToken, Micros, Namespace, Object,
    ObjectKey, Question, QuestionId, Reason, Timestamp, Version,
};

use crate::map::Set;

/// How much longer than its own limits a running job may take until the controller steps in: its worker enforces start-up and
/// execution timeouts itself and is only slow, or lost without a trace, if this passes as well.
pub const EXECUTION_GRACE: Micros = Micros::from_secs(10);

/// The most that a worker takes to prepare an attempt, which is nothing of its start-up or execution.
pub const PREPARATION_MAX: Micros = Micros::from_secs(600);

/// Something that is due at a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timer {
    /// When.
    pub due: ClusterTime,
    /// For what.
    pub key: TimerKey,
}

/// What a timer is for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerKey {
    /// A job; [`job_timer`] says what is due for it.
    Job(JobId),
    /// A join token, which expires.
    JoinToken(Digest),
    /// A retired agent version, which is kept for a time after it was retired.
    RetiredAgent(Namespace, AgentName, Version),
    /// An open question, whose time passes.
    Question(QuestionId),
}

/// What is due for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerKind {
    /// Its backoff or its delay has passed, or a time for which it is parked has come.
    Wake,
    /// It has waited for its first grant as long as it may.
    QueueTimeout,
    /// The orchestrator has not decided on it in time.
    Route,
    /// Its worker, or the run that carries it, should have ended it by now.
    Execution,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Timers {
    due: Set<Timer>,
    /// Things that are kept for as long as the leader's options say, by the time since when: the state does not know when they
    /// are due.
    kept: Set<Timer>,
    /// Triggers by the time at which they fire next.
    fires: Set<(Timestamp, ObjectKey)>,
    /// Triggers whose next time is not known: they are new, or their spec has changed.
    unplanned: Set<ObjectKey>,
}

impl Timers {
    pub(crate) fn job(&mut self, old: Option<&Job>, new: Option<&Job>) {
        let timer = |job: &Job| job_timer(job).map(|(due, _)| Timer { due, key: TimerKey::Job(job.id) });
        change(&mut self.due, old.and_then(timer), new.and_then(timer));
    }

    pub(crate) fn join_token(&mut self, old: Option<&JoinToken>, new: Option<&JoinToken>) {
        let timer = |token: &JoinToken| Timer { due: token.expires, key: TimerKey::JoinToken(token.hash) };
        change(&mut self.due, old.map(timer), new.map(timer));
    }

    pub(crate) fn question(&mut self, old: Option<&Question>, new: Option<&Question>) {
        let timer = |question: &Question| {
            let due = question.due.filter(|_| question.is_open())?;
            Some(Timer { due, key: TimerKey::Question(question.id) })
        };
        change(&mut self.due, old.and_then(timer), new.and_then(timer));
    }

    pub(crate) fn agent(&mut self, old: Option<&AgentVersion>, new: Option<&AgentVersion>) {
        change(&mut self.kept, old.and_then(retired), new.and_then(retired));
    }

    pub(crate) fn object(&mut self, old: Option<&Object>, new: Option<&Object>) {
        let plan = |object: Option<&Object>| {
            let object = object.filter(|object| object.key.kind.as_str() == "trigger")?;
            Some((object.key.clone(), TriggerStatus::of(object).planned(object.revision)))
        };
        match plan(old) {
            Some((key, Some(next))) if next > Timestamp::NOT_YET => drop(self.fires.remove(&(next, key))),
            Some((key, None)) => drop(self.unplanned.remove(&key)),
            _ => {}
        }
        match plan(new) {
            Some((key, Some(next))) if next > Timestamp::NOT_YET => drop(self.fires.insert((next, key))),
            Some((key, None)) => drop(self.unplanned.insert(key)),
            _ => {}
        }
    }

    /// Triggers by the time at which they fire next, the first first.
    pub(crate) fn fires(&self) -> impl Iterator<Item = &(Timestamp, ObjectKey)> {
        self.fires.iter()
    }

    /// Triggers whose next time is not known.
    pub(crate) fn unplanned(&self) -> impl Iterator<Item = &ObjectKey> {
        self.unplanned.iter()
    }

    /// What is due at or before `now`, the first due first.
    pub(crate) fn due(&self, now: ClusterTime) -> impl Iterator<Item = &Timer> {
        self.due.iter().take_while(move |timer| timer.due <= now)
    }

    /// What is kept since `time` or longer, the oldest first.
    pub(crate) fn kept_since(&self, time: ClusterTime) -> impl Iterator<Item = &Timer> {
        self.kept.iter().take_while(move |timer| timer.due <= time)
    }

    /// Whether a timer is there.
    pub(crate) fn contains(&self, timer: &Timer) -> bool {
        self.due.contains(timer)
    }

    /// The next due time.
    pub(crate) fn next(&self) -> Option<ClusterTime> {
        self.due.get_min().map(|timer| timer.due)
    }
}

fn change(timers: &mut Set<Timer>, was: Option<Timer>, is: Option<Timer>) {
    if was == is {
        return;
    }
    if let Some(timer) = was {
        timers.remove(&timer);
    }
    if let Some(timer) = is {
        timers.insert(timer);
    }
}

/// What is due for a job, and when.
pub fn job_timer(job: &Job) -> Option<(ClusterTime, TimerKind)> {
    if let (JobStatus::Pending, Reason::Routing { until }) = (job.status, job.reason) {
        return routing_timer(job, until);
    }
    let spec = job.spec.as_ref()?;
    match (job.status, job.reason) {
        (JobStatus::Pending, Reason::Backoff { until } | Reason::Delayed { until }) => Some((until, TimerKind::Wake)),
        (JobStatus::Pending, Reason::Parked) => Some((job.parked.as_ref()?.due?, TimerKind::Wake)),
        (JobStatus::Pending, Reason::Queued) if job.attempt.0 == 0 => {
            Some((job.queued_at.plus(spec.timeouts.queue?), TimerKind::QueueTimeout))
        }
        // Nobody but the leader enforces the limit of a job that a run carries.
        (JobStatus::Running, _) if let Some(carried) = job.carrier() => {
            Some((carried.since.plus(job.execution_left()?), TimerKind::Execution))
        }
        (JobStatus::Running, _) => {
            let limit = [PREPARATION_MAX, spec.timeouts.startup, job.execution_left()?, EXECUTION_GRACE];
            let granted_at = job.lease.as_ref()?.granted_at;
            Some((limit.into_iter().fold(granted_at, ClusterTime::plus), TimerKind::Execution))
        }
        _ => None,
    }
}

/// The deadline of the orchestrator, or that of the queue if it is earlier.
fn routing_timer(job: &Job, until: ClusterTime) -> Option<(ClusterTime, TimerKind)> {
    let queue = job.spec.as_ref().and_then(|spec| spec.timeouts.queue).map(|limit| job.queued_at.plus(limit));
    match queue.filter(|queue| *queue < until) {
        Some(queue) => Some((queue, TimerKind::QueueTimeout)),
        None => (until != ClusterTime::END).then_some((until, TimerKind::Route)),
    }
}

/// Since when a retired version is kept; none of one whose time of retirement is not known.
fn retired(agent: &AgentVersion) -> Option<Timer> {
    let due = agent.retired_at.filter(|_| agent.retired)?;
    Some(Timer { due, key: TimerKey::RetiredAgent(agent.namespace.clone(), agent.name.clone(), agent.version) })
}
