//! Calls that no model answers because the provider is down: how long a job waits for it. The pauses are those of [`Outage`].

use std::time::Duration;

use atlas_env::Clock;
use atlas_model::CallError;
use atlas_turn::Outage;

use crate::slot::Work;

/// The time limit of jobs whose contract states none. Such a job waits as long as its models may be tried.
const EXECUTION_DEFAULT: Duration = Duration::from_secs(60);

/// A call that no model answered, because a provider is down.
#[derive(Debug)]
pub(in crate::provider) struct Down {
    /// The error of the job if it does not wait.
    pub(in crate::provider) error: CallError,
    /// The model that is down; the first of them if several are.
    pub(in crate::provider) model: String,
    /// What the call met.
    pub(in crate::provider) why: String,
    /// The pause that the provider asks for.
    pub(in crate::provider) named: Option<Duration>,
    /// For how long a call may be tried if the job states no limit.
    pub(in crate::provider) longest: Duration,
    /// Takes a part of the pause away.
    pub(in crate::provider) random: u64,
}

/// Why a call has no answer.
#[derive(Debug)]
pub(in crate::provider) enum Unanswered {
    Down(Box<Down>),
    Failed(CallError),
}

impl From<CallError> for Unanswered {
    fn from(error: CallError) -> Self {
        Self::Failed(error)
    }
}

impl Unanswered {
    /// The error of a job that does not wait.
    pub(in crate::provider) fn into_error(self) -> CallError {
        match self {
            Self::Down(down) => down.error,
            Self::Failed(error) => error,
        }
    }
}

impl Down {
    /// The outage, which begins now.
    pub(in crate::provider) fn begin(&self, why: &str, clock: &dyn Clock, limit: Limit) -> Outage {
        let left = limit.end.map(|end| end.saturating_sub(clock.monotonic()));
        Outage::begin(&self.model, why, clock.wall().0, left.unwrap_or(self.longest))
    }

    /// The error of a job that has waited long enough.
    pub(in crate::provider) fn given_up(self, waited: Duration) -> CallError {
        let seconds = waited.as_secs();
        let message = format!("{}; the job waited {seconds} s for the model \"{}\"", self.error.message, self.model);
        CallError { message, ..self.error }
    }
}

/// How long an attempt waits for providers.
#[derive(Debug, Clone, Copy)]
pub(in crate::provider) struct Limit {
    waits: bool,
    /// When it stops waiting, by the monotonic clock. None if only the models say for how long they may be tried.
    end: Option<Duration>,
}

impl Limit {
    /// The limit of an attempt that begins now: what the contract says of outages, or the time limit of the job, if its contract or its
    /// submission states one. A job that does not park waits no longer than its attempt may take. The wait ends before the time limit does,
    /// so that the error says what the call met.
    pub(in crate::provider) fn of(work: &Work, parks: bool, now: Duration) -> Self {
        let left = work.assignment.execution_timeout.as_duration();
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let contract = &work.agent.contract;
        // Later attempts have less time left than the limit.
        let is_default = left == EXECUTION_DEFAULT || (work.assignment.attempt.0 > 1 && left < EXECUTION_DEFAULT);
        let stated = seconds(contract.execution_timeout) != EXECUTION_DEFAULT || !is_default;
        let attempt = left.saturating_sub((left / 10).min(Duration::from_secs(1)));
        let wait = match contract.provider.llm.outage_wait_seconds.map(seconds) {
            Some(wait) if parks => Some(wait),
            Some(wait) => Some(wait.min(attempt)),
            None => (stated || !parks).then_some(attempt),
        };
        Self { waits: wait != Some(Duration::ZERO), end: wait.map(|wait| now.saturating_add(wait)) }
    }

    /// For how long a call tries a provider again before the job waits for it, or gives up. None for a job that does not wait.
    pub(in crate::provider) fn patience(&self, outage: Option<&Outage>, clock: &dyn Clock) -> Option<Duration> {
        let wall = clock.wall().0;
        let age = outage.map_or(Duration::ZERO, |outage| outage.age(wall));
        let left = match outage {
            Some(outage) => outage.left(wall),
            None => self.end.map_or(Duration::MAX, |end| end.saturating_sub(clock.monotonic())),
        };
        self.waits.then(|| Outage::IN_PLACE.saturating_sub(age).min(left))
    }
}
