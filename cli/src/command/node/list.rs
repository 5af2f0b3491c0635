//! `atlasctl node list`.

use crate::api::{self, Gpu, Node};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Shown, Table};
use crate::words;

pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let value = context.client()?.get(&["api", "nodes"], &[]).await?;
    let nodes: Vec<Node> = api::read(&value)?;
    let mut table = Table::new(&["NODE", "STATE", "CORES", "MEMORY", "GPUS", "RUNNING/WARM/PLACES"]);
    for node in &nodes {
        let slots = format!("{}/{}/{}", node.running, node.warm, node.places);
        let (cores, memory) = (node.cores.to_string(), words::bytes(node.memory_bytes));
        table.row([node.id.clone(), state(node), cores, memory, gpus(&node.gpus), slots]);
    }
    let names = nodes.iter().map(|node| format!("node/{}", node.id)).collect();
    let text = if nodes.is_empty() { String::new() } else { table.text() };
    if nodes.is_empty() {
        context.note("no nodes");
    }
    context.show(&Shown { value, text, names })?;
    Ok(Exit::Done)
}

/// `laptop: 12 cores, 32 GiB, no GPU`
pub(crate) fn describe(node: &Node) -> String {
    let gpus = match gpus(&node.gpus) {
        none if none.is_empty() => "no GPU".to_owned(),
        some => some,
    };
    format!("{}: {}, {}, {gpus}", node.id, words::count(node.cores.into(), "core"), words::bytes(node.memory_bytes))
}

/// Health, and apart from it whether new jobs may come.
fn state(node: &Node) -> String {
    let eligible = match (node.draining, node.cordoned) {
        (true, _) => ", draining",
        (_, true) => ", cordoned",
        _ => "",
    };
    format!("{}{eligible}", node.health)
}

/// `1 × RTX 4090 (24.0 GiB free of 24.0)`
fn gpus(gpus: &[Gpu]) -> String {
    let Some(first) = gpus.first() else { return String::new() };
    let total: u64 = gpus.iter().map(|gpu| gpu.memory_bytes).sum();
    let free: u64 = gpus.iter().map(|gpu| gpu.free_bytes.unwrap_or(gpu.memory_bytes)).sum();
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
        let gpu = Gpu { model: "RTX 4090".to_owned(), memory_bytes: 24 << 30, free_bytes: None };
        let workstation = Node { id: "workstation".to_owned(), cores: 1, gpus: vec![gpu], ..laptop };
        expect!["workstation: 1 core, 32.0 GiB, 1 × RTX 4090 (24.0 GiB free of 24.0)"]
            .assert_eq(&describe(&workstation));
    }
}
