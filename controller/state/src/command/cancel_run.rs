//! Cancels a run. The jobs of its steps are cancelled with it; a running one ends when its worker has stopped it.

use atlas_types::{CancelRun, Outcome, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &CancelRun, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let run = change.own_run(command.run).ok_or(Rejection::UnknownRun { run: command.run })?;
    if run.status.is_terminal() {
        return Ok(Outcome::Cancelled { accepted: false });
    }
    change.stop_run(command.run);
    Ok(Outcome::Cancelled { accepted: true })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn the_job_of_the_current_step_is_cancelled() {
        check(
            "level 6; agent a retries=1; node n1; start r1 steps=2; start r2 steps=1; start r3 steps=1; advance r1 agent=a; advance r2 agent=a;
            grant r1/0 n1; grant r2/0 n1; fail r2/0 --
            cancel-run r1; show r1; fail r1/0; cancel-run r1; cancel-run r2; show r2; cancel-run r3; cancel-run r9; cancel-run r3 ns=other",
            expect![[r#"
                r1 ended cancelled step 0: Chain execution was cancelled
                r1/0 Cancelling running→running Cancelling
                r1: cancelled version 3 of 2 steps ["a None"] Chain execution was cancelled
                r1/0 Ended running→cancelled
                = nothing to cancel
                r2 ended cancelled step 0: Chain execution was cancelled
                r2/0'1 Ended pending→cancelled
                r2: cancelled version 3 of 1 steps ["a None"] Chain execution was cancelled
                r3 ended cancelled step -1: Chain execution was cancelled
                ! no such run: run-0000000000000009
                ! no such run: run-0000000000000003
            "#]],
        );
    }
}
