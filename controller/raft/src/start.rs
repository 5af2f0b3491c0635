//! Starting and stopping a member.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::Env;
use atlas_state::State;
use atlas_types::{Command, EventSeq, Namespace, Origin, Request};
use openraft::{Config, SnapshotPolicy};
use tokio::sync::{mpsc, oneshot, watch};

use crate::batches::Batches;
use crate::consensus::log_store::LogStore;
use crate::consensus::machine::{self, MachineStore};
use crate::consensus::network::{Addresses, Network};
use crate::consensus::runtime::with_entropy;
use crate::consensus::snapshot::Snapshots;
use crate::consensus::unhurried::Hurry;
use crate::consensus::{ELECTION_MAX, ELECTION_MIN};
use crate::door::{Load, PeerDoor, Receiver, Streams, Succession};
use crate::error::{Leadership, StartError};
use crate::forward::{Forward, LeaderLink, READERS_MAX, ReadIndexer};
use crate::handle::Handle;
use crate::leader::LeaderLoop;
use crate::leader::panics::Panics;
use crate::local::Local;
use crate::machine::{Raft, Slot, StateMachine};
use crate::member::Member;
use crate::membership::{self, Group};
use crate::monitor::digests::{Agreement, Checks, DigestKeeper, Report};
use crate::monitor::snapshots::SnapshotKeeper;
use crate::monitor::space::SpaceKeeper;
use crate::options::Options;
use atlas_log::{Driver, FileDriver, Log};

const HEARTBEAT: Duration = Duration::from_millis(50);
/// The time limit for a peer to receive and install a snapshot.
const INSTALL_SNAPSHOT: Duration = Duration::from_secs(600);

/// The running member. Dropping it stops the member without waiting.
#[derive(Debug)]
pub struct Service {
    leadership: watch::Receiver<Leadership>,
    shutdown: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
}

impl Service {
    /// Completes when the member stops on its own because its log or its state failed. The process must then exit with
    /// this reason.
    pub async fn failed(&mut self) -> Arc<str> {
        let stopped = self.leadership.wait_for(|leadership| matches!(leadership, Leadership::Stopped { .. })).await;
        match stopped.as_deref() {
            Ok(Leadership::Stopped { reason }) => Arc::clone(reason),
            _ => "its thread ended".into(),
        }
    }

    /// Stops the member cleanly and waits until its log is closed.
    pub async fn shutdown(self) {
        // If the channels are closed, the member has already stopped.
        let _ = self.shutdown.send(());
        let _ = self.ended.await;
    }
}

/// Starts a member with the content of its data directory, or with a new directory, on its own thread.
pub async fn start(options: Options, env: Env) -> Result<(Handle, Service), StartError> {
    let dir = options.data_dir.join("raft").join("log");
    let driver = FileDriver::open(&dir, options.log.segment_bytes, &env).map_err(StartError::Log)?;
    start_on(Box::new(driver), options, env).await
}

/// Starts a member whose log is on `driver`.
pub(crate) async fn start_on(
    driver: Box<dyn Driver>,
    options: Options,
    env: Env,
) -> Result<(Handle, Service), StartError> {
    let (started, starting) = oneshot::channel();
    let (ended, ending) = oneshot::channel();
    let (shutdown, asked) = oneshot::channel();
    let theirs = env.clone();
    let thread = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            // The caller may have stopped waiting.
            Err(error) => return drop(started.send(Err(StartError::Thread(error)))),
        };
        runtime.block_on(async move {
            let entropy = Arc::clone(&theirs.entropy);
            match with_entropy(entropy, Running::start(driver, options, theirs.clone())).await {
                Ok((member, handle)) => {
                    let told = started.send(Ok(handle));
                    if told.is_ok() {
                        // The member runs as a task: waking the future passed to `block_on` goes through the kernel,
                        // even on its own thread. A panic was already reported when the member was dropped.
                        let _ = theirs.spawn("raft-member", member.run(asked)).join().await;
                        // Lets the tasks that are ready send their answers to peers and callers before the runtime
                        // stops.
                        tokio::task::yield_now().await;
                    }
                }
                Err(error) => drop(started.send(Err(error))),
            }
        });
        // Dropping the runtime drops everything that holds the log, which closes the log.
        drop(runtime);
        let _ = ended.send(());
    };
    env.thread("raft", thread).map_err(StartError::Thread)?;
    let handle =
        starting.await.unwrap_or_else(|_| Err(StartError::Raft { reason: "its thread panicked".to_owned() }))?;
    let mut leadership = handle.leadership();
    let voters = handle.members().voters;
    if matches!(voters.as_slice(), [voters] if voters.iter().eq([&handle.member()])) {
        // A single voter becomes the leader without other members. The handle can propose once it leads.
        let follows = |leadership: &Leadership| matches!(leadership, Leadership::Follower { .. });
        let _ = leadership.wait_for(|leadership| !follows(leadership)).await;
    }
    let service = Service { leadership, shutdown, ended: ending };
    Ok((handle, service))
}

/// Starts a member on the caller's runtime with its log on `driver`. For simulations, which have no threads.
pub async fn start_here(driver: Box<dyn Driver>, options: Options, env: Env) -> Result<(Handle, Service), StartError> {
    let entropy = Arc::clone(&env.entropy);
    let (member, handle) = with_entropy(entropy, Running::start(driver, options, env.clone())).await?;
    let (ended, ending) = oneshot::channel();
    let (shutdown, asked) = oneshot::channel();
    let service = Service { leadership: handle.leadership(), shutdown, ended: ending };
    env.spawn("raft", async move {
        member.run(asked).await;
        // If the member was dropped, no caller waits for its end.
        let _ = ended.send(());
    });
    Ok((handle, service))
}

/// A running member.
struct Running {
    raft: Raft,
    leader_loop: LeaderLoop,
    keeper: SnapshotKeeper,
    space: SpaceKeeper,
    digests: DigestKeeper,
    indexer: ReadIndexer,
    succession: Succession,
    batches: Batches,
    group: Group,
    env: Env,
}

impl Running {
    async fn start(driver: Box<dyn Driver>, options: Options, env: Env) -> Result<(Self, Handle), StartError> {
        let log = Log::open(driver, options.log.clone(), options.cluster_id, &env).map_err(StartError::Log)?;
        let cluster_id = log.cluster_id();
        let dir = options.data_dir.join("raft").join("snapshots");
        let snapshots = Snapshots::open(Arc::clone(&env.files), dir).map_err(StartError::Snapshot)?;
        let load = loader(cluster_id);
        load_current(&snapshots, &load, &env).await?;
        let state = State::new(cluster_id);
        let (applied_sender, applied) = watch::channel(state.clone());
        let batches = Batches::new(options.subscription_max, options.history, options.history_from);
        // Without a history, snapshots do not wait for one.
        let synced = if options.history { EventSeq(0) } else { EventSeq(u64::MAX) };
        let (history, history_seen) = watch::channel(synced);
        let slot = Slot::default();
        let (checks, digests_seen) = Checks::new(options.digest_every);
        let machine = StateMachine::new(state, slot.clone(), applied_sender, batches.clone(), checks);
        let committed = log.committed().map(|committed| committed.index);
        let store = MachineStore::new(machine, committed, snapshots.clone(), history_seen.clone(), env.clone());
        let config = config()?;
        let addresses = Addresses::default();
        let hurry = Hurry::default();
        let network = Network { cluster_id, addresses: addresses.clone(), hurry: hurry.clone(), env: env.clone() };
        let raft =
            Raft::new(options.member.0, config, network, LogStore::new(log.clone(), options.member.0), store).await;
        let raft = raft.map_err(failed)?;
        // Raft has installed this state by now. Keeping it any longer would waste memory.
        snapshots.current().and_then(|(_, file)| file.take_kept::<State>());
        begin(&raft, &log, &options).await?;

        let (leadership_sender, leadership) = watch::channel(Leadership::Follower { leader: None });
        let (space, disk) = SpaceKeeper::new(raft.clone(), log.clone(), options.space, env.clone());
        let (local, inputs) = Local::new(options.queue_max, leadership.clone());
        let group = Group::new(membership::Parts {
            raft: raft.clone(),
            log: log.clone(),
            own: options.own.clone(),
            addresses,
            disk: disk.clone(),
            level: options.level,
            env: env.clone(),
        });
        let streams = Streams::default();
        let door = PeerDoor {
            raft: raft.clone(),
            cluster_id,
            receiver: Receiver::new(snapshots.clone(), log.space(), load, env.clone()),
            local: local.clone(),
            applied: applied.clone(),
            group: group.clone(),
            hurry,
            streams: streams.clone(),
            watch: None,
        };
        let succession =
            Succession { raft: raft.clone(), streams, member: options.member, disk: disk.clone(), env: env.clone() };
        let (reads, asks) = mpsc::channel(READERS_MAX);
        let link = LeaderLink::new(cluster_id, options.member, env.clone());
        let indexer = ReadIndexer { link: link.clone(), leadership, asks };
        let forward = Forward { local, applied: applied.clone(), link, reads, env: env.clone() };
        let (agreement_sender, agreement) = watch::channel(Agreement::default());
        let digests = DigestKeeper {
            raft: raft.clone(),
            report: reporter(forward.clone(), env.clone()),
            seen: digests_seen,
            agreement: agreement_sender,
            env: env.clone(),
        };
        let panics = Panics::default();
        let handle = Handle {
            cluster_id,
            forward,
            batches: batches.clone(),
            history: Arc::new(history),
            door,
            group: group.clone(),
            disk: disk.clone(),
            agreement,
            panics: panics.clone(),
            runtime: tokio::runtime::Handle::current(),
        };
        let keeper = SnapshotKeeper {
            raft: raft.clone(),
            log: log.clone(),
            snapshots,
            log_bytes: options.snapshot_log_bytes,
            every: options.snapshot_look_every,
            env: env.clone(),
        };
        let leader_loop = LeaderLoop {
            raft: raft.clone(),
            log,
            options,
            env: env.clone(),
            inputs,
            applied,
            history: history_seen,
            leadership: leadership_sender,
            slot,
            group: group.clone(),
            disk,
            panics,
        };
        Ok((Self { raft, leader_loop, keeper, space, digests, indexer, succession, batches, group, env }, handle))
    }

    async fn run(self, shutdown: oneshot::Receiver<()>) {
        let keeper = self.env.spawn_vital("raft-snapshots", self.keeper.run());
        let space = self.env.spawn_vital("raft-space", self.space.run());
        let indexer = self.env.spawn_vital("read-index", self.indexer.run());
        let succession = self.env.spawn_vital("raft-succession", self.succession.run());
        let telling = self.batches.clone().flush_in_time(Arc::clone(&self.env.clock));
        let telling = self.env.spawn("raft-batches", telling);
        let leadership = self.leader_loop.leadership.clone();
        tokio::select! {
            biased;
            () = self.leader_loop.run(shutdown) => {}
            reason = self.group.greet() => stop(&leadership, reason),
            reason = self.digests.run() => stop(&leadership, reason),
        }
        keeper.abort();
        space.abort();
        indexer.abort();
        succession.abort();
        telling.abort();
        if let Err(error) = self.raft.shutdown().await {
            tracing::error!(%error, "raft did not shut down cleanly");
        }
        self.batches.flush();
    }
}

/// Reports that this member stops on its own.
fn stop(leadership: &watch::Sender<Leadership>, reason: Arc<str>) {
    tracing::error!(%reason, "this member stops");
    leadership.send_replace(Leadership::Stopped { reason });
}

fn config() -> Result<Arc<Config>, StartError> {
    let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let config = Config {
        cluster_name: "atlas".to_owned(),
        heartbeat_interval: millis(HEARTBEAT),
        election_timeout_min: millis(ELECTION_MIN),
        election_timeout_max: millis(ELECTION_MAX),
        install_snapshot_timeout: millis(INSTALL_SNAPSHOT),
        // The snapshot keeper decides when to take a snapshot and what to purge, based on bytes.
        snapshot_policy: SnapshotPolicy::Never,
        max_in_snapshot_log_to_keep: u64::MAX,
        enable_pre_vote: Some(true),
        // A restarted leader must not assume that it still leads. The default, none, means true.
        enable_leader_restore: Some(false),
        ..Config::default()
    };
    Ok(Arc::new(config.validate().map_err(failed)?))
}

/// Loads snapshots of this cluster.
fn loader(cluster_id: u128) -> Load {
    Arc::new(move |file, meta| {
        let state = machine::read::<StateMachine>(file, meta)?;
        if state.cluster_id() != cluster_id {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the snapshot belongs to another cluster"));
        }
        file.keep(state);
        Ok(())
    })
}

/// Loads the snapshot that the member starts from. It is loaded here because Raft would report errors with less detail.
async fn load_current(snapshots: &Snapshots, load: &Load, env: &Env) -> Result<(), StartError> {
    let Some((meta, file)) = snapshots.current() else { return Ok(()) };
    let load = Arc::clone(load);
    let loading = env.spawn_blocking("load-snapshot", move || load(&file, &meta));
    match loading.join().await {
        Ok(loaded) => loaded.map_err(StartError::snapshot),
        Err(_) => Err(StartError::Raft { reason: "reading the snapshot panicked".to_owned() }),
    }
}

/// Reports digests to the other members. A lost report does no harm, because another one follows.
fn reporter(forward: Forward, env: Env) -> Report {
    Box::new(move |report| {
        let forward = forward.clone();
        let origin = Origin::duty(Namespace::default_namespace());
        env.spawn("report-digest", async move {
            let request = Request { origin, command: Command::ReportDigest(report) };
            if let Err(error) = forward.propose(vec![request]).await {
                tracing::debug!(%error, seq = %report.seq, "could not report the state digest");
            }
        });
    })
}

/// Forms a new group on the first start, unless this member joins an existing one. A single member does not wait for an
/// election timeout on later ones.
async fn begin(raft: &Raft, log: &Log, options: &Options) -> Result<(), StartError> {
    if !raft.is_initialized().await.map_err(failed)? {
        if options.joins {
            return Ok(());
        }
        let mut members: BTreeMap<u64, Member> =
            options.members.iter().map(|(id, member)| (id.0, member.clone())).collect();
        if members.is_empty() {
            members.insert(options.member.0, options.own.clone());
        }
        return raft.initialize(members).await.map_err(failed);
    }
    let voters: Vec<u64> = raft.voter_ids().collect();
    log.set_inline(voters.len() <= 1);
    if voters == [options.member.0] {
        raft.trigger().elect(false).await.map_err(failed)?;
    }
    Ok(())
}

fn failed(error: impl std::error::Error) -> StartError {
    StartError::Raft { reason: error.to_string() }
}
