//! Approvals: the questions of policies about a job, and what their end means for it.

use std::sync::Arc;

use atlas_types::{
    Approval, ApprovalAnswer, ApprovalAsk, Approvals, EARLIER_APPROVALS_MAX, Event, Failure, FailureKind, Job,
    JobChange, JobStatus, Micros, QUESTIONS_MAX, Question, QuestionEnd, Reason, Timestamp, rejected, unapproved,
};

use super::Change;

impl Change<'_> {
    /// The job as it waits for approvals, beside those that it got before. [`Self::ask_approvals`] asks once it is stored.
    pub(crate) fn unapproved(&self, job: Job, asks: &[ApprovalAsk], not_before: Option<Timestamp>) -> Job {
        // Each question is an event, so the numbers of a job that is asked about again are other ones.
        let numbers = self.state.event_seq.0..;
        let approval = |(ask, number): (&ApprovalAsk, u64)| Approval {
            policy: ask.rule.policy.clone(),
            rule: Arc::clone(&ask.rule.rule),
            question: job.id.approval(number),
            agent: job.agent.clone(),
            by: None,
        };
        let mut all = job.approvals.as_ref().map(|earlier| earlier.all.clone()).unwrap_or_default();
        all.drain(..all.len().saturating_sub(EARLIER_APPROVALS_MAX));
        all.extend(asks.iter().zip(numbers).map(approval));
        Job { reason: Reason::Approval, approvals: Some(Arc::new(Approvals { all, not_before })), ..job }
    }

    /// Asks for the approvals that a job in the state waits for.
    pub(crate) fn ask_approvals(&mut self, job: &Job, asks: &[ApprovalAsk]) {
        let approvals = job.approvals.as_ref().map_or(&[][..], |approvals| &approvals.all);
        // The newest are those that were not asked for yet.
        let new = &approvals[approvals.len().saturating_sub(asks.len())..];
        for (approval, ask) in new.iter().zip(asks) {
            let question = Arc::new(Question {
                id: approval.question,
                namespace: job.namespace.clone(),
                job: job.id,
                step: 0,
                rule: Some(Arc::clone(&ask.rule)),
                ask: Arc::clone(&ask.ask),
                asked: self.state.event_seq.next(),
                asked_at: self.at,
                due: ask.ask.timeout.map(|timeout| self.clock.plus(timeout)),
                end: None,
                ended_at: Timestamp::NOT_YET,
            });
            self.make_room_for_question(job);
            self.set_question(question.id, Some(Arc::clone(&question)));
            self.emit(Event::QuestionAsked { question });
        }
    }

    /// Forgets the oldest question of a job that has as many as it may. Those from before a redirect have ended.
    fn make_room_for_question(&mut self, job: &Job) {
        if (self.state.questions_of(job.id).count() as u64) < QUESTIONS_MAX {
            return;
        }
        let oldest = self.state.questions_of(job.id).find(|question| !question.is_open()).map(|question| question.id);
        if let Some(oldest) = oldest {
            self.set_question(oldest, None);
        }
    }

    /// What the end of a question means for the job that waits for this approval: the last approval queues it, and anything else ends it.
    pub(super) fn conclude(&mut self, question: &Question) {
        let waits = |job: &&Arc<Job>| job.status == JobStatus::Pending && job.reason == Reason::Approval;
        let Some(mut job) = self.state.jobs.get(question.job).filter(waits).map(|job| (**job).clone()) else { return };
        let Some(approvals) = &mut job.approvals else { return };
        let asked = Arc::make_mut(approvals).all.iter_mut().find(|approval| approval.question == question.id);
        let Some(approval) = asked else { return };
        let error = match &question.end {
            Some(QuestionEnd::Answered { answer, by }) => {
                let text: String = serde_json::from_slice(answer).unwrap_or_default();
                match ApprovalAnswer::read(&text) {
                    Some(ApprovalAnswer::Approved) => {
                        approval.by = Some(by.clone());
                        return self.approve(job);
                    }
                    Some(ApprovalAnswer::Rejected(why)) => rejected(approval, by, why),
                    None => rejected(approval, by, &text),
                }
            }
            Some(QuestionEnd::Defaulted | QuestionEnd::Expired | QuestionEnd::Cancelled) | None => {
                unapproved(approval, question.ask.timeout)
            }
        };
        self.fail_without_run(job, Failure { kind: FailureKind::Rejected, error: error.into() });
    }

    /// Stores a job that has one more approval. One that has them all waits for its time, if that has not come, and then for its turn.
    fn approve(&mut self, job: Job) {
        let Some(approvals) = job.approvals.clone().filter(|approvals| approvals.is_complete()) else {
            self.store(job);
            return;
        };
        let left = approvals.not_before.map_or(0, |time| time.0.saturating_sub(self.at.0));
        match u64::try_from(left) {
            Ok(left @ 1..) => {
                let reason = Reason::Delayed { until: self.clock.plus(Micros(left)) };
                self.put(Job { reason, ..job }, JobChange::Woken, JobStatus::Pending);
            }
            _ => self.wake(job),
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    const ASKED: &str = "level 6; agent a retries=1; node n1; job j1 by=ann asked=1";
    const APPROVE: &str = r#"approval=0 answer="approve""#;

    #[test]
    fn a_job_runs_only_after_its_approval() {
        check(
            &format!(
                "level 6; agent a; node n1 -- job j1 by=ann asked=1; show j1; grant j1 n1; carry j1 r1; wake j1;
                answer j1 by=bob {APPROVE}; answer j1 by=carl {APPROVE}; show j1; grant j1 n1; complete j1; evidence j1"
            ),
            expect![[r#"
                j1 Submitted pending→pending Approval
                j1 asks at step 0: approve until 61 s
                j1: pending Approval attempt 0
                ! the job is Pending
                ! the job is Pending
                ! the job is Pending
                j1 question of step 0 answered by bob "approve"
                j1 Woken pending→pending Queued
                ! the question is not open any more
                j1: pending Queued attempt 0
                j1 Granted pending→running on n1 token 1 attempt 1
                j1 Ended running→completed
                j1: grants ["1 on n1"] answers ["step 0 answered by bob"]
            "#]],
        );
    }

    #[test]
    fn whoever_submitted_it_answers_only_if_the_rule_says_so() {
        check(
            &format!("{ASKED}; job j2 by=ann asked=1 own=true; job j3 by=ann asked=1 answerers=dora --
                answer j1 by=ann {APPROVE}; answer j2 by=ann {APPROVE}; answer j3 by=bob {APPROVE}; answer j3 by=dora {APPROVE}"),
            expect![[r#"
                ! the question is for others to answer
                j2 question of step 0 answered by ann "approve"
                j2 Woken pending→pending Queued
                ! the question is for others to answer
                j3 question of step 0 answered by dora "approve"
                j3 Woken pending→pending Queued
            "#]],
        );
    }

    #[test]
    fn a_refusal_ends_it_for_good() {
        check(
            &format!(
                r#"{ASKED}; config deterministic=true -- answer j1 by=bob approval=0 answer="reject:not-today"; show j1; retry j1 j2; fork j1 j2;
                job j3 by=ann asked=1; answer j3 by=bob approval=0 answer="maybe"; job j4 by=ann asked=1; answer j4 by=bob approval=0 bytes=3"#
            ),
            expect![[r#"
                j1 question of step 0 answered by bob "reject:not-today"
                j1 Granted pending→running without a lease
                j1 Ended running→failed Rejected: E2112: bob rejected the job, which needs an approval by the rule "r0" of the policy "p": not-today
                j1: failed attempt 0
                ! the job was not approved, so it cannot be run again
                ! the job was not approved, so it cannot be run again
                j3 Submitted pending→pending Approval
                j3 asks at step 0: approve until 61 s
                j3 question of step 0 answered by bob "maybe"
                j3 Granted pending→running without a lease
                j3 Ended running→failed Rejected: E2112: bob rejected the job, which needs an approval by the rule "r0" of the policy "p": maybe
                j4 Submitted pending→pending Approval
                j4 asks at step 0: approve until 61 s
                j4 question of step 0 answered by bob 
                j4 Granted pending→running without a lease
                j4 Ended running→failed Rejected: E2112: bob rejected the job, which needs an approval by the rule "r0" of the policy "p"
            "#]],
        );
    }

    #[test]
    fn time_ends_it_as_well() {
        check(
            &format!(
                "{ASKED} within=5; config deterministic=true -- clock +4; expire j1 approval=0; clock +1; answer j1 by=ann; expire j1 approval=0; evidence j1"
            ),
            expect![[r#"
                ! the job is not due yet
                ! no such question
                j1 question of step 0 expired
                j1 Granted pending→running without a lease
                j1 Ended running→failed Rejected: E2113: nobody approved the job within 5 s, which the rule "r0" of the policy "p" demands
                j1: grants [] answers ["step 0 expired"]
            "#]],
        );
    }

    #[test]
    fn a_cancel_or_another_end_closes_the_question() {
        check(
            &format!(
                "{ASKED}; job j2 by=ann asked=2; config deterministic=true -- cancel j1; answer j1 by=bob {APPROVE}; fail-pending j2 kind=dependency"
            ),
            expect![[r#"
                j1 Ended pending→cancelled
                j1 question of step 0 cancelled
                ! the question is not open any more
                j2 Granted pending→running without a lease
                j2 Ended running→failed Dependency: boom
                j2 question of step 0 cancelled
                j2 question of step 0 cancelled
            "#]],
        );
    }

    #[test]
    fn all_approvals_are_needed_and_one_refusal_is_enough() {
        check(
            &format!(
                r#"level 6; agent a; node n1; job j1 by=ann asked=2; job j2 by=ann asked=2 --
                answer j1 by=bob approval=1 answer="approve"; grant j1 n1; answer j1 by=bob {APPROVE};
                answer j2 by=bob {APPROVE}; answer j2 by=bob approval=1 answer="reject""#
            ),
            expect![[r#"
                j1 question of step 0 answered by bob "approve"
                ! the job is Pending
                j1 question of step 0 answered by bob "approve"
                j1 Woken pending→pending Queued
                j2 question of step 0 answered by bob "approve"
                j2 question of step 0 answered by bob "reject"
                j2 Granted pending→running without a lease
                j2 Ended running→failed Rejected: E2112: bob rejected the job, which needs an approval by the rule "r1" of the policy "p"
            "#]],
        );
    }

    #[test]
    fn an_approved_job_waits_for_its_time_and_its_retries_are_not_asked_about() {
        check(
            &format!(
                "{ASKED}; job j2 by=ann asked=1 at=20; clock +5 -- answer j2 by=bob {APPROVE}; show j2; clock +15; wake j2;
                answer j1 by=bob {APPROVE}; grant j1 n1; fail j1; clock +9; wake j1'1; grant j1'1 n1; fail j1'1; retry j1'1 j3; grant j3 n1"
            ),
            expect![[r#"
                j2 question of step 0 answered by bob "approve"
                j2 Woken pending→pending Delayed { until: ClusterTime(24995000) }
                j2: pending back-off 18 s attempt 0
                ! the job is not due yet
                j1 question of step 0 answered by bob "approve"
                j1 Woken pending→pending Queued
                j1 Granted pending→running on n1 token 1 attempt 1
                j1 Ended running→failed Agent: boom
                j1'1 Submitted pending→pending Backoff { until: ClusterTime(22000000) }
                j1'1 Woken pending→pending Queued
                j1'1 Granted pending→running on n1 token 2 attempt 1
                j1'1 Ended running→failed Agent: boom
                j3 Submitted pending→pending Queued
                j3 Granted pending→running on n1 token 3 attempt 1
            "#]],
        );
    }

    #[test]
    fn what_is_asked_has_bounds() {
        check(
            "level 6; agent a -- job j1 asked=0; job j1 asked=17; job j1 asked=1 bytes=32769; config bytes=10; job j1 asked=2;
            config bytes=100; job j1 asked=2; job j2 asked=16",
            expect![[r#"
                ! a payload of 0 bytes is too large to be inline
                ! a payload of 34 bytes is too large to be inline
                ! a payload of 32769 bytes is too large to be inline
                configured
                j1 Submitted pending→pending Approval
                j1 asks at step 0: approve until 61 s
                j1 asks at step 0: approve until 61 s
                configured
                ! the id of j1 is taken
                j2 Submitted pending→pending Approval
                j2 asks at step 0: approve until 61 s
                j2 asks at step 0: approve until 61 s
                j2 asks at step 0: approve until 61 s
                j2 asks at step 0: approve until 61 s
                j2 asks at step 0: approve until 61 s
                j2 asks at step 0: approve until 61 s
                j2 asks at step 0: approve until 61 s
                j2 asks at step 0: approve until 61 s
                j2 asks at step 0: approve until 61 s
                j2 asks at step 0: approve until 61 s
                j2 asks at step 0: approve until 61 s
                j2 asks at step 0: approve until 61 s
                j2 asks at step 0: approve until 61 s
                j2 asks at step 0: approve until 61 s
                j2 asks at step 0: approve until 61 s
                j2 asks at step 0: approve until 61 s
            "#]],
        );
    }

    #[test]
    fn of_many_redirects_the_newest_approvals_are_kept() {
        let mut run = crate::tests::script::Run::new();
        run.prepare(&format!(
            r#"level 6; agent a; agent b; put routing default {{"orchestrator":"r"}}; job j1 by=ann asked=1; answer j1 by=bob {APPROVE}"#
        ));
        for round in 0..5 {
            run.prepare(&format!(
                r#"put routing default {{"orchestrator":"s{round}"}}; route j1; route j1 redirect=b asked=16"#
            ));
            let count = run.state.jobs.iter().next().and_then(|job| Some(job.approvals.as_ref()?.all.len()));
            for number in (0..count.expect("approvals")).rev().take(16) {
                run.prepare(&format!(r#"answer j1 by=bob approval={number} answer="approve""#));
            }
            // A job keeps a bounded number of questions as well.
            run.state.check_invariants().expect("they hold");
        }
        let job = run.state.jobs.iter().next().expect("the job");
        let all = &job.approvals.as_ref().expect("approvals").all;
        assert_eq!(all.len(), super::EARLIER_APPROVALS_MAX + atlas_types::JOB_APPROVALS_MAX);
        assert!(all.iter().all(|approval| approval.agent.as_str() == "b" && approval.by.is_some()));
    }

    #[test]
    fn an_orchestrator_decides_after_the_approval_and_its_redirect_is_asked_about_again() {
        check(
            &format!(
                r#"level 6; agent a; agent b; node n1; put routing default {{"orchestrator":"r"}} -- job j1 by=ann asked=1; route j1 execute;
                answer j1 by=bob {APPROVE}; grant j1 n1; route j1; route j1 redirect=b asked=1; show j1; grant j1 n1;
                answer j1 by=bob {APPROVE}; approvals j1; answer j1 by=carl approval=1 answer="approve"; approvals j1; show j1; grant j1 n1"#
            ),
            expect![[r#"
                j1 Submitted pending→pending Approval
                j1 asks at step 0: approve until 61 s
                ! the routing decision about the job is outdated
                j1 question of step 0 answered by bob "approve"
                j1 Woken pending→pending Queued
                ! the routing decision about the job is outdated
                j1 Routed pending→pending Routing { until: ClusterTime(11000000) }
                j1 Routed pending→pending Approval
                j1 asks at step 0: approve until 61 s
                j1: pending Approval attempt 0 redirect under 4 as b priority 0
                ! the job is Pending
                ! the question is not open any more
                j1: r0 for a by bob, r0 for b by nobody
                j1 question of step 0 answered by carl "approve"
                j1 Woken pending→pending Queued
                j1: r0 for a by bob, r0 for b by carl
                j1: pending Queued attempt 0 redirect under 4 as b priority 0
                j1 Granted pending→running on n1 token 1 attempt 1
            "#]],
        );
    }
}
