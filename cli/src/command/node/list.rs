//! `atlasctl node list`.

use atlas_api::types::{Gpu, Node};
use serde_json::Value;

use crate::context::Context;
use crate::display::{NodeDisplay as _, RivalDisplay as _};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Column, List, ListOptions, column, members, wide};
use crate::watch::{Watching, poll};
use crate::words;

/// Options of `atlasctl node list`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) list: ListOptions,
    #[command(flatten)]
    pub(crate) watching: Watching,
}

const COLUMNS: [Column<Node>; 10] = [
    column("NODE", "id", |node, _| node.id.clone()),
    column("STATE", "health", |node, look| state_at(node, look.now)),
    column("CORES", "cores", |node, _| node.cores.to_string()),
    column("MEMORY", "memory_bytes", |node, _| words::bytes(node.memory_bytes)),
    column("GPUS", "gpus", |node, _| gpus(&node.gpus)),
    column("RUNNING/WARM/PLACES", "running", |node, _| node.slots()),
    wide("LLM", "llm_places", |node, _| node.llm()),
    wide("ARCH", "arch", |node, _| node.arch.clone()),
    wide("AGE", "registered_at", |node, look| look.when(node.registered_at)),
    wide("LABELS", "labels", |node, _| words::labels(&node.labels)),
];

const LIST: List<'static, Node> =
    List { columns: &COLUMNS, members: members::NODE, name: |node| format!("node/{}", node.id) };

/// Lists nodes.
pub(crate) async fn list(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let client = context.client()?;
    let fetch = async || client.get(&["api", "nodes"], &[]).await;
    if options.watching.watch {
        return poll(context, &LIST, &options.list, key, fetch).await;
    }
    if context.list(fetch().await?, &options.list, &LIST)? == 0 {
        context.note("no nodes");
    }
    Ok(Exit::Done)
}

/// Lists one node, and lists it again after each change.
pub(crate) async fn watch(context: &Context, name: &str, options: &ListOptions) -> Result<Exit, Failure> {
    let client = context.client()?;
    client.get(&["api", "nodes", name], &[]).await?;
    let fetch = async || match client.get(&["api", "nodes", name], &[]).await {
        Err(failure) if failure.exit == Exit::NotFound => Ok(Value::Array(Vec::new())),
        node => Ok(Value::Array(vec![node?])),
    };
    poll(context, &LIST, options, key, fetch).await
}

fn key(node: &Value) -> String {
    format!("node/{}", node["id"].as_str().unwrap_or_default())
}

/// `laptop: 12 cores, 32 GiB, no GPU`
pub(crate) fn describe(node: &Node) -> String {
    let gpus = match gpus(&node.gpus) {
        none if none.is_empty() => "no GPU".to_owned(),
        some => some,
    };
    format!("{}: {}, {}, {gpus}", node.id, words::count(node.cores, "core"), words::bytes(node.memory_bytes))
}

/// The node's health, and whether it is draining or cordoned.
pub(crate) fn state_at(node: &Node, now: f64) -> String {
    let rival = node.rival.as_ref().filter(|rival| rival.is_recent(now));
    state(node) + if rival.is_some() { ", name wanted twice" } else { "" }
}

pub(crate) fn state(node: &Node) -> String {
    let eligible = match (node.draining, node.cordoned) {
        (true, _) => ", draining",
        (_, true) => ", cordoned",
        _ if node.circuit.since.is_some() => ", failing",
        _ => "",
    };
    format!("{}{eligible}", node.health)
}

/// `1 × RTX 4090 (24.0 GiB free of 24.0)`
pub(crate) fn gpus(gpus: &[Gpu]) -> String {
    let Some(first) = gpus.first() else { return String::new() };
    let total: u64 = gpus.iter().map(|gpu| gpu.memory_bytes).sum();
    let free: u64 = gpus.iter().map(|gpu| gpu.free_bytes).sum();
    let (free, total) = (words::bytes(free), words::bytes(total));
    format!("{} × {} ({free} free of {})", gpus.len(), first.model, total.trim_end_matches(" GiB"))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn nodes_are_described_in_a_line() {
        let laptop = Node { id: "laptop".to_owned(), cores: 12, memory_bytes: 32 << 30, ..Node::default() };
        expect!["laptop: 12 cores, 32.0 GiB, no GPU"].assert_eq(&describe(&laptop));
        let gpu = Gpu { model: "RTX 4090".to_owned(), memory_bytes: 24 << 30, free_bytes: 24 << 30, ..Gpu::default() };
        let workstation = Node { id: "workstation".to_owned(), cores: 1, gpus: vec![gpu], ..laptop };
        expect!["workstation: 1 core, 32.0 GiB, 1 × RTX 4090 (24.0 GiB free of 24.0)"]
            .assert_eq(&describe(&workstation));
    }
}
