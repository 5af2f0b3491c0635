//! The sessions of workers, as their leader keeps them: a table over the leader's own monotonic clock.
//!
//! A session lives for one TTL from its last renewal. Renewals are not log entries, so two rules make them safe:
//!
//! * A renewal is acknowledged only after a quorum confirmed, in a round that began after the renewal arrived, that this
//!   member still leads. The worker counts its TTL from when it *sent* the renewal that was acknowledged last. A member that
//!   was deposed thus cannot keep a worker at work on leases that its successor gives away.
//! * A leader that takes over, or whose loop stood still, gives every session a full TTL before it calls one ended: it
//!   cannot know which renewals were acknowledged, or lie unread.
//!
//! A session ends earlier in two cases:
//!
//! * its worker says that it [leaves](Sessions::leave): nothing runs there;
//! * its stream [broke](Sessions::broke), the worker did not return within [`AWAY_MAX`], and its node holds no lease. With a lease the full
//!   TTL passes: the worker may run the job, and returns with it. Meanwhile the node gets no further lease.
//!
//! A third rule: exactly the nodes that are ready in the leader's state have a session. [`Sessions::applied`] ensures
//! it, so that a node whose worker registered and then disappeared is lost like any other.
//!
//! The table owns deadlines and acknowledgements. It does not lose nodes: that is [`crate::lose`], a command.
//!
//! ```
//! # use std::time::Duration;
//! # use atlas_duty::Sessions;
//! # use atlas_duty::sessions::StreamId;
//! # use atlas_types::{NodeEpoch, NodeId};
//! # let node: NodeId = "n1".parse().unwrap();
//! let seconds = Duration::from_secs;
//! let mut sessions = Sessions::new(seconds(10));
//! sessions.hello(&node, NodeEpoch(1), StreamId(1), seconds(0));
//! sessions.renew(&node, NodeEpoch(1), 1, seconds(1)).unwrap();
//! let round = sessions.begin_round().unwrap(); // ask a quorum now
//! assert_eq!(sessions.confirmed(round).len(), 1); // the quorum has answered: acknowledge
//! ```

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use atlas_state::State;
use atlas_types::{Event, NodeEpoch, NodeHealth, NodeId};

/// The loop calls [`Sessions::tick`] at least so many times a TTL.
pub const TICKS_PER_TTL: u32 = 8;

/// How long a worker without leases may be away after its stream broke. Reconnecting takes a fraction of it.
pub const AWAY_MAX: Duration = Duration::from_secs(2);

/// One stream of a worker; its leader counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamId(pub u64);

/// A question to the quorum whether this member still leads; later rounds are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Round(u64);

/// A renewal that may be acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    /// The node that sent it.
    pub node: NodeId,
    /// The node's incarnation.
    pub epoch: NodeEpoch,
    /// The worker's number of it; it stands for all earlier ones.
    pub number: u64,
}

/// There is no such session: the worker has to say hello again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session has ended")]
pub struct NoSession;

#[derive(Debug, Clone, Copy)]
struct Session {
    epoch: NodeEpoch,
    ends_at: Duration,
    ended: bool,
    contact: Contact,
}

/// What a leader knows of the worker at the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contact {
    /// It has not said hello to this leader.
    Unheard,
    /// Its stream is open, and it said something then.
    Open { stream: StreamId, heard_at: Duration },
    /// Its stream broke.
    Away { since: Duration },
}

impl Session {
    fn new(epoch: NodeEpoch, ends_at: Duration, contact: Contact) -> Self {
        Self { epoch, ends_at, ended: false, contact }
    }
}

/// All sessions of a leader.
#[derive(Debug, Clone)]
pub struct Sessions {
    ttl: Duration,
    nodes: BTreeMap<NodeId, Session>,
    /// The nodes whose stream broke.
    away: BTreeSet<NodeId>,
    ticked_at: Duration,
    round: Round,
    /// Renewals that no round has begun for.
    arrived: BTreeMap<NodeId, Renewal>,
    /// Renewals that wait for the answer to a round.
    asked: BTreeMap<Round, Vec<Renewal>>,
}

impl Sessions {
    /// An empty table whose sessions live for `ttl`.
    pub fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            nodes: BTreeMap::new(),
            away: BTreeSet::new(),
            ticked_at: Duration::ZERO,
            round: Round(0),
            arrived: BTreeMap::new(),
            asked: BTreeMap::new(),
        }
    }

    /// How long a session lives after its last renewal.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Begins a leadership at `now`: each of `nodes`, all that are up in the state, gets one full TTL.
    pub fn take_over(&mut self, nodes: impl IntoIterator<Item = (NodeId, NodeEpoch)>, now: Duration) {
        let ttl = self.ttl;
        let nodes = nodes.into_iter().map(|(node, epoch)| (node, Session::new(epoch, now + ttl, Contact::Unheard)));
        self.nodes = nodes.collect();
        self.away.clear();
        self.ticked_at = now;
        self.arrived.clear();
        self.asked.clear();
    }

    /// A worker said hello on a stream, and the entry that made this epoch (if it is new) is applied.
    pub fn hello(&mut self, node: &NodeId, epoch: NodeEpoch, stream: StreamId, now: Duration) {
        if self.nodes.get(node).is_some_and(|session| session.epoch > epoch) {
            return;
        }
        self.begin(node, epoch, Contact::Open { stream, heard_at: now }, now);
    }

    /// A stream broke: its worker did not say that it leaves. Nothing happens if it has said hello on another one.
    pub fn broke(&mut self, node: &NodeId, epoch: NodeEpoch, broken: StreamId, now: Duration) {
        let session = self.nodes.get_mut(node).filter(|session| session.epoch == epoch);
        if let Some(session) = session
            && matches!(session.contact, Contact::Open { stream, .. } if stream == broken)
        {
            session.contact = Contact::Away { since: now };
            self.away.insert(node.clone());
        }
    }

    /// A worker leaves: nothing runs there, and it waits for nothing. Its session ends at once.
    pub fn leave(&mut self, node: &NodeId, epoch: NodeEpoch) {
        if let Some(session) = self.nodes.get_mut(node).filter(|session| session.epoch == epoch) {
            session.ended = true;
        }
    }

    /// Whether another process may take the name of a node from the one with this epoch. While that one renews, nobody may. A leader that
    /// has not heard of it yet lets only its `successor` have it, the next process with the same data directory.
    pub fn may_take(&self, node: &NodeId, epoch: NodeEpoch, successor: bool, now: Duration) -> bool {
        let session = self.nodes.get(node).filter(|session| session.epoch == epoch && !session.ended);
        session.is_none_or(|session| match session.contact {
            Contact::Unheard => successor,
            Contact::Open { heard_at, .. } => now.saturating_sub(heard_at) > self.ttl / 2,
            Contact::Away { .. } => true,
        })
    }

    /// An entry of this leadership is applied: it did this, and left `state`. What it made ready has a session from `now` on, whether its
    /// worker says hello or not, and what is ready no more has none.
    pub fn applied<'e>(&mut self, events: impl IntoIterator<Item = &'e Event>, state: &State, now: Duration) {
        for event in events {
            match event {
                Event::Node { node } => match ready(state, &node.id) {
                    Some(epoch) if self.nodes.get(&node.id).is_some_and(|session| session.epoch == epoch) => {}
                    Some(epoch) => self.begin(&node.id, epoch, Contact::Unheard, now),
                    None => self.forget(&node.id),
                },
                // Its name may begin again with any epoch.
                Event::NodeRemoved { node } => self.forget(node),
                Event::Job { .. }
                | Event::Agent { .. }
                | Event::AgentDeleted { .. }
                | Event::StepsRecorded { .. }
                | Event::StepsFolded { .. }
                | Event::MessageDelivered { .. }
                | Event::Erased { .. }
                | Event::QuestionAsked { .. }
                | Event::QuestionEnded { .. }
                | Event::ObjectPut { .. }
                | Event::ObjectDeleted { .. }
                | Event::Run { .. }
                | Event::Configured { .. } => {}
            }
        }
    }

    /// A node that is ready in `state` and has no session, or has one and is not: there must be none.
    pub fn mismatch(&self, state: &State) -> Option<NodeId> {
        let has = |node: &NodeId, epoch| self.nodes.get(node).is_some_and(|session| session.epoch == epoch);
        let mut nodes = state.nodes().map(|found| &found.node).filter(|node| node.health == NodeHealth::Ready);
        let without = nodes.find(|node| !has(&node.id, node.epoch)).map(|node| node.id.clone());
        let gone = || self.nodes.iter().find(|(node, session)| ready(state, node) != Some(session.epoch));
        without.or_else(|| gone().map(|(node, _)| node.clone()))
    }

    fn begin(&mut self, node: &NodeId, epoch: NodeEpoch, contact: Contact, now: Duration) {
        self.away.remove(node);
        self.nodes.insert(node.clone(), Session::new(epoch, now + self.ttl, contact));
    }

    /// Everything this node sends is refused until its next hello.
    fn forget(&mut self, node: &NodeId) {
        self.nodes.remove(node);
        self.away.remove(node);
    }

    /// A renewal arrived. The session is extended at once; the worker hears of it only by [`Self::confirmed`].
    pub fn renew(&mut self, node: &NodeId, epoch: NodeEpoch, number: u64, now: Duration) -> Result<(), NoSession> {
        let session = self.nodes.get_mut(node).filter(|session| session.epoch == epoch && !session.ended);
        let session = session.ok_or(NoSession)?;
        session.ends_at = session.ends_at.max(now + self.ttl);
        if let Contact::Open { heard_at, .. } = &mut session.contact {
            *heard_at = now;
        }
        self.arrived.insert(node.clone(), Renewal { node: node.clone(), epoch, number });
        Ok(())
    }

    /// Begins a round for the renewals that have arrived; none if there are none. The caller asks the quorum *now*.
    pub fn begin_round(&mut self) -> Option<Round> {
        if self.arrived.is_empty() {
            return None;
        }
        self.round = Round(self.round.0 + 1);
        self.asked.insert(self.round, std::mem::take(&mut self.arrived).into_values().collect());
        Some(self.round)
    }

    /// The quorum confirmed `round`, and with it all earlier ones: these renewals may be acknowledged.
    pub fn confirmed(&mut self, round: Round) -> Vec<Renewal> {
        let later = self.asked.split_off(&Round(round.0 + 1));
        let confirmed = std::mem::replace(&mut self.asked, later).into_values().flatten();
        let lives = |renewed: &Renewal| {
            self.nodes.get(&renewed.node).is_some_and(|session| session.epoch == renewed.epoch && !session.ended)
        };
        confirmed.filter(lives).collect()
    }

    /// The time is `now`. Call it at least [`TICKS_PER_TTL`] times a TTL, after all renewals that lie ready are read.
    pub fn tick(&mut self, now: Duration) {
        let stalled = now.saturating_sub(self.ticked_at) > self.ttl / TICKS_PER_TTL + self.ttl / 4;
        self.ticked_at = now;
        for session in self.nodes.values_mut().filter(|session| !session.ended) {
            if stalled {
                session.ends_at = session.ends_at.max(now + self.ttl);
                // What it sent lies unread, and so may its next hello.
                match &mut session.contact {
                    Contact::Unheard => {}
                    Contact::Open { heard_at, .. } => *heard_at = now,
                    Contact::Away { since } => *since = now,
                }
            }
            session.ended = session.ends_at <= now;
        }
    }

    /// The sessions that ended: the input of [`crate::lose`], in every plan until the loss is [applied](Self::applied).
    pub fn ended(&self) -> impl Iterator<Item = (&NodeId, NodeEpoch)> {
        self.nodes.iter().filter(|(_, session)| session.ended).map(|(node, session)| (node, session.epoch))
    }

    /// Whether a session is among those that [ended](Self::ended).
    pub(crate) fn has_ended(&self, node: &NodeId, epoch: NodeEpoch) -> bool {
        self.nodes.get(node).is_some_and(|session| session.epoch == epoch && session.ended)
    }

    /// The sessions whose worker is away for longer than [`AWAY_MAX`]: those without a lease are [lost](crate::lose).
    pub fn left(&self) -> impl Iterator<Item = (&NodeId, NodeEpoch)> {
        let (now, grace) = (self.ticked_at, AWAY_MAX.min(self.ttl));
        let away = self.away.iter().filter_map(|node| self.nodes.get_key_value(node));
        let is_over = move |contact| matches!(contact, Contact::Away { since } if since + grace <= now);
        away.filter(move |(_, session)| is_over(session.contact)).map(|(node, session)| (node, session.epoch))
    }

    /// The nodes that get no new lease, because their stream broke.
    pub fn away(&self) -> &BTreeSet<NodeId> {
        &self.away
    }
}

/// The epoch in which a node is ready.
fn ready(state: &State, node: &NodeId) -> Option<NodeEpoch> {
    let found = state.node(node).filter(|found| found.node.health == NodeHealth::Ready);
    found.map(|found| found.node.epoch)
}
