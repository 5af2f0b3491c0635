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
//! A third rule: exactly the nodes that are ready in the leader's state have a session. [`Sessions::applied`] ensures
//! it, so that a node whose worker registered and then disappeared is lost like any other.
//!
//! The table owns deadlines and acknowledgements. It does not lose nodes: that is [`crate::lose`], a command.
//!
//! ```
//! # use std::time::Duration;
//! # use atlas_duty::Sessions;
//! # use atlas_types::{NodeEpoch, NodeId};
//! # let node: NodeId = "n1".parse().unwrap();
//! let seconds = Duration::from_secs;
//! let mut sessions = Sessions::new(seconds(10));
//! sessions.hello(&node, NodeEpoch(1), seconds(0));
//! sessions.renew(&node, NodeEpoch(1), 1, seconds(1)).unwrap();
//! let round = sessions.begin_round().unwrap(); // ask a quorum now
//! assert_eq!(sessions.confirmed(round).len(), 1); // the quorum has answered: acknowledge
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use atlas_state::State;
use atlas_types::{Event, NodeEpoch, NodeHealth, NodeId};

/// The loop calls [`Sessions::tick`] at least so many times a TTL.
pub const TICKS_PER_TTL: u32 = 8;

/// A question to the quorum whether this member still leads; later rounds are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Round(u64);

/// A renewal that may be acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewed {
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
}

impl Session {
    fn new(epoch: NodeEpoch, ends_at: Duration) -> Self {
        Self { epoch, ends_at, ended: false }
    }
}

/// All sessions of a leader.
#[derive(Debug, Clone)]
pub struct Sessions {
    ttl: Duration,
    nodes: BTreeMap<NodeId, Session>,
    ticked_at: Duration,
    round: Round,
    /// Renewals that no round has begun for.
    arrived: BTreeMap<NodeId, Renewed>,
    /// Renewals that wait for the answer to a round.
    asked: BTreeMap<Round, Vec<Renewed>>,
}

impl Sessions {
    /// An empty table whose sessions live for `ttl`.
    pub fn new(ttl: Duration) -> Self {
        Self {
            ttl,
            nodes: BTreeMap::new(),
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
        self.nodes = nodes.into_iter().map(|(node, epoch)| (node, Session::new(epoch, now + ttl))).collect();
        self.ticked_at = now;
        self.arrived.clear();
        self.asked.clear();
    }

    /// A worker said hello, and the entry that made this epoch (if it is new) is applied.
    pub fn hello(&mut self, node: &NodeId, epoch: NodeEpoch, now: Duration) {
        if self.nodes.get(node).is_some_and(|session| session.epoch > epoch) {
            return;
        }
        self.begin(node, epoch, now);
    }

    /// An entry of this leadership is applied: it did this, and left `state`. What it made ready has a session from `now` on, whether its
    /// worker says hello or not, and what is ready no more has none.
    pub fn applied<'e>(&mut self, events: impl IntoIterator<Item = &'e Event>, state: &State, now: Duration) {
        for event in events {
            match event {
                Event::Node { node } => match ready(state, &node.id) {
                    Some(epoch) if self.nodes.get(&node.id).is_some_and(|session| session.epoch == epoch) => {}
                    Some(epoch) => self.begin(&node.id, epoch, now),
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

    fn begin(&mut self, node: &NodeId, epoch: NodeEpoch, now: Duration) {
        self.nodes.insert(node.clone(), Session::new(epoch, now + self.ttl));
    }

    /// Everything this node sends is refused until its next hello.
    fn forget(&mut self, node: &NodeId) {
        self.nodes.remove(node);
    }

    /// A renewal arrived. The session is extended at once; the worker hears of it only by [`Self::confirmed`].
    pub fn renew(&mut self, node: &NodeId, epoch: NodeEpoch, number: u64, now: Duration) -> Result<(), NoSession> {
        let session = self.nodes.get_mut(node).filter(|session| session.epoch == epoch && !session.ended);
        let session = session.ok_or(NoSession)?;
        session.ends_at = session.ends_at.max(now + self.ttl);
        self.arrived.insert(node.clone(), Renewed { node: node.clone(), epoch, number });
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
    pub fn confirmed(&mut self, round: Round) -> Vec<Renewed> {
        let later = self.asked.split_off(&Round(round.0 + 1));
        let confirmed = std::mem::replace(&mut self.asked, later).into_values().flatten();
        let lives = |renewed: &Renewed| {
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
            }
            session.ended = session.ends_at <= now;
        }
    }

    /// The sessions that ended: the input of [`crate::lose`], in every plan until the loss is [applied](Self::applied).
    pub fn ended(&self) -> impl Iterator<Item = (&NodeId, NodeEpoch)> {
        self.nodes.iter().filter(|(_, session)| session.ended).map(|(node, session)| (node, session.epoch))
    }
}

/// The epoch in which a node is ready.
fn ready(state: &State, node: &NodeId) -> Option<NodeEpoch> {
    let found = state.node(node).filter(|found| found.node.health == NodeHealth::Ready);
    found.map(|found| found.node.epoch)
}

#[cfg(test)]
mod tests {
    use atlas_types::{
        BootId, ClusterTime, Command, Inventory, LoseNode, Namespace, RegisterNode, RemoveNode, Timestamp,
    };

    use super::*;
    use crate::request;

    const EPOCH: NodeEpoch = NodeEpoch(1);

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn node(name: &str) -> NodeId {
        name.parse().expect("a node name")
    }

    fn table() -> (Sessions, NodeId) {
        let mut sessions = Sessions::new(secs(8));
        sessions.take_over([], secs(0));
        sessions.hello(&node("n1"), EPOCH, secs(0));
        (sessions, node("n1"))
    }

    /// Ticks once a second from the one second to the other.
    fn tick(sessions: &mut Sessions, seconds: std::ops::RangeInclusive<u64>) {
        seconds.for_each(|second| sessions.tick(secs(second)));
    }

    fn ended(sessions: &Sessions) -> Vec<String> {
        sessions.ended().map(|(node, epoch)| format!("{node}@{epoch}")).collect()
    }

    #[test]
    fn a_session_ends_one_ttl_after_its_last_renewal() {
        let (mut sessions, n1) = table();
        tick(&mut sessions, 1..=5);
        sessions.renew(&n1, EPOCH, 1, secs(5)).expect("it lives");
        tick(&mut sessions, 6..=12);
        assert!(ended(&sessions).is_empty());
        tick(&mut sessions, 13..=13);
        assert_eq!(ended(&sessions), ["n1@1"]);
        assert_eq!(sessions.renew(&n1, EPOCH, 2, secs(13)), Err(NoSession));
        sessions.forget(&n1);
        assert!(ended(&sessions).is_empty());
    }

    #[test]
    fn a_renewal_is_acknowledged_by_a_round_that_began_after_it() {
        let (mut sessions, n1) = table();
        sessions.renew(&n1, EPOCH, 1, secs(1)).expect("it lives");
        let first = sessions.begin_round().expect("one has arrived");
        sessions.renew(&n1, EPOCH, 2, secs(2)).expect("it lives");
        let numbers = |renewed: Vec<Renewed>| renewed.into_iter().map(|renewed| renewed.number).collect::<Vec<_>>();
        assert_eq!(numbers(sessions.confirmed(first)), [1], "the second arrived after the round began");
        assert_eq!(numbers(sessions.confirmed(first)), [0_u64; 0], "once");
        let second = sessions.begin_round().expect("one has arrived");
        assert_eq!(sessions.begin_round(), None);
        assert_eq!(numbers(sessions.confirmed(second)), [2]);
    }

    #[test]
    fn a_later_round_stands_for_the_earlier_ones() {
        let (mut sessions, n1) = table();
        sessions.renew(&n1, EPOCH, 1, secs(1)).expect("it lives");
        let _lost = sessions.begin_round();
        sessions.renew(&n1, EPOCH, 2, secs(2)).expect("it lives");
        let second = sessions.begin_round().expect("one has arrived");
        assert_eq!(sessions.confirmed(second).len(), 2);
    }

    #[test]
    fn a_round_of_an_earlier_leadership_acknowledges_nothing() {
        let (mut sessions, n1) = table();
        sessions.renew(&n1, EPOCH, 1, secs(1)).expect("it lives");
        let round = sessions.begin_round().expect("one has arrived");
        sessions.take_over([(n1, EPOCH)], secs(2));
        assert_eq!(sessions.confirmed(round), []);
    }

    #[test]
    fn taking_over_gives_every_session_a_full_ttl() {
        let (mut sessions, n1) = table();
        tick(&mut sessions, 1..=7);
        sessions.take_over([(n1, EPOCH), (node("n2"), NodeEpoch(4))], secs(7));
        tick(&mut sessions, 8..=14);
        assert!(ended(&sessions).is_empty());
        tick(&mut sessions, 15..=15);
        assert_eq!(ended(&sessions), ["n1@1", "n2@4"]);
    }

    #[test]
    fn a_loop_that_stood_still_gives_every_session_a_full_ttl() {
        let (mut sessions, _) = table();
        tick(&mut sessions, 1..=4);
        tick(&mut sessions, 9..=9);
        tick(&mut sessions, 10..=16);
        assert!(ended(&sessions).is_empty());
        tick(&mut sessions, 17..=17);
        assert_eq!(ended(&sessions), ["n1@1"]);
    }

    #[test]
    fn an_older_incarnation_has_no_session() {
        let (mut sessions, n1) = table();
        sessions.hello(&n1, NodeEpoch(2), secs(1));
        sessions.hello(&n1, EPOCH, secs(1));
        assert_eq!(sessions.renew(&n1, EPOCH, 1, secs(1)), Err(NoSession));
        assert_eq!(sessions.renew(&n1, NodeEpoch(2), 1, secs(1)), Ok(()));
    }

    /// Applies a command, and has the table follow it.
    fn apply(state: &mut State, sessions: &mut Sessions, command: Command, second: u64) {
        let (at, clock) = (Timestamp(1), ClusterTime(secs(second).as_micros() as u64));
        state.begin_entry(at, clock);
        let (outcome, events) = state.apply(&request(&Namespace::default_namespace(), command), at, clock);
        state.end_entry();
        outcome.expect("accepted");
        sessions.applied(events.iter().map(|record| &record.event), state, secs(second));
        assert_eq!(sessions.mismatch(state), None);
    }

    fn register(boot: u128) -> Command {
        let inventory = Inventory { places: 1, ..Inventory::default() };
        Command::RegisterNode(RegisterNode { node: node("n1"), boot_id: BootId(boot), inventory })
    }

    #[test]
    fn a_node_that_registered_and_never_said_hello_has_a_session_that_ends() {
        let (mut state, mut sessions) = (State::new(1), Sessions::new(secs(8)));
        sessions.take_over([], secs(0));
        apply(&mut state, &mut sessions, register(1), 1);
        tick(&mut sessions, 1..=9);
        assert_eq!(ended(&sessions), ["n1@1"]);
        let lose = Command::LoseNode(LoseNode { node: node("n1"), epoch: EPOCH });
        apply(&mut state, &mut sessions, lose, 9);
        assert!(ended(&sessions).is_empty());
        assert_eq!(sessions.renew(&node("n1"), EPOCH, 1, secs(9)), Err(NoSession));
        // The same process again, and then another one, which leaves it nothing.
        apply(&mut state, &mut sessions, register(1), 10);
        assert_eq!(sessions.renew(&node("n1"), EPOCH, 2, secs(10)), Ok(()));
        apply(&mut state, &mut sessions, register(2), 11);
        assert_eq!(sessions.renew(&node("n1"), EPOCH, 3, secs(11)), Err(NoSession));
        assert_eq!(sessions.renew(&node("n1"), NodeEpoch(2), 1, secs(11)), Ok(()));
    }

    #[test]
    fn a_name_that_was_removed_begins_again_with_its_first_epoch() {
        let (mut state, mut sessions) = (State::new(1), Sessions::new(secs(8)));
        sessions.take_over([], secs(0));
        apply(&mut state, &mut sessions, register(1), 1);
        apply(&mut state, &mut sessions, register(2), 1);
        apply(&mut state, &mut sessions, Command::RemoveNode(RemoveNode { node: node("n1") }), 2);
        assert_eq!(sessions.renew(&node("n1"), NodeEpoch(2), 1, secs(2)), Err(NoSession));
        apply(&mut state, &mut sessions, register(3), 3);
        assert_eq!(sessions.renew(&node("n1"), EPOCH, 1, secs(3)), Ok(()));
    }
}
