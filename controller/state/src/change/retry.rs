//! New jobs for work that failed: automatic retries, and what every retry takes over.

use std::sync::Arc;

use atlas_types::{
    Event, Evidence, Failure, FailureKind, Fold, Fork, Job, JobId, JobStatus, Journal, Micros, Reason, RetryRule,
    Timestamp, level,
};

use super::Change;

impl Change<'_> {
    /// The job that follows a failed one, if its contract asks for one (compatibility §13.6). Admission limits do not count here: each
    /// admitted job has at most one such follower at a time.
    pub(super) fn retry_of(&self, job: &Job, failure: &Failure) -> Option<Job> {
        let (rule, config) = (job.spec.as_ref()?.retry, &self.state.config);
        let bounded = self.state.level >= level::RETRY_BOUNDS;
        let most = if bounded { rule.max_retries.min(RetryRule::RETRIES_MAX) } else { rule.max_retries };
        // Nobody is there to send the credential again, and what was not approved must not run.
        if job.bearer
            || !job.is_approved()
            || job.retry_count >= most
            || !config.retry_deterministic && comes_again(failure.kind)
        {
            return None;
        }
        let number = u64::from(job.retry_count) + 1;
        // From the job itself, which fails once, and not from the first of its family, which may have several followers of
        // this number when a person retried it: history keeps the ids of jobs that are gone from here.
        let mut id = job.id.derive(number);
        while self.state.jobs.contains(id) {
            id = id.derive(number);
        }
        let factor = 1_u64.checked_shl(job.retry_count).unwrap_or(u64::MAX);
        let backoff = Micros(rule.backoff_base.0.saturating_mul(factor));
        let backoff = config.backoff_max.map_or(backoff, |longest| backoff.min(longest));
        let until = self.clock.plus(if bounded { backoff.max(RetryRule::BACKOFF_MIN) } else { backoff });
        let retry_count = job.retry_count + 1;
        let fork = if self.keeps_record(job) { job.fork.clone() } else { begun_anew(job) };
        Some(Job { retry_count, reason: Reason::Backoff { until }, request_id: None, fork, ..again(job, id) })
    }

    /// Whether the automatic retry of a job goes on after its recorded steps. Those of a durable program are done, and doing them again
    /// would be a second payment; a model is asked anew instead.
    pub(super) fn keeps_record(&self, job: &Job) -> bool {
        self.state.level >= level::DURABLE && job.spec.as_ref().is_some_and(|spec| spec.durable)
    }

    /// Gives a new job the recorded steps of the one that it continues.
    pub(crate) fn continue_record(&mut self, job: JobId, journal: &Arc<Journal>) {
        self.put_journal(job, journal);
        for Fold { upto, artifact } in journal.folds.iter().cloned() {
            self.emit(Event::StepsFolded { job, upto, artifact });
        }
        if !journal.steps.is_empty() {
            self.emit(Event::StepsRecorded { job, from: journal.first(), steps: journal.steps[..].into() });
        }
    }
}

/// Whether the same input brings the same failure again.
fn comes_again(kind: FailureKind) -> bool {
    use FailureKind::{Dependency, InputInvalid, OutputInvalid, Rejected};
    matches!(kind, InputInvalid | OutputInvalid | Dependency | Rejected)
}

/// A fresh job for the same work as `job`, linked to the first of its family.
pub(crate) fn again(job: &Job, id: JobId) -> Job {
    Job {
        id,
        status: JobStatus::Pending,
        reason: Reason::Queued,
        output: None,
        failure: None,
        started_at: Timestamp::NOT_YET,
        completed_at: Timestamp::NOT_YET,
        warmup: Micros::default(),
        execution: Micros::default(),
        warm: false,
        attempt: Default::default(),
        parks: 0,
        used: Micros::default(),
        parked: None,
        slept_until: Timestamp::NOT_YET,
        node: None,
        lease: None,
        carried: None,
        original: Some(job.original.unwrap_or(job.id)),
        successor: None,
        stream: None,
        journal: None,
        evidence: allowed_by(job),
        fork: begun_anew(job),
        // What did not run is decided on again.
        route: job.route.clone().filter(|route| route.action.runs()),
        ..job.clone()
    }
}

/// Of its evidence a retry has the policies alone: it is not submitted again.
fn allowed_by(job: &Job) -> Option<Arc<Evidence>> {
    let policies = &job.evidence.as_ref()?.policies;
    (!policies.is_empty()).then(|| Arc::new(Evidence { policies: policies.clone(), ..Evidence::default() }))
}

/// A retry of a fork keeps its model and begins without the copied steps.
pub(crate) fn begun_anew(job: &Job) -> Option<Arc<Fork>> {
    job.fork.as_ref().map(|fork| Arc::new(Fork { steps: 0, ..(**fork).clone() }))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn an_automatic_retry_of_a_durable_job_has_its_steps_and_one_of_another_job_has_none() {
        check(
            "level 6; agent a retries=2 backoff=0 durable=true; agent b retries=1 backoff=0; node n1 places=2;
            job j1 agent=a; grant j1 n1; record j1 from=0 steps=m,t; job j2 agent=b; grant j2 n1; record j2 from=0 steps=m --
            fail j1; journal j1'1; clock +10; wake j1'1; grant j1'1 n1; record j1'1 from=2 steps=t; fail j1'1; journal j1'2;
            fail j2; journal j2'1",
            expect![[r#"
                j1 Ended running→failed Agent: boom
                j1'1 Submitted pending→pending Backoff { until: ClusterTime(1100000) }
                j1'1 steps from 0: model tools
                j1'1: folds [] steps model tools of 132 bytes
                j1'1 Woken pending→pending Queued
                j1'1 Granted pending→running on n1 token 3 attempt 1
                j1'1 steps from 2: tools
                j1'1 Ended running→failed Agent: boom
                j1'2 Submitted pending→pending Backoff { until: ClusterTime(11100000) }
                j1'2 steps from 0: model tools tools
                j1'2: folds [] steps model tools tools of 198 bytes
                j2 Ended running→failed Agent: boom
                j2'1 Submitted pending→pending Backoff { until: ClusterTime(11100000) }
                j2'1: no journal
            "#]],
        );
    }
}
