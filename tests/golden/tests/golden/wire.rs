//! Frames between a worker and the leader.

use atlas_types::*;
use atlas_wire::proto::worker::v1::{SessionRequest, SessionResponse};
use atlas_wire::session::{Hello, ModelAsk, ModelUse, ModelUses, PastModelUse, ToLeader, ToWorker, Welcome};
use prost::Message as _;

use crate::files::{Golden, check, text};
use crate::samples;

const ATTEMPT: Attempt = Attempt(1);

#[test]
fn what_workers_say_reads_and_writes_as_ever() {
    let report =
        |kind| ToLeader::Report { number: 12, report: Report { job: samples::JOB, token: samples::TOKEN, kind } };
    let event = StreamEvent {
        number: 1,
        at: Timestamp(1_500_000),
        kind: StreamKind::Log,
        level: "info".into(),
        text: "hi".into(),
    };
    let hello = Hello {
        node: samples::node(),
        boot_id: BootId(7),
        inventory: samples::inventory(),
        level: Level(1),
        leases: vec![HeldLease { job: samples::JOB, token: samples::TOKEN, attempt: ATTEMPT }],
        previous: None,
    };
    let delta = Delta { step: 2, try_number: 1, offset: 5, text: " you".into() };
    let spawn = Spawn {
        spawner: Spawner { job: samples::JOB, token: samples::TOKEN },
        agent: "echo".into(),
        skill: false,
        input: Payload::inline(br#"{"message":"hello"}"#),
        priority: 1,
        timeout: Micros::from_secs(60),
        again: true,
        step: None,
    };
    let step = Some(SpawnStep { number: 4, key: StepKey([5; 16]) });
    let waits = vec![
        Wait::Time { at: Timestamp(1_500_000) },
        Wait::Child { job: samples::JOB },
        Wait::Message,
        Wait::Answer { question: StepKey([3; 16]) },
    ];
    let park = Park { journal_length: 4, waits, used: Micros(1_500_000), read: 2 };
    let (job, token, Journal { mut folds, steps, .. }) = (samples::JOB, samples::TOKEN, samples::journal());
    let record = ToLeader::RecordSteps { number: 8, job, token, from: 2, steps };
    let call = Reservation { key: StepKey([6; 16]), nanodollars: 2_500_000 };
    let reserve = ToLeader::ReserveBudget { number: 10, job, token, call };
    let fold = ToLeader::FoldSteps { number: 9, job, token, fold: folds.remove(0) };
    let call = ToolRequest {
        caller: Spawner { job, token },
        tool: "atlas.registry.list".into(),
        arguments: b"{}".as_slice().into(),
        key: StepKey([4; 16]),
        again: true,
    };
    let said = [
        ("hello", ToLeader::Hello(hello)),
        ("renew", ToLeader::Renew { number: 3 }),
        ("started", report(ReportKind::Started)),
        (
            "completed",
            report(ReportKind::Completed {
                output: samples::artifact(),
                usage: samples::usage(),
                metadata: Some((*b"{}").into()),
            }),
        ),
        (
            "failed",
            report(ReportKind::Failed {
                failure: samples::failure(),
                output: Some(Payload::inline(b"1")),
                usage: samples::usage(),
                metadata: None,
                cancelled: true,
            }),
        ),
        ("not_held", report(ReportKind::NotHeld)),
        ("warm_changed", ToLeader::WarmChanged { digest: samples::PACKAGE, idle: 2 }),
        ("stream_events", ToLeader::StreamEvents { job: samples::JOB, attempt: ATTEMPT, events: vec![event] }),
        ("deltas", ToLeader::Deltas { job: samples::JOB, attempt: ATTEMPT, deltas: vec![delta] }),
        ("draining", ToLeader::Draining),
        ("leaving", ToLeader::Leaving),
        ("spawn", ToLeader::Spawn { number: 7, spawn: Box::new(spawn.clone()) }),
        ("spawn_step", ToLeader::Spawn { number: 7, spawn: Box::new(Spawn { step, ..spawn }) }),
        ("record_steps", record),
        ("fold_steps", fold),
        ("reserve_budget", reserve),
        ("park", ToLeader::Park { number: 3, job, token, park }),
        ("call_tool", ToLeader::CallTool { number: 4, call: Box::new(call) }),
        ("ask_model", ToLeader::AskModel(ModelAsk { number: 5, job, token, model: "fast".to_owned(), tokens: 900 })),
        ("model_done", ToLeader::ModelDone { number: 5, tokens: Some(0) }),
        ("model_not_begun", ToLeader::ModelDone { number: 5, tokens: None }),
        ("announce_models", ToLeader::AnnounceModels(model_uses())),
    ];
    let read = |bytes: &[u8]| {
        text(ToLeader::try_from(SessionRequest::decode(bytes).expect("a frame")).expect("a known frame"))
    };
    let golden = |(name, said)| Golden { name, bytes: SessionRequest::from(said).encode_to_vec(), read };
    check("to_leader", &said.map(golden));
}

#[test]
fn what_leaders_say_reads_and_writes_as_ever() {
    let (job, token) = (samples::JOB, samples::TOKEN);
    let assignment = Assignment {
        namespace: Namespace::default_namespace(),
        job,
        token,
        attempt: ATTEMPT,
        agent: samples::agent(),
        version: samples::VERSION,
        digest: samples::PACKAGE,
        package_bytes: 12_345,
        input: Payload::inline(br#"{"text":"hello"}"#),
        metadata: (*b"{}").into(),
        allocation: samples::allocation(),
        startup_timeout: Micros::from_secs(30),
        execution_timeout: Micros(1_500_000),
        needs_start: true,
        retry_count: 1,
        trace: samples::origin().trace,
        spawn: None,
        lacks: None,
        budget_nanodollars: None,
        context: None,
        fork_steps: None,
        submitted_timeout: None,
        attachments: Default::default(),
        journal: None,
    };
    let journal = AssignedJournal { journal: samples::journal().into(), ..AssignedJournal::default() };
    let folds = Journal { steps: Vec::new(), ..samples::journal() };
    let unfolded = Some(samples::artifact());
    let unfolded = AssignedJournal { journal: folds.into(), unfolded, ..AssignedJournal::default() };
    let mail = Mail { first: 3, messages: samples::inbox().messages };
    let woken = AssignedJournal { mail: mail.clone(), slept_until: Timestamp(1_500_000), ..journal.clone() };
    let spawn = Some(SpawnRule { depth: 1, depth_max: 3, permitted: true });
    let lacks = Some("Missing agent dependencies: b".into());
    let welcome = Welcome {
        epoch: NodeEpoch(2),
        session_ttl: Micros::from_secs(10),
        leases: vec![assignment.clone()],
        controllers: vec!["c1:7401".to_owned()],
        level: Level(0),
        hand_back: None,
    };
    let deadline = HandBackDeadline { until: ClusterTime(90_000_000), within: Micros::from_secs(30) };
    let by = HandBack { deadline: Some(deadline) };
    let drained = Welcome { leases: Vec::new(), hand_back: Some(by), ..welcome.clone() };
    let said = [
        ("welcome", ToWorker::Welcome(welcome)),
        ("welcome_drained", ToWorker::Welcome(drained.clone())),
        ("welcome_level", ToWorker::Welcome(Welcome { level: Level(6), ..drained })),
        ("not_leader", ToWorker::NotLeader { leader_address: Some("c2:7401".into()) }),
        ("grant", ToWorker::Grant(Box::new(assignment.clone()))),
        ("grant_spawns", ToWorker::Grant(Box::new(Assignment { spawn, ..assignment.clone() }))),
        ("grant_lacks", ToWorker::Grant(Box::new(Assignment { lacks, ..assignment.clone() }))),
        (
            "grant_journal",
            ToWorker::Grant(Box::new(Assignment { journal: Some(Box::new(journal)), ..assignment.clone() })),
        ),
        (
            "grant_journal_unfolded",
            ToWorker::Grant(Box::new(Assignment { journal: Some(Box::new(unfolded)), ..assignment.clone() })),
        ),
        ("grant_woken", ToWorker::Grant(Box::new(Assignment { journal: Some(Box::new(woken)), ..assignment.clone() }))),
        (
            "grant_attachments",
            ToWorker::Grant(Box::new(Assignment { attachments: attachments(), ..assignment.clone() })),
        ),
        ("grant_bounds", ToWorker::Grant(Box::new(Assignment { attachments: bounds(), ..assignment.clone() }))),
        ("grant_step", ToWorker::Grant(Box::new(Assignment { context: step_context(), ..assignment }))),
        ("cancel", ToWorker::Cancel { job, token, grace: Micros::from_secs(5) }),
        ("revoke", ToWorker::Revoke { job, token }),
        ("report_applied", ToWorker::ReportAck { number: 12, result: ReportResult::Applied }),
        ("report_fenced", ToWorker::ReportAck { number: 12, result: ReportResult::Fenced }),
        ("renew_ack", ToWorker::RenewAck { number: 3 }),
        ("stream_ack", ToWorker::StreamAck { job, attempt: ATTEMPT, number: 1 }),
        ("drain", ToWorker::Drain),
        ("shutdown", ToWorker::Shutdown),
        ("spawned_completed", ToWorker::Spawned { number: 7, end: SpawnEnd::Completed(Payload::inline(b"1")) }),
        ("spawned_failed", ToWorker::Spawned { number: 7, end: SpawnEnd::Failed("kaput".to_owned()) }),
        ("spawned_refused", ToWorker::Spawned { number: 7, end: SpawnEnd::Refused("no".to_owned()) }),
        ("hand_back", ToWorker::HandBack(Some(by))),
        ("hand_back_without_deadline", ToWorker::HandBack(Some(HandBack { deadline: None }))),
        ("hand_back_ended", ToWorker::HandBack(None)),
        ("steps_applied", ToWorker::StepsAck { number: 8, result: StepsResult::Applied }),
        ("steps_fenced", ToWorker::StepsAck { number: 8, result: StepsResult::Fenced }),
        ("steps_busy", ToWorker::StepsAck { number: 8, result: StepsResult::Busy }),
        (
            "steps_over_budget",
            ToWorker::StepsAck { number: 8, result: StepsResult::OverBudget { budget: 50_000_000, spent: 49_000_000 } },
        ),
        ("steps_no_room", ToWorker::StepsAck { number: 8, result: StepsResult::NoRoom }),
        ("steps_refused", ToWorker::StepsAck { number: 8, result: StepsResult::Refused { step: 2, why: "no".into() } }),
        ("park_parked", ToWorker::ParkAck { number: 3, result: ParkResult::Parked }),
        ("park_ready", ToWorker::ParkAck { number: 3, result: ParkResult::Ready }),
        ("park_fenced", ToWorker::ParkAck { number: 3, result: ParkResult::Fenced }),
        ("park_busy", ToWorker::ParkAck { number: 3, result: ParkResult::Busy }),
        ("park_refused", ToWorker::ParkAck { number: 3, result: ParkResult::Refused { why: "no".into() } }),
        ("messages", ToWorker::Messages { job, token, mail }),
        ("tool_result", ToWorker::ToolCalled { number: 4, end: ToolEnd::Result(b"{}".as_slice().into()) }),
        ("tool_refused", ToWorker::ToolCalled { number: 4, end: ToolEnd::Refused("no".to_owned()) }),
        ("model_granted", ToWorker::ModelGranted { number: 5 }),
    ];
    let read = |bytes: &[u8]| {
        text(ToWorker::try_from(SessionResponse::decode(bytes).expect("a frame")).expect("a known frame"))
    };
    let golden = |(name, said)| Golden { name, bytes: SessionResponse::from(said).encode_to_vec(), read };
    check("to_worker", &said.map(golden));
}

fn model_uses() -> ModelUses {
    let (namespace, model, age) = (Namespace::default_namespace(), "fast".to_owned(), Micros::from_secs(7));
    let held =
        ModelUse { number: 5, job: samples::JOB, namespace: namespace.clone(), model: model.clone(), tokens: 9, age };
    ModelUses { held: vec![held], past: vec![PastModelUse { namespace, model, age, requests: 2, tokens: 80 }] }
}

/// What the agent of a step is told about its chain.
fn step_context() -> Option<Payload> {
    Some(Payload::inline(br#"{"chain_name":"review","step_index":1}"#))
}

/// What policies leave an agent.
fn bounds() -> Attachments {
    let bounds = Bounds {
        filesystem: Some(vec!["read".to_owned()]),
        network: Some(Vec::new()),
        memory_mb: Some(256),
        cpu_seconds: None,
    };
    Attachments::new([Attachment::Bounds(bounds)])
}

fn attachments() -> Attachments {
    let secret = |source, declared| AttachedSecret { source, declared };
    let file = SecretSource::File { path: "/run/secrets/all.json".to_owned(), member: Some("K".to_owned()) };
    let variable = SecretSource::Environment { variable: "ATLAS_SECRET_B".to_owned() };
    let secrets = [
        ("a", secret(SecretSource::Value(SecretText::new("value")), true)),
        ("b", secret(variable, true)),
        ("c", secret(file, false)),
    ];
    let model =
        AttachedModel { name: "fast".to_owned(), spec: (*br#"{"provider":"scripted"}"#).into(), asked: Vec::new() };
    Attachments::new([
        Attachment::Secrets(secrets.into_iter().map(|(name, secret)| (name.to_owned(), secret)).collect()),
        Attachment::Bearer(SecretText::new("Bearer value")),
        Attachment::Models(vec![model]),
    ])
}
