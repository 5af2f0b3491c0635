//! What is due when, on the cluster's own clock. A job has at most one timer.

use atlas_types::{ClusterTime, Job, JobId, JobStatus, Micros, Reason};

use crate::map::Set;

/// How much longer than its own limits a running job may take until the controller steps in: its worker enforces start-up and
/// execution timeouts itself and is only slow, or lost without a trace, if this passes as well.
pub const EXECUTION_GRACE: Micros = Micros::from_secs(10);

/// The most that a worker takes to prepare an attempt, which is nothing of its start-up or execution.
pub const PREPARATION_MAX: Micros = Micros::from_secs(600);

/// Something that is due for a job at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer {
    /// When.
    pub due: ClusterTime,
    /// For which job.
    pub job: JobId,
    /// What.
    pub kind: TimerKind,
}

/// What is due for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimerKind {
    /// Its back-off or its delay has passed.
    Wake,
    /// It has waited for its first grant as long as it may.
    QueueTimeout,
    /// Its worker should have ended it by now.
    Execution,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Timers {
    due: Set<(ClusterTime, JobId)>,
}

impl Timers {
    pub(crate) fn change(&mut self, old: Option<&Job>, new: Option<&Job>) {
        let (was, is) = (old.and_then(of), new.and_then(of));
        let (was, is) = (was.map(|timer| (timer.due, timer.job)), is.map(|timer| (timer.due, timer.job)));
        if was == is {
            return;
        }
        if let Some(key) = was {
            self.due.remove(&key);
        }
        if let Some(key) = is {
            self.due.insert(key);
        }
    }

    /// Jobs with something due at or before `now`, the first due first.
    pub(crate) fn due(&self, now: ClusterTime) -> impl Iterator<Item = JobId> + '_ {
        self.due.iter().take_while(move |(due, _)| *due <= now).map(|(_, job)| *job)
    }

    /// The next due time.
    pub(crate) fn next(&self) -> Option<ClusterTime> {
        self.due.get_min().map(|(due, _)| *due)
    }
}

/// The timer of a job.
pub(crate) fn of(job: &Job) -> Option<Timer> {
    let spec = job.spec.as_ref()?;
    let (due, kind) = match (job.status, job.reason) {
        (JobStatus::Pending, Reason::Backoff { until } | Reason::Delayed { until }) => (until, TimerKind::Wake),
        (JobStatus::Pending, Reason::Queued) if job.attempt.0 == 0 => {
            (job.queued_at.plus(spec.timeouts.queue?), TimerKind::QueueTimeout)
        }
        (JobStatus::Running, _) => {
            let execution = job.execution_timeout.unwrap_or(spec.timeouts.execution);
            let limit = [PREPARATION_MAX, spec.timeouts.startup, execution, EXECUTION_GRACE];
            let granted_at = job.lease.as_ref()?.granted_at;
            (limit.into_iter().fold(granted_at, ClusterTime::plus), TimerKind::Execution)
        }
        _ => return None,
    };
    Some(Timer { due, job: job.id, kind })
}
