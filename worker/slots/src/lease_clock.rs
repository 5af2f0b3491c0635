//! How long this node's leases are valid, by its own clock.

use std::collections::BTreeMap;
use std::time::Duration;

/// Counts the session's time to live from the sending of the last acknowledged renewal.
#[derive(Debug)]
pub(crate) struct LeaseClock {
    ttl: Duration,
    confirmed_at: Duration,
    next_number: u64,
    /// Sent and not yet acknowledged, by number.
    in_flight: BTreeMap<u64, Duration>,
    renew_at: Duration,
}

impl LeaseClock {
    /// Renewals that may wait for an answer; older ones are forgotten, their answers ignored.
    const IN_FLIGHT_MAX: usize = 64;

    /// A clock confirmed by a hello that was sent at `hello_sent_at`; renewal numbers go on from `next_number`.
    pub(crate) fn new(ttl: Duration, hello_sent_at: Duration, next_number: u64) -> Self {
        let renew_at = hello_sent_at + ttl / 4;
        Self { ttl, confirmed_at: hello_sent_at, next_number, in_flight: BTreeMap::new(), renew_at }
    }

    /// The instant by which every process must be dead. A fifth of the time to live is kept for killing and clock drift.
    pub(crate) fn deadline(&self) -> Duration {
        self.confirmed_at + self.ttl - self.ttl / 5
    }

    /// The instant at which processes die that this clock's owner did not come to kill. Most of what is kept is left for it.
    pub(crate) fn last_moment(&self) -> Duration {
        self.confirmed_at + self.ttl - self.ttl * 3 / 20
    }

    /// The instant at which a leader that leaves renewals unanswered is left for another: it may be cut off from the other members and not
    /// know. Late enough that a leader under load is not left, early enough to find another before the deadline.
    pub(crate) fn leave_at(&self) -> Option<Duration> {
        let oldest = *self.in_flight.values().next()?;
        Some((self.confirmed_at + self.ttl * 3 / 5).max(oldest + self.ttl / 4))
    }

    pub(crate) fn renew_at(&self) -> Duration {
        self.renew_at
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.next_number
    }

    /// The number of a renewal that is due, noting when it was sent.
    pub(crate) fn renew(&mut self, now: Duration) -> Option<u64> {
        if now < self.renew_at {
            return None;
        }
        let number = self.next_number;
        self.next_number += 1;
        self.in_flight.insert(number, now);
        if self.in_flight.len() > Self::IN_FLIGHT_MAX {
            self.in_flight.pop_first();
        }
        self.renew_at = now + self.ttl / 4;
        Some(number)
    }

    /// Takes an acknowledgement; unknown numbers are ignored.
    pub(crate) fn acknowledge(&mut self, number: u64) {
        if let Some(sent_at) = self.in_flight.remove(&number) {
            self.confirmed_at = self.confirmed_at.max(sent_at);
            self.in_flight = self.in_flight.split_off(&number);
        }
    }
}
