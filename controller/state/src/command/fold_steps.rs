//! Replaces the oldest inline steps of a journal by an artifact that holds them, which makes room for more.

use std::sync::Arc;

use atlas_types::{Event, Fold, FoldSteps, Outcome, PayloadBody, Rejection};

use super::record_steps::{check_folds, check_lease};
use crate::change::Change;

pub(super) fn apply(command: &FoldSteps, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    check_lease(change, command.job, &command.node, command.token)?;
    let &FoldSteps { job, upto, ref artifact, .. } = command;
    if let PayloadBody::Inline(_) = artifact.body {
        return Err(Rejection::FoldInline);
    }
    let empty = Arc::default();
    let journal = change.state.journals.get(&job).unwrap_or(&empty);
    let fold = Fold { upto, artifact: artifact.clone() };
    if journal.folds.last() == Some(&fold) {
        return Ok(Outcome::Done);
    }
    let (first, next) = (journal.first(), journal.next());
    if upto <= first {
        return Err(Rejection::StepsFolded { upto, first });
    }
    if upto > next {
        return Err(Rejection::StepGap { from: upto, next });
    }
    check_folds(journal)?;

    let mut new = Arc::clone(journal);
    let folded = usize::try_from(upto - first).unwrap_or(usize::MAX);
    let kept = Arc::make_mut(&mut new);
    for step in kept.steps.drain(..folded.min(kept.steps.len())) {
        kept.folded += step.usage;
    }
    kept.folds.push(fold);
    change.put_journal(job, &new);
    change.emit(Event::StepsFolded { job, upto, artifact: artifact.clone() });
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;
    use crate::tests::script::Run;

    const RECORDED: &str = "level 6; agent a; node n1; job j1; grant j1 n1; record j1 from=0 steps=s,m,t,m,t";

    #[test]
    fn the_oldest_steps_become_an_artifact() {
        check(
            &format!(
                "{RECORDED} -- fold j1 upto=2 artifact=7; fold j1 upto=2 artifact=7; journal j1; record j1 from=1 steps=t; record j1 from=5 steps=m; fold j1 upto=6 artifact=8; journal j1"
            ),
            expect![[r#"
                j1 steps up to 2 folded
                j1: folds [2] steps tools model tools of 262 bytes
                j1 steps from 5: model
                j1 steps up to 6 folded
                j1: folds [2, 6] steps  of 128 bytes
            "#]],
        );
    }

    #[test]
    fn a_fold_keeps_what_its_steps_cost() {
        check(
            "level 6; agent a; node n1; job j1; grant j1 n1 -- record j1 from=0 steps=s,m cost=5; fold j1 upto=1 artifact=7; journal j1;
            record j1 from=2 steps=m cost=7; fold j1 upto=3 artifact=8; journal j1; complete j1; retry j1 j2 resume=true; journal j2",
            expect![[r#"
                j1 steps from 0: start model
                j1 steps up to 1 folded
                j1: folds [1] steps model of 130 bytes, cost 10
                j1 steps from 2: model
                j1 steps up to 3 folded
                j1: folds [1, 3] steps  of 128 bytes, cost 17
                j1 Ended running→completed
                j2 Submitted pending→pending Queued
                j2 steps up to 1 folded
                j2 steps up to 3 folded
                j2: folds [1, 3] steps  of 128 bytes, cost 17
            "#]],
        );
    }

    #[test]
    fn a_fold_follows_the_one_before_and_ends_within_the_journal() {
        check(
            &format!(
                "{RECORDED}; fold j1 upto=2 artifact=7 -- fold j1 upto=2 artifact=8; fold j1 upto=1 artifact=8; fold j1 upto=6 artifact=8; fold j1 upto=5 artifact=8 token=9; fold j9 upto=1 artifact=8"
            ),
            expect![[r#"
                ! the steps before 2 are folded, a fold up to step 2 does not follow
                ! the steps before 2 are folded, a fold up to step 1 does not follow
                ! step 6 does not follow the journal, whose next step is 5
                ! the lease is outdated
                ! the lease is outdated
            "#]],
        );
    }

    #[test]
    fn an_inline_fold_is_refused() {
        check(
            &format!("{RECORDED} -- fold j1 upto=2 inline=true; fold j1 upto=2 artifact=7; fold j1 upto=2 inline=true"),
            expect![[r#"
                ! a fold must be an artifact, this one is inline
                j1 steps up to 2 folded
                ! a fold must be an artifact, this one is inline
            "#]],
        );
    }

    #[test]
    fn a_journal_holds_its_artifacts_until_its_job_is_pruned() {
        let mut run = Run::new();
        run.prepare(&format!("{RECORDED}; fold j1 upto=2 artifact=7"));
        let artifact = atlas_types::Digest([7; 32]);
        assert!(run.state.refers_to(&artifact));
        run.prepare("lose j1; grant j1 n1; complete j1");
        assert!(run.state.refers_to(&artifact), "the ended job has it");
        run.prepare("ack m1; prune");
        assert!(!run.state.refers_to(&artifact));
    }
}
