//! A run ends by itself, however little there is to do.

use atlas_sim::{Options, run};

/// Nothing is written after an election: all members still have to get its entry.
#[test]
fn a_cluster_without_work_comes_to_rest() {
    let idle = Options { clients: 0, nodes: 0, faults: 0, ..Options::of(0) };
    let failure = run(&idle).expect_err("it did too little to prove anything");
    assert!(failure.void, "{failure}");
}
