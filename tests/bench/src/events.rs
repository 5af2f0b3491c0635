//! Measures how fast many subscribers hear of changes: each follows all jobs over a connection of its own.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, ensure};
use atlas_env::Env;
use futures::future::try_join_all;
use memchr::memmem::Finder;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::cluster;
use crate::figures::Row;
use crate::http::{Connection, request, request_with};

const SUBSCRIBERS: usize = 1_000;
/// Jobs are submitted in batches, one in each interval. A job has four changes.
const BATCH: usize = 25;
const BATCHES: u32 = 100;
const INTERVAL: Duration = Duration::from_millis(50);
/// What the subscribers shall hear of, each.
const EVENTS_PER_S: f64 = 2_000.0;
const PLACES: u32 = 64;
/// The agent of the job that ends a measurement.
const LAST: &str = "noop-last";
/// The line of a frame with what it says.
const DATA: &[u8] = b"\ndata:";

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let runtime = atlas_dev::runtime()?;
    let cluster = runtime.block_on(cluster::start(env, PLACES))?;
    let http = cluster.http();
    runtime.block_on(async {
        for name in ["noop", LAST] {
            cluster::register(http, name, "{ type: exec, command: [\"@noop\"] }", Vec::new()).await?;
        }
        anyhow::Ok(())
    })?;
    let client = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (events, took) = client.block_on(async {
        let (hears, mut heard) = mpsc::channel(SUBSCRIBERS);
        let subscribers = try_join_all((0..SUBSCRIBERS).map(|_| follow(http, hears.clone())));
        let measured = async {
            for _ in 0..SUBSCRIBERS {
                ensure!(heard.recv().await.is_some(), "a subscriber was not connected");
            }
            let begun = env.clock.monotonic();
            submit(env, http).await?;
            Ok(begun)
        };
        let (counts, begun) = tokio::try_join!(subscribers, measured)?;
        let took = env.clock.monotonic() - begun;
        let most = counts.iter().copied().max().unwrap_or_default();
        ensure!(counts.iter().all(|count| *count == most), "subscribers heard of different numbers of changes");
        anyhow::Ok((most, took))
    })?;
    runtime.block_on(cluster.shutdown());
    let rate = events as f64 / took.as_secs_f64();
    let row = Row { concurrency: SUBSCRIBERS, ..Row::amount("events_heard", rate, "1/s") };
    Ok(vec![row.value_against(&format!("{EVENTS_PER_S} 1/s"), EVENTS_PER_S)])
}

/// Follows all jobs until the last one, and counts the changes. Says when it is connected.
async fn follow(http: SocketAddr, connected: mpsc::Sender<()>) -> Result<usize> {
    let mut stream = TcpStream::connect(http).await?;
    stream.write_all(&request_with("GET", "/api/events", &[("accept", "text/event-stream")], b"")).await?;
    let mut buffer = vec![0; 64 << 10];
    let (data, last) = (Finder::new(DATA), Finder::new(LAST));
    // What could be the beginning of a word is kept at the front.
    let (mut kept, mut count, mut is_first) = (0, 0, true);
    loop {
        let read = stream.read(&mut buffer[kept..]).await?;
        ensure!(read > 0, "a subscriber was disconnected after {count} changes");
        if std::mem::take(&mut is_first) {
            ensure!(buffer.starts_with(b"HTTP/1.1 200"), "a subscriber was refused");
            connected.send(()).await?;
        }
        let text = &buffer[..kept + read];
        let (end, ends_at) = (text.len(), last.find(text));
        let frames = data.find_iter(&text[..ends_at.unwrap_or(end)]);
        count += frames.filter(|at| at + DATA.len() > kept).count();
        if ends_at.is_some() {
            return Ok(count);
        }
        kept = (LAST.len() - 1).min(end);
        buffer.copy_within(end - kept..end, 0);
    }
}

/// Submits jobs at a steady rate, and the last one when all others have ended.
async fn submit(env: &Env, http: SocketAddr) -> Result<()> {
    let jobs = vec![json!({"agent": "noop", "input": {}}); BATCH];
    let batch = request("POST", "/api/jobs:batch?queue_wait=30", json!({ "jobs": jobs }).to_string().as_bytes());
    let mut connection = Connection::open(http).await?;
    let begun = env.clock.monotonic();
    for number in 0..BATCHES {
        connection.send(&batch).await?;
        let wait = (begun + INTERVAL * (number + 1)).saturating_sub(env.clock.monotonic());
        env.clock.sleep(wait).await;
    }
    let last = json!({"agent": LAST, "input": {}, "priority": -1}).to_string();
    connection.send(&request("POST", "/api/jobs?wait=30", last.as_bytes())).await?;
    Ok(())
}
