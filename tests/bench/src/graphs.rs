//! Measures graphs: what a super-step costs beside a job, a map over many items, and how long a run with many merges takes to go on.

use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_dev::{Options, Ports};
use atlas_env::Env;
use atlas_package::pack;
use serde_json::{Value, json};

use crate::cluster;
use crate::figures::Row;
use crate::http::{Connection, request};
use crate::model::job;

/// Nodes of the long graph, and jobs of each kind.
const NODES: u32 = 50;
const JOBS: usize = 20;
const JOBS_NOT_COUNTED: usize = 3;
const ITEMS: usize = 1_000;
/// Merges of the run that goes on, and how long that may take.
const MERGES: u32 = 10_000;
const RESUME_MS: f64 = 200.0;
const PATIENCE: Duration = Duration::from_secs(300);

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let runtime = atlas_dev::runtime()?;
    let options = Options { places: Some(64), noop: true, ..Options::new(Ports::choose(0)?) };
    let cluster = runtime.block_on(cluster::start_with(env, options))?;
    let http = cluster.http();
    runtime.block_on(cluster::register(http, "noop", "{ type: exec, command: [\"@noop\"] }", Vec::new()))?;
    // On a thread of its own, like the clients of other benchmarks.
    let client = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut rows = client.block_on(steps(env, http))?;
    rows.push(client.block_on(map(env, http))?);
    rows.push(client.block_on(resume(env, http))?);
    runtime.block_on(cluster.shutdown());
    Ok(rows)
}

async fn register(http: SocketAddr, name: &str, graph: &str, script: Option<&str>) -> Result<()> {
    let folder = tempfile::tempdir_in(".")?;
    let agent = folder.path().join(name);
    fs::create_dir_all(&agent)?;
    fs::write(agent.join("graph.yaml"), graph)?;
    if let Some(script) = script {
        fs::write(agent.join("step.sh"), script)?;
    }
    let package = pack(&agent).with_context(|| format!("could not pack {name}"))?;
    Connection::open(http).await?.send(&request("POST", "/api/agents", &package.bytes)).await?;
    Ok(())
}

/// A graph of so many nodes in a row, each of which is a job that does nothing.
fn row_of_nodes(name: &str, nodes: u32) -> String {
    let node = |number: u32| {
        let next = if number + 1 < nodes { format!("n{}", number + 1) } else { "e".to_owned() };
        format!("  n{number}: {{type: agent, agent: noop, prompt: go, next: {next}}}\n")
    };
    let start = if nodes == 0 { "e" } else { "n0" };
    let all: String = (0..nodes).map(node).collect();
    format!("name: {name}\nstart: {start}\nnodes:\n{all}  e: {{type: end, output: done}}\n")
}

/// The time of one super-step: the difference between a long graph and one without nodes, by the number of nodes.
async fn steps(env: &Env, http: SocketAddr) -> Result<Vec<Row>> {
    register(http, "empty", &row_of_nodes("empty", 0), None).await?;
    register(http, "long", &row_of_nodes("long", NODES), None).await?;
    let mut connection = Connection::open(http).await?;
    let prompt = json!({"message": "go"});
    let (mut jobs, mut graphs, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..JOBS_NOT_COUNTED + JOBS {
        let one = job(env, &mut connection, "noop", &json!({})).await?;
        let empty = job(env, &mut connection, "empty", &prompt).await?;
        let long = job(env, &mut connection, "long", &prompt).await?;
        if turn >= JOBS_NOT_COUNTED {
            jobs.push(one);
            graphs.push(empty);
            steps.push(long.saturating_sub(empty) / NODES);
        }
    }
    let row = |name: &str, times: Vec<Duration>| {
        let all = times.iter().sum();
        Row::rate(name, 1, times, all)
    };
    let alone = row("graph_job_alone", jobs);
    let limit = alone.p50_us.map(|median| 2.0 * median);
    let empty = row("graph_empty", graphs);
    let step = row("graph_step", steps).median_against("2 jobs", limit);
    Ok(vec![alone, empty, step])
}

/// A map over many items, each of which is a job that does nothing.
async fn map(env: &Env, http: SocketAddr) -> Result<Row> {
    let items: Vec<usize> = (0..ITEMS).collect();
    let graph = format!(
        "name: map\nstart: m\ninitial_state: {{items: {}}}\nnodes:\n  m: {{type: map, over: '{{{{items}}}}', as: item, branch: b, collect_into: all, max_concurrency: 64, next: e}}\n  b: {{type: agent, agent: noop, prompt: 'item {{{{item}}}}', state_updates: {{output: '{{{{output}}}}'}}}}\n  e: {{type: end, output: done}}\n",
        json!(items)
    );
    register(http, "map", &graph, None).await?;
    let mut connection = Connection::open(http).await?;
    job(env, &mut connection, "map", &json!({"message": "go"})).await?;
    let took = job(env, &mut connection, "map", &json!({"message": "go"})).await?;
    Ok(Row::amount("graph_map_1000", took.as_secs_f64() * 1e3, "ms"))
}

/// A run that has made many merges parks at a question. Measured is the time from the answer to the end of the job, which replays them.
async fn resume(env: &Env, http: SocketAddr) -> Result<Row> {
    let graph = format!(
        "name: loop\nstart: s\ninitial_state: {{n: 0}}\nsettings: {{max_loop_iterations: {}}}\nnodes:\n  s: {{type: script, script: step.sh, next: q}}\n  q: {{type: approval, question: 'go on?', options: [yes], routes: {{yes: e}}, on_other: e}}\n  e: {{type: end, output: '{{{{n}}}}'}}\n",
        MERGES + 10
    );
    let script = format!(
        "#!/bin/sh\nn=${{GRAPH_STATE#*\\\"n\\\":}}\nn=${{n%%[!0-9]*}}\nn=$((n + 1))\nif [ $n -ge {MERGES} ]; then next=q; else next=s; fi\nprintf '{{\"n\": %s, \"_next\": \"%s\"}}' $n $next\n"
    );
    register(http, "loop", &graph, Some(&script)).await?;
    let mut connection = Connection::open(http).await?;
    let body = json!({"agent": "loop", "input": {"message": "go"}, "questions": "wait"}).to_string();
    let made: Value = serde_json::from_slice(connection.send(&request("POST", "/api/jobs", body.as_bytes())).await?)?;
    let id = made["id"].as_str().context("an id")?.to_owned();
    let deadline = env.clock.monotonic() + PATIENCE;
    let (shown, asked) = (format!("/api/jobs/{id}?view=full"), format!("/api/questions?job={id}"));
    let question = loop {
        let job: Value = serde_json::from_slice(connection.send(&request("GET", &shown, b"")).await?)?;
        ensure!(job["error"] == "", "the run failed: {job}");
        let open: Value = serde_json::from_slice(connection.send(&request("GET", &asked, b"")).await?)?;
        let open = open.as_array().or(open["questions"].as_array()).and_then(|all| all.first()?["id"].as_str());
        if let Some(question) = open.filter(|_| job["reason"] == "parked") {
            break question.to_owned();
        }
        ensure!(env.clock.monotonic() < deadline, "the run does not ask: {job}");
        env.clock.sleep(Duration::from_millis(100)).await;
    };
    let begun = env.clock.monotonic();
    let answer = json!({"answer": "yes"}).to_string();
    let path = format!("/api/questions/{question}/answer");
    connection.send(&request("POST", &path, answer.as_bytes())).await?;
    let wait = format!("/api/jobs/{id}?wait=60");
    let job: Value = serde_json::from_slice(connection.send(&request("GET", &wait, b"")).await?)?;
    let took = env.clock.monotonic() - begun;
    ensure!(job["status"] == "completed", "the run did not end: {job}");
    Ok(Row::amount("graph_resume_10000", took.as_secs_f64() * 1e3, "ms").value_against("200 ms", RESUME_MS))
}
