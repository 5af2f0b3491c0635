//! What happened to the calls of webhooks that reached this controller: in memory and within bounds. A log that is replicated would let anybody
//! who can reach a webhook write to every controller.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use atlas_types::{Namespace, Timestamp};

/// Most calls that are kept of one trigger: the latest.
pub(crate) const CALLS_MAX: usize = 100;
/// Most triggers of which calls are kept: those that were called last.
const TRIGGERS_MAX: usize = 1_000;
/// Most bytes of a text that the caller chose.
const TEXT_BYTES_MAX: usize = 128;

/// Who called, as far as that can be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookSender {
    pub address: Option<SocketAddr>,
    /// The header `User-Agent`.
    pub program: String,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Delivery {
    pub(crate) at: Timestamp,
    pub(crate) sender: HookSender,
    /// What the sender calls it; empty if it does not say.
    pub(crate) id: String,
    pub(crate) outcome: Outcome,
}

/// What happened to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It started this job or run.
    Fired(String),
    /// It was only asked whether somebody is here.
    Greeted,
    /// The same delivery as an earlier call, whose job it is.
    Repeated(String),
    /// With this error, by code and text.
    Refused(&'static str, String),
}

/// The calls of each trigger.
#[derive(Debug, Default)]
pub(crate) struct Deliveries(Mutex<Log>);

#[derive(Debug, Default)]
struct Log {
    /// Calls so far.
    number: u64,
    of: BTreeMap<(Namespace, String), Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    /// The number of the latest.
    number: u64,
    latest: VecDeque<Delivery>,
}

impl Deliveries {
    /// Adds a call.
    pub(crate) fn add(&self, namespace: &Namespace, trigger: &str, mut delivery: Delivery) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        log.number += 1;
        let (number, key) = (log.number, (namespace.clone(), trigger.to_owned()));
        if log.of.len() >= TRIGGERS_MAX && !log.of.contains_key(&key) {
            let oldest = log.of.iter().min_by_key(|(_, calls)| calls.number).map(|(key, _)| key.clone());
            oldest.map(|oldest| log.of.remove(&oldest));
        }
        let calls = log.of.entry(key).or_default();
        if let Outcome::Fired(job) = &delivery.outcome {
            let is_same = |earlier: &Delivery| matches!(&earlier.outcome, Outcome::Fired(other) if other == job);
            if calls.latest.iter().any(is_same) {
                delivery.outcome = Outcome::Repeated(job.clone());
            }
        }
        calls.number = number;
        if calls.latest.len() >= CALLS_MAX {
            calls.latest.pop_front();
        }
        calls.latest.push_back(delivery);
    }

    /// The latest first.
    pub(crate) fn of(&self, namespace: &Namespace, trigger: &str, most: usize) -> Vec<Delivery> {
        let log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = log.of.get(&(namespace.clone(), trigger.to_owned()));
        calls.into_iter().flat_map(|calls| calls.latest.iter().rev()).take(most).cloned().collect()
    }
}

/// A text of the caller within its bound, without what could disturb a terminal.
pub(crate) fn short(text: &str) -> String {
    let end = text.floor_char_boundary(TEXT_BYTES_MAX.min(text.len()));
    text.get(..end).unwrap_or_default().chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delivery(id: &str, outcome: Outcome) -> Delivery {
        Delivery { at: Timestamp(1), sender: HookSender::default(), id: id.to_owned(), outcome }
    }

    #[test]
    fn the_log_is_bounded_and_knows_repeats() {
        let (log, space) = (Deliveries::default(), Namespace::default_namespace());
        let fired = |job: &str| Outcome::Fired(job.to_owned());
        log.add(&space, "t", delivery("d1", fired("job-1")));
        log.add(&space, "t", delivery("d1", fired("job-1")));
        log.add(&space, "t", delivery("", Outcome::Refused("E2103", "no".to_owned())));
        let outcomes: Vec<Outcome> = log.of(&space, "t", 9).into_iter().map(|call| call.outcome).collect();
        let expected =
            [Outcome::Refused("E2103", "no".to_owned()), Outcome::Repeated("job-1".to_owned()), fired("job-1")];
        assert_eq!(outcomes, expected);
        for number in 0..CALLS_MAX + 10 {
            log.add(&space, "t", delivery(&number.to_string(), fired(&number.to_string())));
        }
        assert_eq!(log.of(&space, "t", usize::MAX).len(), CALLS_MAX);
        assert_eq!(log.of(&space, "t", 1)[0].id, (CALLS_MAX + 9).to_string());
        for number in 0..TRIGGERS_MAX {
            log.add(&space, &format!("other-{number}"), delivery("", fired("job-2")));
        }
        assert_eq!(log.0.lock().expect("not poisoned").of.len(), TRIGGERS_MAX);
        assert!(log.of(&space, "t", 9).is_empty(), "the one that was called first is gone");
    }

    #[test]
    fn texts_of_callers_are_cut_and_cleaned() {
        assert_eq!(short("a\u{1b}[31mb\nc"), "a [31mb c");
        assert_eq!(short(&"\u{1F980}".repeat(100)).len(), TEXT_BYTES_MAX);
        assert_eq!(short(""), "");
    }
}
