//! A development cluster in this process, and the agents used for measurements.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use atlas_dev::{Cluster, Options, Ports};
use atlas_env::Env;
use atlas_package::{PackFile, pack_files};
use serde_json::Value;

use crate::http::{Connection, request};

/// Starts an ephemeral cluster whose node runs `places` jobs at once, and waits until the node is ready.
pub(crate) async fn start(env: &Env, places: u32) -> Result<Cluster> {
    let options = Options { places: Some(places), noop: true, ..Options::new(Ports::choose(0)?) };
    start_with(env, options).await
}

/// Like [`start`], with the caller's options.
pub(crate) async fn start_with(env: &Env, options: Options) -> Result<Cluster> {
    let cluster = Cluster::start(options, env.clone()).await.context("could not start the cluster")?;
    let mut connection = Connection::open(cluster.http()).await?;
    let nodes = request("GET", "/api/nodes", b"");
    let deadline = env.clock.monotonic() + std::time::Duration::from_secs(30);
    loop {
        let answer: Value = serde_json::from_slice(connection.send(&nodes).await?)?;
        if answer.as_array().is_some_and(|nodes| nodes.iter().any(|node| node["health"] == "ready")) {
            return Ok(cluster);
        }
        ensure!(env.clock.monotonic() < deadline, "no node registered");
        env.clock.sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Registers an agent that answers `{}`, with the given provider, a line of YAML.
pub(crate) async fn register(http: SocketAddr, name: &str, provider: &str, files: Vec<PackFile>) -> Result<()> {
    let contract =
        format!("agent:\n  name: {name}\n  version: 1.0.0\n  description: Measured.\n  provider: {provider}\n");
    let contract = PackFile { path: "agent.yaml".to_owned(), bytes: contract.into_bytes(), executable: false };
    let package = pack_files([vec![contract], files].concat()).with_context(|| format!("could not pack {name}"))?;
    Connection::open(http).await?.send(&request("POST", "/api/agents", &package.bytes)).await?;
    Ok(())
}
