//! One leadership, and the loop that runs during it.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use atlas_duty::sessions::{Round, StreamId};
use atlas_duty::{DownNodes, Run as _, Sessions, Task, Tasks};
use atlas_replica::{Head, PlannedEntry};
use atlas_state::State;
use atlas_types::{EventSeq, Level, MemberId, NodeHealth};
use openraft::ReadPolicy;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::ClientWriteError;
use openraft::impls::ProgressResponder;
use openraft::raft::ClientWriteResult;
use tokio::sync::oneshot;

use super::clock::LeaderClock;
use super::duties::Duties;
use super::hand_over::HandOver;
use super::queue::{Queue, Ticket};
use super::waiting::{Confirm, Renewal, Waiting, confirmation};
use super::{INPUTS_MAX, LeaderLoop, hand_over};
use crate::consensus::{LeaderId, Proposal, Reply, Types};
use crate::error::{Leadership, ProposeError, ReadError};
use crate::local::Input;
use crate::machine::Raft;
use crate::membership::{ChangeError, Group};
use crate::monitor::space::{Room, grows};
use crate::options::Options;

/// How often the loop checks the clock when nothing happens.
pub(super) const TICK: Duration = Duration::from_millis(50);
/// The shortest interval between two acknowledgements of the history's progress.
const SINK_ACK_EVERY: Duration = Duration::from_millis(200);
/// An entry that is in flight for longer has no quorum. Its callers get an error and the head is rebuilt.
const IN_FLIGHT_MAX: Duration = Duration::from_secs(5);
/// The interval between two checks for nodes that are down.
const LOOK_AT_NODES_EVERY: Duration = Duration::from_secs(5);

/// The interval between two checks for retired agent versions that have been kept long enough.
const LOOK_AT_AGENTS_EVERY: Duration = Duration::from_secs(5);
/// The shortest interval between two attempts of a leader with low disk space to hand over.
const LEAVE_EVERY: Duration = Duration::from_secs(2);
/// The most requests in one plan: the capacity of an entry.
const PLAN_REQUESTS_MAX: usize = 512;

/// How a leadership ended.
pub(super) enum End {
    /// Another member leads or will lead.
    Lost,
    /// Raft has stopped.
    Failed,
    /// The member was asked to stop.
    Shutdown,
}

/// The entry in flight, and the callers that wait for it.
struct InFlight {
    outcome:
        <openraft::alias::OneshotOf<Types> as openraft::async_runtime::Oneshot>::Receiver<ClientWriteResult<Types>>,
    tickets: Vec<Ticket>,
    since: Duration,
    planned: Arc<PlannedEntry>,
}

/// A leadership.
pub(super) struct Lead<'l> {
    base: &'l mut LeaderLoop,
    leader: LeaderId,
    head: Head,
    clock: LeaderClock,
    sessions: Sessions,
    queue: Queue,
    waiting: Waiting,
    in_flight: Option<InFlight>,
    confirm: Option<Confirm>,
    /// The latest round of renewals that a quorum did not confirm.
    unconfirmed: Option<Round>,
    /// The earliest time at which the quorum is asked again.
    confirm_from: Duration,
    /// Set during a hand-over, in which nothing is planned.
    hand_over: Option<HandOver>,
    /// True if leader tasks may have work: after every entry and at every tick.
    due: bool,
    sink_acked_at: Duration,
    ticked_at: Duration,
    down: DownNodes,
    /// Which leader tasks panicked, and when they are tried again.
    tasks: Tasks,
    /// When the loop last checked which nodes are down.
    looked_at: Duration,
    /// When the loop last checked for retired agent versions, and whether the next plan does so.
    agents_looked_at: Duration,
    agents_due: bool,
    /// When this leader last tried to hand over because of low disk space.
    left_at: Duration,
}

impl<'l> Lead<'l> {
    /// A leadership that starts on `state`, which is complete.
    pub(super) fn new(base: &'l mut LeaderLoop, leader: LeaderId, state: State) -> Self {
        let clock = LeaderClock::new(base.env.clone(), state.clock());
        let mut sessions = Sessions::new(base.options.session_ttl);
        let ready = state.nodes().map(|node| &node.node).filter(|node| node.health == NodeHealth::Ready);
        sessions.take_over(ready.map(|node| (node.id.clone(), node.epoch)), clock.monotonic());
        tracing::info!(term = leader.term, seq = %state.seq(), "leading");
        base.leadership.send_replace(Leadership::Leader { term: leader.term });
        let mut head = Head::new(state);
        raise(&mut head, &base.group);
        Self {
            base,
            leader,
            head,
            clock,
            sessions,
            queue: Queue::default(),
            waiting: Waiting::default(),
            in_flight: None,
            confirm: None,
            unconfirmed: None,
            confirm_from: Duration::ZERO,
            hand_over: None,
            due: true,
            sink_acked_at: Duration::ZERO,
            ticked_at: Duration::ZERO,
            down: DownNodes::default(),
            tasks: Tasks::default(),
            looked_at: Duration::ZERO,
            agents_looked_at: Duration::ZERO,
            agents_due: true,
            left_at: Duration::ZERO,
        }
    }

    /// Runs until this leadership ends.
    pub(super) async fn run(mut self, shutdown: &mut oneshot::Receiver<()>) -> End {
        let end = self.turn(shutdown).await;
        let leader = self.base.followed();
        tracing::info!(term = self.leader.term, "leadership lost");
        if let Some(in_flight) = self.in_flight.take() {
            fail(in_flight.tickets, &ProposeError::Unknown);
        }
        self.queue.fail_all(leader.as_ref());
        let waiting = self.confirm.take().map(|confirm| confirm.waiting);
        for waiting in waiting.into_iter().chain([std::mem::take(&mut self.waiting)]) {
            waiting.fail(leader.as_ref());
        }
        end
    }

    async fn turn(&mut self, shutdown: &mut oneshot::Receiver<()>) -> End {
        let raft = self.base.raft.clone();
        let leader = self.leader;
        let mut lost = std::pin::pin!(lost(raft, leader));
        let mut tick = self.base.env.clock.sleep(TICK);
        let mut inputs = Vec::new();
        loop {
            while let Some(input) = self.base.inputs.try_recv() {
                self.take(input);
                if self.queue.len() >= PLAN_REQUESTS_MAX {
                    break;
                }
            }
            // The tick is checked here and not in the `select!`, because under load another branch always completes
            // before the timer.
            if self.clock.monotonic().saturating_sub(self.ticked_at) >= TICK {
                self.tick();
                let late = |sent: &InFlight| self.ticked_at.saturating_sub(sent.since) > IN_FLIGHT_MAX;
                if self.in_flight.as_ref().is_some_and(late) && self.base.log.waits_for_space() {
                    // The entry has its place in the log and will be written once there is disk space. Until then this
                    // leadership continues to answer reads.
                    self.in_flight
                        .iter_mut()
                        .for_each(|sent| fail(std::mem::take(&mut sent.tickets), &ProposeError::Unknown));
                } else if self.in_flight.as_ref().is_some_and(late) {
                    tracing::warn!("no quorum for an entry in time");
                    return End::Lost;
                }
            }
            if self.in_flight.is_none()
                && let Some(hand_over) = &mut self.hand_over
                && !hand_over.advance(&self.base.raft, self.clock.monotonic()).await
            {
                self.hand_over = None;
            }
            if self.in_flight.is_none()
                && self.hand_over.is_none()
                && self.base.disk.borrow().room != Room::None
                && (self.due || !self.queue.is_empty())
                && let Err(end) = self.plan().await
            {
                return end;
            }
            self.confirm();
            tokio::select! {
                biased;
                _ = &mut *shutdown => return End::Shutdown,
                outcome = completion(&mut self.in_flight) => if let Err(end) = self.applied(outcome) {
                    return end;
                },
                confirmed = confirmation(&mut self.confirm) => if !self.confirmed(confirmed) {
                    return End::Lost;
                },
                // While nothing can be planned, inputs are queued up to a bound. Urgent inputs are taken beyond it.
                count = async {
                    if self.queue.len() < self.base.options.queue_max {
                        self.base.inputs.recv_any(&mut inputs, INPUTS_MAX).await
                    } else {
                        self.base.inputs.recv_urgent(&mut inputs, INPUTS_MAX).await
                    }
                } => {
                    if count == 0 {
                        return End::Shutdown;
                    }
                    inputs.drain(..).for_each(|input| self.take(input));
                }
                stopped = &mut lost => return if stopped { End::Failed } else { End::Lost },
                () = &mut tick => tick = self.base.env.clock.sleep(TICK),
            }
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Propose { requests, answer } => match self.base.disk.borrow().room {
                Room::Ample => self.queue.push(requests, answer),
                Room::Short if !grows(&requests) => self.queue.push(requests, answer),
                // A caller that gave up waiting needs no answer.
                Room::Short | Room::None => drop(answer.send(Err(ProposeError::NoSpace))),
            },
            Input::Read { answer } => self.waiting.reads.push(answer),
            Input::Hello { node, epoch, stream, answer } => {
                // The head includes a loss that is in flight. A late hello must not revive the session of a lost epoch.
                let found = self.head.state().node(&node).map(|found| &found.node);
                let lives = found.is_some_and(|node| node.epoch == epoch && node.health == NodeHealth::Ready);
                if lives {
                    self.sessions.hello(&node, epoch, StreamId(stream), self.clock.monotonic());
                    // Jobs may wait for a node that was away.
                    self.due = true;
                }
                // A worker that stopped waiting needs no answer.
                drop(answer.send(if lives { Ok(()) } else { Err(ReadError::NoSession) }));
            }
            Input::Claim { node, epoch, successor, answer } => {
                let free = self.sessions.may_take(&node, epoch, successor, self.clock.monotonic());
                // A worker that stopped waiting needs no answer.
                drop(answer.send(Ok(free)));
            }
            Input::Parted { node, epoch, farewell: true, .. } => {
                self.sessions.leave(&node, epoch);
                self.due = true;
            }
            Input::Parted { node, epoch, stream, farewell: false } => {
                self.sessions.broke(&node, epoch, StreamId(stream), self.clock.monotonic());
            }
            Input::Renew { node, epoch, number, answer } => {
                match self.sessions.renew(&node, epoch, number, self.clock.monotonic()) {
                    Ok(()) => self.waiting.renewals.push(Renewal { node, epoch, number, answer }),
                    // A worker that stopped waiting needs no answer.
                    Err(_) => drop(answer.send(Err(ReadError::NoSession))),
                }
            }
            Input::HandOver { to, answer } => self.hand_over(to, answer),
        }
    }

    fn hand_over(&mut self, to: Option<MemberId>, answer: hand_over::Answer) {
        if self.hand_over.is_some() {
            // A caller that gave up waiting needs no answer.
            let _ = answer.send(Err(ChangeError::Refused { reason: "leadership is being handed over".into() }));
            return;
        }
        if to == Some(self.base.options.member) {
            // This member leads already.
            let _ = answer.send(Ok(self.base.options.member));
            return;
        }
        self.hand_over = Some(HandOver::new(to, answer, self.clock.monotonic()));
    }

    /// Hands leadership over to a voter with free disk space, if this member's disk is nearly full.
    fn leave_for_space(&mut self) {
        let room = self.base.disk.borrow().room;
        let waited = self.ticked_at.saturating_sub(self.left_at) < LEAVE_EVERY;
        if room == Room::Ample || self.hand_over.is_some() || waited {
            return;
        }
        self.left_at = self.ticked_at;
        if room == Room::None {
            // The queued requests were not written, and it is unknown when they could be.
            self.queue.fail_all_with(&ProposeError::NoSpace);
        }
        if let Some(next) = self.base.group.roomy_voter() {
            tracing::warn!(%next, "handing over leadership to a member with free disk space");
            let (answer, _) = oneshot::channel();
            self.hand_over = Some(HandOver::new(Some(next), answer, self.ticked_at));
        }
    }

    fn tick(&mut self) {
        self.ticked_at = self.clock.monotonic();
        raise(&mut self.head, &self.base.group);
        self.leave_for_space();
        if self.base.options.forget_nodes_after.is_some()
            && self.ticked_at.saturating_sub(self.looked_at) >= LOOK_AT_NODES_EVERY
        {
            self.looked_at = self.ticked_at;
            let (down, state, now) = (&mut self.down, self.head.state(), self.ticked_at);
            self.tasks.at(now).run(Task::Forget, || {
                down.look(state, now);
                Vec::new()
            });
        }
        if self.ticked_at.saturating_sub(self.agents_looked_at) >= LOOK_AT_AGENTS_EVERY {
            self.agents_looked_at = self.ticked_at;
            self.agents_due = true;
        }
        self.sessions.tick(self.ticked_at);
        self.due = true;
    }

    /// Plans the next entry at the head and proposes it, if there is anything to write.
    async fn plan(&mut self) -> Result<(), End> {
        let gathered = self.queue.take(PLAN_REQUESTS_MAX);
        let sink = self.sink_due();
        let duties = Duties {
            now: self.clock.now(),
            sessions: &self.sessions,
            voters: &self.base.voters(),
            down: (&self.down, self.clock.monotonic(), self.base.options.forget_nodes_after),
            retired_keep: self.base.options.retired_agents_keep.filter(|_| std::mem::take(&mut self.agents_due)),
            strategy: self.base.options.strategy,
            sink,
        };
        let at = self.base.group.stamp();
        let mut run = self.tasks.at(self.clock.monotonic());
        let mut planned =
            self.head.plan(gathered, at, duties.now, &mut |state, budget| duties.plan(&mut run, state, budget));
        self.base.panics.note(&self.tasks.take_panics());
        if planned.panics > 0 {
            tracing::error!(panics = planned.panics, "planning panicked; the request that caused it was refused");
        }
        let outcomes = std::mem::take(&mut planned.outcomes);
        let tickets = self.queue.decide(outcomes, std::mem::take(&mut planned.leftover));
        if planned.is_empty() {
            self.due = false;
            self.waiting.tickets.extend(tickets);
            return Ok(());
        }
        if sink.is_some() {
            self.sink_acked_at = self.clock.monotonic();
        }
        self.propose(planned, tickets).await
    }

    async fn propose(&mut self, planned: PlannedEntry, tickets: Vec<Ticket>) -> Result<(), End> {
        let mut entry = Vec::with_capacity(planned.entry_bytes.len() + 1);
        entry.extend_from_slice(&planned.entry_bytes);
        let planned = Arc::new(planned);
        self.base.slot.put(self.leader, Arc::clone(&planned));
        let (responder, outcome) = ProgressResponder::complete_only();
        let write = self.base.raft.write(Proposal::new(entry)).with_leader(self.leader).responder(responder);
        self.in_flight = Some(InFlight { outcome, tickets, since: self.clock.monotonic(), planned });
        write.await.map_err(|_| End::Failed)
    }

    /// This member's history and how far it is synced, if an acknowledgement is due.
    fn sink_due(&self) -> Option<(MemberId, EventSeq)> {
        let Options { history: true, member, .. } = self.base.options else { return None };
        let synced = *self.base.history.borrow();
        let waited = self.clock.monotonic().saturating_sub(self.sink_acked_at);
        (waited >= SINK_ACK_EVERY && synced > self.head.state().sink(member)).then_some((member, synced))
    }

    /// Handles the outcome of the entry in flight.
    fn applied(&mut self, outcome: Option<ClientWriteResult<Types>>) -> Result<(), End> {
        let Some(InFlight { tickets, planned, .. }) = self.in_flight.take() else { return Ok(()) };
        match outcome {
            Some(Ok(response)) if response.log_id.leader_id == self.leader && response.data == Reply::Applied => {
                tickets.into_iter().for_each(Ticket::release);
                self.due = true;
                self.keep_sessions(&planned);
                Ok(())
            }
            // Nothing was written, or the entry changes nothing on any member. The requests are safe to repeat.
            Some(Err(ClientWriteError::ForwardToLeader(_)) | Ok(_)) => {
                fail(tickets, &ProposeError::NotLeader { leader: self.base.followed() });
                self.queue.fail_begun();
                Err(End::Lost)
            }
            // Another leader removed the entry from this member's log, but other members may still have it.
            Some(Err(_)) => {
                fail(tickets, &ProposeError::Unknown);
                Err(End::Lost)
            }
            None => {
                fail(tickets, &ProposeError::Unknown);
                Err(End::Failed)
            }
        }
    }

    /// Gives every node that an applied entry made ready a session, whichever member registered it.
    fn keep_sessions(&mut self, planned: &PlannedEntry) {
        let events = planned.events.iter().map(|record| &record.event);
        self.sessions.applied(events, &planned.state, self.clock.monotonic());
        debug_assert_eq!(self.sessions.mismatch(&planned.state), None, "nodes and sessions differ");
    }

    /// Asks the quorum for the waiting requests. If a question is in flight, they wait for the next one, because they
    /// arrived after it began.
    fn confirm(&mut self) {
        if self.confirm.is_some() || self.waiting.is_empty() || self.clock.monotonic() < self.confirm_from {
            return;
        }
        let raft = self.base.raft.clone();
        let outcome = Box::pin(async move { raft.ensure_linearizable(ReadPolicy::ReadIndex).await.is_ok() });
        // A later round covers the earlier ones.
        let round = self.sessions.begin_round().or(self.unconfirmed.take());
        self.confirm = Some(Confirm { outcome, waiting: std::mem::take(&mut self.waiting), round });
    }

    /// Handles the quorum's answer. False if this member does not lead any more.
    fn confirmed(&mut self, confirmed: bool) -> bool {
        let Some(Confirm { waiting, round, .. }) = self.confirm.take() else { return true };
        if self.base.leader_id() != Some(self.leader) {
            waiting.fail(self.base.followed().as_ref());
            return false;
        }
        if !confirmed {
            // A late or failed answer does not decide who leads. The requests wait for another question at the next
            // tick: during a hand-over questions fail at once, and without a pause the loop would repeat them all the
            // time.
            self.confirm_from = self.clock.monotonic() + TICK;
            self.unconfirmed = round.or(self.unconfirmed);
            self.waiting.take_in(waiting);
            return true;
        }
        let renewed = round.map(|round| self.sessions.confirmed(round)).unwrap_or_default();
        let alive: BTreeSet<_> = renewed.into_iter().map(|renewed| (renewed.node, renewed.epoch)).collect();
        waiting.release(&self.base.applied, &alive);
        true
    }
}

/// Fails the proposals of callers.
fn fail(tickets: Vec<Ticket>, error: &ProposeError) {
    tickets.into_iter().for_each(|ticket| ticket.fail(error.clone()));
}

/// Lets the next entry raise the feature level if all members are known to have it by now (B.43).
fn raise(head: &mut Head, group: &Group) {
    if head.state().level() < Level::CURRENT
        && let Some(level) = group.level_of_all()
    {
        head.raise(level);
    }
}

/// Completes when this member no longer leads as `leader`. True if Raft has stopped.
pub(super) async fn lost(raft: Raft, leader: LeaderId) -> bool {
    let mut metrics = raft.server_metrics();
    while raft.as_leader().is_ok_and(|found| *found.leader_id() == leader) {
        if metrics.changed().await.is_err() {
            return true;
        }
    }
    false
}

/// Waits for the outcome of the entry in flight, or for ever if there is none. None if Raft dropped it.
async fn completion(in_flight: &mut Option<InFlight>) -> Option<ClientWriteResult<Types>> {
    match in_flight {
        Some(in_flight) => (&mut in_flight.outcome).await.ok(),
        None => pending().await,
    }
}
