//! Starting and stopping both sides, in order.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use atlas_controller::Controller;
use atlas_env::Env;
use atlas_types::{IdError, NodeEpoch, NodeId};
use atlas_worker::Worker;

use crate::{DataDir, DataError, Ports, Settings, SettingsError};

/// Longest time until the own worker must be registered.
const REGISTERED_WITHIN: Duration = Duration::from_secs(30);

/// What to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens.
    pub ports: Ports,
    /// Data folder; none is a new folder that is thrown away.
    pub data: Option<PathBuf>,
    /// The name of the node; none is the host's.
    pub node: Option<String>,
    /// Further settings of the controller and the worker.
    pub settings: Settings,
    /// Most jobs that the node runs at once; none is the worker's default.
    pub places: Option<u32>,
    /// Most idle slots that the node keeps; none is the worker's default.
    pub warm_pool_size: Option<u32>,
    /// Switches off that jobs' demands are checked against what this machine has, whatever the settings say.
    pub hardware_checks: bool,
    /// Offers the in-process provider that does nothing, for benchmarks.
    pub noop: bool,
}

impl Options {
    /// Defaults: an ephemeral cluster with the host's name.
    pub fn new(ports: Ports) -> Self {
        Self {
            ports,
            data: None,
            node: None,
            settings: Settings::default(),
            places: None,
            warm_pool_size: None,
            hardware_checks: true,
            noop: false,
        }
    }
}

/// Why it could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The node's name.
    #[error("the node name is not valid")]
    Node(#[source] IdError),
    /// The options of one side.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("could not start the controller")]
    Controller(#[source] atlas_controller::StartError),
    #[error("could not start the worker")]
    Worker(#[source] atlas_worker::StartError),
    /// The worker runs and the controller does not know it.
    #[error("the worker did not register within {within:?}")]
    NotRegistered {
        /// How long it was waited for.
        within: Duration,
    },
}

/// A controller and a worker that run.
pub struct Cluster {
    controller: Controller,
    worker: Worker,
    data: DataDir,
}

impl Cluster {
    /// Starts the controller, then the worker that says hello to it. Needs the process's async runtime.
    pub async fn start(options: Options, env: Env) -> Result<Self, StartError> {
        let data = match &options.data {
            Some(path) => DataDir::kept(path)?,
            None => DataDir::ephemeral()?,
        };
        let node = NodeId::new(&options.node.unwrap_or_else(host_name)).map_err(StartError::Node)?;
        let mut controller = options.settings.controller(data.path().join("controller"))?;
        // Before anything runs: its address is known later.
        let worker_data = data.path().join("worker");
        let mut worker = options.settings.worker(node.as_str(), vec![String::from("-")], worker_data)?;
        controller.http = options.ports.http;
        controller.grpc = options.ports.workers;
        let controller = Controller::start(controller, env.clone()).await.map_err(StartError::Controller)?;
        let address = controller.grpc_addr().to_string();
        let before = epoch(&controller, &node);
        worker.controllers = vec![address];
        worker.noop |= options.noop;
        worker.hardware_checks &= options.hardware_checks;
        worker.environments = worker.environments.or_else(atlas_worker::shared_environments);
        worker.places = options.places.or(worker.places);
        worker.warm_pool_size = options.warm_pool_size.unwrap_or(worker.warm_pool_size);
        let worker = match Worker::start(worker, env.clone()).await {
            Ok(worker) => worker,
            Err(error) => {
                controller.shutdown().await;
                return Err(StartError::Worker(error));
            }
        };
        let cluster = Self { controller, worker, data };
        if !cluster.registered(before, &env).await {
            cluster.shutdown().await;
            return Err(StartError::NotRegistered { within: REGISTERED_WITHIN });
        }
        Ok(cluster)
    }

    /// Waits until this process's worker is the node's latest incarnation: data that was kept has an older one.
    async fn registered(&self, before: Option<NodeEpoch>, env: &Env) -> bool {
        let deadline = env.clock.monotonic() + REGISTERED_WITHIN;
        while epoch(&self.controller, self.worker.node()) == before {
            if env.clock.monotonic() > deadline {
                return false;
            }
            env.clock.sleep(Duration::from_millis(1)).await;
        }
        true
    }

    /// The node's name.
    pub fn node(&self) -> &NodeId {
        self.worker.node()
    }

    /// Where HTTP listens.
    pub fn http(&self) -> SocketAddr {
        self.controller.http_addr()
    }

    /// Where workers attach.
    pub fn workers(&self) -> SocketAddr {
        self.controller.grpc_addr()
    }

    /// Where the data is.
    pub fn data_dir(&self) -> &Path {
        self.data.path()
    }

    /// Completes with the reason when the controller or the worker stops on its own.
    pub async fn failed(&self) -> Arc<str> {
        tokio::select! {
            reason = self.controller.failed() => reason,
            reason = self.worker.failed() => reason,
        }
    }

    /// Stops in order: the worker ends its agents and says goodbye, then the controller closes its log.
    pub async fn shutdown(self) {
        self.worker.shutdown().await;
        self.controller.shutdown().await;
    }
}

/// Which incarnation of the node this controller has applied.
fn epoch(controller: &Controller, node: &NodeId) -> Option<NodeEpoch> {
    controller.service().handle().applied().node(node).map(|known| known.node.epoch)
}

/// The async runtime of a development cluster: doors and worker. The leader loop and the log have a thread of their own, and with it
/// a core: two threads on the other one would do nothing but wake each other.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    tokio::runtime::Builder::new_multi_thread().worker_threads((cores - 1).clamp(1, 2)).enable_all().build()
}

/// The name of this machine, without its domain.
fn host_name() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = read.trim().split('.').next().unwrap_or_default();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}
