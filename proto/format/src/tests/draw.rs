//! Draws values of every type from a seed: all variants, empty and full lists, extreme numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::*;

/// A source of values: splitmix64.
pub(crate) struct Draw(u64);

impl Draw {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.bits() % end
    }

    fn flag(&mut self) -> bool {
        self.bits() & 1 == 1
    }

    /// Small, zero and extreme numbers alike.
    fn u64(&mut self) -> u64 {
        match self.below(4) {
            0 => 0,
            1 => self.below(300),
            2 => self.bits(),
            _ => u64::MAX,
        }
    }

    fn u32(&mut self) -> u32 {
        (self.u64() & u64::from(u32::MAX)) as u32
    }

    fn i64(&mut self) -> i64 {
        self.u64() as i64
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize].clone()
    }

    fn option<T>(&mut self, draw: fn(&mut Self) -> T) -> Option<T> {
        self.flag().then(|| draw(self))
    }

    fn list<T>(&mut self, draw: fn(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| draw(self)).collect()
    }

    fn text(&mut self) -> String {
        self.list(|draw| draw.pick(&['a', 'Z', '0', '-', 'é', ' ', '🦀'])).into_iter().collect()
    }

    fn bytes(&mut self) -> Arc<[u8]> {
        self.list(|draw| draw.bits() as u8).into()
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.bits() as u8)
    }

    fn u128(&mut self) -> u128 {
        u128::from(self.u64()) << 64 | u128::from(self.u64())
    }

    fn micros(&mut self) -> Micros {
        Micros(self.u64())
    }

    fn job_id(&mut self) -> JobId {
        JobId(self.u64())
    }

    fn token(&mut self) -> FencingToken {
        FencingToken(self.u64())
    }

    fn namespace(&mut self) -> Namespace {
        Namespace::new(self.pick(&["default", "team a", "é"])).expect("a name")
    }

    fn agent_name(&mut self) -> AgentName {
        AgentName::new(self.pick(&["echo", "a.b-c", "🦀"])).expect("a name")
    }

    fn node_id(&mut self) -> NodeId {
        NodeId::new(self.pick(&["n1", "gpu-box.example"])).expect("a name")
    }

    fn principal(&mut self) -> Principal {
        Principal::new(self.pick(&["local", "cluster"])).expect("a name")
    }

    fn request_id(&mut self) -> RequestId {
        RequestId::new(self.pick(&["r1", "0190-abc"])).expect("a name")
    }

    fn digest(&mut self) -> Digest {
        Digest(self.array())
    }

    fn version(&mut self) -> Version {
        Version { major: self.u64(), minor: self.u64(), patch: self.u64() }
    }

    fn labels(&mut self) -> BTreeMap<String, String> {
        self.list(|draw| (draw.text(), draw.text())).into_iter().collect()
    }

    fn payload(&mut self) -> Payload {
        let body = match self.flag() {
            true => PayloadBody::Inline(self.bytes()),
            false => PayloadBody::Artifact { digest: self.digest(), size_bytes: self.u64() },
        };
        Payload { key_id: self.u32(), body }
    }

    fn failure_kind(&mut self) -> FailureKind {
        use FailureKind::*;
        self.pick(&[
            Agent,
            NoAgent,
            InputInvalid,
            OutputInvalid,
            Startup,
            Timeout,
            QueueTimeout,
            Unsatisfiable,
            Rejected,
            Dependency,
            LeaseLost,
            Internal,
        ])
    }

    fn failure(&mut self) -> Failure {
        Failure { kind: self.failure_kind(), error: self.text().into() }
    }

    fn usage(&mut self) -> Usage {
        Usage { warmup: self.micros(), execution: self.micros(), warm: self.flag(), idle: self.u32() }
    }

    fn door(&mut self) -> Door {
        self.pick(&[Door::Http, Door::Worker, Door::Duty, Door::Peer, Door::Mcp, Door::Local])
    }

    fn trace(&mut self) -> TraceContext {
        TraceContext { trace_id: self.u128(), span_id: self.u64(), flags: self.bits() as u8 }
    }

    fn origin(&mut self) -> Origin {
        Origin {
            namespace: self.namespace(),
            principal: self.principal(),
            door: self.door(),
            request_id: self.option(Self::request_id),
            body_hash: self.u64(),
            trace: self.option(Self::trace),
        }
    }

    fn architecture(&mut self) -> Architecture {
        self.pick(&[Architecture::X86_64, Architecture::Arm64])
    }

    fn gpu(&mut self) -> Gpu {
        Gpu {
            index: self.u32(),
            uuid: self.text(),
            vendor: self.text(),
            model: self.text(),
            memory_bytes: self.u64(),
            mig_profile: self.option(Self::text),
            healthy: self.flag(),
        }
    }

    fn inventory(&mut self) -> Inventory {
        Inventory {
            cores: self.u32(),
            memory_bytes: self.u64(),
            architecture: self.option(Self::architecture),
            gpus: self.list(Self::gpu),
            devices: self.list(Self::text),
            labels: self.labels(),
            places: self.u32(),
            declared: self.flag(),
            unchecked: self.flag(),
        }
    }

    fn demand(&mut self) -> Demand {
        Demand {
            cores: self.u32(),
            memory_bytes: self.u64(),
            gpus: self.u32(),
            vram_bytes: self.u64(),
            architecture: self.option(Self::architecture),
            devices: self.list(Self::text),
            labels: self.labels(),
            node: self.option(Self::node_id),
        }
    }

    fn allocation(&mut self) -> Allocation {
        let share = |draw: &mut Self| GpuShare { index: draw.u32(), vram_bytes: draw.u64() };
        Allocation { cores: self.u32(), memory_bytes: self.u64(), gpus: self.list(share) }
    }

    pub(crate) fn run_spec(&mut self) -> RunSpec {
        RunSpec {
            demand: self.demand(),
            effects: self.pick(&[Effects::Pure, Effects::Idempotent, Effects::Reconcilable, Effects::Once]),
            max_attempts: self.u32(),
            concurrency: self.option(Self::u32),
            retry: RetryRule { max_retries: self.u32(), backoff_base: self.micros() },
            timeouts: Timeouts { queue: self.option(Self::micros), startup: self.micros(), execution: self.micros() },
            spawns: self.flag(),
        }
    }

    fn agent_kind(&mut self) -> AgentKind {
        self.pick(&[AgentKind::Agent, AgentKind::Orchestrator])
    }

    fn agent(&mut self) -> AgentVersion {
        AgentVersion {
            namespace: self.namespace(),
            name: self.agent_name(),
            version: self.version(),
            digest: self.digest(),
            package_bytes: self.u64(),
            kind: self.agent_kind(),
            capabilities: self.list(Self::text),
            contract: self.payload(),
            spec: Arc::new(self.run_spec()),
            labels: self.labels(),
            registered_at: Timestamp(self.i64()),
            registered_seq: Seq(self.u64()),
            retired: self.flag(),
            deprecated: self.option(Self::text).map(Into::into),
        }
    }

    fn pin(&mut self) -> AgentPin {
        AgentPin { version: self.version(), digest: self.digest() }
    }

    fn verdict(&mut self) -> Verdict {
        match self.flag() {
            true => Verdict::Accepted(self.pin()),
            false => Verdict::Refused { pin: self.option(Self::pin), failure: self.failure() },
        }
    }

    fn node(&mut self) -> Node {
        Node {
            id: self.node_id(),
            epoch: NodeEpoch(self.u64()),
            boot_id: BootId(self.u128()),
            inventory: self.inventory(),
            operator_labels: self.labels(),
            health: self.pick(&[NodeHealth::Ready, NodeHealth::Down]),
            cordoned: self.flag(),
            draining: self.flag(),
            drain_until: self.option(|draw| ClusterTime(draw.u64())),
            warm: self.list(|draw| (draw.digest(), draw.u32())).into_iter().collect(),
            registered_at: Timestamp(self.i64()),
        }
    }

    fn lease(&mut self) -> Lease {
        Lease {
            namespace: self.namespace(),
            job: self.job_id(),
            node: self.node_id(),
            epoch: NodeEpoch(self.u64()),
            token: self.token(),
            attempt: Attempt(self.u32()),
            allocation: self.allocation(),
            granted_at: ClusterTime(self.u64()),
            started: self.flag(),
        }
    }

    fn reason(&mut self) -> Reason {
        let until = ClusterTime(self.u64());
        self.pick(&[
            Reason::Queued,
            Reason::Backoff { until },
            Reason::Delayed { until },
            Reason::Lost,
            Reason::InDoubt,
            Reason::Running,
            Reason::Cancelling,
        ])
    }

    pub(crate) fn job(&mut self) -> Job {
        Job {
            namespace: self.namespace(),
            id: self.job_id(),
            agent: self.agent_name(),
            pin: self.option(Self::pin),
            spec: self.option(|draw| Arc::new(draw.run_spec())),
            status: self.pick(&JobStatus::ALL),
            reason: self.reason(),
            priority: self.i64(),
            queue_seq: self.u64(),
            submitted_seq: Seq(self.u64()),
            input: self.payload(),
            output: self.option(Self::payload),
            failure: self.option(Self::failure),
            created_at: Timestamp(self.i64()),
            started_at: Timestamp(self.i64()),
            completed_at: Timestamp(self.i64()),
            queued_at: ClusterTime(self.u64()),
            warmup: self.micros(),
            execution: self.micros(),
            warm: self.flag(),
            attempt: Attempt(self.u32()),
            lease: self.option(|draw| Arc::new(draw.lease())),
            retry_count: self.u32(),
            original: self.option(Self::job_id),
            successor: self.option(Self::job_id),
            metadata: self.bytes(),
            labels: Arc::new(self.labels()),
            execution_timeout: self.option(Self::micros),
            principal: self.principal(),
            door: self.door(),
            request_id: self.option(Self::request_id),
            trace: self.option(Self::trace),
            stream: self.option(Self::payload),
            node: self.option(Self::node_id),
            spawned: self.option(|draw| Spawned { by: draw.job_id(), depth: draw.u32(), awaited: draw.flag() }),
        }
    }

    fn spawner(&mut self) -> Spawner {
        Spawner { job: self.job_id(), token: self.token() }
    }

    fn config(&mut self) -> ClusterConfig {
        ClusterConfig {
            jobs_active_max: self.u64(),
            jobs_total_max: self.u64(),
            inline_bytes_max: self.u64(),
            dedupe_max: self.u64(),
            dedupe_retention: self.micros(),
            jobs_ended_kept: self.u64(),
            agents_max: self.u64(),
            nodes_max: self.u64(),
            spawn_depth_max: self.u32(),
            retry_deterministic: self.flag(),
            backoff_max: self.option(Self::micros),
        }
    }

    fn command(&mut self) -> Command {
        let (job, node, token) = (self.job_id(), self.node_id(), self.token());
        let epoch = NodeEpoch(self.u64());
        match self.below(29) {
            0 => Command::RegisterAgent(RegisterAgent {
                name: self.agent_name(),
                version: self.version(),
                digest: self.digest(),
                package_bytes: self.u64(),
                kind: self.agent_kind(),
                capabilities: self.list(Self::text),
                contract: self.payload(),
                spec: Arc::new(self.run_spec()),
                labels: self.labels(),
            }),
            1 => Command::RetireAgent(RetireAgent { name: self.agent_name(), version: self.version() }),
            2 => {
                Command::RegisterNode(RegisterNode { node, boot_id: BootId(self.u128()), inventory: self.inventory() })
            }
            3 => Command::DrainNode(DrainNode { node, deadline: self.option(Self::micros) }),
            4 => Command::Cordon(Cordon { node, cordoned: self.flag() }),
            5 => Command::RemoveNode(RemoveNode { node }),
            6 => Command::LoseNode(LoseNode { node, epoch }),
            7 => Command::WarmChanged(WarmChanged { node, epoch, digest: self.digest(), idle: self.u32() }),
            8 => Command::SubmitJob(SubmitJob {
                id: job,
                agent: self.agent_name(),
                verdict: self.verdict(),
                input: self.payload(),
                priority: self.i64(),
                metadata: self.bytes(),
                labels: Arc::new(self.labels()),
                execution_timeout: self.option(Self::micros),
                spawner: self.option(Self::spawner),
                not_before: self.option(|draw| Timestamp(draw.i64())),
            }),
            9 => Command::GrantLease(GrantLease { job, node, epoch, allocation: self.allocation() }),
            10 => Command::StartJob(StartJob { job, node, token }),
            11 => Command::CompleteJob(CompleteJob {
                job,
                node,
                token,
                output: self.payload(),
                usage: self.usage(),
                metadata: self.option(Self::bytes),
                stream: self.option(Self::payload),
            }),
            12 => Command::FailJob(FailJob {
                job,
                node,
                token,
                failure: self.failure(),
                output: self.option(Self::payload),
                usage: self.usage(),
                metadata: self.option(Self::bytes),
                stream: self.option(Self::payload),
            }),
            13 => Command::FailPending(FailPending { job, failure: self.failure() }),
            14 => Command::CancelJob(CancelJob { job, running: self.flag() }),
            15 => Command::LoseLease(LoseLease { job, token }),
            16 => Command::WakeJob(WakeJob { job }),
            17 => Command::RetryJob(RetryJob { job, id: self.job_id() }),
            18 => Command::SinkAck(SinkAck { member: MemberId(self.u64()), event_seq: EventSeq(self.u64()) }),
            19 => Command::PruneJobs(PruneJobs {
                voters: self.list(|draw| MemberId(draw.u64())),
                event_seq: EventSeq(self.u64()),
                limit: self.u32(),
            }),
            20 => Command::ConfigureCluster(ConfigureCluster { config: self.config() }),
            21 => Command::ResolveJob(ResolveJob { job, resolution: self.resolution() }),
            22 => Command::ReportDigest(ReportDigest {
                member: MemberId(self.u64()),
                seq: Seq(self.u64()),
                digest: self.array(),
            }),
            23 => Command::CreateJoinToken(CreateJoinToken {
                hash: Digest(self.array()),
                kind: self.join_kind(),
                ttl: Micros(self.u64()),
                uses: self.u32(),
                salt: self.option(Self::u128),
            }),
            24 => Command::RevokeJoinToken(RevokeJoinToken { hash: Digest(self.array()) }),
            25 => Command::DeprecateAgent(DeprecateAgent {
                name: self.agent_name(),
                version: self.version(),
                why: self.option(Self::text).map(Into::into),
            }),
            26 => Command::ForsakeChild(ForsakeChild { spawner: self.spawner(), node, child: job }),
            27 => Command::LabelNode(LabelNode {
                node,
                labels: self.list(|draw| (draw.text(), draw.option(Self::text))).into_iter().collect(),
            }),
            _ => Command::JoinMember(JoinMember { hash: Digest(self.array()), above: MemberId(self.u64()) }),
        }
    }

    fn join_kind(&mut self) -> JoinKind {
        self.pick(&[JoinKind::Controller, JoinKind::Worker])
    }

    fn resolution(&mut self) -> Resolution {
        match self.below(3) {
            0 => Resolution::RunAgain,
            1 => Resolution::Completed(self.payload()),
            _ => Resolution::Failed(self.text().into()),
        }
    }

    pub(crate) fn request(&mut self) -> Request {
        Request { origin: self.origin(), command: self.command() }
    }

    pub(crate) fn entry(&mut self) -> Entry {
        let mut requests = vec![self.request()];
        requests.extend(self.list(Self::request));
        Entry {
            cluster_id: self.u128(),
            level: Level(self.u32()),
            min_reader_level: Level(self.below(u64::from(Level::CURRENT.0) + 1) as u32),
            parent: Parent { seq: Seq(self.u64()), chain: self.array() },
            at: Timestamp(self.i64()),
            clock: ClusterTime(self.u64()),
            requests,
        }
    }

    fn outcome(&mut self) -> Outcome {
        match self.below(9) {
            0 => Outcome::Done,
            1 => Outcome::Submitted { job: self.job_id(), repeated: self.flag() },
            2 => Outcome::Granted { token: self.token(), attempt: Attempt(self.u32()) },
            3 => Outcome::Ended { status: self.pick(&JobStatus::ALL), retry: self.option(Self::job_id) },
            4 => Outcome::Cancelled { accepted: self.flag() },
            5 => Outcome::NodeRegistered { epoch: NodeEpoch(self.u64()) },
            6 => Outcome::Pruned { jobs: self.u64() },
            7 => Outcome::MemberJoined { member: MemberId(self.u64()) },
            _ => Outcome::TokenMade { salt: self.u128(), expires: ClusterTime(self.u64()) },
        }
    }

    fn rejection(&mut self) -> Rejection {
        match self.below(21) {
            0 => Rejection::QueueFull { active: self.u64() },
            1 => Rejection::LimitReached { what: self.pick(&Rejection::LIMITS), limit: self.u64() },
            2 => Rejection::PayloadTooLarge { bytes: self.u64() },
            3 => Rejection::RequestConflict,
            4 => Rejection::DuplicateJob { job: self.job_id() },
            5 => Rejection::StaleAgent,
            6 => Rejection::UnknownAgent,
            7 => Rejection::UnknownJob { job: self.job_id() },
            8 => Rejection::WrongStatus { status: self.pick(&JobStatus::ALL) },
            9 => Rejection::Fenced,
            10 => Rejection::UnknownNode { node: self.node_id() },
            11 => Rejection::NodeUnavailable,
            12 => Rejection::NodeBusy { leases: self.u64() },
            13 => Rejection::DoesNotFit,
            14 => Rejection::NotDue,
            15 => Rejection::NotConfirmed,
            16 => Rejection::NotInDoubt { status: self.pick(&JobStatus::ALL) },
            17 => Rejection::LevelTooLow { needed: Level(self.u32()) },
            18 => Rejection::TokenRefused,
            19 => Rejection::LabelOfWorker { key: self.text() },
            _ => Rejection::Internal,
        }
    }

    pub(crate) fn outcomes(&mut self) -> Vec<Result<Outcome, Rejection>> {
        self.list(|draw| if draw.flag() { Ok(draw.outcome()) } else { Err(draw.rejection()) })
    }

    pub(crate) fn image(&mut self) -> StateImage {
        StateImage {
            cluster_id: self.u128(),
            level: Level(self.below(u64::from(Level::CURRENT.0) + 1) as u32),
            seq: Seq(self.u64()),
            chain: self.array(),
            at: Timestamp(self.i64()),
            clock: ClusterTime(self.u64()),
            grant_seq: self.token(),
            event_seq: EventSeq(self.u64()),
            queue_seq: self.u64(),
            member_last: MemberId(self.u64()),
            config: self.config(),
            agents: self.list(|draw| Arc::new(draw.agent())),
            nodes: self.list(|draw| NodeImage { node: Arc::new(draw.node()), inventory_since: draw.token() }),
            jobs: self.list(|draw| Arc::new(draw.job())),
            ended: self.list(|draw| EndedImage { event: EventSeq(draw.u64()), job: draw.job_id() }),
            requests: self.list(|draw| RequestImage {
                namespace: draw.namespace(),
                principal: draw.principal(),
                request_id: draw.request_id(),
                body_hash: draw.u64(),
                at: ClusterTime(draw.u64()),
                outcome: draw.outcome(),
            }),
            sinks: self.list(|draw| SinkImage { member: MemberId(draw.u64()), event: EventSeq(draw.u64()) }),
            join_tokens: self.list(|draw| JoinToken {
                hash: Digest(draw.array()),
                kind: draw.join_kind(),
                expires: ClusterTime(draw.u64()),
                uses: draw.u32(),
            }),
        }
    }
}
