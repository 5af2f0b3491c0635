//! What a worker finds out about its machine before it connects.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use atlas_documents::VectorCache;
use atlas_env::{Env, LockError};
use atlas_sandbox::Means;
use atlas_types::{BootId, Inventory, Micros};
use futures::future::BoxFuture;
use tracing::{info, warn};

use crate::data::DataDir;
use crate::folder;
use crate::nodejs::NodeJs;
use crate::process::{Supervisor, SupervisorError, SupervisorProgram};
use crate::provider::{Containers, Settings};
use crate::python::Python;
use crate::results::{Earlier, Results};
use crate::sandbox::{SandboxMode, Sandboxes};
use crate::sdk;
use crate::worker::PASSED;
use crate::{Cgroup, Options, StartError, Worker};

/// Most bytes of the vectors of documents that are kept between jobs.
const VECTOR_BYTES_MAX: u64 = 1 << 30;

/// A worker that knows its machine and is not connected yet.
pub struct PreparedWorker {
    pub(crate) options: Options,
    pub(crate) env: Env,
    pub(crate) boot: BootId,
    /// The process that used the data directory before this one.
    pub(crate) previous: Option<BootId>,
    pub(crate) supervisor: Supervisor,
    pub(crate) settings: Arc<Settings>,
    pub(crate) inventory: Inventory,
    pub(crate) results: Results,
    pub(crate) earlier: Option<Earlier>,
}

impl PreparedWorker {
    /// Opens the data directory and asks the machine what it offers. Needs no controller.
    pub fn open(options: Options, env: Env) -> BoxFuture<'static, Result<Self, StartError>> {
        Box::pin(Self::opened(options, env))
    }

    /// Starts the worker, which connects to one of `controllers`.
    pub fn connect(self, controllers: Vec<String>) -> BoxFuture<'static, Result<Worker, StartError>> {
        Box::pin(Worker::connected(self, controllers))
    }

    async fn opened(mut options: Options, env: Env) -> Result<Self, StartError> {
        // Agents run in their packages' directories, so a relative path would be wrong there.
        options.data_dir = std::path::absolute(&options.data_dir)
            .map_err(|source| StartError::DataDir { path: options.data_dir.clone(), source })?;
        let boot = BootId(env.entropy.u128());
        let data = open_data(&options, &env).await?;
        let data_dir = options.data_dir.clone();
        let sdk = env.spawn_blocking("sdk", move || sdk::unpack(&data_dir)).join().await;
        let sdk = sdk.unwrap_or_else(|_| Err(std::io::ErrorKind::Interrupted.into()));
        let path = || options.data_dir.clone();
        let sdk = sdk.map_err(|source| StartError::DataDir { path: path(), source })?;
        let (supervisor, sandboxes) = contain(&options, &env, &sdk).await?;
        let (files, node, at) = (Arc::clone(&env.files), options.node.clone(), options.data_dir.clone());
        let opened = env.spawn_blocking("results", move || Results::open(files, &at, &node, data.lock)).join().await;
        let opened = opened.unwrap_or_else(|_| Err(std::io::ErrorKind::Interrupted.into()));
        let (results, earlier) = opened.map_err(|source| StartError::DataDir { path: path(), source })?;
        // A driver may take a while to answer.
        let own = options.clone();
        let probed = env.spawn_blocking("probe hardware", move || prepare(&own, sdk, sandboxes)).join().await;
        let (settings, inventory) = probed.map_err(|_| StartError::Interrupted)??;
        Ok(Self { options, env, boot, previous: data.previous, supervisor, settings, inventory, results, earlier })
    }
}

/// Finds out how the processes of agents are contained, limited and confined. Each question starts a process that mostly waits for the
/// kernel, so those that may are asked at the same time.
async fn contain(options: &Options, env: &Env, sdk: &Path) -> Result<(Supervisor, Sandboxes), StartError> {
    let failed = |error: SupervisorError| StartError::Supervisor(Box::new(error));
    let program = SupervisorProgram::new(options.supervisor.as_deref()).map_err(failed)?;
    let mut sandboxes = sandboxes(options, sdk);
    let (own, choice, at) = (program.clone(), options.cgroup.clone(), options.data_dir.clone());
    let node = options.node.clone();
    let groups = env.spawn_blocking("open cgroups", move || own.groups(&choice, &node, &at));
    // Without an answer the runtime is being stopped.
    let interrupted = |_| StartError::Interrupted;
    // Before any other process starts: the worker can use its own group of version 2 only while no other process is in it, and would
    // have no limits until it ends.
    let (groups, reasons) = groups.join().await.map_err(interrupted)?;
    let (own, mode, told) = (program.clone(), options.sandbox, options.sandbox_means);
    let means = env.spawn_blocking("probe sandboxes", move || match mode {
        SandboxMode::Off => Means::default(),
        SandboxMode::BestEffort | SandboxMode::Required => told.unwrap_or_else(|| own.means()),
    });
    let (own, wanted, code, work) =
        (env.clone(), options.confinement, code(options, &sandboxes), sandboxes.work.clone());
    let supervisor = env.spawn_blocking("probe supervisor", move || {
        let mut supervisor = Supervisor::probe(own, program, wanted)?;
        let keeps = supervisor.keep(&code, &work);
        Ok((supervisor, keeps))
    });
    let (mut supervisor, keeps) = supervisor.join().await.map_err(interrupted)?.map_err(failed)?;
    info!(confinement = %supervisor.confinement(), "agents' process trees are contained");
    supervisor.limit_by(groups);
    log_groups(&supervisor, options, &reasons);
    let means = means.join().await.map_err(interrupted)?;
    sandboxes.means = means;
    match options.sandbox {
        SandboxMode::Off => info!("agents are not confined to the permissions of their contracts"),
        SandboxMode::BestEffort => info!(%means, "agents are confined to the permissions that their contracts state"),
        SandboxMode::Required => info!(%means, "all agents are confined to the permissions of their contracts"),
    }
    match keeps {
        true => info!("packages are read-only for all agents"),
        false => {
            info!("packages are read-only for confined agents; the others run from copies, and packages are checked")
        }
    }
    Ok((supervisor, sandboxes))
}

/// Locks the data directory for this process.
async fn open_data(options: &Options, env: &Env) -> Result<DataDir, StartError> {
    let (files, path, node) = (Arc::clone(&env.files), options.data_dir.clone(), options.node.clone());
    let opened = env.spawn_blocking("data", move || DataDir::open(&*files, &path, &node)).join().await;
    let path = options.data_dir.clone();
    match opened.unwrap_or_else(|_| Err(LockError::File(std::io::ErrorKind::Interrupted.into()))) {
        Ok(data) => Ok(data),
        Err(LockError::Held(by)) => Err(StartError::InUse { path, by }),
        Err(LockError::File(source)) => Err(StartError::DataDir { path, source }),
    }
}

/// What confines agents, apart from what the machine offers for that.
fn sandboxes(options: &Options, sdk: &Path) -> Sandboxes {
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
        means: Means::default(),
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

/// Packages, Python environments and programs: what agents that have the rights of the worker must leave as it is.
fn code(options: &Options, sandboxes: &Sandboxes) -> Vec<PathBuf> {
    let own = ["packages", "environments"].map(|name| options.data_dir.join(name));
    for folder in own.iter().chain([&sandboxes.work]) {
        // Where one cannot be made, nothing can be started later.
        let _ = std::fs::create_dir_all(folder);
    }
    own.into_iter().chain(sandboxes.visible.iter().cloned()).collect()
}

/// Logs which limits of contracts are enforced, and why others are not.
fn log_groups(supervisor: &Supervisor, options: &Options, reasons: &[String]) {
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
        python: Python::finder(options.python.clone()),
        nodejs: NodeJs::finder(options.nodejs.clone()),
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
        vectors: Arc::new(VectorCache::new(options.data_dir.join("vectors"), VECTOR_BYTES_MAX)),
    });
    inventory.unchecked = !options.hardware_checks;
    inventory.places = options.places.unwrap_or_else(|| inventory.cores.max(4));
    inventory.llm_places = options.llm_places;
    inventory.labels.extend(level.map(|level| ("sandbox".to_owned(), level.to_owned())));
    inventory.labels.extend(options.labels.clone());
    Ok((settings, inventory))
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn no_other_process_starts_until_the_groups_are_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let (program, log) = (folder.path().join("supervisor"), folder.path().join("log"));
        // The entry into a group takes the longest, so that others would be before it if they started beside it.
        let script = format!("#!/bin/sh\n[ \"$2\" = enter ] && /bin/sleep 0.3\necho \"$2\" >>'{}'\n", log.display());
        fs::write(&program, script).expect("written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("ours");
        let node = "n1".parse().expect("a name");
        let mut options = Options::new(node, Vec::new(), folder.path().join("data"));
        options.supervisor = Some(program);
        fs::create_dir_all(&options.data_dir).expect("created");
        contain(&options, &Env::system(), folder.path()).await.expect("contained");
        let text = fs::read_to_string(&log).expect("it was started");
        let mut started: Vec<&str> = text.lines().collect();
        if !started.contains(&"enter") {
            return atlas_notice::skip("this machine lets no process create cgroups");
        }
        assert_eq!(started.remove(0), "enter");
        assert!(started.contains(&"means") && started.contains(&"probe"), "{started:?}");
    }
}
