//! Journals of the reference model, and jobs that park.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{
    FoldSteps, JOURNAL_INLINE_BYTES_MAX, JobId, JobStatus, Micros, ParkJob, PayloadBody, Reason, RecordSteps, Step,
    Wait,
};

use super::Naive;

impl Naive {
    pub(super) fn record(&mut self, command: &RecordSteps) -> bool {
        let Some((_, job)) = self.leased(command.job, command.token) else { return false };
        let from = command.from as usize;
        if from > job.journal.len() {
            return false;
        }
        let known = command.steps.len().min(job.journal.len() - from);
        let same = |at: usize| from + at < job.folded || job.journal[from + at] == command.steps[at];
        if !(0..known).all(same) {
            return false;
        }
        let added = &command.steps[known..];
        let bytes: u64 = job.journal[job.folded..].iter().chain(added).map(|step| step.bytes()).sum();
        let fits = added.is_empty() || bytes <= JOURNAL_INLINE_BYTES_MAX;
        if fits {
            job.journal.extend(added.iter().cloned());
        }
        fits
    }

    pub(super) fn fold(&mut self, command: &FoldSteps) -> bool {
        let Some((_, job)) = self.leased(command.job, command.token) else { return false };
        let upto = command.upto as usize;
        if matches!(command.artifact.body, PayloadBody::Inline(_)) {
            return false;
        }
        if job.fold_end == Some(command.upto) {
            return true;
        }
        let follows = upto > job.folded && upto <= job.journal.len();
        if follows {
            (job.folded, job.fold_end) = (upto, Some(command.upto));
        }
        follows
    }

    pub(super) fn park(&mut self, command: &ParkJob) -> bool {
        let (at, clock) = (self.at, self.clock);
        let Some((id, job)) = self.leased(command.job, command.token) else { return false };
        if job.reason == Reason::Cancelling {
            self.end(id, JobStatus::Cancelled);
            return true;
        }
        let recorded = job.journal.len() as u64;
        let [Wait::Time { at: until }] = command.waits[..] else { return false };
        if recorded == 0 || command.journal_length != recorded {
            return false;
        }
        if until > at && until > job.slept_until {
            job.sleeps_until = until;
            (job.status, job.reason, job.lease) = (JobStatus::Pending, Reason::Parked, None);
            (job.parks, job.used) = (job.parks + 1, Micros(job.used.0 + command.used.0));
            job.wakes = Some(clock.plus(Micros((until.0 - at.0) as u64)));
        }
        true
    }

    /// The steps that each job has inline.
    pub(in super::super) fn journals(&self) -> BTreeMap<JobId, (u64, Vec<Arc<Step>>)> {
        let recorded = self.jobs.iter().filter(|(_, job)| !job.journal.is_empty());
        recorded.map(|(id, job)| (*id, (job.folded as u64, job.journal[job.folded..].to_vec()))).collect()
    }
}
