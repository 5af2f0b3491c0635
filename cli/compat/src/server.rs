//! What `atlas serve` and `atlas mcp` share: a cluster in this process with the agents and skills of two folders.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use atlas_cli::{Client, Failure};
use atlas_dev::Cluster;
use atlas_env::Env;
use atlas_mcp_spec::Remote;
use futures::future::join_all;

use super::answer::Refusal;
use super::folder;

/// The folders of `--agents-path` and `--skills-path`.
#[derive(Debug, clap::Args)]
pub(super) struct Folders {
    /// Folder of agents.
    #[arg(long, alias = "agents", default_value = "./agents", value_name = "DIR")]
    pub(super) agents_path: PathBuf,
    /// Folder of skills.
    #[arg(long, alias = "skills", default_value = "./skills", value_name = "DIR")]
    pub(super) skills_path: PathBuf,
    /// Another Atlas whose tools and agents are used here; repeatable.
    #[arg(long, value_name = "NAME=URL[@TOKEN]", value_parser = Remote::parse)]
    pub(super) remote: Vec<Remote>,
}

/// How many agents and skills a cluster got.
#[derive(Debug, Clone, Copy)]
pub(super) struct Served {
    pub(super) agents: usize,
    pub(super) skills: usize,
}

impl Folders {
    /// Starts a cluster and gives it everything in the folders. What cannot be used is skipped with a warning.
    pub(super) async fn serve(&self, options: atlas_dev::Options) -> Result<(Cluster, Served), Refusal> {
        let agents = folder::agents(&self.agents_path);
        let cluster = Cluster::start(options, Env::system()).await.map_err(|error| refused(&error))?;
        let filled = async {
            let client = Client::new(&format!("http://{}", local(cluster.http())))?;
            let mut served = Served { agents: 0, skills: 0 };
            for found in &agents {
                let package = atlas_package::pack(&found.dir);
                let package = package.map_err(|error| Failure::usage(atlas_env::chain(&error)))?;
                client.register(package.bytes, true).await?;
                served.agents += 1;
            }
            for bytes in skills(&self.skills_path) {
                client.deploy_skill(bytes, true).await?;
                served.skills += 1;
            }
            Ok(served)
        };
        match filled.await {
            Ok(served) => {
                self.connect(&cluster).await;
                Ok((cluster, served))
            }
            Err(error) => {
                let error: Failure = error;
                cluster.shutdown().await;
                Err(told(&error))
            }
        }
    }
}

impl Folders {
    /// Adds the other instances, all at the same time. One that cannot be reached has no tools and agents, and a warning says so.
    async fn connect(&self, cluster: &Cluster) {
        let server = format!("http://{}", local(cluster.http()));
        let connect = async |Remote { name, url, token, .. }: &Remote| {
            let token = token.as_deref().filter(|token| !token.is_empty());
            let added = match Client::new(&server) {
                Ok(client) => atlas_cli::add_peer(&client, name, url, token).await,
                Err(failure) => Err(failure),
            };
            match added {
                Ok(added) => added.left_out.iter().for_each(|why| folder::warn("atlas.remote", why)),
                Err(failure) => {
                    folder::warn("atlas.remote", &format!("Could not connect to remote '{name}': {}", failure.message));
                }
            }
        };
        join_all(self.remote.iter().map(connect)).await;
    }
}

/// The packages of the skills in a folder.
fn skills(path: &Path) -> Vec<Vec<u8>> {
    let mut packages = Vec::new();
    for found in atlas_package::discover_skills(path) {
        match found.skill.and_then(|_| atlas_package::pack_skill(&found.dir)) {
            Ok(package) => packages.push(package.bytes),
            Err(error) => {
                let text = format!("{}: {}", found.dir.display(), atlas_env::chain(&error));
                folder::warn("atlas.skills", &text);
            }
        }
    }
    packages
}

/// The address at which this machine reaches a door that listens on all of its addresses.
pub(super) fn local(address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() { SocketAddr::from((Ipv4Addr::LOCALHOST, address.port())) } else { address }
}

/// Completes when this process should end.
pub(super) async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let interrupt = tokio::signal::ctrl_c();
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! {
                _ = interrupt => {}
                _ = terminate.recv() => {}
            }
        }
        Err(_) => drop(interrupt.await),
    }
}

pub(super) fn refused(error: &(dyn std::error::Error + 'static)) -> Refusal {
    Refusal::new(format!("Error: {}", atlas_env::chain(error)))
}

pub(super) fn told(failure: &Failure) -> Refusal {
    Refusal::new(format!("Error: {}", failure.message))
}
