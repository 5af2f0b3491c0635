//! What the writers of bytes write is what the types of the interface read.

use std::collections::{BTreeMap, BTreeSet};

use atlas_api::types::{self, of};
use atlas_types::{
    AgentPin, Allocation, Approval, Approvals, Ask, AskKind, AskingRule, Attempt, Carried, ClusterTime, Decider, Door,
    EventSeq, Failure, FailureKind, FencingToken, Fork, JobId, Lease, Micros, Namespace, NodeEpoch, Principal,
    QuestionId, RouteAction, RunId, Seq, Spawned, Version,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::*;

#[test]
fn the_plain_view_has_no_members_of_ours() {
    let metadata =
        br#"{"_trace_model":"m","_error_at":"/a: type","_limits":"cpu not enforced","_error_type":"KeyError","_called_from":"a"}"#;
    assert_eq!(&*without_ours(metadata), br#"{"_trace_model":"m"}"#);
    assert_eq!(&*without_ours(b"{\"a\":1}"), b"{\"a\":1}");
}

/// A job with everything that a job can have.
fn job() -> Job {
    let node = || "n1".parse().expect("a node");
    Job {
        namespace: Namespace::default_namespace(),
        id: JobId(1),
        agent: "greeter".parse().expect("a name"),
        pin: Some(AgentPin { version: Version { major: 1, minor: 2, patch: 3 }, digest: Digest([7; 32]) }),
        spec: None,
        status: JobStatus::Failed,
        reason: Reason::Running,
        priority: -3,
        queue_seq: 4,
        submitted_seq: Seq(5),
        input: Payload::inline(br#"{"n": 1}"#),
        output: Some(Payload::inline(b"[1.5]")),
        failure: Some(Failure { kind: FailureKind::Timeout, error: "E3203: too \"slow\" é".into() }),
        created_at: Timestamp(1_000_000),
        started_at: Timestamp(2_000_000),
        completed_at: Timestamp(3_500_000),
        queued_at: ClusterTime(4),
        warmup: Micros(5_000),
        execution: Micros(6_000),
        warm: true,
        attempt: Attempt(2),
        parks: 1,
        used: Micros::default(),
        parked: None,
        slept_until: Timestamp::NOT_YET,
        node: Some(node()),
        lease: Some(Arc::new(Lease {
            namespace: Namespace::default_namespace(),
            job: JobId(1),
            node: node(),
            epoch: NodeEpoch(3),
            token: FencingToken(8),
            attempt: Attempt(2),
            allocation: Allocation::default(),
            granted_at: ClusterTime(6),
            started: true,
        })),
        carried: Some(Carried { run: RunId(9), since: ClusterTime(4) }),
        retry_count: 1,
        original: Some(JobId(2)),
        successor: Some(JobId(3)),
        spawned: Some(Spawned { by: JobId(4), depth: 2, awaited: true }),
        metadata: br#"{"_error_code":"E3203"}"#.as_slice().into(),
        labels: Arc::new(BTreeMap::from([("team".to_owned(), "blue".to_owned())])),
        execution_timeout: Some(Micros(7)),
        principal: Principal::local(),
        door: Door::Http,
        request_id: Some("key-1".parse().expect("a key")),
        trace: None,
        stream: None,
        journal: None,
        bearer: false,
        budget_nanodollars: Some(2_500_000_000),
        step: None,
        context: None,
        fork: Some(Arc::new(Fork {
            from: JobId(5),
            steps: 3,
            changed: true,
            model: Some("big".parse().expect("a name")),
        })),
        questions: QuestionRule::Wait,
        route: Some(Arc::new(Route {
            generation: EventSeq(11),
            action: RouteAction::Redirect,
            decider: Decider::Orchestrator,
            priority: None,
            rule: Some("long".into()),
            asked: "echo".parse().expect("a name"),
            asked_pin: None,
            refused: None,
        })),
        evidence: None,
        approvals: Some(Arc::new(Approvals {
            all: vec![Approval {
                policy: "careful".parse().expect("a name"),
                rule: "deploys".into(),
                question: QuestionId(12),
                agent: "greeter".parse().expect("a name"),
                by: Some(Principal::local()),
            }],
            not_before: None,
        })),
        waits_for_node: true,
        title: Some("weekly report".into()),
    }
}

/// The same as it is shown: with what is beside the job.
fn shown() -> Shown {
    let usage = StepUsage { tokens_input: 10, tokens_output: 20, cost_nanodollars: 1_000_000, ..StepUsage::default() };
    let ask = Ask {
        kind: AskKind::Approve { options: vec!["yes".into()], other: false },
        prompt: "May it?".into(),
        answerers: Vec::new(),
        timeout: None,
        default: None,
    };
    let rule =
        AskingRule { policy: "careful".parse().expect("a name"), rule: "deploys".into(), role: None, own: false };
    let question = Question {
        id: QuestionId(12),
        namespace: Namespace::default_namespace(),
        job: JobId(1),
        step: 0,
        rule: Some(Arc::new(rule)),
        ask: Arc::new(ask),
        asked: EventSeq(7),
        asked_at: Timestamp(1_500_000),
        due: None,
        end: None,
        ended_at: Timestamp::NOT_YET,
    };
    Shown {
        job: Arc::new(job()),
        artifacts: Vec::new(),
        waiting: Some(("approval", "waits for an approval".to_owned())),
        usage,
        tree: Some(usage),
        questions: vec![Arc::new(question)],
    }
}

/// Reads what is written, and finds in it all that is written and nothing else. What a type leaves out when it writes is nothing: zero, or empty.
#[track_caller]
fn read<T: Serialize + DeserializeOwned>(written: &[u8]) -> BTreeSet<String> {
    let value: Value = serde_json::from_slice(written).expect("JSON");
    let read: T = serde_json::from_slice(written).expect("the type reads it");
    let again = serde_json::to_value(&read).expect("the type is JSON");
    let members = value.as_object().expect("an object");
    for (name, member) in members {
        let nothing = || [0.into(), "".into(), false.into()].contains(member);
        assert!(again.get(name).map_or_else(nothing, |again| same(again, member)), "{name}: {member}");
    }
    members.keys().cloned().collect()
}

/// Whether two values are the same; `1` is `1.0`.
fn same(one: &Value, other: &Value) -> bool {
    one == other || one.as_f64().is_some_and(|one| Some(one) == other.as_f64())
}

fn members(shape: types::Shape) -> BTreeSet<String> {
    shape.members().map(str::to_owned).collect()
}

#[test]
fn a_full_job_is_what_the_interface_says() {
    let mut written = Vec::new();
    shown().write(&mut written, View::Full);
    assert_eq!(read::<types::Job>(&written), members(of::<types::Job>()));
}

#[test]
fn a_plain_job_has_what_every_job_has() {
    let mut written = Vec::new();
    shown().write(&mut written, View::Plain);
    let required = atlas_api::schemas()["Job"]["required"].as_array().expect("a list").clone();
    let required: BTreeSet<String> = required.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    assert_eq!(read::<types::Job>(&written), required);
}

#[test]
fn a_frame_is_what_the_interface_says() {
    let mut written = Vec::new();
    let change = Some(JobChange::Ended);
    write_frame(&mut written, &shown(), JobStatus::Running, Timestamp(4_000_000), change, View::Full);
    let value: Value = serde_json::from_slice(&written).expect("JSON");
    let names: BTreeSet<String> = value.as_object().expect("an object").keys().cloned().collect();
    assert_eq!(names, members(of::<types::JobChange>()));
}
