//! Many jobs in one call: proposed together, in order, as far as the queue has space.

use std::sync::Arc;
use std::time::Duration;

use atlas_desk::{Caller, Error};
use atlas_types::{ErrorKind, INLINE_BYTES_MAX, JobId, Seq};

use crate::submit::Draft;
use crate::{Jobs, Submission};

/// The most jobs in one proposal. They share an entry and leave space for the proposals of other callers.
const TOGETHER_MAX: usize = 256;
/// The most bytes of inputs in one proposal, for the same reason. A single job may have more.
const TOGETHER_BYTES_MAX: usize = 512 << 10;
/// How often a full queue is checked when no event reports free space.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The result of one job of many. Several jobs may share one error.
pub type Submitted = Result<JobId, Arc<Error>>;

impl Jobs {
    /// Submits jobs in order and returns their results in the same order. If the queue is full, the remaining jobs wait
    /// for at most `wait`, and are refused after that.
    pub async fn submit_many(&self, caller: &Caller, submissions: &[Submission], wait: Duration) -> Vec<Submitted> {
        let until = self.desk.env.clock.monotonic() + wait;
        let mut answers: Vec<Option<Submitted>> = submissions.iter().map(|_| None).collect();
        let mut left: Vec<usize> = (0..submissions.len()).collect();
        while !left.is_empty() {
            let together = self.together(submissions, &left);
            let behind = left.split_off(together);
            let submitted = self.submit_together(caller, submissions, &left).await;
            let mut refusal = None;
            let mut again = Vec::new();
            for (index, answer) in left.into_iter().zip(submitted) {
                match answer {
                    Err(error) if error.kind() == ErrorKind::Busy => {
                        refusal.get_or_insert(error);
                        again.push(index);
                    }
                    answer => {
                        if let Err(error) = &answer
                            && error.retry_after().is_some()
                        {
                            refusal.get_or_insert_with(|| error.clone());
                        }
                        set(&mut answers, index, answer);
                    }
                }
            }
            left = again.into_iter().chain(behind).collect();
            if let Some(refusal) = refusal
                && !self.has_room(&refusal, until).await
            {
                let refusal = not_sent(refusal);
                left.drain(..).for_each(|index| set(&mut answers, index, Err(refusal.clone())));
            }
        }
        answers.into_iter().map(|answer| answer.unwrap_or_else(|| Err(Arc::new(Error::Internal)))).collect()
    }

    /// How many of the remaining jobs go into the next proposal: at most as many as the queue has space for, so that
    /// the accepted jobs are the first ones.
    fn together(&self, submissions: &[Submission], left: &[usize]) -> usize {
        let state = self.desk.handle.applied();
        let room = state.config().jobs_active_max.saturating_sub(state.active());
        let max = usize::try_from(room).unwrap_or(usize::MAX).clamp(1, TOGETHER_MAX);
        let mut bytes = 0;
        let fits = |index: &&usize| {
            let input = submissions.get(**index).map_or(0, |submission| submission.input.len());
            bytes += if input > INLINE_BYTES_MAX { 0 } else { input };
            bytes <= TOGETHER_BYTES_MAX
        };
        left.iter().take(max).take_while(fits).count().max(1)
    }

    async fn submit_together(&self, caller: &Caller, submissions: &[Submission], indexes: &[usize]) -> Vec<Submitted> {
        let chosen = indexes.iter().filter_map(|index| submissions.get(*index));
        let mut drafts: Vec<Draft<'_>> =
            chosen.map(|submission| Draft::new(caller, submission, self.draw_id())).collect();
        let failed = self.submit_drafts(caller, &mut drafts, None).await.err().unwrap_or(Error::Overloaded);
        let failed = Arc::new(failed);
        let answer = |draft: Draft<'_>| match draft.answer {
            Some(answer) => answer.map_err(Arc::new),
            None => Err(failed.clone()),
        };
        drafts.into_iter().map(answer).collect()
    }

    /// Waits until a refused job may be accepted. False if waiting does not help or there is no time left.
    async fn has_room(&self, refusal: &Error, until: Duration) -> bool {
        let clock = &self.desk.env.clock;
        if refusal.kind() != ErrorKind::Busy {
            return false;
        }
        loop {
            let left = until.saturating_sub(clock.monotonic());
            if left.is_zero() {
                return false;
            }
            if !matches!(refusal, Error::QueueFull { .. }) {
                clock.sleep(LOOK_EVERY.min(left)).await;
                return true;
            }
            let state = self.desk.handle.applied();
            if state.active() < state.config().jobs_active_max {
                return true;
            }
            self.desk.handle.wait_applied(Seq(state.seq().0 + 1), LOOK_EVERY.min(left)).await;
        }
    }
}

fn set(answers: &mut [Option<Submitted>], index: usize, answer: Submitted) {
    if let Some(place) = answers.get_mut(index) {
        *place = Some(answer);
    }
}

/// The error of jobs that were not proposed because an earlier proposal failed. Their outcome is known: they were not
/// submitted.
fn not_sent(refusal: Arc<Error>) -> Arc<Error> {
    if matches!(*refusal, Error::OutcomeUnknown) { Arc::new(Error::NoLeader) } else { refusal }
}
