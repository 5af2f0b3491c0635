//! How long a controller takes to be back with a log of 100,000 jobs.

use anyhow::Result;
use atlas_dev::{Options, Ports};
use atlas_env::Env;
use futures::future::try_join_all;
use serde_json::json;

use crate::cluster;
use crate::figures::Row;
use crate::http::{Connection, request};

const JOBS: usize = 100_000;
const CONNECTIONS: usize = 200;

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
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
        Ok(vec![Row::amount("recovery_100k_jobs", took, "s").value_against("3 s", 3.0)])
    })
}
