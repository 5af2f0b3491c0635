//! An agent with a model that calls other agents, through `kill -9` of its worker and of the controller: no job is spawned twice.

use std::fs;
use std::path::Path;

use atlas_package::pack;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::api::Api;
use crate::pair::{Controller, worker};
use crate::patience::eventually_async;

const PARENT: &str = "agent:
  name: parent
  version: 1.0.0
  execution_timeout: 300
  requires: { spawn_agents: true, skills: [atlas.exec.spawn, slow] }
  provider: { type: llm }
";

const MOCK: &str = r#"
- match: { round: 1 }
  tool_calls:
    - { name: atlas_exec_spawn, arguments: { agent: note, input: {} } }
    - { name: slow, arguments: {} }
- match: "*"
  text: '{"done": true}'
"#;

fn agent(folder: &Path, name: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let folder = folder.join(name);
    fs::create_dir(&folder).expect("a folder");
    for (path, text) in files {
        fs::write(folder.join(path), text).expect("written");
    }
    pack(&folder).expect("a package").bytes
}

fn script(name: &str) -> String {
    format!(
        "agent:\n  name: {name}\n  version: 1.0.0\n  execution_timeout: 300\n  effects: idempotent\n  provider: {{ type: exec, command: [sh, run.sh] }}\n"
    )
}

async fn jobs_of(api: &Api, agent: &str) -> Vec<Value> {
    let jobs = api.get("/api/jobs?limit=100&view=full").await;
    let jobs = jobs.as_array().cloned().unwrap_or_default();
    jobs.into_iter().filter(|job| job["agent_name"] == agent).collect()
}

/// A controller that has the agents `parent`, `note` and `slow`, which ends once the file `gate` exists.
async fn cluster(folder: &Path) -> (Controller, Api) {
    let controller = Controller::start(folder);
    let api = Api::new(&controller.http.to_string());
    let waits =
        format!("while [ ! -e '{}' ]; do sleep 0.05; done; echo '{{\"waited\": true}}'", folder.join("gate").display());
    api.register(agent(folder, "slow", &[("agent.yaml", &script("slow")), ("run.sh", &waits)])).await;
    api.register(agent(folder, "note", &[("agent.yaml", &script("note")), ("run.sh", "echo '{}'")])).await;
    api.register(agent(folder, "parent", &[("agent.yaml", PARENT), ("mock.yaml", MOCK)])).await;
    (controller, api)
}

/// Opens the gate, and waits for the end of `parent`, whose jobs were spawned once.
async fn finish(folder: &Path, api: &Api, parent: &str) -> Value {
    fs::write(folder.join("gate"), "").expect("written");
    let job = api.wait(parent).await;
    assert_eq!(job["output_data"], json!({"done": true}), "{job}");
    for name in ["slow", "note"] {
        let spawned = jobs_of(api, name).await;
        assert_eq!(spawned.len(), 1, "{name}: {spawned:?}");
    }
    let child = jobs_of(api, "slow").await;
    assert_eq!(child[0]["output_data"], json!({"waited": true}), "{child:?}");
    job
}

#[tokio::test]
async fn jobs_that_a_model_spawns_exist_once_after_the_loss_of_the_worker() {
    let folder = tempfile::tempdir().expect("a folder");
    let (controller, api) = cluster(folder.path()).await;
    let first = worker(folder.path(), &controller);
    let parent = api.submit("parent", json!({})).await;
    eventually_async("the child runs", async || match jobs_of(&api, "slow").await.first() {
        Some(job) if job["status"] == "running" => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    first.kill();
    let second = worker(folder.path(), &controller);
    let job = finish(folder.path(), &api, &parent).await;
    assert!(job["attempt"].as_u64() >= Some(2), "{job}");
    assert_eq!(second.end(Signal::SIGTERM), Some(0));
}

#[tokio::test]
async fn a_job_that_waits_for_its_child_parks_and_survives_the_loss_of_all_processes() {
    let folder = tempfile::tempdir().expect("a folder");
    let (controller, api) = cluster(folder.path()).await;
    let first = worker(folder.path(), &controller);
    let parent = api.submit("parent", json!({})).await;
    eventually_async("the parent parks", async || {
        let job = api.get(&format!("/api/jobs/{parent}?view=full")).await;
        if job["reason"] == "parked" { Ok(()) } else { Err(job.to_string()) }
    })
    .await;
    let steps = format!("/api/jobs/{parent}/steps");
    let before = api.get(&steps).await;
    first.kill();
    let controller = controller.kill_and_restart(folder.path());
    let parked = api.get(&format!("/api/jobs/{parent}?view=full")).await;
    assert_eq!((&parked["reason"], &parked["node_id"]), (&json!("parked"), &Value::Null), "{parked}");
    assert_eq!(api.get(&steps).await, before);
    let second = worker(folder.path(), &controller);
    finish(folder.path(), &api, &parent).await;
    let after = api.get(&steps).await;
    let (Some(before), Some(after)) = (before.as_array(), after.as_array()) else {
        panic!("no steps in {before} or {after}")
    };
    assert!(after.starts_with(before) && after.len() > before.len(), "{before:?} {after:?}");
    assert_eq!(second.end(Signal::SIGTERM), Some(0));
}
