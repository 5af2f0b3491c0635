//! Tests that running attempts call the tools of the platform with the rights of their job.

use std::sync::Arc;

use atlas_contract::platform::LOOKUP;
use atlas_types::{
    AgentPin, Command, DeleteObject, Digest, Expect, FencingToken, JobId, Payload, Principal, PutObject, RegisterAgent,
    RunSpec, Spawner, StepKey, SubmitJob, ToolEnd, ToolRequest, Verdict, Version,
};
use atlas_wire::session::{ToLeader, ToWorker};
use serde_json::{Value, json};

use super::fake::{Cluster, Worker, plain_agent, plain_submission};
use crate::Auth;

const PACKAGE: Digest = Digest([2; 32]);

/// A running job of an agent with this contract.
pub(super) async fn running(contract: &Value, spawns: bool) -> (Cluster, Worker) {
    running_in(Cluster::start().await, contract, spawns).await
}

async fn running_in(cluster: Cluster, contract: &Value, spawns: bool) -> (Cluster, Worker) {
    running_with(cluster, contract, spawns, b"{}").await
}

/// The same with metadata of the job.
pub(super) async fn running_with(
    cluster: Cluster,
    contract: &Value,
    spawns: bool,
    metadata: &[u8],
) -> (Cluster, Worker) {
    let Command::RegisterAgent(command) = plain_agent("tooled") else { panic!("an agent") };
    let spec = Arc::new(RunSpec { spawns, ..(*command.spec).clone() });
    let contract = Payload::inline(contract.to_string().as_bytes());
    let capabilities = vec!["translation".to_owned()];
    cluster
        .does(Command::RegisterAgent(RegisterAgent { digest: PACKAGE, contract, spec, capabilities, ..command }))
        .await;
    let mut worker = cluster.worker("n1", 1).await;
    worker.hears().await;
    let Command::SubmitJob(command) = plain_submission(7, "tooled") else { panic!("a job") };
    let pin = AgentPin { version: Version { major: 1, minor: 0, patch: 0 }, digest: PACKAGE };
    cluster
        .does(Command::SubmitJob(SubmitJob { verdict: Verdict::Accepted(pin), metadata: metadata.into(), ..command }))
        .await;
    worker.hears().await;
    (cluster, worker)
}

pub(super) fn call(number: u64, token: u64, (tool, arguments): (&str, &Value)) -> ToLeader {
    let call = ToolRequest {
        caller: Spawner { job: JobId(7), token: FencingToken(token) },
        tool: tool.to_owned(),
        arguments: arguments.to_string().into_bytes().into(),
        key: StepKey([u8::try_from(number).expect("small"); 16]),
        again: number > 100,
    };
    ToLeader::CallTool { number, call: Box::new(call) }
}

/// The answer to a call: its result, or why there is none.
pub(super) async fn answer(worker: &mut Worker, said: ToLeader) -> Value {
    worker.say(said).await;
    loop {
        match worker.frame().await {
            ToWorker::ToolCalled { end: ToolEnd::Result(result), .. } => {
                return serde_json::from_slice(&result).expect("JSON");
            }
            ToWorker::ToolCalled { end: ToolEnd::Refused(why), .. } => return json!({"refused": why}),
            ToWorker::Grant(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn tools_answer_with_the_members_of_atlas_for_python() {
    let contract = json!({
        "type": "agent",
        "description": "Says things.",
        "input_schema": {"type": "object"},
        "output_schema": {"type": "object"},
        "execution_timeout": 60.0,
        "requires": {"platform_tools": true},
    });
    let (_cluster, mut worker) = running(&contract, true).await;
    let mut number = 0;
    let mut ask = async |tool: &str, arguments: Value| {
        number += 1;
        answer(&mut worker, call(number, 1, (tool, &arguments))).await
    };
    let own = json!({"name": "tooled", "version": "1.0.0", "type": "agent", "description": "Says things."});
    assert_eq!(ask("atlas.registry.list", json!({"type": "agent"})).await, json!({"agents": [own]}));
    let described = json!({
        "name": "tooled", "version": "1.0.0", "type": "agent", "description": "Says things.",
        "capabilities": ["translation"], "input_schema": {"type": "object"}, "output_schema": {"type": "object"},
        "execution_timeout": 60.0,
    });
    assert_eq!(ask("atlas.registry.describe", json!({"name": "tooled"})).await, described);
    let unknown = json!({"error": "Agent 'x' not found"});
    assert_eq!(ask("atlas.registry.describe", json!({"name": "x"})).await, unknown);
    let found = json!({"agents": [{"name": "tooled", "version": "1.0.0", "capabilities": ["translation"]}]});
    let capabilities = json!({"capabilities": ["other", "translation", "translation"]});
    assert_eq!(ask("atlas.registry.search", capabilities).await, found);
    assert_eq!(ask("atlas.registry.search", json!({})).await, json!({"agents": []}));
    let health = ask("atlas.monitor.health", json!({})).await;
    assert_eq!((&health["pending"], &health["running"]), (&json!(0), &json!(1)));
    let metrics = ask("atlas.monitor.metrics", json!({"agent": "x"})).await;
    assert_eq!(metrics, json!({"error": "No metrics for agent: x"}));
    let trace = ask("atlas.monitor.trace", json!({"trace_id": "x"})).await;
    assert_eq!(trace, json!({"error": "Trace 'x' not found"}));
    assert_eq!(ask("atlas.monitor.traces", json!({})).await, json!({"traces": []}));
    let status = ask("atlas.exec.status", json!({"job_id": JobId(7).to_string()})).await;
    assert_eq!((&status["agent_name"], &status["status"]), (&json!("tooled"), &json!("running")));
    assert_eq!(status.as_object().expect("an object").len(), 8);
    let unknown = json!({"error": "Job 'job-0' not found"});
    assert_eq!(ask("atlas.exec.status", json!({"job_id": "job-0"})).await, unknown);
    let cancelled = ask("atlas.exec.cancel", json!({"job_id": JobId(7).to_string()})).await;
    assert_eq!(cancelled, json!({"cancelled": false}));
    let jobs = ask("atlas.queue.inspect", json!({"status": "running"})).await;
    assert_eq!(jobs["jobs"][0]["id"], json!(JobId(7).to_string()));
    assert_eq!(ask("atlas.exec.spawn", json!({})).await, json!({"error": "Missing 'agent' parameter"}));
    assert_eq!(ask("atlas.nothing", json!({})).await, json!({"refused": "Unknown tool: atlas.nothing"}));
}

#[tokio::test]
async fn a_repeated_spawn_finds_the_job_of_the_first() {
    let contract = json!({"requires": {"platform_tools": true}});
    let (cluster, mut worker) = running(&contract, true).await;
    let spawn = ("atlas.exec.spawn", &json!({"agent": "plain", "input": {}}));
    let first = answer(&mut worker, call(1, 1, spawn)).await;
    assert!(first["job_id"].is_string(), "{first}");
    assert_eq!(answer(&mut worker, call(1, 1, spawn)).await, first, "a repeat in another session");
    let other = answer(&mut worker, call(2, 1, spawn)).await;
    assert_ne!(other, first, "another call");
    assert_eq!(cluster.controller.service().handle().applied().jobs_total(), 3);
    let stale = answer(&mut worker, call(3, 9, spawn)).await;
    assert_eq!(stale, json!({"refused": "the lease is outdated"}));
}

#[tokio::test]
async fn tools_need_the_permissions_of_the_contract() {
    let contract = json!({"requires": {"platform_tools": false, "skills": ["atlas.exec.spawn", "tooled"]}});
    let (_cluster, mut worker) = running(&contract, false).await;
    let refused = answer(&mut worker, call(1, 1, ("atlas.registry.list", &json!({})))).await;
    let why = "Skill 'atlas.registry.list' not available — declare it in requires.skills";
    assert_eq!(refused, json!({ "refused": why }));
    let own = answer(&mut worker, call(2, 1, (LOOKUP, &json!({"name": "tooled"})))).await;
    assert_eq!(own["name"], "tooled");
    let other = answer(&mut worker, call(3, 1, (LOOKUP, &json!({"name": "plain"})))).await;
    assert!(other["refused"].is_string(), "{other}");
    let spawn = answer(&mut worker, call(4, 1, ("atlas.exec.spawn", &json!({"agent": "plain"})))).await;
    assert_eq!(spawn, json!({"refused": "Agent does not have spawn_agents permission"}));
}

/// Grants the principal of the jobs a role, or takes what it has.
async fn grant(cluster: &Cluster, role: Option<&str>) {
    let (kind, name) = ("binding".parse().expect("a kind"), "local".parse().expect("a name"));
    let expect = Expect::Any;
    let command = match role {
        None => Command::DeleteObject(DeleteObject { kind, name, expect }),
        Some(role) => {
            let spec = json!({"grants": [{"namespace": "default", "role": role}]}).to_string().into_bytes().into();
            Command::PutObject(PutObject { kind, name, labels: Default::default(), spec, spec_version: 1, expect })
        }
    };
    cluster.does(command).await;
}

#[tokio::test]
async fn a_job_may_do_what_its_submitter_may_do_at_the_moment() {
    let contract = json!({"requires": {"platform_tools": true}});
    let cluster = Cluster::start_with(|options| options.auth = Auth::Tokens).await;
    let (cluster, mut worker) = running_in(cluster, &contract, true).await;
    let mut number = 0;
    let mut ask = async |tool: &str, arguments: Value| {
        number += 1;
        answer(&mut worker, call(number, 1, (tool, &arguments))).await
    };
    let lacks = |right: &str, place: &str| json!({"refused": format!("local lacks the right {right} {place}")});
    let (here, everywhere) = ("in the namespace default", "in the cluster");
    for (tool, right, place) in [
        ("atlas.registry.list", "agents.read", here),
        ("atlas.registry.describe", "agents.read", here),
        ("atlas.registry.search", "agents.read", here),
        ("atlas.exec.spawn", "jobs.submit", here),
        ("atlas.exec.status", "jobs.read", here),
        ("atlas.queue.inspect", "jobs.read", here),
        ("atlas.monitor.trace", "jobs.read", here),
        ("atlas.monitor.traces", "jobs.read", here),
        ("atlas.monitor.metrics", "metrics.read", everywhere),
    ] {
        assert_eq!(ask(tool, json!({"agent": "plain"})).await, lacks(right, place), "{tool}");
    }
    cluster.submit(20, "plain").await;
    cluster.submit_as(&Principal::new("ann").expect("a name"), 21).await;
    let cancel = |job: u64| json!({"job_id": JobId(job).to_string()});
    assert_eq!(ask("atlas.exec.cancel", cancel(20)).await, lacks("jobs.control", here));

    grant(&cluster, Some("submitter")).await;
    assert!(ask("atlas.registry.list", json!({})).await["agents"].is_array());
    assert!(ask("atlas.exec.spawn", json!({"agent": "plain"})).await["job_id"].is_string());
    assert_eq!(ask("atlas.exec.cancel", cancel(21)).await, lacks("jobs.control", here), "the job of another");
    assert!(ask("atlas.exec.cancel", cancel(20)).await["cancelled"].is_boolean(), "its own");

    grant(&cluster, Some("operator")).await;
    assert!(ask("atlas.exec.cancel", cancel(21)).await["cancelled"].is_boolean(), "an operator may");

    grant(&cluster, None).await;
    assert_eq!(ask("atlas.exec.spawn", json!({"agent": "plain"})).await, lacks("jobs.submit", here), "taken away");
}
