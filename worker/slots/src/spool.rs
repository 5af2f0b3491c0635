//! Log lines and progress of running attempts, kept until the leader has them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use atlas_types::{Attempt, FencingToken, JobId, StreamEvent};

/// Events to send, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub job: JobId,
    /// Which try.
    pub attempt: Attempt,
    /// The events; their numbers may have gaps where the spool overflowed.
    pub events: Vec<StreamEvent>,
}

/// Stream events of all attempts: numbered from 1 an attempt, bounded, sent once a connection, kept until acknowledged.
///
/// An attempt's oldest events go first when it says more than fits: the numbers then show how many are missing.
#[derive(Debug)]
pub struct Spool {
    events_max: usize,
    bytes_max: usize,
    attempts: BTreeMap<FencingToken, Spooled>,
    /// The attempts with events that were not sent on this connection.
    unsent: BTreeSet<FencingToken>,
    /// The attempts that say no more, and whose events are not acknowledged.
    closed: BTreeSet<FencingToken>,
}

#[derive(Debug)]
struct Spooled {
    job: JobId,
    attempt: Attempt,
    next: u64,
    /// Everything before was sent on this connection.
    unsent: u64,
    bytes: usize,
    events: VecDeque<StreamEvent>,
}

impl Spool {
    /// Ended attempts whose events wait for an acknowledgement, at most.
    const CLOSED_MAX: usize = 1_024;

    /// A spool that keeps at most so many events and so many bytes of text for each attempt.
    pub fn new(events_max: usize, bytes_max: usize) -> Self {
        Self {
            events_max: events_max.max(1),
            bytes_max,
            attempts: BTreeMap::new(),
            unsent: BTreeSet::new(),
            closed: BTreeSet::new(),
        }
    }

    /// Begins an attempt's stream, unless it has begun.
    pub fn open(&mut self, job: JobId, attempt: Attempt, token: FencingToken) {
        let begun = || Spooled { job, attempt, next: 1, unsent: 1, bytes: 0, events: VecDeque::new() };
        self.attempts.entry(token).or_insert_with(begun);
    }

    /// Adds an event and gives it its number; one of an unknown attempt is dropped.
    pub fn push(&mut self, token: FencingToken, mut event: StreamEvent) {
        let Some(spooled) = self.attempts.get_mut(&token) else { return };
        event.number = spooled.next;
        spooled.next += 1;
        spooled.bytes += event.text.len();
        spooled.events.push_back(event);
        while spooled.events.len() > self.events_max || (spooled.bytes > self.bytes_max && spooled.events.len() > 1) {
            spooled.bytes -= spooled.events.pop_front().map_or(0, |event| event.text.len());
        }
        self.unsent.insert(token);
    }

    /// What was not sent on this connection, for each attempt at most `events_max` events and, but for the first, `bytes_max` bytes.
    pub fn take_unsent(&mut self, events_max: usize, bytes_max: usize) -> Vec<Batch> {
        let mut batches = Vec::new();
        let attempts = &mut self.attempts;
        self.unsent.retain(|token| {
            let Some(spooled) = attempts.get_mut(token) else { return false };
            // Numbers rise, so that what was sent is a prefix.
            let sent = spooled.events.partition_point(|event| event.number < spooled.unsent);
            let mut bytes = 0;
            let fits = |event: &&StreamEvent| {
                bytes += event.text.len();
                bytes <= bytes_max || bytes == event.text.len()
            };
            let unsent = spooled.events.range(sent..).take(events_max).take_while(fits);
            let events: Vec<StreamEvent> = unsent.cloned().collect();
            if let Some(last) = events.last() {
                spooled.unsent = last.number + 1;
                batches.push(Batch { job: spooled.job, attempt: spooled.attempt, events });
            }
            spooled.events.back().is_some_and(|event| event.number >= spooled.unsent)
        });
        batches
    }

    /// The attempt says no more. It is forgotten once all is acknowledged.
    pub fn close(&mut self, token: FencingToken) {
        match self.attempts.get(&token) {
            Some(spooled) if spooled.events.is_empty() => self.discard(token),
            Some(_) => {
                self.closed.insert(token);
            }
            None => {}
        }
        // A leader that never acknowledges must not fill this node's memory with the words of ended attempts.
        if self.closed.len() > Self::CLOSED_MAX
            && let Some(&oldest) = self.closed.first()
        {
            self.discard(oldest);
        }
    }

    /// The attempt's lease is over: its lines are no longer needed.
    pub fn discard(&mut self, token: FencingToken) {
        self.attempts.remove(&token);
        self.unsent.remove(&token);
        self.closed.remove(&token);
    }

    /// The leader has everything up to `number`.
    pub fn acknowledge(&mut self, job: JobId, attempt: Attempt, number: u64) {
        let mut done = Vec::new();
        for (&token, spooled) in self.attempts.iter_mut().filter(|(_, s)| s.job == job && s.attempt == attempt) {
            while spooled.events.front().is_some_and(|event| event.number <= number) {
                spooled.bytes -= spooled.events.pop_front().map_or(0, |event| event.text.len());
            }
            if spooled.events.is_empty() && self.closed.contains(&token) {
                done.push(token);
            }
        }
        done.into_iter().for_each(|token| self.discard(token));
    }

    /// A new connection: everything that is not acknowledged is sent again.
    pub fn resend(&mut self) {
        for (&token, spooled) in &mut self.attempts {
            spooled.unsent = 1;
            if !spooled.events.is_empty() {
                self.unsent.insert(token);
            }
        }
    }

    /// Attempts whose stream is kept.
    pub fn len(&self) -> usize {
        self.attempts.len()
    }

    /// True if nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.attempts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use atlas_types::{StreamKind, Timestamp};

    use super::*;

    fn line(text: &str) -> StreamEvent {
        StreamEvent { number: 0, at: Timestamp(0), kind: StreamKind::Log, level: "info".into(), text: text.into() }
    }

    fn numbers(batches: &[Batch]) -> Vec<u64> {
        batches.iter().flat_map(|batch| batch.events.iter().map(|event| event.number)).collect()
    }

    #[test]
    fn events_are_sent_once_a_connection_and_kept_until_acknowledged() {
        let mut spool = Spool::new(10, 1_000);
        spool.open(JobId(1), Attempt(1), FencingToken(7));
        spool.push(FencingToken(7), line("a"));
        spool.push(FencingToken(7), line("b"));
        assert_eq!(numbers(&spool.take_unsent(10, 100)), [1, 2]);
        assert_eq!(numbers(&spool.take_unsent(10, 100)), [0; 0]);
        spool.acknowledge(JobId(1), Attempt(1), 1);
        spool.resend();
        assert_eq!(numbers(&spool.take_unsent(10, 100)), [2]);
        spool.close(FencingToken(7));
        assert_eq!(spool.len(), 1);
        spool.acknowledge(JobId(1), Attempt(1), 2);
        assert!(spool.is_empty());
    }

    #[test]
    fn so_many_ended_attempts_are_kept_for_a_leader_that_acknowledges_none() {
        let mut spool = Spool::new(10, 1_000);
        for token in 0..=Spool::CLOSED_MAX as u64 {
            spool.open(JobId(token), Attempt(1), FencingToken(token));
            spool.push(FencingToken(token), line("a"));
            spool.close(FencingToken(token));
        }
        assert_eq!(spool.len(), Spool::CLOSED_MAX);
        spool.acknowledge(JobId(0), Attempt(1), 1);
        spool.acknowledge(JobId(1), Attempt(1), 1);
        assert_eq!(spool.len(), Spool::CLOSED_MAX - 1);
    }

    #[test]
    fn a_batch_is_bounded_but_never_empty() {
        let mut spool = Spool::new(10, 1_000);
        spool.open(JobId(1), Attempt(1), FencingToken(7));
        for _ in 0..4 {
            spool.push(FencingToken(7), line("four"));
        }
        assert_eq!(numbers(&spool.take_unsent(10, 9)), [1, 2]);
        assert_eq!(numbers(&spool.take_unsent(10, 1)), [3]);
        assert_eq!(numbers(&spool.take_unsent(1, 100)), [4]);
    }

    #[test]
    fn a_flood_drops_the_oldest_and_the_numbers_show_it() {
        let mut spool = Spool::new(3, 1_000);
        spool.open(JobId(1), Attempt(1), FencingToken(7));
        for _ in 0..10 {
            spool.push(FencingToken(7), line("x"));
        }
        assert_eq!(numbers(&spool.take_unsent(10, 100)), [8, 9, 10]);
        let mut spool = Spool::new(100, 10);
        spool.open(JobId(1), Attempt(1), FencingToken(7));
        for _ in 0..10 {
            spool.push(FencingToken(7), line("four"));
        }
        assert_eq!(numbers(&spool.take_unsent(10, 100)), [9, 10]);
    }
}
