//! Starting and stopping both sides, in order.

use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atlas_controller::Controller;
use atlas_env::Env;
use atlas_types::{IdError, NodeId};
use atlas_worker::Worker;

use crate::{DataDir, DataError, Ports};

/// What to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens.
    pub ports: Ports,
    /// Where the data is kept; none is a new folder that is thrown away.
    pub data: Option<PathBuf>,
    /// The name of the node; none is the host's.
    pub node: Option<String>,
    /// Most jobs that the node runs at once; none is the worker's default.
    pub places: Option<u32>,
    /// Offers the in-process provider that does nothing, for benchmarks.
    pub noop: bool,
}

impl Options {
    /// Defaults: an ephemeral cluster with the host's name.
    pub fn new(ports: Ports) -> Self {
        Self { ports, data: None, node: None, places: None, noop: false }
    }
}

/// Why it could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data folder.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The node's name.
    #[error("the node cannot be called so")]
    Node(#[source] IdError),
    /// The controller.
    #[error("could not start the controller")]
    Controller(#[source] atlas_controller::StartError),
    /// The worker.
    #[error("could not start the worker")]
    Worker(#[source] atlas_worker::StartError),
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
        let mut controller = atlas_controller::Options::new(data.path().join("controller"));
        controller.http = options.ports.http;
        controller.grpc = options.ports.workers;
        controller.mode = atlas_controller::Mode::Dev;
        let controller = Controller::start(controller, env.clone()).await.map_err(StartError::Controller)?;
        let address = controller.grpc_addr().to_string();
        let mut worker = atlas_worker::Options::new(node, vec![address], data.path().join("worker"));
        worker.noop = options.noop;
        worker.places = options.places.or(worker.places);
        let worker = match Worker::start(worker, env).await {
            Ok(worker) => worker,
            Err(error) => {
                controller.shutdown().await;
                return Err(StartError::Worker(error));
            }
        };
        Ok(Self { controller, worker, data })
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

    /// Completes with the reason when the controller stops by itself.
    pub async fn failed(&self) -> Arc<str> {
        self.controller.failed().await
    }

    /// Stops in order: the worker ends its agents and says goodbye, then the controller closes its log.
    pub async fn shutdown(self) {
        self.worker.shutdown().await;
        self.controller.shutdown().await;
    }
}

/// The async runtime of a development cluster: doors and worker; the log has a thread of its own.
pub fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

/// An error with all its causes, in one line.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// The name of this machine, without its domain.
fn host_name() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = read.trim().split('.').next().unwrap_or_default();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}
