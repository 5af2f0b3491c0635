//! The workload: a few agents with different failure rules, and jobs whose input identifies their client.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_state::State;
use atlas_types::{
    AgentKind, AgentName, AgentPin, ApprovalAsk, Ask, AskKind, AskingRule, AssignedJournal, Assignment, BootId,
    ClusterConfig, Command, CompleteJob, ConfigureCluster, DeleteAgent, DeleteObject, Demand, Digest, Door, Effects,
    EventSeq, Expect, FailJob, Failure, FailureKind, FencingToken, Gpu, Inventory, Job, JobId, LabelNode, LoseLease,
    Micros, Namespace, NodeId, ObjectKey, ObjectKind, ObjectName, Observation, ObserveObjects, Origin, Payload,
    PayloadBody, PerKey, Place, Principal, PutObject, Rate, RegisterAgent, RegisterNode, ReportKind, Request,
    RequestId, RetireAgent, RetryRule, RunId, RunSpec, SpawnedBy, StartJob, SubmitJob, Timeouts, Usage, Verdict,
    Version,
};

use crate::rng::{Rng, mix};

const GB: u64 = 1 << 30;
/// The failures in a row that open the circuit of an agent version, and of a node.
pub(crate) const FAILURES_MAX: u32 = 2;
pub(crate) const NODE_FAILURES_MAX: u32 = 4;
const VERSION: Version = Version { major: 1, minor: 0, patch: 0 };

/// The agents, and how their children behave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// May run again.
    Echo,
    /// Shares a GPU.
    Gpu,
    /// Must not run twice unasked.
    Once,
    /// Has one attempt.
    Fragile,
    /// Fails often, and is retried.
    Flaky,
    /// At most two at a time, in one zone.
    Limited,
    /// Waits for a second and no longer.
    Hasty,
    /// Spawns others and waits for them.
    Parent,
    /// Records each of its steps, so that no attempt repeats one. Its starts are limited, and its running jobs by a label.
    Journaling,
    /// Does several things at a time, and records what came of each.
    Program,
    /// Calls a model.
    Llm,
    /// Records steps, and parks between them until a time, a message or the end of a child.
    Sleeper,
    /// Is executed by a run, without a worker.
    Carried,
    /// Fails often, until it takes no more jobs.
    Shaky,
}

impl Agent {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Echo,
        Self::Gpu,
        Self::Once,
        Self::Fragile,
        Self::Flaky,
        Self::Limited,
        Self::Hasty,
        Self::Parent,
        Self::Journaling,
        Self::Program,
        Self::Llm,
        Self::Sleeper,
        Self::Carried,
        Self::Shaky,
    ];

    /// Those that spawn nothing and that a cluster of the first feature level can register.
    pub const LONERS: [Self; 7] =
        [Self::Echo, Self::Gpu, Self::Once, Self::Fragile, Self::Flaky, Self::Limited, Self::Hasty];

    /// Its name.
    pub fn name(self) -> AgentName {
        let text = format!("{self:?}").to_lowercase();
        AgentName::new(&text).unwrap_or_else(|_| unreachable!("the names above are agent names"))
    }

    /// The agent of a name.
    pub fn named(name: &AgentName) -> Self {
        Self::ALL.into_iter().find(|agent| agent.name() == *name).unwrap_or(Self::Echo)
    }

    fn digest(self) -> Digest {
        Digest([self as u8 + 1; 32])
    }

    fn spec(self) -> RunSpec {
        let second = Micros::from_secs(1);
        let timeouts = Timeouts { queue: None, startup: second, execution: Micros::from_secs(20) };
        let plain = RunSpec {
            demand: Demand::default(),
            effects: Effects::Idempotent,
            max_attempts: 3,
            concurrency: None,
            retry: RetryRule::default(),
            timeouts,
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
        match self {
            Self::Echo => plain,
            Self::Shaky => RunSpec { failures_max: Some(FAILURES_MAX), ..plain },
            Self::Journaling => {
                let per_key =
                    PerKey { key: "label:k".into(), concurrency: Some(1), rate: Some(Rate::new(1, 1, Some(2))) };
                RunSpec { max_attempts: 5, rate: Some(Rate::new(2, 1, Some(1))), per_key: Some(per_key), ..plain }
            }
            Self::Program => RunSpec { max_attempts: 5, ..plain },
            Self::Gpu => RunSpec { demand: Demand { gpus: 1, vram_bytes: 10 * GB, ..Demand::default() }, ..plain },
            Self::Once => RunSpec { effects: Effects::Once, ..plain },
            Self::Fragile => RunSpec { max_attempts: 1, ..plain },
            Self::Flaky => {
                let retry = RetryRule { max_retries: 2, backoff_base: Micros::from_millis(500) };
                RunSpec { retry, effects: Effects::Pure, ..plain }
            }
            Self::Limited => {
                let demand = Demand { labels: zone("a"), ..Demand::default() };
                RunSpec { demand, concurrency: Some(2), ..plain }
            }
            Self::Parent | Self::Sleeper => RunSpec { spawns: true, ..plain },
            Self::Carried => {
                let retry = RetryRule { max_retries: 1, backoff_base: Micros::from_millis(500) };
                // No node has so much: nothing of it is taken.
                let demand = Demand { cores: 1_000, ..Demand::default() };
                RunSpec { demand, retry, carried: true, spawns: true, concurrency: Some(1), ..plain }
            }
            Self::Llm => RunSpec { demand: Demand { place: Place::Llm, ..Demand::default() }, ..plain },
            Self::Hasty => {
                let demand = Demand { cores: 2, ..Demand::default() };
                RunSpec { demand, timeouts: Timeouts { queue: Some(second), ..timeouts }, ..plain }
            }
        }
    }
}

/// The version that jobs of an agent run.
pub(crate) fn pin(agent: Agent) -> AgentPin {
    AgentPin { version: VERSION, digest: agent.digest() }
}

/// The report of an attempt that fails.
pub(crate) fn failed(kind: FailureKind, error: &str, usage: Usage) -> ReportKind {
    let failure = Failure { kind, error: error.into() };
    ReportKind::Failed { failure, output: None, usage, metadata: None, cancelled: false }
}

/// A request of the controllers themselves, or of a worker.
pub fn request(command: Command) -> Request {
    Request { origin: Origin::duty(Namespace::default_namespace()), command }
}

/// The same for a job of this namespace.
pub(crate) fn request_of(namespace: Namespace, command: Command) -> Request {
    Request { origin: Origin::duty(namespace), command }
}

/// The namespace of some of the jobs; all others are in the default one.
pub(crate) fn team() -> Namespace {
    Namespace::new("team").unwrap_or_else(|_| unreachable!("it is a name"))
}

/// The agents that are in that namespace as well.
pub(crate) const OF_TEAM: [Agent; 2] = [Agent::Echo, Agent::Gpu];

/// A request of a client, with its own name for it.
pub fn named(name: &str, command: Command) -> Request {
    let request_id = RequestId::new(name).ok();
    let origin = Origin {
        namespace: Namespace::default_namespace(),
        principal: Principal::local(),
        door: Door::Http,
        request_id,
        body_hash: 1,
        trace: None,
    };
    Request { origin, command }
}

/// What has to be there before the first job.
pub fn setup(jobs_ended_kept: u64) -> Vec<Request> {
    let (journal_bytes_max, node_failures_max) = (128 * 1_024, NODE_FAILURES_MAX);
    let config = ClusterConfig {
        jobs_active_max: 12,
        jobs_ended_kept,
        journal_bytes_max,
        node_failures_max,
        ..ClusterConfig::default()
    };
    let agents = Agent::ALL.into_iter().map(register);
    let configure = Command::ConfigureCluster(ConfigureCluster { config });
    agents.chain([configure]).zip(0..).map(|(command, n)| named(&format!("setup-{n}"), command)).collect()
}

/// What has to be there before the first job of the other namespace.
pub(crate) fn team_setup() -> Vec<Request> {
    let agents = OF_TEAM.into_iter().zip(0..);
    agents.map(|(agent, n)| within(team(), named(&format!("team-{n}"), register(agent)))).collect()
}

/// The same request in another namespace.
pub(crate) fn within(namespace: Namespace, request: Request) -> Request {
    Request { origin: Origin { namespace, ..request.origin }, ..request }
}

fn register(agent: Agent) -> Command {
    Command::RegisterAgent(RegisterAgent {
        name: agent.name(),
        version: VERSION,
        digest: agent.digest(),
        package_bytes: 1,
        kind: AgentKind::Agent,
        capabilities: Vec::new(),
        contract: Payload::inline(b"{}"),
        spec: Arc::new(agent.spec()),
        labels: BTreeMap::new(),
        immutable: false,
    })
}

/// The budget of jobs that record their steps: enough for some of the reservations that their attempts make.
const BUDGET: u64 = 100;

/// The submission of one operation of a client.
pub fn submit(op: u64, id: JobId, agent: Agent, priority: i64) -> Request {
    let command = SubmitJob {
        priority,
        labels: Arc::new(BTreeMap::from([("k".to_owned(), (op % 3).to_string())])),
        budget_nanodollars: (agent == Agent::Journaling).then_some(BUDGET),
        waits_for_node: agent == Agent::Journaling && op.is_multiple_of(2),
        ..SubmitJob::new(id, agent.name(), Verdict::Accepted(pin(agent)), Payload::inline(op.to_string().as_bytes()))
    };
    named(&format!("op-{op}"), Command::SubmitJob(command))
}

/// How often people look for the questions of a policy about a job, every 300 ms.
pub(crate) const LOOKS: u32 = 40;

/// The verdict on a job that one or two policies ask about. Nobody has time for some of them.
pub(crate) fn asked(job: JobId, agent: Agent) -> Verdict {
    let ask = |number: u64| {
        let rule = AskingRule {
            policy: ObjectName::new("careful").unwrap_or_else(|_| unreachable!("it is a name")),
            rule: format!("rule {number}").into(),
            role: None,
            own: false,
        };
        let ask = Ask {
            kind: AskKind::Approve { options: Vec::new(), other: true },
            prompt: "?".into(),
            answerers: Vec::new(),
            timeout: Some(Micros::from_secs(if mix(job.0 ^ number).is_multiple_of(6) { 1 } else { 30 })),
            default: None,
        };
        ApprovalAsk { rule: Arc::new(rule), ask: Arc::new(ask) }
    };
    Verdict::Asked { pin: pin(agent), asks: (0..=mix(job.0 + 1) % 2).map(ask).collect() }
}

/// The submission of a child.
pub fn spawn(spawner: SpawnedBy, number: u64, agent: Agent) -> Request {
    let id = spawner.child(number);
    let mut request = submit(id.0, id, agent, 0);
    if let Command::SubmitJob(command) = &mut request.command {
        command.spawner = Some(spawner);
    }
    request
}

/// Which operation a job belongs to.
pub fn op_of(input: &Payload) -> Option<u64> {
    number(input)
}

/// What an attempt gives out: its own token, so that a result tells whose it is.
pub fn output(token: FencingToken) -> Payload {
    Payload::inline(token.0.to_string().as_bytes())
}

/// What a run gives out.
pub(crate) fn output_of_run(run: RunId) -> Payload {
    Payload::inline(format!("\"{run}\"").as_bytes())
}

/// The attempt that an output is of.
pub fn token_of(output: &Payload) -> Option<FencingToken> {
    number(output).map(FencingToken)
}

fn number(payload: &Payload) -> Option<u64> {
    match &payload.body {
        PayloadBody::Inline(bytes) => std::str::from_utf8(bytes).ok()?.parse().ok(),
        PayloadBody::Artifact { .. } => None,
    }
}

/// Everything that a worker needs to run a lease.
pub fn assignment(state: &State, id: JobId) -> Option<Assignment> {
    let job: &Arc<Job> = state.job(id)?;
    let (lease, spec, pin) = (job.lease.as_ref()?, job.spec.as_ref()?, job.pin.as_ref()?);
    Some(Assignment {
        namespace: job.namespace.clone(),
        job: job.id,
        token: lease.token,
        attempt: lease.attempt,
        agent: job.agent.clone(),
        version: pin.version,
        digest: pin.digest,
        package_bytes: 1,
        input: job.input.clone(),
        metadata: Arc::clone(&job.metadata),
        allocation: lease.allocation.clone(),
        startup_timeout: spec.timeouts.startup,
        execution_timeout: job.execution_left()?,
        needs_start: spec.needs_start(),
        retry_count: job.retry_count,
        trace: job.trace,
        spawn: None,
        lacks: None,
        budget_nanodollars: None,
        context: None,
        fork_steps: None,
        submitted_timeout: None,
        attachments: Default::default(),
        journal: Some(Box::new(AssignedJournal {
            journal: state.journal(id).cloned().unwrap_or_default(),
            unfolded: None,
            mail: state.inbox(id).map(|inbox| inbox.mail(0)).unwrap_or_default(),
            slept_until: job.slept_until,
        })),
    })
}

/// The command that a worker's report becomes.
pub fn report(job: JobId, node: NodeId, token: FencingToken, kind: ReportKind) -> Command {
    match kind {
        ReportKind::Started => Command::StartJob(StartJob { job, node, token }),
        ReportKind::Completed { output, usage, metadata } => {
            Command::CompleteJob(CompleteJob { job, node, token, output, usage, metadata, stream: None })
        }
        ReportKind::Failed { failure, output, usage, metadata, cancelled: _ } => {
            Command::FailJob(FailJob { job, node, token, failure, output, usage, metadata, stream: None })
        }
        ReportKind::NotHeld => Command::LoseLease(LoseLease { job, token }),
    }
}

/// The hardware of a worker. The first can run everything, so that no job is without hope.
pub fn inventory(index: usize, rng: &mut Rng) -> Inventory {
    let gpus = if index == 0 { 1 } else { rng.below(3) as u32 };
    let (cores, places) = if index == 0 { (4, 3) } else { (rng.range(0, 4) as u32, rng.range(1, 4) as u32) };
    let llm_places = if index == 0 { 2 } else { rng.below(3) as u32 };
    let labels = zone(if index.is_multiple_of(2) { "a" } else { "b" });
    Inventory { cores, places, llm_places, gpus: (0..gpus).map(gpu).collect(), labels, ..Inventory::default() }
}

/// A worker's hello, under a name that no node has, with an inventory that lists a GPU twice: it is refused.
pub fn register_twins(node: NodeId) -> Command {
    let gpu = |healthy| Gpu { healthy, ..gpu(0) };
    let inventory = Inventory { places: 1, gpus: vec![gpu(true), gpu(false)], ..Inventory::default() };
    let node = NodeId::new(&format!("{node}-twins")).unwrap_or(node);
    Command::RegisterNode(RegisterNode { node, boot_id: BootId(1), inventory })
}

fn gpu(index: u32) -> Gpu {
    Gpu {
        index,
        uuid: String::new(),
        vendor: "nvidia".into(),
        model: "X".into(),
        memory_bytes: 24 * GB,
        mig_profile: None,
        healthy: true,
    }
}

/// The label by which nodes differ, as workers tell it.
fn zone(name: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("zone".to_owned(), name.to_owned())])
}

/// An operator says in which zone a node is, or that its worker knows better.
pub fn relabel(node: NodeId, rng: &mut Rng) -> Command {
    let zone = rng.pick(&[Some("a"), Some("b"), None]).map(str::to_owned);
    Command::LabelNode(LabelNode { node, labels: BTreeMap::from([("zone".to_owned(), zone)]) })
}

/// An operator limits a namespace, or a webhook is changed, deleted or observed.
pub fn configure(state: &State, rng: &mut Rng) -> Command {
    let hook = r#"{"events":["job"],"url":"http://a"}"#;
    let selection = r#"{"deadline_ms":1500,"orchestrator":"r"}"#;
    let (kind, name, specs) = match rng.below(4) {
        0 if rng.chance(300) => {
            ("namespace", "team", [r#"{"aging_seconds":1,"weight":3}"#, r#"{"aging_seconds":2,"jobs_running_max":1}"#])
        }
        0 => (
            "namespace",
            "default",
            [
                r#"{"weight":2}"#,
                r#"{"aging_seconds":1,"jobs_pending_max":30,"jobs_rate":{"jobs":5,"seconds":1},"jobs_running_max":3}"#,
            ],
        ),
        1 => ("webhook", "ci", [hook, r#"{"events":["job.ended"],"later":1,"url":"http://a"}"#]),
        _ => ("routing", "default", [selection, r#"{"deadline_ms":500,"fallback":"reject","orchestrator":"s"}"#]),
    };
    let kind = ObjectKind::new(kind).unwrap_or_else(|_| unreachable!("the words above are kinds"));
    let name = ObjectName::new(name).unwrap_or_else(|_| unreachable!("the names above are names"));
    let key = ObjectKey { namespace: Namespace::default_namespace(), kind: kind.clone(), name: name.clone() };
    let revision = state.object(&key).map_or(EventSeq(0), |found| found.revision);
    let expect = rng.pick(&[Expect::Any, Expect::Absent, Expect::Revision(revision)]);
    match (rng.below(4), state.object(&key)) {
        (0, _) => Command::DeleteObject(DeleteObject { kind, name, expect }),
        (1, Some(found)) => {
            let status = Arc::from(format!("{{\"cursor\":{}}}", state.event_seq()).as_bytes());
            let observation = Observation { key, uid: found.uid, revision, status };
            Command::ObserveObjects(ObserveObjects { observations: vec![observation] })
        }
        _ => {
            let spec = rng.pick(&specs).as_bytes().into();
            Command::PutObject(PutObject { kind, name, labels: zone("a"), spec, spec_version: 1, expect })
        }
    }
}

/// A version beside the one that jobs run is published, retired or deleted.
pub fn republish(rng: &mut Rng) -> Command {
    let (name, version) = (Agent::Echo.name(), Version { patch: rng.below(2) + 1, ..VERSION });
    match rng.below(4) {
        0 => {
            let digest = if rng.below(2) == 0 { Agent::Echo.digest() } else { Agent::Once.digest() };
            let immutable = rng.below(2) == 0;
            let (capabilities, labels) = (Vec::new(), BTreeMap::new());
            let (contract, spec) = (Payload::inline(b"{}"), Arc::new(Agent::Echo.spec()));
            let kind = AgentKind::Agent;
            let package_bytes = 1;
            let command = RegisterAgent {
                name,
                version,
                digest,
                package_bytes,
                kind,
                capabilities,
                contract,
                spec,
                labels,
                immutable,
            };
            Command::RegisterAgent(command)
        }
        1 => Command::RetireAgent(RetireAgent { name, version }),
        _ => Command::DeleteAgent(DeleteAgent { name, version }),
    }
}
