//! A person asks for an ended job to be run again, as a new job of the same family. The ended job stays as it is.

use atlas_types::{Failure, FailureKind, Job, Outcome, Rejection, RetryJob, Spawned, level};

use super::record_steps::check_budget;
use super::submit_job::{check_id, check_queue, check_room};
use crate::change::{Change, again, begun_anew};

pub(super) fn apply(command: &RetryJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.own_job(command.job)?;
    if !job.status.is_terminal() {
        return Err(Rejection::WrongStatus { status: job.status });
    }
    if job.spec.is_none() {
        return Err(Rejection::UnknownAgent);
    }
    if !job.is_approved() {
        return Err(Rejection::Unapproved);
    }
    check_id(change, command.id)?;
    check_queue(change, &job.input)?;
    check_room(change, job.asked_bytes(), &job.labels)?;

    let journal = job.journal.clone().filter(|_| command.resume);
    check_budget(change.state, journal.as_ref().map_or(0, |journal| journal.reserved_bytes()))?;

    let origin = change.origin;
    let new = Job {
        // Nobody waits for what a person asks for.
        spawned: job.spawned.map(|spawned| Spawned { awaited: false, ..spawned }),
        step: None,
        principal: origin.principal.clone(),
        door: origin.door,
        request_id: origin.request_id.clone(),
        trace: origin.trace,
        // One that resumes has the steps that the fork began with.
        questions: command.questions.clone().unwrap_or_else(|| job.questions.clone()),
        fork: if journal.is_some() { job.fork.clone() } else { begun_anew(job) },
        ..again(job, command.id)
    };
    // The same input under the same contract: what the door found then it would find again.
    let refused =
        |failure: &Failure| failure.kind == FailureKind::InputInvalid && change.state.level >= level::REFUSED_INPUTS;
    let failure = job.failure.clone().filter(refused);
    change.submit(new);
    if let Some(journal) = journal {
        change.continue_record(command.id, &journal);
    }
    if let (Some(failure), Ok(job)) = (failure, change.job(command.id)) {
        let job = (**job).clone();
        change.fail_without_run(job, failure);
    }
    Ok(Outcome::Submitted { job: command.id, repeated: false })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;
    use crate::tests::script::Run;

    #[test]
    fn an_ended_job_runs_again_as_a_new_one() {
        check(
            "agent a; node n1; job j1; grant j1 n1; complete j1 output=1 -- retry j1 j2; show j1; show j2",
            expect![[r#"
                j2 Submitted pending→pending Queued
                j1: completed attempt 1 output 1
                j2: pending Queued attempt 0
            "#]],
        );
    }

    #[test]
    fn a_retry_has_the_rule_for_questions_of_the_ended_job_or_its_own() {
        let mut run = Run::new();
        run.prepare("level 6; agent a; node n1; job j1 questions=answer:x; grant j1 n1; fail j1; retry j1 j2; retry j1 j3 questions=wait");
        let rule = |name: &str| run.state.job(run.job_id(name)).map(|job| job.questions.to_string());
        assert_eq!([rule("j2").as_deref(), rule("j3").as_deref()], [Some("answer:x"), Some("wait")]);
    }

    #[test]
    fn an_input_that_was_refused_is_refused_again() {
        check(
            "agent a; job j1 refused=input kind=input error=bad -- retry j1 j2; level 3; retry j1 j3; show j3",
            expect![[r#"
                j2 Submitted pending→pending Queued
                j3 Submitted pending→pending Queued
                j3 Granted pending→running without a lease
                j3 Ended running→failed InputInvalid: bad
                j3: failed attempt 0
            "#]],
        );
    }

    #[test]
    fn a_retry_by_hand_does_not_count_against_the_rule() {
        check(
            "agent a retries=1 backoff=0; node n1; job j1; grant j1 n1; fail j1; wake j1'1; grant j1'1 n1; fail j1'1 --
            retry j1'1 j2; grant j2 n1; fail j2; retry j1 j3; grant j3 n1; fail j3",
            expect![[r#"
                j2 Submitted pending→pending Queued
                j2 Granted pending→running on n1 token 3 attempt 1
                j2 Ended running→failed Agent: boom
                j3 Submitted pending→pending Queued
                j3 Granted pending→running on n1 token 4 attempt 1
                j3 Ended running→failed Agent: boom
                j1'1 Submitted pending→pending Backoff { until: ClusterTime(1000000) }
            "#]],
        );
    }

    /// History keeps jobs by their ids after the state has dropped them, so an id is never given out again.
    #[test]
    fn an_automatic_retry_does_not_take_the_id_of_one_that_was_pruned() {
        let mut run = Run::new();
        run.prepare("agent a retries=1 backoff=0; node n1; job j1; grant j1 n1; fail j1");
        let pruned = run.job_id("j1'1");
        run.prepare("wake j1'1; grant j1'1 n1; complete j1'1; retry j1 j2; ack m1; prune; show j1'1");
        assert!(run.state.job(pruned).is_none());
        run.prepare("grant j2 n1; fail j2");
        let again = run.state.job(run.job_id("j2")).and_then(|job| job.successor);
        assert!(again.is_some_and(|id| id != pruned), "{again:?}");
    }

    #[test]
    fn a_retry_that_resumes_has_the_steps_of_the_ended_job() {
        check(
            "level 6; agent a; node n1; job j1; grant j1 n1; record j1 from=0 steps=s,m,t; fold j1 upto=1 artifact=7; fail j1 --
            retry j1 j2 resume=true; journal j2; grant j2 n1; record j2 from=3 steps=m; retry j1 j3; journal j3; journal j1",
            expect![[r#"
                j2 Submitted pending→pending Queued
                j2 steps up to 1 folded
                j2 steps from 1: model tools
                j2: folds [1] steps model tools of 196 bytes
                j2 Granted pending→running on n1 token 2 attempt 1
                j2 steps from 3: model
                j3 Submitted pending→pending Queued
                j3: no journal
                j1: folds [1] steps model tools of 196 bytes
            "#]],
        );
    }

    #[test]
    fn only_an_ended_job_that_could_run_is_retried() {
        check(
            "agent a; job j1; job j2 refused=unknown -- retry j1 j3; retry j2 j3; retry j9 j3; retry j1 j3 ns=other",
            expect![[r#"
                ! the job is Pending
                ! no such agent version
                ! no such job: ?
                ! no such job: j1
            "#]],
        );
    }

    #[test]
    fn a_title_counts_again() {
        check(
            "agent a contract=2; config bytes=30; job j1 title=weekly-report; cancel j1 --
            retry j1 j2; config bytes=40; retry j1 j2; retry j1 j3",
            expect![[r#"
                ! the cluster's limit of 30 for payload bytes is reached
                configured
                j2 Submitted pending→pending Queued
                ! the cluster's limit of 40 for payload bytes is reached
            "#]],
        );
    }

    #[test]
    fn limits_hold_and_ids_are_taken_once() {
        check(
            "agent a; config active=1; job j1; cancel j1 -- retry j1 j1; retry j1 j2; retry j1 j3",
            expect![[r#"
            ! the id of j1 is taken
            j2 Submitted pending→pending Queued
            ! Queue is full (1 jobs). Wait for jobs to complete or increase max_size.
        "#]],
        );
    }
}
