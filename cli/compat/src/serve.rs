//! `atlas serve`: a cluster of one node with the agents and skills of two folders, on the addresses of Atlas for Python.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use atlas_dev::{CompatibleMcp, DevSettings, Ports, Token};

use super::answer::{Answer, Refusal, print};
use super::server::{self, Folders};
use super::{mcp, orchestrator};

/// Options of `atlas serve`.
#[derive(Debug, clap::Args)]
pub(super) struct Options {
    #[command(flatten)]
    folders: Folders,
    /// Address for HTTP.
    #[arg(long, default_value = "0.0.0.0", value_name = "ADDRESS")]
    host: String,
    /// Port for HTTP; 0 selects a free port.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Keep jobs in a folder beside this file, which has its name and the ending `.atlas`; without it they are lost at the end.
    #[arg(long, value_name = "FILE")]
    db: Option<PathBuf>,
    /// Maximum number of concurrent jobs.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    max_concurrent: u32,
    /// Maximum number of idle slots.
    #[arg(long, default_value_t = 2)]
    warm_pool_size: u32,
    /// Serve MCP on this port as well; 0 selects a free port.
    #[arg(long, value_name = "PORT")]
    mcp_port: Option<u16>,
    /// Orchestrator that decides on jobs from the start: an agent of the type orchestrator in the folder.
    #[arg(long, value_name = "NAME")]
    orchestrator: Option<String>,
    /// Folder of trigger files.
    #[arg(long, value_name = "DIR")]
    triggers_path: Option<String>,
    /// Accepted for compatibility; triggers fire at their times.
    #[arg(long, value_name = "SECONDS")]
    trigger_poll: Option<f64>,
    /// Bearer token that MCP clients must send.
    #[arg(long, env = "ATLAS_AUTH_TOKEN", hide_env_values = true, value_name = "TOKEN")]
    auth_token: Option<String>,
    /// Offer each agent as an MCP tool as well.
    #[arg(long)]
    all_agents: bool,
    #[command(flatten)]
    shared: Shared,
    #[command(flatten)]
    hardware: Hardware,
}

/// Where memory and knowledge are kept. Without any of it, the cluster keeps them.
#[derive(Debug, clap::Args)]
struct Shared {
    /// Keep the shared memory in this file.
    #[arg(long, value_name = "FILE")]
    memory: Option<String>,
    /// Keep the shared memory at this server; --memory comes before it.
    #[arg(long, value_name = "URL")]
    memory_url: Option<String>,
    /// Bearer token for the server of --memory-url.
    #[arg(long, env = "ATLAS_MEMORY_AUTH", hide_env_values = true, value_name = "TOKEN")]
    memory_auth: Option<String>,
    /// Keep knowledge in this folder, DOMAIN/ID.md.
    #[arg(long, value_name = "DIR")]
    knowledge: Option<String>,
    /// Keep knowledge at this server; --knowledge comes before it.
    #[arg(long, value_name = "URL")]
    knowledge_url: Option<String>,
    /// Keep knowledge at this MCP server; --knowledge and --knowledge-url come before it.
    #[arg(long, value_name = "URL")]
    knowledge_mcp_url: Option<String>,
    /// Bearer token for the server of --knowledge-url or --knowledge-mcp-url.
    #[arg(long, env = "ATLAS_KNOWLEDGE_AUTH", hide_env_values = true, value_name = "TOKEN")]
    knowledge_auth: Option<String>,
    /// YAML file with protected_domains, which agents write only if their contracts name them.
    #[arg(long, value_name = "FILE")]
    knowledge_policy: Option<String>,
}

impl Shared {
    /// Where both are, if not in the cluster: a line each.
    fn lines(&self) -> String {
        let memory = [&self.memory, &self.memory_url];
        let knowledge = [&self.knowledge, &self.knowledge_url, &self.knowledge_mcp_url];
        let line = |what: &str, places: &[&Option<String>]| {
            let place = places.iter().find_map(|place| place.as_deref().filter(|place| !place.is_empty()));
            place.map(|place| format!("{what}: {place}\n")).unwrap_or_default()
        };
        line("Memory", &memory) + &line("Knowledge", &knowledge)
    }

    fn set(&self, settings: &mut DevSettings) {
        for (flag, value) in [
            ("memory-file", &self.memory),
            ("memory-url", &self.memory_url),
            ("memory-token", &self.memory_auth),
            ("knowledge-folder", &self.knowledge),
            ("knowledge-url", &self.knowledge_url),
            ("knowledge-mcp-url", &self.knowledge_mcp_url),
            ("knowledge-token", &self.knowledge_auth),
            ("knowledge-policy", &self.knowledge_policy),
        ] {
            value.iter().filter(|value| !value.is_empty()).for_each(|value| settings.set_controller(flag, value));
        }
    }
}

/// The declared hardware. Without any of it, the demands of jobs are not checked.
#[derive(Debug, clap::Args)]
struct Hardware {
    /// Number of GPUs.
    #[arg(long, value_name = "N")]
    gpus: Option<String>,
    /// Memory of each GPU in GB, separated by commas.
    #[arg(long, value_name = "GB,...")]
    gpu_vram: Option<String>,
    /// Memory in GB.
    #[arg(long, value_name = "GB")]
    pool_memory: Option<String>,
    /// Number of cores.
    #[arg(long, value_name = "N")]
    pool_cpus: Option<String>,
    /// Architecture.
    #[arg(long, value_name = "NAME")]
    pool_arch: Option<String>,
    /// Path of a device.
    #[arg(long, value_name = "PATH")]
    pool_device: Vec<String>,
}

impl Hardware {
    /// The options of the worker; none if nothing is declared.
    fn settings(&self) -> Option<DevSettings> {
        let mut settings = DevSettings::default();
        let arch = self.pool_arch.as_ref().filter(|arch| *arch != "any");
        for (flag, value) in [
            ("gpus", self.gpus.as_ref()),
            ("gpu-vram", self.gpu_vram.as_ref()),
            ("pool-memory", self.pool_memory.as_ref()),
            ("pool-cpus", self.pool_cpus.as_ref()),
            ("pool-arch", arch),
        ] {
            value.into_iter().for_each(|value| settings.set_worker(flag, value));
        }
        self.pool_device.iter().for_each(|device| settings.set_worker("pool-device", device));
        (settings != DevSettings::default()).then_some(settings)
    }
}

pub(super) fn run(options: &Options) -> Answer {
    let runtime = atlas_dev::runtime().map_err(|error| Refusal::new(format!("Error: {error}")))?;
    runtime.block_on(serve(options)).map(|()| String::new())
}

async fn serve(options: &Options) -> Result<(), Refusal> {
    let host = mcp::host(&options.host)?;
    let http = SocketAddr::new(host, options.port);
    let mut cluster = atlas_dev::Options::new(Ports { http, workers: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) });
    cluster.node = Some("local".to_owned());
    cluster.places = Some(options.max_concurrent);
    cluster.warm_pool_size = Some(options.warm_pool_size);
    cluster.data = options.db.as_ref().map(|db| {
        let mut folder = db.clone().into_os_string();
        folder.push(".atlas");
        folder.into()
    });
    let hardware = options.hardware.settings();
    cluster.hardware_checks = hardware.is_some();
    cluster.settings = hardware.unwrap_or_default();
    options.shared.set(&mut cluster.settings);
    if let Some(folder) = &options.triggers_path {
        cluster.settings.set_controller("triggers-path", folder);
    }
    cluster.compatible = options.mcp_port.map(|port| CompatibleMcp {
        listen: Some(SocketAddr::new(host, port)),
        token: options.auth_token.as_deref().and_then(Token::new),
        pool: true,
        all_agents: options.all_agents,
    });
    let (cluster, served) = options.folders.serve(cluster).await?;
    let selected = match &options.orchestrator {
        Some(name) => orchestrator::select_at(&format!("http://{}", server::local(cluster.http())), Some(name)).await,
        None => Ok(String::new()),
    };
    let selected = match selected {
        Ok(selected) => selected,
        Err(failure) => {
            cluster.shutdown().await;
            return Err(Refusal::new(format!("Error: {}", failure.message)));
        }
    };
    let mut lines = format!("Agents: {}\nSkills: {}\n", served.agents, served.skills);
    lines += &options.shared.lines();
    if !selected.is_empty() {
        lines += &format!("Orchestrator: {selected}\n");
    }
    if let Some(mcp) = cluster.compatible_mcp() {
        lines += &format!("MCP server on http://{mcp}/mcp\n");
    }
    lines += &format!("Atlas serving on http://{}\n", cluster.http());
    let printed = print(&lines);
    let done = tokio::select! {
        () = server::interrupted(), if printed.is_ok() => printed,
        reason = cluster.failed() => Err(Refusal::new(format!("Error: {reason}"))),
    };
    cluster.shutdown().await;
    done
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    #[test]
    fn a_file_comes_before_a_server() {
        let lines = |line: &[&str]| Line::parse_from([&["serve"], line].concat()).options.shared.lines();
        assert_eq!(lines(&["--memory-url", "http://a/m", "--memory", "m.txt"]), "Memory: m.txt\n");
        assert_eq!(lines(&["--knowledge-url", "http://a/k", "--memory", ""]), "Knowledge: http://a/k\n");
    }

    #[test]
    fn hardware_counts_if_any_of_it_is_declared() {
        let settings = |line: &[&str]| {
            let line = Line::parse_from([&["serve"], line].concat());
            line.options.hardware.settings()
        };
        assert_eq!(settings(&[]), None);
        assert_eq!(settings(&["--pool-arch", "any"]), None);
        assert!(settings(&["--gpus", "2", "--gpu-vram", "16,24"]).is_some());
        assert!(settings(&["--pool-device", "/dev/a", "--pool-device", "/dev/b"]).is_some());
    }
}
