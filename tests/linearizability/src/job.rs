//! A job from the clients' view: it is submitted once, its status only moves forward, and a cancel succeeds or fails.
//!
//! Workers also change jobs, but are not clients. A read may therefore find a job in a later state than any client has
//! caused, and the job then stays there.

use crate::history::Model;

/// The model of the job with one idempotency key.
#[derive(Debug, Clone, Copy, Default)]
pub struct Job {
    /// Whether jobs are removed some time after their end. If so, a missing job may have ended unseen. Otherwise it is
    /// lost.
    pub retention: bool,
}

/// A job's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// The job waits.
    Pending,
    /// The job has a lease.
    Running,
    /// The job ended with success.
    Completed,
    /// The job ended with a failure.
    Failed,
    /// The job was cancelled.
    Cancelled,
}

impl Status {
    /// True for a final status, which never changes again.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// The operation of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobInput {
    /// Submit the job.
    Submit,
    /// Read the job's status.
    Read,
    /// Cancel the job.
    Cancel,
}

/// The answer to a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobOutput {
    /// The job is recorded with this number.
    Submitted(u64),
    /// The job does not exist, or does not exist any more.
    Absent,
    /// The job has this status.
    Found(Status),
    /// Whether the job was cancelled. False if it had already ended.
    Cancelled(bool),
}

/// The state of the model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobState {
    /// Its number, once a client has received it.
    number: Option<u64>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Absent,
    /// The job has not ended. A running job returns to pending if its lease is lost.
    Live,
    /// A cancel was accepted, so the job will end as cancelled.
    Doomed,
    Ended(Status),
    /// The job has ended, but no client has seen its final status.
    EndedSomehow,
    /// The job has ended and was removed.
    Gone,
}

impl Model for Job {
    type State = JobState;
    type Input = JobInput;
    type Output = JobOutput;

    fn initial(&self) -> JobState {
        JobState { number: None, stage: Stage::Absent }
    }

    fn step(&self, state: &JobState, input: &JobInput, output: Option<&JobOutput>) -> Option<JobState> {
        let stage = match (input, output) {
            (JobInput::Submit, output) => {
                let number = match output {
                    Some(JobOutput::Submitted(number)) => Some(*number),
                    Some(_) => return None,
                    None => None,
                };
                if let (Some(first), Some(second)) = (state.number, number)
                    && first != second
                {
                    return None;
                }
                let stage = if state.stage == Stage::Absent { Stage::Live } else { state.stage };
                return Some(JobState { number: state.number.or(number), stage });
            }
            (JobInput::Read, Some(output)) => self.read(state.stage, output)?,
            (JobInput::Read, None) => state.stage,
            (JobInput::Cancel, Some(JobOutput::Cancelled(true))) => match state.stage {
                Stage::Live | Stage::Doomed => Stage::Doomed,
                _ => return None,
            },
            (JobInput::Cancel, Some(JobOutput::Cancelled(false))) => match state.stage {
                Stage::Live => Stage::EndedSomehow,
                Stage::Doomed => Stage::Ended(Status::Cancelled),
                Stage::Absent => return None,
                ended => ended,
            },
            (JobInput::Cancel, Some(JobOutput::Absent)) => self.read(state.stage, &JobOutput::Absent)?,
            (JobInput::Cancel, None) => match state.stage {
                Stage::Live => Stage::Doomed,
                stage => stage,
            },
            (JobInput::Cancel, Some(_)) => return None,
        };
        Some(JobState { stage, ..state.clone() })
    }
}

impl Job {
    /// The stage after a read with this output. None if that output is impossible.
    fn read(self, stage: Stage, output: &JobOutput) -> Option<Stage> {
        let JobOutput::Found(status) = output else {
            return match (output, stage) {
                (JobOutput::Absent, Stage::Absent) => Some(Stage::Absent),
                (JobOutput::Absent, _) => self.retention.then_some(Stage::Gone),
                _ => None,
            };
        };
        match (stage, status.is_terminal()) {
            (Stage::Live, false) => Some(Stage::Live),
            (Stage::Live, true) => Some(Stage::Ended(*status)),
            (Stage::Doomed, false) => Some(Stage::Doomed),
            (Stage::Doomed, true) => (*status == Status::Cancelled).then_some(Stage::Ended(*status)),
            (Stage::Ended(ended), _) => (ended == *status).then_some(stage),
            (Stage::EndedSomehow, true) => Some(Stage::Ended(*status)),
            (Stage::EndedSomehow, false) | (Stage::Absent | Stage::Gone, _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::JobInput::{Cancel, Read, Submit};
    use super::JobOutput::{Absent, Cancelled, Found, Submitted};
    use super::*;
    use crate::{CheckResult, Operation, check};

    type Op = Operation<JobInput, JobOutput>;

    /// Sequential operations.
    fn in_a_row(steps: &[(JobInput, JobOutput)]) -> Vec<Op> {
        let steps = steps.iter().cloned().zip(0_u64..);
        steps.map(|((input, output), n)| Op::answered(1, 2 * n, input, 2 * n + 1, output)).collect()
    }

    fn holds(history: &[Op]) {
        assert_eq!(check(&Job { retention: true }, history), CheckResult::Linearizable);
    }

    fn breaks(history: &[Op]) -> usize {
        check(&Job { retention: true }, history).violation().expect("a planted violation is found").operation
    }

    #[test]
    fn a_life_is_read_one_way() {
        holds(&in_a_row(&[
            (Read, Absent),
            (Submit, Submitted(7)),
            (Read, Found(Status::Pending)),
            (Read, Found(Status::Running)),
            (Read, Found(Status::Pending)),
            (Submit, Submitted(7)),
            (Read, Found(Status::Completed)),
            (Cancel, Cancelled(false)),
            (Read, Found(Status::Completed)),
            (Read, Absent),
        ]));
    }

    #[test]
    fn what_must_not_be_is_found() {
        let after_submit = |steps: &[(JobInput, JobOutput)]| {
            let mut history = vec![(Submit, Submitted(7))];
            history.extend_from_slice(steps);
            breaks(&in_a_row(&history))
        };
        // An ended job runs again, or ends with another status.
        assert_eq!(after_submit(&[(Read, Found(Status::Failed)), (Read, Found(Status::Running))]), 2);
        assert_eq!(after_submit(&[(Read, Found(Status::Failed)), (Read, Found(Status::Completed))]), 2);
        // An accepted cancel has no effect, or a cancel was refused although the job had not ended.
        assert_eq!(after_submit(&[(Cancel, Cancelled(true)), (Read, Found(Status::Completed))]), 2);
        assert_eq!(after_submit(&[(Cancel, Cancelled(false)), (Read, Found(Status::Pending))]), 2);
        // One submission creates two jobs.
        assert_eq!(after_submit(&[(Submit, Submitted(8))]), 1);
        // A removed job reappears.
        assert_eq!(after_submit(&[(Read, Absent), (Read, Found(Status::Completed))]), 2);
        assert_eq!(breaks(&in_a_row(&[(Read, Found(Status::Pending))])), 0);
    }

    #[test]
    fn without_retention_a_job_that_is_not_found_is_lost() {
        let history = in_a_row(&[(Submit, Submitted(7)), (Read, Found(Status::Completed)), (Read, Absent)]);
        holds(&history);
        assert!(check(&Job::default(), &history).violation().is_some());
    }

    #[test]
    fn an_unknown_cancel_wins_late_or_never() {
        let unknown = Op::unknown(2, 1, Cancel);
        let mut history = in_a_row(&[(Submit, Submitted(7)), (Read, Found(Status::Running))]);
        history.push(unknown);
        history.push(Op::answered(1, 90, Read, 91, Found(Status::Cancelled)));
        holds(&history);
        history.pop();
        history.push(Op::answered(1, 90, Read, 91, Found(Status::Completed)));
        holds(&history);
    }
}
