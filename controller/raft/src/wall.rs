//! Whether the wall clock can be believed (design §2, rule 7).
//!
//! Nothing that is decided by time reads the wall clock but cron and what people see. While it is in doubt, duties by wall time are
//! suspended, and the reason is shown.

use std::fmt;
use std::time::Duration;

use atlas_types::Timestamp;
use tokio::sync::watch;

use crate::handle::Handle;

/// Wall and monotonic time may go apart by so much between two looks before it counts as a jump.
const JUMP_MICROS: u64 = 5_000_000;
/// How far the wall clock may be from the median of the peers.
const APART_MICROS: u64 = 2_000_000;
/// How long a clock that jumped is in doubt if no peer can confirm it, and if some can.
const STEADY_ALONE: Duration = Duration::from_secs(60);
const STEADY: Duration = Duration::from_secs(5);

/// Why the wall clock is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockDoubt {
    /// It jumped against the monotonic clock.
    Jumped {
        /// How far, microseconds; back if negative.
        by_micros: i64,
    },
    /// It is not where those of the peers are.
    Apart {
        /// How far behind their median, microseconds; ahead if negative.
        by_micros: i64,
    },
}

impl fmt::Display for ClockDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = |micros: i64| micros.unsigned_abs() as f64 / 1e6;
        match *self {
            Self::Jumped { by_micros } => {
                let way = if by_micros < 0 { "back" } else { "ahead" };
                write!(f, "the wall clock jumped {:.1} s {way}", seconds(by_micros))
            }
            Self::Apart { by_micros } => {
                let way = if by_micros < 0 { "ahead of" } else { "behind" };
                write!(f, "the wall clock is {:.1} s {way} those of the other controllers", seconds(by_micros))
            }
        }
    }
}

impl Handle {
    /// Why this member's wall clock is in doubt, if it is: then duties by wall time are suspended.
    pub fn clock_doubt(&self) -> watch::Receiver<Option<ClockDoubt>> {
        self.group.clock_doubt()
    }
}

/// Watches one wall clock.
#[derive(Debug, Default)]
pub(crate) struct WallWatch {
    /// Both clocks at the last look.
    last: Option<(Timestamp, Duration)>,
    /// When it jumped last, by the monotonic clock, and how far.
    jumped: Option<(Duration, i64)>,
}

impl WallWatch {
    /// Looks at both clocks, and at how far the peers' wall clocks are ahead of this one, in microseconds.
    pub(crate) fn look(&mut self, wall: Timestamp, now: Duration, ahead: &mut [i64]) -> Option<ClockDoubt> {
        if let Some((wall_before, before)) = self.last.replace((wall, now)) {
            let passed = i64::try_from(now.saturating_sub(before).as_micros()).unwrap_or(i64::MAX);
            let by = wall.0.saturating_sub(wall_before.0).saturating_sub(passed);
            if by.unsigned_abs() > JUMP_MICROS {
                self.jumped = Some((now, by));
            }
        }
        let apart = median(ahead);
        if let Some(by_micros) = apart.filter(|by| by.unsigned_abs() > APART_MICROS) {
            return Some(ClockDoubt::Apart { by_micros });
        }
        let steady = if apart.is_some() { STEADY } else { STEADY_ALONE };
        self.jumped = self.jumped.filter(|(at, _)| now.saturating_sub(*at) < steady);
        self.jumped.map(|(_, by_micros)| ClockDoubt::Jumped { by_micros })
    }
}

/// The median; of two in the middle the one nearer to this clock, which then is one of a majority that agree.
fn median(ahead: &mut [i64]) -> Option<i64> {
    ahead.sort_unstable();
    let upper = *ahead.get(ahead.len() / 2)?;
    let lower = *ahead.get((ahead.len() - 1) / 2)?;
    Some(if lower.unsigned_abs() <= upper.unsigned_abs() { lower } else { upper })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    /// Looks once a second while the wall clock is `wall_offset` seconds off and the peers are `ahead` of it.
    fn check(looks: &[(u64, i64, &[i64])], expected: &expect_test::Expect) {
        let mut watch = WallWatch::default();
        let mut table = String::new();
        for &(second, wall_offset, ahead) in looks {
            let wall = Timestamp((1_000 + second as i64 + wall_offset) * 1_000_000);
            let mut ahead: Vec<i64> = ahead.iter().map(|seconds| seconds * 1_000_000).collect();
            let doubt = watch.look(wall, Duration::from_secs(second), &mut ahead);
            table += &format!("{second} s: {}\n", doubt.map_or("fine".to_owned(), |doubt| doubt.to_string()));
        }
        expected.assert_eq(&table);
    }

    #[test]
    fn a_clock_that_jumped_alone_is_in_doubt_for_a_minute() {
        check(
            &[
                (0, 0, &[]),
                (1, 0, &[]),
                (2, 4, &[]),
                (3, 3_600, &[]),
                (30, 3_600, &[]),
                (62, 3_600, &[]),
                (63, 3_600, &[]),
                (64, 0, &[]),
            ],
            &expect![[r#"
                0 s: fine
                1 s: fine
                2 s: fine
                3 s: the wall clock jumped 3596.0 s ahead
                30 s: the wall clock jumped 3596.0 s ahead
                62 s: the wall clock jumped 3596.0 s ahead
                63 s: fine
                64 s: the wall clock jumped 3600.0 s back
            "#]],
        );
    }

    #[test]
    fn peers_confirm_a_clock_or_do_not() {
        check(
            &[
                (0, 0, &[0, 0]),
                (1, 60, &[-60, -60]),
                (2, 60, &[-60, -60]),
                (10, 0, &[0, 0]),
                (14, 0, &[0, 0]),
                (15, 0, &[0, 0]),
                (16, 0, &[1, 90]),
                (17, 0, &[90, 90]),
            ],
            &expect![[r#"
                0 s: fine
                1 s: the wall clock is 60.0 s ahead of those of the other controllers
                2 s: the wall clock is 60.0 s ahead of those of the other controllers
                10 s: the wall clock jumped 60.0 s back
                14 s: the wall clock jumped 60.0 s back
                15 s: fine
                16 s: fine
                17 s: the wall clock is 90.0 s behind those of the other controllers
            "#]],
        );
    }
}
