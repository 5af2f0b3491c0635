//! The things that are counted.

use std::fmt;

use anyhow::{Result, bail, ensure};

use crate::allocator::{counted, in_use};
use crate::client::{ANSWER_BYTES, contains, request, request_with};
use crate::cluster::Counted;

/// How many rounds are counted, and how many before them are not: connections, slots and caches are made in those.
const ROUNDS: usize = 9;
const ROUNDS_NOT_COUNTED: usize = 3;

/// Things of a round.
const A_ROUND: usize = 50;

/// Steps of the chain.
const STEPS: usize = 5;

/// Streams of all changes that are open while a job is counted that they hear of.
const STREAMS: usize = 50;

/// A tool call without a session, as the MCP has it since 2026-07-28.
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agent_run","arguments":{"agent":"noop","input":{}},
    "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const CALL_HEADERS: &str = "content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
    mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: agent_run\r\n";

/// What one of the things costs.
pub(crate) struct Cost {
    allocations: f64,
    bytes: f64,
    entries: f64,
}

impl fmt::Display for Cost {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:.1} {:.0} {:.2}", self.allocations, self.bytes, self.entries)
    }
}

/// Counts what one of the things with a name costs.
pub(crate) fn count(name: &str) -> Result<Cost> {
    let job = request("POST", "/api/jobs?wait=30", b"{\"agent\":\"noop\",\"input\":{}}");
    let (request, times) = match name {
        "idle" => return idle(),
        "job" | "heard-job" => (job, A_ROUND),
        "mcp-call" => (request_with("POST", "/mcp", CALL_HEADERS, CALL.as_bytes()), A_ROUND),
        "chain-step" => {
            let steps = ["{\"agent\":\"noop\"}"; STEPS].join(",");
            let body = format!("{{\"chain\":{{\"name\":\"steps\",\"steps\":[{steps}]}},\"input\":{{}}}}");
            (request("POST", "/api/chains?wait=30", body.as_bytes()), A_ROUND / STEPS)
        }
        other => bail!("\"{other}\" is not counted: idle, job, heard-job, mcp-call or chain-step"),
    };
    let mut cluster = Counted::start()?;
    if name == "heard-job" {
        cluster.follow(STREAMS)?;
    }
    rounds(&mut cluster, |cluster| {
        for _ in 0..times {
            let answer = cluster.client.send(&request)?;
            let completed = contains(answer, "\"status\":\"completed\"");
            ensure!(completed, "not completed: {}", String::from_utf8_lossy(answer));
        }
        Ok(())
    })
}

/// The memory of a cluster that has just started, and the entries of its log. A request takes some as well, so the least is what counts.
fn idle() -> Result<Cost> {
    let mut cluster = Counted::start()?;
    let mut least = u64::MAX;
    for _ in 0..A_ROUND {
        cluster.metric(ENTRIES)?;
        least = least.min(in_use());
    }
    let bytes = least.saturating_sub(ANSWER_BYTES as u64);
    Ok(Cost { allocations: 0.0, bytes: bytes as f64, entries: cluster.metric(ENTRIES)? })
}

/// The cost of one of the things of a round. What runs by the clock meanwhile falls into a few rounds only, so a cheap round is what counts.
fn rounds(cluster: &mut Counted, mut round: impl FnMut(&mut Counted) -> Result<()>) -> Result<Cost> {
    let mut costs = Vec::new();
    for number in 0..ROUNDS + ROUNDS_NOT_COUNTED {
        let entries = cluster.metric(ENTRIES)?;
        let (allocations, bytes) = counted();
        round(cluster)?;
        let (allocations_after, bytes_after) = counted();
        let each = |before: u64, after: u64| (after - before) as f64 / A_ROUND as f64;
        if number >= ROUNDS_NOT_COUNTED {
            costs.push(Cost {
                allocations: each(allocations, allocations_after),
                bytes: each(bytes, bytes_after),
                entries: (cluster.metric(ENTRIES)? - entries) / A_ROUND as f64,
            });
        }
    }
    costs.sort_by(|one, other| one.allocations.total_cmp(&other.allocations));
    Ok(costs.swap_remove(ROUNDS / 3))
}

/// The counter of entries among the metrics.
const ENTRIES: &str = "atlas_raft_entries_total";
