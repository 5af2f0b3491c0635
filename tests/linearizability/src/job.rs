//! A job as its clients see it: it is submitted once, its status only moves forward, and a cancel succeeds or fails.
//!
//! Workers act on jobs too and are not clients, so a read may find a job further than any client has brought it; from then on it is.

use crate::history::Model;

/// The model of one job, by one idempotency key.
#[derive(Debug, Clone, Copy, Default)]
pub struct Job {
    /// Jobs are removed some time after they ended. Then a job that is not found may have ended unseen; else it is lost.
    pub retention: bool,
}

/// A job's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// It waits.
    Pending,
    /// It has a lease.
    Running,
    /// It ended well.
    Completed,
    /// It ended badly.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl Status {
    /// Final: it never changes again.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobInput {
    /// That it be recorded.
    Submit,
    /// How it is.
    Read,
    /// That it end.
    Cancel,
}

/// What a client is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobOutput {
    /// It is recorded, under this number.
    Submitted(u64),
    /// There is none, or none any more.
    Absent,
    /// It is in this state.
    Found(Status),
    /// Whether it was cancelled; not if it had ended.
    Cancelled(bool),
}

/// What there is to know of a job.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobState {
    /// Its number, once anybody was told.
    number: Option<u64>,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Absent,
    /// It lives. A lost lease makes a running job wait again.
    Live,
    /// A cancel was accepted: whatever else happens, it ends cancelled.
    Doomed,
    Ended(Status),
    /// It has ended, and nobody has seen how.
    EndedSomehow,
    /// It has ended and was removed.
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
    /// The stage in which a read found the job; none if it cannot be.
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

    /// Operations one after the other.
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
        // An ended job lives again, or ends otherwise.
        assert_eq!(after_submit(&[(Read, Found(Status::Failed)), (Read, Found(Status::Running))]), 2);
        assert_eq!(after_submit(&[(Read, Found(Status::Failed)), (Read, Found(Status::Completed))]), 2);
        // A cancel that was accepted loses, or one that was refused comes too early.
        assert_eq!(after_submit(&[(Cancel, Cancelled(true)), (Read, Found(Status::Completed))]), 2);
        assert_eq!(after_submit(&[(Cancel, Cancelled(false)), (Read, Found(Status::Pending))]), 2);
        // One submission makes two jobs.
        assert_eq!(after_submit(&[(Submit, Submitted(8))]), 1);
        // What is gone comes back.
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
