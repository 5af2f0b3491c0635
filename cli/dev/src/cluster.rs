//! Starts and stops a controller and a worker in one process.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use atlas_controller::{CompatibleMcp, Controller};
use atlas_env::Env;
use atlas_types::{IdError, NodeEpoch, NodeId};
use atlas_worker::{PreparedWorker, Worker};

use crate::sealing::SealingKey;
use crate::{DataDir, DataError, DevSettings, Ports, SettingsError};

/// Longest wait until the worker is registered.
const REGISTERED_WITHIN: Duration = Duration::from_secs(30);

/// Options of a cluster in one process.
#[derive(Debug, Clone)]
pub struct Options {
    /// The addresses on which the cluster listens.
    pub ports: Ports,
    /// Data folder; none creates a temporary folder.
    pub data: Option<PathBuf>,
    /// The name of the node; defaults to the host name.
    pub node: Option<String>,
    /// Further settings of the controller and the worker.
    pub settings: DevSettings,
    /// Maximum number of concurrent jobs on the node; none uses the worker's default.
    pub places: Option<u32>,
    /// Maximum number of idle slots on the node; none uses the worker's default.
    pub warm_pool_size: Option<u32>,
    /// If false, the demands of jobs are not checked against this machine's hardware, regardless of the settings.
    pub hardware_checks: bool,
    /// If false, the start does not wait for a container engine: a few moments later, the node tells of one that answers.
    pub waits_for_engine: bool,
    /// Enables the in-process provider that does nothing, for benchmarks.
    pub noop: bool,
    /// The MCP server that is compatible with Atlas for Python; none as the settings say.
    pub compatible: Option<CompatibleMcp>,
}

impl Options {
    /// Defaults: a temporary data folder and a node with the host name.
    pub fn new(ports: Ports) -> Self {
        Self {
            ports,
            data: None,
            node: None,
            settings: DevSettings::default(),
            places: None,
            warm_pool_size: None,
            hardware_checks: true,
            waits_for_engine: true,
            noop: false,
            compatible: None,
        }
    }
}

/// Why the cluster could not be started.
#[derive(Debug, thiserror::Error)]
pub enum DevStartError {
    /// The data folder cannot be used.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The node's name is not valid.
    #[error("the node name is not valid")]
    Node(#[source] IdError),
    /// The options of the controller or the worker are not valid.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error("could not start the controller")]
    Controller(#[source] atlas_controller::StartError),
    #[error("could not start the worker")]
    Worker(#[source] atlas_worker::StartError),
    /// The worker runs, but has not registered at the controller.
    #[error("the worker did not register within {within:?}")]
    NotRegistered {
        /// How long this process waited.
        within: Duration,
    },
}

/// A running controller and worker.
pub struct Cluster {
    controller: Controller,
    worker: Worker,
    data: DataDir,
    _key: Option<SealingKey>,
}

impl Cluster {
    /// Starts the controller and the worker, which registers at it. Needs the async runtime from [`runtime`].
    pub async fn start(options: Options, env: Env) -> Result<Self, DevStartError> {
        env.keep_no_free_memory();
        let data = match &options.data {
            Some(path) => DataDir::kept(path)?,
            None => DataDir::ephemeral()?,
        };
        let node = NodeId::new(&options.node.unwrap_or_else(host_name)).map_err(DevStartError::Node)?;
        let mut controller = options.settings.controller(data.path().join("controller"))?;
        // Parse the worker's options before the controller starts; the controller's address is filled in later.
        let worker_data = data.path().join("worker");
        let mut worker = options.settings.worker(node.as_str(), vec![String::from("127.0.0.1:1")], worker_data)?;
        let key = SealingKey::for_cluster(&data, &options.settings, &env)?;
        controller.secrets_key = key.as_ref().map(|key| key.path().to_owned()).or(controller.secrets_key);
        controller.http = options.ports.http;
        controller.grpc = options.ports.workers;
        if let Some(compatible) = options.compatible {
            controller.compatible = compatible;
        }
        worker.noop |= options.noop;
        // The controller's data, and its key of secrets.
        worker.sandbox_hidden.push(data.path().to_owned());
        worker.hardware_checks &= options.hardware_checks;
        worker.environments = worker.environments.or_else(atlas_worker::shared_environments);
        worker.places = options.places.or(worker.places);
        worker.warm_pool_size = options.warm_pool_size.unwrap_or(worker.warm_pool_size);
        if !options.waits_for_engine {
            worker.engine_patience = Duration::ZERO;
        }
        // What the worker finds out about the machine does not depend on the controller.
        let prepared = env.spawn("prepare worker", PreparedWorker::open(worker, env.clone()));
        let controller = Controller::start(controller, env.clone()).await;
        let prepared = prepared.join().await;
        let controller = controller.map_err(DevStartError::Controller)?;
        let before = epoch(&controller, &node);
        let connected = match prepared {
            Ok(Ok(prepared)) => prepared.connect(vec![controller.grpc_addr().to_string()]).await,
            Ok(Err(error)) => Err(error),
            Err(_) => Err(atlas_worker::StartError::Interrupted),
        };
        let worker = match connected {
            Ok(worker) => worker,
            Err(error) => {
                controller.shutdown().await;
                return Err(DevStartError::Worker(error));
            }
        };
        let cluster = Self { controller, worker, data, _key: key };
        if !cluster.registered(before, &env).await {
            cluster.shutdown().await;
            return Err(DevStartError::NotRegistered { within: REGISTERED_WITHIN });
        }
        drop(env.free_start_memory());
        Ok(cluster)
    }

    /// Waits until this process's worker has registered: the node's epoch differs from `before`, the one in the stored
    /// data.
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

    /// The address for HTTP.
    pub fn http(&self) -> SocketAddr {
        self.controller.http_addr()
    }

    /// The address for workers.
    pub fn workers(&self) -> SocketAddr {
        self.controller.grpc_addr()
    }

    /// The address of the MCP server that is compatible with Atlas for Python; none without one.
    pub fn compatible_mcp(&self) -> Option<SocketAddr> {
        self.controller.compatible_addr()
    }

    /// The data folder.
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

    /// Shuts down in order: the worker stops its agents and ends its session, then the controller closes its log.
    pub async fn shutdown(self) {
        self.worker.shutdown().await;
        self.controller.shutdown().await;
    }
}

/// The node's epoch in the state that this controller has applied.
fn epoch(controller: &Controller, node: &NodeId) -> Option<NodeEpoch> {
    controller.service().handle().applied().node(node).map(|known| known.node.epoch)
}

/// The async runtime of a development cluster, for the doors and the worker. The leader loop and the log run on their
/// own thread, so one core is left to them: with more runtime threads than remaining cores, the threads would only wake
/// each other.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads((cores - 1).clamp(1, 2))
        .thread_stack_size(atlas_controller::STACK_BYTES)
        .enable_all()
        .build()
}

/// The name of this machine, without its domain.
fn host_name() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = read.trim().split('.').next().unwrap_or_default();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}
