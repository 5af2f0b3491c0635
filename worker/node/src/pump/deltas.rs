//! Sends pieces of models' answers to the leader. Pieces of 20 ms are joined; none is sent twice.

use std::time::Duration;

use atlas_types::{FencingToken, level};
use atlas_wire::session::ToLeader;

use super::Pump;
use crate::link::Stream;

/// How long pieces wait to be joined.
const JOINED: Duration = Duration::from_millis(20);

impl Pump {
    /// A call of an attempt produced a piece of its answer.
    pub(super) fn on_delta(&mut self, token: FencingToken, call: (u32, u32), text: &str) {
        if self.leader_level < level::DELTAS {
            return;
        }
        if self.deltas.push(token, call, text) && self.deltas_due.is_none() {
            self.deltas_due = Some(self.env.clock.monotonic() + JOINED);
        }
    }

    /// Sends the pieces once they are due. If the stream is congested, they wait.
    pub(super) fn send_due_deltas(&mut self) {
        let now = self.env.clock.monotonic();
        if self.deltas_due.is_none_or(|due| due > now) {
            return;
        }
        if self.welcomed && !self.stream.as_ref().is_some_and(Stream::has_room) {
            self.deltas_due = Some(now + JOINED);
            return;
        }
        self.send_deltas();
    }

    /// Sends all pieces now. Without a session they are dropped.
    pub(super) fn send_deltas(&mut self) {
        self.deltas_due = None;
        for batch in self.deltas.take() {
            if self.welcomed {
                self.send(ToLeader::Deltas { job: batch.job, attempt: batch.attempt, deltas: batch.deltas });
            }
        }
    }
}
