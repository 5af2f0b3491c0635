//! Values of the state: nodes, agents, leases, jobs, and a whole image.

use std::sync::Arc;

use atlas_types::*;

use super::Draw;

impl Draw {
    pub(super) fn architecture(&mut self) -> Architecture {
        self.pick(&[Architecture::X86_64, Architecture::Arm64])
    }

    pub(super) fn gpu(&mut self) -> Gpu {
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

    pub(super) fn inventory(&mut self) -> Inventory {
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
            llm_places: self.u32(),
        }
    }

    pub(super) fn demand(&mut self) -> Demand {
        Demand {
            cores: self.u32(),
            memory_bytes: self.u64(),
            gpus: self.u32(),
            vram_bytes: self.u64(),
            architecture: self.option(Self::architecture),
            devices: self.list(Self::text),
            labels: self.labels(),
            node: self.option(Self::node_id),
            place: self.place(),
            python: self.flag(),
        }
    }

    fn place(&mut self) -> Place {
        self.pick(&Place::ALL)
    }

    pub(super) fn allocation(&mut self) -> Allocation {
        let share = |draw: &mut Self| GpuShare { index: draw.u32(), vram_bytes: draw.u64() };
        Allocation { cores: self.u32(), memory_bytes: self.u64(), gpus: self.list(share), place: self.place() }
    }

    pub(crate) fn run_spec(&mut self) -> RunSpec {
        RunSpec {
            demand: self.demand(),
            effects: self.pick(&[Effects::Pure, Effects::Idempotent, Effects::Reconcilable, Effects::Once]),
            max_attempts: self.u32(),
            concurrency: self.option(Self::u32),
            retry: RetryRule { max_retries: self.u32(), backoff_base: self.micros() },
            timeouts: Timeouts { queue: self.option(Self::micros), startup: self.micros(), execution: self.micros() },
            carried: self.flag(),
            spawns: self.flag(),
            requires: self.list(|draw| RequiredAgent { name: draw.text(), version: draw.text() }),
            secrets: self.list(Self::text),
            model: self.option(Self::text),
            other_models: self.list(Self::text),
            servers: self.list(Self::text),
            rate: self.option(Self::rate),
            per_key: self.option(|draw| PerKey {
                key: draw.text().into(),
                concurrency: draw.option(Self::u32),
                rate: draw.option(Self::rate),
            }),
            failures_max: self.option(Self::u32),
        }
    }

    fn circuit(&mut self) -> Circuit {
        let probe = match self.below(3) {
            0 => Probe::Ready,
            1 => Probe::At(ClusterTime(self.u64())),
            _ => Probe::Runs(self.token()),
        };
        let open = Open { since: Timestamp(self.i64()), pause: self.micros(), probe };
        let package = self.option(Self::digest);
        Circuit { failures: self.u32(), package, several: self.flag(), open: self.flag().then_some(open) }
    }

    fn rate(&mut self) -> Rate {
        Rate { jobs: self.u32().max(1), per: self.micros(), burst: self.u32().max(1) }
    }

    fn bucket(&mut self) -> Bucket {
        let (agent, value) = (self.option(Self::agent_name), self.option(|draw| draw.text().into()));
        let key = LimitKey { namespace: self.namespace(), agent, value };
        Bucket { key, full: ClusterTime(self.u64()) }
    }

    pub(super) fn agent_kind(&mut self) -> AgentKind {
        self.pick(&[AgentKind::Agent, AgentKind::Orchestrator])
    }

    pub(super) fn agent(&mut self) -> AgentVersion {
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
            retired_at: self.option(|draw| ClusterTime(draw.u64())),
            deprecated: self.option(Self::text).map(Into::into),
            circuit: self.circuit(),
            revision: self.u32().max(1),
            registered_by: self.option(Self::principal),
            revisions: self.list(Self::agent_revision),
        }
    }

    fn agent_revision(&mut self) -> AgentRevision {
        AgentRevision {
            number: self.u32(),
            digest: self.digest(),
            package_bytes: self.u64(),
            registered_at: Timestamp(self.i64()),
            registered_by: self.option(Self::principal),
        }
    }

    pub(super) fn pin(&mut self) -> AgentPin {
        AgentPin { version: self.version(), digest: self.digest() }
    }

    pub(super) fn verdict(&mut self) -> Verdict {
        match self.below(3) {
            0 => Verdict::Accepted(self.pin()),
            1 => Verdict::Asked { pin: self.pin(), asks: self.list(Self::approval_ask) },
            _ => Verdict::Refused { pin: self.option(Self::pin), failure: self.failure() },
        }
    }

    pub(super) fn node(&mut self) -> Node {
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
            circuit: self.circuit(),
            rival: self.option(|draw| {
                let (address, holder) = (draw.text().into(), draw.text().into());
                Arc::new(Rival { address, holder, at: Timestamp(draw.i64()) })
            }),
        }
    }

    pub(super) fn lease(&mut self) -> Lease {
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

    pub(super) fn reason(&mut self) -> Reason {
        let until = ClusterTime(self.u64());
        self.pick(&[
            Reason::Queued,
            Reason::Backoff { until },
            Reason::Delayed { until },
            Reason::Routing { until },
            Reason::Approval,
            Reason::Lost,
            Reason::InDoubt,
            Reason::Parked,
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
            parks: self.u32(),
            used: self.micros(),
            parked: self.option(|draw| Arc::new(draw.parked())),
            slept_until: Timestamp(self.i64()),
            lease: self.option(|draw| Arc::new(draw.lease())),
            carried: self.option(|draw| Carried { run: RunId(draw.u64()), since: ClusterTime(draw.u64()) }),
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
            journal: self.option(|draw| Arc::new(draw.journal())),
            bearer: self.flag(),
            budget_nanodollars: self.option(Self::u64),
            step: self.option(|draw| StepOf { run: RunId(draw.u64()), index: draw.u32() }),
            context: self.option(Self::payload),
            fork: self.option(|draw| {
                let (from, steps, changed) = (draw.job_id(), draw.u64(), draw.flag());
                Arc::new(Fork { from, steps, changed, model: draw.option(Self::object_name) })
            }),
            questions: self.question_rule(),
            route: self.option(|draw| Arc::new(draw.route())),
            evidence: self.option(|draw| Arc::new(draw.evidence())),
            approvals: self.option(|draw| Arc::new(draw.approvals())),
            waits_for_node: self.flag(),
        }
    }

    fn evidence(&mut self) -> Evidence {
        Evidence {
            policies: self.policies(),
            grants: self.list(|draw| Granted {
                attempt: Attempt(draw.u32()),
                node: draw.node_id(),
                at: Timestamp(draw.i64()),
            }),
            answers: self.list(|draw| Answered {
                question: QuestionId(draw.u64()),
                step: draw.u64(),
                by: draw.option(Self::principal),
                how: draw.pick(&AnsweredHow::ALL),
                at: Timestamp(draw.i64()),
            }),
        }
    }

    pub(super) fn policies(&mut self) -> Vec<PolicyRef> {
        self.list(|draw| PolicyRef { name: draw.object_name(), revision: EventSeq(draw.u64()), digest: draw.digest() })
    }

    fn route(&mut self) -> Route {
        Route {
            generation: EventSeq(self.u64()),
            action: self.pick(&RouteAction::ALL),
            decider: self.pick(&Decider::ALL),
            priority: self.option(Self::i64),
            rule: self.option(|draw| format!("rule {}", draw.u32()).into()),
            asked: self.agent_name(),
            asked_pin: self.option(Self::pin),
            refused: self.option(Self::failure),
        }
    }

    pub(super) fn decision(&mut self) -> Decision {
        match self.below(3) {
            0 => Decision::Execute,
            1 => Decision::Reject(self.text().into()),
            _ => Decision::Redirect(self.agent_name(), self.verdict()),
        }
    }

    pub(super) fn step(&mut self) -> Arc<Step> {
        let usage = self.step_usage();
        let (kind, key) = (self.pick(&StepKind::ALL), StepKey(self.array()));
        Arc::new(Step { kind, key, outcome: self.payload(), usage })
    }

    pub(super) fn step_usage(&mut self) -> StepUsage {
        StepUsage {
            duration: self.micros(),
            tokens_input: self.u64(),
            tokens_output: self.u64(),
            cost_nanodollars: self.u64(),
        }
    }

    pub(super) fn wait(&mut self) -> Wait {
        match self.below(5) {
            0 => Wait::Time { at: Timestamp(self.i64()) },
            1 => Wait::Child { job: self.job_id() },
            2 => Wait::Message,
            3 => Wait::Question { id: self.question_id() },
            _ => Wait::Answer { question: StepKey(self.array()) },
        }
    }

    pub(super) fn question_id(&mut self) -> QuestionId {
        QuestionId(self.u64())
    }

    pub(super) fn question_rule(&mut self) -> QuestionRule {
        match self.below(3) {
            0 => QuestionRule::Fail,
            1 => QuestionRule::Wait,
            _ => QuestionRule::Answer(self.text().into()),
        }
    }

    pub(super) fn ask(&mut self) -> Ask {
        let options = self.list(|draw| draw.text().into());
        let kind = match self.below(5) {
            0 => AskKind::Approve { options, other: self.flag() },
            1 => AskKind::Choose { options, many: self.flag(), other: self.flag() },
            2 => AskKind::Confirm,
            3 => AskKind::Text,
            _ => AskKind::Form { schema: self.bytes() },
        };
        Ask {
            kind,
            prompt: self.text().into(),
            answerers: self.list(Self::principal),
            timeout: self.option(Self::micros),
            default: self.option(Self::bytes),
        }
    }

    fn asking_rule(&mut self) -> AskingRule {
        AskingRule {
            policy: self.object_name(),
            rule: self.text().into(),
            role: self.option(Self::object_name),
            own: self.flag(),
        }
    }

    fn approval_ask(&mut self) -> ApprovalAsk {
        ApprovalAsk { rule: Arc::new(self.asking_rule()), ask: Arc::new(self.ask()) }
    }

    fn approvals(&mut self) -> Approvals {
        let approval = |draw: &mut Self| Approval {
            policy: draw.object_name(),
            rule: draw.text().into(),
            question: draw.question_id(),
            agent: draw.agent_name(),
            by: draw.option(Self::principal),
        };
        Approvals { all: self.list(approval), not_before: self.option(|draw| Timestamp(draw.i64())) }
    }

    pub(crate) fn question(&mut self) -> Question {
        let end = self.option(|draw| match draw.below(4) {
            0 => QuestionEnd::Answered { answer: draw.bytes(), by: draw.principal() },
            1 => QuestionEnd::Defaulted,
            2 => QuestionEnd::Expired,
            _ => QuestionEnd::Cancelled,
        });
        Question {
            id: self.question_id(),
            namespace: self.namespace(),
            job: self.job_id(),
            step: self.u64(),
            rule: self.option(|draw| Arc::new(draw.asking_rule())),
            ask: Arc::new(self.ask()),
            asked: EventSeq(self.u64()),
            asked_at: Timestamp(self.i64()),
            due: self.option(|draw| ClusterTime(draw.u64())),
            end,
            ended_at: Timestamp(self.i64()),
        }
    }

    fn inbox(&mut self) -> Inbox {
        let message = |draw: &mut Self| {
            Arc::new(Message {
                id: draw.message_id(),
                answers: draw.option(|draw| StepKey(draw.array())),
                payload: draw.payload(),
                from: draw.principal(),
                at: Timestamp(draw.i64()),
            })
        };
        Inbox { read: self.u64(), read_ids: self.list(Self::message_id), messages: self.list(message) }
    }

    pub(super) fn message_id(&mut self) -> MessageId {
        MessageId::new(self.pick(&["m1", "0190-def"])).expect("a name")
    }

    fn parked(&mut self) -> Parked {
        let due = self.option(|draw| ClusterTime(draw.u64()));
        Parked { waits: self.list(Self::wait), due, token: self.token() }
    }

    pub(super) fn object_kind(&mut self) -> ObjectKind {
        let word = self.pick(&["namespace", "webhook", "later-kind"]);
        ObjectKind::new(word).expect("a word")
    }

    pub(super) fn object_name(&mut self) -> ObjectName {
        ObjectName::new(self.node_id().as_str()).expect("a name")
    }

    pub(super) fn object_key(&mut self) -> ObjectKey {
        ObjectKey { namespace: self.namespace(), kind: self.object_kind(), name: self.object_name() }
    }

    fn object(&mut self) -> Object {
        Object {
            key: self.object_key(),
            uid: EventSeq(self.u64()),
            revision: EventSeq(self.u64()),
            labels: Arc::new(self.labels()),
            spec: self.bytes(),
            spec_version: self.u32(),
            created: Timestamp(self.i64()),
            updated: Timestamp(self.i64()),
            by: self.principal(),
            status: self.bytes(),
        }
    }

    fn envelope(&mut self) -> Envelope {
        let reserved = self.list(|draw| ((draw.job_id(), StepKey(draw.array())), draw.u64()));
        Envelope { spent: self.u64(), reserved: reserved.into_iter().collect() }
    }

    pub(crate) fn journal(&mut self) -> Journal {
        let folds = self.list(|draw| Fold { upto: draw.u64(), artifact: draw.payload() });
        Journal { folds, steps: self.list(Self::step), folded: self.step_usage() }
    }

    pub(super) fn spawned_by(&mut self) -> SpawnedBy {
        match self.flag() {
            true => SpawnedBy::Attempt(self.spawner()),
            false => SpawnedBy::Run { job: self.job_id(), run: RunId(self.u64()) },
        }
    }

    pub(super) fn spawner(&mut self) -> Spawner {
        Spawner { job: self.job_id(), token: self.token() }
    }

    pub(super) fn config(&mut self) -> ClusterConfig {
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
            journal_bytes_max: self.u64(),
            node_failures_max: self.u32(),
        }
    }

    /// One event of each kind.
    pub(crate) fn events(&mut self) -> Vec<Event> {
        let (change, old_status) = (JobChange::Granted, JobStatus::Pending);
        vec![
            Event::Job { change, old_status, job: Arc::new(self.job()) },
            Event::Agent { agent: Arc::new(self.agent()) },
            Event::AgentDeleted { agent: Arc::new(self.agent()) },
            Event::Node { node: Arc::new(self.node()) },
            Event::NodeRemoved { node: self.node_id() },
            Event::Configured { config: Arc::new(self.config()) },
            Event::StepsRecorded { job: self.job_id(), from: self.u64(), steps: self.list(Self::step).into() },
            Event::ObjectPut { object: Arc::new(self.object()) },
            Event::ObjectDeleted { object: Arc::new(self.object()) },
            Event::StepsFolded { job: self.job_id(), upto: self.u64(), artifact: self.payload() },
            Event::MessageDelivered { job: self.job_id(), message: self.message_id(), number: self.u64() },
            Event::Erased { namespace: self.namespace(), job: self.option(Self::job_id) },
            Event::Run { change: self.pick(&RunChange::ALL), run: Arc::new(self.run()) },
            Event::QuestionAsked { question: Arc::new(self.question()) },
            Event::QuestionEnded { question: Arc::new(self.question()) },
        ]
    }

    pub(crate) fn run(&mut self) -> Run {
        Run {
            namespace: self.namespace(),
            id: RunId(self.u64()),
            chain: self.text().into(),
            revision: self.option(|draw| EventSeq(draw.u64())),
            definition: self.payload(),
            input: self.payload(),
            status: self.pick(&RunStatus::ALL),
            version: self.u64(),
            total_steps: self.u32(),
            plan: self.option(Self::payload),
            steps: self.list(|draw| Arc::new(draw.run_step())),
            branches: self.option(|draw| Branches { fresh: draw.flag(), left: draw.list(Self::step_left) }),
            failure: self.option(Self::run_failure),
            priority: self.i64(),
            metadata: self.bytes(),
            created_at: Timestamp(self.i64()),
            completed_at: Timestamp(self.i64()),
            started: EventSeq(self.u64()),
            ended: self.option(|draw| EventSeq(draw.u64())),
            principal: self.principal(),
            door: self.door(),
            trace: self.option(Self::trace),
            job: self.option(Self::job_id),
        }
    }

    fn run_step(&mut self) -> RunStep {
        RunStep {
            number: self.u32(),
            agent: self.text().into(),
            job: self.job_id(),
            strategy: self.pick(&RunStrategy::ALL),
            output: self.option(Self::payload),
            fault: self.option(Self::run_fault),
        }
    }

    pub(super) fn step_left(&mut self) -> StepLeft {
        StepLeft { number: self.u32(), error: self.option(|draw| draw.text().into()) }
    }

    fn run_fault(&mut self) -> RunFault {
        match self.below(3) {
            0 => RunFault::Text(self.text().into()),
            1 => RunFault::Job(self.failure()),
            _ => RunFault::Cancelled,
        }
    }

    pub(super) fn run_failure(&mut self) -> RunFailure {
        RunFailure { step: self.option(Self::u32), fault: self.run_fault() }
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
            objects: self.list(|draw| Arc::new(draw.object())),
            runs: self.list(|draw| Arc::new(draw.run())),
            buckets: self.list(Self::bucket),
            progress: self.u64(),
            progress_of: self.list(|draw| (draw.namespace(), draw.u64())),
            journals: self.list(|draw| JournalImage { job: draw.job_id(), journal: Arc::new(draw.journal()) }),
            envelopes: self.list(|draw| EnvelopeImage { job: draw.job_id(), envelope: Arc::new(draw.envelope()) }),
            inboxes: self.list(|draw| InboxImage { job: draw.job_id(), inbox: Arc::new(draw.inbox()) }),
            questions: self.list(|draw| Arc::new(draw.question())),
        }
    }
}
