//! A run: a cluster, families of jobs, and a harness that kills what they ask it to kill, answers their questions, and lets failed jobs go on.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::agents;
use super::care::ANSWER_MAX;
use super::check::{Facts, check};
use super::plan::{Language, Planned, STEPS, Victim, plan};
use super::report::Report;
use super::trace::{self, Word};
use crate::chaos::{Layout, Outcome, Request, Rig};
use crate::rng::Rng;

/// Longest time until all families have ended.
const PATIENCE: Duration = Duration::from_secs(240);

/// How often the harness looks for programs that wait for their fault.
const LOOK: Duration = Duration::from_millis(10);

/// How often it asks the cluster how jobs are, and what they ask.
pub(super) const POLL: Duration = Duration::from_millis(200);

/// Longest pause of a family that sleeps without parking, and of one that parks, in seconds.
const PAUSES: (&str, &str) = ("0.5", "6");

/// Three controllers and two workers, each of which can run all jobs. A worker that is killed is lost as soon as it is back, so sessions need not
/// be short; on a busy machine, short ones would be lost without a fault.
const LAYOUT: Layout = Layout { controllers: 3, places: 32, session_ttl: Duration::from_secs(15), ..Layout::SMALL };

/// Options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Chooses the faults.
    pub seed: u64,
    pub languages: Vec<Language>,
    /// Families of each language.
    pub families: usize,
    /// The folder for all data; removed after a good run.
    pub folder: PathBuf,
}

/// A job, and those that go on with its record.
pub(super) struct Family {
    pub(super) name: String,
    pub(super) language: Language,
    /// The latest is the last one.
    pub(super) jobs: Vec<String>,
    pub(super) faults: Vec<Planned>,
    /// Jobs that failed with their agent.
    pub(super) failures: usize,
    /// The steps of which people were asked, and the questions.
    pub(super) asked: Vec<u64>,
    pub(super) answered: BTreeSet<String>,
    /// Jobs that were sent the message.
    pub(super) messaged: BTreeSet<String>,
    pub(super) output: Option<Value>,
}

impl Family {
    pub(super) fn job(&self) -> &str {
        self.jobs.last().map_or("", String::as_str)
    }
}

/// A run that goes on.
pub(super) struct Drive {
    pub(super) rig: Rig,
    /// Where programs write.
    pub(super) files: PathBuf,
    pub(super) rng: Rng,
    pub(super) families: Vec<Family>,
    pub(super) report: Report,
}

/// Runs once. An error says that the cluster or this harness could not go on.
pub fn run(options: &Options) -> Result<Report, String> {
    fs::create_dir_all(&options.folder).map_err(|error| format!("no folder for the run: {error}"))?;
    let folder = fs::canonicalize(&options.folder).map_err(|error| format!("no folder for the run: {error}"))?;
    let files = folder.join("files");
    fs::create_dir_all(&files).map_err(|error| format!("no folder for the programs: {error}"))?;
    let rig = Rig::on_loopback(&LAYOUT, &folder)?;
    let mut drive = Drive { rig, files, rng: Rng::new(options.seed), families: Vec::new(), report: Report::default() };
    let driven = drive.begin(options).and_then(|()| drive.until_all_end());
    drive.rig.write_logs(&folder);
    driven?;
    drive.check()?;
    let Drive { report, rig, .. } = drive;
    drop(rig);
    if report.is_good() {
        fs::remove_dir_all(&folder).map_err(|error| format!("the folder of the run stays: {error}"))?;
    }
    Ok(report)
}

impl Drive {
    /// Registers the agents, plans the faults and submits the jobs.
    fn begin(&mut self, options: &Options) -> Result<(), String> {
        let packages = options.languages.iter().map(|language| language.package()).chain([agents::child()]);
        for package in packages {
            let at = self.rig.addresses()[0];
            let request =
                || Request { method: "POST", path: "/api/agents", bytes: Some(package.clone()), ..Request::default() };
            match self.rig.ask(async |http| http.call(at, request()).await) {
                Outcome::Done(_) => {}
                other => return Err(format!("an agent was not registered: {other:?}")),
            }
        }
        for language in &options.languages {
            for (number, faults) in plan(&mut self.rng, options.families).into_iter().enumerate() {
                let name = format!("{}-{number}", language.agent());
                for fault in &faults {
                    fs::write(self.files.join(fault.file(&name)), fault.says()).map_err(|error| error.to_string())?;
                }
                // One of three parks.
                let pause = if number % 3 == 1 { PAUSES.1 } else { PAUSES.0 };
                let input = json!({"dir": self.files, "family": name, "pause": pause});
                let body = json!({"agent": language.agent(), "input": input, "questions": "wait"});
                let job = self.insist("/api/jobs", &body, &name)?;
                let jobs = vec![job["id"].as_str().ok_or(format!("no id: {job}"))?.to_owned()];
                let family = Family {
                    name,
                    language: *language,
                    jobs,
                    faults,
                    failures: 0,
                    asked: Vec::new(),
                    answered: BTreeSet::new(),
                    messaged: BTreeSet::new(),
                    output: None,
                };
                self.families.push(family);
            }
        }
        Ok(())
    }

    pub(super) fn now(&self) -> Duration {
        self.rig.now()
    }

    fn until_all_end(&mut self) -> Result<(), String> {
        let begun = self.now();
        let mut polled = begun;
        loop {
            for (family, fault) in self.met() {
                self.strike(family, fault)?;
            }
            if self.now() >= polled + POLL {
                self.look_after()?;
                polled = self.now();
            }
            let left: Vec<&str> = self
                .families
                .iter()
                .filter(|family| family.output.is_none())
                .map(|family| family.name.as_str())
                .collect();
            if left.is_empty() {
                return Ok(());
            }
            if self.now() > begun + PATIENCE {
                self.report.violations.push(format!("not within {PATIENCE:?}: {left:?} end"));
                return Ok(());
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The faults that programs have come to.
    fn met(&self) -> Vec<(usize, Planned)> {
        let is_met = |name: &str, fault: &Planned| self.sign(name, fault).exists();
        let families = self.families.iter().enumerate();
        families
            .flat_map(|(number, family)| {
                let met = family.faults.iter().filter(|fault| is_met(&family.name, fault));
                met.map(move |fault| (number, *fault))
            })
            .collect()
    }

    /// The file that is there while a program waits for this fault.
    fn sign(&self, family: &str, fault: &Planned) -> PathBuf {
        self.files.join(format!("{}.met", fault.file(family)))
    }

    fn strike(&mut self, number: usize, fault: Planned) -> Result<(), String> {
        let family = &self.families[number];
        let (sign, name) = (self.sign(&family.name, &fault), family.name.clone());
        self.rig.note(&format!("{name} meets {fault:?}"));
        let what = match fault.victim {
            Victim::Agent => Some("agents killed"),
            Victim::Worker => {
                let node = self.read(&format!("/api/jobs/{}?view=full", family.job()));
                let node = node.and_then(|job| job["node"].as_str().map(str::to_owned));
                let worker = self.rig.workers.iter().position(|worker| Some(worker.name()) == node.as_deref());
                self.strike_machine(worker, true, &fault, &sign).then_some("workers killed")
            }
            Victim::Leader => {
                let leader = self.rig.leader();
                self.strike_machine(leader, false, &fault, &sign).then_some("leaders killed")
            }
        };
        if let Some(what) = what {
            self.report.count(what);
        }
        // It may have gone with the program.
        let _ = fs::remove_file(&sign);
        Ok(())
    }

    /// `kill -9` of a worker or a controller, which starts again soon. False if it did not run; then somebody else's fault came first.
    fn strike_machine(&mut self, which: Option<usize>, is_worker: bool, fault: &Planned, sign: &Path) -> bool {
        let Some(which) = which else { return false };
        let race = self.rng.range(0, 40);
        if !fault.waits {
            std::thread::sleep(Duration::from_millis(race));
        }
        let machine = if is_worker { &mut self.rig.workers[which] } else { &mut self.rig.controllers[which] };
        let killed = machine.kill();
        // A program whose leader is gone goes on at once.
        let _ = fs::remove_file(sign);
        let down = self.rng.range(0, 300);
        std::thread::sleep(Duration::from_millis(down));
        machine.start();
        killed
    }

    /// Compares what the programs wrote with what must hold.
    fn check(&mut self) -> Result<(), String> {
        let machines = (self.report.seen("workers killed") + self.report.seen("leaders killed")) as usize;
        for family in &self.families {
            let Some(output) = family.output.clone() else { continue };
            let path = format!("/api/jobs/{}/steps", family.job());
            let until = self.now() + ANSWER_MAX;
            let steps = loop {
                match self.read(&path) {
                    Some(steps) => break steps,
                    None if self.now() > until => return Err(format!("{path} is not answered")),
                    None => std::thread::sleep(POLL),
                }
            };
            let code = steps.as_array().into_iter().flatten().filter(|step| step["kind"] == "code");
            let name = |step: &Value| Some(step["outcome"]["name"].as_str()?.to_owned());
            let recorded = code.filter_map(name).collect();
            let children = fs::read_to_string(self.files.join(format!("{}.children", family.name))).unwrap_or_default();
            let facts = Facts {
                language: family.language,
                lines: trace::read(&self.files, &family.name),
                asked: family.asked.clone(),
                output,
                recorded,
                children: children.lines().map(str::to_owned).collect(),
                kills: family.failures + machines,
            };
            let found = check(&facts);
            self.report.violations.extend(found.into_iter().map(|found| format!("{}: {found}", family.name)));
            self.report.jobs += family.jobs.len();
            let effects = |step| facts.lines.iter().filter(|line| line.is(Word::Effect, step)).count();
            let again = (1..=STEPS).map(|step| effects(step).saturating_sub(1)).sum::<usize>();
            let runs = facts.lines.iter().filter(|line| line.word == Word::Starts).count();
            let missed = family.faults.iter().filter(|fault| !self.is_over(family, fault)).count();
            for (what, count) in
                [("families", 1), ("runs", runs), ("effects repeated", again), ("faults missed", missed)]
            {
                self.report.add_to(what, count as u64);
            }
        }
        Ok(())
    }
}
