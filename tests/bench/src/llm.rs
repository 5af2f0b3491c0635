//! Measures what Atlas adds to calls of a model: time for each call, and memory for calls that run at once.
//!
//! The model server is in this process and answers at once. It always calls a tool that does not exist, so that an agent
//! makes as many calls as it may, one after the other.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_env::Env;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::cluster;
use crate::figures::Row;
use crate::http::{Connection, request};
use crate::process::{Running, free_address, program, resident_mib};

/// Calls of the agent that makes many.
const CALLS: u32 = 101;

/// Jobs of each agent, and how many before them are not counted.
const JOBS: usize = 20;
const JOBS_NOT_COUNTED: usize = 3;

/// Calls that run at once when memory is measured.
const AT_ONCE: usize = 1_000;

/// How long the server takes for each of the [`PIECES`] of a slow answer.
const PIECE_EVERY: Duration = Duration::from_millis(200);
const PIECES: usize = 100;

/// When memory is read, after all calls have begun.
const SETTLED: Duration = Duration::from_secs(4);

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let call = overhead(env, serve(env, false).await?).await?;
        let memory = memory(env, serve(env, true).await?).await?;
        Ok(vec![call, memory])
    })
}

/// The time of one call: the difference between jobs with many calls and jobs with one, by the number of calls.
async fn overhead(env: &Env, model: SocketAddr) -> Result<Row> {
    let (_dev, http) = dev(env, model, &[]).await?;
    for (name, calls) in [("one-call", 1), ("many-calls", CALLS)] {
        let provider = format!("{{ type: llm, system_prompt: Measured., max_iterations: {calls} }}");
        cluster::register(http, name, &provider, Vec::new()).await?;
    }
    let mut connection = Connection::open(http).await?;
    let (mut calls, mut all) = (Vec::with_capacity(JOBS), Duration::ZERO);
    for turn in 0..JOBS_NOT_COUNTED + JOBS {
        let one = job(env, &mut connection, "one-call").await?;
        let many = job(env, &mut connection, "many-calls").await?;
        let call = many.saturating_sub(one) / (CALLS - 1);
        if turn >= JOBS_NOT_COUNTED {
            calls.push(call);
            all += call;
        }
    }
    Ok(Row::rate("model_call", 1, calls, all).median_against("1 ms", Some(1_000.0)))
}

async fn job(env: &Env, connection: &mut Connection, agent: &str) -> Result<Duration> {
    let body = json!({"agent": agent, "input": {}}).to_string();
    let begun = env.clock.monotonic();
    let answer: Value =
        serde_json::from_slice(connection.send(&request("POST", "/api/jobs?wait=60", body.as_bytes())).await?)?;
    let took = env.clock.monotonic() - begun;
    ensure!(answer["status"] == "completed", "a job of {agent} did not complete: {answer}");
    Ok(took)
}

/// The resident memory of a worker that reads many answers at once, each in pieces.
async fn memory(env: &Env, model: SocketAddr) -> Result<Row> {
    let folder = tempfile::tempdir_in(".")?;
    let (http, workers) = (free_address()?, free_address()?);
    let _controller = Running::start(
        Command::new(program("atlas-controller")?).arg("--data-dir").arg(folder.path().join("controller")).args([
            "--http-listen",
            &http,
            "--worker-listen",
            &workers,
            "--peer-listen",
            "127.0.0.1:0",
        ]),
        |line| line.contains("controller started"),
    )?;
    let mut worker = Command::new(program("atlas-worker")?);
    worker.arg("--data-dir").arg(folder.path().join("worker")).args(["--controller", &workers]);
    worker.args(["--llm-places", &AT_ONCE.to_string()]).envs(keys(model));
    let worker = Running::start(&mut worker, |line| line.contains("session open"))?;
    let http: SocketAddr = http.parse()?;
    cluster::register(http, "slow", "{ type: llm, system_prompt: Measured. }", Vec::new()).await?;
    let mut connection = Connection::open(http).await?;
    let submit = request("POST", "/api/jobs", json!({"agent": "slow", "input": {}}).to_string().as_bytes());
    for _ in 0..AT_ONCE {
        connection.send(&submit).await?;
    }
    let running = request("GET", "/api/jobs?status=running&limit=1000", b"");
    let deadline = env.clock.monotonic() + Duration::from_secs(15);
    loop {
        let jobs: Value = serde_json::from_slice(connection.send(&running).await?)?;
        if jobs.as_array().is_some_and(|jobs| jobs.len() == AT_ONCE) {
            break;
        }
        ensure!(env.clock.monotonic() < deadline, "not all jobs run");
        env.clock.sleep(Duration::from_millis(100)).await;
    }
    env.clock.sleep(SETTLED).await;
    Ok(Row::amount("model_calls_1000", resident_mib(&worker)?, "MiB").value_against("200 MiB", 200.0))
}

/// A controller and a worker in one process.
async fn dev(env: &Env, model: SocketAddr, options: &[&str]) -> Result<(Running, SocketAddr)> {
    let http: SocketAddr = free_address()?.parse()?;
    let mut command = Command::new(program("atlasctl")?);
    command.args(["dev", "--ephemeral", "--agents", "./no-agents", "--port", &http.port().to_string()]);
    command.args(options).envs(keys(model));
    let dev = Running::start(&mut command, |line| line.starts_with("Ready"))?;
    let mut connection = Connection::open(http).await?;
    let deadline = env.clock.monotonic() + Duration::from_secs(30);
    loop {
        let nodes: Value = serde_json::from_slice(connection.send(&request("GET", "/api/nodes", b"")).await?)?;
        if nodes.as_array().is_some_and(|nodes| nodes.iter().any(|node| node["health"] == "ready")) {
            return Ok((dev, http));
        }
        ensure!(env.clock.monotonic() < deadline, "no node registered");
        env.clock.sleep(Duration::from_millis(10)).await;
    }
}

/// The environment of a worker that calls the model server.
fn keys(model: SocketAddr) -> [(&'static str, String); 2] {
    [("ANTHROPIC_BASE_URL", format!("http://{model}")), ("ANTHROPIC_API_KEY", "measured".to_owned())]
}

/// A server for the messages protocol of Anthropic.
async fn serve(env: &Env, slow: bool) -> Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = env.clone();
    env.spawn("model server", async move {
        while let Ok((stream, _)) = listener.accept().await {
            let env = server.clone();
            // A worker that was stopped breaks its connections.
            server.spawn("model connection", async move { drop(converse(&env, stream, slow).await) });
        }
    });
    Ok(address)
}

async fn converse(env: &Env, mut stream: TcpStream, slow: bool) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(16 << 10);
    loop {
        let Some(body) = body(&mut stream, &mut buffer).await? else { return Ok(()) };
        let streams = serde_json::from_slice::<Value>(&body)?["stream"] == json!(true);
        match (streams, slow) {
            (true, true) => {
                stream.write_all(HEAD.as_bytes()).await?;
                stream.write_all(&event("message_start", &started())).await?;
                stream.write_all(&event("content_block_start", &json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}))).await?;
                for _ in 0..PIECES {
                    env.clock.sleep(PIECE_EVERY).await;
                    let delta = json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a few words of text "}});
                    stream.write_all(&event("content_block_delta", &delta)).await?;
                }
                let stop = json!({"type": "content_block_stop", "index": 0});
                let rest = [event("content_block_stop", &stop), ending("end_turn"), b"0\r\n\r\n".to_vec()].concat();
                stream.write_all(&rest).await?;
            }
            (true, false) => {
                let block = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t1", "name": "none", "input": {}}});
                let stop = json!({"type": "content_block_stop", "index": 0});
                let all = [
                    HEAD.as_bytes().to_vec(),
                    event("message_start", &started()),
                    event("content_block_start", &block),
                    event("content_block_stop", &stop),
                    ending("tool_use"),
                    b"0\r\n\r\n".to_vec(),
                ];
                stream.write_all(&all.concat()).await?;
            }
            (false, _) => {
                if slow {
                    env.clock.sleep(PIECE_EVERY * 100).await;
                }
                let answer = json!({
                    "id": "m", "type": "message", "role": "assistant", "model": "measured", "stop_reason": "tool_use",
                    "content": [{"type": "tool_use", "id": "t1", "name": "none", "input": {}}],
                    "usage": {"input_tokens": 1, "output_tokens": 1},
                });
                let answer = answer.to_string();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
                    answer.len()
                );
                stream.write_all([head, answer].concat().as_bytes()).await?;
            }
        }
    }
}

const HEAD: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

fn started() -> Value {
    json!({"type": "message_start", "message": {
        "id": "m", "type": "message", "role": "assistant", "model": "measured", "content": [], "stop_reason": null,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }})
}

fn ending(reason: &str) -> Vec<u8> {
    let delta = json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 1}});
    [event("message_delta", &delta), event("message_stop", &json!({"type": "message_stop"}))].concat()
}

/// One event as a chunk.
fn event(name: &str, data: &Value) -> Vec<u8> {
    let text = format!("event: {name}\ndata: {data}\n\n");
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// The body of the next request; none at the end of the connection.
async fn body(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Option<Vec<u8>>> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            let length: usize = length.context("a request without a length")?;
            if buffer.len() >= end + 4 + length {
                let rest = buffer.split_off(end + 4 + length);
                let request = std::mem::replace(buffer, rest);
                return Ok(Some(request[end + 4..].to_vec()));
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}
