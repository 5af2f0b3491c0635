//! PARK-2: nothing that a parked job waits for has come, except a time whose timer is about to wake it.

use atlas_types::{JobId, Wait};

use super::ensure;
use crate::index::{Timer, TimerKey};
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for (job, parked) in state.jobs.iter().filter_map(|job| Some((job.id, job.parked.as_ref()?))) {
        for wait in &parked.waits {
            ensure(is_open(state, job, wait), || format!("{job} sleeps although {wait:?} has come"))?;
        }
        let timer = parked.due.map(|due| Timer { due, key: TimerKey::Job(job) });
        ensure(timer.is_none_or(|timer| state.index.timers.contains(&timer)), || format!("{job} has no timer"))?;
    }
    Ok(())
}

fn is_open(state: &State, job: JobId, wait: &Wait) -> bool {
    match *wait {
        Wait::Time { .. } => true,
        Wait::Message | Wait::Answer { .. } => {
            let mut messages = state.inboxes.get(&job).into_iter().flat_map(|inbox| &inbox.messages);
            !messages.any(|message| wait.is_for(message))
        }
        Wait::Question { id } => state.questions.get(&id).is_some_and(|question| question.is_open()),
        Wait::Child { job: child } => state.awaits_family(job, child) == Some(true),
    }
}
