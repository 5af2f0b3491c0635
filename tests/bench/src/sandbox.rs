//! Measures what a sandbox costs: the start of a confined process, and a job in one that is warm.

use anyhow::Result;
use atlas_env::Env;

use crate::cluster;
use crate::figures::Row;
use crate::jobs::{AGENT_VERB, Kind, in_turn, submit};

/// Turns of each kind. A cold job takes ten times as long as a warm one.
const TURNS: usize = 6;

/// The permissions of a confined agent, in its contract.
const CONFINED: &str = "permissions: { filesystem: [read], network: [] }";

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let runtime = atlas_dev::runtime()?;
    let cluster = runtime.block_on(cluster::start(env, 4))?;
    let http = cluster.http();
    let cold = "{ type: exec, command: [echo, \"{}\"] }";
    let warm = format!("{{ type: exec, command: [\"@atlas\", \"{AGENT_VERB}\"], mode: warm }}");
    let confined = |provider: &str| format!("{provider}\n  {CONFINED}");
    runtime.block_on(async {
        cluster::register(http, "cold", cold, Vec::new()).await?;
        cluster::register(http, "cold-confined", &confined(cold), Vec::new()).await?;
        cluster::register(http, "warm", &warm, Vec::new()).await?;
        cluster::register(http, "warm-confined", &confined(&warm), Vec::new()).await
    })?;
    let job = |name, agent| Kind { name, request: submit(agent), parts: 1 };
    let kinds = [
        job("exec_cold", "cold"),
        job("exec_cold_confined", "cold-confined"),
        job("exec_warm", "warm"),
        job("exec_warm_confined", "warm-confined"),
    ];
    let [cold, cold_confined, warm, warm_confined] = in_turn(env, http, TURNS, kinds)?;
    let (cold_us, warm_us) = (cold.p50_us, warm.p50_us);
    runtime.block_on(cluster.shutdown());
    Ok(vec![
        cold,
        cold_confined.median_against("the same, not confined", cold_us),
        warm,
        warm_confined.median_against("the same, not confined", warm_us),
    ])
}
