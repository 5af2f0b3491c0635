//! Fair sharing between namespaces: whose turn is next.

use std::cmp::Reverse;

use crate::{ClusterTime, Job, Micros};

/// Progress of a namespace of weight 1 with each start of one of its jobs. Divisible by small weights.
const STEP: u64 = 1 << 20;

/// The weight of a namespace that states none.
pub const WEIGHT_DEFAULT: u32 = 1;
/// The highest weight.
pub const WEIGHT_MAX: u32 = 1_000;

/// Priorities beyond this, above and below 0, count as this where jobs age.
pub const AGING_PRIORITY_MAX: i64 = 100;

/// What a namespace has had so far, which decides whose turn is next: the lowest share first.
///
/// Running jobs come first, so that weights divide the capacity. Among equals the namespace comes first that is furthest behind in starts, so
/// that weights divide the turns as well where the capacity is a single job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Share {
    /// Running jobs for each unit of weight, in fractions.
    pub load: u64,
    /// Starts for each unit of weight, in fractions: what it would be had all namespaces started with the cluster.
    pub progress: u64,
}

impl Share {
    /// The share of a namespace with so many running jobs.
    pub fn new(running: u32, weight: u32, progress: u64) -> Self {
        Self { load: u64::from(running) * STEP / u64::from(weight.max(1)), progress }
    }

    /// The share once one more job has started. `now` is the progress of the namespaces that come next; one that had nothing to
    /// start is not owed the starts that it missed.
    #[must_use]
    pub fn after_start(self, weight: u32, now: u64) -> Self {
        let step = STEP / u64::from(weight.max(1));
        Self { load: self.load.saturating_add(step), progress: self.progress.max(now).saturating_add(step) }
    }
}

/// The place of a job among those of its namespace: higher priority first, then age. Where jobs age, each priority is worth a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Turn {
    /// The priority, or where jobs age how much earlier than the cluster it would have had to be queued to have this turn at priority 0.
    rank: Reverse<i64>,
    queue_seq: u64,
}

impl Turn {
    /// The first of all turns.
    pub const FIRST: Self = Self { rank: Reverse(i64::MAX), queue_seq: 0 };

    /// The turn of a job. With `aging`, a job goes before those of one priority more that were queued this much later or more.
    pub fn of(job: &Job, aging: Option<Micros>) -> Self {
        Self::at(job.priority, job.queued_at, job.queue_seq, aging)
    }

    /// The place of the job in the queue.
    pub fn queue_seq(&self) -> u64 {
        self.queue_seq
    }

    fn at(priority: i64, queued_at: ClusterTime, queue_seq: u64, aging: Option<Micros>) -> Self {
        let Some(step) = aging else { return Self { rank: Reverse(priority), queue_seq } };
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let worth = priority.clamp(-AGING_PRIORITY_MAX, AGING_PRIORITY_MAX).saturating_mul(signed(step.0));
        Self { rank: Reverse(worth.saturating_sub(signed(queued_at.0))), queue_seq }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Starts jobs of namespaces with these weights, of which each always has some waiting, while there is room for `room`. The oldest job ends
    /// first. Returns the namespaces in the order of their turns.
    fn starts(weights: &[u32], room: usize, count: usize) -> Vec<usize> {
        let mut progress = vec![0; weights.len()];
        let (mut now, mut order) = (0, Vec::<usize>::new());
        while order.len() < count {
            let running = &order[order.len().saturating_sub(room - 1)..];
            let share = |of: usize| {
                let running = running.iter().filter(|other| **other == of).count() as u32;
                Share::new(running, weights[of], progress[of])
            };
            let next = (0..weights.len()).min_by_key(|of| (share(*of), *of)).expect("a namespace");
            now = now.max(progress[next]);
            progress[next] = share(next).after_start(weights[next], now).progress;
            order.push(next);
        }
        order
    }

    #[test]
    fn weights_divide_the_turns() {
        for room in [1, 7] {
            let order = starts(&[1, 2, 4], room, 700);
            let mut counts = BTreeMap::<_, usize>::new();
            order.iter().for_each(|of| *counts.entry(*of).or_default() += 1);
            let near = |of: usize, wanted: usize| counts[&of].abs_diff(wanted) <= 4;
            assert!(near(0, 100) && near(1, 200) && near(2, 400), "room for {room}: {counts:?}");
        }
    }

    #[test]
    fn between_two_turns_of_a_namespace_others_have_a_bounded_number() {
        let weights = [1, 3, 2];
        let order = starts(&weights, 1, 600);
        for (of, weight) in weights.iter().enumerate() {
            let turns: Vec<_> = order.iter().enumerate().filter(|(_, other)| **other == of).map(|(at, _)| at).collect();
            for pair in turns.windows(2) {
                for (other, theirs) in weights.iter().enumerate().filter(|(other, _)| *other != of) {
                    let between = order[pair[0]..pair[1]].iter().filter(|next| **next == other).count();
                    assert!(between <= theirs.div_ceil(*weight) as usize + 1, "{between} of {other}: {order:?}");
                }
            }
        }
    }

    #[test]
    fn a_priority_is_worth_a_time() {
        let turn = |priority, seconds: u64, seq| {
            Turn::at(priority, ClusterTime(seconds * 1_000_000), seq, Some(Micros::from_secs(60)))
        };
        assert!(turn(1, 59, 2) < turn(0, 0, 1));
        assert!(turn(0, 0, 1) < turn(1, 61, 2));
        assert!(turn(0, 0, 1) < turn(0, 0, 2));
        assert!(turn(0, 0, 1) < turn(i64::MAX, 6_001, 2), "priorities are bounded");
        assert!(Turn::FIRST <= turn(i64::MAX, 0, 0));
        let exact = |priority, seq| Turn::at(priority, ClusterTime(seq * 1_000_000_000), seq, None);
        assert!(exact(1, 9) < exact(0, 1) && exact(0, 1) < exact(0, 2));
    }
}
