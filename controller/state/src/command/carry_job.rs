//! Gives a pending job to a run. It runs without a lease, so no node, place or hardware is taken for it.

use atlas_types::{Carried, CarryJob, JobChange, JobStatus, Outcome, Reason, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &CarryJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let &CarryJob { job, run } = command;
    let job = change.job(job)?;
    if job.carrier().is_some_and(|carried| carried.run == run) {
        return Ok(Outcome::Done);
    }
    match (job.status, job.reason) {
        (JobStatus::Pending, Reason::Queued) => {}
        (JobStatus::Pending, Reason::Backoff { .. } | Reason::Delayed { .. }) => return Err(Rejection::NotDue),
        (status, _) => return Err(Rejection::WrongStatus { status }),
    }
    if !job.is_for_a_run() {
        return Err(Rejection::NeedsLease);
    }
    if let Some(other) = change.state.index.runs.carried_by(run) {
        return Err(Rejection::RunTaken { job: other });
    }

    let mut new = (**job).clone();
    new.carried = Some(Carried { run, since: change.clock });
    new.status = JobStatus::Running;
    new.reason = Reason::Running;
    new.started_at = change.at;
    change.put(new, JobChange::Carried, JobStatus::Pending);
    // The run of a chain may have begun before it got its job, and may have ended since.
    change.end_carried(run);
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    #[test]
    fn a_carried_job_runs_and_holds_nothing() {
        check(
            "level 6; agent a carried=true limit=1; node n1 places=1; job j1; job j2 --
            show j1; carry j1 run=7; carry j1 run=7; carry j2 run=8; show j1; show n1; drain n1; lose-node n1; show j1",
            expect![[r#"
                j1: pending Queued attempt 0
                j1 Carried pending→running by run-0000000000000007
                j2 Carried pending→running by run-0000000000000008
                j1: running Running attempt 0
                n1: places 1 cores any memory any gpus [] warm []
                node n1 epoch 1 Ready draining
                node n1 epoch 1 Down draining
                j1: running Running attempt 0
            "#]],
        );
    }

    #[test]
    fn a_job_is_for_a_lease_or_for_a_run() {
        check(
            "level 6; agent a; agent b carried=true retries=1; node n1; job j1; job j2 agent=b; job j3 agent=b --
            carry j1 run=7; grant j2 n1; carry j9 run=7; carry j2 run=7; carry j3 run=7; carry j2 run=8; grant j2 n1;
            end-run j2 error=boom; carry j2'1 run=7; carry j3 run=7",
            expect![[r#"
                ! jobs of this agent run under a lease; no run carries them
                ! a run carries the jobs of this agent; they get no lease
                ! no such job: ?
                j2 Carried pending→running by run-0000000000000007
                ! the run already carries j2
                ! the job is Running
                ! the job is Running
                j2 Ended running→failed Agent: boom
                j2'1 Submitted pending→pending Backoff { until: ClusterTime(2000000) }
                ! the job is not due yet
                j3 Carried pending→running by run-0000000000000007
            "#]],
        );
    }

    #[test]
    fn a_job_waits_for_a_run_no_longer_than_its_queue_timeout() {
        check(
            "level 6; agent a carried=true queue=5; job j1; job j2; carry j1 run=7; clock +5 --
            fail-pending j1 kind=queue-timeout; fail-pending j2 kind=queue-timeout",
            expect![[r#"
                ! the job is Running
                j2 Granted pending→running without a lease
                j2 Ended running→failed QueueTimeout: boom
            "#]],
        );
    }

    #[test]
    fn a_cancel_ends_a_carried_job_at_once_and_cancels_its_children() {
        check(
            "level 6; agent a carried=true spawns=true; agent b; node n1; job j1; carry j1 run=7; run-spawn j1 c1 agent=b;
            run-spawn j1 c2 agent=b; grant c1 n1 --
            cancel-pending j1; cancel j1; cancel j1; end-run j1 run=7; fail c1; show j1",
            expect![[r#"
                = nothing to cancel
                j1 Ended running→cancelled
                c1 Cancelling running→running Cancelling
                c2 Ended pending→cancelled
                = nothing to cancel
                ! the run does not carry this job
                c1 Ended running→cancelled
                j1: cancelled attempt 0
            "#]],
        );
    }

    #[test]
    fn a_carried_job_spawns_for_its_run_alone_and_lends_no_place() {
        check(
            "level 6; agent a carried=true spawns=true; agent b spawns=true; agent c carried=true; node n1 places=1; job j1; job j2 agent=c;
            carry j1 run=7; carry j2 run=8 --
            run-spawn j1 c1 agent=b run=9; run-spawn j2 c1 agent=b; run-spawn j1 c1 agent=b; run-spawn j1 c2 agent=b; show n1;
            grant c1 n1; grant c2 n1; spawn j1 c3 agent=b token=0; spawn c1 c3 agent=a; carry c3 run=9; complete c1; show c3;
            grant c2 n1; complete c2; end-run j1; run-spawn j1 c4 agent=b run=7",
            expect![[r#"
                ! the run does not carry this job
                ! Agent does not have spawn_agents permission
                c1 Submitted pending→pending Queued
                c2 Submitted pending→pending Queued
                n1: places 1 cores any memory any gpus [] warm []
                c1 Granted pending→running on n1 token 1 attempt 1
                ! the placement does not fit
                ! the lease is outdated
                c3 Submitted pending→pending Queued
                c3 Carried pending→running by run-0000000000000009
                c1 Ended running→completed
                c3: running Running attempt 0
                c2 Granted pending→running on n1 token 2 attempt 1
                c2 Ended running→completed
                j1 Ended running→completed
                ! the run does not carry this job
            "#]],
        );
    }

    #[test]
    fn the_steps_of_a_run_need_no_room_in_the_queue() {
        check(
            r#"level 6; agent a carried=true spawns=true; agent b spawns=true; put namespace default {"jobs_pending_max":1}; config active=2; node n1;
            job j1; carry j1 run=7; job j2 agent=b; grant j2 n1 --
            job j3 agent=b; spawn j2 c3 agent=b; run-spawn j1 c1 agent=b; run-spawn j1 c2 agent=b; run-spawn j1 c1 agent=b"#,
            expect![[r#"
                ! Queue is full (2 jobs). Wait for jobs to complete or increase max_size.
                ! Queue is full (2 jobs). Wait for jobs to complete or increase max_size.
                c1 Submitted pending→pending Queued
                c2 Submitted pending→pending Queued
                ! the id of c1 is taken
            "#]],
        );
    }

    #[test]
    fn reports_and_steps_mean_nothing_for_a_carried_job() {
        check(
            "level 6; agent a carried=true; node n1; job j1; carry j1 run=7 --
            start j1 node=n1; complete j1 node=n1; fail j1 node=n1; lose j1; record j1 from=0 steps=s node=n1; park j1 at=9 node=n1;
            store-log j1 node=n1; resolve j1 again; wake j1; send j1 a; inbox j1",
            expect![[r#"
                ! the lease is outdated
                ! the lease is outdated
                ! the lease is outdated
                ! the lease is outdated
                ! the lease is outdated
                ! the lease is outdated
                ! the lease is outdated
                ! the job is not in doubt, it is Running
                ! the job is Running
                j1 message 0: a
                j1: read 0 [] then ["a"] of 1 bytes
            "#]],
        );
    }
}
