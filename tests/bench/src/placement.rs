//! Measures the planner in a simulated cluster: what a placed job costs, and the memory of a waiting one.
//!
//! There is no network and no log. The cluster is full; before each plan some jobs end, and others take their room, with many more that wait.
//! Five clusters show how the cost grows with the nodes, the jobs and the namespaces.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use atlas_duty::{Strategy, schedule};
use atlas_env::Env;
use atlas_state::State;
use atlas_types::{
    AgentKind, AgentName, AgentPin, BootId, ClusterConfig, ClusterTime, Command, CompleteJob, ConfigureCluster, Demand,
    Digest, Effects, FencingToken, Gpu, GrantLease, Inventory, JobId, Level, Micros, Namespace, NodeId, Origin,
    Outcome, Payload, RegisterAgent, RegisterNode, Request, RetryRule, RunSpec, SubmitJob, Timeouts, Timestamp, Usage,
    Verdict, Version,
};

use crate::figures::Row;
use crate::process::resident_mib_of;

/// Nodes, namespaces and waiting jobs of the clusters that are measured. In each namespace are jobs of each shape. The largest is first, because
/// memory is measured before anything was freed.
const CLUSTERS: [(usize, usize, usize, &str); 5] = [
    (10_000, 8, 1_000_000, "placement_10k_nodes_1m_jobs"),
    (1_000, 8, 1_000_000, "placement_1k_nodes_1m_jobs"),
    (1_000, 1_000, 1_000_000, "placement_1k_namespaces_1m_jobs"),
    (10_000, 8, 10_000, "placement_10k_nodes_10k_jobs"),
    (1_000, 8, 10_000, "placement_1k_nodes_10k_jobs"),
];

/// Limits for one placed job, in microseconds, and for the memory of a waiting one, in KiB.
const PLACED_US: f64 = 20.0;
const WAITING_KIB: f64 = 1.0;

/// Plans that are measured.
const ROUNDS: usize = 1_000;
/// Jobs that end before each plan.
const ENDS: usize = 16;
/// As many as an entry has commands.
const BUDGET: usize = 512;
const VERSION: Version = Version { major: 1, minor: 0, patch: 0 };
const GB: u64 = 1 << 30;

/// What jobs ask for: cores, GB of memory, GPUs, GB of memory on each.
const SHAPES: [(u32, u64, u32, u64); 12] = [
    (0, 0, 0, 0),
    (1, 2, 0, 0),
    (2, 4, 0, 0),
    (4, 8, 0, 0),
    (1, 16, 0, 0),
    (8, 32, 0, 0),
    (1, 1, 0, 0),
    (2, 8, 0, 0),
    (1, 8, 1, 10),
    (2, 16, 1, 24),
    (4, 32, 1, 0),
    (8, 64, 2, 40),
];

pub(crate) fn run(env: &Env, _rows: &[Row]) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (nodes, namespaces, jobs, name) in CLUSTERS {
        let mut cluster = Simulated::new(nodes, namespaces)?;
        let empty = resident_mib_of(std::process::id())?;
        cluster.submit_up_to(jobs)?;
        let waiting = (resident_mib_of(std::process::id())? - empty) * 1024.0 / jobs as f64;
        cluster.fill(jobs)?;
        let costs = cluster.steady(env)?;
        let took = costs.iter().sum();
        let row = Row::rate(name, 1, costs, took);
        rows.push(row.median_against(&format!("{PLACED_US} µs"), Some(PLACED_US)));
        if rows.len() == 1 {
            let peer = format!("{WAITING_KIB} KiB");
            rows.push(Row::amount("placement_waiting_job", waiting, "KiB").value_against(&peer, WAITING_KIB));
        }
    }
    Ok(rows)
}

pub(crate) struct Simulated {
    pub(crate) state: State,
    namespaces: Vec<Namespace>,
    agents: Vec<(AgentName, Digest)>,
    submitted: u64,
    clock: u64,
    /// Running jobs, from which the next that ends is drawn.
    running: Vec<(JobId, NodeId, FencingToken, Namespace)>,
    drawn: u64,
}

impl Simulated {
    pub(crate) fn new(nodes: usize, namespaces: usize) -> Result<Self> {
        let mut state = State::new(1);
        state.raise(Level::CURRENT);
        let namespaces = (0..namespaces).map(|n| Ok(Namespace::new(&format!("team-{n}"))?)).collect::<Result<_>>()?;
        let mut cluster =
            Self { state, namespaces, agents: Vec::new(), submitted: 0, clock: 0, running: Vec::new(), drawn: 7 };
        let config = ClusterConfig {
            jobs_active_max: 4_000_000,
            jobs_total_max: 4_000_000,
            inline_bytes_max: 64 << 30,
            jobs_ended_kept: 0,
            nodes_max: 100_000,
            agents_max: 100_000,
            ..ClusterConfig::default()
        };
        cluster.apply(&Namespace::default_namespace(), Command::ConfigureCluster(ConfigureCluster { config }))?;
        for (number, shape) in (0_u8..).zip(SHAPES) {
            cluster.agents.push((format!("shape-{number}").parse()?, Digest([number; 32])));
            for namespace in cluster.namespaces.clone() {
                cluster.apply(&namespace, agent(&cluster.agents[usize::from(number)], shape))?;
            }
        }
        for number in 0..nodes {
            cluster.apply(&Namespace::default_namespace(), node(number)?)?;
        }
        Ok(cluster)
    }

    pub(crate) fn apply(&mut self, namespace: &Namespace, command: Command) -> Result<Outcome> {
        self.clock += 1;
        let (at, clock) = (Timestamp(i64::try_from(self.clock)?), ClusterTime(self.clock));
        let request = Request { origin: Origin::duty(namespace.clone()), command };
        self.state.begin_entry(at, clock);
        let (outcome, _) = self.state.apply(&request, at, clock);
        self.state.end_entry();
        outcome.with_context(|| format!("{request:?}"))
    }

    /// Submits jobs of all shapes until so many wait.
    pub(crate) fn submit_up_to(&mut self, waiting: usize) -> Result<()> {
        while (self.state.pending() as usize) < waiting {
            let number = self.submitted as usize + 1;
            let (name, digest) = self.agents[number % SHAPES.len()].clone();
            let namespace = self.namespaces[number / SHAPES.len() % self.namespaces.len()].clone();
            let priority = (number / 7 % 4) as i64;
            let job = SubmitJob { priority, ..self.job(name, digest) };
            self.apply(&namespace, Command::SubmitJob(job))?;
        }
        Ok(())
    }

    fn job(&mut self, agent: AgentName, digest: Digest) -> SubmitJob {
        self.submitted += 1;
        let verdict = Verdict::Accepted(AgentPin { version: VERSION, digest });
        SubmitJob::new(JobId(self.submitted), agent, verdict, Payload::inline(b"{}"))
    }

    /// Plans until no job fits any more, and lets as many wait as before.
    fn fill(&mut self, waiting: usize) -> Result<()> {
        loop {
            let plan = schedule(&self.state, &BTreeSet::new(), Strategy::BinPack, BUDGET);
            if plan.is_empty() {
                return Ok(());
            }
            self.carry_out(plan)?;
            self.submit_up_to(waiting)?;
        }
    }

    fn carry_out(&mut self, plan: Vec<Request>) -> Result<()> {
        for Request { origin, command } in plan {
            let Command::GrantLease(GrantLease { job, ref node, .. }) = command else {
                bail!("not a grant: {command:?}")
            };
            let node = node.clone();
            let outcome = self.apply(&origin.namespace, command)?;
            let Outcome::Granted { token, .. } = outcome else { bail!("not granted: {outcome:?}") };
            self.running.push((job, node, token, origin.namespace));
        }
        Ok(())
    }

    /// Ends some jobs at random, plans, and measures the plan; the cost of a round is that of one placed job.
    fn steady(&mut self, env: &Env) -> Result<Vec<Duration>> {
        let mut costs = Vec::with_capacity(ROUNDS);
        let waiting = self.state.pending() as usize;
        while costs.len() < ROUNDS {
            for _ in 0..ENDS.min(self.running.len()) {
                // A linear congruential generator: the figures of two runs come from the same cluster.
                self.drawn = self.drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (self.drawn >> 33) as usize % self.running.len();
                let (job, node, token, namespace) = self.running.swap_remove(at);
                let (output, usage) = (Payload::inline(b"{}"), Usage::default());
                let end = CompleteJob { job, node, token, output, usage, metadata: None, stream: None };
                self.apply(&namespace, Command::CompleteJob(end))?;
            }
            let begun = env.clock.monotonic();
            let plan = schedule(&self.state, &BTreeSet::new(), Strategy::BinPack, BUDGET);
            let took = env.clock.monotonic() - begun;
            if let Ok(count @ 1..) = u32::try_from(plan.len()) {
                costs.push(took / count);
            }
            self.carry_out(plan)?;
            self.submit_up_to(waiting)?;
        }
        Ok(costs)
    }
}

pub(crate) fn agent(
    (name, digest): &(AgentName, Digest),
    (cores, memory, gpus, vram): (u32, u64, u32, u64),
) -> Command {
    let demand = Demand { cores, memory_bytes: memory * GB, gpus, vram_bytes: vram * GB, ..Demand::default() };
    let second = Micros::from_secs(1);
    let spec = RunSpec {
        demand,
        effects: Effects::Idempotent,
        max_attempts: 3,
        concurrency: None,
        retry: RetryRule::default(),
        timeouts: Timeouts { queue: None, startup: second, execution: second },
        carried: false,
        durable: false,
        spawns: false,
        requires: Vec::new(),
        secrets: Vec::new(),
        model: None,
        other_models: Vec::new(),
        servers: Vec::new(),
        rate: None,
        per_key: None,
        failures_max: None,
    };
    Command::RegisterAgent(RegisterAgent {
        name: name.clone(),
        version: VERSION,
        digest: *digest,
        package_bytes: 1,
        kind: AgentKind::Agent,
        capabilities: Vec::new(),
        contract: Payload::inline(b"{}"),
        spec: Arc::new(spec),
        labels: Default::default(),
        immutable: false,
    })
}

/// Every fifth node has eight GPUs.
pub(crate) fn node(number: usize) -> Result<Command> {
    let gpu = |index| Gpu {
        index,
        uuid: format!("GPU-{number}-{index}"),
        vendor: "nvidia".to_owned(),
        model: "H100".to_owned(),
        memory_bytes: 80 * GB,
        mig_profile: None,
        healthy: true,
    };
    let inventory = Inventory {
        cores: 16,
        memory_bytes: 128 * GB,
        gpus: if number.is_multiple_of(5) { (0..8).map(gpu).collect() } else { Vec::new() },
        places: 16,
        ..Inventory::default()
    };
    let node: NodeId = format!("node-{number:05}").parse()?;
    Ok(Command::RegisterNode(RegisterNode { node, boot_id: BootId(number as u128 + 1), inventory }))
}
