//! No acknowledged job is lost: it is in every later state until it has ended and retention removes it.

use std::collections::BTreeSet;

use atlas_types::{JobId, Outcome};

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;
use crate::wire::{Answer, Ask};

#[derive(Default)]
pub(crate) struct NoJobIsLost {
    acknowledged: BTreeSet<JobId>,
}

impl NoJobIsLost {
    fn lost(&self, facts: &Facts) -> Result<(), String> {
        let ended = |job: &JobId| facts.jobs.get(job).is_some_and(|known| known.ended);
        let lost = self.acknowledged.iter().find(|job| facts.newest.job(**job).is_none() && !ended(job));
        lost.map_or(Ok(()), |job| Err(format!("{job} was acknowledged and is in no state")))
    }
}

impl Invariant for NoJobIsLost {
    fn name(&self) -> &'static str {
        "B.1 no acknowledged job is lost"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        match seen {
            Seen::Answered { answer: Answer::Outcome(Ok(Outcome::Submitted { job, .. })), .. } => {
                self.acknowledged.insert(*job);
                self.lost(facts)
            }
            Seen::Answered { ask: Ask::Read(job), answer: Answer::Job { job: None, .. }, .. } => {
                let ended = facts.jobs.get(job).is_some_and(|known| known.ended);
                if ended {
                    Ok(())
                } else {
                    Err(format!("a read found no {job}, which was acknowledged and has not ended"))
                }
            }
            Seen::Event { .. } | Seen::Up { .. } => self.lost(facts),
            _ => Ok(()),
        }
    }

    fn finish(&mut self, facts: &mut Facts) -> Result<(), String> {
        self.lost(facts)
    }
}
