//! Measures lists of jobs with a million ended jobs: by agent, status, label, time and text, and deep pages.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use atlas_dev::{Options, Ports};
use atlas_env::Env;
use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::cluster;
use crate::figures::Row;
use crate::http::{Connection, request};
use crate::process::bytes_below;

const JOBS: usize = 1_000_000;
const CONNECTIONS: usize = 200;
/// One job in so many has a rare label, is of a rare agent, or failed.
const RARE: usize = 1_000;
/// Lists of each kind, and the longest that one should take.
const LISTS: usize = 20;
const LIST_MAX_US: f64 = 50_000.0;

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir_in(".")?;
    let runtime = atlas_dev::runtime()?;
    runtime.block_on(async {
        let options = Options {
            data: Some(folder.path().to_owned()),
            noop: true,
            places: Some(256),
            ..Options::new(Ports::choose(0)?)
        };
        let cluster = cluster::start_with(env, options).await?;
        let http = cluster.http();
        for agent in ["noop", "rare"] {
            cluster::register(http, agent, "{ type: exec, command: [\"@noop\"] }", Vec::new()).await?;
        }
        let begun = env.clock.monotonic();
        try_join_all((0..CONNECTIONS).map(|connection| fill(http, connection))).await?;
        let took = (env.clock.monotonic() - begun).as_secs_f64();
        let mut rows = vec![Row::amount("history_fill", JOBS as f64 / took, "1/s")];
        // The middle of all jobs, for times and pages.
        let middle = middle(http).await?;
        let (id, time) = (text(&middle["id"])?, &middle["created_at"]);
        for (name, query) in [
            ("newest", String::new()),
            ("agent", "agent=rare".to_owned()),
            ("status", "status=failed".to_owned()),
            ("agent_status", "agent=unheard&status=failed".to_owned()),
            ("label", "label=wave=rare".to_owned()),
            ("label_common", "label=team=blue".to_owned()),
            ("time", format!("until={time}")),
            ("agent_time", format!("agent=rare&until={time}")),
            ("text", "text=unheard".to_owned()),
            ("text_common", "text=blue".to_owned()),
            ("page", format!("before={id}")),
            ("label_page", format!("label=team=blue&before={id}")),
        ] {
            rows.push(list(env, http, name, &query).await?);
        }
        cluster.shutdown().await;
        let bytes = bytes_below(folder.path(), "history.sqlite")?;
        rows.push(Row::amount("history_file", bytes as f64 / 1024.0 / JOBS as f64, "KiB"));
        Ok(rows)
    })
}

/// Submits the jobs of one connection, one after the other.
async fn fill(http: SocketAddr, connection: usize) -> Result<()> {
    let mut open = Connection::open(http).await?;
    for number in (connection..JOBS).step_by(CONNECTIONS) {
        let (rare, other) = (number % RARE == 0, number % RARE == RARE / 2);
        let agent = if rare { "rare" } else { "noop" };
        let labels = if other { json!({"team": "blue", "wave": "rare"}) } else { json!({"team": "blue"}) };
        // An agent that does not exist fails its job at once, with an error that has its name.
        let agent = if other { "unheard" } else { agent };
        let body = json!({"agent": agent, "labels": labels}).to_string();
        open.send(&request("POST", "/api/jobs?wait=60", body.as_bytes())).await?;
    }
    Ok(())
}

/// A job of about the middle of all jobs.
async fn middle(http: SocketAddr) -> Result<Value> {
    let mut open = Connection::open(http).await?;
    let page =
        open.send(&request("GET", &format!("/api/jobs?agent=rare&limit=1&offset={}", JOBS / RARE / 2), b"")).await?;
    let page: Value = serde_json::from_slice(page)?;
    page.get(0).cloned().context("no jobs in the middle")
}

fn text(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).context("a text is missing")
}

/// Asks for the first fifty jobs of a list, several times.
async fn list(env: &Env, http: SocketAddr, name: &str, query: &str) -> Result<Row> {
    let mut open = Connection::open(http).await?;
    let asked = request("GET", &format!("/api/jobs?limit=50&{query}"), b"");
    let mut latencies = Vec::with_capacity(LISTS);
    let begun = env.clock.monotonic();
    for _ in 0..LISTS {
        let sent = env.clock.monotonic();
        let page = open.send(&asked).await?;
        latencies.push(env.clock.monotonic() - sent);
        let page: Vec<Value> = serde_json::from_slice(page)?;
        ensure!(!page.is_empty(), "no jobs for {query}");
    }
    let took = env.clock.monotonic() - begun;
    Ok(Row::rate(&format!("history_{name}"), 1, latencies, took).median_against("50 ms", Some(LIST_MAX_US)))
}
