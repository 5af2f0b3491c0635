//! Starting and stopping a worker.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use atlas_env::{Env, LockError, Task, Vitals};
use atlas_http::Trust;
use atlas_inventory::GpuProbe;
use atlas_llm::client::Client;
use atlas_mcp::{Network, Pool};
use atlas_sandbox::Means;
use atlas_slots::{Slots, Spool};
use atlas_types::{BootId, Inventory, Micros, NodeId};
use futures::future::BoxFuture;
use tokio::sync::{mpsc, watch};
use tracing::{debug, info, warn};

use crate::data::DataDir;
use crate::environment::Environments;
use crate::folder;
use crate::link::Link;
use crate::news::News;
use crate::packages::Packages;
use crate::payloads::Transfers;
use crate::process::{Supervisor, SupervisorError};
use crate::provider::{Containers, Programs, Settings, Shared, preflight};
use crate::pump::{Identity, Inbox, Parts, Pump, offer_containers};
use crate::python::{Finder, unpack_sdk};
use crate::results::Results;
use crate::sandbox::{SandboxMode, Sandboxes};
use crate::tls::{self, JoinError};
use crate::tries::TryDoor;
use crate::{Cgroup, Options};

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
        Box::pin(Self::opened(options, env))
    }

    async fn opened(mut options: Options, env: Env) -> Result<Self, StartError> {
        // Agents run in their packages' directories, so a relative path would be wrong there.
        options.data_dir = std::path::absolute(&options.data_dir)
            .map_err(|source| StartError::DataDir { path: options.data_dir.clone(), source })?;
        let boot = BootId(env.entropy.u128());
        let data = open_data(&options, &env, boot).await?;
        let data_dir = options.data_dir.clone();
        let sdk = env.spawn_blocking("sdk", move || unpack_sdk(&data_dir)).join().await;
        let sdk = sdk.unwrap_or_else(|_| Err(std::io::ErrorKind::Interrupted.into()));
        let path = || options.data_dir.clone();
        let sdk = sdk.map_err(|source| StartError::DataDir { path: path(), source })?;
        let mut supervisor = Supervisor::probe(env.clone(), options.supervisor.as_deref(), options.confinement)
            .map_err(|error: SupervisorError| StartError::Supervisor(Box::new(error)))?;
        info!(confinement = %supervisor.confinement(), "agents' process trees are contained");
        open_groups(&mut supervisor, &options);
        let sandboxes = sandboxes(&supervisor, &options, &sdk);
        keep_code(&mut supervisor, &options, &sandboxes);
        let (files, node, at) = (Arc::clone(&env.files), options.node.clone(), options.data_dir.clone());
        let opened = env.spawn_blocking("results", move || Results::open(files, &at, &node, data.lock)).join().await;
        let opened = opened.unwrap_or_else(|_| Err(std::io::ErrorKind::Interrupted.into()));
        let (results, earlier) = opened.map_err(|source| StartError::DataDir { path: path(), source })?;
        let (settings, inventory) = prepare(&options, sdk, sandboxes)?;
        let node = options.node.clone();
        let mut identity = Identity { node, boot_id: boot, previous: data.previous, next: boot, inventory };
        let (told, told_inbox) = mpsc::channel(INPUTS_WAITING_MAX);
        let (news, news_inbox) = mpsc::channel(INPUTS_WAITING_MAX);
        let (tries, tries_inbox) = TryDoor::new();
        find_python(&env, Arc::clone(&settings), news.clone());
        let (events, link_inbox) = mpsc::channel(INPUTS_WAITING_MAX);
        let (client, clients) = watch::channel(None);
        let node = tls::Node::open(&options, &env).await.map_err(StartError::Join)?;
        let link_env = node.as_ref().map_or_else(|| env.clone(), |node| node.env.clone());
        if let Some(node) = node {
            env.spawn_vital("renew certificate", node.renew());
        }
        let link = Link { env: link_env, controllers: options.controllers.clone(), events, client };
        env.spawn_vital("link", link.run());
        let transfers = Transfers { env: env.clone(), client: clients };
        let supervisor = Arc::new(supervisor);
        let environments = Environments {
            env: env.clone(),
            settings: Arc::clone(&settings),
            supervisor: Arc::clone(&supervisor),
            directory: options.environments.clone().unwrap_or_else(|| options.data_dir.join("environments")),
            bytes_max: options.package_cache_bytes_max,
        };
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
            servers,
        };
        // Only warns, and nothing waits for it.
        drop(env.spawn("model preflight", preflight(shared.clone())));
        find_engine(&shared, &news).await;
        if shared.settings.containers.is_available() {
            offer_containers(&mut identity.inventory);
        }
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

/// Locks the data directory for this process.
async fn open_data(options: &Options, env: &Env, boot: BootId) -> Result<DataDir, StartError> {
    let (files, path, node) = (Arc::clone(&env.files), options.data_dir.clone(), options.node.clone());
    let opened = env.spawn_blocking("data", move || DataDir::open(&*files, &path, &node, boot)).join().await;
    let path = options.data_dir.clone();
    match opened.unwrap_or_else(|_| Err(LockError::File(std::io::ErrorKind::Interrupted.into()))) {
        Ok(data) => Ok(data),
        Err(LockError::Held(by)) => Err(StartError::InUse { path, by }),
        Err(LockError::File(source)) => Err(StartError::DataDir { path, source }),
    }
}

/// Finds out how agents can be confined, and logs it.
fn sandboxes(supervisor: &Supervisor, options: &Options, sdk: &Path) -> Sandboxes {
    let means = match options.sandbox {
        SandboxMode::Off => Means::default(),
        SandboxMode::BestEffort | SandboxMode::Required => options.sandbox_means.unwrap_or_else(|| supervisor.means()),
    };
    match options.sandbox {
        SandboxMode::Off => info!("agents are not confined to the permissions of their contracts"),
        SandboxMode::BestEffort => info!(%means, "agents are confined to the permissions that their contracts state"),
        SandboxMode::Required => info!(%means, "all agents are confined to the permissions of their contracts"),
    }
    let programs = [options.atlas_program.clone().or_else(|| std::env::current_exe().ok()), Some(sdk.to_owned())];
    // A place that no agent may write has to exist before the first agent starts.
    let environments = options.environments.clone().filter(|path| std::fs::create_dir_all(path).is_ok());
    let [scratch, work] = ["scratch", "work"].map(|name| options.data_dir.join(name));
    for folder in [&scratch, &work, &options.data_dir.join("mcp")] {
        // Left by an earlier process.
        let _ = folder::remove(folder);
    }
    Sandboxes {
        mode: options.sandbox,
        means,
        // Fails only without a working directory.
        hidden: options.hidden().filter_map(|path| std::path::absolute(path).ok()).collect(),
        home: std::env::var_os("HOME").map(PathBuf::from),
        visible: programs
            .into_iter()
            .chain([environments])
            .flatten()
            .filter_map(|path| path.canonicalize().ok())
            .collect(),
        scratch_bytes: options.sandbox_scratch_bytes,
        processes_max: options.sandbox_processes,
        scratch,
        work,
        all_gpus: !options.hardware_checks,
    }
}

/// Keeps packages, Python environments and programs from agents that have the rights of the worker, as far as the machine can.
fn keep_code(supervisor: &mut Supervisor, options: &Options, sandboxes: &Sandboxes) {
    let own = ["packages", "environments"].map(|name| options.data_dir.join(name));
    for folder in own.iter().chain([&sandboxes.work]) {
        // Where one cannot be made, nothing can be started later.
        let _ = std::fs::create_dir_all(folder);
    }
    let code: Vec<PathBuf> = own.into_iter().chain(sandboxes.visible.iter().cloned()).collect();
    match supervisor.keep(&code, &sandboxes.work) {
        true => info!("packages are read-only for all agents"),
        false => {
            info!("packages are read-only for confined agents; the others run from copies, and packages are checked")
        }
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

/// Sets up control groups and logs which limits of contracts are enforced.
fn open_groups(supervisor: &mut Supervisor, options: &Options) {
    let reasons = supervisor.open_groups(&options.cgroup, &options.node, &options.data_dir);
    let groups = supervisor.groups().unwrap_or_else(|| "none".to_owned());
    if reasons.is_empty() {
        info!("limits of contracts that cgroups enforce: {groups}");
        return;
    }
    let reasons = reasons.join("; ");
    let consequence = "without a cgroup, memory is limited by rlimit and CPU is not limited";
    match options.cgroup {
        Cgroup::Under(_) => warn!("limits of contracts that cgroups enforce: {groups} ({reasons}); {consequence}"),
        _ => info!("limits of contracts that cgroups enforce: {groups} ({reasons}); {consequence}"),
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

fn prepare(options: &Options, sdk: PathBuf, sandboxes: Sandboxes) -> Result<(Arc<Settings>, Inventory), StartError> {
    let mut inventory = atlas_inventory::probe(&options.declared, &*options.gpus).map_err(StartError::Inventory)?;
    let atlas_program = options.atlas_program.clone();
    let atlas_program = atlas_program.or_else(|| std::env::current_exe().ok()).unwrap_or_default();
    let level = match sandboxes.mode {
        SandboxMode::Off => None,
        SandboxMode::BestEffort | SandboxMode::Required => Some(sandboxes.means.level()),
    };
    let passed = environment(&options.agent_environment);
    let settings = Arc::new(Settings {
        output_bytes_max: options.output_bytes_max,
        stderr_bytes_max: options.stderr_bytes_max,
        log_bytes_max: options.log_bytes_max,
        shutdown_timeout: options.shutdown_timeout,
        warmup_timeout: options.warmup_timeout.map(Micros::from),
        atlas_program,
        python: Finder::new(options.python.clone()),
        sdk,
        environment: passed.clone(),
        pip_environment: pip_environment(options),
        declared: inventory.declared,
        unchecked: !options.hardware_checks,
        slices: slices(&inventory),
        sandboxes,
        containers: Containers::new(options, &passed),
        secrets: options.secrets.clone(),
        inside: options.inside.clone(),
        models: options.models.clone(),
    });
    inventory.unchecked = !options.hardware_checks;
    inventory.places = options.places.unwrap_or_else(|| inventory.cores.max(4));
    inventory.llm_places = options.llm_places;
    inventory.labels.extend(level.map(|level| ("sandbox".to_owned(), level.to_owned())));
    inventory.labels.extend(options.labels.clone());
    Ok((settings, inventory))
}

/// Runs in the background, because with a version manager this takes longer than the rest of the start.
fn find_python(env: &Env, settings: Arc<Settings>, news: mpsc::Sender<News>) {
    env.spawn_blocking("find python", move || {
        if let Err(why) = settings.python.get() {
            warn!("{why}: jobs of Python agents run on other nodes");
            // The queue has room: nothing else is sent before the first hello. Otherwise the next change of the inventory tells of it.
            let _ = news.try_send(News::NoPython);
        }
    });
}

/// How long a start waits for a container engine. Later, the next hello tells of it.
const ENGINE_PATIENCE: Duration = Duration::from_millis(250);

/// How often a node without a container engine looks for one: it may be installed or started after the worker.
const ENGINE_EVERY: Duration = Duration::from_secs(60);

/// Searches for a container engine, in the background if that takes a while.
async fn find_engine(shared: &Shared, news: &mpsc::Sender<News>) {
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
        () = shared.env.clock.sleep(ENGINE_PATIENCE) => {}
    }
}

/// The unique ids of MIG slices by inventory index. A process can be confined to a slice only by this id.
fn slices(inventory: &Inventory) -> BTreeMap<u32, String> {
    let slices = inventory.gpus.iter().filter(|gpu| gpu.mig_profile.is_some());
    slices.map(|gpu| (gpu.index, gpu.uuid.clone())).collect()
}

/// The environment of pip: the variables that every agent gets, and those for package sources.
fn pip_environment(options: &Options) -> Vec<(OsString, OsString)> {
    let own = std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"PIP_"));
    environment(&[]).into_iter().chain(own).chain(options.pip_environment.iter().cloned()).collect()
}

fn environment(more: &[String]) -> Vec<(OsString, OsString)> {
    let names = PASSED.iter().copied().chain(more.iter().map(String::as_str));
    names.filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect()
}
