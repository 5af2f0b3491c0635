//! One worker's session: a hello, then frames in both directions until either side ends it. There is one task per
//! session, not per message.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use atlas_raft::ReadError;
use atlas_service::{Error, Pieces, Service};
use atlas_types::{
    Command, Digest, DrainNode, FencingToken, Fold, FoldSteps, JobId, MODEL_TOKEN, NodeEpoch, NodeId, Park, ParkResult,
    RecordSteps, RegisterNode, ReserveBudget, Spawn, SpawnEnd, Spawner, StepsResult, ToolEnd, ToolRequest, WarmChanged,
    level,
};
use atlas_wire::proto::worker::v1::SessionRequest;
use atlas_wire::session::{Hello, ToLeader, ToWorker};
use futures::stream::{FuturesOrdered, FuturesUnordered, StreamExt as _};
use tonic::{Status, Streaming};

use super::Door;
use super::admission::{Admitted, Refusal};
use super::enrollment::Sender;
use super::gathered::Gathered;
use super::hub::{Connection, Program, Refused};
use super::outbox::Outbox;
use super::park::{self, Asked};
use super::report::{Batch, NotAnswered};
use super::{models, spawn, tool};

/// The time limit for the first frame.
const HELLO_MAX: Duration = Duration::from_secs(10);
/// The most frames that are taken at once. They become one proposal.
const FRAMES_MAX: usize = 256;
/// The most pending proposals of one worker. Beyond this its stream is not read.
const PROPOSALS_MAX: usize = 64;

/// The interval between two proposals of warm counts, and the most counts in one proposal. Only the latest count of
/// each package is proposed.
const WARM_EVERY: Duration = Duration::from_millis(250);
const WARM_AT_ONCE_MAX: usize = 64;
/// The most packages whose warm counts wait. Counts of further packages are ignored.
const WARM_WAITING_MAX: usize = 1_024;
/// The most child jobs at once that a worker's attempts wait for.
const SPAWNS_MAX: usize = 16_384;
/// The most frames with steps of one worker that are being recorded. Each attempt has one at a time. Further ones are
/// answered with `busy`.
const STEPS_MAX: usize = 1_024;
/// The most requests to park of one worker that are being decided. Each attempt has one at a time. Further ones are
/// answered with `busy`.
const PARKS_MAX: usize = 1_024;
/// The most tool calls of one worker that are being answered.
const CALLS_MAX: usize = 1_024;
/// Logs that are being stored for one worker. Others wait for the next renewal.
const LOGS_MAX: usize = 16;

type Boxed<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Runs a session from its hello to its end.
pub(super) async fn run(
    door: Arc<Door>,
    mut incoming: Streaming<SessionRequest>,
    out: Outbox,
    (private, sender, address): (bool, Sender, Arc<str>),
) {
    let hello = tokio::select! {
        () = out.ended() => return,
        hello = hello(&mut incoming) => hello,
        () = door.env.clock.sleep(HELLO_MAX) => Err(Status::deadline_exceeded("no hello was received in time")),
    };
    let hello = match hello {
        Ok(hello) => hello,
        Err(status) => return out.fail(status),
    };
    if let Err(status) = sender.acts_for(&door, &hello.node) {
        tracing::warn!(node = %hello.node, ?sender, "a worker asked to be another node");
        return out.fail(status);
    }
    let identity = (hello.node.clone(), hello.boot_id);
    let stream = door.hub.next_stream();
    let held = hello.leases.iter().map(|lease| lease.token).collect();
    let Admitted { epoch, level, withheld, stored } = match door.admit(hello, (&address, stream), &out).await {
        Some(Ok(admitted)) => admitted,
        Some(Err(refusal)) => return door.refuse(&out, refusal),
        None => return,
    };
    let connection = match door.hub.enter(
        (identity.0.clone(), epoch, identity.1),
        Program { stream, level, private, held, address },
        &stored,
        out,
    ) {
        Ok(connection) => connection,
        Err((out, Refused::NotLeader)) => return door.refuse(&out, Refusal::NotLeader),
        Err((out, Refused::TooLarge)) => {
            door.broke(identity.0, epoch, stream);
            return out.fail(Status::aborted("the node's leases changed during preparation"));
        }
        Err((out, Refused::Superseded)) => {
            return out.fail(Status::aborted("this node's session was lost, or another process took its name"));
        }
    };
    tracing::info!(node = %connection.node, epoch = %connection.epoch, "session open");
    let session = Session {
        door: door.clone(),
        connection: connection.clone(),
        sender,
        incoming: Gathered::new(incoming, FRAMES_MAX),
        withheld,
        proposals: FuturesOrdered::new(),
        renewal: None,
        renew_next: None,
        warm: BTreeMap::new(),
        warm_pause: None,
        spawns: FuturesUnordered::new(),
        steps: FuturesUnordered::new(),
        parks: FuturesUnordered::new(),
        calls: FuturesUnordered::new(),
        logs: FuturesUnordered::new(),
    };
    match session.attend().await {
        Ok(()) => connection.out.finish(),
        Err(refusal) => door.refuse(&connection.out, refusal),
    }
    // The worker may be lost, and its lines with it.
    let logs = logs_due(&door, &connection, None, usize::MAX);
    if !logs.is_empty() {
        let (service, node) = (door.service.clone(), connection.node.clone());
        door.env.spawn("store logs", async move {
            for (job, token) in logs {
                store_log(service.clone(), job, node.clone(), token).await;
            }
        });
    }
    // Those that the door itself has closed are not its own any more: their workers come back at once.
    if door.hub.leave(&connection) {
        door.broke(connection.node.clone(), connection.epoch, stream);
    }
    tracing::info!(node = %connection.node, epoch = %connection.epoch, "session closed");
}

impl Door {
    /// Tells the leader's loop that the stream of a worker broke.
    pub(super) fn broke(&self, node: NodeId, epoch: NodeEpoch, stream: u64) {
        if let Err(error) = self.service.handle().session_broke(node, epoch, stream) {
            // The session ends with its time, as if the worker had become silent.
            tracing::debug!(%error, "the end of a stream was not noted");
        }
    }
}

async fn hello(incoming: &mut Streaming<SessionRequest>) -> Result<Hello, Status> {
    let frame =
        incoming.message().await?.ok_or_else(|| Status::invalid_argument("the stream ended before its hello"))?;
    match ToLeader::try_from(frame)? {
        ToLeader::Hello(hello) => Ok(hello),
        _ => Err(Status::invalid_argument("the first frame is not a hello")),
    }
}

/// Some running attempts of a worker whose logs should be stored now, by the monotonic clock; without a time, all with new lines.
fn logs_due(door: &Door, connection: &Connection, now: Option<Duration>, max: usize) -> Vec<(JobId, FencingToken)> {
    let leases = connection.leases();
    let streams = door.service.streams();
    let due = leases.running().filter(|(job, _, attempt)| streams.take_due(*job, *attempt, now));
    due.take(max).map(|(job, token, _)| (job, token)).collect()
}

/// Stores the log of an attempt. If that fails, its lines are stored with the next ones, or with its end.
async fn store_log(service: Service, job: JobId, node: NodeId, token: FencingToken) {
    if let Err(error) = service.store_log(job, node, token).await {
        tracing::debug!(%job, %error, "could not store the log of an attempt");
    }
}

/// A session after its welcome.
struct Session {
    door: Arc<Door>,
    connection: Arc<Connection>,
    sender: Sender,
    incoming: Gathered<Streaming<SessionRequest>>,
    /// What the node has, if a part of it waits for a newer feature level.
    withheld: Option<RegisterNode>,
    proposals: FuturesOrdered<Boxed<Result<Vec<ToWorker>, NotAnswered>>>,
    /// The renewal that a quorum is confirming.
    renewal: Option<Boxed<Result<u64, ReadError>>>,
    /// The latest renewal received. It covers all earlier ones.
    renew_next: Option<u64>,
    /// Warm counts that were received but not proposed yet.
    warm: BTreeMap<Digest, u32>,
    /// The pause before the next proposal of warm counts.
    warm_pause: Option<Boxed<()>>,
    /// Child jobs that attempts spawned and wait for.
    spawns: FuturesUnordered<Boxed<Option<(u64, SpawnEnd)>>>,
    /// Steps and folds that are being recorded.
    steps: FuturesUnordered<Boxed<(u64, Result<StepsResult, Error>)>>,
    /// Requests to park that are being decided.
    parks: FuturesUnordered<Boxed<Asked>>,
    calls: FuturesUnordered<Boxed<Option<(u64, ToolEnd)>>>,
    /// Logs of attempts that are being stored.
    logs: FuturesUnordered<Boxed<()>>,
}

/// Why a session ends whose request has no result.
fn no_result(error: Error) -> Refusal {
    match error {
        Error::NoLeader => Refusal::NotLeader,
        error => Status::unavailable(error.to_string()).into(),
    }
}

impl Session {
    async fn attend(mut self) -> Result<(), Refusal> {
        loop {
            let renewal = async {
                match &mut self.renewal {
                    Some(renewal) => renewal.await,
                    None => std::future::pending().await,
                }
            };
            let pause = async {
                match &mut self.warm_pause {
                    Some(pause) => pause.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // Answers come first, because they make room for the frames that are read next.
                biased;
                () = self.connection.out.ended() => return Ok(()),
                Some(acks) = self.proposals.next() => self.answered(acks)?,
                number = renewal => self.renewed(number)?,
                Some(end) = self.spawns.next() => self.spawned(end),
                Some((number, result)) = self.steps.next() => self.recorded(number, result)?,
                Some(asked) = self.parks.next() => self.parked(asked)?,
                Some(end) = self.calls.next() => self.called(end),
                Some(()) = self.logs.next() => {}
                () = pause, if self.proposals.len() < PROPOSALS_MAX => {
                    self.warm_pause = None;
                    self.tell_warm();
                }
                frames = self.incoming.next(), if self.proposals.len() < PROPOSALS_MAX => match frames {
                    Some(frames) => self.take(frames)?,
                    None => return Ok(()),
                },
            }
        }
    }

    /// Sends the acknowledgements of a proposal. Without an answer the stream ends, and the worker sends its reports
    /// again.
    fn answered(&self, acks: Result<Vec<ToWorker>, NotAnswered>) -> Result<(), Refusal> {
        match acks {
            Ok(acks) => acks.into_iter().for_each(|ack| self.connection.out.send(ack)),
            Err(NotAnswered::Propose(error)) => return Err(error.into()),
            Err(NotAnswered::Stopping) => return Err(Status::unavailable("stopping").into()),
            Err(NotAnswered::Stream(error)) => return Err(Status::unavailable(error.to_string()).into()),
        }
        Ok(())
    }

    fn renewed(&mut self, number: Result<u64, ReadError>) -> Result<(), Refusal> {
        self.renewal = None;
        // A node whose certificate was revoked keeps its session until it renews, a fraction of the session's life.
        self.sender.check(&self.door.service).inspect_err(|_| {
            self.sender.turned_away(&self.door, format!("node/{}", self.connection.node), "renewSession");
        })?;
        match number {
            Ok(number) => self.connection.out.send(ToWorker::RenewAck { number }),
            // The worker renews again long before its session ends.
            Err(ReadError::Overloaded) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(number) = self.renew_next.take() {
            self.renew(number);
        }
        Ok(())
    }

    fn renew(&mut self, number: u64) {
        if self.renewal.is_some() {
            self.renew_next = Some(number);
            return;
        }
        let (handle, node, epoch) =
            (self.door.service.handle().clone(), self.connection.node.clone(), self.connection.epoch);
        self.renewal = Some(Box::pin(async move { handle.session_renew(node, epoch, number).await }));
    }

    /// Processes received frames. A malformed frame ends the session, and none of the frames is proposed.
    fn take(&mut self, frames: Vec<Result<SessionRequest, Status>>) -> Result<(), Refusal> {
        let mut batch = Batch::default();
        for frame in frames {
            self.take_one(ToLeader::try_from(frame?).map_err(Status::from)?, &mut batch)?;
        }
        self.propose(batch);
        if self.warm_pause.is_none() {
            self.tell_warm();
        }
        Ok(())
    }

    fn propose(&mut self, batch: Batch) {
        if !batch.is_empty() {
            let (service, env) = (self.door.service.clone(), self.door.env.clone());
            self.proposals.push_back(Box::pin(batch.propose(service, env, self.connection.node.clone())));
        }
    }

    /// Proposes warm counts that differ from the state, some now and the others after a pause, so that a worker cannot
    /// flood the log with them.
    fn tell_warm(&mut self) {
        let state = self.door.service.handle().applied();
        let known = state.node(&self.connection.node).map(|known| &known.node.warm);
        self.warm.retain(|digest, idle| known.and_then(|known| known.get(digest)).copied().unwrap_or(0) != *idle);
        let mut batch = Batch::default();
        for _ in 0..WARM_AT_ONCE_MAX {
            let Some((digest, idle)) = self.warm.pop_first() else { break };
            let (node, epoch) = (self.connection.node.clone(), self.connection.epoch);
            batch.command(Command::WarmChanged(WarmChanged { node, epoch, digest, idle }));
        }
        if !batch.is_empty() {
            self.warm_pause = Some(self.door.env.clock.sleep(WARM_EVERY));
        }
        self.propose(batch);
    }

    /// Records a node that acts for a lease of another one. Outdated leases of its own are common and are not recorded.
    fn note_foreign(&self, job: JobId, token: FencingToken, verb: &'static str) {
        let state = self.door.service.handle().applied();
        let own = &self.connection.node;
        if let Some(lease) = state.lease(job).filter(|lease| lease.token == token && lease.node != *own) {
            self.sender.turned_away(&self.door, format!("job/{job} lease of node/{}", lease.node), verb);
        }
    }

    fn spawn(&mut self, number: u64, spawn: Spawn) {
        if self.spawns.len() >= SPAWNS_MAX {
            let end = SpawnEnd::Refused(format!("the jobs of this node are already waiting for {SPAWNS_MAX} others"));
            return self.connection.out.send(ToWorker::Spawned { number, end });
        }
        let Spawner { job, token } = spawn.spawner;
        self.note_foreign(job, token, "submitJob");
        let Some(alive) = self.connection.leases().held(job, token).map(|held| held.alive()) else {
            let end = SpawnEnd::Refused("the lease is outdated".to_owned());
            return self.connection.out.send(ToWorker::Spawned { number, end });
        };
        let (service, env, node) = (self.door.service.clone(), self.door.env.clone(), self.connection.node.clone());
        self.spawns.push(Box::pin(spawn::run(service, env, (node, alive), number, spawn)));
    }

    fn spawned(&self, end: Option<(u64, SpawnEnd)>) {
        if let Some((number, end)) = end {
            self.connection.out.send(ToWorker::Spawned { number, end });
        }
    }

    fn call(&mut self, number: u64, call: ToolRequest) {
        if self.calls.len() >= CALLS_MAX {
            let end = ToolEnd::Refused(format!("the jobs of this node already wait for {CALLS_MAX} tools"));
            return self.connection.out.send(ToWorker::ToolCalled { number, end });
        }
        if call.tool == MODEL_TOKEN && !self.connection.program.private {
            let node = &self.connection.node;
            let why = format!(
                "E2104: node \"{node}\" is not connected over TLS or loopback, so access tokens are not sent to it"
            );
            return self.connection.out.send(ToWorker::ToolCalled { number, end: ToolEnd::Refused(why) });
        }
        let Spawner { job, token } = call.caller;
        let Some(alive) = self.connection.leases().held(job, token).map(|held| held.alive()) else {
            let end = ToolEnd::Refused("the lease is outdated".to_owned());
            return self.connection.out.send(ToWorker::ToolCalled { number, end });
        };
        let (service, env) = (self.door.service.clone(), self.door.env.clone());
        self.calls.push(Box::pin(tool::run(service, env, alive, number, call)));
    }

    fn called(&self, end: Option<(u64, ToolEnd)>) {
        if let Some((number, end)) = end {
            self.connection.out.send(ToWorker::ToolCalled { number, end });
        }
    }

    /// Sends the result of recorded steps. Without a result the stream ends, and the worker sends the steps again.
    fn recorded(&self, number: u64, result: Result<StepsResult, Error>) -> Result<(), Refusal> {
        let result = result.map_err(no_result)?;
        self.connection.out.send(ToWorker::StepsAck { number, result });
        Ok(())
    }

    fn park(&self, (number, job, token): (u64, JobId, FencingToken), park: Park) {
        if self.parks.len() >= PARKS_MAX {
            return self.connection.out.send(ToWorker::ParkAck { number, result: ParkResult::Busy });
        }
        let (service, node) = (self.door.service.clone(), self.connection.node.clone());
        self.parks.push(Box::pin(park::run(service, node, (number, job, token), park)));
    }

    /// Answers a request to park. Without a result the stream ends, and the worker asks again.
    fn parked(&self, asked: Asked) -> Result<(), Refusal> {
        park::answer(&self.door.service, &self.connection, asked).map_err(no_result)
    }

    /// Starts to record steps or a fold.
    fn record<F>(&self, number: u64, record: impl FnOnce(Service, NodeId) -> F)
    where
        F: Future<Output = Result<StepsResult, Error>> + Send + 'static,
    {
        if self.steps.len() >= STEPS_MAX {
            return self.connection.out.send(ToWorker::StepsAck { number, result: StepsResult::Busy });
        }
        let recorded = record(self.door.service.clone(), self.connection.node.clone());
        self.steps.push(Box::pin(async move { (number, recorded.await) }));
    }

    /// Registers the whole inventory as soon as all members count it. Renewals come often enough to look.
    fn tell_withheld(&mut self, batch: &mut Batch) {
        let state = self.door.service.handle().applied();
        if let Some(command) = self.withheld.take_if(|_| state.level() >= level::LLM_PLACES) {
            batch.command(Command::RegisterNode(command));
        }
    }

    /// Stores the logs that are due.
    fn store_logs(&mut self) {
        let (now, max) = (self.door.env.clock.monotonic(), LOGS_MAX.saturating_sub(self.logs.len()));
        for (job, token) in logs_due(&self.door, &self.connection, Some(now), max) {
            let (service, node) = (self.door.service.clone(), self.connection.node.clone());
            self.logs.push(Box::pin(store_log(service, job, node, token)));
        }
    }

    fn take_one(&mut self, said: ToLeader, batch: &mut Batch) -> Result<(), Refusal> {
        let service = &self.door.service;
        match said {
            ToLeader::Hello(_) => return Err(Status::invalid_argument("a second hello on one stream").into()),
            ToLeader::Renew { number } => {
                self.renew(number);
                self.tell_withheld(batch);
                self.store_logs();
            }
            ToLeader::Report { number, report } => {
                self.note_foreign(report.job, report.token, "reportJob");
                batch.report((service, &self.connection, &mut self.connection.leases()), number, report);
            }
            ToLeader::StreamEvents { job, attempt, events } => {
                // The leases stay locked: lines that arrive after the end of their attempt would never be removed.
                let leases = self.connection.leases();
                if leases.runs(job, attempt) {
                    service.streams().push(job, attempt, events);
                }
                drop(leases);
                self.store_logs();
            }
            ToLeader::Deltas { job, attempt, deltas } => {
                let leases = self.connection.leases();
                if leases.runs(job, attempt) {
                    service.streams().pass(job, Pieces { attempt, deltas });
                }
            }
            ToLeader::Spawn { number, spawn } => self.spawn(number, *spawn),
            ToLeader::RecordSteps { number, job, token, from, steps } => {
                self.record(number, |service, node| async move {
                    service.record_steps(RecordSteps { job, node, token, from, steps }).await
                });
            }
            ToLeader::ReserveBudget { number, job, token, call } => {
                self.record(number, |service, node| async move {
                    service.reserve_budget(ReserveBudget { job, node, token, call }).await
                });
            }
            ToLeader::FoldSteps { number, job, token, fold: Fold { upto, artifact } } => {
                self.record(number, |service, node| async move {
                    service.fold_steps(FoldSteps { job, node, token, upto, artifact }).await
                });
            }
            ToLeader::CallTool { number, call } => self.call(number, *call),
            ToLeader::AskModel(ask) => models::ask(service, &self.connection, ask),
            ToLeader::ModelDone { number, tokens } => models::done(service, &self.connection, number, tokens),
            ToLeader::AnnounceModels(uses) => models::announce(&self.door, &self.connection, uses),
            ToLeader::Park { number, job, token, park } => self.park((number, job, token), park),
            ToLeader::WarmChanged { digest, idle } => {
                if self.warm.len() < WARM_WAITING_MAX || self.warm.contains_key(&digest) {
                    self.warm.insert(digest, idle);
                }
            }
            ToLeader::Leaving => {
                // The stream ends when the end of the session is applied.
                let (node, epoch) = (self.connection.node.clone(), self.connection.epoch);
                service.handle().session_leave(node, epoch)?;
            }
            ToLeader::Draining => {
                // A worker repeats this after each reconnect. It is written to the log only once.
                let state = service.handle().applied();
                if state.node(&self.connection.node).is_none_or(|known| !known.node.draining) {
                    batch.command(Command::DrainNode(DrainNode { node: self.connection.node.clone(), deadline: None }));
                }
            }
        }
        Ok(())
    }
}
