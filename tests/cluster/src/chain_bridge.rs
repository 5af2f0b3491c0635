//! A conversion between two steps of a chain by a model, while the leader is killed in the middle of it.

use std::fs;

use atlas_llm_server::{Reply, Server};
use reqwest::Method;
use serde_json::{Value, json};

use crate::Agent;
use crate::members::{ask, get};
use crate::patience::{LONG, eventually, eventually_async};
use crate::process::Process;
use crate::program::program;
use crate::trio::{leader, trio, worker_command};

/// How often the leader is killed while a model is asked.
const KILLS: usize = 2;

#[tokio::test]
async fn a_conversion_by_a_model_outlives_its_leader_and_is_paid_for_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let done = folder.path().join("done");
    // Whoever runs a step leaves a line, and a step that is lost does not run again.
    let script = |answer: &str| format!("cat >/dev/null; echo \"$0\" >> {}; echo '{answer}'", done.display());
    let (greets, signs) = (script(r#"{"greeting": "hello"}"#), script(r#"{"signed": true}"#));
    let hello = Agent {
        name: "greets",
        version: "1.0.0",
        contract: "  effects: once
  output: { schema: { type: object, properties: { greeting: { type: string } }, required: [greeting] } }",
        script: &greets,
    };
    let sign = Agent {
        name: "signs",
        version: "1.0.0",
        contract: "  effects: once
  input: { schema: { type: object, properties: { zzz: { type: string } }, required: [zzz] } }",
        script: &signs,
    };
    let answer = || Box::new(Reply::text(r#"{"zzz": "converted"}"#));
    let server = Server::start(move |_, _| Reply::Held(answer())).expect("a server");
    let mut members = trio(folder.path(), &[&hello, &sign]).await;
    let all: Vec<_> = members.iter().collect();
    let mut command = worker_command(program("atlas-worker"), folder.path(), "w1", &all);
    let worker = Process::start(command.env("SCRIPTED_KEY", "key"));
    let spec =
        json!({"provider": "anthropic", "name": "scripted", "base_url": server.base_url(), "key": "${SCRIPTED_KEY}"});
    let put = ask(&members[0], Method::PUT, "/api/objects/model/fast", json!({ "spec": spec })).await;
    put.expect("a model");

    let body =
        json!({"chain": {"name": "bridged", "steps": [{"agent": "greets"}, {"agent": "signs"}]}, "input": {"x": 1}});
    let started = ask(&members[0], Method::POST, "/api/chains", body).await.expect("a run");
    let id = started["id"].as_str().expect("an id").to_owned();
    eventually("the model is asked", LONG, || (!server.requests().is_empty()).then_some(()));

    for _ in 0..KILLS {
        let dead = leader(&members).await;
        members[dead].kill();
        let other = (dead + 1) % members.len();
        // The next leader waits for the same job.
        eventually_async("the run waits for the model at another leader", async || {
            let run = get(&members[other], &format!("/api/chains/{id}")).await?;
            if run["status"] == "running" { Ok(()) } else { Err(run.to_string()) }
        })
        .await;
        members[dead].restart();
    }
    let asked = leader(&members).await;
    server.release();
    let run = eventually_async("the run completes", async || {
        let run = get(&members[asked], &format!("/api/chains/{id}?view=full")).await?;
        if run["status"] == "completed" { Ok(run) } else { Err(run.to_string()) }
    })
    .await;
    assert_eq!(run["result"]["output"], json!({"signed": true}), "{run}");
    assert_eq!(run["result"]["mediation_summary"][1]["strategy"], "llm_bridge", "{run}");

    let lines = fs::read_to_string(&done).expect("a file").lines().count();
    assert_eq!(lines, 2, "each step ran once");
    assert_eq!(server.answered().len(), 1, "the model answered once");
    let jobs = get(&members[asked], "/api/jobs?agent=chain-bridge&limit=100&view=full").await.expect("a list");
    let bridges: Vec<&Value> = jobs.as_array().into_iter().flatten().collect();
    assert_eq!(bridges.len(), 1, "one job converted: {jobs}");
    assert_eq!(bridges[0]["labels"], json!({"chain": id, "step": "1"}), "{jobs}");
    drop(worker);
}
