//! INBOX-1: an inbox is that of a job that has not ended, within its bounds, and has no id twice.

use std::collections::BTreeSet;

use atlas_types::{INBOX_BYTES_MAX, INBOX_MESSAGES_MAX, INBOX_READ_MAX};

use super::ensure;
use crate::state::State;

pub(super) fn check(state: &State) -> Result<(), String> {
    for (id, inbox) in &state.inboxes {
        let job = state.jobs.get(*id).filter(|job| !job.status.is_terminal());
        ensure(job.is_some(), || format!("{id} has an inbox and has ended, or is gone"))?;
        let (count, bytes) = (inbox.messages.len() as u64, inbox.bytes());
        ensure(count <= INBOX_MESSAGES_MAX && bytes <= INBOX_BYTES_MAX, || {
            format!("the inbox of {id} has {count} messages of {bytes} bytes")
        })?;
        let remembered = inbox.read_ids.len();
        ensure(remembered <= INBOX_READ_MAX && remembered as u64 <= inbox.read, || {
            format!("the inbox of {id} remembers {remembered} of {} messages", inbox.read)
        })?;
        let ids: BTreeSet<_> = inbox.read_ids.iter().chain(inbox.messages.iter().map(|message| &message.id)).collect();
        ensure(ids.len() == remembered + inbox.messages.len(), || format!("the inbox of {id} has an id twice"))?;
    }
    Ok(())
}
