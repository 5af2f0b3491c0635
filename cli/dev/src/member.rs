//! One controller or one worker of a group, in this process.

use std::io::Read;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use atlas_controller::Controller;
use atlas_env::Env;
use atlas_worker::Worker;
use tokio::sync::oneshot;

use crate::{DevSettings, DevStartError};

/// A controller of a group.
#[derive(Debug, Clone)]
pub struct ControllerOptions {
    /// The controller's name.
    pub name: String,
    /// The data folder.
    pub data_dir: PathBuf,
    /// The address for HTTP.
    pub http: SocketAddr,
    /// The address for workers.
    pub workers: SocketAddr,
    /// The address for other controllers.
    pub peers: SocketAddr,
    /// Peer addresses of the cluster to join; empty if it joins none.
    pub join: Vec<String>,
    /// The join token.
    pub token: Option<String>,
}

/// A controller or worker that runs in this process.
pub enum Member {
    Controller(Box<Controller>),
    Worker(Box<Worker>),
}

impl Member {
    /// Starts a controller.
    pub async fn controller(
        options: ControllerOptions,
        settings: &DevSettings,
        env: Env,
    ) -> Result<Self, DevStartError> {
        env.keep_no_free_memory();
        let ControllerOptions { name, data_dir, http, workers, peers, join, token } = options;
        let mut options = settings.controller(data_dir)?;
        (options.http, options.grpc, options.peer) = (http, workers, Some(peers));
        (options.name, options.join, options.token) = (Some(name), join, token);
        let controller = Controller::start(options, env.clone()).await.map_err(DevStartError::Controller)?;
        drop(env.free_start_memory());
        Ok(Self::Controller(Box::new(controller)))
    }

    /// Starts a worker that connects to `controllers`.
    pub async fn worker(
        node: &str,
        data_dir: PathBuf,
        controllers: Vec<String>,
        settings: &DevSettings,
        env: Env,
    ) -> Result<Self, DevStartError> {
        env.keep_no_free_memory();
        let options = settings.worker(node, controllers, data_dir)?;
        let worker = Worker::start(options, env.clone()).await.map_err(DevStartError::Worker)?;
        drop(env.free_start_memory());
        Ok(Self::Worker(Box::new(worker)))
    }

    /// Completes with the reason when the member cannot continue.
    pub async fn failed(&self) -> Arc<str> {
        match self {
            Self::Controller(controller) => controller.failed().await,
            Self::Worker(worker) => worker.failed().await,
        }
    }

    /// Shuts down in order, on the assumption that the whole group shuts down at the same time.
    pub async fn shutdown(self) {
        match self {
            Self::Controller(controller) => controller.shutdown_with_all().await,
            Self::Worker(worker) => worker.shutdown().await,
        }
    }
}

/// Completes when the parent process has closed stdin or has ended.
pub async fn left_alone(env: &Env) {
    let (sender, closed) = oneshot::channel();
    let wait = move || {
        let mut stdin = std::io::stdin().lock();
        let mut buffer = [0; 64];
        while matches!(stdin.read(&mut buffer), Ok(read) if read > 0) {}
        // The receiver may be gone if the process is ending for another reason.
        let _ = sender.send(());
    };
    if env.thread("stdin", wait).is_err() {
        return std::future::pending().await;
    }
    let _ = closed.await;
}
