//! A person begins a new job with the first steps of another one's journal. The other job stays as it is, whether it has ended or not.

use std::sync::Arc;

use atlas_types::{Fold, Fork, ForkJob, Job, Journal, Outcome, Rejection};

use super::record_steps::check_budget;
use super::submit_job::{check_id, check_queue, check_room, pinned};
use crate::change::{Change, again};

pub(super) fn apply(command: &ForkJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = Arc::clone(change.own_job(command.job)?);
    if !job.is_approved() {
        return Err(Rejection::Unapproved);
    }
    check_id(change, command.id)?;
    check_queue(change, &job.input)?;
    check_room(change, job.asked_bytes(), &job.labels)?;
    let recorded = change.state.journals.get(&command.job).or(job.journal.as_ref());
    let recorded = recorded.cloned().unwrap_or_default();
    let mut journal = beginning(&recorded, command)?;
    journal.steps.extend(command.added.iter().cloned());
    let journal = Arc::new(journal);
    check_budget(change.state, journal.reserved_bytes())?;
    let same = job.pin.as_ref() == Some(&command.pin);
    let version = pinned(change, &job.agent, &command.pin, false).ok_or(Rejection::StaleAgent)?;
    let spec = Arc::clone(&version.spec);

    let origin = change.origin;
    // The steps that another fork added are those of its model.
    let model = command.model.clone().or_else(|| job.fork.as_ref().and_then(|fork| fork.model.clone()));
    let (steps, changed) = (command.steps, !same || command.model.is_some());
    let fork = Fork { from: job.id, steps, changed, model };
    let new = Job {
        pin: Some(command.pin.clone()),
        spec: Some(spec),
        // A job of its own: in no family, of no run, and no parent waits for it.
        step: None,
        retry_count: 0,
        original: None,
        spawned: None,
        // The credential of the other job's caller is not this caller's.
        bearer: false,
        principal: origin.principal.clone(),
        door: origin.door,
        request_id: origin.request_id.clone(),
        trace: origin.trace,
        fork: Some(Arc::new(fork)),
        ..again(&job, command.id)
    };
    change.submit(new);
    change.continue_record(command.id, &journal);
    Ok(Outcome::Submitted { job: command.id, repeated: false })
}

/// The first steps of a journal.
fn beginning(journal: &Journal, command: &ForkJob) -> Result<Journal, Rejection> {
    let (steps, recorded) = (command.steps, journal.next());
    let missing = Rejection::JournalLength { sent: steps, recorded };
    if steps == 0 || steps > recorded {
        return Err(missing);
    }
    if let Some(inline) = steps.checked_sub(journal.first()) {
        let inline = usize::try_from(inline).unwrap_or(usize::MAX);
        let steps = journal.steps.iter().take(inline).cloned().collect();
        return Ok(Journal { steps, ..journal.clone() });
    }
    let mut folds: Vec<Fold> = journal.folds.iter().take_while(|fold| fold.upto <= steps).cloned().collect();
    if folds.last().is_none_or(|fold| fold.upto < steps) {
        // The content of folds is not in the state, so the door cuts them.
        let artifact = command.cut.clone().ok_or(missing)?;
        if artifact.inline_bytes() > 0 {
            return Err(Rejection::FoldInline);
        }
        folds.push(Fold { upto: steps, artifact });
    }
    Ok(Journal { folds, steps: Vec::new(), folded: command.folded })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_fork_begins_with_the_first_steps() {
        check(
            "level 6; agent a; node n1; job j1; grant j1 n1; record j1 from=0 steps=s,m,t,m; fail j1 --
            fork j1 j2 steps=2; journal j2; show j2; grant j2 n1; record j2 from=2 steps=m; journal j1; fork j2 j3 steps=3; journal j3",
            expect![[r#"
                j2 Submitted pending→pending Queued
                j2 steps from 0: start model
                j2: folds [] steps start model of 132 bytes
                j2: pending Queued attempt 0
                j2 Granted pending→running on n1 token 2 attempt 1
                j2 steps from 2: model
                j1: folds [] steps start model tools model of 264 bytes
                j3 Submitted pending→pending Queued
                j3 steps from 0: start model model
                j3: folds [] steps start model model of 198 bytes
            "#]],
        );
    }

    #[test]
    fn a_running_job_is_forked_as_well() {
        check(
            "level 6; agent a; node n1; job j1; grant j1 n1; record j1 from=0 steps=s,m -- fork j1 j2 steps=1; journal j2; show j1",
            expect![[r#"
                j2 Submitted pending→pending Queued
                j2 steps from 0: start
                j2: folds [] steps start of 66 bytes
                j1: running Running attempt 1
            "#]],
        );
    }

    #[test]
    fn a_step_of_a_person_follows_the_copied_ones() {
        check(
            "level 6; agent a; node n1; job j1; grant j1 n1; record j1 from=0 steps=s,m,t; fold j1 upto=3 artifact=7; record j1 from=3 steps=m; fail j1 --
            fork j1 j2 steps=4 added=t; journal j2; fork j1 j3 steps=3 added=t; journal j3; grant j2 n1; record j2 from=5 steps=m",
            expect![[r#"
                j2 Submitted pending→pending Queued
                j2 steps up to 3 folded
                j2 steps from 3: model tools
                j2: folds [3] steps model tools of 196 bytes
                j3 Submitted pending→pending Queued
                j3 steps up to 3 folded
                j3 steps from 3: tools
                j3: folds [3] steps tools of 130 bytes
                j2 Granted pending→running on n1 token 2 attempt 1
                j2 steps from 5: model
            "#]],
        );
    }

    #[test]
    fn folds_are_kept_whole_or_cut() {
        check(
            "level 6; agent a; node n1; job j1; grant j1 n1; record j1 from=0 steps=s,m,t; fold j1 upto=3 artifact=7;
            record j1 from=3 steps=m,t; fold j1 upto=5 artifact=8; record j1 from=5 steps=m; complete j1 --
            fork j1 j2 steps=6; journal j2; fork j1 j3 steps=5; journal j3; fork j1 j4 steps=3; journal j4;
            fork j1 j5 steps=4; fork j1 j5 steps=4 cut=9; journal j5",
            expect![[r#"
                j2 Submitted pending→pending Queued
                j2 steps up to 3 folded
                j2 steps up to 5 folded
                j2 steps from 5: model
                j2: folds [3, 5] steps model of 194 bytes
                j3 Submitted pending→pending Queued
                j3 steps up to 3 folded
                j3 steps up to 5 folded
                j3: folds [3, 5] steps  of 128 bytes
                j4 Submitted pending→pending Queued
                j4 steps up to 3 folded
                j4: folds [3] steps  of 64 bytes
                ! the journal has 6 steps, so nothing can go on after 4
                j5 Submitted pending→pending Queued
                j5 steps up to 3 folded
                j5 steps up to 4 folded
                j5: folds [3, 4] steps  of 128 bytes
            "#]],
        );
    }

    #[test]
    fn a_title_counts_again() {
        check(
            "level 6; agent a contract=2; node n1; config bytes=30; job j1 title=weekly-report; grant j1 n1; record j1 from=0 steps=s --
            fork j1 j2 steps=1; config bytes=40; fork j1 j2 steps=1; fork j1 j3 steps=1",
            expect![[r#"
                ! the cluster's limit of 30 for payload bytes is reached
                configured
                j2 Submitted pending→pending Queued
                j2 steps from 0: start
                ! the cluster's limit of 40 for payload bytes is reached
            "#]],
        );
    }

    #[test]
    fn what_cannot_be_forked_is_refused() {
        check(
            "level 6; agent a; node n1; job j1; job j2; grant j2 n1; record j2 from=0 steps=s -- fork j1 j3 steps=1; fork j9 j3 steps=1;
            fork j2 j3 steps=0; fork j2 j3 steps=2; fork j2 j1 steps=1; fork j2 j3 steps=1 version=2.0.0; fork j2 j3 steps=1 ns=other",
            expect![[r#"
                ! the journal has 0 steps, so nothing can go on after 1
                ! no such job: ?
                ! the journal has 1 steps, so nothing can go on after 0
                ! the journal has 1 steps, so nothing can go on after 2
                ! the id of j1 is taken
                ! the agent version is no longer registered with this package
                ! no such job: j2
            "#]],
        );
    }

    #[test]
    fn a_fork_has_another_version_and_model_and_its_retry_begins_without_steps() {
        check(
            "level 6; agent a retries=1 backoff=0; node n1; agent a version=2.0.0 retries=1 backoff=0; job j1 version=1.0.0; grant j1 n1; record j1 from=0 steps=s,m; fail j1 --
            fork j1 j2 steps=2 version=2.0.0 model=large; grant j2 n1; fail j2; journal j2'1; retry j2 j3 resume=true; journal j3",
            expect![[r#"
                j2 Submitted pending→pending Queued
                j2 steps from 0: start model
                j2 Granted pending→running on n1 token 2 attempt 1
                j2 Ended running→failed Agent: boom
                j2'1 Submitted pending→pending Backoff { until: ClusterTime(1100000) }
                j2'1: no journal
                j3 Submitted pending→pending Queued
                j3 steps from 0: start model
                j3: folds [] steps start model of 132 bytes
            "#]],
        );
    }
}
