//! Linearizable by default: a read shows every write that was acknowledged before the read began, and everything that
//! an earlier read has shown.
//!
//! At the end, the whole history of submits, cancels and reads per job is checked. During the run, each read is checked
//! to show no older state than a read that ended before it began.

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_linearizability::{Job, JobInput, JobOutput, Keyed, Operation, Status, check_keys};
use atlas_types::{Command, JobId, JobStatus, Outcome, Rejection, Seq};

use super::Invariant;
use crate::Options;
use crate::oracle::Facts;
use crate::seen::Seen;
use crate::wire::{Answer, Ask};

pub(crate) struct Linearizable {
    model: Job,
    /// The times and the states of linearizable reads, both increasing.
    shown: Vec<(Duration, Seq)>,
    operations: Keyed<JobId, Job>,
    /// Changes with a still unknown outcome, by request id, with their start.
    open: BTreeMap<String, (usize, Duration, JobInput, Option<JobId>)>,
}

impl Linearizable {
    pub(crate) fn of(options: &Options) -> Self {
        Self {
            model: Job { retention: options.jobs_ended_kept < 1_000 },
            shown: Vec::new(),
            operations: Keyed::default(),
            open: BTreeMap::new(),
        }
    }

    fn floor(&self, called: Duration) -> Seq {
        let before = self.shown.partition_point(|(at, _)| *at < called);
        before.checked_sub(1).map_or(Seq(0), |last| self.shown[last].1)
    }

    fn change(
        &mut self,
        (client, called): (usize, Duration),
        request: &atlas_types::Request,
        outcome: Option<(&Result<Outcome, Rejection>, Duration)>,
    ) {
        let Some(name) = request.origin.request_id.as_ref().map(ToString::to_string) else { return };
        let (input, known) = match &request.command {
            Command::SubmitJob(_) => (JobInput::Submit, None),
            Command::CancelJob(command) => (JobInput::Cancel, Some(command.job)),
            _ => return,
        };
        let Some((outcome, at)) = outcome else {
            self.open.entry(name).or_insert((client, called, input, known));
            return;
        };
        let (job, output) = match outcome {
            Ok(Outcome::Submitted { job, .. }) => (*job, JobOutput::Submitted(job.0)),
            Ok(Outcome::Cancelled { accepted }) => match known {
                Some(job) => (job, JobOutput::Cancelled(*accepted)),
                None => return,
            },
            Err(Rejection::UnknownJob { job }) => (*job, JobOutput::Absent),
            _ => return,
        };
        self.open.remove(&name);
        self.operations.push(job, Operation::answered(client as u64, micros(called), input, micros(at), output));
    }
}

impl Invariant for Linearizable {
    fn name(&self) -> &'static str {
        "B.29 linearizable"
    }

    fn see(&mut self, seen: &Seen, facts: &mut Facts) -> Result<(), String> {
        match seen {
            Seen::Answered { client, ask: Ask::Read(id), called, answer: Answer::Job { job, seq } } => {
                let output = job.as_ref().map_or(JobOutput::Absent, |job| JobOutput::Found(status(job.status)));
                let operation =
                    Operation::answered(*client as u64, micros(*called), JobInput::Read, micros(facts.now), output);
                self.operations.push(*id, operation);
                let floor = self.floor(*called);
                if *seq < floor {
                    return Err(format!("a read that began when {floor} had been shown was answered from {seq}"));
                }
                let highest = self.shown.last().map_or(*seq, |(_, before)| (*before).max(*seq));
                self.shown.push((facts.now, highest));
                Ok(())
            }
            Seen::Answered { client, ask: Ask::Change(request), called, answer: Answer::Outcome(outcome) } => {
                self.change((*client, *called), request, Some((outcome, facts.now)));
                Ok(())
            }
            Seen::Unanswered { client, ask: Ask::Change(request), called } => {
                self.change((*client, *called), request, None);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self, facts: &mut Facts) -> Result<(), String> {
        for (client, called, input, job) in std::mem::take(&mut self.open).into_values() {
            // An unanswered submission has no known job to check.
            if let Some(job) = job {
                self.operations.push(job, Operation::unknown(client as u64, micros(called), input));
            }
        }
        facts.coverage.add("operations in histories", self.operations.operations() as u64);
        let too_hard = check_keys(&self.model, &self.operations)?;
        facts.coverage.add("histories too hard", too_hard as u64);
        Ok(())
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn status(status: JobStatus) -> Status {
    match status {
        JobStatus::Pending => Status::Pending,
        JobStatus::Running => Status::Running,
        JobStatus::Completed => Status::Completed,
        JobStatus::Failed => Status::Failed,
        JobStatus::Cancelled => Status::Cancelled,
    }
}
