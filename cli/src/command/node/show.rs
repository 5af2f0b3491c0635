//! `atlasctl node show`.

use atlas_api::types::Node;

use crate::answers;
use crate::command::node::{gpu_words, state};
use crate::context::Context;
use crate::display::{CircuitDisplay as _, NodeDisplay as _};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Shown;
use crate::words;

/// Shows one node.
pub(crate) async fn show(context: &Context, name: &str) -> Result<Exit, Failure> {
    let value = context.client()?.get(&["api", "nodes", name], &[]).await?;
    let node: Node = answers::read(&value)?;
    let mut text = format!("{}   {}\n", node.id, state(&node));
    text += &format!("  cores        {} of {} free\n", node.cores_free, node.cores);
    let (free, all) = (words::bytes(node.memory_bytes_free), words::bytes(node.memory_bytes));
    text += &format!("  memory       {free} of {all} free\n");
    let gpus = gpu_words(&node.gpus);
    text += &format!("  GPUs         {}\n", if gpus.is_empty() { "none" } else { &gpus });
    text += &format!("  jobs         {} running, {} warm, {} places\n", node.running, node.warm, node.places);
    text += &format!("  llm jobs     {} running, {} places\n", node.llm_running(), node.llm_places);
    if let Some(ends_at) = node.drain_ends_at {
        let left = (ends_at - context.look.now).max(0.0);
        text += &format!("  drain        jobs still running in {} are returned\n", words::milliseconds(left * 1e3));
    }
    if let Some(circuit) = node.circuit.sentence() {
        text += &format!("  circuit      {circuit}\n");
    }
    if let Some(rival) = &node.rival {
        let (address, holder, when) = (&rival.address, &rival.holder, context.look.when(rival.at));
        text +=
            &format!("  refused      another worker of this name at {address}, last {when}; this one is at {holder}\n");
    }
    if !node.labels.is_empty() {
        text += &format!("  labels       {}\n", words::labels(&node.labels));
    }
    if !node.operator_labels.is_empty() {
        text += &format!("  by operators {}\n", words::labels(&node.operator_labels));
    }
    context.show(&Shown { value, text, names: vec![format!("node/{}", node.id)] })?;
    Ok(Exit::Done)
}
