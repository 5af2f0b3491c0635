//! Tests agents in containers of a real engine. Its twin with a program instead of the client, `container`, runs everywhere.

use std::fs;
use std::path::Path;
use std::process::Child;

use atlas_engine::{Engine, Kind, SHELL};
use atlas_wire::session::ToWorker;
use atlas_worker::SandboxMeans;
use serde_json::{Value, json};

use crate::sandbox::metadata;
use crate::support::{Controller, Node, PATIENCE, program, shell, until};

/// Says what a container sees and may do.
const PROBE: &str = r#"read -r line
can() { if "$@" >/dev/null 2>&1; then echo true; else echo false; fi; }
rights() { grep "$1" /proc/self/status | grep -o '[0-9a-f]*$'; }
printf '{"output": {"line": %s, "secret": %s, "reads": %s, "writes": %s, "interfaces": %s, "capabilities": "%s", "no_new_privileges": "%s"}}\n' \
    "$line" "${#TOKEN}" "$(can ls /workspace/run.sh)" "$(can touch /workspace/new)" \
    "$(grep -c : /proc/net/dev)" "$(rights CapEff)" "$(rights NoNewPrivs)"
"#;

/// The members of a contract whose agents run in containers.
fn in_container(more: &str) -> String {
    format!("  permissions: {{isolation: container, container_image: '{SHELL}', filesystem: [read]{more}}}\n")
}

/// A worker as a process, and its folder.
fn worker(controller: &Controller, engine: &Engine, data: &Path) -> Child {
    program(controller, data, engine.program()).spawn().expect("the worker starts")
}

#[tokio::test]
async fn docker_confines_agents_and_ends_them() {
    confines_agents_and_ends_them(Kind::Docker).await;
}

#[tokio::test]
async fn podman_confines_agents_and_ends_them() {
    confines_agents_and_ends_them(Kind::Podman).await;
}

#[tokio::test]
async fn docker_keeps_no_container_of_a_worker_that_is_killed() {
    keeps_no_container_of_a_worker_that_is_killed(Kind::Docker).await;
}

#[tokio::test]
async fn podman_keeps_no_container_of_a_worker_that_is_killed() {
    keeps_no_container_of_a_worker_that_is_killed(Kind::Podman).await;
}

async fn confines_agents_and_ends_them(kind: Kind) {
    let Some(engine) = Engine::start_of(kind) else { return };
    let mut controller = Controller::start().await;
    let secrets = engine.folder().join("secrets");
    fs::write(&secrets, r#"{"TOKEN": "canary"}"#).expect("writable");
    let node = Node::start_with(&controller, |options| {
        options.sandbox_means = Some(SandboxMeans::default());
        options.container_engine = Some(engine.program().display().to_string());
        options.secrets.file = Some(secrets);
    })
    .await;
    let mut session = controller.session_with_containers().await;
    session.welcome(Vec::new()).await;

    let more = format!("{}  requires: {{secrets: [TOKEN]}}\n", in_container(", network: []"));
    let agent = controller.publish_owned(&shell(PROBE, &more));
    let end = session.run(&controller.assignment(&agent, r#"{"n": 1}"#)).await;
    let mut output: Value = serde_json::from_str(&end.output(&controller)).expect("JSON");
    assert_eq!(output["line"].take()["input"], json!({"n": 1}));
    let expected = json!({
        "line": null,
        "secret": "canary".len(),
        "reads": true,
        "writes": false,
        "interfaces": 1,
        "capabilities": "0000000000000000",
        "no_new_privileges": "1",
    });
    assert_eq!(output, expected);
    assert!(metadata(&end)["_sandbox"].as_str().is_some_and(|text| text.starts_with("container of ")));

    let open = controller.publish_owned(&shell(PROBE, &in_container(", network: [outbound]")));
    let end = session.run(&controller.assignment(&open, "{}")).await;
    let output: Value = serde_json::from_str(&end.output(&controller)).expect("JSON");
    assert_eq!((&output["interfaces"], &output["secret"]), (&json!(2), &json!(0)));

    let script = "dd if=/dev/zero of=/dev/null bs=128M count=1; echo '{\"output\": {}}'";
    let greedy =
        controller.publish_owned(&shell(&format!("exec 2>&1; set -e; {script}"), &in_container(", max_memory_mb: 32")));
    let end = session.run(&controller.assignment(&greedy, "{}")).await;
    assert!(end.error().starts_with("Container exited with code 137"), "{}", end.error());
    assert_eq!(engine.containers(), 0, "each is removed with its job");

    let sleeps = controller.publish_owned(&shell("exec sleep 86371", &in_container("")));
    let assignment = controller.assignment(&sleeps, "{}");
    session.grant(&assignment).await;
    // Also one that is just being made is removed.
    until("it is there", PATIENCE, || engine.containers() == 1).await;
    session.say(ToWorker::Revoke { job: assignment.job, token: assignment.token }).await;
    until("it is removed", PATIENCE, || engine.containers() == 0).await;
    node.shutdown().await;
}

async fn keeps_no_container_of_a_worker_that_is_killed(kind: Kind) {
    let Some(engine) = Engine::start_of(kind) else { return };
    let mut controller = Controller::start().await;
    let data = tempfile::tempdir().expect("temporary directory");
    let mut first = worker(&controller, &engine, data.path());
    let mut session = controller.session_with_containers().await;
    session.welcome(Vec::new()).await;
    let agent = controller.publish_owned(&shell("exec sleep 86372", &in_container("")));
    session.grant(&controller.assignment(&agent, "{}")).await;
    // One that is just being made would be left, and removed by the next process of the worker.
    until("it runs", PATIENCE, || engine.running() == 1).await;
    first.kill().expect("kill -9");
    first.wait().expect("it was a child");
    until("it is removed", PATIENCE, || engine.containers() == 0).await;
}
