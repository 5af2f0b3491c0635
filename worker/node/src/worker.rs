//! Starting and stopping a worker.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Env, Task, Vitals};
use atlas_http::Trust;
use atlas_inventory::GpuProbe;
use atlas_llm::client::Client;
use atlas_mcp::{Network, Pool};
use atlas_slots::{Slots, Spool};
use atlas_types::{Inventory, NodeId};
use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use tracing::{debug, info, warn};

use crate::Options;
use crate::data::write_boot;
use crate::environment::Environments;
use crate::interpreter::Finder;
use crate::link::{self, Link};
use crate::local_models::OwnModels;
use crate::news::News;
use crate::nodejs::NodeJs;
use crate::packages::Packages;
use crate::payloads::Transfers;
use crate::prepared::PreparedWorker;
use crate::provider::{Collection, Programs, Settings, Shared, preflight};
use crate::pump::{self, Identity, Inbox, Parts, Pump};
use crate::python::Python;
use crate::tls::{self, JoinError};
use crate::tries::TryDoor;

/// Variables that every agent gets, if the worker has them.
pub const PASSED: [&str; 6] = ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ"];

/// The most stream events of one attempt that wait for an acknowledgement.
const SPOOLED_EVENTS_MAX: usize = 4_096;

/// The most inputs that wait for the pump. Further senders wait.
const INPUTS_WAITING_MAX: usize = 1_024;

/// Why a worker did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The data directory cannot be used.
    #[error("could not prepare \"{}\"", .path.display())]
    DataDir {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Another worker uses the data directory.
    #[error("the data directory \"{}\" is in use by {by}: give this worker another one with --data-dir", .path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The other process.
        by: String,
    },
    /// The node has no certificate.
    #[error("could not join the cluster")]
    Join(#[source] JoinError),
    /// Agents' processes cannot be contained.
    #[error("agents cannot run on this machine")]
    Supervisor(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The file with certificates cannot be used.
    #[error("could not use the certificates in \"{}\"", .path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The runtime is being stopped.
    #[error("the start was interrupted")]
    Interrupted,
    /// The machine's hardware could not be probed.
    #[error("could not probe the hardware")]
    Inventory(#[source] atlas_inventory::ProbeError),
}

impl StartError {
    /// The code of its page in the reference, if it has one.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::InUse { .. } => Some("E0108"),
            Self::Join(JoinError::Scheme(_)) => Some("E0130"),
            _ => None,
        }
    }
}

/// A running worker.
pub struct Worker {
    node: NodeId,
    inventory: Inventory,
    news: mpsc::Sender<News>,
    pump: Task<()>,
    vitals: Vitals,
}

impl Worker {
    /// Starts a worker. It connects and reconnects until it is shut down. Must run in the process's async runtime.
    ///
    /// Boxed, as below: the code of an `async fn` is made again in each crate that awaits it, with all that it awaits itself.
    pub fn start(options: Options, env: Env) -> BoxFuture<'static, Result<Self, StartError>> {
        Box::pin(async move {
            let controllers = options.controllers.clone();
            PreparedWorker::open(options, env).await?.connect(controllers).await
        })
    }

    /// Starts a worker whose machine is known.
    pub(crate) async fn connected(prepared: PreparedWorker, controllers: Vec<String>) -> Result<Self, StartError> {
        let PreparedWorker { mut options, env, boot, previous, supervisor, settings, inventory, results, earlier } =
            prepared;
        options.controllers = controllers;
        let node = options.node.clone();
        let mut identity = Identity { node, boot_id: boot, previous, next: boot, inventory };
        let (told, told_inbox) = mpsc::channel(INPUTS_WAITING_MAX);
        let (news, news_inbox) = mpsc::channel(INPUTS_WAITING_MAX);
        let (tries, tries_inbox) = TryDoor::new();
        let (events, link_inbox) = mpsc::channel(INPUTS_WAITING_MAX);
        let (client, clients) = watch::channel(None);
        let node = tls::Node::open(&options, &env).await.map_err(StartError::Join)?;
        let link_env = node.as_ref().map_or_else(|| env.clone(), |node| node.env.clone());
        if let Some(node) = node {
            env.spawn_vital("renew certificate", node.renew());
        }
        let link = Link { env: link_env, controllers: options.controllers.clone(), events, client };
        env.spawn_vital("link", link.run());
        find_interpreters(&env, &settings, &news, &clients).await;
        let transfers = Transfers { env: env.clone(), client: clients };
        let supervisor = Arc::new(supervisor);
        let environments = Environments {
            env: env.clone(),
            settings: Arc::clone(&settings),
            supervisor: Arc::clone(&supervisor),
            directory: options.environments.clone().unwrap_or_else(|| options.data_dir.join("environments")),
            bytes_max: options.package_cache_bytes_max,
        };
        let local = OwnModels::start(environments.clone(), options.prepare_timeout, options.idle_timeout);
        let packages = Packages::new(
            &options.data_dir,
            options.package_cache_bytes_max,
            options.noop,
            transfers.clone(),
            environments,
            supervisor.exposure().clone(),
        );
        let slots_options = atlas_slots::Options {
            warm_pool_size: options.warm_pool_size,
            idle_timeout: options.idle_timeout,
            stop_grace: options.stop_grace,
            inventory: identity.inventory.clone(),
            park_after: options.park_after,
            farewell_max: options.farewell_max,
        };
        let slots = match earlier {
            Some(earlier) => {
                info!(results = earlier.reports.len(), "delivering results of an earlier process of this node");
                identity.boot_id = earlier.boot;
                Slots::deliver(slots_options, earlier.reports)
            }
            None => Slots::new(slots_options),
        };
        let trust = trust(&options, &env)?;
        let models = Client::trusting(env.clone(), trust.clone());
        let programs = Programs::new(env.clone(), Arc::clone(&supervisor), Arc::clone(&settings), &options.data_dir);
        let proxies = options.models.clone();
        let collection = Collection {
            trust: trust.clone(),
            allowed: options.collect_allowed.clone().into(),
            loaders: options.loaders.clone(),
            ..Collection::default()
        };
        let network = Network::new(trust, move |name| proxies.proxy(name));
        let servers = Pool::new(env.clone(), Arc::new(programs), network);
        let shared = Shared {
            env: env.clone(),
            settings,
            supervisor,
            transfers: transfers.clone(),
            told,
            tries,
            models,
            local: Arc::new(local),
            servers,
            collection: Arc::new(collection),
        };
        // Only warns, and nothing waits for it.
        drop(env.spawn("model preflight", preflight(shared.clone())));
        find_engine(&shared, &news, options.engine_patience).await;
        pump::label(&mut identity.inventory, &shared.settings);
        let (files, at, name) = (Arc::clone(&env.files), options.data_dir.clone(), options.node.clone());
        let written = env.spawn_blocking("write boot", move || write_boot(&*files, &at, &name, boot));
        // The pump sends the first hello.
        written.join().await.map_err(|_| StartError::Interrupted)?;
        let inventory = identity.inventory.clone();
        let pump = Pump::new(Parts {
            env: env.clone(),
            identity,
            slots,
            spool: Spool::new(SPOOLED_EVENTS_MAX, options.log_bytes_max),
            shared,
            packages,
            transfers,
            results,
            news: news.clone(),
            drain_timeout: options.drain_timeout,
            prepare_timeout: options.prepare_timeout,
            stop_grace: options.stop_grace,
        });
        if !inventory.declared && !inventory.gpus.is_empty() {
            let watch =
                GpuWatch { env: env.clone(), probe: options.gpus, every: options.gpu_health_every, news: news.clone() };
            // Ends with the pump.
            drop(env.spawn("gpu health", watch.run(inventory.clone())));
        }
        let inbox = Inbox { link: link_inbox, told: told_inbox, news: news_inbox, tries: tries_inbox };
        let pump = env.spawn_vital("pump", pump.run(inbox));
        Ok(Self { node: options.node, inventory, news, pump, vitals: env.vitals })
    }

    /// The node's name.
    pub fn node(&self) -> &NodeId {
        &self.node
    }

    /// The hardware that the node advertises.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// Completes when the worker cannot continue. The process must then exit with this reason and be restarted.
    pub async fn failed(&self) -> Arc<str> {
        self.vitals.failed().await
    }

    /// Accepts no new work, lets attempts end within the drain timeout, gives the rest back and ends all slots.
    pub fn shutdown(self) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            // If the pump has ended, there is nothing to drain.
            let _ = self.news.send(News::Drain).await;
            let _ = self.pump.join().await;
        })
    }
}

/// Asks the driver for the health of the GPUs and tells the pump when it changed.
struct GpuWatch {
    env: Env,
    probe: Arc<dyn GpuProbe>,
    every: Duration,
    news: mpsc::Sender<News>,
}

impl GpuWatch {
    async fn run(self, mut advertised: Inventory) {
        while !self.news.is_closed() {
            self.env.clock.sleep(self.every).await;
            let (known, probe) = (advertised.clone(), Arc::clone(&self.probe));
            // The driver may take seconds to answer about a GPU that is breaking.
            let asked = self.env.spawn_blocking("ask gpus", move || atlas_inventory::changed(&known, &*probe));
            match asked.join().await {
                Ok(Ok(Some(now))) => {
                    let broken = now.gpus.iter().filter(|gpu| !gpu.healthy).count();
                    warn!(broken, of = now.gpus.len(), "the health of GPUs changed");
                    advertised = now.clone();
                    // If the pump has ended, so has the worker.
                    let _ = self.news.send(News::Inventory(now)).await;
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => debug!(?error, "could not ask for the health of GPUs"),
                Err(_) => return,
            }
        }
    }
}

/// The authorities that sign the certificates of MCP servers and models.
fn trust(options: &Options, env: &Env) -> Result<Trust, StartError> {
    let Some(path) = &options.ca_file else { return Ok(Trust::default()) };
    let failed =
        |source: Box<dyn std::error::Error + Send + Sync>| StartError::Certificates { path: path.clone(), source };
    let pem = env.files.read(path).map_err(|error| failed(error.into()))?;
    Trust::with(&pem).map_err(|error| failed(error.into()))
}

/// Searches for Python and Node.js. A search runs in the background, because with a version manager it takes longer than the rest of the
/// start; for the same reason it waits until the node is connected. Where there is no program to ask, that is known at once.
async fn find_interpreters(
    env: &Env,
    settings: &Arc<Settings>,
    news: &mpsc::Sender<News>,
    clients: &watch::Receiver<Option<link::Client>>,
) {
    find(env, ("Python", python), settings, (news, clients)).await;
    find(env, ("Node.js", nodejs), settings, (news, clients)).await;
}

fn python(settings: &Settings) -> &Finder<Python> {
    &settings.python
}

fn nodejs(settings: &Settings) -> &Finder<NodeJs> {
    &settings.nodejs
}

async fn find<T: Send + Sync + 'static>(
    env: &Env,
    (name, finder): (&'static str, fn(&Settings) -> &Finder<T>),
    settings: &Arc<Settings>,
    (news, clients): (&mpsc::Sender<News>, &watch::Receiver<Option<link::Client>>),
) {
    let (own, settings, news, mut clients) = (env.clone(), Arc::clone(settings), news.clone(), clients.clone());
    let is_installed = finder(&settings).is_installed();
    let search = async move {
        if is_installed && clients.wait_for(Option::is_some).await.is_err() {
            return;
        }
        let found =
            own.spawn_blocking("find interpreter", move || finder(&settings).get().map(|_| ()).map_err(str::to_owned));
        if let Ok(Err(why)) = found.join().await {
            warn!("{why}: jobs of {name} agents run on other nodes");
            // Nobody must know if the pump has ended.
            let _ = news.send(News::NoInterpreter).await;
        }
    };
    if is_installed {
        drop(env.spawn("find interpreter", search));
    } else {
        search.await;
    }
}

/// How often a node without a container engine looks for one: it may be installed or started after the worker.
const ENGINE_EVERY: Duration = Duration::from_secs(60);

/// Searches for a container engine, in the background if that takes a while.
async fn find_engine(shared: &Shared, news: &mpsc::Sender<News>, patience: Duration) {
    let (own, news) = (shared.clone(), news.clone());
    let (found, waits) = tokio::sync::oneshot::channel::<()>();
    drop(shared.env.spawn("find container engine", async move {
        let mut found = Some(found);
        loop {
            own.settings.containers.look(&own.env, &own.supervisor).await;
            if own.settings.containers.is_available() {
                // Changes nothing if the node has told it already, and nobody must know if the pump has ended.
                let _ = news.send(News::Containers).await;
            }
            drop(found.take());
            if own.settings.containers.is_found().await || news.is_closed() {
                return;
            }
            own.env.clock.sleep(ENGINE_EVERY).await;
        }
    }));
    tokio::select! {
        // The search has ended once.
        _ = waits => {}
        () = shared.env.clock.sleep(patience) => {}
    }
}
