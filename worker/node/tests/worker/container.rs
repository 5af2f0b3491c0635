//! Tests agents in containers, with a program in the place of the engine's client that writes down its arguments and runs the
//! command of the container.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use atlas_wire::session::ToWorker;
use atlas_worker::{SandboxMeans, SandboxMode};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Controller, End, Node, PATIENCE, Session, shell, until};

/// What it does: `run` starts the words after the image in the mounted folder, `rm` kills that process.
const CLIENT: &str = r#"#!/bin/sh
here=$(dirname "$0")
printf '%s\n' "$*" >>"$here/calls"
case $1 in
version) [ -e "$here/dead" ] && exit 1; echo 1 ;;
ps) cat "$here/left" 2>/dev/null ;;
rm) [ -e "$here/pid" ] && kill -9 "$(cat "$here/pid")"; exit 0 ;;
run)
    while [ "$1" != img:1 ]; do
        case $1 in -v) folder=${2%%:*} ;; esac
        shift
    done
    shift
    cd "$folder" || exit 1
    exec 3<&0
    setsid "$@" <&3 3<&- &
    echo $! >"$here/pid.new"
    mv "$here/pid.new" "$here/pid"
    wait $!
    ;;
esac
"#;

struct Scene {
    controller: Controller,
    node: Node,
    session: Session,
    engine: TempDir,
}

impl Scene {
    async fn set(mode: SandboxMode) -> Self {
        let engine = tempfile::tempdir().expect("temporary directory");
        let client = engine.path().join("client");
        fs::write(&client, CLIENT).expect("writable");
        fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).expect("its own file");
        fs::write(engine.path().join("left"), "c0ffee\n").expect("writable");
        let mut controller = Controller::start().await;
        let node = Node::start_with(&controller, |options| {
            options.sandbox = mode;
            options.sandbox_means = Some(SandboxMeans::default());
            options.container_engine = Some(client.display().to_string());
            options.secrets.file = Some(engine.path().join("secrets"));
        })
        .await;
        let session = controller.welcomed(Vec::new()).await;
        Self { controller, node, session, engine }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.engine.path().join(name)
    }

    /// Runs a script in a container of a contract with more members.
    async fn run(&mut self, script: &str, more: &str) -> End {
        let agent = self.controller.publish_owned(&shell(script, more));
        self.session.run(&self.controller.assignment(&agent, r#"{"n": 1}"#)).await
    }

    /// What the client was asked, with the parts that differ each time replaced.
    fn calls(&self) -> String {
        let calls = fs::read_to_string(self.at("calls")).expect("it was asked");
        let packages = self.node.dir.path().join("packages").display().to_string();
        let lines = calls.lines().map(|line| match line.split_once(&packages) {
            Some((before, after)) => format!("{before}PACKAGE:{}", after.split_once(':').map_or("", |(_, rest)| rest)),
            None => line.to_owned(),
        });
        lines.map(|line| line + "\n").collect()
    }
}

const IN_CONTAINER: &str =
    "  permissions: {isolation: container, container_image: 'img:1', filesystem: [read], network: []}\n";

fn sandbox_of(end: &End) -> Value {
    let (End::Completed { metadata, .. } | End::Failed { metadata, .. }) = end else { panic!("not run: {end:?}") };
    let metadata: Value = serde_json::from_str(metadata.as_deref().unwrap_or("{}")).expect("JSON");
    metadata["_sandbox"].clone()
}

#[tokio::test]
async fn an_agent_runs_in_the_container_that_its_contract_asks_for() {
    let mut scene = Scene::set(SandboxMode::BestEffort).await;
    fs::write(scene.at("secrets"), r#"{"TOKEN": "canary"}"#).expect("writable");
    let more = "  requires: {secrets: [TOKEN]}\n  hardware: {min_memory_gb: 2, min_cpu_cores: 3}\n";
    let script =
        "read -r line; echo working; printf '{\"output\": {\"line\": %s, \"secret\": %s}}' \"$line\" \"${#TOKEN}\"";
    let end = scene.run(script, &format!("{IN_CONTAINER}{more}")).await;
    let output: Value = serde_json::from_str(&end.output(&scene.controller)).expect("JSON");
    assert_eq!(output["line"]["input"], json!({"n": 1}));
    assert_eq!(output["secret"], json!("canary".len()));
    assert!(sandbox_of(&end).as_str().is_some_and(|text| text.starts_with("container of ")));
    let calls = scene.calls();
    assert!(!calls.contains("canary"), "{calls}");
    expect![[r#"
        version --format {{.Server.Version}}
        ps --all --quiet --filter label=atlas.node=n1
        rm --force c0ffee
        run --name atlas-job-0000000000000001-1 --label atlas.node=n1 --cap-drop ALL --security-opt no-new-privileges --pids-limit 4096 --rm -i --network none --memory 2048m --cpus 3 -e TOKEN -v PACKAGE:/workspace:ro -w /workspace img:1 sh run.sh
    "#]]
    .assert_eq(&calls);
    scene.node.shutdown().await;
}

async fn fails(scene: &mut Scene, script: &str, expected: &Expect) {
    let end = scene.run(script, IN_CONTAINER).await;
    expected.assert_eq(&end.error());
}

#[tokio::test]
async fn what_a_container_says_wrong_fails_the_job() {
    let mut scene = Scene::set(SandboxMode::BestEffort).await;
    fails(&mut scene, "echo no such thing >&2; exit 3", &expect!["Container exited with code 3: no such thing"]).await;
    fails(&mut scene, "echo; echo ' '", &expect!["Container produced no output"]).await;
    fails(&mut scene, "echo hello", &expect!["Invalid response from container: hello"]).await;
    fails(&mut scene, "echo '{}'", &expect!["Invalid response from container: {}"]).await;
    fails(&mut scene, "echo '{\"error\": \"too deep\"}'", &expect!["Container agent error: too deep"]).await;
    fails(&mut scene, "echo '{\"output\": {}}'; echo end", &expect!["Invalid response from container: end"]).await;
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_container_is_removed_when_its_job_is_cancelled() {
    let mut scene = Scene::set(SandboxMode::BestEffort).await;
    let agent = scene.controller.publish_owned(&shell("exec sleep 86361", IN_CONTAINER));
    let assignment = scene.controller.assignment(&agent, "{}");
    scene.session.grant(&assignment).await;
    let pid = scene.at("pid");
    until("it runs", PATIENCE, || pid.exists()).await;
    scene.session.say(ToWorker::Revoke { job: assignment.job, token: assignment.token }).await;
    let gone = |name: &str, calls: &Path| {
        fs::read_to_string(calls).is_ok_and(|text| text.lines().any(|line| line == format!("rm --force {name}")))
    };
    let calls = scene.at("calls");
    until("it is removed", PATIENCE, || gone("atlas-job-0000000000000001-1", &calls)).await;
    scene.node.shutdown().await;
}

#[tokio::test]
async fn without_an_engine_the_job_says_so_or_fails() {
    for (mode, required) in [(SandboxMode::BestEffort, false), (SandboxMode::Required, true)] {
        let mut scene = Scene::set(mode).await;
        fs::write(scene.at("dead"), "").expect("writable");
        let end = scene.run("echo '{}'", "  permissions: {isolation: container, container_image: 'img:1'}\n").await;
        if required {
            let why = "Pool error: sh: the contract asks for a container, and no engine answers on this node";
            assert_eq!((end.error().as_str(), &end.metadata()["_error_code"]), (why, &json!("E3106")));
        } else {
            assert_eq!(end.output(&scene.controller), "{}");
            assert_eq!(sandbox_of(&end), json!("not enforced: container"));
        }
        scene.node.shutdown().await;
    }
}

#[tokio::test]
async fn an_agent_that_names_no_image_fails() {
    let mut scene = Scene::set(SandboxMode::BestEffort).await;
    let end = scene.run("echo '{}'", "  permissions: {isolation: container}\n").await;
    assert_eq!(end.error(), "the agent runs in a container, but neither its contract nor the policy names an image");
    scene.node.shutdown().await;
}
