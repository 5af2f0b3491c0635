//! One sample value of every stored type.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::*;

mod commands;
mod images;

pub(crate) use commands::{commands, entry};
pub(crate) use images::*;

pub(crate) const JOB: JobId = JobId(0x4f3a_09c1_d27b_e685);
pub(crate) const RUN: RunId = RunId(0x51c8_0e7a_93d2_4b16);
pub(crate) const TOKEN: FencingToken = FencingToken(1);
pub(crate) const CLUSTER: u128 = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff;

pub(crate) fn node() -> NodeId {
    NodeId::new("n1").expect("a name")
}

pub(crate) fn agent() -> AgentName {
    AgentName::new("echo").expect("a name")
}

pub(crate) const VERSION: Version = Version { major: 1, minor: 20, patch: 3 };
/// The wall clock of whatever has one.
const AT: Timestamp = Timestamp(1_767_225_600_000_000);
pub(crate) const PACKAGE: Digest = Digest([0xa5; 32]);

fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([("team".to_owned(), "search".to_owned()), ("zone".to_owned(), "a".to_owned())])
}

pub(crate) fn origin() -> Origin {
    Origin {
        namespace: Namespace::default_namespace(),
        principal: Principal::local(),
        door: Door::Http,
        request_id: Some(RequestId::new("once-only").expect("a name")),
        body_hash: 0xfeed,
        trace: Some(TraceContext { trace_id: 0x4bf9_2f35, span_id: 0x00f0_67aa, flags: 1 }),
    }
}

pub(crate) fn spec() -> RunSpec {
    RunSpec {
        demand: Demand {
            cores: 2,
            memory_bytes: 4 << 30,
            gpus: 1,
            vram_bytes: 8 << 30,
            architecture: Some(Architecture::X86_64),
            devices: vec!["/dev/video0".to_owned()],
            labels: labels(),
            node: Some(node()),
            place: Place::Process,
            python: false,
            nodejs: false,
        },
        effects: Effects::Once,
        max_attempts: 3,
        concurrency: Some(4),
        retry: RetryRule { max_retries: 2, backoff_base: Micros::from_secs(1) },
        timeouts: Timeouts {
            queue: Some(Micros::from_secs(60)),
            startup: Micros::from_secs(30),
            execution: Micros::from_secs(300),
        },
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
    }
}

/// A spec that any node fulfils.
pub(crate) fn light_spec() -> RunSpec {
    let RunSpec { retry, timeouts, .. } = spec();
    let demand = Demand::default();
    let (max_attempts, effects) = (3, Effects::Idempotent);
    RunSpec {
        demand,
        effects,
        max_attempts,
        concurrency: None,
        retry,
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
    }
}

pub(crate) fn inventory() -> Inventory {
    Inventory {
        cores: 16,
        memory_bytes: 64 << 30,
        architecture: Some(Architecture::X86_64),
        gpus: vec![Gpu {
            index: 0,
            uuid: "GPU-6f1c".to_owned(),
            vendor: "nvidia".to_owned(),
            model: "H100".to_owned(),
            memory_bytes: 80 << 30,
            mig_profile: Some("1g.10gb".to_owned()),
            healthy: true,
        }],
        devices: vec!["/dev/video0".to_owned()],
        labels: labels(),
        places: 4,
        declared: true,
        unchecked: false,
        llm_places: 0,
    }
}

pub(crate) fn allocation() -> Allocation {
    Allocation {
        cores: 2,
        memory_bytes: 4 << 30,
        gpus: vec![GpuShare { index: 0, vram_bytes: 8 << 30 }],
        place: Place::Process,
    }
}

pub(crate) fn artifact() -> Payload {
    Payload { key_id: 0, body: PayloadBody::Artifact { digest: Digest([0x5a; 32]), size_bytes: 1 << 20 } }
}

pub(crate) fn failure() -> Failure {
    Failure { kind: FailureKind::Agent, error: "ValueError: no text".into() }
}

pub(crate) fn usage() -> Usage {
    Usage { warmup: Micros(250_000), execution: Micros(1_500), warm: false, idle: 1 }
}

fn pin() -> AgentPin {
    AgentPin { version: VERSION, digest: PACKAGE }
}

fn submit(verdict: Verdict) -> SubmitJob {
    SubmitJob {
        priority: -3,
        labels: Arc::new(labels()),
        execution_timeout: Some(Micros::from_secs(5)),
        ..SubmitJob::new(JOB, agent(), verdict, Payload::inline(br#"{"text":"hello"}"#))
    }
}

fn register_agent(spec: RunSpec) -> RegisterAgent {
    RegisterAgent {
        name: agent(),
        version: VERSION,
        digest: PACKAGE,
        package_bytes: 12_345,
        kind: AgentKind::Agent,
        capabilities: vec!["echo".to_owned(), "text".to_owned()],
        contract: Payload::inline(br#"{"name":"echo"}"#),
        spec: Arc::new(spec),
        labels: labels(),
        immutable: false,
    }
}

/// Every answer there is.
pub(crate) fn outcomes() -> Vec<Result<Outcome, Rejection>> {
    let status = JobStatus::Failed;
    let mut all = vec![
        Ok(Outcome::Done),
        Ok(Outcome::Submitted { job: JOB, repeated: true }),
        Ok(Outcome::Granted { token: TOKEN, attempt: Attempt(2) }),
        Ok(Outcome::Ended { status, retry: Some(JobId(8)) }),
        Ok(Outcome::Ended { status: JobStatus::Pending, retry: None }),
        Ok(Outcome::Cancelled { accepted: true }),
        Ok(Outcome::NodeRegistered { epoch: NodeEpoch(2) }),
        Ok(Outcome::Pruned { jobs: 100 }),
        Ok(Outcome::MemberJoined { member: MemberId(4) }),
        Ok(Outcome::TokenMade { salt: 0x5a17, expires: ClusterTime(690_000_000) }),
        Err(Rejection::QueueFull { active: 1_000 }),
        Err(Rejection::PayloadTooLarge { bytes: 65_537 }),
        Err(Rejection::RequestConflict),
        Err(Rejection::DuplicateJob { job: JOB }),
        Err(Rejection::StaleAgent),
        Err(Rejection::UnknownAgent),
        Err(Rejection::UnknownJob { job: JOB }),
        Err(Rejection::WrongStatus { status }),
        Err(Rejection::Fenced),
        Err(Rejection::UnknownNode { node: node() }),
        Err(Rejection::NodeUnavailable),
        Err(Rejection::NodeBusy { leases: 2 }),
        Err(Rejection::DoesNotFit),
        Err(Rejection::NotDue),
        Err(Rejection::NotConfirmed),
        Err(Rejection::Internal),
        Err(Rejection::TokenRefused),
        Err(Rejection::NotInDoubt { status }),
        Err(Rejection::LevelTooLow { needed: Level(2) }),
        Err(Rejection::SpawnForbidden),
        Err(Rejection::SpawnTooDeep { depth: 3, max: 3 }),
        Err(Rejection::HardwareHeld),
        Err(Rejection::LabelOfWorker { key: "zone".to_owned() }),
        Err(Rejection::GpuTwice { index: 1 }),
        Err(Rejection::AgentInService),
        Err(Rejection::AgentInUse { jobs: 2 }),
        Err(Rejection::StepGap { from: 5, next: 3 }),
        Err(Rejection::StepDiffers {
            step: 2,
            recorded_kind: StepKind::Model,
            recorded: StepKey([0x11; 16]),
            sent_kind: StepKind::Tools,
            sent: StepKey([0x22; 16]),
        }),
        Err(Rejection::StepsFolded { upto: 1, first: 2 }),
        Ok(Outcome::Parked { ready: true }),
        Err(Rejection::OverBudget { budget: 50_000_000, spent: 49_000_000 }),
        Err(Rejection::BudgetReserved),
        Err(Rejection::NotJournaled),
        Err(Rejection::JournalLength { sent: 3, recorded: 4 }),
        Err(Rejection::NothingAwaited),
        Ok(Outcome::Delivered { repeated: true }),
        Err(Rejection::MessageGap { read: 4, delivered: 3 }),
        Err(Rejection::MessageConflict { message: MessageId::new("m1").expect("a name") }),
        Ok(Outcome::ObjectPut { uid: EventSeq(9), revision: EventSeq(12) }),
        Err(Rejection::UnknownObject),
        Err(Rejection::ObjectChanged { revision: EventSeq(12) }),
        Err(Rejection::UnknownObjectKind),
        Err(Rejection::ObjectRefused { field: "spec.url".to_owned() }),
        Err(Rejection::ObjectInUse { what: "jobs" }),
        Err(Rejection::NamespaceLimit { what: "pending jobs", limit: 200 }),
        Err(Rejection::FoldInline),
        Err(Rejection::NeedsRun),
        Err(Rejection::NeedsLease),
        Err(Rejection::RunTaken { job: JOB }),
        Err(Rejection::NotCarried),
        Ok(Outcome::RunStarted { run: RUN }),
        Err(Rejection::UnknownRun { run: RUN }),
        Err(Rejection::StaleRun),
        Err(Rejection::UnknownQuestion),
        Err(Rejection::QuestionClosed),
        Err(Rejection::NotAnswerer),
        Err(Rejection::RouteOutdated),
        Err(Rejection::Unapproved),
        Err(Rejection::VersionTaken),
    ];
    all.extend(Rejection::LIMITS.map(|what| Err(Rejection::LimitReached { what, limit: 10 })));
    all
}

fn lease() -> Lease {
    Lease {
        namespace: Namespace::default_namespace(),
        job: JOB,
        node: node(),
        epoch: NodeEpoch(2),
        token: TOKEN,
        attempt: Attempt(1),
        allocation: allocation(),
        granted_at: ClusterTime(80_000_000),
        started: true,
    }
}

/// A running job and a failed one, with the fields of level 1; [`job_with_wishes`] and the others have the rest.
pub(crate) fn jobs() -> Vec<Job> {
    let running = Job {
        pin: Some(pin()),
        spec: Some(Arc::new(spec())),
        status: JobStatus::Running,
        reason: Reason::Running,
        priority: 10,
        queue_seq: 5,
        submitted_seq: Seq(30),
        created_at: Timestamp(1_767_225_599_000_000),
        started_at: Timestamp(1_767_225_599_500_000),
        queued_at: ClusterTime(79_000_000),
        attempt: Attempt(1),
        node: Some(node()),
        lease: Some(Arc::new(lease())),
        labels: Arc::new(labels()),
        execution_timeout: Some(Micros::from_secs(5)),
        ..Job::new(JOB, agent(), Payload::inline(br#"{"text":"hello"}"#), &origin())
    };
    let failed = Job {
        id: JobId(8),
        status: JobStatus::Failed,
        reason: Reason::Backoff { until: ClusterTime(81_000_000) },
        output: Some(Payload::inline(b"1")),
        failure: Some(failure()),
        completed_at: Timestamp(1_767_225_599_900_000),
        warmup: Micros(250_000),
        execution: Micros(1_500),
        warm: true,
        lease: None,
        retry_count: 1,
        original: Some(JobId(3)),
        successor: Some(JobId(9)),
        stream: Some(Box::new(artifact())),
        spawned: Some(Spawned { by: JOB, depth: 1, awaited: true }),
        ..running.clone()
    };
    vec![failed, running]
}

fn asking_rule() -> Arc<AskingRule> {
    let name = |text| ObjectName::new(text).expect("a name");
    Arc::new(AskingRule { policy: name("prod"), rule: "mail to all".into(), role: Some(name("approver")), own: true })
}

/// The verdict on a job that a policy asks about.
fn asked() -> Verdict {
    let ask = Ask {
        kind: AskKind::Approve { options: Vec::new(), other: true },
        prompt: "May ann run mail 1.0.0?".into(),
        answerers: vec![Principal::local()],
        timeout: Some(Micros::from_secs(86_400)),
        default: None,
    };
    Verdict::Asked { pin: pin(), asks: vec![ApprovalAsk { rule: asking_rule(), ask: Arc::new(ask) }] }
}

/// A job that waits for one of its two approvals.
pub(crate) fn job_with_approvals() -> Job {
    let approval = |question, by| Approval {
        policy: asking_rule().policy.clone(),
        rule: asking_rule().rule.clone(),
        question: QuestionId(question),
        agent: jobs().remove(0).agent,
        by,
    };
    let all = vec![approval(11, Some(Principal::local())), approval(12, None)];
    Job {
        status: JobStatus::Pending,
        reason: Reason::Approval,
        started_at: Timestamp::NOT_YET,
        attempt: Attempt(0),
        node: None,
        lease: None,
        approvals: Some(Arc::new(Approvals { all, not_before: Some(Timestamp(1_767_225_700_000_000)) })),
        ..jobs().remove(0)
    }
}

/// An ended job with what its submission may ask for, which an orchestrator redirected.
pub(crate) fn job_with_wishes() -> Job {
    let route = Route {
        generation: EventSeq(12),
        action: RouteAction::Redirect,
        decider: Decider::Orchestrator,
        priority: Some(20),
        rule: Some("small inputs".into()),
        asked: AgentName::new("large").expect("a name"),
        asked_pin: Some(pin()),
        refused: Some(failure()),
    };
    let model = Some(ObjectName::new("fast").expect("a name"));
    Job {
        journal: Some(Arc::new(journal())),
        metadata: (*br#"{"team":"a"}"#).into(),
        bearer: true,
        budget_nanodollars: Some(50_000_000),
        fork: Some(Arc::new(Fork { from: JobId(8), steps: 2, changed: true, model })),
        questions: QuestionRule::Answer("yes".into()),
        route: Some(Arc::new(route)),
        waits_for_node: true,
        title: Some("weekly report".into()),
        ..jobs().remove(0)
    }
}

/// A job that keeps everything for its receipt.
pub(crate) fn job_with_evidence() -> Job {
    let at = Timestamp(1_767_225_599_700_000);
    let answered = |by, how| Answered { question: QuestionId(6), step: 2, by, how, at };
    let evidence = Evidence {
        policies: vec![PolicyRef {
            name: ObjectName::new("night").expect("a name"),
            revision: EventSeq(12),
            digest: Digest([0xa5; 32]),
        }],
        grants: vec![Granted { attempt: Attempt(1), node: node(), at }],
        answers: vec![
            answered(Some(Principal::new("ann").expect("a name")), AnsweredHow::Answered),
            answered(None, AnsweredHow::Expired),
        ],
    };
    Job { evidence: Some(Arc::new(evidence)), ..jobs().remove(0) }
}
