//! One sample value of every stored type.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::*;

pub(crate) const JOB: JobId = JobId(0x4f3a_09c1_d27b_e685);
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
        spawns: false,
        requires: Vec::new(),
    }
}

/// A spec that any node fulfils.
pub(crate) fn light_spec() -> RunSpec {
    let RunSpec { retry, timeouts, .. } = spec();
    let demand = Demand::default();
    let (max_attempts, effects) = (3, Effects::Idempotent);
    RunSpec { demand, effects, max_attempts, concurrency: None, retry, timeouts, spawns: false, requires: Vec::new() }
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
        id: JOB,
        agent: agent(),
        verdict,
        input: Payload::inline(br#"{"text":"hello"}"#),
        priority: -3,
        metadata: Arc::from(*b"{}"),
        labels: Arc::new(labels()),
        execution_timeout: Some(Micros::from_secs(5)),
        spawner: None,
        not_before: None,
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
    }
}

/// The name of a command's golden. A new command does not compile until it has one.
fn name(command: &Command) -> &'static str {
    match command {
        Command::RegisterAgent(RegisterAgent { spec, .. }) if spec.spawns => "register_agent_spawns",
        Command::RegisterAgent(RegisterAgent { spec, .. }) if !spec.requires.is_empty() => "register_agent_requires",
        Command::RegisterAgent(RegisterAgent { spec, .. }) if spec.demand.place == Place::Llm => "register_agent_llm",
        Command::RegisterAgent(_) => "register_agent",
        Command::RetireAgent(_) => "retire_agent",
        Command::DeleteAgent(_) => "delete_agent",
        Command::DeprecateAgent(_) => "deprecate_agent",
        Command::RegisterNode(RegisterNode { inventory, .. }) if inventory.llm_places > 0 => "register_node_llm",
        Command::RegisterNode(_) => "register_node",
        Command::DrainNode(DrainNode { deadline: Some(_), .. }) => "drain_node_deadline",
        Command::DrainNode(_) => "drain_node",
        Command::Cordon(_) => "cordon",
        Command::LabelNode(_) => "label_node",
        Command::RemoveNode(_) => "remove_node",
        Command::LoseNode(_) => "lose_node",
        Command::WarmChanged(_) => "warm_changed",
        Command::SubmitJob(SubmitJob { spawner: Some(_), .. }) => "submit_job_spawned",
        Command::SubmitJob(SubmitJob { not_before: Some(_), .. }) => "submit_job_delayed",
        Command::SubmitJob(SubmitJob { verdict: Verdict::Accepted(_), .. }) => "submit_job",
        Command::SubmitJob(SubmitJob { verdict: Verdict::Refused { .. }, .. }) => "submit_job_refused",
        Command::GrantLease(GrantLease { allocation, .. }) if allocation.place == Place::Llm => "grant_lease_llm",
        Command::GrantLease(_) => "grant_lease",
        Command::StartJob(_) => "start_job",
        Command::StoreLog(_) => "store_log",
        Command::CompleteJob(_) => "complete_job",
        Command::FailJob(_) => "fail_job",
        Command::FailPending(_) => "fail_pending",
        Command::CancelJob(_) => "cancel_job",
        Command::LoseLease(_) => "lose_lease",
        Command::WakeJob(_) => "wake_job",
        Command::RetryJob(RetryJob { resume: true, .. }) => "retry_job_resume",
        Command::RetryJob(_) => "retry_job",
        Command::SinkAck(_) => "sink_ack",
        Command::PruneJobs(_) => "prune_jobs",
        Command::ConfigureCluster(_) => "configure_cluster",
        Command::ResolveJob(ResolveJob { resolution: Resolution::RunAgain, .. }) => "resolve_job_run_again",
        Command::ResolveJob(ResolveJob { resolution: Resolution::Completed(_), .. }) => "resolve_job_completed",
        Command::ResolveJob(ResolveJob { resolution: Resolution::Failed(_), .. }) => "resolve_job_failed",
        Command::ReportDigest(_) => "report_digest",
        Command::CreateJoinToken(CreateJoinToken { salt: Some(_), .. }) => "create_join_token_salt",
        Command::CreateJoinToken(_) => "create_join_token",
        Command::RevokeJoinToken(_) => "revoke_join_token",
        Command::JoinMember(_) => "join_member",
        Command::ForsakeChild(_) => "forsake_child",
        Command::RecordSteps(_) => "record_steps",
        Command::FoldSteps(_) => "fold_steps",
        Command::ParkJob(ParkJob { read: 0, .. }) => "park_job",
        Command::ParkJob(_) => "park_job_read",
        Command::DeliverMessage(_) => "deliver_message",
        Command::PutObject(_) => "put_object",
        Command::DeleteObject(_) => "delete_object",
        Command::ObserveObjects(_) => "observe_objects",
    }
}

/// How many names there are.
const NAMES: usize = 52;

/// One command of each kind, with its name.
pub(crate) fn commands() -> Vec<(&'static str, Command)> {
    let (job, token, epoch) = (JOB, TOKEN, NodeEpoch(2));
    let spawner = Spawner { job, token };
    let commands = vec![
        Command::RegisterAgent(register_agent(spec())),
        Command::RetireAgent(RetireAgent { name: agent(), version: VERSION }),
        Command::DeprecateAgent(DeprecateAgent { name: agent(), version: VERSION, why: Some("use echo2".into()) }),
        Command::RegisterNode(RegisterNode { node: node(), boot_id: BootId(7), inventory: inventory() }),
        Command::RegisterNode(RegisterNode {
            node: node(),
            boot_id: BootId(7),
            inventory: Inventory { llm_places: 256, ..inventory() },
        }),
        Command::DrainNode(DrainNode { node: node(), deadline: None }),
        Command::DrainNode(DrainNode { node: node(), deadline: Some(Micros::from_secs(300)) }),
        Command::Cordon(Cordon { node: node(), cordoned: true }),
        Command::RemoveNode(RemoveNode { node: node() }),
        Command::LoseNode(LoseNode { node: node(), epoch }),
        Command::WarmChanged(WarmChanged { node: node(), epoch, digest: PACKAGE, idle: 2 }),
        Command::SubmitJob(submit(Verdict::Accepted(pin()))),
        Command::SubmitJob(submit(Verdict::Refused { pin: Some(pin()), failure: failure() })),
        Command::GrantLease(GrantLease { job, node: node(), epoch, allocation: allocation() }),
        Command::GrantLease(GrantLease {
            job,
            node: node(),
            epoch,
            allocation: Allocation { place: Place::Llm, ..allocation() },
        }),
        Command::StartJob(StartJob { job, node: node(), token }),
        Command::StoreLog(StoreLog { job, node: node(), token, stream: artifact() }),
        Command::CompleteJob(CompleteJob {
            job,
            node: node(),
            token,
            output: Payload::inline(br#"{"text":"hello"}"#),
            usage: usage(),
            metadata: Some(Arc::from(*b"{}")),
            stream: Some(artifact()),
        }),
        Command::FailJob(FailJob {
            job,
            node: node(),
            token,
            failure: failure(),
            output: Some(Payload::inline(b"1")),
            usage: usage(),
            metadata: None,
            stream: None,
        }),
        Command::FailPending(FailPending { job, failure: failure() }),
        Command::CancelJob(CancelJob { job, running: true }),
        Command::LoseLease(LoseLease { job, token }),
        Command::WakeJob(WakeJob { job }),
        Command::RetryJob(RetryJob { job, id: JobId(8), resume: false }),
        Command::RetryJob(RetryJob { job, id: JobId(8), resume: true }),
        Command::RecordSteps(RecordSteps { job, node: node(), token, from: 2, steps: journal().steps }),
        Command::FoldSteps(FoldSteps { job, node: node(), token, upto: 2, artifact: artifact() }),
        Command::ParkJob(ParkJob {
            job,
            node: node(),
            token,
            journal_length: 4,
            waits: parked().waits,
            used: Micros(2_500_000),
            read: 0,
        }),
        Command::ParkJob(ParkJob {
            job,
            node: node(),
            token,
            journal_length: 4,
            waits: vec![Wait::Message, Wait::Answer { question: StepKey([0x33; 16]) }],
            used: Micros(2_500_000),
            read: 3,
        }),
        Command::DeliverMessage(DeliverMessage {
            job,
            id: MessageId::new("m1").expect("a name"),
            answers: Some(StepKey([0x33; 16])),
            payload: Payload::inline(b"true"),
        }),
        Command::PutObject(PutObject {
            kind: webhook().key.kind,
            name: webhook().key.name,
            labels: labels(),
            spec: webhook().spec,
            spec_version: 1,
            expect: Expect::Absent,
        }),
        Command::DeleteObject(DeleteObject {
            kind: webhook().key.kind,
            name: webhook().key.name,
            expect: Expect::Revision(EventSeq(12)),
        }),
        Command::ObserveObjects(ObserveObjects {
            observations: vec![Observation {
                key: webhook().key,
                uid: EventSeq(9),
                revision: EventSeq(12),
                status: webhook().status,
            }],
        }),
        Command::SinkAck(SinkAck { member: MemberId(1), event_seq: EventSeq(40) }),
        Command::PruneJobs(PruneJobs {
            voters: vec![MemberId(1), MemberId(2), MemberId(300)],
            event_seq: EventSeq(39),
            limit: 100,
        }),
        Command::ConfigureCluster(ConfigureCluster { config: ClusterConfig::default() }),
        Command::ResolveJob(ResolveJob { job, resolution: Resolution::RunAgain }),
        Command::ResolveJob(ResolveJob { job, resolution: Resolution::Completed(artifact()) }),
        Command::ResolveJob(ResolveJob { job, resolution: Resolution::Failed("nothing was sent".into()) }),
        Command::ReportDigest(ReportDigest { member: MemberId(2), seq: Seq(65_536), digest: [0xd1; 32] }),
        Command::CreateJoinToken(CreateJoinToken {
            hash: Digest([0x70; 32]),
            kind: JoinKind::Controller,
            ttl: Micros::from_secs(600),
            uses: 1,
            salt: None,
        }),
        Command::CreateJoinToken(CreateJoinToken {
            hash: Digest([0x71; 32]),
            kind: JoinKind::Controller,
            ttl: Micros::from_secs(600),
            uses: 1,
            salt: Some(0x5a17),
        }),
        Command::RevokeJoinToken(RevokeJoinToken { hash: Digest([0x70; 32]) }),
        Command::JoinMember(JoinMember { hash: Digest([0x70; 32]), above: MemberId(3) }),
        Command::RegisterAgent(register_agent(RunSpec { spawns: true, ..spec() })),
        Command::RegisterAgent(register_agent(RunSpec {
            requires: vec![RequiredAgent { name: "greeter".to_owned(), version: "^1.0.0".to_owned() }],
            ..spec()
        })),
        Command::RegisterAgent(register_agent(RunSpec {
            demand: Demand { place: Place::Llm, ..Demand::default() },
            ..spec()
        })),
        Command::SubmitJob(SubmitJob { spawner: Some(spawner), ..submit(Verdict::Accepted(pin())) }),
        Command::SubmitJob(SubmitJob { not_before: Some(AT), ..submit(Verdict::Accepted(pin())) }),
        Command::ForsakeChild(ForsakeChild { spawner, node: node(), child: JobId(8) }),
        Command::DeleteAgent(DeleteAgent { name: agent(), version: VERSION }),
        Command::LabelNode(LabelNode {
            node: node(),
            labels: BTreeMap::from([("rack".to_owned(), None), ("zone".to_owned(), Some("b".to_owned()))]),
        }),
    ];
    let named: BTreeMap<_, _> = commands.into_iter().map(|command| (name(&command), command)).collect();
    assert_eq!(named.len(), NAMES, "every command has a sample");
    named.into_iter().collect()
}

/// An entry that holds one request.
pub(crate) fn entry(request: Request) -> Entry {
    Entry {
        cluster_id: CLUSTER,
        level: Level(1),
        min_reader_level: Level(1),
        parent: Parent { seq: Seq(41), chain: [0xc4; 32] },
        at: AT,
        clock: ClusterTime(90_000_000),
        requests: vec![request],
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

/// A running job and a failed one; between them every field is set.
pub(crate) fn jobs() -> Vec<Job> {
    let origin = origin();
    let running = Job {
        namespace: origin.namespace,
        id: JOB,
        agent: agent(),
        pin: Some(pin()),
        spec: Some(Arc::new(spec())),
        status: JobStatus::Running,
        reason: Reason::Running,
        priority: 10,
        queue_seq: 5,
        submitted_seq: Seq(30),
        input: Payload::inline(br#"{"text":"hello"}"#),
        output: None,
        failure: None,
        created_at: Timestamp(1_767_225_599_000_000),
        started_at: Timestamp(1_767_225_599_500_000),
        completed_at: Timestamp::NOT_YET,
        queued_at: ClusterTime(79_000_000),
        warmup: Micros::default(),
        execution: Micros::default(),
        warm: false,
        attempt: Attempt(1),
        parks: 0,
        used: Micros::default(),
        parked: None,
        slept_until: Timestamp::NOT_YET,
        node: Some(node()),
        lease: Some(Arc::new(lease())),
        retry_count: 0,
        original: None,
        successor: None,
        metadata: Arc::from(*b"{}"),
        labels: Arc::new(labels()),
        execution_timeout: Some(Micros::from_secs(5)),
        principal: origin.principal,
        door: origin.door,
        request_id: origin.request_id,
        trace: origin.trace,
        stream: None,
        spawned: None,
        journal: None,
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
        stream: Some(artifact()),
        spawned: Some(Spawned { by: JOB, depth: 1, awaited: true }),
        ..running.clone()
    };
    vec![failed, running]
}

/// A state with one of everything.
pub(crate) fn image() -> StateImage {
    let agent = AgentVersion {
        namespace: Namespace::default_namespace(),
        name: agent(),
        version: VERSION,
        digest: PACKAGE,
        package_bytes: 12_345,
        kind: AgentKind::Orchestrator,
        capabilities: vec!["echo".to_owned()],
        contract: Payload::inline(br#"{"name":"echo"}"#),
        spec: Arc::new(spec()),
        labels: labels(),
        registered_at: Timestamp(1_767_225_000_000_000),
        registered_seq: Seq(2),
        retired: true,
        retired_at: None,
        deprecated: None,
    };
    let node = Node {
        id: node(),
        epoch: NodeEpoch(2),
        boot_id: BootId(7),
        inventory: inventory(),
        operator_labels: BTreeMap::new(),
        health: NodeHealth::Ready,
        cordoned: true,
        draining: true,
        drain_until: None,
        warm: BTreeMap::from([(PACKAGE, 2)]),
        registered_at: Timestamp(1_767_225_000_000_000),
    };
    let origin = origin();
    StateImage {
        cluster_id: CLUSTER,
        level: Level(1),
        seq: Seq(42),
        chain: [0xc4; 32],
        at: Timestamp(1_767_225_600_000_000),
        clock: ClusterTime(90_000_000),
        grant_seq: TOKEN,
        event_seq: EventSeq(40),
        queue_seq: 5,
        member_last: MemberId(4),
        config: ClusterConfig::default(),
        agents: vec![Arc::new(agent)],
        nodes: vec![NodeImage { node: Arc::new(node), inventory_since: FencingToken(1) }],
        jobs: jobs().into_iter().map(Arc::new).collect(),
        ended: vec![EndedImage { event: EventSeq(39), job: JobId(8) }],
        requests: vec![RequestImage {
            namespace: origin.namespace,
            principal: origin.principal,
            request_id: origin.request_id.expect("a request id"),
            body_hash: 0xfeed,
            at: ClusterTime(79_000_000),
            outcome: Outcome::Submitted { job: JOB, repeated: false },
        }],
        sinks: vec![SinkImage { member: MemberId(1), event: EventSeq(38) }],
        join_tokens: vec![JoinToken {
            hash: Digest([0x70; 32]),
            kind: JoinKind::Controller,
            expires: ClusterTime(95_000_000),
            uses: 1,
        }],
        journals: Vec::new(),
        inboxes: Vec::new(),
        objects: Vec::new(),
    }
}

/// A webhook that was changed once.
fn webhook() -> Object {
    Object {
        key: ObjectKey {
            namespace: Namespace::default_namespace(),
            kind: ObjectKind::new("webhook").expect("a word"),
            name: ObjectName::new("ci").expect("a name"),
        },
        uid: EventSeq(9),
        revision: EventSeq(12),
        labels: Arc::new(labels()),
        spec: Arc::from(*br#"{"events":["job.ended"],"url":"https://ci.example.com"}"#),
        spec_version: 1,
        created: Timestamp(1_767_225_000_000_000),
        updated: AT,
        by: Principal::local(),
        status: Arc::from(*br#"{"cursor":40}"#),
    }
}

/// A state of level 6 with objects.
pub(crate) fn image_with_objects() -> StateImage {
    StateImage { level: Level(6), objects: vec![Arc::new(webhook())], ..image() }
}

/// A journal with a fold and two steps.
pub(crate) fn journal() -> Journal {
    let usage =
        StepUsage { duration: Micros(1_200_000), tokens_input: 900, tokens_output: 40, cost_nanodollars: 1_500 };
    let step = |kind, key, outcome, usage| Arc::new(Step { kind, key: StepKey([key; 16]), outcome, usage });
    let steps = vec![
        step(StepKind::Model, 0x11, Payload::inline(br#"{"text":"hello"}"#), usage),
        step(StepKind::Tools, 0x22, artifact(), StepUsage::default()),
    ];
    Journal { folds: vec![Fold { upto: 2, artifact: artifact() }], steps }
}

fn parked() -> Parked {
    Parked { waits: vec![Wait::Time { at: AT }, Wait::Child { job: JobId(8) }], due: Some(ClusterTime(90_000_000)) }
}

/// A job that is parked.
pub(crate) fn parked_job() -> Job {
    let running = jobs().pop().expect("there are two");
    Job {
        status: JobStatus::Pending,
        reason: Reason::Parked,
        lease: None,
        attempt: Attempt(3),
        parks: 2,
        used: Micros(2_500_000),
        parked: Some(Arc::new(parked())),
        slept_until: AT,
        ..running
    }
}

/// A state of level 6: a job that runs has a journal, and so has one that ended.
pub(crate) fn image_with_journals() -> StateImage {
    let mut image = StateImage { level: Level(6), ..image() };
    let journal = Arc::new(journal());
    for job in image.jobs.iter_mut().filter(|job| job.status.is_terminal()) {
        Arc::make_mut(job).journal = Some(Arc::clone(&journal));
    }
    image.journals = vec![JournalImage { job: JOB, journal }];
    image.config.journal_bytes_max = 1 << 20;
    image
}

/// A state of level 6: a parked job has an inbox.
pub(crate) fn image_with_inboxes() -> StateImage {
    let id = |text| MessageId::new(text).expect("a name");
    let message = Message {
        id: id("m2"),
        answers: Some(StepKey([0x33; 16])),
        payload: Payload::inline(b"true"),
        from: Principal::local(),
        at: AT,
    };
    let inbox = Inbox { read: 1, read_ids: vec![id("m1")], messages: vec![Arc::new(message)] };
    let mut image = image_with_journals();
    for job in image.jobs.iter_mut().filter(|job| job.id == JOB) {
        *job = Arc::new(parked_job());
    }
    image.inboxes = vec![InboxImage { job: JOB, inbox: Arc::new(inbox) }];
    image
}
