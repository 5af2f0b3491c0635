//! Starting and stopping a controller.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Env, Listener, Task};
use atlas_history::{History, HistoryError, Progress, SqliteHistory};
use atlas_raft::{Handle, Leadership};
use atlas_service::{ArtifactOptions, Artifacts, Caller, Followers, NoPeers, Parts, Peers, Service};
use atlas_telemetry::Metrics;
use atlas_types::{ClusterConfig, Command, ConfigureCluster, Level, Namespace, Origin, Request};
use serde_json::json;
use tokio::sync::{Mutex, watch};

use crate::http::{HttpDoor, serve};
use crate::{Options, worker_door};

/// Why a controller did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be used.
    #[error("could not use the data directory \"{path}\"")]
    DataDir {
        /// The directory.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Another controller uses the data directory.
    #[error("the data directory \"{path}\" is in use by another controller")]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The log or the state cannot be opened.
    #[error("could not start the log")]
    Raft(#[source] atlas_raft::StartError),
    /// History cannot be opened.
    #[error("could not open history")]
    History(#[source] HistoryError),
    /// A port cannot be bound.
    #[error("could not listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// A thread ended before its work was done.
    #[error("could not start: a thread ended early")]
    Thread,
}

/// A running controller.
pub struct Controller {
    http_addr: SocketAddr,
    grpc_addr: SocketAddr,
    service: Service,
    stop: watch::Sender<bool>,
    doors: Vec<Task<()>>,
    configuring: Option<Task<()>>,
    followers: Followers,
    history: Arc<dyn History>,
    raft: Mutex<Option<atlas_raft::Service>>,
    /// Held as long as the controller runs: a second one on the same directory would damage the log.
    _lock: File,
}

/// How long a controller that is alone waits to lead before it takes requests anyway.
const LEAD_MAX: Duration = Duration::from_secs(5);

/// The pause before the queue's limit is proposed again.
const CONFIGURE_INTERVAL: Duration = Duration::from_millis(100);

impl Controller {
    /// Starts a controller: log and state, history, service functions, then the doors.
    pub async fn start(options: Options, env: Env) -> Result<Self, StartError> {
        let lock = lock(&options)?;
        // The ports first: a controller that cannot be reached has no business with the log.
        let http = listen(&env, options.http).await?;
        let grpc = listen(&env, options.grpc).await?;
        let (http_addr, grpc_addr) = (address(&*http, options.http)?, address(&*grpc, options.grpc)?);
        let metrics = Metrics::new();
        let history = open_history(&options, &env, &metrics).await?;
        let raft_options = atlas_raft::Options {
            session_ttl: options.session_ttl,
            history_from: *history.synced().borrow(),
            ..atlas_raft::Options::new(options.data_dir.clone())
        };
        let (handle, raft) = atlas_raft::start(raft_options, env.clone()).await.map_err(StartError::Raft)?;
        history.bind(handle.cluster_id()).map_err(StartError::History)?;
        let history: Arc<dyn History> = Arc::new(history);
        let kept = ArtifactOptions {
            bytes_max: options.artifact_bytes_max,
            ..ArtifactOptions::new(options.data_dir.join("artifacts"))
        };
        let peers: Arc<dyn Peers> = Arc::new(NoPeers(handle.member()));
        let artifacts = Artifacts::new(kept, peers.clone(), env.clone());
        let (service, followers) = Service::start(Parts {
            handle: handle.clone(),
            history: history.clone(),
            artifacts,
            peers,
            metrics,
            limits: options.limits.clone(),
            env: env.clone(),
        });
        let (stop, stopped) = watch::channel(false);
        let door = Arc::new(HttpDoor {
            service: service.clone(),
            limits: options.http_limits.clone(),
            env: env.clone(),
            loopback: http_addr.ip().is_loopback(),
            stop: stopped.clone(),
            about: about(&options, &handle),
        });
        let worker_parts = worker_door::Parts {
            service: service.clone(),
            env: env.clone(),
            session_ttl: options.session_ttl,
            members: BTreeMap::new(),
        };
        let doors = vec![
            env.spawn("http", serve(door, http, stopped.clone())),
            env.spawn("worker-door", worker_door::serve(worker_parts, grpc, stopped)),
        ];
        let configuring =
            options.jobs_active_max.map(|max| env.spawn("configure", configure(handle.clone(), max, env.clone())));
        // A client that comes right after the start need not see an election that is over in a moment.
        let mut leadership = handle.leadership();
        let leads = leadership.wait_for(|leadership| !matches!(leadership, Leadership::Follower { leader: None }));
        let _ = tokio::time::timeout(LEAD_MAX, leads).await;
        tracing::info!(http = %http_addr, workers = %grpc_addr, "controller started");
        Ok(Self {
            http_addr,
            grpc_addr,
            service,
            stop,
            doors,
            configuring,
            followers,
            history,
            raft: Mutex::new(Some(raft)),
            _lock: lock,
        })
    }

    /// Where HTTP is served.
    pub fn http_addr(&self) -> SocketAddr {
        self.http_addr
    }

    /// Where workers connect.
    pub fn grpc_addr(&self) -> SocketAddr {
        self.grpc_addr
    }

    /// The service functions, for programs that have the controller inside.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// The caller of a program that has the controller inside.
    pub fn local_caller(&self) -> Caller {
        Caller::local(atlas_types::Door::Local)
    }

    /// Completes when the controller cannot go on: the process must exit with this reason.
    pub async fn failed(&self) -> Arc<str> {
        let mut leadership = self.service.handle().leadership();
        match leadership.wait_for(|leadership| matches!(leadership, Leadership::Stopped { .. })).await.as_deref() {
            Ok(Leadership::Stopped { reason }) => reason.clone(),
            _ => "the leader loop ended".into(),
        }
    }

    /// Stops: no new requests, open ones end, then history, then the log.
    pub async fn shutdown(self) {
        self.stop.send_replace(true);
        if let Some(configuring) = self.configuring {
            configuring.abort();
        }
        for door in self.doors {
            let _ = door.join().await;
        }
        drop(self.followers);
        if let Err(error) = self.history.close().await {
            tracing::error!(error = &error as &dyn std::error::Error, "history was not closed in order");
        }
        if let Some(raft) = self.raft.into_inner() {
            raft.shutdown().await;
        }
        tracing::info!("controller stopped");
    }
}

fn about(options: &Options, handle: &Handle) -> serde_json::Value {
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "mode": options.mode.as_str(),
        "level": Level::CURRENT.0,
        "cluster_id": format!("{:032x}", handle.cluster_id()),
    })
}

/// Makes the data directory and takes its lock.
fn lock(options: &Options) -> Result<File, StartError> {
    let path = options.data_dir.clone();
    let failed = |source| StartError::DataDir { path: path.clone(), source };
    for dir in [path.clone(), path.join("artifacts")] {
        std::fs::create_dir_all(dir).map_err(failed)?;
    }
    let file = File::create(path.join("lock")).map_err(failed)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StartError::InUse { path }),
        Err(TryLockError::Error(source)) => Err(failed(source)),
    }
}

async fn listen(env: &Env, address: SocketAddr) -> Result<Box<dyn Listener>, StartError> {
    env.net.listen(address).await.map_err(|source| StartError::Listen { address, source })
}

fn address(listener: &dyn Listener, wanted: SocketAddr) -> Result<SocketAddr, StartError> {
    listener.local_addr().map_err(|source| StartError::Listen { address: wanted, source })
}

async fn open_history(options: &Options, env: &Env, metrics: &Metrics) -> Result<SqliteHistory, StartError> {
    let history = atlas_history::Options {
        events_kept: options.events_kept,
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

/// Sets the queue's limit once there is a leader, if it is another one.
async fn configure(handle: Handle, jobs_active_max: u64, env: Env) {
    let mut leadership = handle.leadership();
    while leadership.wait_for(|leadership| matches!(leadership, Leadership::Leader { .. })).await.is_ok() {
        let Ok(state) = handle.read().await else {
            env.clock.sleep(CONFIGURE_INTERVAL).await;
            continue;
        };
        if state.config().jobs_active_max == jobs_active_max {
            return;
        }
        let config = ClusterConfig { jobs_active_max, ..state.config().clone() };
        let command = Command::ConfigureCluster(ConfigureCluster { config });
        let request = Request { origin: Origin::duty(Namespace::default_namespace()), command };
        if handle.propose(vec![request]).await.is_ok() {
            return;
        }
        env.clock.sleep(CONFIGURE_INTERVAL).await;
    }
}
