//! When the lines of a running attempt are stored.

use std::time::Duration;

/// Whether lines of an attempt are due to be stored.
#[derive(Debug, Default)]
pub(crate) struct Due {
    /// The last line that was stored, and the bytes of the attempt's lines at that time.
    stored: (u64, usize),
    /// When the first of the other lines was seen, by the monotonic clock.
    since: Option<Duration>,
    /// When the first line of the attempt was seen.
    begun: Option<Duration>,
}

impl Due {
    /// Lines are stored when they have so many bytes, and as many as were stored before.
    const BYTES: usize = 64 << 10;
    /// Lines are stored when they are so old, and a quarter as old as the attempt.
    const AGE: Duration = Duration::from_secs(10);

    /// Whether the lines up to number `last` should be stored now; `bytes` is the size of all lines. The caller then stores them. Without a
    /// time, all new lines should be.
    ///
    /// The intervals grow, so that an attempt of any length writes its log a few times only.
    pub(crate) fn take(&mut self, last: u64, bytes: usize, now: Option<Duration>) -> bool {
        let due = last != self.stored.0 && now.is_none_or(|now| self.is_due(bytes, now));
        if due {
            (self.stored, self.since) = ((last, bytes), None);
        }
        due
    }

    fn is_due(&mut self, bytes: usize, now: Duration) -> bool {
        let begun = *self.begun.get_or_insert(now);
        let since = *self.since.get_or_insert(now);
        let large = bytes.saturating_sub(self.stored.1) >= Self::BYTES.max(self.stored.1);
        let old = now.saturating_sub(since) >= Self::AGE.max(since.saturating_sub(begun) / 4);
        large || old
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_stores_its_log_a_few_times() {
        let mut due = Due::default();
        // A line of 100 bytes a second, for a day.
        let stored = (1..86_400_u64)
            .filter(|&second| due.take(second, second as usize * 100, Some(Duration::from_secs(second))));
        let times: Vec<u64> = stored.collect();
        assert!(times.first().is_some_and(|first| *first <= 12) && times.len() < 60, "{times:?}");
        let mut due = Due::default();
        let flood = (1..1_000_u64).filter(|&number| due.take(number, number as usize * 1_024, Some(Duration::ZERO)));
        assert_eq!(flood.collect::<Vec<_>>(), [64, 128, 256, 512]);
        let mut quiet = Due::default();
        assert!(!quiet.take(0, 0, Some(Duration::from_secs(60))) && !quiet.take(0, 0, None));
        assert!(quiet.take(1, 10, None) && !quiet.take(1, 10, None));
    }
}
