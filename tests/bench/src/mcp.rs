//! Measures the MCP gateway: a call beside the same job over the HTTP API, the memory of open sessions, and how much of a model's
//! context the list of tools takes.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use atlas_env::Env;
use serde_json::{Value, json};

use crate::cluster;
use crate::figures::Row;
use crate::http::{Connection, header, request, request_with};
use crate::process::{Running, free_address, program, resident_mib};

/// How often the jobs are run in turn, the number of each in a turn, and the turns that are not counted.
const TURNS: usize = 40;
const TURNS_NOT_COUNTED: usize = 5;
const CALLS_A_TURN: usize = 50;

/// The number of open sessions.
const SESSIONS: usize = 2_000;

/// The number of agents that are registered when the list of tools is read.
const AGENTS: usize = 500;

/// The bytes of a token of a model, as a rule of thumb for JSON in English.
const TOKEN_BYTES: f64 = 4.0;

const JSON: (&str, &str) = ("content-type", "application/json");
const ACCEPT: (&str, &str) = ("accept", "application/json, text/event-stream");
const VERSION: (&str, &str) = ("mcp-protocol-version", "2025-11-25");

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let runtime = atlas_dev::runtime()?;
    let cluster = runtime.block_on(cluster::start(env, 4))?;
    let http = cluster.http();
    let client = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut rows = client.block_on(async {
        cluster::register(http, "noop", "{ type: exec, command: [\"@noop\"] }", Vec::new()).await?;
        let mut rows = calls(env, http).await?;
        for number in 0..AGENTS {
            let name = format!("agent-{number}");
            cluster::register(http, &name, "{ type: exec, command: [\"@noop\"] }", Vec::new()).await?;
        }
        rows.push(tools(http).await?);
        anyhow::Ok(rows)
    })?;
    runtime.block_on(cluster.shutdown());
    rows.push(client.block_on(sessions())?);
    Ok(rows)
}

/// One call after the other in a session and without one, alternating with the same job over the HTTP API.
async fn calls(env: &Env, http: SocketAddr) -> Result<Vec<Row>> {
    let mut connections = [Connection::open(http).await?, Connection::open(http).await?, Connection::open(http).await?];
    let session = open(&mut connections[1]).await?;
    let submit = request("POST", "/api/jobs?wait=30", json!({"agent": "noop", "input": {}}).to_string().as_bytes());
    let params = json!({ "name": "agent_run", "arguments": { "agent": "noop", "input": {} } });
    let requests = [submit, message(&session, "tools/call", &params), alone(params)];
    let mut latencies = [Vec::new(), Vec::new(), Vec::new()];
    for turn in 0..TURNS_NOT_COUNTED + TURNS {
        for ((connection, request), latencies) in connections.iter_mut().zip(&requests).zip(&mut latencies) {
            for _ in 0..CALLS_A_TURN {
                let begun = env.clock.monotonic();
                let answer = connection.send(request).await?;
                let took = env.clock.monotonic() - begun;
                let completed = answer.windows(9).any(|window| window == b"completed");
                ensure!(completed, "a job did not complete: {}", String::from_utf8_lossy(answer));
                if turn >= TURNS_NOT_COUNTED {
                    latencies.push(took);
                }
            }
        }
    }
    let mut rows: Vec<Row> = Vec::new();
    for (name, latencies) in ["mcp_peer_http", "mcp_call", "mcp_call_alone"].into_iter().zip(latencies) {
        let all = latencies.iter().sum();
        let row = Row::rate(name, 1, latencies, all);
        rows.push(match rows.first() {
            Some(peer) => row.median_against("the HTTP API", peer.p50_us),
            None => row,
        });
    }
    Ok(rows)
}

/// The list of tools while many agents are registered.
async fn tools(http: SocketAddr) -> Result<Row> {
    let mut connection = Connection::open(http).await?;
    let session = open(&mut connection).await?;
    let answer = connection.send(&message(&session, "tools/list", &json!({}))).await?;
    let answer = String::from_utf8_lossy(answer);
    ensure!(answer.contains("agent_run"), "the list has no tools: {answer}");
    let list = answer.lines().filter_map(|line| line.strip_prefix("data:")).next_back().unwrap_or(&answer);
    let list: Value = serde_json::from_str(list.trim()).context("the list is JSON")?;
    let bytes = list["result"]["tools"].to_string().len();
    #[expect(clippy::cast_precision_loss, reason = "a list is small")]
    let tokens = bytes as f64 / TOKEN_BYTES;
    Ok(Row::amount("mcp_tools_500_agents", tokens, "tokens of 4 bytes").value_against("2,000", 2_000.0))
}

/// The memory of a controller with many open sessions.
async fn sessions() -> Result<Row> {
    let folder = tempfile::tempdir_in(".")?;
    let http = free_address()?;
    let mut command = Command::new(program("atlas-controller")?);
    command.arg("--data-dir").arg(folder.path().join("controller")).args(["--http-listen", &http]);
    command.args(["--worker-listen", "127.0.0.1:0", "--peer-listen", "127.0.0.1:0"]);
    let controller = Running::start(&mut command, |line| line.contains("controller started"))?;
    let mut connection = Connection::open(http.parse()?).await?;
    for _ in 0..SESSIONS {
        open(&mut connection).await?;
    }
    let memory = resident_mib(&controller)?;
    Ok(Row::amount("mcp_sessions_2000", memory, "MiB").value_against("100 MiB", 100.0))
}

/// Opens a session and returns its id.
async fn open(connection: &mut Connection) -> Result<String> {
    let hello = json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": { "protocolVersion": VERSION.1, "capabilities": {}, "clientInfo": { "name": "bench", "version": "0" } },
    });
    let (head, _) =
        connection.exchange(&request_with("POST", "/mcp", &[JSON, ACCEPT], hello.to_string().as_bytes())).await?;
    let session = header(head, "mcp-session-id").context("a session has an id")?.to_owned();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let headers = [JSON, ACCEPT, VERSION, ("mcp-session-id", &session)];
    connection.send(&request_with("POST", "/mcp", &headers, ready.to_string().as_bytes())).await?;
    Ok(session)
}

/// A tool call without a session, as the protocol has it since 2026-07-28.
fn alone(mut params: Value) -> Vec<u8> {
    const VERSION: &str = "2026-07-28";
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "0" },
    });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let name = params["name"].as_str().unwrap_or_default();
    let headers = [JSON, ACCEPT, ("mcp-protocol-version", VERSION), ("mcp-method", "tools/call"), ("mcp-name", name)];
    request_with("POST", "/mcp", &headers, body.to_string().as_bytes())
}

/// A request in a session.
fn message(session: &str, method: &str, params: &Value) -> Vec<u8> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    request_with("POST", "/mcp", &[JSON, ACCEPT, VERSION, ("mcp-session-id", session)], body.to_string().as_bytes())
}
