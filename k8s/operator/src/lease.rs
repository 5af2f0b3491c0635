//! Which operator works: the one that holds a Lease of Kubernetes.
//!
//! Clocks of machines may differ, so nobody reads a time out of a lease: whoever waits measures on its own clock how long the lease did not change.

use std::time::Duration;

/// How long a lease holds after its last renewal.
pub(crate) const DURATION: Duration = Duration::from_secs(15);
/// How often it is renewed.
pub(crate) const RENEWAL: Duration = Duration::from_secs(3);
/// How long an operator works without a renewal. Less than [`DURATION`], so that it stops before another one begins.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);

/// What an operator saw of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Who holds it; empty if it was released.
    pub(crate) holder: String,
    /// Changes with every write.
    pub(crate) version: String,
    /// When this operator first saw this version, on its monotonic clock.
    pub(crate) since: Duration,
}

/// What to do with a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is none: create it.
    Create,
    /// Write it: to renew it, or to take one that ran out or was released.
    Take,
    /// Another operator holds it: wait.
    Wait,
}

/// What `me` does at `now`.
pub(crate) fn step(me: &str, seen: Option<&Seen>, now: Duration) -> Step {
    match seen {
        None => Step::Create,
        Some(seen) if seen.holder == me || seen.holder.is_empty() => Step::Take,
        Some(seen) if now.saturating_sub(seen.since) > DURATION => Step::Take,
        Some(_) => Step::Wait,
    }
}

/// What was seen, after the lease was read at `now`: a version that was seen before keeps its time.
pub(crate) fn see(before: Option<&Seen>, holder: &str, version: &str, now: Duration) -> Seen {
    let since = before.filter(|before| before.version == version).map_or(now, |before| before.since);
    Seen { holder: holder.to_owned(), version: version.to_owned(), since }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_taken_once_it_did_not_change_for_its_duration() {
        let at = Duration::from_secs;
        assert_eq!(step("a", None, at(0)), Step::Create);
        let first = see(None, "b", "1", at(100));
        assert_eq!(step("a", Some(&first), at(115)), Step::Wait);
        let renewed = see(Some(&first), "b", "2", at(114));
        assert_eq!(step("a", Some(&renewed), at(120)), Step::Wait);
        let same = see(Some(&renewed), "b", "2", at(125));
        assert_eq!((same.since, step("a", Some(&same), at(130))), (at(114), Step::Take));
        assert_eq!(step("b", Some(&renewed), at(115)), Step::Take);
        assert_eq!(step("a", Some(&see(Some(&same), "", "3", at(126))), at(126)), Step::Take);
    }

    #[test]
    fn an_operator_stops_before_another_begins() {
        assert!(RENEWAL * 2 < DEADLINE && DEADLINE + RENEWAL < DURATION);
    }
}
