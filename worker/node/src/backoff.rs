//! Backoff while a worker looks for a leader: the timeout for a welcome, and the pause before the next try. Pure.

use std::time::Duration;

/// The timeout for an answer to a hello. The controller may itself wait for a leader.
const WELCOME_MAX: Duration = Duration::from_secs(6);
/// The timeout while the worker must find another leader before its running attempts have to end. Each controller is
/// asked once with it.
const WELCOME_MAX_IN_HASTE: Duration = Duration::from_secs(1);
/// The pause before a try. It grows from the minimum to the maximum with each round in which no controller welcomes the
/// worker.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// The most redirects in a row. After them the worker pauses, because two controllers may name each other.
const REDIRECTS_MAX: u32 = 3;

/// One search for a leader.
#[derive(Debug)]
pub(crate) struct Backoff {
    pause: Duration,
    /// The number of redirects in a row.
    redirects: u32,
    /// The number of tries with the short timeout.
    in_haste: usize,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { pause: PAUSE_MIN, redirects: 0, in_haste: 0 }
    }
}

impl Backoff {
    /// Starts a try, and with `begins_round` a round over all controllers. Returns the timeout for the welcome.
    pub(crate) fn begin(&mut self, begins_round: bool) -> Duration {
        if begins_round {
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
        let patience = if self.in_haste > 0 { WELCOME_MAX_IN_HASTE } else { WELCOME_MAX };
        self.in_haste = self.in_haste.saturating_sub(1);
        patience
    }

    /// The controller named another leader.
    pub(crate) fn redirected(&mut self) {
        self.redirects += 1;
    }

    /// The controller did not welcome the worker.
    pub(crate) fn refused(&mut self) {
        self.redirects = 0;
    }

    /// The controller welcomed the worker, and the session has ended since.
    pub(crate) fn lost(&mut self) {
        *self = Self::default();
    }

    /// The worker left a controller that had welcomed it but may no longer lead. One of `controllers` leads now and
    /// must be found quickly.
    pub(crate) fn left(&mut self, controllers: usize) {
        *self = Self { in_haste: controllers, ..Self::default() };
    }

    /// The pause before the next try. Up to half of it depends on `chance`, so that workers do not return all at once.
    pub(crate) fn pause(&self, chance: u64) -> Duration {
        // A named leader is tried soon.
        let named = (1..=REDIRECTS_MAX).contains(&self.redirects);
        let half = if named { PAUSE_MIN / 4 } else { self.pause / 2 };
        let thousandths = u32::try_from(chance % 1_000).unwrap_or(0);
        half + half * thousandths / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search after five rounds without success.
    fn slow() -> Backoff {
        let mut backoff = Backoff::default();
        for _ in 0..5 {
            backoff.begin(true);
        }
        backoff
    }

    /// The longest pause in milliseconds.
    fn longest(backoff: &Backoff) -> u128 {
        backoff.pause(999).as_millis() + 1
    }

    #[test]
    fn the_pause_grows_with_each_round_in_vain() {
        let mut backoff = Backoff::default();
        let rounds: Vec<u128> = (0..7)
            .map(|_| {
                assert_eq!(backoff.begin(true), WELCOME_MAX);
                backoff.refused();
                assert_eq!(backoff.begin(false), WELCOME_MAX, "the next one of the same round");
                backoff.refused();
                longest(&backoff)
            })
            .collect();
        assert_eq!(rounds, [100, 200, 400, 800, 1600, 2000, 2000]);
        assert_eq!(backoff.pause(0) * 2, PAUSE_MAX, "half of it is the same for all");
        backoff.lost();
        assert_eq!(longest(&backoff), 50);
    }

    #[test]
    fn whoever_is_named_is_asked_soon_but_not_for_ever() {
        let mut backoff = slow();
        let pauses: Vec<u128> = (0..5)
            .map(|_| {
                backoff.redirected();
                longest(&backoff)
            })
            .collect();
        assert_eq!(pauses, [25, 25, 25, 1600, 1600]);
        backoff.refused();
        backoff.redirected();
        assert_eq!(longest(&backoff), 25);
    }

    #[test]
    fn after_a_leader_was_left_each_controller_is_asked_once_in_haste() {
        let mut backoff = slow();
        backoff.left(3);
        assert_eq!(longest(&backoff), 50, "the pauses of an earlier search are over");
        let patience: Vec<Duration> = (0..4).map(|_| backoff.begin(false)).collect();
        assert_eq!(patience, [WELCOME_MAX_IN_HASTE, WELCOME_MAX_IN_HASTE, WELCOME_MAX_IN_HASTE, WELCOME_MAX]);
        backoff.left(3);
        backoff.lost();
        assert_eq!(backoff.begin(false), WELCOME_MAX, "one was found");
    }
}
