//! Whether the wall clock can be trusted (ADR 2).
//!
//! No timeout reads the wall clock, but people, delayed jobs and the retention of history do. While it is in doubt, a
//! leader stamps entries with the last trusted time plus the elapsed monotonic time, and shows the reason.

use std::fmt;
use std::time::Duration;

use atlas_types::Timestamp;

/// A larger difference between wall and monotonic time since the last check counts as a jump.
const JUMP_MICROS: u64 = 5_000_000;
/// The largest allowed distance between the wall clock and the median of the peers.
const APART_MICROS: u64 = 2_000_000;
/// How long a clock that jumped stays in doubt: without peers to confirm it, and with them.
const STEADY_ALONE: Duration = Duration::from_secs(60);
const STEADY: Duration = Duration::from_secs(5);

/// Why the wall clock is in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockDoubt {
    /// The wall clock jumped relative to the monotonic clock.
    Jumped {
        /// The size of the jump in microseconds; negative if backwards.
        by_micros: i64,
    },
    /// The wall clock differs from those of the peers.
    Apart {
        /// How far the wall clock is behind the median of the peers, in microseconds; negative if ahead.
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

/// The time when the wall clock was last trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Believed {
    wall: Timestamp,
    /// The monotonic time at that moment.
    at: Duration,
    /// Whether the wall clock has been in doubt since.
    doubted: bool,
}

impl Believed {
    /// The current time: the wall clock's, unless it is in doubt or has jumped since the last check.
    pub(crate) fn stamp(self, wall: Timestamp, now: Duration) -> Timestamp {
        let expected = self.wall.0.saturating_add(micros(now.saturating_sub(self.at)));
        let jumped = wall.0.abs_diff(expected) > JUMP_MICROS;
        if self.doubted || jumped { Timestamp(expected) } else { wall }
    }
}

/// Watches one wall clock.
#[derive(Debug, Default)]
pub(crate) struct WallWatch {
    /// The monotonic time of the first check.
    began: Option<Duration>,
    /// Both clocks at the last check.
    last: Option<(Timestamp, Duration)>,
    /// The monotonic time of the last jump, and its size.
    jumped: Option<(Duration, i64)>,
    believed: Option<Believed>,
    /// Whether the trusted time was ever confirmed, by peers or by a period without jumps.
    confirmed: bool,
}

impl WallWatch {
    /// Checks both clocks against each other and against `ahead`, how far the peers' wall clocks are ahead of this one
    /// in microseconds.
    pub(crate) fn look(&mut self, wall: Timestamp, now: Duration, ahead: &mut [i64]) -> Option<ClockDoubt> {
        let began = *self.began.get_or_insert(now);
        if let Some((wall_before, before)) = self.last.replace((wall, now)) {
            let by = wall.0.saturating_sub(wall_before.0).saturating_sub(micros(now.saturating_sub(before)));
            if by.unsigned_abs() > JUMP_MICROS {
                self.jumped = Some((now, by));
            }
        }
        let apart = median(ahead);
        let steady = if apart.is_some() { STEADY } else { STEADY_ALONE };
        let doubt = match apart.filter(|by| by.unsigned_abs() > APART_MICROS) {
            Some(by_micros) => Some(ClockDoubt::Apart { by_micros }),
            None => {
                self.jumped = self.jumped.filter(|(at, _)| now.saturating_sub(*at) < steady);
                self.jumped.map(|(_, by_micros)| ClockDoubt::Jumped { by_micros })
            }
        };
        self.confirmed |= doubt.is_none() && (apart.is_some() || now.saturating_sub(began) >= STEADY_ALONE);
        self.believe(wall, now, doubt, ahead.len());
        doubt
    }

    /// The time when the wall clock was last trusted; none before the first check.
    pub(crate) fn believed(&self) -> Option<Believed> {
        self.believed
    }

    fn believe(&mut self, wall: Timestamp, now: Duration, doubt: Option<ClockDoubt>, peers: usize) {
        let wall = match (doubt, &mut self.believed) {
            (None, _) => wall,
            // This clock may have been wrong from the start, so the median of two or more peers is better. A single
            // peer may itself be wrong.
            (Some(ClockDoubt::Apart { by_micros }), _) if !self.confirmed && peers > 1 => {
                Timestamp(wall.0.saturating_add(by_micros))
            }
            (Some(_), Some(believed)) => {
                believed.doubted = true;
                return;
            }
            // No better time is known.
            (Some(_), None) => wall,
        };
        self.believed = Some(Believed { wall, at: now, doubted: doubt.is_some() });
    }
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// The median. Of two middle values, the one nearer to this clock, because this clock then agrees with a majority.
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

    /// Checks while the wall clock is `wall_offset` seconds off and the peers are `ahead` of it. Lists the reported
    /// doubts and by how much the stamps of entries are off at this look and just before it.
    fn check(looks: &[(u64, i64, &[i64])], expected: &expect_test::Expect) {
        let mut watch = WallWatch::default();
        let mut table = String::new();
        for &(second, wall_offset, ahead) in looks {
            let wall = Timestamp((1_000 + second as i64 + wall_offset) * 1_000_000);
            let off = |watch: &WallWatch| {
                let now = Duration::from_secs(second);
                let stamp = watch.believed().map_or(wall, |believed| believed.stamp(wall, now));
                stamp.0 / 1_000_000 - second as i64 - 1_000
            };
            let before = off(&watch);
            let mut ahead: Vec<i64> = ahead.iter().map(|seconds| seconds * 1_000_000).collect();
            let doubt = watch.look(wall, Duration::from_secs(second), &mut ahead);
            let doubt = doubt.map_or("fine".to_owned(), |doubt| doubt.to_string());
            table += &format!("{second} s: {doubt} ({before:+} {:+})\n", off(&watch));
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
                0 s: fine (+0 +0)
                1 s: fine (+0 +0)
                2 s: fine (+4 +4)
                3 s: the wall clock jumped 3596.0 s ahead (+4 +4)
                30 s: the wall clock jumped 3596.0 s ahead (+4 +4)
                62 s: the wall clock jumped 3596.0 s ahead (+4 +4)
                63 s: fine (+4 +3600)
                64 s: the wall clock jumped 3600.0 s back (+3600 +3600)
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
                0 s: fine (+0 +0)
                1 s: the wall clock is 60.0 s ahead of those of the other controllers (+0 +0)
                2 s: the wall clock is 60.0 s ahead of those of the other controllers (+0 +0)
                10 s: the wall clock jumped 60.0 s back (+0 +0)
                14 s: the wall clock jumped 60.0 s back (+0 +0)
                15 s: fine (+0 +0)
                16 s: fine (+0 +0)
                17 s: the wall clock is 90.0 s behind those of the other controllers (+0 +0)
            "#]],
        );
    }

    #[test]
    fn the_time_of_a_clock_that_was_wrong_from_the_start_is_that_of_two_others() {
        check(
            &[
                (0, 500, &[]),
                (1, 500, &[-500]),
                (2, 500, &[-500, -501]),
                (3, 900, &[-900, -901]),
                (4, 0, &[0, -1]),
                (9, 0, &[0, -1]),
                (10, 0, &[500, 500]),
            ],
            &expect![[r#"
                0 s: fine (+500 +500)
                1 s: the wall clock is 500.0 s ahead of those of the other controllers (+500 +500)
                2 s: the wall clock is 500.0 s ahead of those of the other controllers (+500 +0)
                3 s: the wall clock is 900.0 s ahead of those of the other controllers (+0 +0)
                4 s: the wall clock jumped 900.0 s back (+0 +0)
                9 s: fine (+0 +0)
                10 s: the wall clock is 500.0 s behind those of the other controllers (+0 +0)
            "#]],
        );
    }
}
