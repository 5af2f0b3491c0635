//! Measures how fast many subscribers hear of changes: each follows all jobs over a connection of its own.

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use anyhow::{Result, ensure};
use atlas_env::Env;
use futures::future::try_join_all;
use memchr::memmem::Finder;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::cluster;
use crate::figures::Row;
use crate::http::{Connection, request, request_with};

const SUBSCRIBERS: usize = 1_000;
/// Jobs are submitted in batches, one in each interval: 2,000 a second. Of each, a subscriber hears of two changes, its start and its end.
const BATCH: usize = 50;
const BATCHES: u32 = 200;
const INTERVAL: Duration = Duration::from_millis(25);
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
        // Its memory stays in the processor's cache, so that the subscribers take as little as they can from the server beside them.
        let buffer = RefCell::new(vec![0; 64 << 10]);
        let subscribers = try_join_all((0..SUBSCRIBERS).map(|_| follow(http, &buffer, hears.clone())));
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
async fn follow(http: SocketAddr, buffer: &RefCell<Vec<u8>>, connected: mpsc::Sender<()>) -> Result<usize> {
    let mut stream = TcpStream::connect(http).await?;
    stream.write_all(&request_with("GET", "/api/events", &[("accept", "text/event-stream")], b"")).await?;
    let mut heard =
        Heard { changes: 0, is_over: false, tail: Vec::new(), data: Finder::new(DATA), last: Finder::new(LAST) };
    let mut connected = Some(connected);
    while !heard.is_over {
        poll_fn(|context| heard.poll(&mut stream, &mut buffer.borrow_mut(), context)).await?;
        if let Some(connected) = connected.take() {
            connected.send(()).await?;
        }
    }
    Ok(heard.changes)
}

/// What a subscriber has heard.
struct Heard {
    changes: usize,
    is_over: bool,
    /// The end of what was read, because it could be the beginning of a word.
    tail: Vec<u8>,
    data: Finder<'static>,
    last: Finder<'static>,
}

impl Heard {
    /// Reads once, and looks at all of it.
    fn poll(&mut self, stream: &mut TcpStream, buffer: &mut [u8], context: &mut Context<'_>) -> Poll<Result<()>> {
        let kept = self.tail.len();
        let mut space = ReadBuf::new(&mut buffer[kept..]);
        ready!(Pin::new(stream).poll_read(context, &mut space))?;
        let end = kept + space.filled().len();
        buffer[..kept].copy_from_slice(&self.tail);
        Poll::Ready(self.look(&buffer[..end]))
    }

    /// Looks at what was read, with what was kept before it.
    fn look(&mut self, text: &[u8]) -> Result<()> {
        let kept = self.tail.len();
        ensure!(text.len() > kept, "a subscriber was disconnected after {} changes", self.changes);
        ensure!(kept > 0 || text.starts_with(b"HTTP/1.1 200"), "a subscriber was refused");
        let ends_at = self.last.find(text);
        self.is_over = ends_at.is_some();
        let frames = self.data.find_iter(&text[..ends_at.unwrap_or(text.len())]);
        self.changes += frames.filter(|at| at + DATA.len() > kept).count();
        self.tail.clear();
        self.tail.extend_from_slice(&text[text.len().saturating_sub(LAST.len() - 1)..]);
        Ok(())
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
