//! Tests agents in containers, with a program instead of the engine's client that writes down its arguments and runs the
//! command of the container.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use atlas_types::{Assignment, Attachment, Attachments, Bounds};
use atlas_wire::session::ToWorker;
use atlas_worker::{SandboxMeans, SandboxMode};
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::session::processes;
use crate::support::{Controller, End, Node, PATIENCE, Session, in_time, program, shell, until};

/// What it does: `run` starts the words after the image in the mounted folder, as a child that ends with it; `rm` says whether
/// a `run` is still there. Its lock is shared, because the worker and its supervisor may ask for the removal at the same time.
const CLIENT: &str = r#"#!/bin/sh
here=$(dirname "$0")
[ "$1" != rm ] || flock --shared --nonblock "$here/running" true || echo "too early" >>"$here/calls"
printf '%s\n' "$*" >>"$here/calls"
case $1 in
version)
    [ -e "$here/hangs" ] && exec sleep 86362
    [ -e "$here/slow" ] && sleep 1
    [ -e "$here/dead" ] && exit 1
    echo 1
    ;;
ps) cat "$here/left" 2>/dev/null ;;
run)
    exec 4>"$here/running"
    flock 4
    env >"$here/environment"
    # Like a client that fetches an image.
    [ -e "$here/stubborn" ] && trap '' TERM
    while [ "$1" != img:1 ]; do
        case $1 in -v) folder=${2%%:*} ;; esac
        shift
    done
    shift
    cd "$folder" || exit 1
    exec 3<&0
    setsid "$@" <&3 3<&- 4>&- &
    : >"$here/runs"
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
        Self::set_with(mode, &[]).await
    }

    /// With files in the folder of the client.
    async fn set_with(mode: SandboxMode, files: &[(&str, &str)]) -> Self {
        Self::set_for(mode, files, false).await
    }

    /// Where agents need their container, or only prefer one.
    async fn set_for(mode: SandboxMode, files: &[(&str, &str)], preferred: bool) -> Self {
        let engine = tempfile::tempdir().expect("temporary directory");
        let client = engine.path().join("client");
        fs::write(&client, CLIENT).expect("writable");
        fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).expect("its own file");
        for (name, text) in [("left", "c0ffee\n")].iter().chain(files) {
            fs::write(engine.path().join(name), text).expect("writable");
        }
        let mut controller = Controller::start().await;
        let node = Node::start_with(&controller, |options| {
            options.sandbox = mode;
            options.sandbox_means = Some(SandboxMeans::default());
            options.container_engine = Some(client.display().to_string());
            options.container_preferred = preferred;
            options.secrets.file = Some(engine.path().join("secrets"));
        })
        .await;
        let answers = !files.iter().any(|(name, _)| ["dead", "hangs"].contains(name));
        let mut session = match answers || preferred {
            true => controller.session_with_containers().await,
            false => {
                let mut session = controller.session().await;
                assert_eq!(session.hello().await.inventory.labels.get("container"), None);
                session
            }
        };
        // A loaded machine does not exceed it.
        session.welcome_for(PATIENCE, Vec::new()).await;
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
        let lines = lines.map(|line| match line.split_once("atlas.worker=") {
            // The hash of a folder that differs each time.
            Some((before, after)) if after.len() >= 16 => format!("{before}atlas.worker=HASH{}", &after[16..]),
            _ => line,
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
        ps --all --quiet --filter label=atlas.node=n1 --filter label=atlas.worker=HASH
        rm --force c0ffee
        run --name atlas-job-0000000000000001-1 --label atlas.node=n1 --label atlas.worker=HASH --cap-drop ALL --security-opt no-new-privileges --pids-limit 4096 --rm -i --network none --memory 2048m --cpus 3 -e TOKEN -v PACKAGE:/workspace:ro -w /workspace img:1 sh run.sh
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
async fn a_wrong_answer_is_shown_without_secrets() {
    let mut scene = Scene::set(SandboxMode::BestEffort).await;
    fs::write(scene.at("secrets"), r#"{"TOKEN": "canary-in-a-coal-mine"}"#).expect("writable");
    // The end of what is shown is within the value.
    let script = "printf '%0190d' 0; echo \"$TOKEN\"";
    let end = scene.run(script, &format!("{IN_CONTAINER}  requires: {{secrets: [TOKEN]}}\n")).await;
    assert!(end.error().starts_with("Invalid response from container: 000"), "{}", end.error());
    assert!(!end.error().contains("cana"), "{}", end.error());
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_secret_is_no_variable_of_the_client_itself() {
    let mut scene = Scene::set(SandboxMode::BestEffort).await;
    fs::write(scene.at("secrets"), r#"{"LD_PRELOAD": "/evil.so", "TOKEN": "x"}"#).expect("writable");
    let end = scene.run("echo '{}'", &format!("{IN_CONTAINER}  requires: {{secrets: [LD_PRELOAD, TOKEN]}}\n")).await;
    assert!(
        end.error().starts_with("the agent was not started: the secret \"LD_PRELOAD\" would be"),
        "{}",
        end.error()
    );
    assert_eq!(end.metadata()["_error_code"], "E3106");
    assert!(!scene.at("environment").exists());
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_policy_lowers_the_limits_of_a_container_and_raises_none() {
    let mut scene = Scene::set(SandboxMode::BestEffort).await;
    let agent = scene.controller.publish_owned(&shell("echo '{\"output\": {}}'", IN_CONTAINER));
    for (memory, cpu, asked) in
        [(4_096, Some(5), "--ulimit cpu=5 --rm -i --network none --memory 512m "), (64, None, "--memory 64m ")]
    {
        let bounds = Bounds { memory_mb: Some(memory), cpu_seconds: cpu, ..Bounds::default() };
        let attachments = Attachments::new([Attachment::Bounds(bounds)]);
        let assignment = Assignment { attachments, ..scene.controller.assignment(&agent, "{}") };
        let end = scene.session.run(&assignment).await;
        assert_eq!(end.output(&scene.controller), "{}");
        let End::Completed { metadata, .. } = &end else { panic!("not completed: {end:?}") };
        let said = "\"_limits\":\"cpu time 5 s a process by rlimit\"";
        assert_eq!(metadata.as_deref().is_some_and(|text| text.contains(said)), cpu.is_some(), "{metadata:?}");
        let calls = scene.calls();
        assert!(calls.lines().last().is_some_and(|line| line.contains(asked)), "{calls}");
    }
    assert_eq!(scene.calls().matches("--ulimit").count(), 1);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_limit_of_cores_counts_without_one_of_time() {
    let mut scene = Scene::set(SandboxMode::BestEffort).await;
    let more = "  permissions: {isolation: container, container_image: 'img:1', filesystem: [Read], max_cpu_seconds: 0}\n  hardware: {min_cpu_cores: 3}\n";
    let end = scene.run("echo '{\"output\": {}}'", more).await;
    assert_eq!(end.output(&scene.controller), "{}");
    let calls = scene.calls();
    assert!(calls.contains(" --cpus 3 ") && calls.contains("PACKAGE:/workspace:ro "), "{calls}");
    scene.node.shutdown().await;
}

/// True if the container of the first job was asked to be removed.
fn is_removed(calls: &Path) -> bool {
    let asked = "rm --force atlas-job-0000000000000001-1";
    fs::read_to_string(calls).is_ok_and(|text| text.lines().any(|line| line == asked))
}

#[tokio::test]
async fn a_container_is_removed_when_its_job_is_cancelled() {
    let mut scene = Scene::set_with(SandboxMode::BestEffort, &[("stubborn", "")]).await;
    let agent = scene.controller.publish_owned(&shell("exec sleep 86361", IN_CONTAINER));
    let assignment = scene.controller.assignment(&agent, "{}");
    scene.session.grant(&assignment).await;
    let (runs, calls) = (scene.at("runs"), scene.at("calls"));
    until("it runs", PATIENCE, || runs.exists()).await;
    scene.session.say(ToWorker::Revoke { job: assignment.job, token: assignment.token }).await;
    until("it is removed", PATIENCE, || is_removed(&calls)).await;
    until("its processes have ended", PATIENCE, || processes("86361") == 0).await;
    // A client that lives could still start the container.
    assert!(!scene.calls().contains("too early"), "{}", scene.calls());
    scene.node.shutdown().await;
}

#[tokio::test]
async fn a_container_is_removed_when_its_worker_is_killed() {
    let engine = tempfile::tempdir().expect("temporary directory");
    let (client, data) = (engine.path().join("client"), tempfile::tempdir().expect("temporary directory"));
    fs::write(&client, CLIENT).expect("writable");
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).expect("its own file");
    let mut controller = Controller::start().await;
    let start = |controller: &Controller| program(controller, data.path(), &client).spawn().expect("the worker starts");
    let mut worker = start(&controller);
    let mut session = controller.session_with_containers().await;
    session.welcome(Vec::new()).await;
    let agent = controller.publish_owned(&shell("exec sleep 86363", IN_CONTAINER));
    let assignment = controller.assignment(&agent, "{}");
    session.grant(&assignment).await;
    let (runs, calls) = (engine.path().join("runs"), engine.path().join("calls"));
    until("it runs", PATIENCE, || runs.exists()).await;
    worker.kill().expect("kill -9");
    worker.wait().expect("it was a child");
    until("it is removed", PATIENCE, || is_removed(&calls)).await;
    until("its processes have ended", PATIENCE, || processes("86363") == 0).await;
    // What nobody could remove, the next process of the worker does, before any job.
    fs::write(engine.path().join("left"), "c0ffee\n").expect("writable");
    let mut worker = start(&controller);
    let gone = || fs::read_to_string(&calls).is_ok_and(|text| text.contains("rm --force c0ffee"));
    until("it is removed", PATIENCE, gone).await;
    worker.kill().expect("kill -9");
    worker.wait().expect("it was a child");
}

/// Otherwise the second one would remove the container of the first.
#[tokio::test]
async fn earlier_containers_are_removed_once_before_any_job() {
    let mut scene = Scene::set_with(SandboxMode::BestEffort, &[("slow", "")]).await;
    let agent = scene.controller.publish_owned(&shell("echo '{\"output\": {}}'", IN_CONTAINER));
    let both = [scene.controller.assignment(&agent, "{}"), scene.controller.assignment(&agent, "{}")];
    for assignment in &both {
        scene.session.grant(assignment).await;
    }
    for _ in both {
        let (_, end) = scene.session.end().await;
        assert_eq!(end.output(&scene.controller), "{}");
    }
    let calls = scene.calls();
    let verbs: Vec<&str> = calls.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(verbs, ["version", "ps", "rm", "run", "run"]);
    scene.node.shutdown().await;
}

#[tokio::test]
async fn an_engine_that_hangs_does_not_answer() {
    let mut scene = Scene::set_with(SandboxMode::BestEffort, &[("hangs", "")]).await;
    let end = in_time("an end", scene.run("echo '{}'", IN_CONTAINER)).await;
    assert_eq!(end.error(), NO_ENGINE);
    until("its client has ended", PATIENCE, || processes("86362") == 0).await;
    scene.node.shutdown().await;
}

const NO_ENGINE: &str = "Pool error: sh: the contract asks for a container, and no engine answers on this node";

#[tokio::test]
async fn without_an_engine_the_job_fails_unless_a_container_is_only_preferred() {
    for (mode, preferred) in [
        (SandboxMode::BestEffort, false),
        (SandboxMode::Off, false),
        (SandboxMode::Required, true),
        (SandboxMode::BestEffort, true),
    ] {
        let mut scene = Scene::set_for(mode, &[("dead", "")], preferred).await;
        let end = scene.run("echo '{}'", "  permissions: {isolation: container, container_image: 'img:1'}\n").await;
        if preferred && mode != SandboxMode::Required {
            assert_eq!(end.output(&scene.controller), "{}");
            assert_eq!(sandbox_of(&end), json!("not enforced: container"));
        } else {
            assert_eq!((end.error().as_str(), &end.metadata()["_error_code"]), (NO_ENGINE, &json!("E3106")));
        }
        scene.node.shutdown().await;
    }
}

#[tokio::test]
async fn an_agent_that_may_write_does_not_write_to_the_package_of_others() {
    let mut scene = Scene::set(SandboxMode::BestEffort).await;
    let more = "  permissions: {isolation: container, container_image: 'img:1', filesystem: [read, write]}\n";
    let script = "n=$(ls | wc -l); echo evil >left; printf '{\"output\": {\"n\": %s}}' \"$n\"";
    for _ in 0..2 {
        let end = scene.run(script, more).await;
        assert_eq!(end.output(&scene.controller), r#"{"n": 2}"#);
    }
    scene.node.shutdown().await;
}

#[tokio::test]
async fn an_agent_that_names_no_image_fails() {
    let mut scene = Scene::set(SandboxMode::BestEffort).await;
    let end = scene.run("echo '{}'", "  permissions: {isolation: container}\n").await;
    assert_eq!(end.error(), "the agent runs in a container, but neither its contract nor the policy names an image");
    scene.node.shutdown().await;
}
