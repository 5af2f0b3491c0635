//! The container engine of a node: which client reaches it, and what an earlier process of this worker left there.
//!
//! No call of a client outlasts [`ANSWER_MAX`]: an engine that hangs is one that does not answer.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use atlas_env::Env;
use sha2::{Digest as _, Sha256};
use tokio::sync::Mutex;
use tracing::warn;

use crate::Options;
use crate::cgroup::Limits;
use crate::process::{Spawn, Supervisor};
use crate::provider::command::{self, Keep};

/// How long a client may take.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The pauses before a container is removed again.
const REMOVED_AFTER: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(10)];

/// The most bytes of an answer: the ids of some thousand containers.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Variables of the worker that clients of engines read.
const OF_ENGINES: [&str; 7] = [
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    "DOCKER_CONTEXT",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
    "CONTAINER_HOST",
    "XDG_RUNTIME_DIR",
];

/// Names of programs that start containers, in the order in which they are tried.
const ENGINES: [&str; 2] = ["docker", "podman"];

/// How agents run in containers on this node.
#[derive(Debug)]
pub(crate) struct Containers {
    /// The client of the engine that the operator chose.
    chosen: Option<OsString>,
    /// The network of agents that may use one.
    pub(super) network: String,
    /// The labels of this worker's containers. The name of a node is unique in its cluster only, and clusters may share an
    /// engine.
    pub(super) labels: [String; 2],
    /// The complete environment of clients.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// True if agents run without a container where no engine answers.
    pub(super) preferred: bool,
    is_available: AtomicBool,
    search: Mutex<Search>,
}

/// The search for an engine. Only one is under way at a time, and no container is started before it has ended.
#[derive(Debug, Default)]
struct Search {
    /// The client whose engine answered.
    found: Option<OsString>,
    /// When the last search ended without success.
    failed: Option<Duration>,
}

impl Containers {
    /// `passed` are the variables that the operator passes on.
    pub(crate) fn new(options: &Options, passed: &[(OsString, OsString)]) -> Self {
        let absolute = |name: &String| match name.contains('/') {
            // Fails only without a working directory.
            true => std::path::absolute(name).map_or_else(|_| name.into(), PathBuf::into_os_string),
            false => name.into(),
        };
        let own = OF_ENGINES.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        let worker = Sha256::digest(options.data_dir.as_os_str().as_encoded_bytes());
        let worker: String = worker.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Self {
            chosen: options.container_engine.as_ref().map(absolute),
            network: options.container_network.clone(),
            labels: [format!("atlas.node={}", options.node), format!("atlas.worker={worker}")],
            environment: passed.iter().cloned().chain(own).collect(),
            preferred: options.container_preferred,
            is_available: AtomicBool::new(options.container_preferred),
            search: Mutex::default(),
        }
    }

    /// Whether agents that ask for a container run on this node.
    pub(crate) fn is_available(&self) -> bool {
        self.is_available.load(Ordering::Relaxed)
    }

    /// Searches for an engine, if a client is installed here, and removes what an earlier process of this worker left. Jobs wait for it.
    pub(crate) async fn look(&self, env: &Env, supervisor: &Arc<Supervisor>) {
        let path = self.environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone());
        let folders: Vec<PathBuf> = path.iter().flat_map(std::env::split_paths).collect();
        let is_there = |name: &OsStr| match Path::new(name).is_absolute() {
            true => Path::new(name).exists(),
            false => folders.iter().any(|folder| folder.join(name).exists()),
        };
        if self.names().iter().any(|name| is_there(name)) {
            self.engine(env, supervisor).await;
        }
    }

    /// Whether an engine has answered.
    pub(crate) async fn is_found(&self) -> bool {
        self.search.lock().await.found.is_some()
    }

    fn names(&self) -> Vec<OsString> {
        self.chosen.as_ref().map_or_else(|| ENGINES.map(OsString::from).to_vec(), |chosen| vec![chosen.clone()])
    }

    /// The client whose engine answers. An engine that does not is asked again by the next job.
    pub(super) async fn engine(&self, env: &Env, supervisor: &Arc<Supervisor>) -> Option<OsString> {
        let began = env.clock.monotonic();
        let mut search = self.search.lock().await;
        if search.found.is_some() || search.failed.is_some_and(|failed| failed >= began) {
            return search.found.clone();
        }
        for name in self.names() {
            let client = Client { env, supervisor, program: name, environment: &self.environment };
            // A client whose engine does not answer knows its own version all the same.
            let Some(_) = client.ask(&["version", "--format", "{{.Server.Version}}"]).await else { continue };
            self.remove_earlier(&client).await;
            search.found = Some(client.program);
            self.is_available.store(true, Ordering::Relaxed);
            return search.found.clone();
        }
        search.failed = Some(env.clock.monotonic());
        None
    }

    /// Removes containers that an earlier process of this worker left.
    async fn remove_earlier(&self, client: &Client<'_>) {
        let filters = self.labels.each_ref().map(|label| format!("label={label}"));
        let listed = client.ask(&["ps", "--all", "--quiet", "--filter", &filters[0], "--filter", &filters[1]]).await;
        let listed = listed.map(|listed| String::from_utf8_lossy(&listed).into_owned());
        let ids: Vec<&str> = listed.as_deref().unwrap_or_default().split_whitespace().collect();
        let removed = ids.is_empty() || client.remove(&ids).await;
        if listed.is_none() || !removed {
            warn!("containers of an earlier process of this worker could not be removed");
        }
    }

    /// Removes a container, which ends it. One that has ended is removed by the engine itself.
    pub(super) async fn remove(&self, program: &OsStr, name: &str, env: &Env, supervisor: &Arc<Supervisor>) {
        let client = Client { env, supervisor, program: program.to_owned(), environment: &self.environment };
        client.remove(&[name]).await;
    }

    /// Removes a container again after a while, in the background: an engine that was just making it when it was asked first had nothing
    /// to remove, or refused.
    pub(super) fn remove_later(&self, program: &OsStr, name: &str, env: &Env, supervisor: &Arc<Supervisor>) {
        let (program, name, environment) = (program.to_owned(), name.to_owned(), self.environment.clone());
        let (own, supervisor) = (env.clone(), Arc::clone(supervisor));
        drop(env.spawn("remove container", async move {
            for pause in REMOVED_AFTER {
                own.clock.sleep(pause).await;
                let client =
                    Client { env: &own, supervisor: &supervisor, program: program.clone(), environment: &environment };
                client.remove(&[&name]).await;
            }
        }));
    }
}

/// The program that speaks to an engine.
struct Client<'a> {
    env: &'a Env,
    supervisor: &'a Arc<Supervisor>,
    program: OsString,
    environment: &'a [(OsString, OsString)],
}

impl Client<'_> {
    async fn remove(&self, names: &[&str]) -> bool {
        self.ask(&[&["rm", "--force"], names].concat()).await.is_some()
    }

    /// What a call prints. None if it fails, or takes too long: then it is killed.
    async fn ask(&self, arguments: &[&str]) -> Option<Vec<u8>> {
        let (supervisor, program) = (Arc::clone(self.supervisor), self.program.clone());
        let arguments = arguments.iter().map(OsString::from).collect();
        let environment = self.environment.to_vec();
        let start = move |stdout, stderr| {
            supervisor.spawn(Spawn {
                program,
                arguments,
                directory: Path::new("/"),
                environment,
                stdin: Stdio::null(),
                stdout,
                stderr,
                passed: Vec::new(),
                limits: Limits::default(),
                sandbox: None,
                own_directory: None,
                makes_code: false,
                // A container is removed after its lease as well.
                leased: false,
                shares_pids: true,
                after: Vec::new(),
            })
        };
        let keep = (Keep::First(ANSWER_BYTES_MAX), Keep::Last(0));
        tokio::select! {
            ended = command::to_end(self.env, keep, start) => {
                ended.ok().filter(|ended| ended.status.success()).map(|ended| ended.stdout)
            }
            () = self.env.clock.sleep(ANSWER_MAX) => None,
        }
    }
}

/// True for a variable that a client, its libraries or the loader of programs read: a secret of this name would change
/// what the client does, which has the rights of the worker.
pub(super) fn is_of_client(name: &str) -> bool {
    /// Beginnings of names.
    const FAMILIES: [&str; 13] = [
        "LD_",
        "GLIBC_",
        "MALLOC_",
        "DOCKER_",
        "CONTAINER_",
        "CONTAINERS_",
        "_CONTAINERS_",
        "PODMAN_",
        "BUILDKIT_",
        "BUILDX_",
        "XDG_",
        "SSL_CERT_",
        "BASH",
    ];
    const NAMES: [&str; 26] = [
        "PATH",
        "HOME",
        "TMPDIR",
        "ENV",
        "IFS",
        "PS4",
        "SHELLOPTS",
        "GODEBUG",
        "GOTRACEBACK",
        "GOCOVERDIR",
        "GCONV_PATH",
        "LOCPATH",
        "NLSPATH",
        "HOSTALIASES",
        "LOCALDOMAIN",
        "RES_OPTIONS",
        "RESOLV_HOST_CONF",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "REGISTRY_AUTH_FILE",
        "STORAGE_DRIVER",
        "STORAGE_OPTS",
        "SSH_AUTH_SOCK",
        "DBUS_SESSION_BUS_ADDRESS",
    ];
    // Some are read in small letters as well.
    let name = name.to_ascii_uppercase();
    NAMES.contains(&name.as_str()) || FAMILIES.iter().any(|family| name.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_clients_are_no_secrets_of_agents() {
        for name in ["LD_PRELOAD", "DOCKER_HOST", "https_proxy", "PATH", "GODEBUG"] {
            assert!(is_of_client(name), "{name}");
        }
        for name in ["TOKEN", "GOOGLE_API_KEY", "MY_DOCKER_HOST", "OLD_PATH", "AWS_SECRET_ACCESS_KEY", "ENVIRONMENT"] {
            assert!(!is_of_client(name), "{name}");
        }
    }
}
