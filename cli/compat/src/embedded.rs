//! Runs one job on a controller and a worker that this command starts and stops.

use std::time::Duration;

use atlas_cli::{Client, Failure};
use atlas_dev::{Cluster, Ports};
use atlas_env::Env;
use atlas_package::DiscoveredAgent;
use serde_json::{Value, json};

use super::answer::Refusal;

/// The job to run.
pub(super) struct Plan<'p> {
    /// All agents that the job may call.
    pub(super) agents: &'p [DiscoveredAgent],
    pub(super) agent: &'p str,
    pub(super) input: &'p Value,
    /// Priority; higher runs first.
    pub(super) priority: i64,
    /// Maximum number of concurrent jobs.
    pub(super) places: u32,
    /// Maximum number of idle slots.
    pub(super) warm_pool_size: u32,
    /// Maximum time to wait for the end; none waits for the contract's execution timeout.
    pub(super) patience: Option<Duration>,
}

/// How many jobs run at once, and how many slots stay warm.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    pub(super) places: u32,
    pub(super) warm_pool_size: u32,
}

/// Runs the job; returns it as the API shows it. It has ended, unless `patience` ran out first.
pub(super) fn run(plan: &Plan<'_>) -> Result<Value, Refusal> {
    let places = Places { places: plan.places, warm_pool_size: plan.warm_pool_size };
    within(plan.agents, places, async |client| submit(plan, client).await)
}

/// Does something with a cluster that has these agents.
pub(super) fn within(
    agents: &[DiscoveredAgent],
    places: Places,
    work: impl AsyncFnOnce(&Client) -> Result<Value, Failure>,
) -> Result<Value, Refusal> {
    let runtime = atlas_dev::runtime().map_err(|error| Refusal::new(format!("Error: {error}")))?;
    runtime.block_on(async {
        let ports = Ports::choose(0).map_err(|error| refused(&error))?;
        let mut options = atlas_dev::Options::new(ports);
        options.node = Some("local".to_owned());
        options.places = Some(places.places);
        options.warm_pool_size = Some(places.warm_pool_size);
        // Atlas for Python checks hardware only if flags declare it, and these verbs have no such flags.
        options.hardware_checks = false;
        let cluster = Cluster::start(options, Env::system()).await.map_err(|error| refused(&error))?;
        let job = tokio::select! {
            job = with_agents(agents, &cluster, work) => job,
            // The shutdown of the cluster below stops the agents.
            _ = tokio::signal::ctrl_c() => Err(Failure::usage("interrupted")),
        };
        cluster.shutdown().await;
        job.map_err(|failure| Refusal::new(format!("Error: {}", failure.message)))
    })
}

async fn with_agents(
    agents: &[DiscoveredAgent],
    cluster: &Cluster,
    work: impl AsyncFnOnce(&Client) -> Result<Value, Failure>,
) -> Result<Value, Failure> {
    let client = Client::new(&format!("http://{}", cluster.http()))?;
    for found in agents {
        let package = atlas_package::pack(&found.dir);
        let package = package.map_err(|error| Failure::usage(atlas_env::chain(&error)))?;
        client.register(package.bytes, true).await?;
    }
    work(&client).await
}

async fn submit(plan: &Plan<'_>, client: &Client) -> Result<Value, Failure> {
    let body = json!({"agent": plan.agent, "input": plan.input, "priority": plan.priority});
    let answer = client.post(&["api", "jobs"], &[], &body).await?;
    let id = answer["id"].as_str().ok_or_else(|| Failure::answer("a submission is answered with an id"))?;
    atlas_cli::wait(client, id, plan.patience).await?;
    client.get(&["api", "jobs", id], &[]).await
}

fn refused(error: &(dyn std::error::Error + 'static)) -> Refusal {
    Refusal::new(format!("Error: {}", atlas_env::chain(error)))
}
