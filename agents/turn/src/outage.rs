//! What a job does while the provider of its models is down: it asks again after pauses that grow, for a limited time.
//!
//! The first outage of a call that lasts longer than [`Outage::IN_PLACE`] is recorded as a step before the call. A later attempt
//! reads there since when the job waits, and how long it will.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Key;

/// An outage that a job waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    /// The model that is down; the first of them if several are.
    pub model: String,
    /// When the job noticed it, in microseconds since 1970.
    pub since_us: i64,
    /// When the job gives up.
    pub until_us: i64,
    /// What the call met.
    pub error: String,
}

/// The outcome of the step that records an outage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutageStep {
    pub outage: Outage,
    /// The job that waits. In the journal of one that goes on from another, the outage says nothing about now.
    #[serde(default)]
    pub job: String,
}

/// When a job asks again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again {
    /// In microseconds since 1970.
    pub at_us: i64,
    /// The pause until then.
    pub pause: Duration,
    /// For how long the job has waited already.
    pub waited: Duration,
    /// Whether the pause may be so long that the job parks meanwhile.
    pub parks: bool,
}

impl Outage {
    /// How long a job waits in its place before it parks.
    pub const IN_PLACE: Duration = Duration::from_secs(5);
    /// The pause while an outage is new, and the shortest and longest one later. All are before jitter. The longest one bounds how
    /// long jobs wait after the outage.
    const FIRST: Duration = Duration::from_secs(2);
    const SHORTEST: Duration = Duration::from_secs(5);
    const LONGEST: Duration = Duration::from_secs(20);
    /// At most so much is added to a pause that the provider names.
    const SPREAD: Duration = Duration::from_secs(10);

    /// An outage that begins now.
    pub fn begin(model: &str, error: &str, now_us: i64, patience: Duration) -> Self {
        let until_us = now_us.saturating_add(micros(patience));
        Self { model: model.to_owned(), since_us: now_us, until_us, error: error.to_owned() }
    }

    /// The key of the step that records the outage of a call.
    pub fn key(call: Key) -> Key {
        Key::of(&("outage", call.0))
    }

    /// The key in a journal whose steps are found in any order, where the outages of jobs that a job goes on from are to be left out.
    pub fn key_of_job(call: Key, job: &str) -> Key {
        Key::of(&("outage", call.0, job))
    }

    /// How long it has lasted.
    pub fn age(&self, now_us: i64) -> Duration {
        Duration::from_micros(u64::try_from(now_us.saturating_sub(self.since_us)).unwrap_or(0))
    }

    /// How long the job goes on waiting.
    pub fn left(&self, now_us: i64) -> Duration {
        Duration::from_micros(u64::try_from(self.until_us.saturating_sub(now_us)).unwrap_or(0))
    }

    /// When the job asks again; none if it has waited long enough. The provider may have named a pause. `random` takes up to half of
    /// the usual pause away and adds up to half of the named one, so that jobs that failed together do not return together.
    pub fn again(&self, now_us: i64, named: Option<Duration>, random: u64) -> Option<Again> {
        let left = Some(self.left(now_us)).filter(|left| !left.is_zero())?;
        let waited = self.age(now_us);
        let full = match waited.saturating_add(Self::FIRST) < Self::IN_PLACE {
            true => Self::FIRST,
            false => waited.clamp(Self::SHORTEST, Self::LONGEST),
        };
        let half = u64::try_from(full.as_micros() / 2).unwrap_or(u64::MAX);
        let pause = full.saturating_sub(Duration::from_micros(random % half.saturating_add(1)));
        let named = named.unwrap_or_default();
        let spread = u64::try_from((named / 2).min(Self::SPREAD).as_micros()).unwrap_or(u64::MAX);
        let named = named.saturating_add(Duration::from_micros(random % spread.saturating_add(1)));
        let pause = pause.max(named).min(left);
        let parks = waited.saturating_add(pause) >= Self::IN_PLACE;
        Some(Again { at_us: now_us.saturating_add(micros(pause)), pause, waited, parks })
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(second: u32) -> i64 {
        i64::from(second) * 1_000_000
    }

    #[test]
    fn pauses_grow_with_the_outage_and_end_with_the_patience_of_the_job() {
        let outage = Outage::begin("fast", "refused", 0, Duration::from_secs(60));
        let pauses = [0, 2, 4, 8, 30, 59].map(|second| {
            let Again { pause, parks, .. } = outage.again(at(second), None, 0).expect("time is left");
            (pause.as_secs(), parks)
        });
        assert_eq!(pauses, [(2, false), (2, false), (5, true), (8, true), (20, true), (1, true)]);
        assert_eq!(outage.again(at(60), None, 0), None);
        let named = outage.again(0, Some(Duration::from_secs(40)), 0).expect("time is left");
        assert_eq!((named.pause.as_secs(), named.parks), (40, true));
        let pauses = [0, 1_234_567, 7_654_321].map(|random| outage.again(0, Some(Duration::from_secs(40)), random));
        assert_eq!(
            pauses.map(|again| again.map(|again| again.pause.as_micros())),
            [Some(40_000_000), Some(41_234_567), Some(47_654_321)]
        );
    }

    /// Journals keep this form, and other programs read it.
    #[test]
    fn the_step_of_an_outage_is_read_and_written_as_it_was_before() {
        let outage =
            Outage { model: "fast".to_owned(), since_us: 1, until_us: 600_000_001, error: "refused".to_owned() };
        let step = |job: &str| OutageStep { outage: outage.clone(), job: job.to_owned() };
        let form = r#"{"outage":{"model":"fast","since_us":1,"until_us":600000001,"error":"refused"},"job":"job-0000000000000007"}"#;
        let read = |form: &str| serde_json::from_str::<OutageStep>(form).expect("a step");
        assert_eq!(read(form), step("job-0000000000000007"));
        assert_eq!(serde_json::to_string(&step("job-0000000000000007")).expect("JSON"), form);
        // The first ones did not say which job waited.
        let first = r#"{"outage":{"model":"fast","since_us":1,"until_us":600000001,"error":"refused"}}"#;
        assert_eq!(read(first), step(""));
        let call = Key([7; 16]);
        assert_eq!(Outage::key(call).to_string(), "3525e27089ff37e003e6487461120914");
        assert_eq!(Outage::key_of_job(call, "job-0000000000000007").to_string(), "e67df2c2cf30facbe65d705782eb919a");
    }

    proptest! {
        #[test]
        fn a_job_that_waits_parks_soon_and_returns_soon(second in 0_u32..10_000, random: u64) {
            let outage = Outage::begin("fast", "refused", 0, Duration::from_secs(100_000));
            let again = outage.again(at(second), None, random).expect("time is left");
            prop_assert!(again.pause <= Duration::from_secs(20));
            // What does not park is tried again before the job would.
            prop_assert!(again.parks == (again.waited + again.pause >= Outage::IN_PLACE));
            prop_assert!(again.waited < Duration::from_secs(3) || again.parks, "{again:?}");
        }

        #[test]
        fn a_named_pause_is_kept_and_spread(seconds in 21_u64..10_000, random: u64) {
            let outage = Outage::begin("fast", "slow down", 0, Duration::from_secs(5_000));
            let pause = outage.again(0, Some(Duration::from_secs(seconds)), random).expect("time is left").pause;
            prop_assert!(pause.as_secs() >= seconds.min(5_000) && pause.as_secs() <= (seconds + 10).min(5_000));
        }
    }
}
