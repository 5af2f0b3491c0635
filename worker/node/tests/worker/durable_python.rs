//! Durable agents in Python: the host by itself, against a worker in Python that keeps a record in memory. Each case of
//! `durable_python/cases.py` says what it shows. Each starts hosts by the dozen, so the oldest and the newest version are enough.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::processes::interpreter;

fn check(version: &str) {
    let Some(python) = interpreter(version) else {
        atlas_notice::skip(format_args!("no Python {version} here"));
        return;
    };
    let output = Command::new(python)
        .args(["-B", "-m", "unittest", "cases"])
        .current_dir(folder())
        .output()
        .expect("the interpreter starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worker/durable_python")
}

#[test]
fn python_3_11_replays_what_it_did() {
    check("3.11");
}

#[test]
fn python_3_14_replays_what_it_did() {
    check("3.14");
}
