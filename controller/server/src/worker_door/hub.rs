//! Connected workers, and the leases that each of them knows.
//!
//! A connection is one worker's open stream. Its lease set is that of the state it was welcomed with, plus every applied change since:
//! a batch that the welcome already covers is skipped by its number, and none in between can be missed, because a member shows its
//! applied state before it announces the batch.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_raft::{AppliedBatch, Leadership};
use atlas_service::Service;
use atlas_state::State;
use atlas_types::{
    Assignment, Attempt, BootId, ClusterTime, Event, EventRecord, FencingToken, HandBack, Job, JobChange, JobId,
    Journal, Level, Micros, Namespace, Node, NodeEpoch, NodeHealth, NodeId, Payload, PayloadBody, Reason, Seq, level,
};
use atlas_wire::limits::CONTROLLER_FRAME_BYTES_MAX;
use atlas_wire::session::{ToWorker, Welcome};
use tonic::Status;

use super::assignment::assignment;
use super::outbox::Outbox;

/// What an attempt gets between the request to stop and the kill.
const CANCEL_GRACE: Micros = Micros::from_secs(5);

/// A welcome grows up to this size with inputs in it, and never beyond the second: its frame would not be sent.
const WELCOME_BYTES: usize = CONTROLLER_FRAME_BYTES_MAX / 2;
const WELCOME_BYTES_MAX: usize = CONTROLLER_FRAME_BYTES_MAX - (1 << 20);
/// What a lease takes in a frame besides its input and metadata, at most, as long as it holds a few GPUs.
const LEASE_BYTES: usize = 1_024;

/// What is an artifact as well, because it has no room in a welcome.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) inputs: BTreeMap<JobId, PayloadBody>,
    /// The inline steps of journals, with the number of the step after them.
    pub(super) journals: BTreeMap<JobId, (u64, Payload)>,
}

/// What would make a welcome too large.
#[derive(Debug, Default)]
pub(super) struct Excess {
    pub(super) inputs: Vec<(JobId, Arc<[u8]>)>,
    pub(super) journals: Vec<(JobId, Arc<Journal>)>,
}

/// All connections.
pub(super) struct Hub {
    service: Service,
    session_ttl: Micros,
    /// Set once, under the lock of the connections: the controller stops.
    closed: AtomicBool,
    /// Whether there are connections: asked on Raft's thread, which must not wait for their lock.
    taken: AtomicBool,
    connections: Mutex<HashMap<NodeId, Arc<Connection>>>,
}

/// One worker's open stream.
pub(super) struct Connection {
    pub(super) node: NodeId,
    pub(super) epoch: NodeEpoch,
    pub(super) out: Outbox,
    /// What the worker knows.
    level: Level,
    leases: Mutex<Leases>,
}

/// The leases that the worker knows.
#[derive(Default)]
pub(super) struct Leases {
    /// Entries up to this one are in.
    seq: Seq,
    held: HashMap<JobId, Held>,
    /// The drain deadline that it knows.
    until: Option<ClusterTime>,
}

/// A lease that the worker knows.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) token: FencingToken,
    pub(super) attempt: Attempt,
    pub(super) namespace: Namespace,
    /// The worker reported its end: it need not be stopped.
    pub(super) reported: bool,
}

impl Leases {
    /// The lease of a job, if it is the one that `token` names.
    pub(super) fn held(&mut self, job: JobId, token: FencingToken) -> Option<&mut Held> {
        self.held.get_mut(&job).filter(|held| held.token == token)
    }

    /// Whether the worker runs this attempt.
    pub(super) fn runs(&self, job: JobId, attempt: Attempt) -> bool {
        self.held.get(&job).is_some_and(|held| held.attempt == attempt)
    }
}

impl Connection {
    pub(super) fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is(&self, node: &Node) -> bool {
        node.epoch == self.epoch && node.health == NodeHealth::Ready
    }
}

impl Hub {
    pub(super) fn new(service: &Service, session_ttl: Duration) -> Self {
        Self {
            service: service.clone(),
            session_ttl: session_ttl.into(),
            closed: AtomicBool::new(false),
            taken: AtomicBool::new(false),
            connections: Mutex::default(),
        }
    }

    /// Takes the node's connection and welcomes the worker. An older stream of the node is closed.
    ///
    /// `stored` are inputs that are told by reference. On refusal the stream is given back with the reason.
    pub(super) fn enter(
        &self,
        (node, epoch, boot): (NodeId, NodeEpoch, BootId),
        level: Level,
        stored: &Stored,
        out: Outbox,
    ) -> Result<Arc<Connection>, (Outbox, Refused)> {
        let mut connections = self.connections();
        // Under the lock: whoever empties the connections after this member stopped leading finds this one too.
        let leads = matches!(*self.service.handle().leadership().borrow(), Leadership::Leader { .. });
        if !leads || self.closed.load(Ordering::Relaxed) {
            return Err((out, Refused::NotLeader));
        }
        let state = self.service.handle().applied();
        let mine = |found: &Node| found.boot_id == boot && found.epoch == epoch && found.health == NodeHealth::Ready;
        if !state.node(&node).is_some_and(|found| mine(&found.node)) {
            return Err((out, Refused::Superseded));
        }
        let connection = Connection { node: node.clone(), epoch, out, level, leases: Mutex::default() };
        let Some(frames) = self.welcome(&connection, &state, stored) else {
            return Err((connection.out, Refused::TooLarge));
        };
        frames.into_iter().for_each(|frame| connection.out.send(frame));
        let connection = Arc::new(connection);
        if let Some(older) = connections.insert(node, connection.clone()) {
            older.out.fail(Status::aborted("replaced by a newer stream of this node"));
        }
        self.count(&connections);
        Ok(connection)
    }

    /// What of a node's leases would make its welcome too large.
    pub(super) fn without_room(&self, node: &NodeId) -> Excess {
        let state = self.service.handle().applied();
        let mut excess = Excess::default();
        let Some(node) = state.node(node) else { return excess };
        let mut bytes = 0;
        for (_, id) in node.leases() {
            let Some(job) = state.job(id) else { continue };
            bytes += LEASE_BYTES + job.metadata.len();
            // A reference is no shorter than a small input.
            if let PayloadBody::Inline(input) = &job.input.body {
                match bytes + input.len() > WELCOME_BYTES && input.len() > LEASE_BYTES {
                    true => excess.inputs.push((id, input.clone())),
                    false => bytes += input.len(),
                }
            }
            if let Some(journal) = state.journal(id) {
                let (folds, steps) = journal_bytes(journal);
                bytes += folds;
                match bytes + steps > WELCOME_BYTES && steps > LEASE_BYTES {
                    true => excess.journals.push((id, journal.clone())),
                    false => bytes += steps,
                }
            }
        }
        excess
    }

    /// Gives a connection up, unless a newer stream has taken it.
    pub(super) fn leave(&self, connection: &Arc<Connection>) {
        let mut connections = self.connections();
        if connections.get(&connection.node).is_some_and(|taken| Arc::ptr_eq(taken, connection)) {
            connections.remove(&connection.node);
            self.count(&connections);
        }
    }

    /// Whether a worker waits for what an entry tells: a lease that began, ends or is to end.
    pub(super) fn awaits(&self, batch: &AppliedBatch) -> bool {
        use JobChange::{Cancelling, Ended, Granted, Lost};
        let lease =
            |event: &EventRecord| matches!(event.event, Event::Job { change: Granted | Cancelling | Lost | Ended, .. });
        self.taken.load(Ordering::Relaxed) && batch.events.iter().any(lease)
    }

    /// Tells workers what an entry changed for them.
    pub(super) fn deliver(&self, batch: &AppliedBatch) {
        let connections = self.connections();
        for event in batch.events.iter() {
            match &event.event {
                Event::Job { change, job, .. } => {
                    if let Some(connection) = job.node.as_ref().and_then(|node| connections.get(node)) {
                        self.job_changed(connection, batch, *change, job);
                    }
                    if *change == JobChange::Ended {
                        self.service.streams().forget(job.id);
                    }
                }
                Event::Node { node } => {
                    if let Some(connection) = connections.get(&node.id) {
                        node_changed(connection, batch, node);
                    }
                }
                Event::NodeRemoved { node } => {
                    if let Some(connection) =
                        connections.get(node).filter(|connection| connection.leases().seq < batch.seq)
                    {
                        connection.out.fail(Status::aborted("this node was removed"));
                    }
                }
                Event::Agent { .. }
                | Event::AgentDeleted { .. }
                | Event::StepsRecorded { .. }
                | Event::StepsFolded { .. }
                | Event::MessageDelivered { .. }
                | Event::Configured { .. } => {}
            }
        }
    }

    fn job_changed(&self, connection: &Connection, batch: &AppliedBatch, change: JobChange, job: &Arc<Job>) {
        let mut leases = connection.leases();
        if batch.seq <= leases.seq {
            return;
        }
        match change {
            JobChange::Granted => {
                if let Some(assignment) = self.hold(&mut leases, connection, &batch.state, job) {
                    connection.out.send(ToWorker::Grant(assignment));
                }
            }
            JobChange::Cancelling => {
                if let Some(held) = leases.held.get(&job.id) {
                    connection.out.send(cancel(job.id, held.token));
                }
            }
            JobChange::Lost | JobChange::Parked | JobChange::Ended => {
                if let Some(held) = leases.held.remove(&job.id).filter(|held| !held.reported) {
                    connection.out.send(ToWorker::Revoke { job: job.id, token: held.token });
                }
            }
            JobChange::Submitted | JobChange::Started | JobChange::Woken | JobChange::Resolved => {}
        }
    }

    /// Notes a lease of the worker and returns what it needs for it; none for a job that ended without a run.
    fn hold(&self, leases: &mut Leases, connection: &Connection, state: &State, job: &Job) -> Option<Box<Assignment>> {
        let lease = job.lease.as_ref().filter(|lease| lease.epoch == connection.epoch)?;
        let assignment = assignment(state, job, lease, self.service.artifacts().bytes_max())?;
        let held =
            Held { token: lease.token, attempt: lease.attempt, namespace: job.namespace.clone(), reported: false };
        leases.held.insert(job.id, held);
        Some(Box::new(assignment))
    }

    /// Has every worker say hello again, because changes may have gone unnoticed, and forgets lines of jobs that ended meanwhile.
    pub(super) fn start_over(&self) {
        let mut connections = self.connections();
        for (_, connection) in connections.drain() {
            connection.out.fail(Status::aborted("the controller fell behind its log"));
        }
        self.count(&connections);
        let state = self.service.handle().applied();
        self.service.streams().retain(|id| state.job(id).is_some_and(|job| !job.status.is_terminal()));
    }

    /// The whole lease set of a node, and which of it must stop. None if it is too large for a frame.
    fn welcome(&self, connection: &Connection, state: &State, stored: &Stored) -> Option<Vec<ToWorker>> {
        let mut leases = connection.leases();
        leases.seq = state.seq();
        let node = state.node(&connection.node)?;
        leases.until = node.node.drain_until;
        let hand_back = hand_back(&node.node, state);
        let (mut assignments, mut cancels, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (token, id) in node.leases() {
            let Some(job) = state.job(id) else { continue };
            let Some(mut assignment) = self.hold(&mut leases, connection, state, job) else { continue };
            if let Some(input) = stored.inputs.get(&id) {
                assignment.input.body = input.clone();
            }
            bytes += LEASE_BYTES + assignment.metadata.len();
            if let Some(assigned) = &mut assignment.journal {
                // One that has grown since is sent as it is.
                let kept = stored.journals.get(&id).filter(|(next, _)| *next == assigned.journal.next());
                if let Some((_, unfolded)) = kept {
                    assigned.unfolded = Some(unfolded.clone());
                    Arc::make_mut(&mut assigned.journal).steps.clear();
                }
                let (folds, steps) = journal_bytes(&assigned.journal);
                bytes += folds + steps;
            }
            if let PayloadBody::Inline(input) = &assignment.input.body {
                bytes += input.len();
            }
            assignments.push(*assignment);
            if job.reason == Reason::Cancelling {
                cancels.push(cancel(id, token));
            }
        }
        let controllers = self.service.handle().members().members.into_iter().map(|member| member.peer.worker);
        let controllers = controllers.filter(|address| !address.is_empty()).collect();
        let (epoch, session_ttl) = (connection.epoch, self.session_ttl);
        let welcome = Welcome { epoch, session_ttl, leases: assignments, controllers, hand_back };
        (bytes <= WELCOME_BYTES_MAX).then(|| std::iter::once(ToWorker::Welcome(welcome)).chain(cancels).collect())
    }

    /// This member does not lead any more: workers look for who does.
    pub(super) fn hand_over(&self, leader_address: Option<&str>) {
        let leader_address = leader_address.map(str::to_owned);
        self.close(self.connections(), &ToWorker::NotLeader { leader_address });
    }

    /// The controller stops: workers go elsewhere.
    pub(super) fn shut_down(&self) {
        let connections = self.connections();
        self.closed.store(true, Ordering::Relaxed);
        self.close(connections, &ToWorker::Shutdown);
    }

    fn close(&self, mut connections: MutexGuard<'_, HashMap<NodeId, Arc<Connection>>>, last: &ToWorker) {
        for (_, connection) in connections.drain() {
            connection.out.send(last.clone());
            connection.out.finish();
        }
        self.count(&connections);
    }

    fn count(&self, connections: &HashMap<NodeId, Arc<Connection>>) {
        self.taken.store(!connections.is_empty(), Ordering::Relaxed);
        self.service.metrics().session_count.set(i64::try_from(connections.len()).unwrap_or(i64::MAX));
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<NodeId, Arc<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the folds and the steps of a journal take in a frame, at most.
fn journal_bytes(journal: &Journal) -> (usize, usize) {
    /// A digest, a size and a number; what a step has besides its outcome is no more than twice that.
    const REFERENCE_BYTES: usize = 64;
    let steps = journal.steps.iter().map(|step| usize::try_from(step.bytes()).unwrap_or(usize::MAX) + REFERENCE_BYTES);
    (journal.folds.len() * REFERENCE_BYTES, steps.sum())
}

/// Why a worker got no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// This member does not lead.
    NotLeader,
    /// Meanwhile the node was lost, or another process took its name.
    Superseded,
    /// The node's leases have no room in one frame.
    TooLarge,
}

/// Ends the stream of a process that is not the node's any more; else tells it if the deadline of its drain is another one.
fn node_changed(connection: &Connection, batch: &AppliedBatch, node: &Node) {
    let mut leases = connection.leases();
    if batch.seq <= leases.seq {
        return;
    }
    if !connection.is(node) {
        connection.out.fail(Status::aborted("this node's session was lost, or another process took its name"));
    } else if leases.until != node.drain_until && connection.level >= level::DRAIN_DEADLINE {
        leases.until = node.drain_until;
        connection.out.send(ToWorker::HandBack(hand_back(node, &batch.state)));
    }
}

/// By when a node gives back what it runs, and what is left until then.
fn hand_back(node: &Node, state: &State) -> Option<HandBack> {
    node.drain_until.map(|until| HandBack { until, within: until.since(state.clock()) })
}

fn cancel(job: JobId, token: FencingToken) -> ToWorker {
    ToWorker::Cancel { job, token, grace: CANCEL_GRACE }
}
