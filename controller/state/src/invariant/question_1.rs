//! QUESTION-1: a question is that of a job in the state, within its bounds, and open only while the job has not ended.

use atlas_types::{ANSWER_BYTES_MAX, ASK_BYTES_MAX, OPTIONS_MAX, QUESTIONS_MAX};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for (id, question) in &state.questions {
        let job = state.jobs.get(question.job).filter(|job| job.namespace == question.namespace);
        let Some(job) = job.filter(|_| question.id == *id) else {
            return Err(format!("{id} is of a job that is gone, or has another id"));
        };
        ensure(!question.is_open() || !job.status.is_terminal(), || format!("{id} is open and its job has ended"))?;
        ensure(question.asked <= state.event_seq, || format!("{id} was asked after the last event"))?;
        let (asked, options) = (question.ask.bytes(), question.ask.kind.options().len() as u64);
        ensure(asked <= ASK_BYTES_MAX && options <= OPTIONS_MAX, || {
            format!("{id} asks {asked} bytes with {options} options")
        })?;
        let answer = question.answer().map_or(0, |answer| answer.len());
        ensure(answer <= ANSWER_BYTES_MAX.max(ASK_BYTES_MAX as usize), || {
            format!("the answer of {id} has {answer} bytes")
        })?;
        ensure(question.due.is_some() == question.ask.timeout.is_some(), || format!("{id} has no time to pass"))?;
        let count = state.questions_of(question.job).count() as u64;
        ensure(count <= QUESTIONS_MAX, || format!("{} has {count} questions", question.job))?;
    }
    Ok(())
}
