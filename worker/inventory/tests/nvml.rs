//! Tests the NVML probe with a fake library, which is built here.

use std::path::Path;
use std::process::Command;

use atlas_inventory::{GpuProbe, NvmlProbe};

#[test]
fn gpus_are_read_through_the_library() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let library = dir.path().join("libnvidia-ml-fake.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nvml_fake.c");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).status();
    if !built.is_ok_and(|status| status.success()) {
        atlas_notice::skip("there is no C compiler to build the fake library with");
        return;
    }
    let gpus = NvmlProbe::with_library(&library).gpus().expect("the fake answers");
    assert_eq!(gpus.len(), 3);
    assert_eq!((gpus[0].name.as_str(), gpus[0].memory_bytes >> 30), ("NVIDIA GeForce RTX 4090", 24));
    assert_eq!((gpus[0].uuid.as_str(), gpus[0].healthy), ("GPU-fake", true));
    assert!(!gpus[1].healthy, "a lost GPU is told as broken");
    assert_eq!((gpus[2].memory_bytes >> 30, gpus[2].healthy), (24, false), "its memory has errors");
}

#[test]
fn no_library_is_no_gpu() {
    let gpus = NvmlProbe::with_library("/no/such/libnvidia-ml.so").gpus().expect("that is no error");
    assert!(gpus.is_empty());
}
