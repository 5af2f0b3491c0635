//! Which runs of chains go on in the leader loop, and why the others do not.

use std::collections::BTreeMap;

use atlas_types::{
    Branches, Door, Expect, ObjectKind, ObjectName, PayloadBody, Principal, PutObject, Run, RunNext, RunStatus,
    RunStep, RunStrategy, SubmitJob,
};
use serde_json::{Value, json};

use super::*;
use crate::{NotHere, plan_step};

/// A state with agents, one of which requires another that is missing.
fn state() -> Script {
    let mut script =
        Script { state: State::new(1), clock: ClusterTime(0), sessions: Sessions::new(TTL), out: String::new() };
    script.state.raise(Level::CURRENT);
    for (name, words) in
        [("first", &[][..]), ("second", &[]), ("needy", &["requires=gone"]), ("chained", &["carried=true"])]
    {
        script.must(agent(name, words));
    }
    script
}

fn put(script: &mut Script, kind: &str, name: &str, spec: &Value) {
    let (kind, name) = (ObjectKind::new(kind).expect("a kind"), ObjectName::new(name).expect("a name"));
    let spec = spec.to_string().into_bytes().into();
    let put = PutObject { kind, name, labels: BTreeMap::new(), spec, spec_version: 1, expect: Expect::Any };
    script.must(Command::PutObject(put));
}

fn planned(agent: &str, schema: &Value) -> Value {
    json!({
        "agent": agent, "version": "1.0.0", "digest": digest(agent).hex(), "name": agent,
        "input_schema": schema, "output_schema": schema,
    })
}

/// A chain of two agents whose data fits as it is.
fn plan() -> Value {
    let text = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    let steps = [planned("first", &text), planned("second", &text)];
    json!({"chain": "pipe", "steps": steps})
}

fn json_payload(value: &Value) -> Payload {
    Payload::inline(value.to_string().as_bytes())
}

/// A run after its first step.
fn run(plan: &Value) -> Run {
    let first = RunStep {
        number: 0,
        agent: "first".into(),
        job: JobId(1),
        strategy: RunStrategy::None,
        output: Some(json_payload(&json!({"text": "said"}))),
        fault: None,
    };
    Run {
        namespace: Namespace::default_namespace(),
        id: RunId(7),
        chain: "pipe".into(),
        revision: None,
        definition: Payload::inline(b"{}"),
        input: json_payload(&json!({"text": "asked"})),
        status: RunStatus::Running,
        version: 3,
        total_steps: 2,
        plan: Some(json_payload(plan)),
        steps: vec![Arc::new(first)],
        branches: None,
        failure: None,
        priority: 5,
        metadata: (*b"{}").into(),
        created_at: Timestamp(1),
        completed_at: Timestamp::NOT_YET,
        started: EventSeq(1),
        ended: None,
        principal: Principal::local(),
        door: Door::Http,
        trace: None,
        job: None,
    }
}

/// The job that begins.
fn begun(state: &State, run: &Run) -> SubmitJob {
    match plan_step(state, run) {
        Ok(RunNext::Step { submit, .. }) => *submit,
        other => panic!("no step begins: {other:?}"),
    }
}

#[test]
fn the_next_step_is_a_job_of_the_run() {
    let mut script = state();
    let run = run(&plan());
    let job = begun(&script.state, &run);
    assert_eq!((job.id, job.agent.as_str(), job.priority), (run.next_job(), "second", 5));
    assert_eq!(job.input, json_payload(&json!({"text": "said"})));
    assert!(!job.waits_for_node);
    // As jobs of clients do in such a namespace.
    put(&mut script, "namespace", "default", &json!({"unsatisfiable": "wait"}));
    assert!(begun(&script.state, &run).waits_for_node);
}

#[test]
fn each_reason_to_go_on_elsewhere() {
    let script = state();
    let with = |change: &dyn Fn(&mut Run, &mut Value)| {
        let mut plan = plan();
        let mut changed = run(&plan);
        change(&mut changed, &mut plan);
        if changed.plan.is_some() {
            changed.plan = Some(json_payload(&plan));
        }
        plan_step(&script.state, &changed).expect_err("it declines")
    };
    let many: Value = (0..40).map(|number| (format!("p{number}"), json!({}))).collect::<serde_json::Map<_, _>>().into();
    assert_eq!(with(&|run, _| run.plan = None), NotHere::Unplanned);
    assert_eq!(with(&|run, _| run.branches = Some(Branches::default())), NotHere::Branches);
    assert_eq!(with(&|run, _| run.input = Payload::inline(&[b'x'; 20 << 10])), NotHere::Large);
    let stored = PayloadBody::Artifact { digest: digest("x"), size_bytes: 1 };
    assert_eq!(with(&|run, _| run.input = Payload { key_id: 0, body: stored.clone() }), NotHere::Elsewhere);
    assert_eq!(with(&|run, _| run.input = Payload::inline(b"damaged")), NotHere::Elsewhere);
    assert_eq!(with(&|_, plan| plan["steps"][1]["input_schema"]["properties"] = many.clone()), NotHere::Schemas);
    assert_eq!(with(&|_, plan| plan["orchestrator"] = "boss".into()), NotHere::Orchestrator);
    let other = json!({"type": "object", "properties": {"summary": {"type": "object"}}, "required": ["summary"]});
    assert_eq!(with(&|_, plan| plan["steps"][1]["input_schema"] = other.clone()), NotHere::Model);
    assert_eq!(with(&|_, plan| plan["steps"][1]["agent"] = "nobody".into()), NotHere::AgentGone);
    assert_eq!(with(&|_, plan| plan["steps"][1]["digest"] = digest("first").hex().into()), NotHere::AgentGone);
    let by = |name: &'static str| {
        move |_: &mut Run, plan: &mut Value| {
            (plan["steps"][1]["agent"], plan["steps"][1]["digest"]) = (name.into(), digest(name).hex().into());
        }
    };
    assert_eq!(with(&by("needy")), NotHere::AgentsMissing);
    assert_eq!(with(&by("chained")), NotHere::Carried);
    let done = |run: &mut Run, _: &mut Value| run.steps.push(Arc::clone(&run.steps[0]));
    assert_eq!(with(&done), NotHere::Done);
}

#[test]
fn with_policies_no_run_goes_on_in_the_loop() {
    let mut script = state();
    put(&mut script, "policy", "strict", &json!({}));
    assert_eq!(plan_step(&script.state, &run(&plan())), Err(NotHere::Policies));
}
