//! Jobs by their ids, wherever they are: in the state, or in the history once they have ended.

use std::sync::Arc;

use atlas_state::State;
use atlas_types::{Job, JobId};

use crate::{Caller, Consistency, Desk, Error};

impl Desk {
    /// A job from the state or the history.
    pub async fn job_in(&self, caller: &Caller, state: &State, id: JobId) -> Result<Arc<Job>, Error> {
        let job = match state.job(id) {
            Some(job) => job.clone(),
            None => self.archived(state, id).await?.ok_or(Error::UnknownJob)?,
        };
        if job.namespace == caller.namespace { Ok(job) } else { Err(Error::UnknownJob) }
    }

    /// The id for a text: a complete id, or a prefix that no other job of the namespace shares.
    pub async fn job_id(&self, caller: &Caller, text: &str) -> Result<JobId, Error> {
        if let Ok(id) = text.parse() {
            return Ok(id);
        }
        let state = self.state(Consistency::Linearizable).await?;
        let mut found: Vec<JobId> = state.jobs_by_prefix(&caller.namespace, text).map(|job| job.id).take(2).collect();
        if let (Some(range), 0 | 1) = (id_range(text), found.len()) {
            let archived = self.archived_between(&state, range, 2).await?;
            found.extend(archived.into_iter().filter(|id| state.job(*id).is_none()));
        }
        match *found {
            [] => Err(Error::UnknownJob),
            [id] => Ok(id),
            [first, second, ..] => Err(Error::AmbiguousJob { prefix: text.chars().take(32).collect(), first, second }),
        }
    }
}

/// The range of ids that start with a text, with or without `job-`. None if no id can start with it.
fn id_range(text: &str) -> Option<(JobId, JobId)> {
    let digits = text.strip_prefix(JobId::PREFIX).unwrap_or(text);
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    if digits.is_empty() || digits.len() > 16 || !digits.bytes().all(hex) {
        return None;
    }
    let first = u64::from_str_radix(&format!("{digits:0<16}"), 16).ok()?;
    let last = u64::from_str_radix(&format!("{digits:f<16}"), 16).ok()?;
    Some((JobId(first), JobId(last)))
}
