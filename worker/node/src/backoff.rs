//! Backoff while a worker looks for a leader: the timeout for a welcome, and the pause before the next try. Pure.

use std::time::Duration;

/// Timeout for an answer to a hello. It may wait for a leader itself.
const WELCOME_MAX: Duration = Duration::from_secs(6);
/// The same while another leader is looked for in time: each controller is asked once so, before what runs has to end.
const WELCOME_MAX_IN_HASTE: Duration = Duration::from_secs(1);
/// The pause before a try, growing from the one to the other with each round over all controllers in which none welcomes.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Two controllers that name each other are left alone for a pause.
const REDIRECTS_MAX: u32 = 3;

/// One search.
#[derive(Debug)]
pub(crate) struct Backoff {
    pause: Duration,
    /// Tries in a row that named somebody else.
    redirects: u32,
    /// Tries that are made in haste from here on.
    in_haste: usize,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { pause: PAUSE_MIN, redirects: 0, in_haste: 0 }
    }
}

impl Backoff {
    /// A try begins, and maybe a round over all controllers with it: how long its welcome is waited for.
    pub(crate) fn begin(&mut self, begins_round: bool) -> Duration {
        if begins_round {
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
        let patience = if self.in_haste > 0 { WELCOME_MAX_IN_HASTE } else { WELCOME_MAX };
        self.in_haste = self.in_haste.saturating_sub(1);
        patience
    }

    /// The controller named another one.
    pub(crate) fn redirected(&mut self) {
        self.redirects += 1;
    }

    /// The controller did not welcome.
    pub(crate) fn refused(&mut self) {
        self.redirects = 0;
    }

    /// It welcomed, and the session has ended since.
    pub(crate) fn lost(&mut self) {
        *self = Self::default();
    }

    /// It welcomed, and was left because it may not lead any more: one of `controllers` does, and there is no time to lose.
    pub(crate) fn left(&mut self, controllers: usize) {
        *self = Self { in_haste: controllers, ..Self::default() };
    }

    /// The pause before the next try. Half of it is up to `chance`, so that workers do not come back all at once.
    pub(crate) fn pause(&self, chance: u64) -> Duration {
        // A leader that was named is asked soon.
        let named = (1..=REDIRECTS_MAX).contains(&self.redirects);
        let half = if named { PAUSE_MIN / 4 } else { self.pause / 2 };
        let thousandths = u32::try_from(chance % 1_000).unwrap_or(0);
        half + half * thousandths / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A search that has gone on for five rounds in vain.
    fn slow() -> Backoff {
        let mut backoff = Backoff::default();
        for _ in 0..5 {
            backoff.begin(true);
        }
        backoff
    }

    /// The longest pause, in milliseconds.
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
