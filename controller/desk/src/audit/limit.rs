//! How many denials are recorded one by one.

use std::collections::BTreeMap;
use std::time::Duration;

/// Denials of one principal, and of all together: so many at once, and so many in a minute.
const ONE: Rate = Rate { burst: 50, per_minute: 300 };
const ALL: Rate = Rate { burst: 500, per_minute: 3_000 };
/// Machines that were turned away at one port. One that is set up wrongly tries again for days.
const MACHINE: Rate = Rate { burst: 50, per_minute: 6 };
/// Most principals that are told apart. Names come from tokens and certificates that exist, so more than this are rare.
const PRINCIPALS_MAX: usize = 1_024;
/// A permit in parts: what a rate of one in a minute adds in a millisecond is one part.
const PERMIT: u64 = 60_000;

#[derive(Debug, Clone, Copy)]
struct Rate {
    burst: u64,
    per_minute: u64,
}

/// Who shares a rate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    /// A principal at the interfaces of clients.
    Principal(String),
    /// A machine at a port of workers or controllers, by what its certificate proves; empty for all that prove
    /// nothing, because a name that is only claimed can be another one each time.
    Machine { door: &'static str, proven: String },
}

impl Who {
    fn rate(&self) -> Rate {
        match self {
            Self::Principal(_) => ONE,
            Self::Machine { .. } => MACHINE,
        }
    }
}

/// A bucket of permits that fills with time.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Parts of permits.
    left: u64,
    at: Duration,
}

/// The buckets.
#[derive(Debug, Default)]
pub(super) struct Limit {
    all: Option<Bucket>,
    by_who: BTreeMap<Who, Bucket>,
}

impl Limit {
    /// Whether a denial is recorded now.
    pub(super) fn admits(&mut self, who: Who, now: Duration) -> bool {
        if self.by_who.len() >= PRINCIPALS_MAX && !self.by_who.contains_key(&who) {
            self.by_who.retain(|who, bucket| bucket.filled(who.rate(), now).left < who.rate().burst * PERMIT);
            if self.by_who.len() >= PRINCIPALS_MAX {
                return false;
            }
        }
        let full = |rate: Rate| Bucket { left: rate.burst * PERMIT, at: now };
        let rate = who.rate();
        let own = self.by_who.entry(who).or_insert_with(|| full(rate));
        // The own bucket comes first: one that is denied all the time takes nothing from the others.
        own.take(rate, now) && self.all.get_or_insert_with(|| full(ALL)).take(ALL, now)
    }
}

impl Bucket {
    fn filled(self, rate: Rate, now: Duration) -> Self {
        // Whole milliseconds, so that frequent calls lose none of the time between them.
        let passed = u64::try_from(now.saturating_sub(self.at).as_millis()).unwrap_or(u64::MAX);
        let left = self.left.saturating_add(passed.saturating_mul(rate.per_minute)).min(rate.burst * PERMIT);
        Self { left, at: self.at.saturating_add(Duration::from_millis(passed)) }
    }

    fn take(&mut self, rate: Rate, now: Duration) -> bool {
        *self = self.filled(rate, now);
        match self.left.checked_sub(PERMIT) {
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

    fn principal(name: &str) -> Who {
        Who::Principal(name.to_owned())
    }

    fn admitted(limit: &mut Limit, who: &Who, count: usize, now: u64) -> usize {
        (0..count).filter(|_| limit.admits(who.clone(), Duration::from_secs(now))).count()
    }

    #[test]
    fn a_principal_has_a_burst_and_a_rate() {
        let mut limit = Limit::default();
        assert_eq!(admitted(&mut limit, &principal("ann"), 200, 100), 50);
        assert_eq!(admitted(&mut limit, &principal("bob"), 10, 100), 10, "another one is not concerned");
        assert_eq!(admitted(&mut limit, &principal("ann"), 200, 102), 10);
        assert_eq!(admitted(&mut limit, &principal("ann"), 200, 10_000), 50);
    }

    #[test]
    fn machines_have_a_slower_rate_and_strangers_share_it() {
        let mut limit = Limit::default();
        let machine = |door, proven: &str| Who::Machine { door, proven: proven.to_owned() };
        assert_eq!(admitted(&mut limit, &machine("worker", ""), 1_000, 100), 50);
        assert_eq!(admitted(&mut limit, &machine("worker", "node/w1"), 1, 100), 1);
        assert_eq!(admitted(&mut limit, &machine("peer", ""), 1, 100), 1);
        assert_eq!(admitted(&mut limit, &principal(""), 1, 100), 1);
        assert_eq!(admitted(&mut limit, &machine("worker", ""), 1_000, 160), 6);
    }

    #[test]
    fn a_flood_does_not_stop_the_clock() {
        let mut limit = Limit::default();
        let ann = principal("ann");
        let count = (0..100_000).filter(|at| limit.admits(ann.clone(), Duration::from_micros(at * 100))).count();
        assert_eq!(count, 50 + 49, "ten seconds at five in a second");
    }

    #[test]
    fn all_together_are_bounded() {
        let mut limit = Limit::default();
        let sum: usize = (0..100).map(|at| admitted(&mut limit, &principal(&format!("p{at}")), 50, 100)).sum();
        assert_eq!(sum, 500);
        for at in 0..3_000 {
            limit.admits(principal(&format!("q{at}")), Duration::from_secs(101));
        }
        assert!(limit.by_who.len() <= PRINCIPALS_MAX);
        assert_eq!(admitted(&mut limit, &principal("late"), 1, 10_000), 1, "buckets that are full again make room");
    }
}
