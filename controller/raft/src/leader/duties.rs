//! What the leader proposes unasked, in the order in which it matters.

use std::time::Duration;

use atlas_duty::{DownNodes, Sessions, Strategy};
use atlas_state::State;
use atlas_types::{ClusterTime, Command, EventSeq, MemberId, Namespace, Origin, Request, SinkAck};

/// What the duties of one plan see besides the state.
pub(super) struct Duties<'l> {
    pub(super) now: ClusterTime,
    pub(super) sessions: &'l Sessions,
    pub(super) voters: &'l [MemberId],
    pub(super) strategy: Strategy,
    /// Nodes that are down, the leader's time, and after how long they are forgotten.
    pub(super) down: (&'l DownNodes, Duration, Option<Duration>),
    /// This member and how far its history is synced, when an acknowledgement is due.
    pub(super) sink: Option<(MemberId, EventSeq)>,
}

impl Duties<'_> {
    /// At most `budget` commands that follow from `state`; asked again with the state after them until nothing more follows.
    pub(super) fn plan(&self, state: &State, budget: usize) -> Vec<Request> {
        let mut commands: Vec<Request> = self.sink_ack(state).into_iter().collect();
        let left = |commands: &Vec<Request>| budget.saturating_sub(commands.len());
        commands.extend(atlas_duty::prune(state, self.voters, left(&commands)));
        if let (down, now, Some(after)) = self.down {
            commands.extend(down.forget(state, now, after, left(&commands)));
        }
        // Planned beside the others: a placement that they make stale is refused and planned again.
        let (ended, left) = (self.sessions.ended(), left(&commands));
        commands.extend(atlas_duty::follow(state, ended, self.now, self.strategy, left));
        commands
    }

    fn sink_ack(&self, state: &State) -> Option<Request> {
        let (member, synced) = self.sink?;
        let event_seq = synced.min(state.event_seq());
        (event_seq > state.sink(member)).then(|| Request {
            origin: Origin::duty(Namespace::default_namespace()),
            command: Command::SinkAck(SinkAck { member, event_seq }),
        })
    }
}
