//! Drops ended jobs that the histories of a majority have.

use std::collections::BTreeSet;

use atlas_types::{MemberId, Outcome, PruneJobs, Rejection, level};

use crate::change::Change;

pub(super) fn apply(command: &PruneJobs, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let state = &mut *change.state;
    let voters: BTreeSet<_> = command.voters.iter().collect();
    let confirmed = voters.iter().filter(|voter| state.sink(***voter) >= command.event_seq).count();
    if 2 * confirmed <= voters.len() {
        return Err(Rejection::NotConfirmed);
    }

    // Members that were removed must not stay for ever. One that does not vote yet says again how far its history is.
    let forgets = state.level >= level::HISTORIES_FORGOTTEN;
    let gone = |member: &MemberId| forgets && !voters.contains(member);
    for member in state.sinks.keys().filter(|member| gone(member)).copied().collect::<Vec<_>>() {
        state.sinks.remove(&member);
    }

    let mut jobs = 0;
    while jobs < u64::from(command.limit)
        && let Some((event, id)) = state.ended.get_min().copied()
        && event <= command.event_seq
    {
        state.ended.remove(&event);
        let old = state.jobs.remove(id);
        state.index.job(old.as_deref(), None);
        let questions: Vec<_> = state.questions_of(id).cloned().collect();
        for question in questions {
            state.questions.remove(&question.id);
            state.index.question(Some(&question), None);
        }
        jobs += 1;
    }
    Ok(Outcome::Pruned { jobs })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn ended_jobs_go_when_a_majority_has_them() {
        check(
            "agent a; job j1; job j2; job j3; cancel j1; cancel j2; ack m1 --
            prune voters=1,2,3; ack m2 event=5; prune voters=1,2,3; prune voters=1,2,3 event=5; show j1; show j2; show j3",
            expect![[r#"
                ! history has not confirmed these events
                ! history has not confirmed these events
                = pruned 1
                j1: gone
                j2: cancelled attempt 0
                j3: pending Queued attempt 0
            "#]],
        );
    }

    #[test]
    fn one_entry_drops_a_bounded_number() {
        check(
            "agent a; job j1; job j2; cancel j1; cancel j2; ack m1 -- prune limit=1; show j1; show j2; prune limit=1; prune",
            expect![[r#"
                = pruned 1
                j1: gone
                j2: cancelled attempt 0
                = pruned 1
                = pruned 0
            "#]],
        );
    }

    #[test]
    fn from_level_2_on_members_that_do_not_vote_are_forgotten() {
        let script = "agent a; job j1; job j2; cancel j1; ack m1; ack m9 --
            prune voters=1; cancel j2; ack m1; prune voters=9 event=1; prune voters=1";
        check(
            script,
            expect![[r#"
                = pruned 1
                j2 Ended pending→cancelled
                = pruned 0
                = pruned 1
            "#]],
        );
        check(
            &format!("level 2; {script}"),
            expect![[r#"
                = pruned 1
                j2 Ended pending→cancelled
                ! history has not confirmed these events
                = pruned 1
            "#]],
        );
    }

    #[test]
    fn a_voter_that_is_named_twice_counts_once() {
        check(
            "agent a; job j1; cancel j1; ack m1 -- prune voters=1,1,2,3",
            expect![[r#"
            ! history has not confirmed these events
        "#]],
        );
    }
}
