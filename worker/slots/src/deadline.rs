//! The deadline by which a drained node returns its jobs, on this process's own clock.

use std::time::Duration;

use atlas_types::{ClusterTime, HandBack, HandBackDeadline};

/// What the leader says of the node's drain.
#[derive(Debug, Default)]
pub(crate) struct Deadline {
    is_told: bool,
    deadline: Option<LeaderDeadline>,
}

#[derive(Debug)]
struct LeaderDeadline {
    until: ClusterTime,
    at: Duration,
    passed: bool,
}

impl Deadline {
    /// Takes in what the leader tells at `now`.
    ///
    /// The same deadline again can only come sooner: the clock of the cluster stands still where this one goes on.
    pub(crate) fn tell(&mut self, by: Option<HandBack>, now: Duration) {
        let known = self.deadline.take();
        self.is_told = by.is_some();
        self.deadline = by.and_then(|by| by.deadline).map(|HandBackDeadline { until, within }| {
            let at = now.saturating_add(within.as_duration());
            match known.filter(|known| known.until == until) {
                Some(known) => LeaderDeadline { at: at.min(known.at), ..known },
                None => LeaderDeadline { until, at, passed: false },
            }
        });
    }

    /// Whether it has passed at `now`.
    pub(crate) fn has_passed(&mut self, now: Duration) -> bool {
        self.deadline.as_mut().is_some_and(|told| {
            told.passed |= now >= told.at;
            told.passed
        })
    }

    /// Whether the node is drained, with a deadline or without.
    pub(crate) fn is_told(&self) -> bool {
        self.is_told
    }

    /// When it will have passed, unless it has.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.deadline.as_ref().filter(|told| !told.passed).map(|told| told.at)
    }
}
