//! Measures what composes jobs: triggers that are due at the same moment, and the conversion between two steps of a chain.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use atlas_dev::{DevSettings, Options, Ports};
use atlas_env::Env;
use atlas_mediation::{Context, MediationResult, Plan, mediate};
use clap::{Args as _, Command, FromArgMatches as _};
use futures::future::try_join_all;
use serde_json::{Map, Value, json};

use crate::cluster;
use crate::figures::Row;
use crate::http::{Connection, request};

/// The number of triggers that are due at the same time, and of the connections that make them.
const TRIGGERS: usize = 10_000;
const CONNECTIONS: usize = 64;

/// The time to make all triggers.
const BEFORE: Duration = Duration::from_secs(30);

/// How long all triggers may take to fire.
const PATIENCE: Duration = Duration::from_secs(60);

/// The most time for all of them that users should see.
const WANTED_MS: f64 = 2_000.0;

/// The number of fields of an object that is converted, and how often it is converted.
const FIELDS: usize = 10;
const CONVERSIONS: usize = 20_000;

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let mut rows = vec![hop(env, "mediation_mapped", "record_")?, hop(env, "mediation_direct", "")?];
    let runtime = atlas_dev::runtime()?;
    // The queue takes the jobs of all triggers: a refused firing would be repeated 10 s later.
    let matches = DevSettings::augment_args(Command::new("bench")).try_get_matches_from([
        "bench",
        "--queue-max-size",
        "20000",
    ])?;
    let settings = DevSettings::from_arg_matches(&matches)?;
    let options = Options { places: Some(64), noop: true, settings, ..Options::new(Ports::choose(0)?) };
    let cluster = runtime.block_on(cluster::start_with(env, options))?;
    let http = cluster.http();
    runtime.block_on(cluster::register(http, "noop", "{ type: exec, command: [\"@noop\"] }", Vec::new()))?;
    // On a thread of its own, like the clients of other benchmarks.
    let client = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    rows.push(client.block_on(triggers_due(env, http))?);
    runtime.block_on(cluster.shutdown());
    Ok(rows)
}

/// From the moment at which all triggers are due until the job of the last one is submitted.
async fn triggers_due(env: &Env, http: SocketAddr) -> Result<Row> {
    let wall = Duration::from_micros(u64::try_from(env.clock.wall().0)?);
    let begun = env.clock.monotonic();
    let due = (wall + BEFORE).as_secs();
    let due_at = begun + Duration::from_secs(due).saturating_sub(wall);
    let make = |connection: usize| async move {
        let mut open = Connection::open(http).await?;
        for number in (connection..TRIGGERS).step_by(CONNECTIONS) {
            let trigger = json!({
                "id": format!("due-{number}"), "trigger_type": "one_shot", "fire_at": due, "agent_name": "noop",
            });
            open.send(&request("POST", "/api/triggers", trigger.to_string().as_bytes())).await?;
        }
        anyhow::Ok(())
    };
    try_join_all((0..CONNECTIONS).map(make)).await?;
    ensure!(env.clock.monotonic() < due_at, "the triggers were not made in time");
    let mut connection = Connection::open(http).await?;
    let metrics = request("GET", "/metrics", b"");
    loop {
        env.clock.sleep(Duration::from_millis(20)).await;
        let took = env.clock.monotonic().saturating_sub(due_at);
        if fired(connection.send(&metrics).await?)? >= TRIGGERS {
            let milliseconds = took.as_secs_f64() * 1e3;
            return Ok(Row::amount("triggers_due_10000", milliseconds, "ms").value_against("2 s", WANTED_MS));
        }
        ensure!(took < PATIENCE, "not all triggers fired within {PATIENCE:?}");
    }
}

/// The number of firings in a page of metrics.
fn fired(page: &[u8]) -> Result<usize> {
    let page = std::str::from_utf8(page)?;
    let line = page.lines().find_map(|line| line.strip_prefix("atlas_trigger_firings_total"));
    line.and_then(|value| value.trim().parse().ok()).context("the metrics have no count of firings")
}

/// The conversion of one object, from fields whose names have `prefix` to fields without it.
fn hop(env: &Env, name: &str, prefix: &str) -> Result<Row> {
    let schema = |prefix: &str| {
        let fields = (0..FIELDS).map(|field| (format!("{prefix}field_{field}"), json!({ "type": "string" })));
        let required: Vec<String> = (0..FIELDS).map(|field| format!("{prefix}field_{field}")).collect();
        json!({ "type": "object", "properties": fields.collect::<Map<_, _>>(), "required": required })
    };
    let (source, target) = (schema(prefix), schema(""));
    let data: Map<String, Value> =
        (0..FIELDS).map(|field| (format!("{prefix}field_{field}"), json!("a value"))).collect();
    let map: Map<String, Value> =
        (0..FIELDS).map(|field| (format!("field_{field}"), json!(format!("{prefix}field_{field}")))).collect();
    let (mut latencies, mut all) = (Vec::with_capacity(CONVERSIONS), Duration::ZERO);
    let context = Context::default();
    for _ in 0..CONVERSIONS {
        let begun = env.clock.monotonic();
        let map = (!prefix.is_empty()).then_some(&map);
        let plan = Plan { source: &source, target: &target, map, context: &context };
        let (_, outcome) = mediate(plan, &data);
        let took = env.clock.monotonic() - begun;
        ensure!(
            matches!(outcome, Ok(MediationResult::Data(data)) if data.len() == FIELDS),
            "{name}: the data is not converted"
        );
        latencies.push(took);
        all += took;
    }
    Ok(Row::rate(name, 1, latencies, all).median_against("20 µs", Some(20.0)))
}
