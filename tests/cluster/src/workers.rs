//! Workers that stop, are killed, or are started twice: what they hold is lost only if it must be, and everybody says why.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use atlas_env::Env;
use nix::sys::signal::Signal;
use reqwest::Method;
use serde_json::{Value, json};

use crate::Agent;
use crate::members::{Member, ask, get};
use crate::patience::eventually_async;
use crate::process::Process;
use crate::program::program;
use crate::trio::{register, worker, worker_command};

/// A session that lives for longer than any test waits: what ends earlier does so for another reason.
const LONG_SESSIONS: [&str; 2] = ["--worker-session-ttl", "600s"];
/// How often a worker is stopped under load. The repair was tried with 100.
const STOPS: usize = 12;
/// The pause between two jobs of the load.
const PAUSE: Duration = Duration::from_millis(5);

const QUICK: Agent<'static> =
    Agent { name: "quick", version: "1.0.0", contract: "  max_attempts: 1", script: "cat >/dev/null; echo '{}'" };

async fn one_controller(folder: &Path, agents: &[&Agent<'_>]) -> Member {
    let mut member = Member::prepared(folder, "c1");
    member.runs_program(program("atlas-controller"), &LONG_SESSIONS);
    member.restart_with(&[]);
    for agent in agents {
        register(&member, folder, agent).await;
    }
    member
}

async fn submit(member: &Member, body: Value) -> String {
    let job = ask(member, Method::POST, "/api/jobs", body).await.expect("a job");
    job["id"].as_str().expect("an id").to_owned()
}

async fn job(member: &Member, id: &str) -> Result<Value, String> {
    get(member, &format!("/api/jobs/{id}?view=full")).await
}

async fn ended(member: &Member, id: &str) -> Value {
    let ended = eventually_async("the job ends", async || {
        let job = job(member, id).await?;
        if job["status"] == "pending" || job["status"] == "running" { Err(job.to_string()) } else { Ok(job) }
    });
    ended.await
}

async fn node_is(member: &Member, name: &str, health: &str) -> Value {
    let node = eventually_async("the node has that state", async || {
        let node = get(member, &format!("/api/nodes/{name}")).await?;
        if node["health"] == health { Ok(node) } else { Err(node.to_string()) }
    });
    node.await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stopping_a_worker_under_load_loses_no_attempt() {
    let folder = tempfile::tempdir().expect("a folder");
    let member = Arc::new(one_controller(folder.path(), &[&QUICK]).await);
    let _steady = worker(folder.path(), "steady", &[&member]);
    node_is(&member, "steady", "ready").await;
    let (stop, env) = (Arc::new(AtomicBool::new(false)), Env::system());
    let load = {
        let (member, stop, clock) = (member.clone(), stop.clone(), env.clock.clone());
        env.spawn("load", async move {
            let mut jobs = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                jobs.push(submit(&member, json!({"agent": "quick"})).await);
                clock.sleep(PAUSE).await;
            }
            jobs
        })
    };
    for _ in 0..STOPS {
        let stopped = worker(folder.path(), "stopped", &[&member]);
        node_is(&member, "stopped", "ready").await;
        assert_eq!(stopped.end(Signal::SIGTERM), Some(0));
        node_is(&member, "stopped", "down").await;
    }
    stop.store(true, Ordering::Relaxed);
    let jobs = load.join().await.expect("jobs");
    for id in &jobs {
        let job = ended(&member, id).await;
        assert_eq!((&job["status"], &job["attempt"]), (&json!("completed"), &json!(1)), "{job}");
    }
    assert!(jobs.len() > STOPS, "{} jobs are no load", jobs.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_worker_that_is_killed_is_lost_long_before_its_session_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let member = one_controller(folder.path(), &[&QUICK]).await;
    let killed = worker(folder.path(), "w1", &[&member]);
    node_is(&member, "w1", "ready").await;
    killed.kill();
    node_is(&member, "w1", "down").await;
    let id = submit(&member, json!({"agent": "quick"})).await;
    assert_eq!(job(&member, &id).await.expect("a job")["status"], "pending");
    let next = worker(folder.path(), "w1", &[&member]);
    let job = ended(&member, &id).await;
    assert_eq!((&job["status"], &job["attempt"]), (&json!("completed"), &json!(1)), "{job}");
    assert_eq!(next.end(Signal::SIGTERM), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_worker_of_one_name_waits_until_the_first_is_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    let member = one_controller(folder.path(), &[&QUICK]).await;
    let first = worker(folder.path(), "w1", &[&member]);
    node_is(&member, "w1", "ready").await;
    let clone = folder.path().join("clone");
    let mut second = worker(&clone, "w1", &[&member]);
    let told = second.says("it is refused", |text| text.lines().find(|line| line.contains("E5004")).map(str::to_owned));
    assert!(told.contains("the worker at 127.0.0.1:") && told.matches("127.0.0.1:").count() >= 3, "{told}");
    let noted = eventually_async("people see it", async || {
        let node = get(&member, "/api/nodes/w1").await?;
        if node["rival"].is_null() { Err(node.to_string()) } else { Ok(node) }
    });
    let node = noted.await;
    assert_eq!(node["epoch"], 1, "{node}");
    assert_ne!(node["rival"]["address"], node["rival"]["holder"], "{node}");
    let events = get(&member, "/api/cluster/events?kind=node&limit=100").await;
    if let Ok(events) = events {
        assert!(events.to_string().contains("\"contested\""), "{events}");
    }
    let id = submit(&member, json!({"agent": "quick"})).await;
    let job = ended(&member, &id).await;
    assert_eq!((&job["status"], &job["attempt"]), (&json!("completed"), &json!(1)), "{job}");
    first.kill();
    let taken = eventually_async("the second has the name", async || {
        let node = get(&member, "/api/nodes/w1").await?;
        if node["epoch"] == 2 && node["health"] == "ready" { Ok(()) } else { Err(node.to_string()) }
    });
    taken.await;
    assert_eq!(second.end(Signal::SIGTERM), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_data_directory_has_one_worker() {
    let folder = tempfile::tempdir().expect("a folder");
    let member = one_controller(folder.path(), &[]).await;
    let first = worker(folder.path(), "w1", &[&member]);
    node_is(&member, "w1", "ready").await;
    let mut command = std::process::Command::new(program("atlas-worker"));
    command.args(["--node", "w2", "--controller", &member.workers.to_string()]);
    let output = worker_output(command.arg("--data-dir").arg(folder.path().join("w1")));
    let holder = format!("is in use by process {}, worker w1", first.pid());
    assert!(output.contains(&holder) && output.contains("E0108"), "{output}");
}

/// What a worker that does not start says.
fn worker_output(command: &mut std::process::Command) -> String {
    let output = command.env("NO_COLOR", "1").output().expect("it ran");
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_of_controllers_are_used_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let member = one_controller(folder.path(), &[]).await;
    let command = |node: &str, address: &str| {
        let mut command = std::process::Command::new(program("atlas-worker"));
        command.args(["--node", node, "--controller", address]).arg("--data-dir").arg(folder.path().join(node));
        command
    };
    let url = Process::start(&mut command("w1", &format!("http://{}/", member.workers)));
    node_is(&member, "w1", "ready").await;
    drop(url);
    for wrong in ["c1", "http://c1", "ftp://c1:1", "http://c1:1/x", "https://c1:1"] {
        let output = worker_output(&mut command("w2", wrong));
        assert!(output.contains("E0130"), "{wrong}: {output}");
    }
    // Port 1 of loopback refuses connections.
    let mut lost = Process::start(&mut command("w3", "127.0.0.1:1"));
    let told = lost
        .says("it says why", |text| text.lines().find(|line| line.contains("could not connect")).map(str::to_owned));
    assert!(told.contains("127.0.0.1:1") && told.contains("refused") && told.contains("next_try"), "{told}");
    assert_eq!(lost.end(Signal::SIGTERM), Some(0), "it waits for nobody");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_waits_for_a_node_runs_when_one_comes() {
    const ZONED: Agent<'static> =
        Agent { name: "zoned", version: "1.0.0", contract: "  hardware: { node_labels: { zone: b } }", script: "cat" };
    let folder = tempfile::tempdir().expect("a folder");
    let member = one_controller(folder.path(), &[&ZONED]).await;
    let _elsewhere = worker(folder.path(), "w1", &[&member]);
    node_is(&member, "w1", "ready").await;
    let fails = submit(&member, json!({"agent": "zoned"})).await;
    let waits = submit(&member, json!({"agent": "zoned", "unsatisfiable": "wait"})).await;
    let failed = ended(&member, &fails).await;
    assert_eq!((&failed["status"], &failed["attempt"]), (&json!("failed"), &json!(0)), "{failed}");
    let pending = job(&member, &waits).await.expect("a job");
    assert_eq!((&pending["status"], &pending["reason"]), (&json!("pending"), &json!("unsatisfiable")), "{pending}");
    assert_eq!(pending["unsatisfiable"], "wait");
    assert!(
        pending["waiting_for"].as_str().is_some_and(|why| why.contains("no registered worker can run it")),
        "{pending}"
    );
    let spec = json!({"spec": {"unsatisfiable": "wait"}});
    ask(&member, Method::PUT, "/api/objects/namespace/default", spec).await.expect("an object");
    let too = submit(&member, json!({"agent": "zoned"})).await;
    let not = submit(&member, json!({"agent": "zoned", "unsatisfiable": "fail"})).await;
    assert_eq!(ended(&member, &not).await["status"], "failed");
    let mut command = worker_command(program("atlas-worker"), folder.path(), "w2", &[&member]);
    let _zoned = Process::start(command.args(["--label", "zone=b"]));
    for id in [&waits, &too] {
        let job = ended(&member, id).await;
        assert_eq!((&job["status"], &job["node"]), (&json!("completed"), &json!("w2")), "{job}");
    }
}
