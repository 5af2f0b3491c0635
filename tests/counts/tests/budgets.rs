//! The budgets of what is counted.
//!
//! Each is the count when its line was written, and a few per cent. Who makes a job dearer either gives that back elsewhere, or raises the
//! budget in the commit that makes it dearer, which then says why. A feature that nobody uses costs a job nothing.

use std::process::Command;

/// Allocations, bytes of them and entries of the log for one thing.
struct Budget {
    allocations: f64,
    bytes: f64,
    entries: f64,
}

fn check(name: &str, budget: &Budget) {
    let ran = Command::new(env!("CARGO_BIN_EXE_atlas-counts")).arg(name).output().expect("the program starts");
    let (printed, errors) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{errors}");
    let counts: Vec<f64> = printed.split_whitespace().filter_map(|count| count.parse().ok()).collect();
    let [allocations, bytes, entries] = counts[..] else { panic!("three numbers, and not {printed:?}") };
    let Budget { allocations: allocations_max, bytes: bytes_max, entries: entries_max } = *budget;
    assert!(
        allocations <= allocations_max && bytes <= bytes_max && entries <= entries_max,
        "dearer than its budget: {allocations} allocations (budget {allocations_max}), {bytes} bytes ({bytes_max}), {entries} entries ({entries_max})"
    );
}

#[test]
fn a_cluster_that_has_started() {
    check("idle", &Budget { allocations: 0.0, bytes: 4_000_000.0, entries: 6.0 });
}

#[test]
fn a_job_that_is_waited_for() {
    check("job", &Budget { allocations: 520.0, bytes: 180_000.0, entries: 2.1 });
}

#[test]
fn a_job_that_fifty_streams_hear_of() {
    check("heard-job", &Budget { allocations: 850.0, bytes: 215_000.0, entries: 2.1 });
}

#[test]
fn a_call_of_a_tool() {
    check("mcp-call", &Budget { allocations: 900.0, bytes: 305_000.0, entries: 2.1 });
}

#[test]
fn a_step_of_a_chain() {
    check("chain-step", &Budget { allocations: 870.0, bytes: 180_000.0, entries: 1.5 });
}
