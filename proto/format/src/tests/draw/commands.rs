//! Commands, log entries and outcomes.

use std::sync::Arc;

use atlas_types::*;

use super::Draw;

impl Draw {
    fn command(&mut self) -> Command {
        let (job, node, token) = (self.job_id(), self.node_id(), self.token());
        let epoch = NodeEpoch(self.u64());
        match self.below(55) {
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
                immutable: self.flag(),
            }),
            51 => Command::ResumeAgent(ResumeAgent { name: self.agent_name(), version: self.version() }),
            52 => Command::ResumeNode(ResumeNode { node }),
            53 => {
                Command::NoteRival(NoteRival { node, epoch, address: self.text().into(), holder: self.text().into() })
            }
            54 => Command::ReserveBudget(ReserveBudget {
                job,
                node,
                token,
                call: Reservation { key: StepKey(self.array()), nanodollars: self.u64() },
            }),
            28 => Command::DeleteAgent(DeleteAgent { name: self.agent_name(), version: self.version() }),
            1 => Command::RetireAgent(RetireAgent { name: self.agent_name(), version: self.version() }),
            2 => {
                Command::RegisterNode(RegisterNode { node, boot_id: BootId(self.u128()), inventory: self.inventory() })
            }
            3 => Command::DrainNode(DrainNode { node, deadline: self.option(Self::micros) }),
            4 => Command::Cordon(Cordon { node, cordoned: self.flag() }),
            5 => Command::RemoveNode(RemoveNode { node }),
            6 => Command::LoseNode(LoseNode { node, epoch }),
            7 => Command::WarmChanged(WarmChanged { node, epoch, digest: self.digest(), idle: self.u32() }),
            8 => Command::SubmitJob(self.submit_job(job)),
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
            17 => Command::RetryJob(RetryJob { job, id: self.job_id(), resume: self.flag() }),
            29 => {
                Command::RecordSteps(RecordSteps { job, node, token, from: self.u64(), steps: self.list(Self::step) })
            }
            31 => Command::ParkJob(ParkJob {
                job,
                node,
                token,
                journal_length: self.u64(),
                waits: self.list(Self::wait),
                used: self.micros(),
                read: self.u64(),
            }),
            32 => Command::DeliverMessage(DeliverMessage {
                job,
                id: self.message_id(),
                answers: self.option(|draw| StepKey(draw.array())),
                payload: self.payload(),
            }),
            30 => Command::FoldSteps(FoldSteps { job, node, token, upto: self.u64(), artifact: self.payload() }),
            33 => Command::PutObject(PutObject {
                kind: self.object_kind(),
                name: self.object_name(),
                labels: self.labels(),
                spec: self.bytes(),
                spec_version: self.u32(),
                expect: self.expect(),
            }),
            34 => Command::DeleteObject(DeleteObject {
                kind: self.object_kind(),
                name: self.object_name(),
                expect: self.expect(),
            }),
            35 => Command::ObserveObjects(ObserveObjects {
                observations: self.list(|draw| Observation {
                    key: draw.object_key(),
                    uid: EventSeq(draw.u64()),
                    revision: EventSeq(draw.u64()),
                    status: draw.bytes(),
                }),
            }),
            36 => Command::StoreLog(StoreLog { job, node, token, stream: self.payload() }),
            37 => Command::CarryJob(CarryJob { job, run: RunId(self.u64()) }),
            42 => Command::FireTrigger(FireTrigger {
                name: self.object_name(),
                uid: EventSeq(self.u64()),
                revision: EventSeq(self.u64()),
                by: self.pick(&[FiredBy::Schedule, FiredBy::Request, FiredBy::Webhook, FiredBy::Backfill]),
                tick: Timestamp(self.i64()),
                next: Timestamp(self.i64()),
                missed: self.u64(),
                start: self.option(Self::trigger_start),
            }),
            47 => Command::RouteJob(RouteJob {
                job,
                generation: EventSeq(self.u64()),
                decider: self.pick(&Decider::ALL),
                decision: self.option(Self::decision),
                priority: self.option(Self::i64),
                rule: self.option(|draw| format!("rule {}", draw.u32()).into()),
            }),
            48 => Command::ConsultOrchestrator(ConsultOrchestrator {
                id: job,
                agent: self.agent_name(),
                pin: self.pin(),
                input: self.payload(),
                timeout: self.micros(),
            }),
            38 => Command::EndCarried(EndCarried {
                job,
                run: RunId(self.u64()),
                end: self.carried_end(),
                metadata: self.option(Self::bytes),
            }),
            18 => Command::SinkAck(SinkAck { member: MemberId(self.u64()), event_seq: EventSeq(self.u64()) }),
            19 => Command::PruneJobs(PruneJobs {
                voters: self.list(|draw| MemberId(draw.u64())),
                event_seq: EventSeq(self.u64()),
                limit: self.u32(),
            }),
            50 => Command::ErasePayloads(ErasePayloads { job: self.option(Self::job_id) }),
            43 => Command::ForkJob(ForkJob {
                job,
                id: self.job_id(),
                steps: self.u64(),
                pin: self.pin(),
                model: self.option(Self::object_name),
                cut: self.option(Self::payload),
                folded: self.step_usage(),
                added: self.option(Self::step),
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
            39 => Command::StartRun(self.start_run()),
            40 => Command::AdvanceRun(AdvanceRun {
                run: RunId(self.u64()),
                version: self.u64(),
                plan: self.option(Self::payload),
                next: self.run_next(),
            }),
            41 => Command::CancelRun(CancelRun { run: RunId(self.u64()) }),
            44 => Command::AskQuestion(AskQuestion {
                job,
                node,
                token,
                key: StepKey(self.array()),
                ask: Arc::new(self.ask()),
            }),
            45 => Command::AnswerQuestion(AnswerQuestion { question: self.question_id(), answer: self.bytes() }),
            46 => Command::ExpireQuestion(ExpireQuestion { question: self.question_id() }),
            _ => Command::JoinMember(JoinMember { hash: Digest(self.array()), above: MemberId(self.u64()) }),
        }
    }

    fn trigger_start(&mut self) -> TriggerStart {
        if self.flag() {
            return TriggerStart::Run(Box::new(self.start_run()));
        }
        let id = self.job_id();
        TriggerStart::Job(Box::new(self.submit_job(id)))
    }

    fn start_run(&mut self) -> StartRun {
        StartRun {
            id: RunId(self.u64()),
            definition: self.run_definition(),
            input: self.payload(),
            priority: self.i64(),
            metadata: self.bytes(),
        }
    }

    fn submit_job(&mut self, id: JobId) -> SubmitJob {
        SubmitJob {
            id,
            agent: self.agent_name(),
            verdict: self.verdict(),
            input: self.payload(),
            priority: self.i64(),
            metadata: self.bytes(),
            labels: Arc::new(self.labels()),
            execution_timeout: self.option(Self::micros),
            spawner: self.option(Self::spawned_by),
            not_before: self.option(|draw| Timestamp(draw.i64())),
            bearer: self.flag(),
            budget_nanodollars: self.option(Self::u64),
            context: self.option(Self::payload),
            questions: self.question_rule(),
            policies: self.policies(),
            waits_for_node: self.flag(),
        }
    }

    fn run_definition(&mut self) -> RunDefinition {
        match self.flag() {
            true => RunDefinition::Named(self.object_name()),
            false => RunDefinition::Given { chain: self.text().into(), steps: self.u32(), document: self.payload() },
        }
    }

    fn run_next(&mut self) -> RunNext {
        match self.below(4) {
            0 => RunNext::Complete,
            1 => RunNext::Fail(self.run_failure()),
            2 => RunNext::Wave(Box::new(RunWave {
                start: self.list(Self::wave_step),
                left: self.list(Self::step_left),
                more: self.flag(),
                end: self.option(|draw| match draw.flag() {
                    true => WaveEnd::Complete,
                    false => WaveEnd::Fail(draw.run_failure()),
                }),
            })),
            _ => {
                let (agent, strategy, job) = (self.text().into(), self.pick(&RunStrategy::ALL), self.job_id());
                RunNext::Step { agent, strategy, submit: Box::new(self.submit_job(job)) }
            }
        }
    }

    fn wave_step(&mut self) -> WaveStep {
        let (number, job) = (self.u32(), self.job_id());
        let (agent, strategy) = (self.text().into(), self.pick(&RunStrategy::ALL));
        WaveStep { number, agent, strategy, submit: Box::new(self.submit_job(job)) }
    }

    fn carried_end(&mut self) -> CarriedEnd {
        match self.flag() {
            true => CarriedEnd::Completed(self.payload()),
            false => CarriedEnd::Failed { failure: self.failure(), output: self.option(Self::payload) },
        }
    }

    fn expect(&mut self) -> Expect {
        let revision = EventSeq(self.u64());
        self.pick(&[Expect::Any, Expect::Absent, Expect::Revision(revision)])
    }

    pub(super) fn join_kind(&mut self) -> JoinKind {
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

    pub(super) fn outcome(&mut self) -> Outcome {
        match self.below(13) {
            0 => Outcome::Done,
            1 => Outcome::Submitted { job: self.job_id(), repeated: self.flag() },
            2 => Outcome::Granted { token: self.token(), attempt: Attempt(self.u32()) },
            3 => Outcome::Ended { status: self.pick(&JobStatus::ALL), retry: self.option(Self::job_id) },
            4 => Outcome::Cancelled { accepted: self.flag() },
            5 => Outcome::NodeRegistered { epoch: NodeEpoch(self.u64()) },
            6 => Outcome::Pruned { jobs: self.u64() },
            9 => Outcome::Delivered { repeated: self.flag() },
            8 => Outcome::Parked { ready: self.flag() },
            7 => Outcome::MemberJoined { member: MemberId(self.u64()) },
            10 => Outcome::ObjectPut { uid: EventSeq(self.u64()), revision: EventSeq(self.u64()) },
            11 => Outcome::RunStarted { run: RunId(self.u64()) },
            _ => Outcome::TokenMade { salt: self.u128(), expires: ClusterTime(self.u64()) },
        }
    }

    fn rejection(&mut self) -> Rejection {
        match self.below(53) {
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
            20 => Rejection::GpuTwice { index: self.u32() },
            21 => Rejection::AgentInService,
            22 => Rejection::AgentInUse { jobs: self.u64() },
            23 => Rejection::StepGap { from: self.u64(), next: self.u64() },
            24 => Rejection::StepDiffers {
                step: self.u64(),
                recorded_kind: self.pick(&StepKind::ALL),
                recorded: StepKey(self.array()),
                sent_kind: self.pick(&StepKind::ALL),
                sent: StepKey(self.array()),
            },
            25 => Rejection::StepsFolded { upto: self.u64(), first: self.u64() },
            26 => Rejection::NotJournaled,
            27 => Rejection::JournalLength { sent: self.u64(), recorded: self.u64() },
            28 => Rejection::NothingAwaited,
            29 => Rejection::MessageGap { read: self.u64(), delivered: self.u64() },
            30 => Rejection::MessageConflict { message: self.message_id() },
            31 => Rejection::UnknownObject,
            32 => Rejection::ObjectChanged { revision: EventSeq(self.u64()) },
            33 => Rejection::UnknownObjectKind,
            34 => Rejection::ObjectRefused { field: self.text() },
            35 => Rejection::ObjectInUse { what: self.pick(&Rejection::LIMITS) },
            37 => Rejection::FoldInline,
            38 => Rejection::NeedsRun,
            39 => Rejection::NeedsLease,
            41 => Rejection::NotCarried,
            47 => Rejection::RouteOutdated,
            40 => Rejection::RunTaken { job: self.job_id() },
            36 => Rejection::NamespaceLimit { what: self.pick(&Rejection::LIMITS), limit: self.u64() },
            42 => Rejection::UnknownRun { run: RunId(self.u64()) },
            43 => Rejection::StaleRun,
            44 => Rejection::UnknownQuestion,
            45 => Rejection::QuestionClosed,
            46 => Rejection::NotAnswerer,
            48 => Rejection::Unapproved,
            49 => Rejection::VersionTaken,
            51 => Rejection::OverBudget { budget: self.u64(), spent: self.u64() },
            52 => Rejection::BudgetReserved,
            _ => Rejection::Internal,
        }
    }

    pub(crate) fn outcomes(&mut self) -> Vec<Result<Outcome, Rejection>> {
        self.list(|draw| if draw.flag() { Ok(draw.outcome()) } else { Err(draw.rejection()) })
    }
}
