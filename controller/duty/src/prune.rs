//! Ended jobs leave the state once a majority of the voters has them in its history.

use atlas_state::State;
use atlas_types::{Command, EventSeq, MemberId, Namespace, PruneJobs, Request};

use crate::request;

/// The state keeps a fraction more ended jobs than configured, so that not every entry prunes.
const SLACK: u64 = 16;

/// At most one command, which drops up to `budget` of the oldest ended jobs beyond those that the configuration keeps.
pub fn prune(state: &State, voters: &[MemberId], budget: usize) -> Option<Request> {
    let kept = state.config().jobs_ended_kept;
    let excess = (state.ended().len() as u64).saturating_sub(kept);
    if excess <= kept / SLACK || budget == 0 {
        return None;
    }
    let confirmed = confirmed(state, voters)?;
    let dropped = usize::try_from(excess).unwrap_or(usize::MAX).min(budget);
    let last = state.ended().take(dropped).take_while(|(event, _)| *event <= confirmed).last();
    let (event_seq, _) = last?;
    let limit = u32::try_from(dropped).unwrap_or(u32::MAX);
    let command = PruneJobs { voters: voters.to_vec(), event_seq, limit };
    Some(request(&Namespace::default_namespace(), Command::PruneJobs(command)))
}

/// The last event that a majority of the voters has confirmed.
fn confirmed(state: &State, voters: &[MemberId]) -> Option<EventSeq> {
    let mut confirmed: Vec<EventSeq> = voters.iter().map(|&member| state.sink(member)).collect();
    confirmed.sort_unstable_by(|a, b| b.cmp(a));
    confirmed.get(voters.len() / 2).copied()
}
