//! Measures durable code: a step, a replay, parked agents and their waking, with a controller and a worker as processes; and the same
//! workflow of steps in Restate and in DBOS, in the same run.

mod parked;
mod peers;
mod replay;
mod site;
mod state;
mod steps;

use anyhow::Result;
use atlas_env::Env;

use crate::figures::Row;

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut rows, ours) = steps::run(env).await?;
        rows.extend(peers::run(env, &ours).await?);
        rows.extend(replay::run(env).await?);
        rows.push(state::run()?);
        rows.extend(parked::run(env).await?);
        Ok(rows)
    })
}
