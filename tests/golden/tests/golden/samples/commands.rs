//! One sample of every command.

use super::*;

/// The name of a command's golden. A new command does not compile until it has one.
fn name(command: &Command) -> &'static str {
    match command {
        Command::RegisterAgent(RegisterAgent { immutable: true, .. }) => "register_agent_immutable",
        Command::RegisterAgent(RegisterAgent { spec, .. }) if spec.carried => "register_agent_carried",
        Command::RegisterAgent(RegisterAgent { spec, .. }) if spec.durable => "register_agent_durable",
        Command::RegisterAgent(RegisterAgent { spec, .. }) if spec.spawns => "register_agent_spawns",
        Command::RegisterAgent(RegisterAgent { spec, .. }) if !spec.requires.is_empty() => "register_agent_requires",
        Command::RegisterAgent(RegisterAgent { spec, .. }) if spec.demand.place == Place::Llm => "register_agent_llm",
        Command::RegisterAgent(RegisterAgent { spec, .. }) if spec.demand.nodejs => "register_agent_node",
        Command::RegisterAgent(RegisterAgent { spec, .. }) if spec.demand.python => "register_agent_python",
        Command::RegisterAgent(RegisterAgent { spec, .. }) if !spec.other_models.is_empty() => {
            "register_agent_other_models"
        }
        Command::RegisterAgent(RegisterAgent { spec, .. }) if !spec.servers.is_empty() => "register_agent_servers",
        Command::RegisterAgent(RegisterAgent { spec, .. }) if !spec.secrets.is_empty() => "register_agent_secrets",
        Command::RegisterAgent(RegisterAgent { spec, .. }) if spec.rate.is_some() => "register_agent_limits",
        Command::RegisterAgent(RegisterAgent { spec, .. }) if spec.failures_max.is_some() => "register_agent_circuit",
        Command::ResumeAgent(_) => "resume_agent",
        Command::ResumeNode(_) => "resume_node",
        Command::NoteRival(_) => "note_rival",
        Command::ReserveBudget(_) => "reserve_budget",
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
        Command::SubmitJob(SubmitJob { spawner: Some(SpawnedBy::Run { .. }), .. }) => "submit_job_spawned_by_run",
        Command::SubmitJob(SubmitJob { spawner: Some(_), .. }) => "submit_job_spawned",
        Command::SubmitJob(SubmitJob { not_before: Some(_), .. }) => "submit_job_delayed",
        Command::SubmitJob(SubmitJob { bearer: true, .. }) => "submit_job_bearer",
        Command::SubmitJob(SubmitJob { questions: QuestionRule::Answer(_), .. }) => "submit_job_questions",
        Command::SubmitJob(SubmitJob { budget_nanodollars: Some(_), .. }) => "submit_job_budget",
        Command::SubmitJob(SubmitJob { waits_for_node: true, .. }) => "submit_job_waits_for_node",
        Command::SubmitJob(SubmitJob { title: Some(_), .. }) => "submit_job_title",
        Command::SubmitJob(SubmitJob { verdict: Verdict::Accepted(_), .. }) => "submit_job",
        Command::SubmitJob(SubmitJob { verdict: Verdict::Refused { .. }, .. }) => "submit_job_refused",
        Command::SubmitJob(SubmitJob { verdict: Verdict::Asked { .. }, .. }) => "submit_job_asked",
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
        Command::RetryJob(RetryJob { questions: Some(_), .. }) => "retry_job_questions",
        Command::RetryJob(RetryJob { resume: true, .. }) => "retry_job_resume",
        Command::RetryJob(_) => "retry_job",
        Command::ForkJob(ForkJob { model: Some(_), .. }) => "fork_job_model",
        Command::ForkJob(ForkJob { added: Some(_), .. }) => "fork_job_added",
        Command::ForkJob(_) => "fork_job",
        Command::ErasePayloads(_) => "erase_payloads",
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
        Command::RecordSteps(RecordSteps { steps, .. }) if steps.iter().any(|step| step.kind == StepKind::Code) => {
            "record_steps_code"
        }
        Command::RecordSteps(_) => "record_steps",
        Command::FoldSteps(_) => "fold_steps",
        Command::ParkJob(ParkJob { read: 0, .. }) => "park_job",
        Command::ParkJob(_) => "park_job_read",
        Command::DeliverMessage(DeliverMessage { channel: Some(_), .. }) => "deliver_message_channel",
        Command::DeliverMessage(_) => "deliver_message",
        Command::AskQuestion(_) => "ask_question",
        Command::AnswerQuestion(_) => "answer_question",
        Command::ExpireQuestion(_) => "expire_question",
        Command::PutObject(_) => "put_object",
        Command::DeleteObject(_) => "delete_object",
        Command::ObserveObjects(_) => "observe_objects",
        Command::CarryJob(_) => "carry_job",
        Command::EndCarried(EndCarried { end: CarriedEnd::Completed(_), .. }) => "end_carried_completed",
        Command::EndCarried(_) => "end_carried_failed",
        Command::StartRun(StartRun { definition: RunDefinition::Named(_), .. }) => "start_run_named",
        Command::StartRun(_) => "start_run_given",
        Command::AdvanceRun(AdvanceRun { next: RunNext::Step { .. }, .. }) => "advance_run_step",
        Command::AdvanceRun(AdvanceRun { next: RunNext::Fail(_), .. }) => "advance_run_fail",
        Command::AdvanceRun(AdvanceRun { next: RunNext::Complete, .. }) => "advance_run_complete",
        Command::AdvanceRun(AdvanceRun { next: RunNext::Wave(wave), .. }) => match wave.end {
            None => "advance_run_wave",
            Some(WaveEnd::Complete) => "advance_run_wave_complete",
            Some(WaveEnd::Fail(_)) => "advance_run_wave_fail",
        },
        Command::CancelRun(_) => "cancel_run",
        Command::FireTrigger(FireTrigger { start: None, .. }) => "fire_trigger_skipped",
        Command::FireTrigger(FireTrigger { start: Some(TriggerStart::Run(_)), .. }) => "fire_trigger_chain",
        Command::FireTrigger(_) => "fire_trigger",
        Command::RouteJob(RouteJob { rule: Some(_), .. }) => "route_job_rule",
        Command::RouteJob(RouteJob { decision: None, .. }) => "route_job_again",
        Command::RouteJob(RouteJob { decision: Some(Decision::Execute), .. }) => "route_job_execute",
        Command::RouteJob(RouteJob { decision: Some(Decision::Reject(_)), .. }) => "route_job_reject",
        Command::RouteJob(RouteJob { decision: Some(Decision::Redirect(_, Verdict::Asked { .. })), .. }) => {
            "route_job_redirect_asked"
        }
        Command::RouteJob(_) => "route_job_redirect",
        Command::ConsultOrchestrator(_) => "consult_orchestrator",
    }
}

/// How many names there are.
const NAMES: usize = 105;

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
        Command::RetryJob(RetryJob { job, id: JobId(8), resume: false, questions: None }),
        Command::RetryJob(RetryJob { job, id: JobId(8), resume: true, questions: None }),
        Command::RetryJob(RetryJob { job, id: JobId(8), resume: true, questions: Some(QuestionRule::Wait) }),
        Command::ForkJob(ForkJob {
            job,
            id: JobId(8),
            steps: 2,
            pin: pin(),
            model: None,
            cut: None,
            folded: StepUsage::default(),
            added: None,
        }),
        Command::ForkJob(ForkJob {
            job,
            id: JobId(8),
            steps: 2,
            pin: pin(),
            model: None,
            cut: None,
            folded: StepUsage::default(),
            added: Some(Arc::new(Step {
                kind: StepKind::Effect,
                key: StepKey::set_before(1),
                outcome: Payload::inline(br#"{"set":{"limit":5},"step":1}"#),
                usage: StepUsage::default(),
            })),
        }),
        Command::ForkJob(ForkJob {
            job,
            id: JobId(8),
            steps: 3,
            pin: pin(),
            model: Some(ObjectName::new("large").expect("a name")),
            cut: Some(artifact()),
            folded: StepUsage { tokens_input: 900, cost_nanodollars: 2_700_000, ..StepUsage::default() },
            added: None,
        }),
        Command::ErasePayloads(ErasePayloads { job: Some(job) }),
        Command::RecordSteps(RecordSteps { job, node: node(), token, from: 2, steps: journal().steps }),
        Command::RecordSteps(RecordSteps {
            job,
            node: node(),
            token,
            from: 2,
            steps: vec![Arc::new(Step {
                kind: StepKind::Code,
                key: StepKey([0x44; 16]),
                outcome: Payload::inline(br#"{"call":"step:charge:00:1","name":"charge","at_us":5,"value":7}"#),
                usage: StepUsage::default(),
            })],
        }),
        Command::ReserveBudget(ReserveBudget {
            job,
            node: node(),
            token,
            call: Reservation { key: StepKey([0x44; 16]), nanodollars: 2_500_000 },
        }),
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
            channel: None,
            payload: Payload::inline(b"true"),
        }),
        Command::DeliverMessage(DeliverMessage {
            job,
            id: MessageId::new("m2").expect("a name"),
            answers: None,
            channel: Some(Channel::new("approvals").expect("a name")),
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
        Command::RegisterAgent(register_agent(RunSpec { durable: true, ..spec() })),
        Command::RegisterAgent(register_agent(RunSpec {
            requires: vec![RequiredAgent { name: "greeter".to_owned(), version: "^1.0.0".to_owned() }],
            ..spec()
        })),
        Command::RegisterAgent(register_agent(RunSpec {
            demand: Demand { place: Place::Llm, ..Demand::default() },
            ..spec()
        })),
        Command::SubmitJob(SubmitJob {
            spawner: Some(SpawnedBy::Attempt(spawner)),
            ..submit(Verdict::Accepted(pin()))
        }),
        Command::SubmitJob(SubmitJob {
            spawner: Some(SpawnedBy::Run { job, run: RUN }),
            ..submit(Verdict::Accepted(pin()))
        }),
        Command::RegisterAgent(register_agent(RunSpec { carried: true, spawns: true, ..spec() })),
        Command::CarryJob(CarryJob { job, run: RUN }),
        Command::EndCarried(EndCarried {
            job,
            run: RUN,
            end: CarriedEnd::Completed(Payload::inline(br#"{"text":"hello"}"#)),
            metadata: Some(Arc::from(*b"{}")),
        }),
        Command::EndCarried(EndCarried {
            job,
            run: RUN,
            end: CarriedEnd::Failed { failure: failure(), output: Some(artifact()) },
            metadata: None,
        }),
        Command::StartRun(start_run(RunDefinition::Named(ObjectName::new("review").expect("a name")))),
        Command::StartRun(start_run(RunDefinition::Given {
            chain: "review".into(),
            steps: 2,
            document: Payload::inline(br#"{"name":"review","steps":[]}"#),
        })),
        Command::AdvanceRun(advance_run(RunNext::Step {
            agent: "echo".into(),
            strategy: RunStrategy::Mapped,
            submit: Box::new(SubmitJob {
                context: Some(Payload::inline(br#"{"step_index":1}"#)),
                ..submit(Verdict::Accepted(pin()))
            }),
        })),
        Command::AdvanceRun(advance_run(RunNext::Fail(run_failure()))),
        Command::AdvanceRun(AdvanceRun { plan: None, ..advance_run(RunNext::Complete) }),
        Command::AdvanceRun(advance_run(RunNext::Wave(Box::new(RunWave {
            start: vec![WaveStep {
                number: 2,
                agent: "echo".into(),
                strategy: RunStrategy::Mapped,
                submit: Box::new(submit(Verdict::Accepted(pin()))),
            }],
            left: vec![
                StepLeft { number: 3, error: None },
                StepLeft { number: 4, error: Some("Condition failed at step 4 (echo): no".into()) },
            ],
            more: true,
            end: None,
        })))),
        Command::AdvanceRun(advance_run(RunNext::Wave(Box::new(ended(WaveEnd::Complete))))),
        Command::AdvanceRun(advance_run(RunNext::Wave(Box::new(ended(WaveEnd::Fail(run_failure())))))),
        Command::CancelRun(CancelRun { run: RUN }),
        route(None, None),
        route(Some(Decision::Execute), Some(-1)),
        route(Some(Decision::Reject("Empty input data".into())), None),
        route(Some(Decision::Redirect(agent(), Verdict::Accepted(pin()))), Some(10)),
        route(Some(Decision::Redirect(agent(), asked())), None),
        Command::SubmitJob(submit(asked())),
        ruled(route(Some(Decision::Execute), Some(5))),
        Command::ConsultOrchestrator(ConsultOrchestrator {
            id: job,
            agent: agent(),
            pin: pin(),
            input: Payload::inline(br#"{"calls":[]}"#),
            timeout: Micros::from_secs(5),
        }),
        Command::SubmitJob(SubmitJob { not_before: Some(AT), ..submit(Verdict::Accepted(pin())) }),
        Command::RegisterAgent(register_agent(RunSpec {
            secrets: vec!["API_KEY".to_owned(), "openai-key".to_owned()],
            model: Some("fast".to_owned()),
            ..spec()
        })),
        Command::RegisterAgent(register_agent(RunSpec {
            rate: Some(Rate { jobs: 60, per: Micros::from_secs(60), burst: 5 }),
            per_key: Some(PerKey {
                key: "/customer".into(),
                concurrency: Some(2),
                rate: Some(Rate { jobs: 1, per: Micros::from_secs(1), burst: 1 }),
            }),
            ..spec()
        })),
        Command::RegisterAgent(register_agent(RunSpec { other_models: vec!["fast".to_owned()], ..spec() })),
        Command::RegisterAgent(register_agent(RunSpec { servers: vec!["github".to_owned()], ..spec() })),
        Command::SubmitJob(SubmitJob { bearer: true, ..submit(Verdict::Accepted(pin())) }),
        Command::SubmitJob(SubmitJob { budget_nanodollars: Some(10_000_000), ..submit(Verdict::Accepted(pin())) }),
        Command::FireTrigger(FireTrigger {
            start: Some(TriggerStart::Job(Box::new(submit(Verdict::Accepted(pin()))))),
            ..firing()
        }),
        Command::FireTrigger(FireTrigger {
            start: Some(TriggerStart::Run(Box::new(start_run(RunDefinition::Named(webhook().key.name))))),
            ..firing()
        }),
        Command::FireTrigger(firing()),
        Command::SubmitJob(SubmitJob {
            questions: QuestionRule::Answer("yes".into()),
            ..submit(Verdict::Accepted(pin()))
        }),
        Command::AskQuestion(AskQuestion { job, node: node(), token, key: StepKey([0x44; 16]), ask: ask() }),
        Command::AnswerQuestion(AnswerQuestion { question: QuestionId(9), answer: Arc::from(*br#""blue""#) }),
        Command::ExpireQuestion(ExpireQuestion { question: QuestionId(9) }),
        Command::ForsakeChild(ForsakeChild { spawner, node: node(), child: JobId(8) }),
        Command::DeleteAgent(DeleteAgent { name: agent(), version: VERSION }),
        Command::RegisterAgent(register_agent(RunSpec { failures_max: Some(5), ..spec() })),
        Command::RegisterAgent(RegisterAgent { immutable: true, ..register_agent(spec()) }),
        Command::RegisterAgent(register_agent(RunSpec {
            demand: Demand { python: true, ..Demand::default() },
            ..spec()
        })),
        Command::RegisterAgent(register_agent(RunSpec {
            demand: Demand { nodejs: true, ..Demand::default() },
            ..spec()
        })),
        Command::ResumeAgent(ResumeAgent { name: agent(), version: VERSION }),
        Command::ResumeNode(ResumeNode { node: node() }),
        Command::NoteRival(NoteRival {
            node: node(),
            epoch: NodeEpoch(2),
            address: "10.0.0.9:51110".into(),
            holder: "10.0.0.5:43122".into(),
        }),
        Command::SubmitJob(SubmitJob { waits_for_node: true, ..submit(Verdict::Accepted(pin())) }),
        Command::SubmitJob(SubmitJob { title: Some("weekly report".into()), ..submit(Verdict::Accepted(pin())) }),
        Command::LabelNode(LabelNode {
            node: node(),
            labels: BTreeMap::from([("rack".to_owned(), None), ("zone".to_owned(), Some("b".to_owned()))]),
        }),
    ];
    let named: BTreeMap<_, _> = commands.into_iter().map(|command| (name(&command), command)).collect();
    assert_eq!(named.len(), NAMES, "every command has a sample");
    named.into_iter().collect()
}

/// A time of a trigger that is skipped.
fn firing() -> FireTrigger {
    FireTrigger {
        name: webhook().key.name,
        uid: EventSeq(9),
        revision: EventSeq(12),
        by: FiredBy::Schedule,
        tick: AT,
        next: Timestamp(AT.0 + 60_000_000),
        missed: 3,
        start: None,
    }
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

fn start_run(definition: RunDefinition) -> StartRun {
    let (input, metadata) = (Payload::inline(br#"{"text":"hello"}"#), Arc::from(*br#"{"_trigger_id":"t"}"#));
    StartRun { id: RUN, definition, input, priority: 5, metadata }
}

fn advance_run(next: RunNext) -> AdvanceRun {
    AdvanceRun { run: RUN, version: 3, plan: Some(Payload::inline(br#"{"chain":"review","steps":[]}"#)), next }
}

fn route(decision: Option<Decision>, priority: Option<i64>) -> Command {
    Command::RouteJob(RouteJob {
        job: JOB,
        generation: EventSeq(12),
        decider: Decider::Orchestrator,
        rule: None,
        decision,
        priority,
    })
}

/// A decision of a rule.
fn ruled(route: Command) -> Command {
    match route {
        Command::RouteJob(route) => Command::RouteJob(RouteJob { rule: Some("on call".into()), ..route }),
        other => other,
    }
}

/// The end of a run with branches.
fn ended(end: WaveEnd) -> RunWave {
    RunWave { start: Vec::new(), left: Vec::new(), more: false, end: Some(end) }
}
