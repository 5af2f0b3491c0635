//! A node's hardware in one line, for people.

use std::collections::BTreeMap;

use atlas_types::{Gpu, Inventory, NodeId};

/// `laptop: 12 cores, 32 GiB, no GPU`, or `workstation: 32 cores, 128 GiB, 1 × RTX 4090 (24.0 GiB)`.
pub fn line(node: &NodeId, inventory: &Inventory) -> String {
    let cores = match inventory.cores {
        0 => "cores untracked".to_owned(),
        1 => "1 core".to_owned(),
        cores => format!("{cores} cores"),
    };
    let memory = match inventory.memory_bytes {
        0 => "memory untracked".to_owned(),
        bytes => format!("{} GiB", (bytes as f64 / (1_u64 << 30) as f64).round()),
    };
    format!("{node}: {cores}, {memory}, {}", gpus(&inventory.gpus))
}

fn gpus(gpus: &[Gpu]) -> String {
    if gpus.is_empty() {
        return "no GPU".to_owned();
    }
    let mut kinds: BTreeMap<(String, u64), u32> = BTreeMap::new();
    for gpu in gpus {
        *kinds.entry((kind(gpu), gpu.memory_bytes)).or_default() += 1;
    }
    let words = kinds.into_iter().map(|((kind, bytes), count)| match bytes {
        0 => format!("{count} × {kind}"),
        bytes => format!("{count} × {kind} ({:.1} GiB)", bytes as f64 / (1_u64 << 30) as f64),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// The model without the vendor's name, the slice's profile, and whether the device is broken.
fn kind(gpu: &Gpu) -> String {
    let model = gpu.model.trim_start_matches("NVIDIA ").trim_start_matches("GeForce ");
    let profile = gpu.mig_profile.as_ref().map(|profile| format!(" MIG {profile}")).unwrap_or_default();
    let broken = if gpu.healthy { "" } else { " (broken)" };
    format!("{model}{profile}{broken}")
}
