//! The scenarios, short: each ends with everything healed, read from every controller and compared.

use std::time::Duration;

use super::*;

/// Runs a scenario for a short time; panics with what was found.
fn short(name: &str, seed: u64) {
    let scenario = Scenario::named(name).expect("a scenario");
    if skipped_aloud(scenario.needs) {
        return;
    }
    let within = tempfile::tempdir().expect("a folder");
    // Kept when something was found: that is when somebody wants to look.
    let folder = within.keep().join(name);
    let verdict = run(&Options {
        scenario,
        seed,
        faults_for: Duration::from_secs(8),
        clients: 3,
        folder: folder.clone(),
        stop: std::sync::Arc::default(),
    });
    let verdict = verdict.expect("the harness works");
    assert!(verdict.is_good(), "{name} seed {seed}, kept in {}: {verdict}", folder.display());
}

#[test]
fn one_controller_is_killed_and_stopped() {
    short("alone", 1);
}
