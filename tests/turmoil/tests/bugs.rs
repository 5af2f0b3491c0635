//! A checker that has never failed is not trusted: mistakes made on purpose must be caught. Those here are caught by the first seeds; the
//! others are tried by `cargo xtask campaign --bugs`, which takes longer than a build can wait.

use atlas_turmoil::{Bug, Options, first_caught};

/// Within so many seeds.
const SEEDS: u64 = 6;

#[test]
fn a_disk_that_lies_about_its_syncs_is_caught() {
    caught(Bug::LogNotSynced);
}

#[test]
fn a_directory_of_the_log_that_was_not_synced_is_caught() {
    caught(Bug::SegmentNameNotSynced);
}

#[test]
fn a_directory_of_snapshots_that_was_not_synced_is_caught() {
    caught(Bug::SnapshotNameNotSynced);
}

#[test]
fn an_old_number_on_an_empty_disk_is_caught() {
    caught(Bug::DiskReplaced);
}

#[test]
fn a_read_without_the_quorum_is_caught() {
    caught(Bug::StaleRead);
}

fn caught(bug: Bug) {
    let found = first_caught(bug, 0..SEEDS, Options::of);
    assert!(found.is_some(), "{bug:?} is not caught within {SEEDS} seeds");
}
