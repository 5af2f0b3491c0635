//! One run: the hosts, the main loop outside of them, and the final checks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use atlas_log::index::EntrySource;
use atlas_raft::Leadership;
use atlas_sim::{Coverage, Rng};
use turmoil::{Builder, Sim};

use crate::cluster::Cluster;
use crate::fault::Due;
use crate::invariant::had_no_room_at_once;
use crate::machine::Simulated;
use crate::oracle::Oracle;
use crate::seen::Seen;
use crate::{Bug, Options, client, member, worker};

/// The step of the simulated network and the clocks.
const TICK: Duration = Duration::from_millis(8);
/// The time after the faults within which there must be one leader and all members must be equal.
const LIVENESS_BOUND: Duration = Duration::from_secs(30);
/// The number of new entries between two checks of how many disks hold the applied entries.
const DISKS_EVERY: u64 = 6;
/// The interval at which a member that does not start is handled. If it is damaged, it gets a new disk as soon as no
/// other member is being replaced. If its disk is full, it tries again.
pub(crate) const RENEW: Duration = Duration::from_millis(300);
/// The capacity for data in transit on a connection.
const TCP_CAPACITY: usize = 65_536;

/// The minimum activity of every run.
const RUN_MIN: [(&str, u64); 6] = [
    ("acknowledged submissions", 5),
    ("entries", 15),
    ("leaders", 1),
    ("faults", 3),
    ("invariant checks", 4),
    ("executions", 2),
];

/// The minimum activity of all runs of a build together.
const BUILD_MIN: [(&str, u64); 28] = [
    ("leaders", 60),
    ("leader killed", 10),
    ("member killed", 2),
    ("all killed", 6),
    ("members away for long", 3),
    ("power lost in a sync", 4),
    ("syncs failed", 4),
    ("members stopped by a failed sync", 8),
    ("slow disks", 4),
    ("leader cut off", 8),
    ("member cut off", 5),
    ("one-way cuts", 2),
    ("links held up", 4),
    ("slow networks", 5),
    ("leadership transfers", 5),
    ("transfers to the leader", 3),
    ("wall clock jumps", 4),
    ("workers killed", 5),
    ("workers cut off", 8),
    ("workers held up", 4),
    ("lost leases", 14),
    ("fenced reports", 6),
    ("unknown outcomes", 20),
    ("disks full", 4),
    ("workers drained", 2),
    ("members replaced", 3),
    ("sessions expired", 4),
    ("stale reads", 17),
];

/// The minimums that the runs of a build did not reach.
pub fn build_shortfall(coverage: &Coverage) -> Option<String> {
    coverage.shortfall(&BUILD_MIN)
}

/// The result of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The coverage.
    pub coverage: Coverage,
    /// All observations.
    pub trace: Vec<String>,
}

/// A failed run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The violation, with the command that reproduces it.
    pub text: String,
    /// True if nothing was violated, but the run did too little to prove anything.
    pub void: bool,
    /// All observations.
    pub trace: Vec<String>,
}

impl Failure {
    fn of(options: &Options, what: &str, void: bool) -> Self {
        let seed = options.seed;
        let text = format!(
            "{what}\n  options: {options}\n  repeat: ATLAS_SEED={seed} cargo test -p atlas-turmoil --test seeds -- one_seed --nocapture"
        );
        Self { text, void, trace: Vec::new() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Runs one seed. Every twentieth seed runs twice, to check that both runs are equal.
pub fn run_checked(options: &Options) -> Result<Report, Failure> {
    let report = run(options)?;
    if options.seed.is_multiple_of(20) {
        let again = run(options)?;
        if again != report {
            let apart = report.trace.iter().zip(&again.trace).find(|(one, other)| one != other);
            let apart = apart.map_or("they end differently".to_owned(), |(one, other)| format!("{one} / {other}"));
            return Err(Failure::of(options, &format!("the same seed led to another run: {apart}"), false));
        }
    }
    Ok(report)
}

/// The first of these seeds that catches a bug, with the violation.
pub fn first_caught(
    bug: Bug,
    seeds: impl IntoIterator<Item = u64>,
    options: impl Fn(u64) -> Options,
) -> Option<(u64, Failure)> {
    seeds.into_iter().find_map(|seed| {
        let failure = run(&options(seed).with_bug(bug)).err()?;
        (!failure.void).then_some((seed, failure))
    })
}

/// Runs one seed completely.
pub fn run(options: &Options) -> Result<Report, Failure> {
    let mut world = World::new(options.clone());
    // A panic in a simulated program counts as a violation and must be reported with its seed.
    let ended = catch_unwind(AssertUnwindSafe(|| world.run()));
    match ended {
        Ok(Ok(())) => {}
        Ok(Err(error)) => world.oracle.violate(format!("a program ended with an error: {error}")),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without words");
            world.oracle.violate(format!("a program panicked: {text}"));
        }
    }
    let violation = world.oracle.violation().cloned();
    let (trace, mut coverage) = world.oracle.into_trace();
    coverage.merge(&world.cluster.coverage());
    let failure = match (violation, coverage.shortfall(&RUN_MIN)) {
        (Some(violation), _) => Failure::of(options, &violation, false),
        (None, Some(short)) => Failure::of(options, &format!("void, it only had {short}"), true),
        (None, None) => return Ok(Report { coverage, trace }),
    };
    Err(Failure { trace, ..failure })
}

/// The data of the main loop.
pub(crate) struct World {
    pub(crate) options: Options,
    pub(crate) rng: Rng,
    pub(crate) cluster: Cluster,
    oracle: Oracle,
    now: Duration,
    due: BinaryHeap<Reverse<(Duration, u64, Due)>>,
    numbers: u64,
    terms: BTreeMap<usize, u64>,
    /// The sync of a member's disk that must fail, by member and kind of failure. Both kinds can be pending.
    pub(crate) failing: BTreeMap<(usize, &'static str), u64>,
    /// Members whose disk was damaged and must be replaced.
    pub(crate) damaged: BTreeSet<usize>,
    /// How often a member was the first to apply an entry.
    applied: u64,
    /// Keeps the thread's clocks simulated, because libraries read them directly.
    clocks: Simulated,
}

impl World {
    fn new(options: Options) -> Self {
        let cluster = Cluster::new(&options);
        let rng = Rng::new(options.seed ^ 0x00FA_0170);
        let oracle = Oracle::new(&options);
        Self {
            options,
            rng,
            cluster,
            oracle,
            now: Duration::ZERO,
            due: BinaryHeap::new(),
            numbers: 0,
            terms: BTreeMap::new(),
            failing: BTreeMap::new(),
            damaged: BTreeSet::new(),
            applied: 0,
            clocks: Simulated::begin(),
        }
    }

    fn run(&mut self) -> turmoil::Result {
        let mut builder = Builder::new();
        builder
            .rng_seed(self.options.seed)
            .tick_duration(TICK)
            .min_message_latency(Duration::from_micros(200))
            .max_message_latency(self.options.delay_max)
            .tcp_capacity(TCP_CAPACITY)
            .simulation_duration(Duration::from_secs(3_600))
            .enable_random_order();
        let mut sim = builder.build();
        for member in 0..self.options.members {
            let cluster = self.cluster.clone();
            sim.host(format!("c{}", member + 1), move || member::run(cluster.clone(), member));
        }
        for node in 0..self.options.nodes {
            let cluster = self.cluster.clone();
            sim.host(format!("w{}", node + 1), move || worker::run(cluster.clone(), node));
        }
        for client in 0..self.options.clients {
            let cluster = self.cluster.clone();
            sim.host(format!("u{}", client + 1), move || client::run(cluster.clone(), client));
        }
        for n in 0..self.options.faults {
            let span = u64::try_from(self.options.faults_for.as_micros()).unwrap_or(u64::MAX);
            let at = Duration::from_secs(1) + Duration::from_micros(self.rng.below(span));
            self.after(at, Due::Fault(n));
        }
        self.phase(&mut sim, Duration::from_secs(1) + self.options.faults_for, |_| false)?;
        self.due.clear();
        self.heal(&mut sim);
        self.cluster.see(Seen::FaultsOver);
        let over = self.now;
        self.phase(&mut sim, LIVENESS_BOUND, World::is_at_rest)?;
        if self.oracle.violation().is_none() && !self.is_at_rest() {
            let what = self.unrest();
            self.oracle.violate(format!("{LIVENESS_BOUND:?} after the last fault {what}"));
        }
        self.cluster.count(if self.now - over < LIVENESS_BOUND / 2 { "quick recoveries" } else { "slow recoveries" });
        self.see_voters();
        self.see_log();
        self.oracle.finish();
        Ok(())
    }

    /// Runs the simulation for at most `long`, until `done` is true or an invariant is violated.
    fn phase(&mut self, sim: &mut Sim<'_>, long: Duration, done: impl Fn(&Self) -> bool) -> turmoil::Result {
        let until = self.now + long;
        let mut steps = 0_u64;
        while self.now < until && self.oracle.violation().is_none() {
            sim.step()?;
            self.now = sim.elapsed();
            self.clocks.at(self.now);
            self.look();
            self.revive(sim);
            while self.due.peek().is_some_and(|Reverse((at, ..))| *at <= self.now) {
                let Some(Reverse((_, _, due))) = self.due.pop() else { break };
                self.oracle.note(&format!("{due:?}"));
                self.perform(sim, due);
            }
            steps += 1;
            if steps.is_multiple_of(50) && done(self) {
                break;
            }
        }
        Ok(())
    }

    /// Passes new observations to the oracle.
    pub(crate) fn look(&mut self) {
        let cluster = self.cluster.clone();
        let failed = self.failing.extract_if(.., |(member, _), sync| cluster.disk(*member).syncs() > *sync);
        for ((member, _), _) in failed {
            self.oracle.see(self.now, &Seen::SyncFailed { member });
        }
        let mut newest = None;
        for seen in self.cluster.take_seen() {
            match &seen {
                Seen::Applied { batch, .. } if batch.seq > self.oracle.facts().newest.seq() => {
                    newest = Some(batch.index)
                }
                Seen::NoStart { member, .. } if self.damaged.contains(member) => self.after(RENEW, Due::Renew(*member)),
                Seen::NoStart { member, error } if had_no_room_at_once(error) => self.after(RENEW, Due::Start(*member)),
                _ => {}
            }
            self.oracle.see(self.now, &seen);
        }
        if let Some(index) = newest {
            self.look_at_disks(index);
        }
        for member in 0..self.options.members {
            if let Some(Leadership::Leader { term }) = self.cluster.leadership(member)
                && self.terms.insert(member, term) != Some(term)
            {
                self.oracle.see(self.now, &Seen::Leads { member, term });
            }
        }
    }

    /// Reports to the oracle how many disks hold a newly applied entry. Done only sometimes, because it is slow.
    fn look_at_disks(&mut self, index: u64) {
        self.applied += 1;
        // Skipped while a disk is lost: that disk may have held the entry when its member reported it as synced.
        let one_is_lost = !self.damaged.is_empty() || self.cluster.replacement().is_some();
        if one_is_lost || !self.applied.is_multiple_of(DISKS_EVERY) {
            return;
        }
        let holds = |member: &usize| {
            let last = self.cluster.synced_log(*member).and_then(|log| log.index.last());
            last.is_some_and(|last| last.index >= index)
        };
        let disks = (0..self.options.members).filter(holds).count();
        self.oracle.see(self.now, &Seen::OnDisks { index, disks });
    }

    /// Passes the entries of the longest log to the oracle.
    fn see_log(&mut self) {
        let logs = (0..self.options.members).filter_map(|member| Some((member, self.cluster.synced_log(member)?)));
        let Some((member, log)) = logs.min_by_key(|(_, log)| log.index.first()) else { return };
        let bodies = (log.index.first()..log.index.next()).filter_map(|index| match log.index.find(index) {
            Some(EntrySource::Cached(_, body)) => Some((index, body)),
            Some(EntrySource::OnDisk(_)) | None => None,
        });
        let entries = bodies.collect();
        self.oracle.see(self.now, &Seen::Logged { member, entries });
    }

    /// Kills and restarts members that stopped by themselves, as their supervisor would.
    fn revive(&mut self, sim: &mut Sim<'_>) {
        for member in 0..self.options.members {
            if matches!(self.cluster.leadership(member), Some(Leadership::Stopped { .. })) {
                self.kill(sim, member);
                let back = Duration::from_millis(self.rng.range(50, 1_000));
                self.after(back, Due::Start(member));
            }
        }
    }

    /// True if one member leads, all are up and equal, and no work is left.
    fn is_at_rest(&self) -> bool {
        let handles: Vec<_> = (0..self.options.members).filter_map(|member| self.cluster.handle(member)).collect();
        let leaders =
            handles.iter().filter(|handle| matches!(*handle.leadership().borrow(), Leadership::Leader { .. }));
        let newest = self.oracle.facts().newest.seq();
        handles.len() == self.options.members
            && leaders.count() == 1
            && handles.iter().all(|handle| handle.applied().seq() == newest)
            && self.cluster.busy_clients() == 0
            && self.cluster.replacement().is_none()
            && self.oracle.facts().unended().is_none()
    }

    /// Reports to the oracle which voters each member knows.
    fn see_voters(&mut self) {
        let right: Vec<_> = (0..self.options.members).map(|member| self.cluster.id(member)).collect();
        for member in 0..self.options.members {
            let Some(handle) = self.cluster.handle(member) else { continue };
            let voters = handle.members().voters.into_iter().flatten().collect();
            self.oracle.see(self.now, &Seen::Voters { member, voters, right: right.clone() });
        }
    }

    fn unrest(&self) -> String {
        let member = |member| match self.cluster.handle(member) {
            Some(handle) => {
                format!("c{} {:?} at {}", member + 1, *handle.leadership().borrow(), handle.applied().seq())
            }
            None => format!("c{} is down", member + 1),
        };
        let members: Vec<_> = (0..self.options.members).map(member).collect();
        let (members, clients) = (members.join(", "), self.cluster.busy_clients());
        let open = self.oracle.facts().unended().unwrap_or_else(|| "every job has ended".to_owned());
        let replaced = self.cluster.replacement();
        format!("not all is at rest: {members}; {clients} clients are busy; {open}; to be replaced: {replaced:?}")
    }

    pub(crate) fn after(&mut self, delay: Duration, due: Due) {
        self.numbers += 1;
        self.due.push(Reverse((self.now + delay, self.numbers, due)));
    }
}
