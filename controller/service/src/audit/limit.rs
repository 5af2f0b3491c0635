//! How many denials are recorded one by one.

use std::collections::BTreeMap;
use std::time::Duration;

/// Denials of one principal, and of all together: so many at once, and so many in a second.
const ONE: Rate = Rate { burst: 50, per_second: 5 };
const ALL: Rate = Rate { burst: 500, per_second: 50 };
/// Most principals that are told apart. Names come from tokens that exist, so more than this are rare.
const PRINCIPALS_MAX: usize = 1_024;

#[derive(Debug, Clone, Copy)]
struct Rate {
    burst: u64,
    per_second: u64,
}

/// A bucket of permits that fills with time.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Thousandths of permits.
    left: u64,
    at: Duration,
}

/// The buckets.
#[derive(Debug, Default)]
pub(super) struct Limit {
    all: Option<Bucket>,
    by_principal: BTreeMap<String, Bucket>,
}

impl Limit {
    /// Whether a denial of a principal is recorded now.
    pub(super) fn admits(&mut self, principal: &str, now: Duration) -> bool {
        if self.by_principal.len() >= PRINCIPALS_MAX && !self.by_principal.contains_key(principal) {
            self.by_principal.retain(|_, bucket| bucket.filled(ONE, now).left < ONE.burst * 1_000);
            if self.by_principal.len() >= PRINCIPALS_MAX {
                return false;
            }
        }
        let full = |rate: Rate| Bucket { left: rate.burst * 1_000, at: now };
        let own = self.by_principal.entry(principal.to_owned()).or_insert_with(|| full(ONE));
        // The principal's own bucket comes first: one that is denied all the time takes nothing from the others.
        own.take(ONE, now) && self.all.get_or_insert_with(|| full(ALL)).take(ALL, now)
    }
}

impl Bucket {
    fn filled(self, rate: Rate, now: Duration) -> Self {
        let passed = u64::try_from(now.saturating_sub(self.at).as_millis()).unwrap_or(u64::MAX);
        let left = self.left.saturating_add(passed.saturating_mul(rate.per_second)).min(rate.burst * 1_000);
        Self { left, at: now }
    }

    fn take(&mut self, rate: Rate, now: Duration) -> bool {
        *self = self.filled(rate, now);
        match self.left.checked_sub(1_000) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(limit: &mut Limit, principal: &str, count: usize, now: u64) -> usize {
        (0..count).filter(|_| limit.admits(principal, Duration::from_secs(now))).count()
    }

    #[test]
    fn a_principal_has_a_burst_and_a_rate() {
        let mut limit = Limit::default();
        assert_eq!(admitted(&mut limit, "ann", 200, 100), 50);
        assert_eq!(admitted(&mut limit, "bob", 10, 100), 10, "another one is not concerned");
        assert_eq!(admitted(&mut limit, "ann", 200, 102), 10);
        assert_eq!(admitted(&mut limit, "ann", 200, 10_000), 50);
    }

    #[test]
    fn all_together_are_bounded() {
        let mut limit = Limit::default();
        let sum: usize = (0..100).map(|at| admitted(&mut limit, &format!("p{at}"), 50, 100)).sum();
        assert_eq!(sum, 500);
        for at in 0..3_000 {
            limit.admits(&format!("q{at}"), Duration::from_secs(101));
        }
        assert!(limit.by_principal.len() <= PRINCIPALS_MAX);
        assert_eq!(admitted(&mut limit, "late", 1, 10_000), 1, "buckets that are full again make room");
    }
}
