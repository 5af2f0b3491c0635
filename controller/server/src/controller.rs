//! Starting and stopping a controller.

use std::fs::File;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Env, Listener, LockError, Task};
use atlas_export::Export;
use atlas_gateway::{Compatible, CompatibleOptions, Gateway};
use atlas_history::{History, Progress, SqliteHistory};
use atlas_raft::{ChangeError, Handle, Identity, Leadership, Member};
use atlas_service::{
    ArtifactOptions, Artifacts, Audit, AuditOptions, Caller, Followers, Keys, Parts, Peers, Service, Stores,
};
use atlas_telemetry::Metrics;
use atlas_tls::{Clients, TlsError};
use atlas_types::{Door, Level};
use atlas_webhooks::{Environment, Webhooks};
use futures::future::{BoxFuture, LocalBoxFuture};
use tokio::sync::{Mutex, watch};

use crate::backup::Backups;
use crate::cluster::{self, Cluster};
use crate::http::{Frames, Front, HttpDoor, serve};
use crate::identity;
use crate::join;
use crate::peer_door::store::Members;
use crate::rules::{self, Rules};
use crate::tls::{self, Tls};
use crate::trace_export::TraceExport;
use crate::watch::Watch;
use crate::{Auth, Mode, Options, StartError, authentication, peer_door, scaler_door, trigger_files, worker_door};

/// A running controller.
pub struct Controller {
    http_addr: SocketAddr,
    grpc_addr: SocketAddr,
    peer_addr: Option<SocketAddr>,
    compatible_addr: Option<SocketAddr>,
    registry_addr: Option<SocketAddr>,
    scaler_addr: Option<SocketAddr>,
    peers: Option<Task<()>>,
    peer_stop: watch::Sender<bool>,
    duty: Task<()>,
    webhooks: Webhooks,
    /// None if there is no database to export to.
    export: Option<Export>,
    /// None if telemetry is not sent.
    traces: Mutex<Option<TraceExport>>,
    env: Env,
    service: Service,
    stop: watch::Sender<bool>,
    doors: Vec<Task<()>>,
    configuring: Option<Task<()>>,
    storing: Task<()>,
    /// None if nothing is recorded.
    recording: Option<Task<()>>,
    followers: Followers,
    history: Arc<dyn History>,
    raft: Mutex<Option<atlas_raft::Service>>,
    /// Locked as long as the controller runs, because a second controller in the same directory would damage the log.
    _lock: File,
}

/// How long a single controller waits to become leader before it accepts requests anyway.
const LEAD_MAX: Duration = Duration::from_secs(5);

/// The time limit for handing leadership over at a shutdown.
const HAND_OVER_MAX: Duration = Duration::from_secs(3);

impl Controller {
    /// Starts a controller: the log and the state, the history, the service functions, then the doors.
    ///
    /// This and the functions below return boxed futures: the code of an `async fn` is made again in each crate that awaits it, with
    /// all that it awaits itself.
    pub fn start(options: Options, env: Env) -> BoxFuture<'static, Result<Self, StartError>> {
        Box::pin(Self::opened(options, env))
    }

    async fn opened(options: Options, env: Env) -> Result<Self, StartError> {
        authentication::check_addresses(&options)?;
        let lock = lock(&options)?;
        // The ports are bound first, so that a controller that cannot be reached does not touch the log.
        let http = listen(&env, options.http).await?;
        let grpc = listen(&env, options.grpc).await?;
        let (http_addr, grpc_addr) = (address(&*http, options.http)?, address(&*grpc, options.grpc)?);
        let peer = match options.peer {
            Some(peer) => Some(listen(&env, peer).await?),
            None => None,
        };
        let compatible = listen_if(&env, options.compatible.listen).await?;
        let scaler = listen_if(&env, options.scaler).await?;
        let registry = listen_if(&env, options.registry_listen).await?;
        let mut agents = Vec::new();
        for (agent, wanted) in &options.agent_listen {
            let listener = listen(&env, *wanted).await?;
            let bound = address(&*listener, *wanted)?;
            agents.push((agent.clone(), listener, bound));
        }
        let compatible_addr = compatible.as_ref().map(|(_, bound)| *bound);
        let registry_addr = registry.as_ref().map(|(_, bound)| *bound);
        let peer_addr = match (&peer, options.peer) {
            (Some(peer), Some(wanted)) => Some(address(&**peer, wanted)?),
            _ => None,
        };
        let mut own = Member {
            name: options.name.clone().unwrap_or_default(),
            peer: peer_addr.map_or_else(String::new, |address| advertised(&options, address)),
            worker: advertised(&options, grpc_addr),
            http: advertised(&options, http_addr),
        };
        if peer.is_some() && own.peer.is_empty() {
            return Err(StartError::NoAddress);
        }
        let tls = Tls::open(&options, &env)?;
        // Connections to other controllers. Others, such as those of webhooks, go through `env`.
        let peers_env = tls.as_ref().map_or_else(|| Ok(env.clone()), |tls| tls.dialing(&env))?;
        let who = join::identify(&options, &own, (&env, &peers_env)).await?;
        if let Some(tls) = &tls {
            tls.become_member(who.member)?;
        }
        let (machines, peer_watch) = (Watch::new(Door::Worker), Watch::new(Door::Peer));
        let (http, registry, agents, compatible) = {
            // Clients show no certificates here.
            let wrap = |listener| tls::wrap(tls.as_ref(), listener, Clients::Anybody, &machines, &env);
            let agents = agents.into_iter().map(|(agent, listener, bound)| Ok((agent, wrap(listener)?, bound)));
            let compatible = compatible.map(|(listener, bound)| Ok::<_, TlsError>((wrap(listener)?, bound)));
            let registry = registry.map(|(listener, _)| wrap(listener)).transpose()?;
            (wrap(http)?, registry, agents.collect::<Result<Vec<_>, TlsError>>()?, compatible.transpose()?)
        };
        let grpc = tls::wrap(tls.as_ref(), grpc, Clients::Nodes, &machines, &env)?;
        let scaler_addr = scaler.as_ref().map(|(_, bound)| *bound);
        let scaler = scaler
            .map(|(listener, _)| tls::wrap(tls.as_ref(), listener, Clients::Scalers, &machines, &env))
            .transpose()?;
        own.name.clone_from(&who.name);
        let keys = options.secrets_key.as_deref().map(|path| Keys::read(path, &options.data_dir));
        let keys = keys.transpose().map_err(StartError::SecretsKey)?;
        let authentication = authentication::read(&options)?;
        let trigger_files = match &options.triggers_path {
            Some(path) => {
                let failed = |source| StartError::Triggers { path: path.clone(), source };
                trigger_files::read(path).map_err(failed)?
            }
            None => Vec::new(),
        };
        let stores = open_stores(&options, &env).await?;
        let metrics = Metrics::new();
        metrics.up.set(1);
        // Frees the ballast if the disk is full, so that the other files can be opened.
        atlas_raft::make_room(&options.data_dir, options.space);
        let history = open_history(&options, &env, &metrics).await?;
        let raft_options = atlas_raft::Options {
            member: who.member,
            cluster_id: who.cluster_id,
            joins: who.joins,
            level: options.level,
            own,
            session_ttl: options.session_ttl,
            history_from: *history.synced().borrow(),
            snapshot_log_bytes: options.snapshot_log_bytes,
            space: options.space,
            digest_every: options.digest_every,
            forget_nodes_after: options.forget_nodes_after,
            retired_agents_keep: options.retired_agents_keep,
            ..atlas_raft::Options::new(options.data_dir.clone())
        };
        let (handle, raft) = atlas_raft::start(raft_options, peers_env.clone()).await.map_err(StartError::Raft)?;
        if who.cluster_id.is_none() {
            let identity =
                Identity::Member { cluster_id: handle.cluster_id(), member: who.member, name: who.name.clone() };
            identity
                .write(&*env.files, &options.data_dir)
                .map_err(|source| StartError::DataDir { path: options.data_dir.clone(), source })?;
        }
        history.bind(handle.cluster_id()).map_err(StartError::History)?;
        let history: Arc<dyn History> = Arc::new(history);
        let kept = ArtifactOptions {
            bytes_max: options.artifact_bytes_max,
            hold: options.artifact_hold,
            ..ArtifactOptions::new(options.data_dir.join("artifacts"))
        };
        let members: Arc<dyn Peers> = Arc::new(Members::new(handle.clone(), peers_env.clone(), tls.is_some()));
        let artifacts = Artifacts::new(kept, members.clone(), env.clone());
        let (audit, recording) = open_audit(&options, &handle, &metrics, &env)?;
        machines.record_in(&audit);
        peer_watch.record_in(&audit);
        let service = Service::new(Parts {
            handle: handle.clone(),
            history: history.clone(),
            artifacts,
            peers: members,
            metrics,
            limits: options.limits.clone(),
            keys,
            authentication,
            audit,
            issuers: Arc::new(crate::issuers::Outside::new(&env)),
            externals: Arc::new(crate::externals::Outside::new(env.clone())),
            stores,
            env: env.clone(),
        });
        let followers = Followers::start(&service);
        if let Some(tls) = &tls {
            env.spawn("certificate", tls.clone().report(handle.clone(), env.clone()));
        }
        let cluster = Cluster::new(service.clone(), options.mode, peers_env);
        let (stop, stopped) = watch::channel(false);
        let door = Arc::new(HttpDoor {
            service: service.clone(),
            limits: options.http_limits.clone(),
            env: env.clone(),
            stop: stopped.clone(),
            cluster: cluster.clone(),
            address: http_addr,
            pallas_names: options.pallas_names,
            agent_ports: agents.iter().map(|(agent, _, bound)| (agent.clone(), bound.port())).collect(),
            gateway: Gateway::new(service.clone(), &options.gateway, env.clone()),
            backups: Backups::new(&options.data_dir, handle.clone(), env.clone()),
            about: about(&options, &handle),
            authority: tls.as_ref().and_then(|tls| Some(tls.authority()?.fingerprint())),
            frames: Arc::<Frames>::default(),
        });
        let worker_parts = worker_door::Parts {
            service: service.clone(),
            env: env.clone(),
            session_ttl: options.session_ttl,
            tls: tls.clone(),
            watch: machines,
        };
        let (peer_stop, peer_stopped) = watch::channel(false);
        let peers = peer.map(|listener| {
            let parts = peer_door::Parts {
                handle: handle.clone(),
                service: service.clone(),
                cluster: cluster.clone(),
                env: env.clone(),
                tls: tls.clone(),
                watch: peer_watch,
            };
            peer_door::start(parts, listener, peer_stopped)
        });
        let group = cluster.clone();
        let duty = env.spawn_restarting("group-duty", move || cluster::duty::run(group.clone()));
        let webhooks = Webhooks::start(atlas_webhooks::Parts {
            service: service.clone(),
            secrets: Arc::new(Environment),
            env: env.clone(),
        });
        let export = start_export(&options, &service, history.clone(), &env);
        let traces = options.otlp.clone().map(|otlp| TraceExport::start(otlp, handle.clone(), service.metrics(), &env));
        let mut doors = vec![
            env.spawn("http", serve(door.clone(), Front::Api, http, stopped.clone())),
            env.spawn("worker-door", worker_door::serve(worker_parts, grpc, stopped.clone())),
        ];
        if let Some(listener) = registry {
            doors.push(env.spawn("mcp-registry", serve(door.clone(), Front::Api, listener, stopped.clone())));
        }
        for (agent, listener, bound) in agents {
            tracing::info!(%agent, address = %bound, "MCP server of an agent started");
            let front = Front::Agent { agent: agent.into(), port: bound.port() };
            doors.push(env.spawn("mcp-agent", serve(door.clone(), front, listener, stopped.clone())));
        }
        if let Some(listener) = scaler {
            let serving = scaler_door::serve(service.clone(), env.clone(), listener, stopped.clone());
            doors.push(env.spawn("scaler-door", serving));
        }
        if let Some((listener, bound)) = compatible {
            let front = Front::Compatible(compatible_mcp(&options, service.clone(), env.clone()));
            doors.push(env.spawn("mcp-compatible", serve(door, front, listener, stopped)));
            tracing::info!(address = %bound, "compatible MCP server started");
        }
        let rules = Some(options.rules).filter(|rules| *rules != Rules::default());
        let configuring =
            rules.map(|rules| env.spawn("configure", rules::configure(handle.clone(), rules, env.clone())));
        // Waits for an election, so that clients that connect right after the start do not fail because of it.
        let mut leadership = handle.leadership();
        let leads = leadership.wait_for(|leadership| !matches!(leadership, Leadership::Follower { leader: None }));
        let _ = tokio::time::timeout(LEAD_MAX, leads).await;
        let (done, stored) = tokio::sync::oneshot::channel();
        let storing = trigger_files::store(service.clone(), identity::local(), trigger_files, env.clone());
        let storing = env.spawn("store-triggers", async move {
            storing.await;
            // Nobody waits any more if that took too long.
            let _ = done.send(());
        });
        // Clients that connect right after the start find the triggers, unless there is no leader yet.
        let _ = tokio::time::timeout(LEAD_MAX, stored).await;
        let peers_at = peer_addr.map_or_else(|| "-".to_owned(), |address| address.to_string());
        tracing::info!(http = %http_addr, workers = %grpc_addr, peers = %peers_at, name = %who.name, "controller started");
        Ok(Self {
            http_addr,
            grpc_addr,
            peer_addr,
            compatible_addr,
            registry_addr,
            scaler_addr,
            peers,
            peer_stop,
            duty,
            webhooks,
            export,
            traces: Mutex::new(traces),
            env,
            service,
            stop,
            doors,
            configuring,
            storing,
            recording,
            followers,
            history,
            raft: Mutex::new(Some(raft)),
            _lock: lock,
        })
    }

    /// The address of the HTTP door.
    pub fn http_addr(&self) -> SocketAddr {
        self.http_addr
    }

    /// The address of the worker door.
    pub fn grpc_addr(&self) -> SocketAddr {
        self.grpc_addr
    }

    /// The address of the peer door; none for a controller without one.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.peer_addr
    }

    /// The address of the MCP server that is compatible with Atlas for Python; none without one.
    pub fn compatible_addr(&self) -> Option<SocketAddr> {
        self.compatible_addr
    }

    /// The address of the registry document, beside that of the HTTP interface; none without one.
    pub fn registry_addr(&self) -> Option<SocketAddr> {
        self.registry_addr
    }

    /// The address of the door for autoscalers; none if there is none.
    pub fn scaler_addr(&self) -> Option<SocketAddr> {
        self.scaler_addr
    }

    /// The service functions, for programs that embed the controller.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// The caller for programs that embed the controller.
    pub fn local_caller(&self) -> Caller {
        identity::local()
    }

    /// Completes when the controller cannot continue. The process must exit with this reason.
    pub fn failed(&self) -> LocalBoxFuture<'_, Arc<str>> {
        Box::pin(self.stopped_by_itself())
    }

    async fn stopped_by_itself(&self) -> Arc<str> {
        let mut leadership = self.service.handle().leadership();
        let mut history = self.history.synced();
        let stopped = async {
            match leadership.wait_for(|leadership| matches!(leadership, Leadership::Stopped { .. })).await.as_deref() {
                Ok(Leadership::Stopped { reason }) => reason.clone(),
                _ => "the leader loop ended".into(),
            }
        };
        tokio::select! {
            biased;
            reason = stopped => reason,
            // The writer of the history has stopped. Without it no snapshot is taken, and the log grows until the disk
            // is full.
            _ = history.wait_for(|_| false) => "history has stopped".into(),
            reason = self.env.vitals.failed() => reason,
        }
    }

    /// Stops the controller: hands leadership over, accepts no more requests, waits for open ones, then closes the
    /// history and the log.
    pub fn shutdown(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            self.duty.abort();
            // While this controller leads, it can still write down what was delivered.
            self.webhooks.stop().await;
            self.hand_over().await;
            self.shutdown_with_all().await;
        })
    }

    /// Like [`Self::shutdown`], if all controllers of the cluster stop at once and no other member can lead.
    pub fn shutdown_with_all(self) -> BoxFuture<'static, ()> {
        Box::pin(self.closed())
    }

    async fn closed(self) {
        self.duty.abort();
        self.webhooks.stop().await;
        if let Some(export) = &self.export {
            export.stop().await;
        }
        self.stop.send_replace(true);
        self.storing.abort();
        if let Some(configuring) = self.configuring {
            configuring.abort();
        }
        for door in self.doors {
            let _ = door.join().await;
        }
        self.service.audit().settled().await;
        if let Some(recording) = self.recording {
            recording.abort();
        }
        drop(self.followers);
        if let Err(error) = self.history.close().await {
            tracing::error!(error = &error as &dyn std::error::Error, "history was not closed cleanly");
        }
        if let Some(traces) = self.traces.into_inner() {
            traces.stop().await;
        }
        if let Some(raft) = self.raft.into_inner() {
            raft.shutdown().await;
        }
        // The peer door stops last, so that the new leader can reach this member until here.
        self.peer_stop.send_replace(true);
        if let Some(peers) = self.peers {
            let _ = peers.join().await;
        }
        tracing::info!("controller stopped");
    }

    /// Hands leadership over, so that the other members need no election.
    async fn hand_over(&self) {
        let handle = self.service.handle();
        if !matches!(*handle.leadership().borrow(), Leadership::Leader { .. }) {
            return;
        }
        let handed = tokio::select! {
            handed = handle.transfer_leader(None) => handed,
            () = self.env.clock.sleep(HAND_OVER_MAX) => Err(ChangeError::Late),
        };
        match handed {
            Ok((next, _)) => tracing::info!(%next, "leadership handed over"),
            Err(ChangeError::LastVoter { .. }) => {}
            Err(error) => tracing::warn!(%error, "leadership was not handed over"),
        }
    }
}

/// The advertised address of a door; empty if unknown.
fn advertised(options: &Options, address: SocketAddr) -> String {
    match &options.advertise {
        Some(host) => format!("{host}:{}", address.port()),
        None if address.ip().is_unspecified() => String::new(),
        None => address.to_string(),
    }
}

fn compatible_mcp(options: &Options, service: Service, env: Env) -> Compatible {
    let limits = CompatibleOptions {
        token: options.compatible.token.clone(),
        pool: options.compatible.pool,
        all_agents: options.compatible.all_agents,
        sessions_max: options.gateway.sessions_max,
        session_idle: options.gateway.session_idle,
    };
    Compatible::new(service, limits, env)
}

fn about(options: &Options, handle: &Handle) -> atlas_api::types::Version {
    atlas_api::types::Version {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        mode: options.mode.as_str().to_owned(),
        level: Level::CURRENT.0.into(),
        cluster_id: format!("{:032x}", handle.cluster_id()),
        // In development mode everything runs on one machine, and `atlasctl dev kill` finds the processes by this
        // directory.
        data_dir: (options.mode == Mode::Dev).then(|| options.data_dir.to_string_lossy().into_owned()),
    }
}

/// Starts the export to PostgreSQL, if there is a database for it.
fn start_export(options: &Options, service: &Service, history: Arc<dyn History>, env: &Env) -> Option<Export> {
    let target = options.history_database.clone()?;
    let handle = service.handle().clone();
    let (leadership, cluster) = (handle.leadership(), handle.cluster_id());
    let committed: atlas_export::CommittedEvent = Arc::new(move || {
        let handle = handle.clone();
        Box::pin(async move { handle.read_here().await.ok().map(|state| state.event_seq()) })
    });
    Some(Export::start(atlas_export::ExportParts {
        target,
        keep: options.history_database_keep,
        history,
        leadership,
        committed,
        cluster,
        metrics: service.metrics().clone(),
        env: env.clone(),
    }))
}

/// Creates the data directory and locks it.
fn lock(options: &Options) -> Result<File, StartError> {
    let path = options.data_dir.clone();
    let failed = |source| StartError::DataDir { path: path.clone(), source };
    for dir in [path.clone(), path.join("artifacts")] {
        std::fs::create_dir_all(dir).map_err(failed)?;
    }
    let role = options.name.as_ref().map_or_else(|| "a controller".to_owned(), |name| format!("controller {name}"));
    match atlas_env::lock(&path.join("lock"), &role) {
        Ok(file) => Ok(file),
        Err(LockError::Held(by)) => Err(StartError::InUse { path, by }),
        Err(LockError::File(source)) => Err(failed(source)),
    }
}

async fn listen(env: &Env, address: SocketAddr) -> Result<Box<dyn Listener>, StartError> {
    env.net.listen(address).await.map_err(|source| StartError::Listen { address, source })
}

/// Listens at an address that may not be given; also returns the address at which it is reached.
async fn listen_if(
    env: &Env,
    wanted: Option<SocketAddr>,
) -> Result<Option<(Box<dyn Listener>, SocketAddr)>, StartError> {
    let Some(wanted) = wanted else { return Ok(None) };
    let listener = listen(env, wanted).await?;
    let bound = address(&*listener, wanted)?;
    Ok(Some((listener, bound)))
}

fn address(listener: &dyn Listener, wanted: SocketAddr) -> Result<SocketAddr, StartError> {
    listener.local_addr().map_err(|source| StartError::Listen { address: wanted, source })
}

/// The records of who did what, where tokens are checked.
fn open_audit(
    options: &Options,
    handle: &Handle,
    metrics: &Metrics,
    env: &Env,
) -> Result<(Audit, Option<Task<()>>), StartError> {
    if options.auth != Auth::Tokens || options.audit_bytes_max == 0 {
        return Ok((Audit::default(), None));
    }
    let dir = options.data_dir.join("audit");
    let kept = AuditOptions {
        dir: dir.clone(),
        controller: handle.member().0.to_string(),
        bytes_max: options.audit_bytes_max,
    };
    let (audit, task) = Audit::open(kept, metrics, env).map_err(|source| StartError::DataDir { path: dir, source })?;
    Ok((audit, Some(task)))
}

/// The stores of memory and knowledge outside of the cluster.
async fn open_stores(options: &Options, env: &Env) -> Result<Stores, StartError> {
    if !options.join.is_empty() {
        options.stores.check_joining()?;
    }
    let (stores, own) = (options.stores.clone(), env.clone());
    let opened = env.spawn_blocking("stores", move || stores.open(&own)).join().await;
    Ok(opened.map_err(|_| StartError::Thread)??)
}

async fn open_history(options: &Options, env: &Env, metrics: &Metrics) -> Result<SqliteHistory, StartError> {
    let history = atlas_history::Options {
        events_kept: options.events_kept,
        jobs_kept_for: options.jobs_kept_for,
        ..atlas_history::Options::new(options.data_dir.join("history.sqlite"))
    };
    let (open_env, metrics) = (env.clone(), metrics.clone());
    let open = env.spawn_blocking("open-history", move || {
        SqliteHistory::open(history, open_env, move |progress| match progress {
            Progress::Committed { took, .. } => metrics.history_commit_duration.observe(took.as_secs_f64()),
            Progress::Synced { took } => metrics.history_sync_duration.observe(took.as_secs_f64()),
        })
    });
    open.join().await.map_err(|_| StartError::Thread)?.map_err(StartError::History)
}
