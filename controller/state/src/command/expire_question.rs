//! Ends an open question whose time has passed: with its default answer, or without one.

use std::sync::Arc;

use atlas_types::{ExpireQuestion, Outcome, QuestionEnd, Rejection};

use crate::change::Change;

pub(super) fn apply(command: &ExpireQuestion, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let question = Arc::clone(change.state.questions.get(&command.question).ok_or(Rejection::UnknownQuestion)?);
    if !question.is_open() {
        return Err(Rejection::QuestionClosed);
    }
    if question.due.is_none_or(|due| due > change.clock) {
        return Err(Rejection::NotDue);
    }
    let end = if question.ask.default.is_some() { QuestionEnd::Defaulted } else { QuestionEnd::Expired };
    change.end_question(&question, end);
    Ok(Outcome::Done)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    const JOURNALED: &str = "level 6; agent a; node n1; job j1; grant j1 n1; record j1 from=0 steps=s";

    #[test]
    fn a_question_ends_when_its_time_has_passed_and_not_before() {
        check(
            &format!(
                "{JOURNALED}; ask j1 timeout=5; park j1 question=1 --
            expire j1; clock +5; expire j1; expire j1; answer j1; questions j1; show j1"
            ),
            expect![[r#"
                ! the job is not due yet
                j1 question of step 1 expired
                j1 Woken pending→pending Queued
                ! the question is not open any more
                ! the question is not open any more
                j1: step 1 expired
                j1: pending Queued attempt 1
            "#]],
        );
    }

    #[test]
    fn a_default_is_the_answer_and_without_a_time_nothing_expires() {
        check(
            &format!(
                "{JOURNALED}; ask j1 timeout=5 default=\"no\"; ask j1 q=2; clock +99 --
            expire j1; expire j1 q=2; expire j1 q=9; questions j1"
            ),
            expect![[r#"
                j1 question of step 1 defaulted "no"
                ! the job is not due yet
                ! no such question
                j1: step 1 defaulted "no", step 1 open
            "#]],
        );
    }
}
