//! The clients for programs, in Python and for Node: their own tests, and their work while the leader is killed.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::Agent;
use crate::api::Api;
use crate::patience::eventually_async;
use crate::process::Process;
use crate::trio::{leader, trio, worker};

/// Returns its input, and who asked.
const ECHO: Agent<'static> = Agent { name: "echo", version: "1.0.0", contract: "", script: "cat" };
/// Completes when the file that its input names is there.
const GATED: Agent<'static> = Agent {
    name: "gated",
    version: "1.0.0",
    contract: "",
    script: r#"gate=$(sed -n 's/.*"gate": *"\([^"]*\)".*/\1/p')
while [ ! -e "$gate" ]; do sleep 0.05; done
printf '{"passed": true}'"#,
};
/// Jobs before the leader is killed, and jobs after it.
const JOBS: u64 = 20;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A Python that is new enough for the client, with the client.
fn python() -> Option<Command> {
    let new_enough = "import sys; sys.exit(sys.version_info < (3, 10))";
    let runs = Command::new("python3").args(["-c", new_enough]).status().is_ok_and(|status| status.success());
    if !runs {
        atlas_notice::skip("there is no Python 3.10 or newer as \"python3\"");
        return None;
    }
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", root().join("agents/sdk/client-python/src")).env("PYTHONDONTWRITEBYTECODE", "1");
    Some(command)
}

/// A Node that is new enough for the client.
fn node() -> Option<Command> {
    let new_enough = "process.exit(Number(process.versions.node.split('.')[0]) < 20 ? 1 : 0)";
    let runs = Command::new("node").args(["-e", new_enough]).status().is_ok_and(|status| status.success());
    if !runs {
        atlas_notice::skip("there is no Node 20 or newer as \"node\"");
    }
    runs.then(|| Command::new("node"))
}

#[track_caller]
fn passes(command: &mut Command) {
    let output = command.env_remove("NODE_TEST_CONTEXT").output().expect("it starts");
    let told = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
}

#[test]
fn the_client_in_python_passes_its_tests() {
    let Some(mut python) = python() else { return };
    let folder = root().join("agents/sdk/client-python");
    passes(python.args(["-m", "unittest", "discover", "-s", "tests", "-t", "."]).current_dir(folder));
}

#[test]
fn the_client_for_node_passes_its_tests() {
    let Some(mut node) = node() else { return };
    let folder = root().join("agents/sdk/client-typescript");
    let tests = ["requests", "jobs", "settings"].map(|name| format!("tests/{name}.test.js"));
    passes(node.arg("--test").args(tests).current_dir(folder));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_in_python_outlives_the_leader() {
    let Some(mut python) = python() else { return };
    python.arg(root().join("tests/cluster/clients/work.py"));
    works(python).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_for_node_outlives_the_leader() {
    let Some(mut node) = node() else { return };
    node.arg(root().join("tests/cluster/clients/work.mjs"));
    works(node).await;
}

/// Starts a program that submits jobs and follows two, kills the leader, and compares what the program saw with what the cluster knows.
async fn works(mut command: Command) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut members = trio(folder.path(), &[&ECHO, &GATED]).await;
    let _worker = worker(folder.path(), "w1", &members.each_ref());
    let leads = leader(&members).await;
    // The leader comes first, so that the streams are there when it is killed.
    let places = [leads, (leads + 1) % 3, (leads + 2) % 3];
    let servers = places.map(|place| format!("http://{}", members[place].http)).join(",");
    let gate = folder.path().join("gate");
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("ATLAS_")) {
        command.env_remove(name);
    }
    let mut program = Process::start(command.arg(&servers).arg(&gate));
    program.says("two streams and some jobs", |text| {
        let told = told(text);
        let follows = told.iter().filter(|line| line.get("follows").is_some()).count();
        (follows == 2 && jobs(&told) >= JOBS).then_some(())
    });
    members[leads].kill();
    let before = jobs(&told(&program.text()));
    program.says("jobs after the death of the leader", |text| (jobs(&told(text)) >= before + JOBS).then_some(()));
    fs::write(&gate, "").expect("opened");
    let seen = program.says("the end", |text| told(text).iter().find_map(|line| line.get("done").cloned()));
    for stream in seen["streams"].as_array().expect("streams") {
        check_stream(stream);
    }
    let api = Api::new(&members[places[1]].http.to_string());
    check_jobs(&api, seen["jobs"].as_object().expect("jobs")).await;
}

/// The lines of the program that are JSON.
fn told(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn jobs(told: &[Value]) -> u64 {
    told.iter().filter_map(|line| line["jobs"].as_u64()).max().unwrap_or_default()
}

/// A stream has each event once, in order, and ends with the end of its job.
#[track_caller]
fn check_stream(stream: &Value) {
    let events: Vec<(&str, &str)> = stream
        .as_array()
        .expect("events")
        .iter()
        .map(|event| (event[0].as_str().expect("an id"), event[1].as_str().expect("a status")))
        .collect();
    // Events that share a number are `7.1`, `7.2`, and the last of them `7`.
    let place = |id: &str| {
        let (number, part) = id.split_once('.').unwrap_or((id, "1000"));
        (number.parse::<u64>().expect("a number"), part.parse::<u64>().expect("a number"))
    };
    assert!(events.is_sorted_by(|one, other| place(one.0) < place(other.0)), "{events:?}");
    let ended = events.iter().filter(|(_, status)| *status == "completed").count();
    assert_eq!((ended, events.last().map(|last| last.1)), (1, Some("completed")), "{events:?}");
}

/// Each job that was submitted is there once, has completed, and is the one that the program was told of.
async fn check_jobs(api: &Api, submitted: &serde_json::Map<String, Value>) {
    let known = eventually_async("every job is there once", async || {
        let mut known = Vec::new();
        let mut before = String::new();
        loop {
            let page = api.get(&format!("/api/jobs?agent=echo&limit=1000{before}")).await;
            let page = page.as_array().cloned().unwrap_or_default();
            let Some(last) = page.last() else { break };
            before = format!("&before={}", last["id"].as_str().unwrap_or_default());
            known.extend(page);
        }
        if known.len() >= submitted.len() { Ok(known) } else { Err(format!("{} jobs", known.len())) }
    })
    .await;
    assert_eq!(known.len(), submitted.len(), "no job was made twice");
    let numbers: BTreeSet<u64> = known.iter().filter_map(|job| job["input_data"]["number"].as_u64()).collect();
    assert_eq!(numbers.len(), known.len(), "no input was submitted twice");
    for job in &known {
        let told = &submitted[&job["input_data"]["number"].to_string()];
        assert_eq!((&job["id"], &job["status"], &job["retry_count"]), (told, &json!("completed"), &json!(0)), "{job}");
    }
}
