//! Reserves what a model call may cost in a budget, before the call is made. The step that records the call settles it.

use atlas_types::{Outcome, Rejection, ReserveBudget};

use super::record_steps::check_lease;
use crate::change::Change;

pub(super) fn apply(command: &ReserveBudget, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    check_lease(change, command.job, &command.node, command.token)?;
    change.reserve(command.job, command.call)?;
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    const TREE: &str = "level 6; agent a spawns=true; node n1 places=4; job j1 budget=100; grant j1 n1; spawn j1 c1; grant c1 n1; spawn c1 c2; grant c2 n1";

    #[test]
    fn calls_of_the_whole_tree_draw_on_one_budget() {
        check(
            &format!(
                "{TREE} -- reserve j1 call=1 amount=30; reserve c1 call=1 amount=30; reserve c2 call=1 amount=41; envelope j1;
                reserve c2 call=1 amount=40; record j1 from=0 steps=s; record j1 from=1 steps=m cost=10; reserve c1 call=2 amount=30; envelope j1;
                reserve c1 call=2 amount=91; reserve c1 call=2 amount=20; envelope j1"
            ),
            expect![[r#"
                ! other calls have reserved what is left of the budget
                j1: spent 0 reserved [j1 call 1 30, c1 call 1 30]
                j1 steps from 0: start
                j1 steps from 1: model
                ! other calls have reserved what is left of the budget
                j1: spent 10 reserved [c1 call 1 30, c2 call 1 40]
                ! 10 of a budget of 100 billionths of a dollar are spent, which leaves too little for the call
                j1: spent 10 reserved [c1 call 1 30, c1 call 2 20, c2 call 1 40]
            "#]],
        );
    }

    #[test]
    fn a_lost_call_keeps_its_reservation_and_is_made_again_under_it() {
        check(
            &format!(
                "{TREE} -- reserve c2 call=1 amount=60; lose c2; envelope j1; grant c2 n1; reserve c2 call=1 amount=60; envelope j1"
            ),
            expect![[r#"
                c2 Lost running→pending Lost
                j1: spent 0 reserved [c2 call 1 60]
                c2 Granted pending→running on n1 token 4 attempt 2
                j1: spent 0 reserved [c2 call 1 60]
            "#]],
        );
    }

    #[test]
    fn the_end_of_a_job_frees_what_it_reserved() {
        check(
            &format!(
                "{TREE} -- reserve c2 call=1 amount=60; complete c2; envelope j1; reserve c1 call=1 amount=100; complete c1; complete j1; envelope j1"
            ),
            expect![[r#"
                c2 Ended running→completed
                j1: spent 0 reserved []
                c1 Ended running→completed
                j1 Ended running→completed
                j1: no envelope
            "#]],
        );
    }

    #[test]
    fn recorded_calls_count_without_a_reservation() {
        check(
            &format!(
                "{TREE} -- record c2 from=0 steps=s; record c2 from=1 steps=m cost=70; envelope j1; reserve j1 call=1 amount=31; reserve j1 call=1 amount=30"
            ),
            expect![[r#"
                c2 steps from 0: start
                c2 steps from 1: model
                j1: spent 70 reserved []
                ! 70 of a budget of 100 billionths of a dollar are spent, which leaves too little for the call
            "#]],
        );
    }

    #[test]
    fn the_steps_of_a_chain_draw_on_the_budget_of_the_job_that_it_carries() {
        check(
            "level 6; agent a; agent c carried=true; node n1; start r1 steps=1; job j1 agent=c budget=100; carry j1 run=1; advance r1 agent=a;
            grant r1/0 n1 -- reserve r1/0 call=1 amount=101; reserve r1/0 call=1 amount=60; envelope j1; complete r1/0; envelope j1",
            expect![[r#"
                ! 0 of a budget of 100 billionths of a dollar are spent, which leaves too little for the call
                j1: spent 0 reserved [r1/0 call 1 60]
                r1/0 Ended running→completed
                r1 ended completed step 0
                j1 Ended running→completed
                j1: no envelope
            "#]],
        );
    }

    #[test]
    fn only_the_holder_of_the_lease_reserves_and_a_job_without_a_budget_needs_none() {
        check(
            "level 6; agent a; node n1 places=2; job j1; grant j1 n1; job j2 budget=10; grant j2 n1 -- reserve j1 call=1 amount=999; envelope j1;
            reserve j2 call=1 amount=1 token=9; lose j2; reserve j2 call=1 amount=1",
            expect![[r#"
                j1: no envelope
                ! the lease is outdated
                j2 Lost running→pending Lost
                ! the lease is outdated
            "#]],
        );
    }
}
