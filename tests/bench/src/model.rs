//! A model server in this process that answers at once. Its answers are calls of a tool, so an agent makes as many model calls as it
//! may, one after the other.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use atlas_env::Env;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::http::{Connection, request};
use crate::process::{Running, free_address, program};

/// How long the server takes for each of the [`PIECES`] of a slow answer.
const PIECE_EVERY: Duration = Duration::from_millis(200);
const PIECES: usize = 100;

/// Helpers that one answer starts.
const SPAWNED: usize = 100;

/// Runs a job to its end, and returns how long it took.
pub(crate) async fn job(env: &Env, connection: &mut Connection, agent: &str, input: &Value) -> Result<Duration> {
    let body = json!({"agent": agent, "input": input}).to_string();
    let begun = env.clock.monotonic();
    let answer: Value =
        serde_json::from_slice(connection.send(&request("POST", "/api/jobs?wait=600", body.as_bytes())).await?)?;
    let took = env.clock.monotonic() - begun;
    ensure!(answer["status"] == "completed", "a job of {agent} did not complete: {answer}");
    Ok(took)
}

/// A controller and a worker in one process.
pub(crate) async fn dev(env: &Env, model: SocketAddr, options: &[&str]) -> Result<(Running, SocketAddr)> {
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
pub(crate) fn keys(model: SocketAddr) -> [(&'static str, String); 2] {
    [("ANTHROPIC_BASE_URL", format!("http://{model}")), ("ANTHROPIC_API_KEY", "measured".to_owned())]
}

/// A server for the messages protocol of Anthropic.
pub(crate) async fn serve(env: &Env, slow: bool) -> Result<SocketAddr> {
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
        let asked: Value = serde_json::from_slice(&body)?;
        let streams = asked["stream"] == json!(true);
        let calls = calls(&asked);
        let slow = slow && calls.as_ref().is_none_or(|calls| calls.iter().all(|(name, _)| *name == "none"));
        let calls = calls.unwrap_or_default();
        let blocks = calls.iter().enumerate().map(
            |(place, (name, input))| json!({"type": "tool_use", "id": format!("t{place}"), "name": name, "input": input}),
        );
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
                let mut all = [HEAD.as_bytes().to_vec(), event("message_start", &started())].concat();
                for (index, mut block) in blocks.enumerate() {
                    let input = std::mem::replace(&mut block["input"], json!({})).to_string();
                    let start = json!({"type": "content_block_start", "index": index, "content_block": block});
                    let delta = json!({"type": "input_json_delta", "partial_json": input});
                    let delta = json!({"type": "content_block_delta", "index": index, "delta": delta});
                    all.extend(event("content_block_start", &start));
                    all.extend(event("content_block_delta", &delta));
                    all.extend(event("content_block_stop", &json!({"type": "content_block_stop", "index": index})));
                }
                all.extend(ending("tool_use"));
                all.extend(b"0\r\n\r\n");
                stream.write_all(&all).await?;
            }
            (false, _) => {
                if slow {
                    env.clock.sleep(PIECE_EVERY * 100).await;
                }
                let answer = json!({
                    "id": "m", "type": "message", "role": "assistant", "model": "measured", "stop_reason": "tool_use",
                    "content": blocks.collect::<Vec<_>>(),
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

/// The calls of an answer: for a prompt `call NAME` one of that tool, and for `spawn COUNT AGENT` as many helpers as one answer may start,
/// until there are enough. None for the end of that.
fn calls(asked: &Value) -> Option<Vec<(&str, Value)>> {
    let messages = asked["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let first = messages.first().map(|message| &message["content"]);
    let text = first.and_then(|content| content.as_str().or(content[0]["text"].as_str())).unwrap_or_default();
    let round = messages.len() / 2;
    match text.split(' ').collect::<Vec<_>>()[..] {
        ["call", tool] => Some(vec![(tool, json!({ "n": round.to_string() }))]),
        ["spawn", count, agent] => {
            let begun = round * SPAWNED;
            let more = SPAWNED.min(count.parse::<usize>().unwrap_or_default().saturating_sub(begun));
            let spawn = |number| ("agent__spawn", json!({"agent": agent, "prompt": format!("helper {number}")}));
            (more > 0).then(|| (begun..begun + more).map(spawn).collect())
        }
        _ => Some(vec![("none", json!({}))]),
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
