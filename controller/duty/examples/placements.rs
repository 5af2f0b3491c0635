//! How long a placement takes: `cargo run --release -p atlas-duty --example placements [NODES] [JOBS]`.
//!
//! Fills a cluster of nodes with four places each from a long queue of ten classes, one entry at a time, and prints the
//! median time of a placement in the plan alone, and the time of a plan that finds no capacity.

#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]
#![expect(clippy::disallowed_methods, reason = "it measures time and reads its arguments")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atlas_duty::{Strategy, schedule};
use atlas_state::State;
use atlas_types::{
    AgentKind, AgentName, AgentPin, BootId, ClusterConfig, ClusterTime, Command, ConfigureCluster, Demand, Digest,
    Effects, IdError, Inventory, JobId, Micros, Namespace, NodeId, Origin, Payload, RegisterAgent, RegisterNode,
    Rejection, Request, RetryRule, RunSpec, SubmitJob, Timeouts, Timestamp, Verdict, Version,
};

/// Grants of one entry.
const BUDGET: usize = 512;
const CLASSES: u32 = 10;
const VERSION: Version = Version { major: 1, minor: 0, patch: 0 };

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (nodes, jobs) = (number(10_000)?, number(100_000)?);
    let mut state = build(nodes, jobs)?;
    let mut rounds: Vec<(Duration, usize)> = Vec::new();
    loop {
        let begun = Instant::now();
        let grants = schedule(&state, Strategy::BinPack, BUDGET);
        let took = begun.elapsed();
        if grants.is_empty() {
            let placed: usize = rounds.iter().map(|(_, grants)| grants).sum();
            let mut each: Vec<f64> = rounds.iter().map(|(took, grants)| micros(*took) / *grants as f64).collect();
            each.sort_by(f64::total_cmp);
            // The median: on a busy machine the mean counts the time that others take.
            let median = each.get(each.len() / 2).copied().unwrap_or_default();
            println!("{nodes} nodes, {jobs} jobs: {placed} placements, {median:.2} µs each");
            println!("a plan without room: {:.1} µs", micros(took));
            return Ok(());
        }
        rounds.push((took, grants.len()));
        grants.into_iter().try_for_each(|grant| apply(&mut state, grant.command))?;
    }
}

fn micros(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e3
}

fn build(nodes: u64, jobs: u64) -> Result<State, Box<dyn std::error::Error>> {
    let mut state = State::new(1);
    let config = ClusterConfig { jobs_active_max: u64::MAX, nodes_max: u64::MAX, ..ClusterConfig::default() };
    apply(&mut state, Command::ConfigureCluster(ConfigureCluster { config }))?;
    for class in 0..CLASSES {
        apply(&mut state, agent(class)?)?;
    }
    for node in 0..nodes {
        let inventory = Inventory { cores: 64, memory_bytes: 64 << 30, places: 4, ..Inventory::default() };
        let node: NodeId = format!("node-{node:05}").parse()?;
        apply(&mut state, Command::RegisterNode(RegisterNode { node, boot_id: BootId(1), inventory }))?;
    }
    for job in 0..jobs {
        apply(&mut state, submission(job)?)?;
    }
    Ok(state)
}

fn name(class: u32) -> Result<AgentName, IdError> {
    AgentName::new(&format!("agent-{class}"))
}

fn agent(class: u32) -> Result<Command, IdError> {
    let second = Micros::from_secs(1);
    let spec = RunSpec {
        demand: Demand { cores: class, ..Demand::default() },
        effects: Effects::Idempotent,
        max_attempts: 3,
        concurrency: None,
        retry: RetryRule::default(),
        timeouts: Timeouts { queue: None, startup: second, execution: second },
        carried: false,
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
    Ok(Command::RegisterAgent(RegisterAgent {
        name: name(class)?,
        version: VERSION,
        digest: Digest([class as u8; 32]),
        package_bytes: 1,
        kind: AgentKind::Agent,
        capabilities: Vec::new(),
        contract: Payload::inline(b"{}"),
        spec: Arc::new(spec),
        labels: BTreeMap::new(),
    }))
}

fn submission(job: u64) -> Result<Command, IdError> {
    let class = (job % u64::from(CLASSES)) as u32;
    Ok(Command::SubmitJob(SubmitJob {
        id: JobId(0).derive(job),
        agent: name(class)?,
        verdict: Verdict::Accepted(AgentPin { version: VERSION, digest: Digest([class as u8; 32]) }),
        input: Payload::inline(b"{}"),
        priority: 0,
        metadata: Arc::from(*b"{}"),
        labels: Arc::default(),
        execution_timeout: None,
        spawner: None,
        not_before: None,
        bearer: false,
        budget_nanodollars: None,
        context: None,
        questions: atlas_types::QuestionRule::Fail,
        policies: Vec::new(),
    }))
}

fn apply(state: &mut State, command: Command) -> Result<(), Rejection> {
    let request = Request { origin: Origin::duty(Namespace::default_namespace()), command };
    let (at, clock) = (Timestamp(1), ClusterTime(0));
    state.begin_entry(at, clock);
    let (outcome, _) = state.apply(&request, at, clock);
    state.end_entry();
    outcome.map(|_| ())
}
