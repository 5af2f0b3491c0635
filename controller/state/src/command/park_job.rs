//! Ends the lease of a journaled job that waits. It holds nothing while it is parked, and keeps its age and its priority.
//!
//! If one of the waits is over, nothing changes: the attempt that asks goes on under its lease.

use std::sync::Arc;

use atlas_types::{
    ClusterTime, Inbox, Job, JobChange, JobId, JobStatus, Micros, Outcome, ParkJob, Parked, Reason, Rejection,
    WAITS_MAX, Wait,
};

use super::check_limit;
use crate::change::{Change, live_lease};
use crate::state::State;

pub(super) fn apply(command: &ParkJob, change: &mut Change<'_>) -> Result<Outcome, Rejection> {
    let job = change.state.jobs.get(command.job);
    let (job, _) = live_lease(job, |lease| lease.token == command.token && lease.node == command.node)?;
    let job = Arc::clone(job);
    if job.reason == Reason::Cancelling {
        return Ok(change.end((*job).clone(), JobStatus::Cancelled, None));
    }
    check_journal(change, command)?;
    let inbox = inbox(change.state, command)?;
    // The credential of the caller belongs to this attempt, which therefore waits under its lease.
    let parked = parked(change, &job, command, &inbox)?.filter(|_| !job.bearer);
    let Some(parked) = parked else {
        return Ok(Outcome::Parked { ready: true });
    };

    if change.state.inboxes.get(&job.id).is_some_and(|old| *old != inbox) {
        change.put_inbox(job.id, &inbox);
    }
    let mut new = (*job).clone();
    change.release(&mut new, None);
    new.status = JobStatus::Pending;
    new.reason = Reason::Parked;
    new.parks += 1;
    new.used = Micros(new.used.0.saturating_add(command.used.0));
    new.parked = Some(Arc::new(parked));
    change.put(new, JobChange::Parked, JobStatus::Running);
    Ok(Outcome::Parked { ready: false })
}

/// Refuses a job whose next attempt would not continue where this one stops.
fn check_journal(change: &Change<'_>, command: &ParkJob) -> Result<(), Rejection> {
    let recorded = change.state.journals.get(&command.job).map_or(0, |journal| journal.next());
    if recorded == 0 {
        return Err(Rejection::NotJournaled);
    }
    let sent = command.journal_length;
    if sent == recorded { Ok(()) } else { Err(Rejection::JournalLength { sent, recorded }) }
}

/// The job's inbox without the messages that its recorded steps have read.
fn inbox(state: &State, command: &ParkJob) -> Result<Arc<Inbox>, Rejection> {
    let mut inbox = state.inboxes.get(&command.job).cloned().unwrap_or_default();
    let (read, delivered) = (command.read, inbox.next());
    if read > delivered {
        return Err(Rejection::MessageGap { read, delivered });
    }
    if read > inbox.read {
        Arc::make_mut(&mut inbox).take(read);
    }
    Ok(inbox)
}

/// What the job waits for; none if one of the waits is over.
fn parked(change: &Change<'_>, job: &Job, command: &ParkJob, inbox: &Inbox) -> Result<Option<Parked>, Rejection> {
    let waits = &command.waits;
    if waits.is_empty() {
        return Err(Rejection::NothingAwaited);
    }
    check_limit("waits of a job", waits.len() as u64 - 1, WAITS_MAX)?;
    let mut parked = Parked { waits: Vec::with_capacity(waits.len()), due: None, token: command.token };
    let mut over = false;
    for wait in waits {
        match *wait {
            Wait::Time { at } => {
                let left = Micros(u64::try_from(at.0.saturating_sub(change.at.0)).unwrap_or(0));
                over |= left.0 == 0 || at <= job.slept_until;
                let due = change.clock.plus(left);
                parked.due = Some(parked.due.map_or(due, |earlier: ClusterTime| earlier.min(due)));
                parked.waits.push(*wait);
            }
            Wait::Child { job: child } => {
                let first = change.state.jobs.get(child).map_or(child, |child| child.first());
                over |= !awaits(change, job.id, first)?;
                parked.waits.push(Wait::Child { job: first });
            }
            Wait::Question { id } => {
                let question = change.state.questions.get(&id).filter(|question| question.job == job.id);
                over |= !question.ok_or(Rejection::UnknownQuestion)?.is_open();
                parked.waits.push(*wait);
            }
            Wait::Message | Wait::Answer { .. } => {
                over |= inbox.messages.iter().any(|message| wait.is_for(message));
                parked.waits.push(*wait);
            }
        }
    }
    Ok((!over).then_some(parked))
}

/// Whether a job still waits for a child or a retry of it; refused if it has no such child.
fn awaits(change: &Change<'_>, parent: JobId, first: JobId) -> Result<bool, Rejection> {
    change.state.awaits_family(parent, first).ok_or(Rejection::UnknownJob { job: first })
}

#[cfg(test)]
mod tests;
