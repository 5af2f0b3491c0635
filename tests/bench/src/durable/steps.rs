//! Steps that do nothing: how long one takes, as the program sees it, and how many there are in a second with many workflows.

use std::time::Duration;

use anyhow::Result;
use atlas_env::Env;
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::site::{NODE, PYTHON, Site, ended, output, times};
use crate::figures::Row;
use crate::http::{Connection, request};

/// Steps of a job whose steps are timed, how many jobs there are, and how many more before them are not counted.
const STEPS: u64 = 200;
const JOBS: usize = 10;
const JOBS_NOT_COUNTED: usize = 2;
/// The longest that a step should take.
const STEP_MAX_US: f64 = 1_500.0;
/// Steps of a workflow, workflows at the same time, and for how long.
pub(super) const WORKFLOW: u64 = 20;
pub(super) const AT_ONCE: usize = 32;
pub(super) const MEASURED: Duration = Duration::from_secs(5);
const WARM_UP: Duration = Duration::from_secs(3);

/// What other systems are compared with.
pub(super) struct Ours {
    pub(super) step: Row,
    pub(super) in_flight: Row,
}

pub(super) async fn run(env: &Env) -> Result<(Vec<Row>, Ours)> {
    let at_once = AT_ONCE.to_string();
    let site = Site::start(env, &["--places", &at_once, "--warm-pool-size", &at_once]).await?;
    let mut connection = site.open().await?;
    let mut rows = Vec::new();
    for (name, agent, input) in [
        ("durable_step_python", PYTHON, json!({ "steps": STEPS })),
        ("durable_step_python_thread", PYTHON, json!({ "steps": STEPS, "thread": true })),
        ("durable_step_node", NODE, json!({ "steps": STEPS })),
    ] {
        let row = steps(&mut connection, name, (agent, &input)).await?;
        rows.push(row.median_against("1.5 ms", Some(STEP_MAX_US)));
    }
    let body = json!({"agent": PYTHON, "input": {"steps": WORKFLOW}}).to_string();
    let workflow = request("POST", "/api/jobs?wait=60", body.as_bytes());
    rows.push(load(env, site.http, "durable_steps_python", &workflow, ended).await?);
    let ours = Ours { step: rows[0].clone(), in_flight: rows[rows.len() - 1].clone() };
    Ok((rows, ours))
}

/// Runs jobs one after the other, and takes the times of their steps.
async fn steps(connection: &mut Connection, name: &str, (agent, input): (&str, &Value)) -> Result<Row> {
    let mut all = Vec::new();
    for number in 0..JOBS_NOT_COUNTED + JOBS {
        let took = times(&output(connection, agent, input).await?)?;
        if number >= JOBS_NOT_COUNTED {
            all.extend(took);
        }
    }
    let took = all.iter().sum();
    Ok(Row::rate(name, 1, all, took))
}

/// Keeps workflows in flight, each client on a connection of its own. The row has steps a second, and how long steps took in the programs.
pub(super) async fn load(
    env: &Env,
    address: std::net::SocketAddr,
    name: &str,
    run: &[u8],
    read: fn(&[u8]) -> Result<Value>,
) -> Result<Row> {
    let warm = env.clock.monotonic() + WARM_UP;
    let until = warm + MEASURED;
    let one = || async {
        let mut connection = Connection::open(address).await?;
        let mut took = Vec::new();
        loop {
            let begun = env.clock.monotonic();
            if begun > until {
                return anyhow::Ok(took);
            }
            let output = read(connection.send(run).await?)?;
            // A workflow counts where it ends.
            if (warm..=until).contains(&env.clock.monotonic()) {
                took.extend(times(&output)?);
            }
        }
    };
    let all = try_join_all((0..AT_ONCE).map(|_| one())).await?;
    Ok(Row::rate(name, AT_ONCE, all.concat(), MEASURED))
}
