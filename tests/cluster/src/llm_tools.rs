//! An agent with a model that calls other agents, through `kill -9` of its worker: no job is spawned twice.

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

#[tokio::test]
async fn jobs_that_a_model_spawns_exist_once_after_the_loss_of_the_worker() {
    let folder = tempfile::tempdir().expect("a folder");
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    let gate = folder.path().join("gate");
    let waits = format!("while [ ! -e '{}' ]; do sleep 0.05; done; echo '{{\"waited\": true}}'", gate.display());
    api.register(agent(folder.path(), "slow", &[("agent.yaml", &script("slow")), ("run.sh", &waits)])).await;
    let note = [("agent.yaml", &script("note")[..]), ("run.sh", "echo '{}'")];
    api.register(agent(folder.path(), "note", &note)).await;
    api.register(agent(folder.path(), "parent", &[("agent.yaml", PARENT), ("mock.yaml", MOCK)])).await;
    let first = worker(folder.path(), &controller);
    let parent = api.submit("parent", json!({})).await;
    eventually_async("the child runs", async || match jobs_of(&api, "slow").await.first() {
        Some(job) if job["status"] == "running" => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    first.kill();
    let second = worker(folder.path(), &controller);
    fs::write(&gate, "").expect("written");
    let job = api.wait(&parent).await;
    assert_eq!(job["output_data"], json!({"done": true}), "{job}");
    assert!(job["attempt"].as_u64() >= Some(2), "{job}");
    for name in ["slow", "note"] {
        let spawned = jobs_of(&api, name).await;
        assert_eq!(spawned.len(), 1, "{name}: {spawned:?}");
    }
    let child = jobs_of(&api, "slow").await;
    assert_eq!(child[0]["output_data"], json!({"waited": true}), "{child:?}");
    assert_eq!(second.end(Signal::SIGTERM), Some(0));
}
