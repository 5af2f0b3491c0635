//! Options of the worker: [`Options`] for programs that embed a worker, [`Configuration`] for the command line and files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use atlas_inventory::{DeclaredHardware, GpuProbe, NvmlProbe};
use atlas_pages::{Exemption, Loader};
use atlas_secrets::Rules;
use atlas_types::NodeId;
use clap::{Command, CommandFactory as _, Parser};
use serde::{Deserialize, Serialize};

pub use self::address::Scheme;
pub use self::error::ConfigurationError;
use self::values::{
    cgroup, confinement, containers, duration, host_name, label, prepare_timeout, sandbox, secrets_prefix, size, switch,
};
use crate::{Cgroup, Confinement, Inside, ModelEnvironment, SandboxMeans, SandboxMode, SecretSources};

mod address;
mod error;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
mod values;

/// The longest time for preparing an attempt. Controllers give a running job this much time in addition to its own
/// limits.
const PREPARE_MAX: Duration = Duration::from_secs(600);

/// How long a start waits for a container engine.
const ENGINE_PATIENCE: Duration = Duration::from_millis(250);

/// The options of a worker.
#[derive(Debug, Clone)]
pub struct Options {
    /// The node's name, unique in the cluster.
    pub node: NodeId,
    /// Addresses of controllers' worker doors, `host:port`.
    pub controllers: Vec<String>,
    /// What the addresses said about TLS. None if they said nothing; then it is used if the node has a certificate.
    pub scheme: Option<Scheme>,
    /// The directory for packages, the Python package and results.
    pub data_dir: PathBuf,
    /// The file with a join token; none for a node that has joined, or a cluster without TLS.
    pub token_file: Option<PathBuf>,
    /// The join token of a group; none for a node with a token of its own.
    pub group: Option<Group>,
    /// The directory of the node's certificate. None uses a subdirectory of the data directory.
    pub tls_dir: Option<PathBuf>,
    /// The most concurrent jobs that run a process. None for the larger of 4 and the number of cores.
    pub places: Option<u32>,
    /// The most concurrent jobs of `llm` agents, which run no process and mostly wait.
    pub llm_places: u32,
    /// The number of idle slots kept for each agent version.
    pub warm_pool_size: u32,
    /// How long a slot may be idle.
    pub idle_timeout: Duration,
    /// The time limit for starting an agent whose contract sets no `startup_timeout`. None uses the cluster's value, 30
    /// s.
    pub warmup_timeout: Option<Duration>,
    /// The time limit for preparing an attempt: fetching its package and installing the Python packages of its
    /// contract.
    pub prepare_timeout: Duration,
    /// How long running attempts may continue when the worker stops.
    pub drain_timeout: Duration,
    /// The time between SIGTERM and SIGKILL when the worker stops an attempt.
    pub stop_grace: Duration,
    /// How long an agent's `on_shutdown` may take.
    pub shutdown_timeout: Duration,
    /// The largest output of one job.
    pub output_bytes_max: usize,
    /// How much of an exec agent's stderr is kept for its error text.
    pub stderr_bytes_max: usize,
    /// The most bytes of log lines of one attempt.
    pub log_bytes_max: usize,
    /// The most bytes of unpacked packages and of environments created for them.
    pub package_cache_bytes_max: u64,
    /// The directory of Python environments. None uses a subdirectory of the data directory. Several processes may
    /// share it.
    pub environments: Option<PathBuf>,
    /// Names of environment variables that agents get in addition to `PATH`, `HOME`, `LANG`, `LC_ALL`, `TMPDIR` and
    /// `TZ`.
    pub agent_environment: Vec<String>,
    /// Where values of secrets are on this machine, and which of them agents may have.
    pub secrets: SecretSources,
    /// PEM file with certificates of authorities that sign those of MCP servers and models, in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Servers whose pages may be read for document bases although their addresses are not public.
    pub collect_allowed: Vec<Exemption>,
    /// Programs that read files and sources of document bases.
    pub loaders: Vec<Loader>,
    /// Variables for pip when it installs Python packages, in addition to the `PIP_…` variables of this process.
    pub pip_environment: Vec<(OsString, OsString)>,
    /// Free-form labels of the node.
    pub labels: BTreeMap<String, String>,
    /// Hardware that the operator declares. If set, the hardware is not probed.
    pub declared: DeclaredHardware,
    /// Whether jobs' demands are checked against the node's hardware. If not, any job fits while a place is free, sees
    /// all GPUs and reserves nothing.
    pub hardware_checks: bool,
    /// The Python interpreter. None searches for one.
    pub python: Option<PathBuf>,
    /// The program of Node.js. None searches for it.
    pub nodejs: Option<PathBuf>,
    /// The program for `@atlas` in a command; defaults to this program.
    pub atlas_program: Option<PathBuf>,
    /// The supervisor program of agents' process trees. None uses this program, which must then call
    /// [`crate::run_if_asked`].
    pub supervisor: Option<PathBuf>,
    /// How agents' process trees are contained. None selects the strictest way that the machine permits.
    pub confinement: Option<Confinement>,
    /// Whether the limits of contracts are enforced by control groups.
    pub cgroup: Cgroup,
    /// Whether agents are confined to the permissions of their contracts.
    pub sandbox: SandboxMode,
    /// Places that no confined agent sees, besides those of the worker and known places of credentials.
    pub sandbox_hidden: Vec<PathBuf>,
    /// The size of a confined agent's folder for temporary files.
    pub sandbox_scratch_bytes: u64,
    /// The most processes and threads of a confined agent.
    pub sandbox_processes: u64,
    /// What the machine offers for sandboxes. None asks the machine (tests use less).
    pub sandbox_means: Option<SandboxMeans>,
    /// The client of the container engine. None tries those of Docker and Podman.
    pub container_engine: Option<String>,
    /// The network of agents in containers that may use one.
    pub container_network: String,
    /// True if agents that ask for a container run without one where no engine answers.
    pub container_preferred: bool,
    /// How long a start waits for the container engine. One that answers later is advertised then.
    pub engine_patience: Duration,
    /// Serves the command `@noop` in this process (benchmarks).
    pub noop: bool,
    /// Serves the command `@inside` by a function of the embedding program (tests).
    pub inside: Option<Inside>,
    /// Who is asked for the GPUs.
    pub gpus: Arc<dyn GpuProbe>,
    /// How often they are asked for their health.
    pub gpu_health_every: Duration,
    /// The models of the environment, for llm agents.
    pub models: ModelEnvironment,
    /// How long an attempt with a journal waits before its job is parked.
    pub park_after: Duration,
    /// How long a worker that stops waits for the controller to let it go.
    pub farewell_max: Duration,
}

impl Options {
    /// The defaults of a worker.
    pub fn new(node: NodeId, controllers: Vec<String>, data_dir: PathBuf) -> Self {
        Self {
            node,
            controllers,
            scheme: None,
            data_dir,
            token_file: None,
            group: None,
            tls_dir: None,
            places: None,
            llm_places: 256,
            warm_pool_size: 2,
            idle_timeout: Duration::from_secs(300),
            warmup_timeout: None,
            prepare_timeout: PREPARE_MAX,
            drain_timeout: Duration::from_secs(10),
            stop_grace: Duration::from_secs(2),
            shutdown_timeout: Duration::from_secs(5),
            output_bytes_max: 8 << 20,
            stderr_bytes_max: 64 << 10,
            log_bytes_max: 1 << 20,
            package_cache_bytes_max: 4 << 30,
            environments: None,
            agent_environment: Vec::new(),
            secrets: SecretSources::default(),
            ca_file: None,
            collect_allowed: Vec::new(),
            loaders: Vec::new(),
            pip_environment: Vec::new(),
            labels: BTreeMap::new(),
            declared: DeclaredHardware::default(),
            hardware_checks: true,
            python: None,
            nodejs: None,
            atlas_program: None,
            supervisor: None,
            confinement: None,
            cgroup: Cgroup::Auto,
            sandbox: SandboxMode::default(),
            sandbox_hidden: Vec::new(),
            sandbox_scratch_bytes: atlas_sandbox::Sandbox::SCRATCH_BYTES,
            sandbox_processes: atlas_sandbox::Sandbox::PROCESSES,
            sandbox_means: None,
            container_engine: None,
            container_network: "bridge".to_owned(),
            container_preferred: false,
            engine_patience: ENGINE_PATIENCE,
            noop: false,
            inside: None,
            gpus: Arc::new(NvmlProbe::default()),
            gpu_health_every: Duration::from_secs(15),
            models: ModelEnvironment::of_process(),
            park_after: atlas_slots::PARK_AFTER,
            farewell_max: Duration::from_secs(10),
        }
    }

    /// What confined agents do not see: files with secrets, and those of the node itself.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = &PathBuf> {
        let secrets = [&self.secrets.directory, &self.secrets.file, &self.token_file, &self.tls_dir];
        let group = self.group.as_ref().map(|group| &group.token_file);
        secrets.into_iter().flatten().chain(group).chain([&self.data_dir]).chain(&self.sandbox_hidden)
    }
}

/// How a node joins that belongs to a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The file with the group's join token.
    pub token_file: PathBuf,
    /// The file with the certificates by which the node recognises the cluster.
    pub authority_file: PathBuf,
}

/// Runs agents for a cluster. Every option is also a key of the file.
#[derive(Debug, Clone, Default, Parser, Serialize, Deserialize)]
#[command(name = "atlas-worker", version)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Configuration {
    /// TOML file for options that are not given here.
    #[arg(long, env = "ATLAS_WORKER_CONFIG", value_name = "FILE")]
    #[serde(skip)]
    pub config: Option<PathBuf>,
    /// Print the resulting configuration, and exit.
    #[arg(long)]
    #[serde(skip)]
    pub print_config: bool,
    /// Check the configuration, and exit.
    #[arg(long)]
    #[serde(skip)]
    pub check_config: bool,
    /// Name of the node; defaults to the host name.
    #[arg(long, env = "ATLAS_NODE", value_name = "NAME")]
    pub node: Option<String>,
    /// Worker address of a controller, HOST:PORT, http://HOST:PORT or https://HOST:PORT; repeatable.
    #[arg(long = "controller", env = "ATLAS_CONTROLLERS", value_delimiter = ',', value_name = "HOST:PORT")]
    pub controllers: Option<Vec<String>>,
    /// Data directory; defaults to ./.atlas-worker.
    #[arg(long, env = "ATLAS_WORKER_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// File with a join token from `atlasctl node token`; needed for the first start in a cluster with TLS.
    #[arg(long, env = "ATLAS_NODE_TOKEN_FILE", value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// File with the join token of a group of nodes, from `atlasctl operator secret`, instead of a token for this node alone.
    #[arg(long, env = "ATLAS_GROUP_TOKEN_FILE", value_name = "FILE")]
    pub group_token_file: Option<PathBuf>,
    /// File with the certificates of the cluster, ca.pem; needed with the token of a group.
    #[arg(long, env = "ATLAS_AUTHORITY_FILE", value_name = "FILE")]
    pub authority_file: Option<PathBuf>,
    /// Join the cluster, store the certificate, and exit: for a step before the worker, which then needs no token.
    #[arg(long)]
    #[serde(skip)]
    pub join_only: bool,
    /// Directory of the node's certificate and key; defaults to tls in the data directory.
    #[arg(long, env = "ATLAS_NODE_TLS_DIR", value_name = "DIR")]
    pub tls_dir: Option<PathBuf>,
    /// Address of a receiver of OTLP for log lines, such as http://127.0.0.1:4317; the variables of OpenTelemetry set the rest.
    #[arg(long, env = "ATLAS_OTLP", value_name = "URL")]
    pub otlp: Option<String>,
    /// PEM file with certificates of authorities that sign those of MCP servers and models, in addition to the system's.
    #[arg(long, env = "ATLAS_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
    /// Directory of files with secrets for agents; defaults to /run/secrets.
    #[arg(long, env = "ATLAS_SECRETS_DIR", value_name = "DIR")]
    pub secrets_dir: Option<PathBuf>,
    /// JSON or YAML file with an object of secrets and their values, for secrets that are not objects of the cluster.
    #[arg(long, env = "ATLAS_SECRETS_FILE", value_name = "FILE")]
    pub secrets_file: Option<PathBuf>,
    /// What the names of environment variables with secrets begin with; defaults to ATLAS_SECRET_.
    #[arg(long, env = "ATLAS_SECRETS_PREFIX", value_name = "PREFIX")]
    pub secrets_prefix: Option<String>,
    /// Secret that agents on this worker may have; repeatable. Defaults to all; an empty name allows none, in the variable a comma.
    #[arg(long = "secret-allowed", env = "ATLAS_SECRETS_ALLOWED", value_delimiter = ',', value_name = "NAME")]
    pub secrets_allowed: Option<Vec<String>>,
    /// Maximum number of concurrent jobs that run a process; defaults to the larger of 4 and the number of cores.
    #[arg(long, env = "ATLAS_PLACES", value_name = "N")]
    pub places: Option<u32>,
    /// Maximum number of concurrent jobs of llm agents, which mostly wait for a model; defaults to 256.
    #[arg(long, env = "ATLAS_LLM_PLACES", value_name = "N")]
    pub llm_places: Option<u32>,
    /// Idle slots to keep for each agent version; further ones stay for a second; defaults to 2.
    #[arg(long, env = "ATLAS_WARM_POOL_SIZE", value_name = "N")]
    pub warm_pool_size: Option<u32>,
    /// Time after which an idle slot is stopped; defaults to 300s.
    #[arg(long, env = "ATLAS_IDLE_TIMEOUT", value_name = "TIME")]
    pub idle_timeout: Option<String>,
    /// Start timeout for agents whose contract has no startup_timeout; at most 30s, the default.
    #[arg(long, env = "ATLAS_WARMUP_TIMEOUT", value_name = "TIME")]
    pub warmup_timeout: Option<String>,
    /// Timeout for preparing an attempt (fetching its package, installing Python packages); at most 10m, the default.
    #[arg(long, env = "ATLAS_PREPARE_TIMEOUT", value_name = "TIME")]
    pub prepare_timeout: Option<String>,
    /// Time for running attempts to finish when the worker stops; defaults to 10s.
    #[arg(long, env = "ATLAS_DRAIN_TIMEOUT", value_name = "TIME")]
    pub drain_timeout: Option<String>,
    /// Time between SIGTERM and SIGKILL when the worker ends an attempt; defaults to 2s.
    #[arg(long, env = "ATLAS_STOP_GRACE", value_name = "TIME")]
    pub stop_grace: Option<String>,
    /// Maximum size of a job's output; defaults to 8MiB.
    #[arg(long, env = "ATLAS_OUTPUT_MAX", value_name = "SIZE")]
    pub output_max: Option<String>,
    /// Maximum size of an attempt's log lines; defaults to 1MiB.
    #[arg(long, env = "ATLAS_LOG_MAX", value_name = "SIZE")]
    pub log_max: Option<String>,
    /// Maximum size of unpacked packages and their environments; defaults to 4GiB.
    #[arg(long, env = "ATLAS_PACKAGE_CACHE_MAX", value_name = "SIZE")]
    pub package_cache_max: Option<String>,
    /// Environment variable to pass to agents; repeatable.
    #[arg(long = "agent-env", env = "ATLAS_AGENT_ENV", value_delimiter = ',', value_name = "NAME")]
    pub agent_env: Option<Vec<String>>,
    /// Label of the node, KEY=VALUE; repeatable.
    #[arg(long = "label", env = "ATLAS_LABELS", value_delimiter = ',', value_name = "KEY=VALUE")]
    pub labels: Option<Vec<String>>,
    /// Declare the number of GPUs instead of probing.
    #[arg(long, env = "ATLAS_GPUS", value_name = "N")]
    pub gpus: Option<u32>,
    /// Declare the memory of each GPU, in GB.
    #[arg(long, env = "ATLAS_GPU_VRAM", value_delimiter = ',', value_name = "GB,GB")]
    pub gpu_vram: Option<Vec<u64>>,
    /// Declare the memory, in GB.
    #[arg(long, env = "ATLAS_POOL_MEMORY", value_name = "GB")]
    pub pool_memory: Option<u64>,
    /// Declare the number of cores.
    #[arg(long, env = "ATLAS_POOL_CPUS", value_name = "N")]
    pub pool_cpus: Option<u32>,
    /// Declare the processor family: x86_64, arm64 or any.
    #[arg(long, env = "ATLAS_POOL_ARCH", value_name = "ARCH")]
    pub pool_arch: Option<String>,
    /// Declare a device file that jobs may share; repeatable.
    #[arg(long = "pool-device", env = "ATLAS_POOL_DEVICES", value_delimiter = ',', value_name = "PATH")]
    pub pool_devices: Option<Vec<String>>,
    /// Whether to check jobs' requirements against the hardware, on (the default) or off; with off, only the number of jobs counts.
    #[arg(long, env = "ATLAS_HARDWARE_CHECKS", value_name = "on|off")]
    pub hardware_checks: Option<String>,
    /// Python interpreter; defaults to the newest of python3.13 to python3 in PATH.
    #[arg(long, env = "ATLAS_PYTHON", value_name = "PROGRAM")]
    pub python: Option<PathBuf>,
    /// Program of Node.js; defaults to node or nodejs in PATH.
    #[arg(long, env = "ATLAS_NODEJS", value_name = "PROGRAM")]
    pub nodejs: Option<PathBuf>,
    /// How agents' process trees are contained: pid-namespace, user-pid-namespace or subreaper; defaults to the strictest available.
    #[arg(long, env = "ATLAS_CONFINEMENT", value_name = "WAY")]
    pub confinement: Option<String>,
    /// Where to create the cgroups that limit agents to the memory and cores of their contracts: auto (the worker's own cgroup), off, or
    /// the path of a cgroup; defaults to auto.
    #[arg(long, env = "ATLAS_CGROUP", value_name = "WAY")]
    pub cgroup: Option<String>,
    /// Whether agents are confined to the permissions of their contracts: off, best-effort (those that state permissions, as far as this
    /// machine can) or required (all, and an attempt fails where it cannot); defaults to best-effort.
    #[arg(long, env = "ATLAS_SANDBOX", value_name = "MODE")]
    pub sandbox: Option<String>,
    /// Path that confined agents do not see; repeatable.
    #[arg(long = "sandbox-hide", env = "ATLAS_SANDBOX_HIDE", value_delimiter = ',', value_name = "PATH")]
    pub sandbox_hide: Option<Vec<PathBuf>>,
    /// Size of a confined agent's folder for temporary files, which is in memory; defaults to 1GiB.
    #[arg(long, env = "ATLAS_SANDBOX_SCRATCH", value_name = "SIZE")]
    pub sandbox_scratch: Option<String>,
    /// Maximum number of processes and threads of a confined agent; defaults to 4096.
    #[arg(long, env = "ATLAS_SANDBOX_PROCESSES", value_name = "N")]
    pub sandbox_processes: Option<u64>,
    /// Program that starts containers, for agents whose contract asks for one; defaults to the first of docker and podman whose engine
    /// answers.
    #[arg(long, env = "ATLAS_CONTAINER_ENGINE", value_name = "PROGRAM")]
    pub container_engine: Option<String>,
    /// Network of containers of agents that may use one; defaults to bridge.
    #[arg(long, env = "ATLAS_CONTAINER_NETWORK", value_name = "NAME")]
    pub container_network: Option<String>,
    /// What happens to agents that ask for a container where no engine answers: require (their jobs wait for another node) or prefer (they
    /// run as processes); defaults to require.
    #[arg(long, env = "ATLAS_CONTAINERS", value_name = "RULE")]
    pub containers: Option<String>,
    /// Server whose pages may be read for document bases although its address is not public; repeatable.
    #[arg(long = "collect-allow", env = "ATLAS_COLLECT_ALLOW", value_delimiter = ',', value_name = "HOST[:PORT]")]
    pub collect_allow: Option<Vec<String>>,
    /// Program that reads files of a type for document bases, such as pdf='pdftotext $1 -', or, with := instead of =, sources that begin
    /// with NAME:; $1 is the input, and $2 the file to write unless it prints; repeatable.
    #[arg(long = "loader", env = "ATLAS_LOADERS", value_delimiter = '\n', value_name = "NAME=COMMAND")]
    pub loaders: Option<Vec<String>>,
    /// Serve the command @noop in this process, for benchmarks.
    #[arg(long, env = "ATLAS_NOOP", num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub noop: Option<bool>,
    /// Log filter, such as warn,atlas_worker=debug; defaults to info.
    #[arg(long, env = "ATLAS_LOG", value_name = "FILTER")]
    pub log: Option<String>,
}

impl Configuration {
    /// The command line of the worker.
    pub fn command_line() -> Command {
        atlas_env::empty_is_unset(Self::command())
    }

    /// Adds the values of the file that flags and the environment do not set.
    pub fn with_file(self) -> Result<Self, ConfigurationError> {
        let Some(path) = self.config.clone() else { return Ok(self) };
        let text = atlas_env::read_text(&path, atlas_env::CONFIGURATION_BYTES_MAX);
        let text = text.map_err(|source| ConfigurationError::Read { path: path.clone(), source })?;
        let file: Self = toml::from_str(&text).map_err(|error| ConfigurationError::Parse {
            line: atlas_env::line_at(&text, error.span().map_or(0, |span| span.start)),
            problem: error.message().to_owned(),
            path,
        })?;
        Ok(self.over(file))
    }

    fn over(self, file: Self) -> Self {
        Self {
            config: self.config,
            print_config: self.print_config,
            check_config: self.check_config,
            node: self.node.or(file.node),
            controllers: self.controllers.or(file.controllers),
            data_dir: self.data_dir.or(file.data_dir),
            token_file: self.token_file.or(file.token_file),
            group_token_file: self.group_token_file.or(file.group_token_file),
            authority_file: self.authority_file.or(file.authority_file),
            join_only: self.join_only,
            tls_dir: self.tls_dir.or(file.tls_dir),
            places: self.places.or(file.places),
            otlp: self.otlp.or(file.otlp),
            ca_file: self.ca_file.or(file.ca_file),
            secrets_dir: self.secrets_dir.or(file.secrets_dir),
            secrets_file: self.secrets_file.or(file.secrets_file),
            secrets_prefix: self.secrets_prefix.or(file.secrets_prefix),
            secrets_allowed: self.secrets_allowed.or(file.secrets_allowed),
            llm_places: self.llm_places.or(file.llm_places),
            warm_pool_size: self.warm_pool_size.or(file.warm_pool_size),
            idle_timeout: self.idle_timeout.or(file.idle_timeout),
            warmup_timeout: self.warmup_timeout.or(file.warmup_timeout),
            prepare_timeout: self.prepare_timeout.or(file.prepare_timeout),
            drain_timeout: self.drain_timeout.or(file.drain_timeout),
            stop_grace: self.stop_grace.or(file.stop_grace),
            output_max: self.output_max.or(file.output_max),
            log_max: self.log_max.or(file.log_max),
            package_cache_max: self.package_cache_max.or(file.package_cache_max),
            agent_env: self.agent_env.or(file.agent_env),
            labels: self.labels.or(file.labels),
            gpus: self.gpus.or(file.gpus),
            gpu_vram: self.gpu_vram.or(file.gpu_vram),
            pool_memory: self.pool_memory.or(file.pool_memory),
            pool_cpus: self.pool_cpus.or(file.pool_cpus),
            pool_arch: self.pool_arch.or(file.pool_arch),
            pool_devices: self.pool_devices.or(file.pool_devices),
            hardware_checks: self.hardware_checks.or(file.hardware_checks),
            python: self.python.or(file.python),
            nodejs: self.nodejs.or(file.nodejs),
            confinement: self.confinement.or(file.confinement),
            cgroup: self.cgroup.or(file.cgroup),
            sandbox: self.sandbox.or(file.sandbox),
            sandbox_hide: self.sandbox_hide.or(file.sandbox_hide),
            sandbox_scratch: self.sandbox_scratch.or(file.sandbox_scratch),
            sandbox_processes: self.sandbox_processes.or(file.sandbox_processes),
            container_engine: self.container_engine.or(file.container_engine),
            container_network: self.container_network.or(file.container_network),
            containers: self.containers.or(file.containers),
            collect_allow: self.collect_allow.or(file.collect_allow),
            loaders: self.loaders.or(file.loaders),
            noop: self.noop.or(file.noop),
            log: self.log.or(file.log),
        }
    }

    /// The resulting options.
    pub fn options(&self) -> Result<Options, ConfigurationError> {
        let name = self.node.clone().unwrap_or_else(host_name);
        let node = NodeId::new(&name).map_err(|source| ConfigurationError::Node { name, source })?;
        let controllers = self.controllers.clone().filter(|all| !all.is_empty());
        let (controllers, scheme) = address::controllers(&controllers.ok_or(ConfigurationError::NoController)?)?;
        let data_dir = self.data_dir.clone().unwrap_or_else(|| PathBuf::from("./.atlas-worker"));
        let mut options = Options { scheme, ..Options::new(node, controllers, data_dir) };
        options.token_file.clone_from(&self.token_file);
        options.group = match (&self.group_token_file, &self.authority_file) {
            (None, None) => None,
            (Some(token_file), Some(authority_file)) if self.token_file.is_none() => {
                Some(Group { token_file: token_file.clone(), authority_file: authority_file.clone() })
            }
            _ => return Err(ConfigurationError::Group),
        };
        options.tls_dir.clone_from(&self.tls_dir);
        options.places = self.places;
        options.ca_file.clone_from(&self.ca_file);
        options.secrets = self.secrets()?;
        options.llm_places = self.llm_places.unwrap_or(options.llm_places);
        options.warm_pool_size = self.warm_pool_size.unwrap_or(options.warm_pool_size);
        set(&mut options.idle_timeout, self.idle_timeout.as_deref(), duration)?;
        options.warmup_timeout = self.warmup_timeout.as_deref().map(duration).transpose()?;
        set(&mut options.prepare_timeout, self.prepare_timeout.as_deref(), prepare_timeout)?;
        set(&mut options.drain_timeout, self.drain_timeout.as_deref(), duration)?;
        set(&mut options.stop_grace, self.stop_grace.as_deref(), duration)?;
        set(&mut options.output_bytes_max, self.output_max.as_deref(), size)?;
        set(&mut options.log_bytes_max, self.log_max.as_deref(), size)?;
        set(&mut options.package_cache_bytes_max, self.package_cache_max.as_deref(), |text| Ok(size(text)? as u64))?;
        options.agent_environment = self.agent_env.clone().unwrap_or_default();
        options.labels = self.labels.iter().flatten().map(|text| label(text)).collect::<Result<_, _>>()?;
        options.declared = self.declared()?;
        set(&mut options.hardware_checks, self.hardware_checks.as_deref(), switch)?;
        if !options.hardware_checks && options.declared != DeclaredHardware::default() {
            return Err(ConfigurationError::DeclaredUnchecked);
        }
        options.python.clone_from(&self.python);
        options.nodejs.clone_from(&self.nodejs);
        options.confinement = self.confinement.as_deref().map(confinement).transpose()?;
        set(&mut options.cgroup, self.cgroup.as_deref(), cgroup)?;
        set(&mut options.sandbox, self.sandbox.as_deref(), sandbox)?;
        options.sandbox_hidden = self.sandbox_hide.clone().unwrap_or_default();
        set(&mut options.sandbox_scratch_bytes, self.sandbox_scratch.as_deref(), |text| Ok(size(text)? as u64))?;
        options.sandbox_processes = self.sandbox_processes.unwrap_or(options.sandbox_processes);
        options.container_engine.clone_from(&self.container_engine);
        set(&mut options.container_preferred, self.containers.as_deref(), containers)?;
        if let Some(network) = &self.container_network {
            options.container_network.clone_from(network);
        }
        let (allowed, loaders) = (self.collect_allow.iter().flatten(), self.loaders.iter().flatten());
        options.collect_allowed = allowed.map(|text| Exemption::read(text)).collect::<Result<_, _>>()?;
        options.loaders = loaders.map(|text| Loader::read(text)).collect::<Result<_, _>>()?;
        options.noop = self.noop.unwrap_or(false);
        Ok(options)
    }

    fn secrets(&self) -> Result<SecretSources, ConfigurationError> {
        let mut secrets = SecretSources { file: self.secrets_file.clone(), ..SecretSources::default() };
        secrets.directory = self.secrets_dir.clone().or(secrets.directory);
        set(&mut secrets.prefix, self.secrets_prefix.as_deref(), secrets_prefix)?;
        if let Some(names) = &self.secrets_allowed {
            secrets.allowed = Rules::Only(names.iter().filter(|name| !name.is_empty()).cloned().collect());
        }
        Ok(secrets)
    }

    fn declared(&self) -> Result<DeclaredHardware, ConfigurationError> {
        let architecture = match self.pool_arch.as_deref() {
            None | Some("any") => None,
            Some(word) => Some(atlas_inventory::architecture(word).ok_or_else(|| ConfigurationError::Value {
                value: word.to_owned(),
                what: "a processor family (x86_64, arm64, any)",
            })?),
        };
        Ok(DeclaredHardware {
            gpus: self.gpus,
            gpu_vram_gb: self.gpu_vram.clone().unwrap_or_default(),
            memory_gb: self.pool_memory,
            cores: self.pool_cpus,
            architecture,
            devices: self.pool_devices.clone().unwrap_or_default(),
        })
    }

    /// The configuration as a file.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }
}

fn set<T>(
    to: &mut T,
    text: Option<&str>,
    read: impl Fn(&str) -> Result<T, ConfigurationError>,
) -> Result<(), ConfigurationError> {
    if let Some(text) = text {
        *to = read(text)?;
    }
    Ok(())
}
