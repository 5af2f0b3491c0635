//! The concurrency permits that running jobs use, when a job that waits for its child lends its own (compatibility §10, ADR 11).
//!
//! A job of depth 0 was submitted by a client, its children have depth 1, and so on. A job that waits for a child lends
//! its permit to any one deeper job. So the jobs that lend and borrow one permit form a chain of growing depth, which
//! bounds the jobs in memory for one permit, and the deepest of them never waits. Any job may borrow, not only a child
//! of the lender, because two families may wait for each other's nodes.

/// The jobs that take places of one node, or of one agent's limit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ConcurrencyPermits {
    jobs: u32,
    /// By rising depth; empty where nobody spawns, without zeros at its end.
    steps: Vec<Step>,
}

/// Who lends at one depth, and who may borrow from there first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Step {
    /// Jobs of this depth that wait for a child.
    waiting: u32,
    /// Jobs that are one deeper, waiting or not.
    deeper: u32,
}

impl ConcurrencyPermits {
    /// One more job runs. It does not wait for a child yet.
    pub fn add(&mut self, depth: u32) {
        self.jobs += 1;
        if let Some(above) = depth.checked_sub(1) {
            self.step(above).deeper += 1;
        }
    }

    /// A job runs no more; `waiting` tells whether it waited for a child.
    pub fn remove(&mut self, depth: u32, waiting: bool) {
        self.jobs -= 1;
        if let Some(above) = depth.checked_sub(1) {
            self.step(above).deeper -= 1;
        }
        if waiting {
            self.step(depth).waiting -= 1;
        }
        self.trim();
    }

    /// One of the jobs begins to wait for a child.
    pub fn wait(&mut self, depth: u32) {
        self.step(depth).waiting += 1;
    }

    /// One of the jobs waits no longer.
    pub fn resume(&mut self, depth: u32) {
        self.step(depth).waiting -= 1;
        self.trim();
    }

    /// Places that the jobs take.
    pub fn taken(&self) -> u32 {
        self.jobs - self.borrowed(None)
    }

    /// Whether one more job of this depth could run in a place that another lends.
    pub fn lends_to(&self, depth: u32) -> bool {
        depth > 0 && !self.steps.is_empty() && self.borrowed(Some(depth)) > self.borrowed(None)
    }

    /// Whether a job of some depth could.
    pub fn lends(&self) -> bool {
        self.steps.iter().map(|step| step.waiting).sum::<u32>() > self.borrowed(None)
    }

    /// How many of the jobs run in a place that another lends, at most, were there one `more` of some depth.
    ///
    /// A job that can borrow from one depth can borrow from all lower ones, so taking the first is optimal.
    fn borrowed(&self, more: Option<u32>) -> u32 {
        let (mut lent, mut borrowed) = (0, 0);
        for (above, step) in self.steps.iter().enumerate() {
            lent += step.waiting;
            let deeper = step.deeper + u32::from(more.is_some_and(|depth| depth as usize == above + 1));
            let met = lent.min(deeper);
            (lent, borrowed) = (lent - met, borrowed + met);
        }
        // Deeper than all that lend.
        borrowed + u32::from(lent > 0 && more.is_some_and(|depth| depth as usize > self.steps.len()))
    }

    fn step(&mut self, depth: u32) -> &mut Step {
        let depth = depth as usize;
        if self.steps.len() <= depth {
            self.steps.resize(depth + 1, Step::default());
        }
        &mut self.steps[depth]
    }

    fn trim(&mut self) {
        while self.steps.last() == Some(&Step::default()) {
            self.steps.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_that_spawn_nothing_take_a_place_each() {
        let mut permits = ConcurrencyPermits::default();
        permits.add(0);
        permits.add(0);
        assert_eq!((permits.taken(), permits.lends(), permits.lends_to(1)), (2, false, false));
        permits.remove(0, false);
        assert_eq!(permits.taken(), 1);
    }

    #[test]
    fn a_chain_of_waiting_jobs_takes_one_place() {
        let mut permits = ConcurrencyPermits::default();
        for depth in 0..3 {
            permits.add(depth);
            assert_eq!(permits.taken(), 1, "depth {depth}");
            permits.wait(depth);
            assert!(permits.lends_to(depth + 1) && !permits.lends_to(depth), "depth {depth}");
        }
        permits.add(3);
        assert_eq!((permits.taken(), permits.lends(), permits.lends_to(4)), (1, false, false));
    }

    #[test]
    fn whoever_resumes_before_its_place_is_back_is_one_too_many() {
        let mut permits = ConcurrencyPermits::default();
        permits.add(0);
        permits.wait(0);
        permits.add(1);
        permits.resume(0);
        assert_eq!(permits.taken(), 2);
        permits.remove(1, false);
        assert_eq!(permits, {
            let mut one = ConcurrencyPermits::default();
            one.add(0);
            one
        });
    }

    #[test]
    fn a_place_is_lent_to_one_at_a_time_and_to_deeper_jobs_only() {
        let mut permits = ConcurrencyPermits::default();
        permits.add(1);
        permits.wait(1);
        assert!(!permits.lends_to(0) && !permits.lends_to(1) && permits.lends_to(2) && permits.lends_to(3));
        permits.add(1);
        assert_eq!(permits.taken(), 2, "not a deeper one");
        permits.add(2);
        permits.add(2);
        assert_eq!(permits.taken(), 3, "one of the two borrows");
    }

    #[test]
    fn an_end_while_waiting_gives_everything_back() {
        let mut permits = ConcurrencyPermits::default();
        permits.add(0);
        permits.wait(0);
        permits.add(1);
        permits.remove(0, true);
        assert_eq!(permits.taken(), 1, "the child has the place for its own now");
        permits.remove(1, false);
        assert_eq!(permits, ConcurrencyPermits::default());
    }
}
