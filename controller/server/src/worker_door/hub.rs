//! Connected workers, and the leases that each of them knows about.
//!
//! A connection is one worker's open stream. Its lease set consists of the state with which it was welcomed and all
//! changes applied since. A batch that the welcome already covers is skipped by its number. No batch in between can be
//! missed, because a member publishes its applied state before it announces the batch.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use atlas_env::Env;
use atlas_limiter::Session;
use atlas_raft::{AppliedBatch, Leadership};
use atlas_service::{Recipient, Service, Withheld};
use atlas_state::State;
use atlas_types::{
    Assignment, Attempt, BootId, ClusterTime, Event, EventRecord, FencingToken, HandBack, HandBackDeadline, Job,
    JobChange, JobId, Journal, Level, Micros, Namespace, Node, NodeEpoch, NodeHealth, NodeId, Payload, PayloadBody,
    Reason, Seq, level,
};
use atlas_wire::limits::CONTROLLER_FRAME_BYTES_MAX;
use atlas_wire::session::{ToWorker, Welcome};
use tokio::sync::watch;
use tonic::Status;

use super::assignment::assignment;
use super::mail;
use super::outbox::Outbox;

/// The time for an attempt between the request to stop and the kill.
const CANCEL_GRACE: Micros = Micros::from_secs(5);

/// Inputs are included in a welcome up to this size. The second value is the limit of the whole welcome, because a
/// larger frame cannot be sent.
const WELCOME_BYTES: usize = CONTROLLER_FRAME_BYTES_MAX / 2;
const WELCOME_BYTES_MAX: usize = CONTROLLER_FRAME_BYTES_MAX - (1 << 20);
/// The most bytes of the attachments in one welcome. Leases that the worker has already need none.
const ATTACHED_BYTES_MAX: usize = 8 << 20;
/// The largest size of a lease in a frame without its input and metadata, for a lease with a few GPUs.
const LEASE_BYTES: usize = 1_024;

/// Payloads that are stored as artifacts, because they do not fit into a welcome.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) inputs: BTreeMap<JobId, PayloadBody>,
    /// What agents are told about their chains.
    pub(super) contexts: BTreeMap<JobId, PayloadBody>,
    /// The inline steps of journals, with the number of the next step.
    pub(super) journals: BTreeMap<JobId, (u64, Payload)>,
}

/// Payloads that would make a welcome too large.
#[derive(Debug, Default)]
pub(super) struct Excess {
    pub(super) inputs: Vec<(JobId, Arc<[u8]>)>,
    pub(super) contexts: Vec<(JobId, Arc<[u8]>)>,
    pub(super) journals: Vec<(JobId, Arc<Journal>)>,
}

/// All connections.
pub(super) struct Hub {
    service: Service,
    env: Env,
    session_ttl: Micros,
    /// Set once when the controller stops, while the connections are locked.
    closed: AtomicBool,
    /// Whether there are connections. Read on Raft's thread, which must not wait for their lock.
    taken: AtomicBool,
    connections: Mutex<HashMap<NodeId, Arc<Connection>>>,
    /// The number of the next stream.
    streams: AtomicU64,
}

/// One worker's open stream.
pub(super) struct Connection {
    pub(super) node: NodeId,
    pub(super) epoch: NodeEpoch,
    pub(super) out: Outbox,
    pub(super) program: Program,
    leases: Mutex<Leases>,
}

/// The worker at the other end of a stream.
pub(super) struct Program {
    /// Tells its streams apart.
    pub(super) stream: u64,
    /// Its feature level.
    pub(super) level: Level,
    /// Others cannot read the stream.
    pub(super) private: bool,
    /// The leases that it has got before: it has their attachments.
    pub(super) held: BTreeSet<FencingToken>,
    /// Its address, as this controller sees it.
    pub(super) address: Arc<str>,
}

/// The leases that the worker knows about.
#[derive(Default)]
pub(super) struct Leases {
    /// The lease set includes the entries up to this one.
    seq: Seq,
    held: HashMap<JobId, Held>,
    /// What was sent to the worker about the drain of its node.
    drain: Option<ToldDrain>,
}

/// A lease that the worker knows about.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) token: FencingToken,
    pub(super) attempt: Attempt,
    pub(super) namespace: Namespace,
    /// True if the worker reported the end of the attempt, which then need not be stopped.
    pub(super) reported: bool,
    /// Dropped with the lease, which ends what is done for the attempt meanwhile.
    alive: watch::Sender<()>,
}

impl Held {
    /// Its channel closes when the lease has ended.
    pub(super) fn alive(&self) -> watch::Receiver<()> {
        self.alive.subscribe()
    }
}

impl Leases {
    /// The lease of a job, if it is the one that `token` names.
    pub(super) fn held(&mut self, job: JobId, token: FencingToken) -> Option<&mut Held> {
        self.held.get_mut(&job).filter(|held| held.token == token)
    }

    /// The leases whose end was not reported.
    pub(super) fn running(&self) -> impl Iterator<Item = (JobId, FencingToken, Attempt)> + '_ {
        let running = self.held.iter().filter(|(_, held)| !held.reported);
        running.map(|(job, held)| (*job, held.token, held.attempt))
    }

    /// The lease of a job whose change in an entry the worker has not been told yet.
    pub(super) fn learns(&self, seq: Seq, job: JobId) -> Option<FencingToken> {
        self.held.get(&job).filter(|_| self.seq < seq).map(|held| held.token)
    }

    /// True if the worker runs this attempt.
    pub(super) fn runs(&self, job: JobId, attempt: Attempt) -> bool {
        self.held.get(&job).is_some_and(|held| held.attempt == attempt)
    }
}

impl Connection {
    pub(super) fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What tells its tries of model calls from those of other streams.
    pub(super) fn session(&self) -> Session {
        Session { node: self.node.clone(), epoch: self.epoch, stream: self.program.stream }
    }

    fn is(&self, node: &Node) -> bool {
        node.epoch == self.epoch && node.health == NodeHealth::Ready
    }
}

impl Hub {
    pub(super) fn new(service: &Service, env: Env, session_ttl: Duration) -> Self {
        Self {
            service: service.clone(),
            env,
            session_ttl: session_ttl.into(),
            closed: AtomicBool::new(false),
            taken: AtomicBool::new(false),
            connections: Mutex::default(),
            streams: AtomicU64::new(1),
        }
    }

    /// Now, by the monotonic clock.
    pub(super) fn now(&self) -> Duration {
        self.env.clock.monotonic()
    }

    /// The number of a new stream.
    pub(super) fn next_stream(&self) -> u64 {
        self.streams.fetch_add(1, Ordering::Relaxed)
    }

    /// The address of a node's worker, if it is connected.
    pub(super) fn address(&self, node: &NodeId) -> Option<Arc<str>> {
        self.connections().get(node).map(|connection| connection.program.address.clone())
    }

    /// Sets the node's connection and sends the welcome. An older stream of the node is closed.
    ///
    /// `stored` contains inputs that are sent as references. On refusal, the stream is returned with the reason.
    pub(super) fn enter(
        &self,
        (node, epoch, boot): (NodeId, NodeEpoch, BootId),
        program: Program,
        stored: &Stored,
        out: Outbox,
    ) -> Result<Arc<Connection>, (Outbox, Refused)> {
        let mut connections = self.connections();
        // Checked under the lock: if this member stops leading, the code that closes all connections then also finds
        // this one.
        let leads = matches!(*self.service.handle().leadership().borrow(), Leadership::Leader { .. });
        if !leads || self.closed.load(Ordering::Relaxed) {
            return Err((out, Refused::NotLeader));
        }
        let state = self.service.handle().applied();
        let mine = |found: &Node| found.boot_id == boot && found.epoch == epoch && found.health == NodeHealth::Ready;
        if !state.node(&node).is_some_and(|found| mine(&found.node)) {
            return Err((out, Refused::Superseded));
        }
        let connection = Connection { node: node.clone(), epoch, out, program, leases: Mutex::default() };
        let Some(frames) = self.welcome(&connection, &state, stored) else {
            return Err((connection.out, Refused::TooLarge));
        };
        frames.into_iter().for_each(|frame| connection.out.send(frame));
        let announces = connection.program.level >= level::MODELS;
        self.service.model_limits().change(|limiter| limiter.connected(connection.session(), announces));
        let connection = Arc::new(connection);
        if let Some(older) = connections.insert(node, connection.clone()) {
            older.out.fail(Status::aborted("replaced by a newer stream of this node"));
        }
        self.count(&connections);
        Ok(connection)
    }

    /// The payloads of a node's leases that would make its welcome too large.
    pub(super) fn without_room(&self, node: &NodeId) -> Excess {
        let state = self.service.handle().applied();
        let mut excess = Excess::default();
        let Some(node) = state.node(node) else { return excess };
        let mut bytes = 0;
        for (_, id) in node.leases() {
            let Some(job) = state.job(id) else { continue };
            bytes += LEASE_BYTES + job.metadata.len();
            // A reference to a small input would take more space than the input.
            if let PayloadBody::Inline(input) = &job.input.body {
                match bytes + input.len() > WELCOME_BYTES && input.len() > LEASE_BYTES {
                    true => excess.inputs.push((id, input.clone())),
                    false => bytes += input.len(),
                }
            }
            if let Some(PayloadBody::Inline(context)) = job.context.as_ref().map(|context| &context.body) {
                match bytes + context.len() > WELCOME_BYTES && context.len() > LEASE_BYTES {
                    true => excess.contexts.push((id, context.clone())),
                    false => bytes += context.len(),
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

    /// Removes a connection. False if it is not there: a newer stream has replaced it, or all were closed.
    pub(super) fn leave(&self, connection: &Arc<Connection>) -> bool {
        let mut connections = self.connections();
        let is_there = connections.get(&connection.node).is_some_and(|taken| Arc::ptr_eq(taken, connection));
        if is_there {
            connections.remove(&connection.node);
            self.count(&connections);
            self.service.model_limits().change(|limiter| limiter.left(&connection.session()));
        }
        is_there
    }

    /// True if a worker waits for an event of this entry: a lease that began, ended or must end, or a message.
    pub(super) fn awaits(&self, batch: &AppliedBatch) -> bool {
        use JobChange::{Cancelling, Ended, Granted, Lost, Parked};
        let concerns = |record: &EventRecord| match &record.event {
            Event::Job { change, .. } => matches!(change, Granted | Cancelling | Lost | Parked | Ended),
            Event::MessageDelivered { .. } => true,
            _ => false,
        };
        self.taken.load(Ordering::Relaxed) && batch.events.iter().any(concerns)
    }

    /// Sends the changes of an entry to the workers that they concern.
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
                        self.service.bearers().forget(job.id);
                    }
                }
                Event::Node { node } => {
                    if node.health != NodeHealth::Ready {
                        self.service.model_limits().change(|limiter| limiter.lost(&node.id, node.epoch));
                    }
                    if let Some(connection) = connections.get(&node.id) {
                        node_changed(connection, batch, node);
                    }
                }
                Event::NodeRemoved { node } => {
                    let connection = connections.get(node);
                    if connection.is_none_or(|connection| connection.leases().seq < batch.seq) {
                        connection.iter().for_each(|found| found.out.fail(Status::aborted("this node was removed")));
                        self.service.model_limits().change(|limiter| limiter.lost(node, NodeEpoch(u64::MAX)));
                    }
                }
                // A limit of a model may have changed.
                Event::ObjectPut { .. } | Event::ObjectDeleted { .. } => self.service.model_limits().look(),
                Event::MessageDelivered { job, number, .. } => mail::deliver(&connections, batch, (*job, *number)),
                Event::Agent { .. }
                | Event::AgentDeleted { .. }
                | Event::StepsRecorded { .. }
                | Event::StepsFolded { .. }
                | Event::QuestionAsked { .. }
                | Event::QuestionEnded { .. }
                | Event::Run { .. }
                | Event::Erased { .. }
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
            JobChange::Submitted
            | JobChange::Carried
            | JobChange::Started
            | JobChange::Woken
            | JobChange::Resolved
            | JobChange::Routed => {}
        }
    }

    /// Records a lease of the worker and returns its assignment. None for a job that ended without a run.
    fn hold(&self, leases: &mut Leases, connection: &Connection, state: &State, job: &Job) -> Option<Box<Assignment>> {
        let lease = job.lease.as_ref().filter(|lease| lease.epoch == connection.epoch)?;
        let mut assignment = assignment(state, job, lease, self.service.artifacts().bytes_max())?;
        if !connection.program.held.contains(&lease.token) {
            self.attach(&mut assignment, (state, job), connection);
        }
        let (token, attempt, namespace) = (lease.token, lease.attempt, job.namespace.clone());
        let held = Held { token, attempt, namespace, reported: false, alive: watch::Sender::new(()) };
        leases.held.insert(job.id, held);
        Some(Box::new(assignment))
    }

    /// Adds secrets and credentials. An attempt that may not have them gets the reason, and fails with it.
    fn attach(&self, assignment: &mut Assignment, (state, job): (&State, &Job), connection: &Connection) {
        let Program { level, private, .. } = connection.program;
        match self.service.attachments(state, job, Recipient { node: &connection.node, level, private }) {
            Ok(attachments) => assignment.attachments = attachments,
            Err(why) => assignment.lacks = assignment.lacks.take().or_else(|| Some(why.to_string().into())),
        }
    }

    /// Closes all streams so that every worker sends a new hello, because changes may have been missed. Also removes
    /// lines of jobs that have ended.
    pub(super) fn start_over(&self) {
        let mut connections = self.connections();
        for (_, connection) in connections.drain() {
            connection.out.fail(Status::aborted("the controller fell behind its log"));
        }
        self.count(&connections);
        let now = self.env.clock.monotonic();
        self.service.model_limits().change(|limiter| limiter.restart(now));
        let state = self.service.handle().applied();
        let lives = |id| state.job(id).is_some_and(|job| !job.status.is_terminal());
        self.service.streams().retain(lives);
        self.service.bearers().retain(self.env.clock.monotonic(), lives);
    }

    /// The whole lease set of a node, and the leases that must stop. None if it is too large for a frame.
    fn welcome(&self, connection: &Connection, state: &State, stored: &Stored) -> Option<Vec<ToWorker>> {
        let mut leases = connection.leases();
        leases.seq = state.seq();
        let node = state.node(&connection.node)?;
        leases.drain = ToldDrain::of(&node.node, connection.program.level);
        let hand_back = leases.drain.map(|drain| drain.hand_back(state));
        let (mut assignments, mut cancels, mut bytes, mut attached) = (Vec::new(), Vec::new(), 0, 0);
        for (token, id) in node.leases() {
            let Some(job) = state.job(id) else { continue };
            let Some(mut assignment) = self.hold(&mut leases, connection, state, job) else { continue };
            if let Some(input) = stored.inputs.get(&id) {
                assignment.input.body = input.clone();
            }
            if let (Some(stored), Some(context)) = (stored.contexts.get(&id), &mut assignment.context) {
                context.body = stored.clone();
            }
            attached += assignment.attachments.bytes();
            if attached > ATTACHED_BYTES_MAX {
                assignment.attachments = Default::default();
                let node = connection.node.clone();
                assignment.lacks.get_or_insert_with(|| Withheld::NoRoom { node }.to_string().into());
            }
            bytes += LEASE_BYTES + assignment.metadata.len();
            if let Some(assigned) = &mut assignment.journal {
                // A journal that has grown since it was stored is sent inline.
                let kept = stored.journals.get(&id).filter(|(next, _)| *next == assigned.journal.next());
                if let Some((_, unfolded)) = kept {
                    assigned.unfolded = Some(unfolded.clone());
                    Arc::make_mut(&mut assigned.journal).steps.clear();
                }
                let (folds, steps) = journal_bytes(&assigned.journal);
                bytes += folds + steps;
            }
            let payloads = std::iter::once(&assignment.input).chain(&assignment.context);
            bytes += payloads.map(|payload| payload.inline_bytes() as usize).sum::<usize>();
            assignments.push(*assignment);
            if job.reason == Reason::Cancelling {
                cancels.push(cancel(id, token));
            }
        }
        let controllers = self.service.handle().members().members.into_iter().map(|member| member.peer.worker);
        let controllers = controllers.filter(|address| !address.is_empty()).collect();
        let (epoch, session_ttl) = (connection.epoch, self.session_ttl);
        let level = Level::CURRENT;
        let bytes = mail::leave_out(&mut assignments, bytes, WELCOME_BYTES_MAX - ATTACHED_BYTES_MAX);
        let welcome = Welcome { epoch, session_ttl, leases: assignments, controllers, level, hand_back };
        (bytes <= WELCOME_BYTES_MAX - ATTACHED_BYTES_MAX)
            .then(|| std::iter::once(ToWorker::Welcome(welcome)).chain(cancels).collect())
    }

    /// Closes all connections because this member does not lead any more. Workers then look for the leader.
    pub(super) fn hand_over(&self, leader_address: Option<&str>) {
        let leader_address = leader_address.map(str::to_owned);
        self.close(self.connections(), &ToWorker::NotLeader { leader_address });
    }

    /// Closes all connections because the controller stops. Workers then connect to another controller.
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

    pub(super) fn connections(&self) -> MutexGuard<'_, HashMap<NodeId, Arc<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The largest sizes of the folds and of the steps of a journal in a frame.
fn journal_bytes(journal: &Journal) -> (usize, usize) {
    /// A digest, a size and a number. The data of a step besides its outcome takes at most twice as much.
    const REFERENCE_BYTES: usize = 64;
    let steps = journal.steps.iter().map(|step| usize::try_from(step.bytes()).unwrap_or(usize::MAX) + REFERENCE_BYTES);
    (journal.folds.len() * REFERENCE_BYTES, steps.sum())
}

/// Why a worker was not connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// This member does not lead.
    NotLeader,
    /// The node was lost meanwhile, or another process took its name.
    Superseded,
    /// The node's leases do not fit into one frame.
    TooLarge,
}

/// Ends the stream if its process no longer owns the node. Otherwise sends what changed about its drain.
fn node_changed(connection: &Connection, batch: &AppliedBatch, node: &Node) {
    let mut leases = connection.leases();
    if batch.seq <= leases.seq {
        return;
    }
    if !connection.is(node) {
        return connection.out.fail(Status::aborted("this node's session was lost, or another process took its name"));
    }
    let drain = ToldDrain::of(node, connection.program.level);
    if leases.drain != drain {
        leases.drain = drain;
        connection.out.send(ToWorker::HandBack(drain.map(|drain| drain.hand_back(&batch.state))));
    }
}

/// A drain as its worker knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ToldDrain {
    until: Option<ClusterTime>,
}

impl ToldDrain {
    /// None if the node is not drained, or if its worker does not understand this drain.
    fn of(node: &Node, level: Level) -> Option<Self> {
        let until = node.drain_until;
        let needed = if until.is_some() { level::DRAIN_DEADLINE } else { level::PARK };
        (node.draining && level >= needed).then_some(Self { until })
    }

    /// The frame, with the time that is left.
    fn hand_back(self, state: &State) -> HandBack {
        let deadline = |until: ClusterTime| HandBackDeadline { until, within: until.since(state.clock()) };
        HandBack { deadline: self.until.map(deadline) }
    }
}

fn cancel(job: JobId, token: FencingToken) -> ToWorker {
    ToWorker::Cancel { job, token, grace: CANCEL_GRACE }
}
