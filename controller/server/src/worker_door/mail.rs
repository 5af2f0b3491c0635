//! Messages to running jobs, for their workers.
//!
//! A grant carries the messages that its job has not read, and each later one is sent when it is delivered. A welcome leaves out those for
//! which it has no room. The worker gets them when its attempt asks to be parked: the answer is `ready`, and the messages come first.

use std::collections::HashMap;
use std::sync::Arc;

use atlas_raft::AppliedBatch;
use atlas_state::State;
use atlas_types::{Assignment, FencingToken, JobId, Mail, NodeId, level};
use atlas_wire::session::ToWorker;

use super::hub::Connection;

/// The largest size of a message in a frame without its payload.
const MESSAGE_BYTES: usize = 1_024;

/// The messages of a job from a number on.
pub(super) fn mail(state: &State, job: JobId, from: u64) -> Mail {
    state.inbox(job).map(|inbox| inbox.mail(from)).unwrap_or_default()
}

/// Sends a message that an entry delivered to the worker that runs its job.
pub(super) fn deliver(
    connections: &HashMap<NodeId, Arc<Connection>>,
    batch: &AppliedBatch,
    (job, number): (JobId, u64),
) {
    let node = batch.state.lease(job).map(|lease| &lease.node);
    let Some(connection) = node.and_then(|node| connections.get(node)) else { return };
    let Some(token) = connection.leases().learns(batch.seq, job) else { return };
    let message = batch.state.inbox(job).and_then(|inbox| inbox.from(number).first().cloned());
    if let Some(message) = message {
        send(connection, job, token, Mail { first: number, messages: vec![message] });
    }
}

/// Sends messages to the worker of an attempt.
pub(super) fn send(connection: &Connection, job: JobId, token: FencingToken, mail: Mail) {
    if connection.program.level >= level::PARK && !mail.messages.is_empty() {
        connection.out.send(ToWorker::Messages { job, token, mail });
    }
}

/// Removes messages from the leases of a welcome that have no room beside `bytes` in a frame of `bytes_max`. Returns the bytes of all.
pub(super) fn leave_out(leases: &mut [Assignment], mut bytes: usize, bytes_max: usize) -> usize {
    for journal in leases.iter_mut().filter_map(|lease| lease.journal.as_mut()) {
        let payloads = usize::try_from(journal.mail.bytes()).unwrap_or(usize::MAX);
        let more = payloads.saturating_add(journal.mail.messages.len() * MESSAGE_BYTES);
        match bytes.checked_add(more).filter(|all| *all <= bytes_max) {
            Some(all) => bytes = all,
            None => journal.mail = Mail::default(),
        }
    }
    bytes
}
