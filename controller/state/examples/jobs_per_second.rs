//! Prints the cost of one job: submit, grant and complete, in entries of one and of 64 jobs, with a reader's clone an entry.
//!
//! ```sh
//! cargo run --release -p atlas-state --example jobs_per_second
//! ```
#![expect(clippy::print_stdout, reason = "an example prints")]
#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock; nothing here is state")]

use std::time::Instant;

use atlas_state::State;
use atlas_types::{
    ClusterConfig, ClusterTime, Command, CompleteJob, ConfigureCluster, Door, GrantLease, Inventory, JobId, MemberId,
    Namespace, NodeEpoch, NodeId, Origin, Payload, Principal, PruneJobs, Request, RequestId, SinkAck, Timestamp, Usage,
};

const KEPT: u64 = 10_000;

fn main() {
    for (jobs, batch, keys) in [(200_000, 1, false), (200_000, 64, false), (200_000, 64, true), (100_000, 256, false)] {
        let mut bench = Bench::new(keys);
        bench.run(KEPT, batch);
        let began = Instant::now();
        bench.run(jobs, batch);
        let each = began.elapsed().as_secs_f64() * 1e6 / jobs as f64;
        let keys = if keys { ", request ids" } else { "" };
        println!("{batch:>4} jobs an entry{keys}: {each:.2} µs a job, {} jobs kept", bench.state.jobs_total());
    }
}

struct Bench {
    state: State,
    nodes: Vec<NodeId>,
    keys: bool,
    next: u64,
    reader: Option<State>,
}

impl Bench {
    fn new(keys: bool) -> Self {
        let names = (0..16).map(|node| NodeId::new(&format!("node-{node}")).expect("a name"));
        let mut bench = Self { state: State::new(1), nodes: names.collect(), keys, next: 0, reader: None };
        let config = ClusterConfig { jobs_active_max: 10_000, dedupe_max: 20_000, ..ClusterConfig::default() };
        let mut setup =
            vec![Command::ConfigureCluster(ConfigureCluster { config }), atlas_kit::agent("noop").registered()];
        setup.extend(bench.nodes.iter().map(|node| {
            let inventory = Inventory { places: 64, cores: 16, memory_bytes: 1 << 36, ..Inventory::default() };
            atlas_kit::node(node.as_str()).with_inventory(inventory).registered()
        }));
        bench.entry(setup);
        bench
    }

    /// Runs `jobs` jobs, `batch` an entry; the next entry completes them and submits more.
    fn run(&mut self, jobs: u64, batch: u64) {
        let mut running: Vec<JobId> = Vec::new();
        for _ in 0..jobs / batch {
            let mut commands: Vec<_> = running.drain(..).map(|job| self.complete(job)).collect();
            running = (0..batch).map(|_| self.fresh()).collect();
            commands.extend(running.iter().map(|job| Self::submit(*job)));
            commands.extend(running.iter().map(|job| self.grant(*job)));
            commands.extend(self.prune(batch));
            self.entry(commands);
        }
        let rest: Vec<_> = running.drain(..).map(|job| self.complete(job)).collect();
        self.entry(rest);
    }

    fn entry(&mut self, commands: Vec<Command>) {
        // A reader holds the state before: every entry pays for the copies that leaves it untouched.
        self.reader = Some(self.state.clone());
        let (at, clock) = (Timestamp(self.state.at().0 + 1_000), ClusterTime(self.state.clock().0 + 1_000));
        self.state.begin_entry(at, clock);
        for command in commands {
            let request = Request { origin: self.origin(&command), command };
            let (outcome, _) = self.state.apply(&request, at, clock);
            outcome.expect("it is accepted");
        }
        self.state.end_entry();
    }

    fn origin(&self, command: &Command) -> Origin {
        let request_id = match command {
            Command::SubmitJob(submit) if self.keys => RequestId::new(&format!("{:016x}", submit.id.0)).ok(),
            _ => None,
        };
        let (namespace, principal, door) = (Namespace::default_namespace(), Principal::local(), Door::Http);
        Origin { namespace, principal, door, request_id, body_hash: 0, trace: None }
    }

    fn fresh(&mut self) -> JobId {
        self.next += 1;
        JobId(0x9E37).derive(self.next)
    }

    fn submit(id: JobId) -> Command {
        atlas_kit::job(id.0).of("noop").with_input(Payload::inline(b"{\"text\":\"hello\"}")).submitted()
    }

    fn grant(&self, job: JobId) -> Command {
        let node = self.nodes[(job.0 % self.nodes.len() as u64) as usize].clone();
        Command::GrantLease(GrantLease { job, node, epoch: NodeEpoch(1), allocation: Default::default() })
    }

    fn complete(&self, job: JobId) -> Command {
        let lease = self.state.lease(job).expect("it runs");
        Command::CompleteJob(CompleteJob {
            job,
            node: lease.node.clone(),
            token: lease.token,
            output: Payload::inline(b"{\"ok\":true}"),
            usage: Usage { idle: 1, warm: true, ..Usage::default() },
            metadata: None,
            stream: None,
        })
    }

    /// Keeps the state at a steady size.
    fn prune(&self, batch: u64) -> Vec<Command> {
        if self.state.jobs_total() < KEPT {
            return Vec::new();
        }
        let (member, event_seq) = (MemberId(1), self.state.event_seq());
        let prune = PruneJobs { voters: vec![member], event_seq, limit: batch as u32 };
        vec![Command::SinkAck(SinkAck { member, event_seq }), Command::PruneJobs(prune)]
    }
}
