//! One run: a cluster, clients, a sequence of faults, then a quiet phase, and the comparison of all records.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use atlas_env::Env;
use futures::future::join_all;

use super::call::Http;
use super::check::{Evidence, Violation, check};
use super::effects::{deeds, read};
use super::fault::Became;
use super::journal::{Journal, Outcome};
use super::report::RunReport;
use super::rig::{CLIENTS, Rig, hosts};
use super::scenario::Scenario;
use super::survey::{self, Known, Survey};
use super::words;
use super::workload::{Client, Shared};
use crate::machine::Machine;
use crate::net::Network;
use crate::rng::Rng;

/// Longest time until all jobs have ended after the last fault is healed. Usually it takes a second or two. A machine
/// with little CPU time may take minutes; a job that has not ended after this time never will.
const CALM: Duration = Duration::from_secs(240);

/// Longest wait for the cluster's recovery before the next fault.
const RECOVERY: Duration = Duration::from_secs(10);

/// Longest pause of a client between two calls.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Minimum number of successful calls per second; a run with fewer is void.
const DONE_MIN: u64 = 3;

/// Options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The scenario.
    pub scenario: &'static Scenario,
    /// The seed, which chooses the work and the faults.
    pub seed: u64,
    /// Duration of the phase with faults.
    pub faults_for: Duration,
    /// Number of clients.
    pub clients: usize,
    /// The folder for all data; removed after a good run.
    pub folder: PathBuf,
    /// Set to true to end the phase with faults early.
    pub stop: Arc<AtomicBool>,
}

/// Runs once. An error is a failure of this harness or of the machine, not of Atlas.
pub fn run(options: &Options) -> Result<RunReport, String> {
    let names = hosts(&options.scenario.layout);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let network = match Network::isolated(&names, options.seed) {
        Ok(network) => network,
        Err(_) if options.scenario.missing().is_none() => Network::loopback(&names),
        Err(error) => return Err(error),
    };
    let network = Arc::new(network);
    fs::create_dir_all(&options.folder).map_err(|error| format!("no folder for the run: {error}"))?;
    let folder = fs::canonicalize(&options.folder).map_err(|error| format!("no folder for the run: {error}"))?;
    let (theirs, of_theirs) = (Arc::clone(&network), options.clone());
    // All requests to controllers come from the clients' host.
    let verdict = network.host(CLIENTS).run(move || on_host(&of_theirs, theirs, &folder))?;
    if verdict.is_good() {
        fs::remove_dir_all(&options.folder).map_err(|error| format!("the folder of the run stays: {error}"))?;
    }
    Ok(verdict)
}

fn on_host(options: &Options, network: Arc<Network>, folder: &Path) -> Result<RunReport, String> {
    let mut rng = Rng::new(options.seed);
    let mut rig = Rig::start(&options.scenario.layout, network, folder)?;
    let shared = Shared {
        env: rig.env.clone(),
        controllers: rig.controllers.iter().map(|machine| machine.http()).collect(),
        journal: Journal::default(),
        jobs: Arc::default(),
        stop: Arc::default(),
        session_ttl: rig.session_ttl,
        pause_max: PAUSE_MAX,
    };
    let clients = start_clients(&shared, options.clients, &mut rng);
    let mut verdict = RunReport::default();
    let (mut leader, mut leader_changes) = (rig.leader(), 0);
    let until = rig.env.clock.monotonic() + options.faults_for;
    while rig.env.clock.monotonic() < until && !options.stop.load(Ordering::Relaxed) {
        // A fault on a cluster that has not recovered from the previous one proves little.
        let _ = rig
            .until("somebody leads and serves", RECOVERY, |rig| rig.leader().is_some_and(|leader| rig.serves(leader)));
        let leads = rig.leader().or(leader);
        leader_changes += u64::from(leads != leader);
        leader = leads;
        thread::sleep(Duration::from_millis(rng.range(300, 1_500)));
        let fault = rng.pick(options.scenario.faults);
        let count = verdict.faults.entry(fault.name()).or_default();
        rig.note(fault.name());
        let became = fault.inject(&mut rig, &mut rng);
        rig.note(&format!("{}: {became:?}", fault.name()));
        match became {
            Became::Installed => count.installed += 1,
            Became::Skipped => count.skipped += 1,
            Became::Indeterminate => count.indeterminate += 1,
        }
    }
    shared.stop.store(true, Ordering::Relaxed);
    clients.join().map_err(|_| "a client panicked".to_owned())?;
    rig.heal();
    let calm = settle(&rig);
    rig.write_logs(folder);
    // If a controller does not serve, no surveys are possible; the failure to serve is then the finding.
    let surveys = if calm.is_ok() { survey(&rig)? } else { Vec::new() };
    let evidence = Evidence { entries: shared.journal.entries(), deeds: deeds(&read(&rig.effects)), surveys };
    verdict.violations = check(&evidence);
    let machines = || rig.controllers.iter().chain(&rig.workers);
    verdict
        .violations
        .extend(machines().flat_map(|machine| words::check(machine.name(), &machine.text(), options.scenario)));
    verdict.violations.extend(calm.err().map(|text| Violation { rule: "liveness", text }));
    count(&mut verdict, &evidence);
    verdict.seen.extend([("fenced reports", fenced(&rig)), ("leader changes", leader_changes)]);
    verdict.void = void(&verdict, options);
    if !verdict.is_good() {
        write_evidence(&evidence, folder);
    }
    Ok(verdict)
}

/// Starts all clients on one thread of the clients' host.
fn start_clients(shared: &Shared, count: usize, rng: &mut Rng) -> JoinHandle<()> {
    let clients: Vec<Client> = (0..count).map(|number| Client::new(shared.clone(), number, rng.fork())).collect();
    let env = shared.env.clone();
    let work = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let tasks: Vec<_> = clients.into_iter().map(|client| env.spawn("client", client.run())).collect();
            for task in tasks {
                task.join().await.expect("a client ends");
            }
        });
    };
    thread::Builder::new().name("clients".to_owned()).spawn(work).expect("a thread")
}

/// Waits until every controller serves and all jobs have ended, except those in doubt.
fn settle(rig: &Rig) -> Result<(), String> {
    for which in 0..rig.controllers.len() {
        let name = rig.controllers[which].name();
        rig.until(&format!("{name} serves after everything was healed"), CALM, |rig| rig.serves(which))?;
    }
    rig.until("all jobs have ended", CALM, |rig| {
        let running = rig.get(0, "/api/jobs?status=running&limit=1&view=full");
        let pending = rig.get(0, "/api/jobs?status=pending&limit=1000&view=full");
        let none = |jobs: Option<serde_json::Value>| {
            jobs.is_some_and(|jobs| {
                jobs.as_array().is_some_and(|jobs| jobs.iter().all(|job| job["reason"] == "in_doubt"))
            })
        };
        none(running) && none(pending)
    })
}

fn survey(rig: &Rig) -> Result<Vec<Survey>, String> {
    let env = Env::system();
    let one = async |machine: &Machine, http: &Http| {
        let (name, at) = (machine.name().to_owned(), machine.http());
        let jobs = survey::jobs(http, at).await.map_err(|error| format!("the jobs of {name}: {error}"))?;
        let known = Known { jobs: &jobs, seq: 0 };
        let events = survey::events(&env, http, at, &known).await;
        let events = events.map_err(|error| format!("the events of {name}: {error}"))?;
        Ok::<_, String>(Survey { name, jobs, events })
    };
    rig.ask(async |http| {
        let all = join_all(rig.controllers.iter().map(|machine| one(machine, http))).await;
        let mut all = all.into_iter().collect::<Result<Vec<_>, _>>()?;
        let last = |survey: &Survey| survey.events.last().map_or(0, |change| change.seq);
        let seq = all.iter().map(last).max().unwrap_or(0);
        // All controllers must report the events that one of them reported.
        for (survey, machine) in all.iter_mut().zip(&rig.controllers).filter(|(survey, _)| last(survey) < seq) {
            let known = Known { jobs: &survey.jobs, seq };
            let events = survey::events(&env, http, machine.http(), &known).await;
            survey.events = events.map_err(|error| format!("the events of {}: {error}", survey.name))?;
        }
        Ok(all)
    })
}

/// The number of reports that the controllers have refused as fenced since their last start.
fn fenced(rig: &Rig) -> u64 {
    let series = "atlas_report_answers_total{atlas_report_result=\"fenced\"} ";
    let of = |at| rig.ask(async |http| http.text(at, "/metrics").await).unwrap_or_default();
    let count = |text: String| text.lines().find_map(|line| line.strip_prefix(series)?.parse::<u64>().ok());
    rig.controllers.iter().filter_map(|machine| count(of(machine.http()))).sum()
}

/// Counts the calls, jobs and attempts of the run.
fn count(verdict: &mut RunReport, evidence: &Evidence) {
    for entry in &evidence.entries {
        match entry.outcome {
            Outcome::Done(_) => verdict.done += 1,
            Outcome::Refused(_) => verdict.refused += 1,
            Outcome::Unknown(_) => verdict.unknown += 1,
        }
    }
    let changes = evidence.surveys.first().map(|survey| survey.events.as_slice()).unwrap_or_default();
    let jobs = evidence.surveys.first().map_or(0, |survey| survey.jobs.len() as u64);
    let lost = changes.iter().filter(|change| change.change == "lost").count() as u64;
    let overlaps = evidence.deeds.values().filter(|deeds| !deeds.overlaps.is_empty()).count() as u64;
    let starts = evidence.deeds.values().map(|deeds| deeds.starts()).sum();
    verdict.seen.extend([("jobs", jobs), ("attempts lost", lost), ("overlaps", overlaps), ("starts", starts)]);
}

/// Why the run is void; none if it did enough.
fn void(verdict: &RunReport, options: &Options) -> Option<String> {
    let seconds = options.faults_for.as_secs();
    if verdict.done < DONE_MIN * seconds {
        return Some(format!("{} calls were done in {seconds} s", verdict.done));
    }
    // A short run has time for fewer faults.
    let wanted = options.scenario.faults_min.min(seconds / 5);
    if verdict.installed() < wanted {
        return Some(format!("{} faults of {wanted}", verdict.installed()));
    }
    let short = |(name, least): &&(&'static str, u64)| verdict.seen.get(name).copied().unwrap_or(0) < *least;
    options.scenario.seen_min.iter().find(short).map(|(name, least)| format!("fewer than {least} {name}"))
}

/// Writes all compared records to files, for diagnosis.
fn write_evidence(evidence: &Evidence, folder: &Path) {
    let lines = |items: Vec<String>| items.join("\n") + "\n";
    let journal = lines(evidence.entries.iter().map(|entry| format!("{entry:?}")).collect());
    fs::write(folder.join("journal"), journal).expect("written");
    for survey in &evidence.surveys {
        let jobs = lines(survey.jobs.values().map(ToString::to_string).collect());
        fs::write(folder.join(format!("{}.jobs", survey.name)), jobs).expect("written");
        let events = lines(survey.events.iter().map(|change| format!("{change:?}")).collect());
        fs::write(folder.join(format!("{}.events", survey.name)), events).expect("written");
    }
}
