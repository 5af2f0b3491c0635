//! Converts a statement to a command, with defaults that make the shortest statement the usual case.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{
    AgentKind, AgentPin, Allocation, AnswerQuestion, Architecture, AskQuestion, BootId, CancelJob, CancelRun,
    CarriedEnd, CarryJob, Channel, ClusterConfig, Command, CompleteJob, ConfigureCluster, ConsultOrchestrator, Cordon,
    CreateJoinToken, Decider, DeleteAgent, DeleteObject, DeliverMessage, Demand, DeprecateAgent, Digest, DrainNode,
    Effects, EndCarried, ErasePayloads, EventSeq, Expect, ExpireQuestion, FailJob, FailPending, Failure, FailureKind,
    FencingToken, FoldSteps, ForkJob, ForsakeChild, Gpu, GpuShare, GrantLease, Inventory, JobId, JoinKind, JoinMember,
    LabelNode, LoseLease, LoseNode, MemberId, MessageId, Micros, Namespace, NodeEpoch, NodeId, ObjectKey, ObjectKind,
    ObjectName, Observation, ObserveObjects, ParkJob, Payload, PayloadBody, PerKey, PruneJobs, PutObject, QuestionRule,
    Rate, RecordSteps, RegisterAgent, RegisterNode, RemoveNode, Reservation, ReserveBudget, Resolution, ResolveJob,
    ResumeAgent, ResumeNode, RetireAgent, RetryJob, RetryRule, RevokeJoinToken, RouteJob, RunId, RunSpec, SinkAck,
    SpawnedBy, Spawner, StartJob, Step, StepKey, StepKind, StepUsage, SubmitJob, Timeouts, Timestamp, Usage, Verdict,
    Version, Wait, WakeJob, WarmChanged,
};

mod question;
mod route;
mod run;
mod trigger;

pub(crate) use run::run_id;
use run::{advance_run, start_run, wave};

use super::script::{Run, Words, agent};

pub(crate) fn command(run: &Run, words: &Words<'_>) -> Command {
    match words.word(0) {
        "agent" => Command::RegisterAgent(register_agent(words)),
        "retire" => Command::RetireAgent(RetireAgent { name: agent(words.word(1)), version: version(words) }),
        "resume-agent" => Command::ResumeAgent(ResumeAgent { name: agent(words.word(1)), version: version(words) }),
        "resume-node" => Command::ResumeNode(ResumeNode { node: node(words.word(1)) }),
        "rival" => Command::NoteRival(atlas_types::NoteRival {
            node: node(words.word(1)),
            epoch: epoch(words),
            address: words.word(2).into(),
            holder: words.word(3).into(),
        }),
        "delete" => Command::DeleteAgent(DeleteAgent { name: agent(words.word(1)), version: version(words) }),
        "erase" => Command::ErasePayloads(ErasePayloads { job: words.rest(1).0.first().map(|word| run.job_id(word)) }),
        "deprecate" => Command::DeprecateAgent(DeprecateAgent {
            name: agent(words.word(1)),
            version: version(words),
            why: words.text("why").map(Into::into),
        }),
        "node" => Command::RegisterNode(RegisterNode {
            node: node(words.word(1)),
            boot_id: BootId(words.or("boot", 1)),
            inventory: inventory(words),
        }),
        "drain" => Command::DrainNode(DrainNode {
            node: node(words.word(1)),
            deadline: words.text("within").map(|seconds| Micros::from_secs(number(seconds))),
        }),
        "cordon" => Command::Cordon(Cordon { node: node(words.word(1)), cordoned: true }),
        "uncordon" => Command::Cordon(Cordon { node: node(words.word(1)), cordoned: false }),
        "label" => Command::LabelNode(label_node(words)),
        "remove" => Command::RemoveNode(RemoveNode { node: node(words.word(1)) }),
        "lose-node" => Command::LoseNode(LoseNode { node: node(words.word(1)), epoch: epoch(words) }),
        "warm" => Command::WarmChanged(WarmChanged {
            node: node(words.word(1)),
            epoch: epoch(words),
            digest: digest(words),
            idle: words.or("idle", 1),
        }),
        "ack" => Command::SinkAck(SinkAck {
            member: MemberId(words.word(1).trim_start_matches('m').parse().expect("m and a number")),
            event_seq: EventSeq(words.or("event", run.state.event_seq().0)),
        }),
        "prune" => Command::PruneJobs(PruneJobs {
            voters: words.text("voters").unwrap_or("1").split(',').map(|voter| MemberId(number(voter))).collect(),
            event_seq: EventSeq(words.or("event", run.state.event_seq().0)),
            limit: words.or("limit", 100),
        }),
        "token" => Command::CreateJoinToken(CreateJoinToken {
            hash: token_hash(words),
            kind: if words.text("kind") == Some("worker") { JoinKind::Worker } else { JoinKind::Controller },
            ttl: Micros::from_secs(words.or("ttl", 600)),
            uses: words.or("uses", 1),
            salt: words.text("salt").map(|salt| number(salt).into()),
        }),
        "revoke" => Command::RevokeJoinToken(RevokeJoinToken { hash: token_hash(words) }),
        "join" => Command::JoinMember(JoinMember { hash: token_hash(words), above: MemberId(words.or("above", 0)) }),
        "put" => Command::PutObject(put_object(words)),
        "delete-object" => {
            let ObjectKey { kind, name, .. } = object_key(words.word(1), words.word(2));
            Command::DeleteObject(DeleteObject { kind, name, expect: expect(words) })
        }
        "observe" => Command::ObserveObjects(ObserveObjects { observations: vec![observation(run, words)] }),
        "start" if words.word(1).starts_with('r') => Command::StartRun(start_run(words, words.word(1))),
        "advance" => Command::AdvanceRun(advance_run(run, words)),
        "wave" => Command::AdvanceRun(wave(run, words)),
        "cancel-run" => Command::CancelRun(CancelRun { run: run_id(words.word(1)) }),
        "plan" => Command::ObserveObjects(ObserveObjects { observations: vec![trigger::plan(run, words)] }),
        "fire" => Command::FireTrigger(trigger::fire(run, words)),
        "config" => Command::ConfigureCluster(ConfigureCluster { config: config(words) }),
        _ => job_command(run, words),
    }
}

/// `put KIND NAME [SPEC]`, with an empty object as the default.
fn put_object(words: &Words<'_>) -> PutObject {
    let ObjectKey { kind, name, .. } = object_key(words.word(1), words.word(2));
    let spec = words.rest(3).0.first().copied().unwrap_or("{}").as_bytes().into();
    PutObject { kind, name, labels: labels(words), spec, spec_version: 1, expect: expect(words) }
}

fn expect(words: &Words<'_>) -> Expect {
    match words.text("expect") {
        None => Expect::Any,
        Some("absent") => Expect::Absent,
        Some(revision) => Expect::Revision(EventSeq(number(revision))),
    }
}

/// `observe NAME STATUS` is about a namespace as it is, unless its uid or its revision is given.
fn observation(run: &Run, words: &Words<'_>) -> Observation {
    let key = object_key("namespace", words.word(1));
    let found = run.state.object(&key);
    let uid = EventSeq(words.or("uid", found.map_or(0, |found| found.uid.0)));
    let revision = EventSeq(words.or("revision", found.map_or(0, |found| found.revision.0)));
    Observation { key, uid, revision, status: words.word(2).as_bytes().into() }
}

pub(crate) fn object_key(kind: &str, name: &str) -> ObjectKey {
    ObjectKey {
        namespace: Namespace::default_namespace(),
        kind: ObjectKind::new(kind).expect("a word"),
        name: ObjectName::new(name).expect("a name"),
    }
}

/// `label n1 zone=b rack-` sets one label and takes another away.
fn label_node(words: &Words<'_>) -> LabelNode {
    let (keys, values) = words.rest(2);
    let set = values.iter().map(|(&key, &value)| (key.to_owned(), Some(value.to_owned())));
    let taken = keys.iter().map(|key| (key.trim_end_matches('-').to_owned(), None));
    LabelNode { node: node(words.word(1)), labels: set.chain(taken).collect() }
}

/// `t7` stands for a hash that ends with 7.
fn token_hash(words: &Words<'_>) -> Digest {
    let mut hash = [0; 32];
    hash[24..]
        .copy_from_slice(&words.word(1).trim_start_matches('t').parse::<u64>().expect("t and a number").to_be_bytes());
    Digest(hash)
}

/// The version of the job that is forked, or another one of its agent.
fn fork_pin(run: &Run, job: JobId, words: &Words<'_>) -> AgentPin {
    let own = run.state.job(job).and_then(|job| job.pin.clone());
    let own = own.unwrap_or(AgentPin { version: version(words), digest: digest(words) });
    AgentPin { version: words.or("version", own.version), ..own }
}

fn job_command(run: &Run, words: &Words<'_>) -> Command {
    let job = run.job_id(words.word(1));
    let lease = run.state.lease(job);
    let token = FencingToken(words.or("token", lease.map_or(0, |lease| lease.token.0)));
    let holder = words.text("node").map(node).or_else(|| lease.map(|lease| lease.node.clone()));
    let holder = holder.unwrap_or_else(|| node("nowhere"));
    let carried = run.state.job(job).and_then(|job| job.carried);
    let carrier = words.get("run").map(RunId).or_else(|| carried.map(|carried| carried.run)).unwrap_or(RunId(0));
    match words.word(0) {
        "job" => Command::SubmitJob(submit(job, words)),
        "spawn" => {
            let spawner = Some(SpawnedBy::Attempt(Spawner { job, token }));
            Command::SubmitJob(SubmitJob { spawner, ..submit(run.job_id(words.word(2)), words) })
        }
        "run-spawn" => {
            let spawner = Some(SpawnedBy::Run { job, run: carrier });
            Command::SubmitJob(SubmitJob { spawner, ..submit(run.job_id(words.word(2)), words) })
        }
        "carry" => Command::CarryJob(CarryJob { job, run: carrier }),
        "route" => Command::RouteJob(RouteJob {
            job,
            generation: EventSeq(words.or("generation", run.state.generation(&Namespace::default_namespace()).0)),
            decider: Decider::Orchestrator,
            decision: route::decision(words),
            priority: words.get("priority"),
            rule: words.text("rule").map(Into::into),
        }),
        "consult" => Command::ConsultOrchestrator(ConsultOrchestrator {
            id: job,
            agent: agent(words.text("agent").unwrap_or("a")),
            pin: AgentPin { version: version(words), digest: digest(words) },
            input: payload(words, "input", "{}"),
            timeout: Micros::from_secs(10),
        }),
        "end-run" => Command::EndCarried(EndCarried {
            job,
            run: carrier,
            end: carried_end(words),
            metadata: words.text("metadata").map(|text| text.as_bytes().into()),
        }),
        "forsake" => {
            let (spawner, child) = (Spawner { job, token }, run.job_id(words.word(2)));
            Command::ForsakeChild(ForsakeChild { spawner, node: holder, child })
        }
        "grant" => Command::GrantLease(grant(run, job, words)),
        "start" => Command::StartJob(StartJob { job, node: holder, token }),
        "complete" => Command::CompleteJob(CompleteJob {
            job,
            node: holder,
            token,
            output: payload(words, "output", "{}"),
            usage: usage(words),
            metadata: words.text("metadata").map(|text| text.as_bytes().into()),
            stream: None,
        }),
        "fail" => Command::FailJob(FailJob {
            job,
            node: holder,
            token,
            failure: failure(words),
            output: words.text("output").map(|text| Payload::inline(text.as_bytes())),
            usage: usage(words),
            metadata: words.text("note").map(|text| text.as_bytes().into()),
            stream: None,
        }),
        "lose" => Command::LoseLease(LoseLease { job, token }),
        "fail-pending" => Command::FailPending(FailPending { job, failure: failure(words) }),
        "cancel" => Command::CancelJob(CancelJob { job, running: true }),
        "cancel-pending" => Command::CancelJob(CancelJob { job, running: false }),
        "wake" => Command::WakeJob(WakeJob { job }),
        "resolve" => Command::ResolveJob(ResolveJob { job, resolution: resolution(words) }),
        "retry" => {
            let questions = words.text("questions").map(|rule| rule.parse().expect("a rule"));
            let (id, resume) = (run.job_id(words.word(2)), words.or("resume", false));
            Command::RetryJob(RetryJob { job, id, resume, questions })
        }
        "fork" => Command::ForkJob(ForkJob {
            job,
            id: run.job_id(words.word(2)),
            steps: words.or("steps", 1),
            pin: fork_pin(run, job, words),
            model: words.text("model").map(|name| ObjectName::new(name).expect("a name")),
            cut: words.text("cut").map(|_| artifact(words.or("cut", 1))),
            folded: StepUsage::default(),
            added: words.text("added").map(|kind| step(kind, words)),
        }),
        "record" => {
            let steps = words.text("steps").unwrap_or_default().split(',').map(|kind| step(kind, words)).collect();
            Command::RecordSteps(RecordSteps { job, node: holder, token, from: words.or("from", 0), steps })
        }
        "reserve" => {
            let call = Reservation { key: StepKey([words.or("call", 1); 16]), nanodollars: words.or("amount", 1) };
            Command::ReserveBudget(ReserveBudget { job, node: holder, token, call })
        }
        "fold" => {
            let inline = words.or("inline", false);
            let artifact = if inline { Payload::inline(b"[]") } else { artifact(words.or("artifact", 1)) };
            Command::FoldSteps(FoldSteps { job, node: holder, token, upto: words.or("upto", 1), artifact })
        }
        "store-log" => {
            let stream = artifact(words.or("artifact", 1));
            Command::StoreLog(atlas_types::StoreLog { job, node: holder, token, stream })
        }
        "send" => Command::DeliverMessage(DeliverMessage {
            job,
            id: MessageId::new(words.word(2)).expect("a name"),
            answers: words.get("answers").map(|key| StepKey([key; 16])),
            channel: words.text("channel").map(|text| Channel::new(text).expect("a name")),
            payload: match words.get("artifact") {
                Some(byte) => artifact(byte),
                None => payload(words, "payload", "1"),
            },
        }),
        "ask" => Command::AskQuestion(AskQuestion {
            job,
            node: holder,
            token,
            key: question::key(words, "q"),
            ask: Arc::new(question::ask(words)),
        }),
        "answer" => Command::AnswerQuestion(AnswerQuestion {
            question: question::id(run, job, words),
            answer: match words.get("bytes") {
                Some(bytes) => vec![b' '; bytes].into(),
                None => words.text("answer").unwrap_or("\"yes\"").as_bytes().into(),
            },
        }),
        "expire" => {
            let question = question::id(run, job, words);
            Command::ExpireQuestion(ExpireQuestion { question })
        }
        "park" => Command::ParkJob(park(run, job, holder, token, words)),
        other => panic!("no such statement: {other}"),
    }
}

/// `at` lists seconds of the wall clock from the beginning, `child` children.
fn park(run: &Run, job: JobId, node: NodeId, token: FencingToken, words: &Words<'_>) -> ParkJob {
    let times =
        list(words, "at").into_iter().map(|seconds| Wait::Time { at: Timestamp(number(&seconds) as i64 * 1_000_000) });
    let children = list(words, "child").into_iter().map(|child| Wait::Child { job: run.job_id(&child) });
    let message = words.or("message", false).then_some(Wait::Message);
    let answer = words.get("answer").map(|key| Wait::Answer { question: StepKey([key; 16]) });
    let question =
        words.text("question").map(|_| Wait::Question { id: question::key(words, "question").question(job) });
    ParkJob {
        job,
        node,
        token,
        journal_length: words.or("length", run.state.journal(job).map_or(0, |journal| journal.next())),
        waits: times.chain(children).chain(message).chain(answer).chain(question).collect(),
        used: Micros::from_secs(words.or("used", 0)),
        read: words.or("read", 0),
    }
}

/// `s`, `m`, `t` and `c` stand for the first step, a model call, a round of tools and a step of a program.
fn step(kind: &str, words: &Words<'_>) -> Arc<Step> {
    let kind = match kind {
        "s" => StepKind::Start,
        "m" => StepKind::Model,
        "c" => StepKind::Code,
        _ => StepKind::Tools,
    };
    let outcome = Payload::inline(&vec![b' '; words.or("bytes", 2)]);
    let usage = StepUsage { cost_nanodollars: words.or("cost", 0), ..StepUsage::default() };
    Arc::new(Step { kind, key: StepKey([kind as u8; 16]), outcome, usage })
}

/// A failure if there is an `error`.
fn carried_end(words: &Words<'_>) -> CarriedEnd {
    match words.text("error") {
        None => CarriedEnd::Completed(payload(words, "output", "{}")),
        Some(_) => {
            let output = words.text("output").map(|text| Payload::inline(text.as_bytes()));
            CarriedEnd::Failed { failure: failure(words), output }
        }
    }
}

fn resolution(words: &Words<'_>) -> Resolution {
    match (words.text("output"), words.text("error")) {
        (Some(output), _) => Resolution::Completed(Payload::inline(output.as_bytes())),
        (None, Some(error)) => Resolution::Failed(error.into()),
        (None, None) => Resolution::RunAgain,
    }
}

fn register_agent(words: &Words<'_>) -> RegisterAgent {
    RegisterAgent {
        version: version(words),
        package_bytes: 10,
        kind: if words.or("orchestrator", false) { AgentKind::Orchestrator } else { AgentKind::Agent },
        contract: Payload::inline(&vec![b' '; words.or("contract", 2)]),
        labels: words.text("words").map(|value| ("words".to_owned(), value.to_owned())).into_iter().collect(),
        immutable: words.or("immutable", false),
        ..atlas_kit::agent(words.word(1)).with_package(digest(words)).with_spec(spec(words)).registration()
    }
}

fn spec(words: &Words<'_>) -> RunSpec {
    let effects = match words.text("effects").unwrap_or("idempotent") {
        "pure" => Effects::Pure,
        "once" => Effects::Once,
        "reconcilable" => Effects::Reconcilable,
        _ => Effects::Idempotent,
    };
    let backoff_base = Micros::from_secs(words.or("backoff", 1));
    RunSpec {
        demand: demand(words),
        effects,
        max_attempts: words.or("attempts", 3),
        concurrency: words.get("limit"),
        retry: RetryRule { max_retries: words.or("retries", 0), backoff_base },
        timeouts: Timeouts { queue: words.get("queue").map(Micros::from_secs), ..atlas_kit::spec().timeouts },
        carried: words.or("carried", false),
        durable: words.or("durable", false),
        spawns: words.or("spawns", false),
        rate: words.text("rate").map(rate),
        per_key: words.text("per").map(|key| PerKey {
            key: key.into(),
            concurrency: words.get("key-limit"),
            rate: words.text("key-rate").map(rate),
        }),
        failures_max: words.get("failures"),
        ..atlas_kit::spec()
    }
}

/// `JOBS/SECONDS` or `JOBS/SECONDS/BURST`.
fn rate(text: &str) -> Rate {
    let mut numbers = text.split('/').map(number);
    let mut next = || numbers.next();
    let (jobs, seconds) = (next().expect("jobs"), next().expect("seconds"));
    Rate::new(jobs as u32, seconds, next().map(|burst| burst as u32))
}

fn demand(words: &Words<'_>) -> Demand {
    Demand {
        cores: words.or("cores", 0),
        memory_bytes: words.or("memory", 0),
        gpus: words.or("gpus", 0),
        vram_bytes: words.or("vram", 0),
        architecture: architecture(words),
        devices: list(words, "devices"),
        labels: labels(words),
        node: words.text("on").map(node),
        place: place(words),
        python: words.or("python", false),
        nodejs: words.or("nodejs", false),
    }
}

fn place(words: &Words<'_>) -> atlas_types::Place {
    if words.or("llm", false) { atlas_types::Place::Llm } else { atlas_types::Place::Process }
}

fn inventory(words: &Words<'_>) -> Inventory {
    // Bytes of memory, `!` for an unhealthy one; `7:80` gives its index, which is else its place in the list.
    let gpu = |(place, text): (usize, String)| {
        let (index, bytes) = text.split_once(':').map_or((place as u64, &*text), |(index, text)| (number(index), text));
        Gpu {
            index: index as u32,
            uuid: String::new(),
            vendor: "nvidia".to_owned(),
            model: String::new(),
            memory_bytes: bytes.trim_end_matches('!').parse().expect("a number"),
            mig_profile: None,
            healthy: !bytes.ends_with('!'),
        }
    };
    Inventory {
        cores: words.or("cores", 0),
        memory_bytes: words.or("memory", 0),
        architecture: architecture(words),
        gpus: list(words, "gpus").into_iter().enumerate().map(gpu).collect(),
        devices: list(words, "devices"),
        labels: labels(words),
        places: words.or("places", 4),
        llm_places: words.or("llm", 0),
        declared: words.or("declared", false),
        unchecked: words.or("unchecked", false),
    }
}

/// A fitting allocation; if none fits, the demand itself, so that `apply` refuses it.
fn grant(run: &Run, job: JobId, words: &Words<'_>) -> GrantLease {
    let node = node(words.word(2));
    let found = run.state.node(&node);
    let demand = run.state.job(job).and_then(|job| job.spec.as_ref()).map(|spec| spec.demand.clone());
    let demand = demand.unwrap_or_default();
    let depth = run.state.job(job).map_or(0, |job| job.depth());
    let fit = found.and_then(|found| found.free.fit(&found.node.inventory, &demand, depth));
    let mut allocation = fit.unwrap_or_else(|| Allocation {
        cores: demand.cores,
        memory_bytes: demand.memory_bytes,
        gpus: (0..demand.gpus).map(|index| GpuShare { index, vram_bytes: demand.vram_bytes }).collect(),
        place: demand.place,
    });
    allocation.cores = words.or("cores", allocation.cores);
    allocation.place = if words.or("process", false) { atlas_types::Place::Process } else { allocation.place };
    if let Some(share) = words.text("gpu") {
        let (index, bytes) = share.split_once(':').expect("index:bytes");
        allocation.gpus = vec![GpuShare { index: number(index) as u32, vram_bytes: number(bytes) }];
    }
    let epoch = NodeEpoch(words.or("epoch", found.map_or(1, |found| found.node.epoch.0)));
    GrantLease { job, node, epoch, allocation }
}

fn submit(id: JobId, words: &Words<'_>) -> SubmitJob {
    let pin = AgentPin { version: version(words), digest: digest(words) };
    let verdict = match words.text("refused") {
        None => question::asked(words, pin),
        Some("unknown") => Verdict::Refused { pin: None, failure: failure(words) },
        Some(_) => Verdict::Refused { pin: Some(pin), failure: failure(words) },
    };
    SubmitJob {
        verdict,
        input: words.text("artifact").map_or_else(
            || match words.text("input") {
                Some(text) => Payload::inline(text.as_bytes()),
                None => Payload::inline(&vec![b' '; words.or("bytes", 2)]),
            },
            |text| artifact(text.parse().expect("a byte")),
        ),
        priority: words.or("priority", 0),
        metadata: vec![b' '; words.or("metadata", 2)].into(),
        labels: Arc::new(labels(words)),
        execution_timeout: words.get("timeout").map(Micros::from_secs),
        not_before: words.get("at").map(|seconds: i64| Timestamp(seconds * 1_000_000)),
        bearer: words.or("bearer", false),
        budget_nanodollars: words.text("budget").map(number),
        waits_for_node: words.or("waits", false),
        questions: words.or("questions", QuestionRule::Fail),
        title: words.text("title").map(Into::into),
        ..atlas_kit::job(id.0).of(words.text("agent").unwrap_or("a")).submission()
    }
}

fn config(words: &Words<'_>) -> ClusterConfig {
    let default = ClusterConfig::default();
    ClusterConfig {
        jobs_active_max: words.or("active", default.jobs_active_max),
        jobs_total_max: words.or("total", default.jobs_total_max),
        inline_bytes_max: words.or("bytes", default.inline_bytes_max),
        dedupe_max: words.or("requests", default.dedupe_max),
        dedupe_retention: words.get("retention").map_or(default.dedupe_retention, Micros::from_secs),
        jobs_ended_kept: default.jobs_ended_kept,
        agents_max: words.or("agents", default.agents_max),
        nodes_max: words.or("nodes", default.nodes_max),
        spawn_depth_max: words.or("depth", default.spawn_depth_max),
        retry_deterministic: words.or("deterministic", true),
        backoff_max: words.get("backoff").map(Micros::from_secs),
        journal_bytes_max: words.or("journal", default.journal_bytes_max),
        node_failures_max: words.or("node-failures", default.node_failures_max),
    }
}

fn failure(words: &Words<'_>) -> Failure {
    let kind = match words.text("kind") {
        Some("queue-timeout") => FailureKind::QueueTimeout,
        Some("unsatisfiable") => FailureKind::Unsatisfiable,
        Some("input") => FailureKind::InputInvalid,
        Some("output") => FailureKind::OutputInvalid,
        Some("startup") => FailureKind::Startup,
        Some("timeout") => FailureKind::Timeout,
        Some("internal") => FailureKind::Internal,
        Some("rejected") => FailureKind::Rejected,
        Some("dependency") => FailureKind::Dependency,
        _ => FailureKind::Agent,
    };
    Failure { kind, error: words.text("error").unwrap_or("boom").into() }
}

fn usage(words: &Words<'_>) -> Usage {
    let execution = Micros::from_millis(5);
    Usage { warmup: Micros::default(), execution, warm: false, idle: words.or("idle", 0) }
}

fn payload(words: &Words<'_>, key: &str, default: &str) -> Payload {
    let text = words.text(key).unwrap_or(default);
    let bytes = words.get("bytes").map_or(text.as_bytes().to_vec(), |bytes| vec![b' '; bytes]);
    Payload::inline(&bytes)
}

fn architecture(words: &Words<'_>) -> Option<Architecture> {
    words.text("arch").map(|arch| if arch == "arm64" { Architecture::Arm64 } else { Architecture::X86_64 })
}

fn list(words: &Words<'_>, key: &str) -> Vec<String> {
    words.text(key).into_iter().flat_map(|text| text.split(',')).map(str::to_owned).collect()
}

fn labels(words: &Words<'_>) -> BTreeMap<String, String> {
    let pair = |text: String| text.split_once(':').map(|(key, value)| (key.to_owned(), value.to_owned()));
    list(words, "labels").into_iter().filter_map(pair).collect()
}

/// A large payload.
pub(crate) fn artifact(byte: u8) -> Payload {
    Payload { key_id: 0, body: PayloadBody::Artifact { digest: Digest([byte; 32]), size_bytes: 70_000 } }
}

fn digest(words: &Words<'_>) -> Digest {
    atlas_kit::digest(words.or("digest", 1))
}

fn version(words: &Words<'_>) -> Version {
    words.or("version", atlas_kit::VERSION)
}

fn epoch(words: &Words<'_>) -> NodeEpoch {
    NodeEpoch(words.or("epoch", 1))
}

fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

pub(crate) fn node(name: &str) -> NodeId {
    NodeId::new(name).expect("a name")
}

pub(crate) fn seconds(text: &str) -> Micros {
    Micros::from_secs(number(text.trim_start_matches('+')))
}
