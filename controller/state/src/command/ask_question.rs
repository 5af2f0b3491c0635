//! Asks people a question for a journaled job. Its id follows from job and key, so a repeat and a later attempt find it.

use std::sync::Arc;

use atlas_types::{
    ASK_BYTES_MAX, AskQuestion, Event, OPTIONS_MAX, Outcome, QUESTIONS_MAX, Question, Rejection, Timestamp,
};

use super::record_steps::check_lease;
use super::{check_bytes, check_limit};
use crate::change::Change;

pub(super) fn apply(command: &AskQuestion, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    check_lease(change, command.job, &command.node, command.token)?;
    let id = command.id();
    if change.state.questions.get(&id).is_some_and(|known| known.job == command.job) {
        return Ok(Outcome::Done);
    }
    let next = change.state.journals.get(&command.job).map_or(0, |journal| journal.next());
    if next == 0 {
        return Err(Rejection::NotJournaled);
    }
    let bytes = command.ask.bytes();
    if bytes > ASK_BYTES_MAX {
        return Err(Rejection::PayloadTooLarge { bytes });
    }
    check_limit("options of a question", (command.ask.kind.options().len() as u64).saturating_sub(1), OPTIONS_MAX)?;
    let dropped = recorded(change, command, next)?;
    check_bytes(change.state, bytes, 0)?;

    if let Some(dropped) = dropped {
        change.set_question(dropped.id, None);
    }
    let question = Arc::new(Question {
        id,
        namespace: change.job(command.job)?.namespace.clone(),
        job: command.job,
        step: next,
        rule: None,
        ask: Arc::clone(&command.ask),
        asked: change.state.event_seq.next(),
        asked_at: change.at,
        due: command.ask.timeout.map(|timeout| change.clock.plus(timeout)),
        end: None,
        ended_at: Timestamp::NOT_YET,
    });
    change.set_question(id, Some(Arc::clone(&question)));
    change.emit(Event::QuestionAsked { question });
    Ok(Outcome::Done)
}

/// The question that makes room, if the job has as many as it may: the oldest whose answer is in the journal.
fn recorded(change: &Change<'_>, command: &AskQuestion, next: u64) -> Result<Option<Arc<Question>>, Rejection> {
    let count = change.state.questions_of(command.job).count() as u64;
    let mut ended =
        change.state.questions_of(command.job).filter(|question| !question.is_open() && question.step < next);
    match ended.next() {
        Some(oldest) if count >= QUESTIONS_MAX => Ok(Some(Arc::clone(oldest))),
        _ => check_limit("questions of a job", count, QUESTIONS_MAX).map(|()| None),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::tests::check;

    const JOURNALED: &str = "level 6; agent a; node n1; job j1; grant j1 n1; record j1 from=0 steps=s";

    #[test]
    fn a_question_is_asked_once_and_found_again_by_a_later_attempt() {
        check(
            &format!(
                "{JOURNALED} -- ask j1 kind=confirm; ask j1 kind=confirm; lose j1; grant j1 n1; ask j1 kind=confirm; questions j1"
            ),
            expect![[r#"
                j1 asks at step 1: confirm
                j1 Lost running→pending Lost
                j1 Granted pending→running on n1 token 2 attempt 2
                j1: step 1 open
            "#]],
        );
    }

    #[test]
    fn only_the_holder_of_a_lease_with_a_journal_asks() {
        check(
            "level 6; agent a; node n1; job j1; grant j1 n1 --
            ask j1; record j1 from=0 steps=s; ask j1 token=9; ask j1 node=n2; ask j9; ask j1",
            expect![[r#"
                ! the job has no recorded steps, so it can neither park nor ask
                j1 steps from 0: start
                ! the lease is outdated
                ! the lease is outdated
                ! the lease is outdated
                j1 asks at step 1: text
            "#]],
        );
    }

    #[test]
    fn what_is_asked_has_bounds() {
        check(
            &format!(
                "{JOURNALED} -- ask j1 bytes=32769; ask j1 kind=choose options=65; ask j1 kind=choose options=64; config bytes=1; ask j1 q=2"
            ),
            expect![[r#"
                ! a payload of 32769 bytes is too large to be inline
                ! the cluster's limit of 64 for options of a question is reached
                j1 asks at step 1: choose
                configured
                ! the cluster's limit of 1 for payload bytes is reached
            "#]],
        );
    }

    #[test]
    fn the_oldest_recorded_question_makes_room() {
        let mut script = String::from(JOURNALED);
        for step in 1..=64 {
            script += &format!("; ask j1 q={step}; answer j1 q={step}; record j1 from={step} steps=t");
        }
        check(
            &format!("{script} -- questions j1 first; ask j1 q=65; questions j1 first"),
            expect![[r#"
            j1: step 1 answered by local "yes"
            j1 asks at step 65: text
            j1: step 2 answered by local "yes"
        "#]],
        );
        let asked: String = (0..64).map(|key| format!("; ask j1 q={key}")).collect();
        check(
            &format!("{JOURNALED} {asked} -- ask j1 q=64"),
            expect![[r#"
            ! the cluster's limit of 64 for questions of a job is reached
        "#]],
        );
    }
}
