//! Short runs of the scenarios.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::journal::Outcome;
use super::rig::{CLIENTS, hosts};
use super::*;
use crate::net::{Installed, Network};

/// Maximum number of runs. A void run is repeated with another seed, because the machine may have been busy.
const TRIES: u64 = 3;

/// Runs a scenario for a short time; panics with the findings.
fn short(name: &str) {
    let scenario = Scenario::named(name).expect("a scenario");
    if skipped_aloud(scenario.needs) {
        return;
    }
    for seed in 1..=TRIES {
        let folder = std::env::temp_dir().join(format!("atlas-chaos-{name}-{seed}-{}", std::process::id()));
        let faults_for = Duration::from_secs(8);
        let (stop, kept) = (Arc::default(), folder.clone());
        let verdict =
            run(&Options { scenario, seed, faults_for, clients: 3, folder, stop }).expect("the harness works");
        if verdict.is_good() {
            return;
        }
        let repeat = verdict.void.is_some() && verdict.found_nothing() && seed < TRIES;
        assert!(repeat, "{name} seed {seed}, kept in {}: {verdict}", kept.display());
    }
}

#[test]
fn one_controller_dies_and_stops_and_cannot_sync() {
    short("alone");
}

#[test]
fn the_leader_is_killed() {
    short("leader-kill");
}

#[test]
fn all_controllers_are_killed_at_once() {
    short("all-kill");
}

#[test]
fn the_leader_is_isolated_with_clients_inside() {
    short("leader-isolated");
}

#[test]
fn workers_are_isolated_for_longer_than_their_sessions_live() {
    short("worker-isolated");
}

#[test]
fn members_are_replaced_one_after_the_other() {
    short("member-replaced");
}

/// The TTL of sessions in the test with an isolated leader.
const SESSION: Duration = Duration::from_secs(5);

#[test]
fn jobs_outlive_a_leader_that_is_cut_off_from_the_others_alone() {
    if skipped_aloud(&[Needs::Namespaces]) {
        return;
    }
    let layout = Layout { controllers: 3, session_ttl: SESSION, ..Layout::SMALL };
    let names = hosts(&layout);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let network = Arc::new(Network::isolated(&names, 1).expect("namespaces"));
    let theirs = Arc::clone(&network);
    network.host(CLIENTS).run(move || workers_leave_the_leader(&layout, theirs));
}

/// The workers still reach the old leader, which cannot renew their sessions. They find the new leader before they must
/// stop their attempts.
fn workers_leave_the_leader(layout: &Layout, network: Arc<Network>) {
    let folder = tempfile::tempdir().expect("a folder");
    let rig = Rig::start(layout, network, folder.path()).expect("a cluster");
    let leader = rig.leader().expect("a leader");
    let lasts_ms = (2 * SESSION).as_millis() as u64;
    let submit = |_| {
        let body = json!({"agent": "again", "input": {"ms": lasts_ms, "pad": 0}});
        let at = rig.controllers[leader].http();
        match rig.ask(async |http| http.post(at, "/api/jobs", body.clone()).await) {
            Outcome::Done(answer) => answer.body["id"].as_str().expect("an id").to_owned(),
            other => panic!("not accepted: {other:?}"),
        }
    };
    let jobs: Vec<String> = (0..4).map(submit).collect();
    let all = |rig: &Rig, status: &str| {
        let job = |at: usize, id: &String| rig.get(at, &format!("/api/jobs/{id}?view=full"));
        let is = |id: &String| {
            (0..3).any(|at| job(at, id).is_some_and(|job| job["status"] == status && job["attempt"] == 1))
        };
        jobs.iter().all(is)
    };
    rig.until("they run", SESSION, |rig| all(rig, "running")).expect("running");
    let leads = rig.controllers[leader].name();
    for other in rig.controllers.iter().map(|machine| machine.name()).filter(|other| *other != leads) {
        assert_eq!(rig.network.cut(leads, other), Installed::Yes);
    }
    // The fault must last longer than the sessions, so the test waits for this time.
    std::thread::sleep(SESSION + SESSION / 2);
    rig.network.heal();
    rig.until("they complete at the first attempt", 4 * SESSION, |rig| all(rig, "completed")).expect("completed");
    for worker in &rig.workers {
        assert!(worker.text().contains("looking for another leader"), "{}", worker.text());
    }
}
