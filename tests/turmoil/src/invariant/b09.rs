//! A cancel succeeds or fails, never both: after an accepted cancel the job ends cancelled; a refused one found it ended.

use std::collections::BTreeSet;

use atlas_types::{Command, Event, JobId, JobStatus, Outcome};

use super::Invariant;
use crate::oracle::Facts;
use crate::seen::Seen;
use crate::wire::{Answer, Ask};

#[derive(Default)]
pub(crate) struct CancelWinsOrLoses {
    accepted: BTreeSet<JobId>,
}

impl Invariant for CancelWinsOrLoses {
    fn name(&self) -> &'static str {
        "B.9 a cancel wins or loses"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        match seen {
            Seen::Event { event, .. } => {
                let Event::Job { job, .. } = &event.event else { return Ok(()) };
                let lost =
                    self.accepted.contains(&job.id) && job.status.is_terminal() && job.status != JobStatus::Cancelled;
                if lost { Err(format!("{} was cancelled and then {:?}", job.id, job.status)) } else { Ok(()) }
            }
            Seen::Answered {
                ask: Ask::Change(request),
                answer: Answer::Outcome(Ok(Outcome::Cancelled { accepted })),
                ..
            } => {
                let Command::CancelJob(command) = &request.command else { return Ok(()) };
                let known = facts.jobs.get(&command.job);
                let ended = known.is_some_and(|known| known.ended);
                let status = known.and_then(|known| Some(known.last.as_ref()?.status));
                if *accepted {
                    self.accepted.insert(command.job);
                }
                match (accepted, ended, status) {
                    (false, false, _) => Err(format!("the cancel of {} was refused, and it lives", command.job)),
                    (true, true, Some(status)) if status != JobStatus::Cancelled => {
                        Err(format!("the cancel of {} was accepted, and it is {status:?}", command.job))
                    }
                    _ => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}
