//! Describes a demand, for errors and the API (compatibility §8.4).

use std::fmt::Write as _;

use atlas_types::{Architecture, Demand, Place};

const GB: u64 = 1 << 30;

/// The description of a demand, as Atlas for Python has it: `GPU (16GB VRAM), 32GB RAM, 4 CPU cores`, or `default`.
///
/// Amounts up to the defaults of a contract (1 GB, 1 core) are omitted.
pub fn describe(demand: &Demand) -> String {
    joined(&hardware(demand))
}

/// The description with the demands that Atlas for Python does not check, in the same style: labels, a pinned node, Python, Node.js.
pub fn describe_fully(demand: &Demand) -> String {
    let mut parts = hardware(demand);
    parts.extend(demand.labels.iter().map(|(label, value)| format!("{label}={value}")));
    parts.extend(demand.node.iter().map(|node| format!("node={node}")));
    if demand.place == Place::Llm {
        parts.push("llm agent".to_owned());
    }
    if demand.python {
        parts.push("Python".to_owned());
    }
    if demand.nodejs {
        parts.push("Node.js".to_owned());
    }
    joined(&parts)
}

fn joined(parts: &[String]) -> String {
    if parts.is_empty() { "default".to_owned() } else { parts.join(", ") }
}

fn hardware(demand: &Demand) -> Vec<String> {
    let mut parts = Vec::new();
    if demand.gpus > 0 {
        let mut part = if demand.gpus == 1 { "GPU".to_owned() } else { format!("{} GPUs", demand.gpus) };
        if demand.vram_bytes > 0 {
            let each = if demand.gpus == 1 { "" } else { " each" };
            let _ = write!(part, " ({} VRAM{each})", gigabytes(demand.vram_bytes));
        }
        parts.push(part);
    }
    if demand.memory_bytes > GB {
        parts.push(format!("{} RAM", gigabytes(demand.memory_bytes)));
    }
    if demand.cores > 1 {
        parts.push(format!("{} CPU cores", demand.cores));
    }
    if let Some(architecture) = demand.architecture {
        parts.push(format!("arch={}", architecture.as_str()));
    }
    if !demand.devices.is_empty() {
        let quoted: Vec<String> = demand.devices.iter().map(|device| format!("'{device}'")).collect();
        parts.push(format!("devices=[{}]", quoted.join(", ")));
    }
    parts
}

/// `16GB`, and a fraction only where there is one: `1.5GB`.
pub(crate) fn gigabytes(bytes: u64) -> String {
    let thousandths = u128::from(bytes) * 1_000 / u128::from(GB);
    let (whole, fraction) = (thousandths / 1_000, thousandths % 1_000);
    if fraction == 0 {
        return format!("{whole}GB");
    }
    let digits = format!("{fraction:03}");
    format!("{whole}.{}GB", digits.trim_end_matches('0'))
}

/// The word for an architecture, or for its absence.
pub(crate) fn architecture(architecture: Option<Architecture>) -> &'static str {
    architecture.map_or("any", Architecture::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn descriptions_name_what_is_out_of_the_ordinary() {
        let plain = Demand { cores: 1, memory_bytes: GB, ..Demand::default() };
        let large = Demand {
            cores: 4,
            memory_bytes: 32 * GB,
            gpus: 1,
            vram_bytes: 16 * GB,
            architecture: Some(Architecture::Arm64),
            devices: vec!["/dev/a".into(), "/dev/b".into()],
            ..Demand::default()
        };
        let ours = Demand {
            gpus: 2,
            vram_bytes: GB + GB / 2,
            labels: [("zone".to_owned(), "eu".to_owned())].into(),
            node: Some("n1".parse().expect("a node name")),
            ..Demand::default()
        };
        let any_gpu = Demand { gpus: 1, ..Demand::default() };
        assert_eq!(describe(&ours), "2 GPUs (1.5GB VRAM each)");
        let text: Vec<String> = [plain, any_gpu, large, ours].iter().map(describe_fully).collect();
        expect![[r#"
            default
            GPU
            GPU (16GB VRAM), 32GB RAM, 4 CPU cores, arch=arm64, devices=['/dev/a', '/dev/b']
            2 GPUs (1.5GB VRAM each), zone=eu, node=n1"#]]
        .assert_eq(&text.join("\n"));
    }
}
