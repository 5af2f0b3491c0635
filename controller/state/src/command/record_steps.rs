//! Appends steps to a job's journal. What is recorded is final: the same steps again are accepted, other ones are refused.

use std::sync::Arc;

use atlas_types::{
    Event, FOLDS_MAX, FencingToken, JOURNAL_INLINE_BYTES_MAX, JobId, Journal, NodeId, Outcome, RecordSteps, Rejection,
    STEPS_BYTES_MAX, Step,
};

use super::check_limit;
use crate::change::{Change, live_lease};
use crate::state::State;

pub(super) fn apply(command: &RecordSteps, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    check_lease(change, command.job, &command.node, command.token)?;
    let bytes = command.steps.iter().map(|step| step.bytes()).sum();
    if bytes > STEPS_BYTES_MAX {
        return Err(Rejection::PayloadTooLarge { bytes });
    }
    let empty = Arc::default();
    let journal = change.state.journals.get(&command.job).unwrap_or(&empty);
    let known = check_known(journal, command)?;
    let added = &command.steps[known..];
    if added.is_empty() {
        return Ok(Outcome::Done);
    }
    check_room(change.state, journal, added)?;

    let envelope = change.envelope_of(command.job);
    let mut new = Arc::clone(journal);
    let from = new.next();
    Arc::make_mut(&mut new).steps.extend(added.iter().cloned());
    let steps: Arc<[_]> = added.into();
    change.put_journal(command.job, &new);
    change.settle(command.job, envelope, &steps);
    change.emit(Event::StepsRecorded { job: command.job, from, steps });
    Ok(Outcome::Done)
}

/// Refuses whoever does not hold the job's lease.
pub(super) fn check_lease(
    change: &Change<'_>,
    job: JobId,
    node: &NodeId,
    token: FencingToken,
) -> Result<(), Rejection> {
    let job = change.state.jobs.get(job);
    live_lease(job, |lease| lease.token == token && lease.node == *node).map(|_| ())
}

/// How many of the steps are recorded already. A folded step is not compared: its content is not in the state.
fn check_known(journal: &Journal, command: &RecordSteps) -> Result<usize, Rejection> {
    let next = journal.next();
    if command.from > next {
        return Err(Rejection::StepGap { from: command.from, next });
    }
    let numbered = || (command.from..).zip(&command.steps);
    for (number, step) in numbered() {
        if let Some(recorded) = journal.step(number).filter(|recorded| *recorded != step) {
            return Err(Rejection::StepDiffers {
                step: number,
                recorded_kind: recorded.kind,
                recorded: recorded.key,
                sent_kind: step.kind,
                sent: step.key,
            });
        }
    }
    Ok(numbered().take_while(|(number, _)| *number < next).count())
}

fn check_room(state: &State, journal: &Journal, added: &[Arc<Step>]) -> Result<(), Rejection> {
    let more: u64 = added.iter().map(|step| step.bytes()).sum();
    let (inline, limit) = (journal.steps.iter().map(|step| step.bytes()).sum::<u64>(), JOURNAL_INLINE_BYTES_MAX);
    if inline + more > limit {
        return Err(Rejection::LimitReached { what: "journal bytes of a job", limit });
    }
    // A journal that has begun has its room: jobs with journals never wait for each other.
    if journal.next() > 0 { Ok(()) } else { check_budget(state, limit) }
}

/// Refuses to reserve `more` bytes for journals than the cluster has room for.
pub(super) fn check_budget(state: &State, more: u64) -> Result<(), Rejection> {
    let limit = state.config.journal_bytes_max;
    if state.journal_bytes() + more > limit {
        return Err(Rejection::LimitReached { what: "journal bytes", limit });
    }
    Ok(())
}

/// Refuses one more fold than a journal may have.
pub(super) fn check_folds(journal: &Journal) -> Result<(), Rejection> {
    check_limit("folds of a journal", journal.folds.len() as u64, FOLDS_MAX)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    const RUNNING: &str = "level 6; agent a; node n1; job j1; grant j1 n1";

    #[test]
    fn steps_are_numbered_from_0_and_the_same_ones_again_change_nothing() {
        check(
            &format!(
                "{RUNNING} -- record j1 from=0 steps=s,m; record j1 from=0 steps=s,m; record j1 from=1 steps=m,t; journal j1"
            ),
            expect![[r#"
                j1 steps from 0: start model
                j1 steps from 2: tools
                j1: folds [] steps start model tools of 198 bytes
            "#]],
        );
    }

    #[test]
    fn a_gap_and_a_differing_step_are_refused() {
        check(
            &format!(
                "{RUNNING}; record j1 from=0 steps=s,m -- record j1 from=3 steps=m; record j1 from=1 steps=t; record j1 from=1 steps=m bytes=9; journal j1"
            ),
            expect![[r#"
                ! step 3 does not follow the journal, whose next step is 2
                ! step 1 is recorded as model 01010101010101010101010101010101 and was sent as tools 02020202020202020202020202020202, or with another outcome
                ! step 1 is recorded as model 01010101010101010101010101010101 and was sent as model 01010101010101010101010101010101, or with another outcome
                j1: folds [] steps start model of 132 bytes
            "#]],
        );
    }

    #[test]
    fn only_the_holder_of_the_lease_records() {
        check(
            &format!(
                "{RUNNING}; lose j1; grant j1 n1 -- record j1 from=0 steps=s token=1; record j1 from=0 steps=s node=n2; record j9 from=0 steps=s; record j1 from=0 steps=s"
            ),
            expect![[r#"
                ! the lease is outdated
                ! the lease is outdated
                ! the lease is outdated
                j1 steps from 0: start
            "#]],
        );
    }

    #[test]
    fn a_lost_lease_keeps_the_journal_and_an_end_takes_it_along() {
        check(
            &format!(
                "{RUNNING}; record j1 from=0 steps=s,m -- lose j1; journal j1; grant j1 n1; record j1 from=2 steps=t; complete j1; journal j1; show j1"
            ),
            expect![[r#"
                j1 Lost running→pending Lost
                j1: folds [] steps start model of 132 bytes
                j1 Granted pending→running on n1 token 2 attempt 2
                j1 steps from 2: tools
                j1 Ended running→completed
                j1: folds [] steps start model tools of 198 bytes
                j1: completed attempt 2 output {}
            "#]],
        );
    }

    #[test]
    fn a_command_a_journal_and_the_cluster_have_bounds() {
        check(
            &format!("{RUNNING}; job j2; grant j2 n1 -- record j1 from=0 steps=s bytes=262081; record j1 from=0 steps=s bytes=32705;
            record j1 from=0 steps=s bytes=32704; record j1 from=1 steps=m bytes=0; config journal=65535; record j2 from=0 steps=s bytes=100;
            config journal=65536; record j2 from=0 steps=s bytes=100; config journal=1; record j2 from=1 steps=m bytes=60"),
            expect![[r#"
                ! a payload of 262145 bytes is too large to be inline
                ! the cluster's limit of 32768 for journal bytes of a job is reached
                j1 steps from 0: start
                ! the cluster's limit of 32768 for journal bytes of a job is reached
                configured
                ! the cluster's limit of 65535 for journal bytes is reached
                configured
                j2 steps from 0: start
                configured
                j2 steps from 1: model
            "#]],
        );
    }
}
