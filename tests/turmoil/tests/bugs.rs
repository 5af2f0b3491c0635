//! A checker that has never failed is not trusted: every deliberate bug must be caught. These are the bugs that a few
//! seeds catch, each from a known first seed. `cargo xtask campaign --bugs` tries all of them, which takes too long for
//! a build.

use atlas_turmoil::{Bug, Options, first_caught};

/// The number of seeds within which a bug must be caught. A change of the product changes what a seed does.
const SEEDS: u64 = 6;

#[test]
fn disks_that_lie_forget_or_turn_a_bit_are_caught() {
    caught(&[
        (Bug::LogNotSynced, 0),
        (Bug::SegmentNameNotSynced, 0),
        (Bug::SnapshotNameNotSynced, 0),
        (Bug::FailedSyncIgnored, 0),
        // With seed 0 the consensus panics while it runs and again while it is dropped, which ends the process of the test.
        (Bug::DiskReplaced, 1),
        (Bug::DamageCutOff, 0),
    ]);
}

#[test]
fn answers_that_come_too_early_or_from_too_old_a_state_are_caught() {
    caught(&[
        (Bug::StaleRead, 0),
        (Bug::BackwardsRead, 4),
        (Bug::AckBeforeCommit, 0),
        (Bug::CancelAlwaysAccepted, 0),
        (Bug::NoDedupe, 0),
        (Bug::WaitEndsElsewhere, 36),
    ]);
}

#[test]
fn sessions_and_leases_that_are_trusted_too_long_or_too_short_are_caught() {
    caught(&[
        (Bug::NoFencing, 0),
        (Bug::RenewalWithoutQuorum, 0),
        (Bug::LossByBrokenStream, 0),
        (Bug::DeafWorker, 0),
        (Bug::SlowWorkerClock, 0),
        (Bug::StartUncommitted, 6),
        (Bug::LostGrantForgotten, 0),
        (Bug::TimeoutsByWallClock, 0),
    ]);
}

fn caught(bugs: &[(Bug, u64)]) {
    for (bug, from) in bugs {
        let found = first_caught(*bug, *from..from + SEEDS, Options::of);
        assert!(found.is_some(), "{bug:?} is not caught by {SEEDS} seeds from {from} on");
    }
}
