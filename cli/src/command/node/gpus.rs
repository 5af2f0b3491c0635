//! `atlasctl node gpus`.

use atlas_api::types::Gpu;
use serde::Deserialize;
use serde_json::Value;

use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Column, List, ListOptions, column, members, wide};
use crate::words;

/// Options of `atlasctl node gpus`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    list: ListOptions,
}

/// A GPU and its node.
#[derive(Deserialize)]
struct Device {
    node: String,
    #[serde(flatten)]
    gpu: Gpu,
}

const COLUMNS: [Column<Device>; 7] = [
    column("NODE", "node", |device, _| device.node.clone()),
    column("GPU", "index", |device, _| device.gpu.index.to_string()),
    column("MODEL", "model", |device, _| device.gpu.model.clone()),
    column("MEMORY", "memory_bytes", |device, _| words::bytes(device.gpu.memory_bytes)),
    column("FREE", "free_bytes", |device, _| words::bytes(device.gpu.free_bytes)),
    column("STATE", "healthy", |device, _| if device.gpu.healthy { "ok" } else { "failed" }.to_owned()),
    wide("MIG", "mig_profile", |device, _| device.gpu.mig_profile.clone()),
];

pub(super) async fn run(context: &Context, options: &Options) -> Result<Exit, Failure> {
    let nodes = context.client()?.get(&["api", "nodes"], &[]).await?;
    let mut devices = Vec::new();
    for node in nodes.as_array().into_iter().flatten() {
        for gpu in node["gpus"].as_array().into_iter().flatten() {
            let mut device = gpu.clone();
            device["node"] = node["id"].clone();
            devices.push(device);
        }
    }
    // No verb takes the name of a GPU, so `-o name` prints the node.
    let name = |device: &Device| format!("node/{}", device.node);
    if context.list(Value::Array(devices), &options.list, &List { columns: &COLUMNS, members: members::GPU, name })?
        == 0
    {
        context.note("no GPUs");
    }
    Ok(Exit::Done)
}
