//! Round trips of every frame, and frames that must be refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use atlas_types::{
    AgentName, Allocation, Architecture, AssignedJournal, Assignment, Attachment, Attachments, Attempt, BootId,
    Channel, ClusterTime, Delta, Digest, Failure, FailureKind, FencingToken, Fold, Gpu, GpuShare, HandBack,
    HandBackDeadline, HeldLease, INLINE_BYTES_MAX, Inventory, JobId, Journal, Level, Mail, Message, MessageId, Micros,
    Namespace, NodeEpoch, NodeId, Park, ParkResult, Payload, PayloadBody, Place, Principal, Report, ReportKind,
    ReportResult, Reservation, SecretText, Spawn, SpawnEnd, SpawnRule, SpawnStep, Spawner, Step, StepKey, StepKind,
    StepUsage, StepsResult, StreamEvent, StreamKind, Timestamp, ToolEnd, ToolRequest, TraceContext, Usage, Version,
    Wait,
};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use prost::Message as _;

use crate::proto::worker::v1 as pb;
use crate::session::{Hello, ModelAsk, ModelUse, ModelUses, PastModelUse, ToLeader, ToWorker, Welcome};
use crate::{ConvertError, Error};

fn inventory() -> Inventory {
    Inventory {
        cores: 8,
        memory_bytes: 32 << 30,
        architecture: Some(Architecture::X86_64),
        gpus: vec![Gpu {
            index: 0,
            uuid: "GPU-1".to_owned(),
            vendor: "nvidia".to_owned(),
            model: "H100".to_owned(),
            memory_bytes: 80 << 30,
            mig_profile: Some("1g.10gb".to_owned()),
            healthy: true,
        }],
        devices: vec!["/dev/video0".to_owned()],
        labels: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
        places: 4,
        llm_places: 256,
        declared: true,
        unchecked: true,
    }
}

fn assignment() -> Assignment {
    Assignment {
        namespace: Namespace::default_namespace(),
        job: JobId(7),
        token: FencingToken(9),
        attempt: Attempt(1),
        agent: AgentName::new("echo").expect("a name"),
        version: Version { major: 1, minor: 2, patch: 3 },
        digest: Digest([7; 32]),
        package_bytes: 1_000,
        input: Payload::inline(b"{}"),
        metadata: Arc::from(*b"{}"),
        allocation: Allocation {
            cores: 1,
            memory_bytes: 2,
            gpus: vec![GpuShare { index: 0, vram_bytes: 3 }],
            place: Place::Llm,
        },
        startup_timeout: Micros::from_secs(30),
        execution_timeout: Micros(1_500_001),
        submitted_timeout: Some(Micros(2_500_002)),
        needs_start: true,
        retry_count: 2,
        trace: Some(TraceContext { trace_id: 1 << 100, span_id: 5, flags: 1 }),
        spawn: Some(SpawnRule { depth: 1, depth_max: 3, permitted: true }),
        lacks: Some("Missing agent dependencies: b".into()),
        budget_nanodollars: Some(10_000_000),
        context: Some(Payload::inline(br#"{"step_index":1}"#)),
        fork_steps: Some(3),
        attachments: Attachments::new([Attachment::Bearer(SecretText::new("Bearer canary"))]),
        journal: Some(Box::new(AssignedJournal {
            journal: Arc::new(journal()),
            unfolded: Some(artifact()),
            mail: mail(),
            slept_until: Timestamp(1_500_000),
        })),
    }
}

fn mail() -> Mail {
    let message = |(id, answers): (&str, Option<StepKey>)| {
        Arc::new(Message {
            id: MessageId::new(id).expect("a name"),
            channel: answers.map(|_| Channel::new("approvals").expect("a name")),
            answers,
            payload: Payload::inline(b"{}"),
            from: Principal::local(),
            at: Timestamp(-1),
        })
    };
    Mail { first: 3, messages: [("a", None), ("b", Some(StepKey([7; 16])))].map(message).to_vec() }
}

fn park(waits: Vec<Wait>) -> ToLeader {
    let park = Park { journal_length: 4, waits, used: Micros(1_500_001), read: 2 };
    ToLeader::Park { number: 8, job: JobId(7), token: FencingToken(9), park }
}

fn tool_request() -> ToolRequest {
    ToolRequest {
        caller: Spawner { job: JobId(7), token: FencingToken(9) },
        tool: "atlas.registry.list".to_owned(),
        arguments: b"{}".as_slice().into(),
        key: StepKey([4; 16]),
        again: true,
    }
}

fn artifact() -> Payload {
    Payload { key_id: 0, body: PayloadBody::Artifact { digest: Digest([1; 32]), size_bytes: 1 << 20 } }
}

fn journal() -> Journal {
    let step = |(kind, number): (StepKind, u8)| {
        let usage = StepUsage { duration: Micros(5), tokens_input: 6, tokens_output: 7, cost_nanodollars: 8 };
        Arc::new(Step { kind, key: StepKey([number; 16]), outcome: Payload::inline(b"1"), usage })
    };
    let steps = StepKind::ALL.into_iter().zip(1..).map(step).collect();
    Journal { folds: vec![Fold { upto: 2, artifact: artifact() }], steps, ..Journal::default() }
}

fn usage() -> Usage {
    Usage { warmup: Micros(5), execution: Micros(7), warm: true, idle: 2 }
}

fn reports() -> Vec<ReportKind> {
    let artifact = PayloadBody::Artifact { digest: Digest([1; 32]), size_bytes: 1 << 20 };
    vec![
        ReportKind::Started,
        ReportKind::Completed {
            output: Payload { key_id: 3, body: artifact },
            usage: usage(),
            metadata: Some(Arc::from(*b"{}")),
        },
        ReportKind::Failed {
            failure: Failure { kind: FailureKind::OutputInvalid, error: "no".into() },
            output: Some(Payload::inline(b"1")),
            usage: usage(),
            metadata: None,
            cancelled: true,
        },
        ReportKind::NotHeld,
    ]
}

fn spawn() -> Spawn {
    Spawn {
        spawner: Spawner { job: JobId(7), token: FencingToken(9) },
        agent: "écho".to_owned(),
        skill: true,
        input: Payload::inline(b"{}"),
        priority: -2,
        timeout: Micros(1_500_000),
        again: true,
        step: Some(SpawnStep { number: 4, key: StepKey([5; 16]) }),
    }
}

fn record(steps: Vec<Arc<Step>>) -> ToLeader {
    ToLeader::RecordSteps { number: 6, job: JobId(7), token: FencingToken(9), from: 2, steps }
}

fn reserve() -> ToLeader {
    let call = Reservation { key: StepKey([4; 16]), nanodollars: 2_500 };
    ToLeader::ReserveBudget { number: 6, job: JobId(7), token: FencingToken(9), call }
}

fn to_leader() -> Vec<ToLeader> {
    let lease = HeldLease { job: JobId(7), token: FencingToken(9), attempt: Attempt(1) };
    let report = |kind| ToLeader::Report { number: 4, report: Report { job: JobId(7), token: FencingToken(9), kind } };
    let event =
        |kind| StreamEvent { number: 3, at: Timestamp(-1), kind, level: "info".to_owned(), text: "é".to_owned() };
    let mut all = vec![
        ToLeader::Hello(Hello {
            node: NodeId::new("n1").expect("a name"),
            boot_id: BootId(u128::MAX - 1),
            inventory: inventory(),
            level: Level::CURRENT,
            leases: vec![lease],
            previous: Some(BootId(2)),
        }),
        ToLeader::Renew { number: 1 },
        ToLeader::WarmChanged { digest: Digest([2; 32]), idle: 1 },
        ToLeader::StreamEvents {
            job: JobId(7),
            attempt: Attempt(1),
            events: [StreamKind::Log, StreamKind::Progress].map(event).to_vec(),
        },
        ToLeader::Deltas {
            job: JobId(7),
            attempt: Attempt(1),
            deltas: vec![Delta { step: 2, try_number: 1, offset: 5, text: "you".into() }],
        },
        ToLeader::Draining,
        ToLeader::Leaving,
        ToLeader::Spawn { number: 5, spawn: Box::new(spawn()) },
        ToLeader::Spawn { number: 6, spawn: Box::new(Spawn { step: None, skill: false, ..spawn() }) },
        record(journal().steps),
        reserve(),
        ToLeader::FoldSteps { number: 7, job: JobId(7), token: FencingToken(9), fold: journal().folds.remove(0) },
        park(vec![
            Wait::Time { at: Timestamp(5) },
            Wait::Child { job: JobId(8) },
            Wait::Message,
            Wait::Answer { question: StepKey([3; 16]) },
        ]),
        park(Vec::new()),
        ToLeader::CallTool { number: 9, call: Box::new(tool_request()) },
        ToLeader::AskModel(ModelAsk {
            number: 3,
            job: JobId(7),
            token: FencingToken(9),
            model: "fast".to_owned(),
            tokens: 900,
        }),
        ToLeader::ModelDone { number: 3, tokens: Some(0) },
        ToLeader::ModelDone { number: 3, tokens: None },
        ToLeader::AnnounceModels(model_uses()),
    ];
    all.extend(reports().into_iter().map(report));
    all
}

fn model_uses() -> ModelUses {
    let (namespace, model, age) = (Namespace::default_namespace(), "fast".to_owned(), Micros::from_secs(7));
    let held =
        ModelUse { number: 2, job: JobId(7), namespace: namespace.clone(), model: model.clone(), tokens: 9, age };
    ModelUses { held: vec![held], past: vec![PastModelUse { namespace, model, age, requests: 2, tokens: 80 }] }
}

fn to_worker() -> Vec<ToWorker> {
    let (job, token) = (JobId(7), FencingToken(9));
    let deadline = HandBackDeadline { until: ClusterTime(90), within: Micros::from_secs(30) };
    let by = HandBack { deadline: Some(deadline) };
    vec![
        ToWorker::Welcome(Welcome {
            epoch: NodeEpoch(3),
            session_ttl: Micros::from_secs(10),
            leases: vec![assignment()],
            controllers: vec!["c1:7401".to_owned(), "c2:7401".to_owned()],
            level: Level(6),
            hand_back: Some(by),
        }),
        ToWorker::NotLeader { leader_address: None },
        ToWorker::NotLeader { leader_address: Some("c2:7401".to_owned()) },
        ToWorker::Grant(Box::new(assignment())),
        ToWorker::Cancel { job, token, grace: Micros::from_secs(5) },
        ToWorker::Revoke { job, token },
        ToWorker::ReportAck { number: 4, result: ReportResult::Applied },
        ToWorker::ReportAck { number: 4, result: ReportResult::Fenced },
        ToWorker::RenewAck { number: 1 },
        ToWorker::StreamAck { job, attempt: Attempt(1), number: 3 },
        ToWorker::Drain,
        ToWorker::Shutdown,
        ToWorker::Spawned { number: 5, end: SpawnEnd::Completed(Payload::inline(b"1")) },
        ToWorker::Spawned { number: 5, end: SpawnEnd::Failed("kaput".to_owned()) },
        ToWorker::Spawned { number: 5, end: SpawnEnd::Refused("no".to_owned()) },
        ToWorker::HandBack(Some(by)),
        ToWorker::HandBack(Some(HandBack { deadline: None })),
        ToWorker::HandBack(None),
        ToWorker::StepsAck { number: 6, result: StepsResult::Applied },
        ToWorker::StepsAck { number: 6, result: StepsResult::Fenced },
        ToWorker::StepsAck { number: 6, result: StepsResult::Busy },
        ToWorker::StepsAck { number: 6, result: StepsResult::OverBudget { budget: 9, spent: 7 } },
        ToWorker::StepsAck { number: 7, result: StepsResult::NoRoom },
        ToWorker::StepsAck { number: 6, result: StepsResult::Refused { step: 2, why: "no".to_owned() } },
        ToWorker::ParkAck { number: 8, result: ParkResult::Parked },
        ToWorker::ParkAck { number: 8, result: ParkResult::Ready },
        ToWorker::ParkAck { number: 8, result: ParkResult::Fenced },
        ToWorker::ParkAck { number: 8, result: ParkResult::Busy },
        ToWorker::ParkAck { number: 8, result: ParkResult::Refused { why: "no".to_owned() } },
        ToWorker::Messages { job, token, mail: mail() },
        ToWorker::ToolCalled { number: 9, end: ToolEnd::Result(b"{}".as_slice().into()) },
        ToWorker::ToolCalled { number: 9, end: ToolEnd::Refused("no".to_owned()) },
        ToWorker::ModelGranted { number: 3 },
    ]
}

#[test]
fn frames_read_back_as_written() {
    for said in to_leader() {
        let bytes = pb::SessionRequest::from(said.clone()).encode_to_vec();
        let frame = pb::SessionRequest::decode(bytes.as_slice()).expect("own bytes");
        assert_eq!(ToLeader::try_from(frame), Ok(said));
    }
    for said in to_worker() {
        let bytes = pb::SessionResponse::from(said.clone()).encode_to_vec();
        let frame = pb::SessionResponse::decode(bytes.as_slice()).expect("own bytes");
        assert_eq!(ToWorker::try_from(frame), Ok(said));
    }
}

/// A grant after `change`, and what is said against it.
fn check(change: impl FnOnce(&mut pb::Assignment), refused: &Expect) {
    let mut assignment = pb::Assignment::from(assignment());
    change(&mut assignment);
    let error = Assignment::try_from(assignment).expect_err("a changed assignment");
    refused.assert_eq(&Error::from(error).message);
}

#[test]
fn a_refusal_names_the_field() {
    check(|a| a.input = None, &expect![[r#"field "assignment.input" is missing"#]]);
    check(|a| a.input = Some(pb::Payload { key_id: 0, body: None }), &expect![[r#"field "payload.body" is missing"#]]);
    check(|a| a.digest.truncate(31), &expect![[r#"field "assignment.digest" has 31 bytes instead of 32"#]]);
    check(
        |a| a.agent_name = "../etc".to_owned(),
        &expect![[r#"field "assignment.agent_name" is not a name: an agent name must not contain "..""#]],
    );
    check(
        |a| a.version = "1.0".to_owned(),
        &expect![[r#"field "assignment.version" is not a version: "1.0" is not a version of the form 1.2.3"#]],
    );
    check(|a| a.traceparent = "00-0-0-0".to_owned(), &expect![[r#"field "assignment.traceparent" is malformed"#]]);
    check(
        |a| a.startup_timeout = Some(prost_types::Duration { seconds: -1, nanos: 0 }),
        &expect![[r#"field "assignment.startup_timeout" has the unknown value -1"#]],
    );
    check(
        |a| a.execution_timeout = Some(prost_types::Duration { seconds: i64::MAX, nanos: 0 }),
        &expect![[r#"field "assignment.execution_timeout" has the unknown value 9223372036854775807"#]],
    );
    let large = pb::payload::Body::Inline(vec![b' '; INLINE_BYTES_MAX + 1].into());
    check(
        |a| a.input = Some(pb::Payload { key_id: 0, body: Some(large) }),
        &expect![[r#"field "payload.inline" has 65537 bytes or items, more than 65536"#]],
    );
}

/// A hello whose inventory `change` has changed, and what is said against it.
fn check_inventory(change: impl FnOnce(&mut pb::Inventory), refused: &Expect) {
    let mut inventory = pb::Inventory::from(inventory());
    change(&mut inventory);
    let error = Inventory::try_from(inventory).expect_err("a changed inventory");
    refused.assert_eq(&Error::from(error).message);
}

#[test]
fn an_inventory_is_refused_that_no_snapshot_could_hold() {
    check_inventory(
        |inventory| {
            let twin = pb::Gpu { healthy: !inventory.gpus[0].healthy, ..inventory.gpus[0].clone() };
            inventory.gpus.push(twin);
        },
        &expect![[r#"field "inventory.gpus" lists 0 twice"#]],
    );
    check_inventory(
        |inventory| inventory.devices = vec!["x".repeat(4_000); 20],
        &expect![[r#"field "inventory" has 80027 bytes or items, more than 65536"#]],
    );
}

#[test]
fn steps_are_refused_that_no_command_could_carry() {
    let step = |bytes: usize| {
        let outcome = Payload::inline(&vec![b' '; bytes]);
        Arc::new(Step { outcome, ..(*journal().steps[0]).clone() })
    };
    let check = |steps: Vec<Arc<Step>>, refused: &Expect| {
        let error = ToLeader::try_from(pb::SessionRequest::from(record(steps))).expect_err("too large");
        refused.assert_eq(&error.to_string());
    };
    check(vec![step(0); 4_097], &expect![[r#"field "record_steps.steps" has 4097 bytes or items, more than 4096"#]]);
    check(
        vec![step(INLINE_BYTES_MAX); 4],
        &expect![[r#"field "record_steps.steps" has 262400 bytes or items, more than 262144"#]],
    );
}

#[test]
fn calls_of_tools_are_bounded() {
    let arguments = vec![b' '; crate::limits::TOOL_BYTES_MAX + 1];
    let call = ToolRequest { arguments: arguments.as_slice().into(), ..tool_request() };
    let refused = super::tool::call_in(super::tool::call_out(9, call)).expect_err("refused");
    expect![[r#"field "call_tool.arguments" has 1048577 bytes or items, more than 1048576"#]]
        .assert_eq(&refused.to_string());
    let end = ToolEnd::Result(arguments.into());
    let refused = super::tool::called_in(super::tool::called_out(9, end)).expect_err("refused");
    expect![[r#"field "tool_called.result" has 1048577 bytes or items, more than 1048576"#]]
        .assert_eq(&refused.to_string());
}

#[test]
fn parks_and_messages_are_refused_that_no_state_could_hold() {
    let check = |waits: Vec<Wait>, change: fn(&mut pb::Park), refused: &Expect| {
        let ToLeader::Park { number, job, token, park } = park(waits) else { unreachable!("a park") };
        let mut frame = super::park::park_out(number, job, token, park);
        change(&mut frame);
        refused.assert_eq(&super::park::park_in(frame).expect_err("refused").to_string());
    };
    check(vec![Wait::Message; 65], |_| {}, &expect![[r#"field "park.waits" has 65 bytes or items, more than 64"#]]);
    check(vec![Wait::Message], |park| park.waits[0].kind = None, &expect![[r#"field "wait.kind" is missing"#]]);
    check(vec![], |park| park.used = None, &expect![[r#"field "park.used" is missing"#]]);
    check(
        vec![Wait::Answer { question: StepKey([3; 16]) }],
        |park| park.waits[0].kind = Some(pb::wait::Kind::Answer(vec![1; 3].into())),
        &expect![[r#"field "wait.answer" has 3 bytes instead of 16"#]],
    );
    let check_mail = |mail: Mail, refused: &Expect| {
        let error = Mail::try_from(pb::Mail::from(&mail)).expect_err("refused");
        refused.assert_eq(&error.to_string());
    };
    let many = |count, payload: Payload| {
        let message = Arc::new(Message { payload, ..(*mail().messages[0]).clone() });
        Mail { first: 0, messages: vec![message; count] }
    };
    check_mail(
        many(65, Payload::inline(b"1")),
        &expect![[r#"field "mail.messages" has 65 bytes or items, more than 64"#]],
    );
    check_mail(
        many(5, Payload::inline(&vec![b'1'; INLINE_BYTES_MAX])),
        &expect![[r#"field "mail.messages" has 327680 bytes or items, more than 262144"#]],
    );
}

#[test]
fn a_time_beyond_the_format_is_the_last_that_it_allows() {
    let ToLeader::Park { park, .. } = park(vec![Wait::Time { at: Timestamp(i64::MAX) }]) else { unreachable!() };
    let read = Wait::try_from(pb::Wait::from(park.waits[0])).expect("within the format");
    assert!(matches!(read, Wait::Time { at } if at > Timestamp(300_000_000_000 * 1_000_000)));
}

#[test]
fn an_empty_frame_is_refused() {
    let missing = |field| Err(ConvertError::Missing { field });
    assert_eq!(ToLeader::try_from(pb::SessionRequest { kind: None }), missing("session_request.kind"));
    assert!(ToWorker::try_from(pb::SessionResponse { kind: None }).is_err());
}

proptest! {
    /// A frame of any bytes is refused or understood; it never panics.
    #[test]
    fn hostile_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..256)) {
        if let Ok(frame) = pb::SessionRequest::decode(bytes.as_slice()) {
            let _ = ToLeader::try_from(frame);
        }
        if let Ok(frame) = pb::SessionResponse::decode(bytes.as_slice()) {
            let _ = ToWorker::try_from(frame);
        }
    }

    /// One changed bit of a frame of ours is refused or understood.
    #[test]
    fn a_flipped_bit_does_no_harm(which in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), bit in 0..8_u8) {
        let all = to_leader();
        let mut bytes = pb::SessionRequest::from(all[which.index(all.len())].clone()).encode_to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        if let Ok(frame) = pb::SessionRequest::decode(bytes.as_slice()) {
            let _ = ToLeader::try_from(frame);
        }
    }
}
