//! Self-fencing: with clocks that differ by at most 1 %, two attempts of one job never run at the same time, however
//! the worker was cut off. The observed children prove this.

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;

#[derive(Default)]
pub(crate) struct NeverTwoAtATime;

impl Invariant for NeverTwoAtATime {
    fn name(&self) -> &'static str {
        "B.18 never two at a time"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        let Seen::ChildStarted { job, token, .. } = seen else { return Ok(()) };
        let runs = facts.runs.get(job).into_iter().flatten();
        let other = runs.into_iter().find(|run| run.token != *token && run.to.is_none());
        other.map_or(Ok(()), |other| {
            Err(format!("{job} runs twice at a time, under tokens {} on {} and {token}", other.token, other.node))
        })
    }
}
