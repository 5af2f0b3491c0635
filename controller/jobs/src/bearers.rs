//! Bearers: the credentials of callers, in memory, by job, at the controller that received them and at the leader. They are dropped when the
//! job ends. No command, log line or answer of an API contains one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_types::{JobId, Principal, SECRET_BYTES_MAX, SecretText};

/// The most bearers that a controller holds.
const BEARERS_MAX: usize = 65_536;

/// The most bearers that a controller holds for one caller that it has received them from.
const BEARERS_OF_ONE_MAX: usize = 4_096;

/// How long a bearer is held whose job is not known yet.
const UNKNOWN_MAX: Duration = Duration::from_secs(60);

/// Why a bearer is not held.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BearerRefused {
    #[error("the credential has {found} bytes, more than {SECRET_BYTES_MAX}")]
    TooLong { found: usize },
    #[error("the controller holds {BEARERS_MAX} credentials of callers already")]
    Full,
    #[error(
        "the controller holds {BEARERS_OF_ONE_MAX} credentials of jobs of \"{of}\" already; wait until some of them have ended"
    )]
    FullFor { of: Principal },
}

struct Held {
    bearer: SecretText,
    since: Duration,
    /// Who has given it to this controller, if that is known here.
    of: Option<Principal>,
}

#[derive(Default)]
struct All {
    jobs: HashMap<JobId, Held>,
    /// How many each caller has.
    counts: HashMap<Principal, usize>,
}

impl All {
    fn remove(&mut self, job: JobId) {
        let Some(Held { of: Some(of), .. }) = self.jobs.remove(&job) else { return };
        if let Some(count) = self.counts.get_mut(&of) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&of);
            }
        }
    }
}

/// Credentials of callers by job. Cheap to clone.
#[derive(Clone, Default)]
pub struct Bearers(Arc<Mutex<All>>);

impl Bearers {
    /// Holds the bearer of a job that is about to be submitted. `now` is monotonic time.
    pub fn hold(&self, job: JobId, bearer: SecretText, now: Duration) -> Result<(), BearerRefused> {
        self.hold_of(None, job, bearer, now)
    }

    /// The same for a caller, of which a controller holds only so many.
    pub(crate) fn hold_of(
        &self,
        of: Option<&Principal>,
        job: JobId,
        bearer: SecretText,
        now: Duration,
    ) -> Result<(), BearerRefused> {
        let found = bearer.expose().len();
        if found > SECRET_BYTES_MAX {
            return Err(BearerRefused::TooLong { found });
        }
        let mut all = self.all();
        if !all.jobs.contains_key(&job) {
            if all.jobs.len() >= BEARERS_MAX {
                return Err(BearerRefused::Full);
            }
            if let Some(of) = of.filter(|of| all.counts.get(of).is_some_and(|count| *count >= BEARERS_OF_ONE_MAX)) {
                return Err(BearerRefused::FullFor { of: of.clone() });
            }
        }
        all.remove(job);
        if let Some(of) = of {
            *all.counts.entry(of.clone()).or_default() += 1;
        }
        all.jobs.insert(job, Held { bearer, since: now, of: of.cloned() });
        Ok(())
    }

    /// The bearer of a job.
    pub fn of(&self, job: JobId) -> Option<SecretText> {
        self.all().jobs.get(&job).map(|held| held.bearer.clone())
    }

    /// Drops the bearer of a job that has ended.
    pub fn forget(&self, job: JobId) {
        self.all().remove(job);
    }

    /// Drops the bearers of jobs for which `lives` is false, except those that may not have been submitted yet.
    pub fn retain(&self, now: Duration, lives: impl Fn(JobId) -> bool) {
        let mut all = self.all();
        let is_over = |job: JobId, held: &Held| !lives(job) && now.saturating_sub(held.since) >= UNKNOWN_MAX;
        let over: Vec<JobId> =
            all.jobs.iter().filter(|(job, held)| is_over(**job, held)).map(|(job, _)| *job).collect();
        over.into_iter().for_each(|job| all.remove(job));
    }

    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_000);

    #[test]
    fn a_bearer_is_held_until_its_job_ends() {
        let bearers = Bearers::default();
        assert_eq!(bearers.hold(JobId(1), SecretText::new("one"), NOW), Ok(()));
        assert_eq!(bearers.hold(JobId(1), SecretText::new("two"), NOW), Ok(()));
        assert!(bearers.of(JobId(1)).is_some_and(|bearer| bearer.expose() == "two"));
        bearers.forget(JobId(1));
        assert!(bearers.of(JobId(1)).is_none());
    }

    #[test]
    fn bearers_of_jobs_that_are_gone_are_dropped_after_a_while() {
        let bearers = Bearers::default();
        for job in [1, 2] {
            bearers.hold(JobId(job), SecretText::new("x"), NOW).expect("room");
        }
        bearers.retain(NOW + UNKNOWN_MAX - Duration::from_nanos(1), |_| false);
        assert!(bearers.of(JobId(1)).is_some());
        bearers.retain(NOW + UNKNOWN_MAX, |job| job == JobId(2));
        assert!(bearers.of(JobId(1)).is_none() && bearers.of(JobId(2)).is_some());
    }

    #[test]
    fn bearers_are_bounded() {
        let bearers = Bearers::default();
        let long = SecretText::new("x".repeat(SECRET_BYTES_MAX + 1));
        let refused = bearers.hold(JobId(1), long, NOW).expect_err("too long");
        assert_eq!(refused.to_string(), "the credential has 16385 bytes, more than 16384");
        for job in 0..BEARERS_MAX as u64 {
            bearers.hold(JobId(job), SecretText::new("x"), NOW).expect("room");
        }
        assert_eq!(bearers.hold(JobId(u64::MAX), SecretText::new("x"), NOW), Err(BearerRefused::Full));
        assert_eq!(bearers.hold(JobId(0), SecretText::new("y"), NOW), Ok(()));
    }
    #[test]
    fn one_caller_does_not_take_the_room_of_the_others() {
        let bearers = Bearers::default();
        let [ann, bob] = ["ann", "bob"].map(|name| Principal::new(name).expect("a name"));
        let hold = |of: &Principal, job: u64| bearers.hold_of(Some(of), JobId(job), SecretText::new("x"), NOW);
        let max = BEARERS_OF_ONE_MAX as u64;
        for job in 0..max {
            hold(&ann, job).expect("room");
        }
        // A repeat takes no more room.
        hold(&ann, 0).expect("room");
        assert_eq!(hold(&ann, max), Err(BearerRefused::FullFor { of: ann.clone() }));
        hold(&bob, max).expect("room");
        bearers.forget(JobId(0));
        bearers.forget(JobId(0));
        hold(&ann, 0).expect("room");
        assert!(hold(&ann, max + 1).is_err());
        bearers.retain(NOW + UNKNOWN_MAX, |job| job == JobId(max));
        hold(&ann, max + 1).expect("room");
        assert_eq!(bearers.all().counts, HashMap::from([(ann, 1), (bob, 1)]));
    }
}
