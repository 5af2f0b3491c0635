//! Calls that no model answers because the provider is down: how long a job waits for it. The pauses are those of [`Outage`].

use std::time::Duration;

use crate::attempt::Work;
use atlas_env::Clock;
use atlas_model::CallError;
use atlas_turn::Outage;

/// The time limit of jobs whose contract states none. Such a job waits as long as its models may be tried.
const EXECUTION_DEFAULT: Duration = Duration::from_secs(60);

/// What the last try of a wait has at least: the time of a connection.
const LAST_TRY: Duration = Duration::from_secs(10);

/// What is recorded of outages before the next call.
#[derive(Debug, Default)]
pub(in crate::provider) struct Before {
    /// The one that the job waits for.
    pub(in crate::provider) outage: Option<Outage>,
    /// The steps, also those of jobs that this one goes on from.
    pub(in crate::provider) steps: u64,
}

/// How long a call may take.
#[derive(Debug, Default, Clone, Copy)]
pub(in crate::provider) struct Patience {
    /// For how long a provider that is down is tried again before the caller waits for it. None if the caller does not wait.
    pub(in crate::provider) down: Option<Duration>,
    /// Longest time of the call, if it is one after an outage.
    pub(in crate::provider) longest: Option<Duration>,
}

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
    /// When the attempt ends, with time to say why.
    attempt_end: Duration,
}

impl Limit {
    /// The limit of an attempt that begins now: what the contract says of outages, or the time limit of the job, if its contract or its
    /// submission states one. A job that does not park waits no longer than its attempt may take. The wait ends before the time limit does,
    /// so that the error says what the call met.
    pub(in crate::provider) fn of(work: &Work, parks: bool, now: Duration) -> Self {
        let left = work.assignment.execution_timeout.as_duration();
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let contract = &work.agent.contract;
        let stated =
            work.assignment.submitted_timeout.is_some() || seconds(contract.execution_timeout) != EXECUTION_DEFAULT;
        let attempt = left.saturating_sub((left / 10).min(Duration::from_secs(1)));
        let wait = match contract.provider.llm.outage_wait_seconds.map(seconds) {
            Some(wait) if parks => Some(wait),
            Some(wait) => Some(wait.min(attempt)),
            None => (stated || !parks).then_some(attempt),
        };
        let (end, attempt_end) = (wait.map(|wait| now.saturating_add(wait)), now.saturating_add(attempt));
        Self { waits: wait != Some(Duration::ZERO), end, attempt_end }
    }

    /// What is left of the attempt. It ends in its time also when that passes with tries that no provider answers, which the job does not use up.
    pub(in crate::provider) fn attempt_left(&self, clock: &dyn Clock) -> Duration {
        self.attempt_end.saturating_sub(clock.monotonic())
    }

    /// Waits for what is left of a pause that began at this time of the monotonic clock. The clock of the leader may be ahead of that of the
    /// worker: then it says at once that the time of the next try has come.
    pub(in crate::provider) async fn rest(&self, pause: Duration, began: Duration, clock: &dyn Clock) {
        let left = began.saturating_add(pause).saturating_sub(clock.monotonic());
        clock.sleep(left.min(self.attempt_left(clock))).await;
    }

    /// For how long the next call tries a provider that is down, and how long it may take in all.
    pub(in crate::provider) fn patience(&self, outage: Option<&Outage>, clock: &dyn Clock) -> Patience {
        let wall = clock.wall().0;
        let age = outage.map_or(Duration::ZERO, |outage| outage.age(wall));
        let left = match outage {
            Some(outage) => outage.left(wall),
            None => self.end.map_or(Duration::MAX, |end| end.saturating_sub(clock.monotonic())),
        };
        let attempt = self.attempt_left(clock);
        let longest = outage.map(|outage| outage.left(wall).max(LAST_TRY).min(attempt));
        Patience { down: self.waits.then(|| Outage::IN_PLACE.saturating_sub(age).min(left)), longest }
    }
}

#[cfg(test)]
mod tests {
    use atlas_env::Env;

    use super::*;

    #[test]
    fn a_try_after_an_outage_ends_with_the_wait_and_with_the_attempt() {
        let clock = Env::system().clock;
        let of = |attempt, wait| {
            let attempt_end = clock.monotonic().saturating_add(Duration::from_secs(attempt));
            let limit = Limit { waits: true, end: None, attempt_end };
            let outage = Outage::begin("fast", "refused", clock.wall().0, Duration::from_secs(wait));
            let longest = limit.patience(Some(&outage), &*clock).longest.expect("a limit");
            assert_eq!(limit.patience(None, &*clock).longest, None);
            // Seconds that a slow machine does not miss.
            longest.as_secs_f64() / 1_000.0
        };
        for (attempt, wait, expected) in [(50_000, 90_000, 50.0), (90_000, 50_000, 50.0), (50_000, 0, 0.01)] {
            assert!((of(attempt, wait) - expected).abs() < 1.0, "{attempt} {wait}");
        }
        assert_eq!(of(0, 90_000), 0.0);
    }
}
