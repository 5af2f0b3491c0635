//! Tests the inventories of recorded machines.

use std::collections::BTreeMap;
use std::path::Path;

use atlas_inventory::{GpuFacts, GpuProbe, HostFacts, HostProbe, MigFacts, ProbeError, changed, inventory_of, line};
use atlas_types::{Inventory, NodeId};
use expect_test::{Expect, expect};

/// Recorded probe results: `key value` lines, with the fields of a GPU separated by `|`.
#[derive(Debug)]
struct Recorded {
    host: HostFacts,
    gpus: BTreeMap<u32, GpuFacts>,
}

impl HostProbe for Recorded {
    fn facts(&self) -> Result<HostFacts, ProbeError> {
        Ok(self.host.clone())
    }
}

impl GpuProbe for Recorded {
    fn gpus(&self) -> Result<Vec<GpuFacts>, ProbeError> {
        Ok(self.gpus.values().cloned().collect())
    }
}

fn recorded(name: &str) -> Recorded {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).with_extension("txt");
    let text = std::fs::read_to_string(path).expect("the fixture is there");
    let mut host = HostFacts { cores: 0, memory_bytes: 0, architecture: String::new() };
    let mut gpus: BTreeMap<u32, GpuFacts> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (key, value) = line.split_once(' ').expect("a key and a value");
        let fields: Vec<&str> = value.split('|').map(str::trim).collect();
        let number = |at: usize| fields[at].parse::<u64>().expect("a number");
        match key {
            "cores" => host.cores = number(0) as u32,
            "memory_bytes" => host.memory_bytes = number(0),
            "architecture" => host.architecture = value.to_owned(),
            "gpu" | "lost" => {
                let lost = key == "lost";
                let index = number(0) as u32;
                let facts = GpuFacts {
                    index,
                    uuid: if lost { String::new() } else { fields[1].to_owned() },
                    name: if lost { "lost".to_owned() } else { fields[2].to_owned() },
                    memory_bytes: if lost { 0 } else { number(3) },
                    healthy: !lost,
                    slices: Vec::new(),
                };
                gpus.insert(index, facts);
            }
            "slice" => {
                let facts =
                    MigFacts { uuid: fields[1].to_owned(), name: fields[2].to_owned(), memory_bytes: number(3) };
                gpus.get_mut(&(number(0) as u32)).expect("its GPU comes first").slices.push(facts);
            }
            other => panic!("unknown key {other:?}"),
        }
    }
    Recorded { host, gpus }
}

fn check(name: &str, expected: &Expect) {
    let machine = recorded(name);
    let inventory = inventory_of(&machine, &machine).expect("recorded answers are no error");
    let node = NodeId::new(name).expect("valid name");
    let gpus = inventory.gpus.iter().map(|gpu| {
        format!(
            "\n  {} {} {:?} healthy={}",
            gpu.index,
            gpu.uuid,
            gpu.mig_profile.as_deref().unwrap_or("-"),
            gpu.healthy
        )
    });
    let shown = format!(
        "{}\n  {:?} places={}{}",
        line(&node, &inventory),
        inventory.architecture,
        inventory.places,
        gpus.collect::<String>()
    );
    expected.assert_eq(&shown);
}

#[test]
fn a_laptop_without_a_gpu() {
    check(
        "laptop",
        &expect![[r#"
        laptop: 12 cores, 31 GiB, no GPU
          Some(X86_64) places=12"#]],
    );
}

#[test]
fn a_workstation_with_one_gpu() {
    check(
        "rtx4090",
        &expect![[r#"
        rtx4090: 32 cores, 126 GiB, 1 × RTX 4090 (24.0 GiB)
          Some(X86_64) places=32
          0 GPU-5b1c1f1e-6a0e-7c62-9d0b-2d4c1c3b0a11 "-" healthy=true"#]],
    );
}

#[test]
fn an_arm_board_whose_gpu_shares_the_main_memory() {
    check(
        "jetson",
        &expect![[r#"
        jetson: 12 cores, 61 GiB, 1 × Orin (nvgpu)
          Some(Arm64) places=12
          0 GPU-7f0c4d52-aaaa-5bbb-8ccc-dddddddddddd "-" healthy=true"#]],
    );
}

#[test]
fn changes_of_health_are_found_and_nothing_else() {
    for name in ["laptop", "rtx4090", "h100x8", "mig", "jetson"] {
        let machine = recorded(name);
        let advertised = inventory_of(&machine, &machine).expect("recorded answers are no error");
        assert_eq!(changed(&advertised, &machine).expect("it answers"), None, "{name}");
    }
    let mut machine = recorded("h100x8");
    let advertised = inventory_of(&machine, &machine).expect("recorded answers are no error");
    let broken = |inventory: &Inventory| -> Vec<u32> {
        inventory.gpus.iter().filter(|gpu| !gpu.healthy).map(|gpu| gpu.index).collect()
    };
    let before = broken(&advertised);
    // One falls off its bus, one is not reported any more, one has memory errors, and one is new.
    let lost = machine.gpus.get_mut(&1).expect("GPU 1");
    (lost.uuid, lost.memory_bytes, lost.healthy) = (String::new(), 0, false);
    machine.gpus.remove(&2);
    machine.gpus.get_mut(&3).expect("GPU 3").healthy = false;
    let new = GpuFacts { index: 9, uuid: "GPU-new".to_owned(), ..machine.gpus[&0].clone() };
    machine.gpus.insert(9, new);
    let now = changed(&advertised, &machine).expect("it answers").expect("GPUs broke");
    assert_eq!(broken(&now), [&[1, 2, 3], &before[..]].concat());
    assert_eq!(now.gpus.len(), advertised.gpus.len(), "a new one counts from the next start");
    let repaired = recorded("h100x8");
    assert_eq!(changed(&now, &repaired).expect("it answers"), Some(advertised));
}

#[test]
fn slices_go_with_their_gpu_and_declared_gpus_are_never_asked_for() {
    let mut machine = recorded("mig");
    let advertised = inventory_of(&machine, &machine).expect("recorded answers are no error");
    machine.gpus.get_mut(&0).expect("GPU 0").slices.remove(1);
    let now = changed(&advertised, &machine).expect("it answers").expect("a slice is gone");
    let healthy: Vec<bool> = now.gpus.iter().map(|gpu| gpu.healthy).collect();
    assert_eq!(healthy, [true, false, true]);
    machine.gpus.clear();
    let declared = Inventory { declared: true, ..advertised };
    assert_eq!(changed(&declared, &machine).expect("it is not asked"), None);
}

#[test]
fn a_server_with_eight_gpus_one_of_them_lost() {
    check(
        "h100x8",
        &expect![[r#"
        h100x8: 192 cores, 2015 GiB, 7 × H100 80GB HBM3 (79.6 GiB), 1 × lost (broken)
          Some(X86_64) places=192
          0 GPU-00000000-0000-0000-0000-000000000000 "-" healthy=true
          1 GPU-00000000-0000-0000-0000-000000000001 "-" healthy=true
          2 GPU-00000000-0000-0000-0000-000000000002 "-" healthy=true
          3 GPU-00000000-0000-0000-0000-000000000003 "-" healthy=true
          4 GPU-00000000-0000-0000-0000-000000000004 "-" healthy=true
          5 GPU-00000000-0000-0000-0000-000000000005 "-" healthy=true
          6 GPU-00000000-0000-0000-0000-000000000006 "-" healthy=true
          7  "-" healthy=false"#]],
    );
}

#[test]
fn a_node_whose_gpu_is_cut_into_slices() {
    check(
        "mig",
        &expect![[r#"
        mig: 72 cores, 480 GiB, 2 × H100 80GB HBM3 MIG 1g.10gb (9.8 GiB), 1 × H100 80GB HBM3 MIG 3g.40gb (38.9 GiB)
          Some(Arm64) places=72
          100 MIG-c7c7c7c7-0000-5000-8000-000000000001 "3g.40gb" healthy=true
          101 MIG-c7c7c7c7-0000-5000-8000-000000000002 "1g.10gb" healthy=true
          102 MIG-c7c7c7c7-0000-5000-8000-000000000003 "1g.10gb" healthy=true"#]],
    );
}
