//! Monotonic per client session: a client that sends the last index it saw never reads an older state from any member,
//! nor a state that no member has had.

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;
use crate::wire::{Answer, Ask};

#[derive(Default)]
pub(crate) struct NeverBack;

impl Invariant for NeverBack {
    fn name(&self) -> &'static str {
        "B.30 never back"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        let Seen::Answered { ask: Ask::Stale(job, least), answer: Answer::Job { seq, .. }, .. } = seen else {
            return Ok(());
        };
        facts.coverage.count("stale reads");
        if seq < least {
            return Err(format!("a read of {job} from {least} on was answered from {seq}"));
        }
        if *seq > facts.newest.seq() {
            return Err(format!(
                "a read was answered from {seq}, and no member has come further than {}",
                facts.newest.seq()
            ));
        }
        Ok(())
    }
}
