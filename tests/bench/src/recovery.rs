//! Measures how long a controller takes to restart with a log of 100,000 jobs, and a member with a log of 1,000,000
//! commands.

use anyhow::Result;
use atlas_dev::{Options, Ports};
use atlas_env::Env;
use futures::future::try_join_all;
use serde_json::json;

use crate::figures::Row;
use crate::http::{Connection, request};
use crate::{cluster, commit};

const JOBS: usize = 100_000;
const CONNECTIONS: usize = 200;

/// The number of commands in a log, and of concurrent proposers. An entry contains the commands that have gathered.
const COMMANDS: usize = 1_000_000;
const PROPOSERS: usize = 250;

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    Ok(vec![jobs(env)?, commands(env)?])
}

/// Measures from the start of a cluster with the data until a node is ready.
fn jobs(env: &Env) -> Result<Row> {
    let folder = tempfile::tempdir_in(".")?;
    let runtime = atlas_dev::runtime()?;
    let options = |noop| -> Result<Options> {
        let data = Some(folder.path().to_owned());
        Ok(Options { data, noop, places: Some(256), ..Options::new(Ports::choose(0)?) })
    };
    runtime.block_on(async {
        let cluster = cluster::start_with(env, options(true)?).await?;
        let http = cluster.http();
        cluster::register(http, "noop", "{ type: exec, command: [\"@noop\"] }", Vec::new()).await?;
        let submit = request("POST", "/api/jobs?wait=30", json!({"agent": "noop"}).to_string().as_bytes());
        let one = || async {
            let mut connection = Connection::open(http).await?;
            for _ in 0..JOBS / CONNECTIONS {
                connection.send(&submit).await?;
            }
            anyhow::Ok(())
        };
        try_join_all((0..CONNECTIONS).map(|_| one())).await?;
        cluster.shutdown().await;
        let begun = env.clock.monotonic();
        let cluster = cluster::start_with(env, options(true)?).await?;
        let took = (env.clock.monotonic() - begun).as_secs_f64();
        cluster.shutdown().await;
        Ok(Row::amount("recovery_100k_jobs", took, "s").value_against("3 s", 3.0))
    })
}

/// Measures from the start of a member until its first commit. By then it has applied its whole log.
fn commands(env: &Env) -> Result<Row> {
    let folder = tempfile::tempdir_in(".")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (handle, service) = commit::start(env, folder.path()).await?;
        let node = commit::register(&handle).await?;
        let one = || async {
            for number in 0..COMMANDS / PROPOSERS {
                commit::cordon(&handle, &node, number.is_multiple_of(2)).await?;
            }
            anyhow::Ok(())
        };
        try_join_all((0..PROPOSERS).map(|_| one())).await?;
        // The log is closed only when there are no handles left.
        drop(handle);
        service.shutdown().await;
        let begun = env.clock.monotonic();
        let (handle, service) = commit::start(env, folder.path()).await?;
        commit::cordon(&handle, &node, true).await?;
        let took = (env.clock.monotonic() - begun).as_secs_f64();
        service.shutdown().await;
        Ok(Row::amount("recovery_1m_commands", took, "s").value_against("10 s", 10.0))
    })
}
