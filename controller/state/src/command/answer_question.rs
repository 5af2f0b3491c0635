//! Answers an open question. The first answer stands; whoever comes later is told that the question is closed.

use std::sync::Arc;

use atlas_types::{ANSWER_BYTES_MAX, AnswerQuestion, Outcome, Question, QuestionEnd, Rejection};

use super::check_bytes;
use crate::change::Change;

pub(super) fn apply(command: &AnswerQuestion, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let question = change.state.questions.get(&command.question);
    let question = question.filter(|question| question.namespace == change.origin.namespace);
    let question = Arc::clone(question.ok_or(Rejection::UnknownQuestion)?);
    let answerers = &question.ask.answerers;
    if !answerers.is_empty() && !answerers.contains(&change.origin.principal) {
        return Err(Rejection::NotAnswerer);
    }
    if question.rule.as_ref().is_some_and(|rule| !rule.own) && is_own(change, &question) {
        return Err(Rejection::NotAnswerer);
    }
    if !question.is_open() {
        return Err(Rejection::QuestionClosed);
    }
    let bytes = command.answer.len() as u64;
    if command.answer.len() > ANSWER_BYTES_MAX {
        return Err(Rejection::PayloadTooLarge { bytes });
    }
    check_bytes(change.state, bytes, 0)?;

    let (answer, by) = (Arc::clone(&command.answer), change.origin.principal.clone());
    change.end_question(&question, QuestionEnd::Answered { answer, by });
    Ok(Outcome::Done)
}

/// Whether the caller submitted the job of a question.
fn is_own(change: &Change<'_>, question: &Question) -> bool {
    change.state.jobs.get(question.job).is_some_and(|job| job.principal == change.origin.principal)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    const ASKED: &str = "level 6; agent a; node n1; job j1; grant j1 n1; record j1 from=0 steps=s; ask j1";

    #[test]
    fn the_first_answer_stands_and_wakes_the_job() {
        check(
            &format!("{ASKED}; park j1 question=1 -- answer j1 by=ann; answer j1 by=bob; questions j1; show j1"),
            expect![[r#"
                j1 question of step 1 answered by ann "yes"
                j1 Woken pending→pending Queued
                ! the question is not open any more
                j1: step 1 answered by ann "yes"
                j1: pending Queued attempt 1
            "#]],
        );
        check(
            &format!("{ASKED} -- answer j1; park j1 question=1; park j1 question=9"),
            expect![[r#"
            j1 question of step 1 answered by local "yes"
            = ready
            ! no such question
        "#]],
        );
    }

    #[test]
    fn a_job_that_ends_keeps_where_it_ran_and_who_answered() {
        check(
            &format!(
                "{ASKED}; ask j1 q=2; answer j1 by=ann; lose j1; grant j1 n1 -- evidence j1; cancel j1; complete j1; evidence j1"
            ),
            expect![[r#"
                j1: grants ["1 on n1", "2 on n1"] answers []
                j1 Cancelling running→running Cancelling
                j1 Ended running→cancelled
                j1 question of step 1 cancelled
                j1: grants ["1 on n1", "2 on n1"] answers ["step 1 answered by ann", "step 1 cancelled"]
            "#]],
        );
        check(
            "level 5; agent a; node n1; job j1; grant j1 n1; complete j1 -- evidence j1",
            expect![[r#"
                j1: grants [] answers []
            "#]],
        );
    }

    #[test]
    fn answers_are_refused_that_are_too_large_for_others_or_of_another_namespace() {
        check(
            &format!(
                "{ASKED}; ask j1 q=2 answerers=ann -- answer j1 bytes=16385; answer j1 q=9; answer j1 ns=other;
            answer j1 q=2 by=bob; answer j1 q=2 by=ann; config bytes=1; answer j1"
            ),
            expect![[r#"
                ! a payload of 16385 bytes is too large to be inline
                ! no such question
                ! no such question
                ! the question is for others to answer
                j1 question of step 1 answered by ann "yes"
                configured
                ! the cluster's limit of 1 for payload bytes is reached
            "#]],
        );
    }

    #[test]
    fn an_end_of_the_job_closes_its_questions_and_a_prune_drops_them() {
        check(
            &format!(
                "{ASKED}; park j1 question=1 -- cancel j1; answer j1; questions j1; ack m1; prune; questions j1; answer j1"
            ),
            expect![[r#"
                j1 Ended pending→cancelled
                j1 question of step 1 cancelled
                ! the question is not open any more
                j1: step 1 cancelled
                = pruned 1
                j1:
                ! no such question
            "#]],
        );
    }
}
