//! `kill -9` of all processes, and of the worker.

use std::fs;
use std::time::Duration;

use atlas_package::pack;
use serde_json::{Value, json};

use crate::api::Api;
use crate::pair::{Controller, worker};
use crate::patience::eventually_async;
use crate::{Agent, Dev, LONG, eventually, write_agent};

/// Completes immediately.
const QUICK: Agent<'static> =
    Agent { name: "quick", version: "1.0.0", contract: "", script: "cat >/dev/null; printf '{\"done\": true}'" };

/// Waits until the file that its input names appears.
const GATED: Agent<'static> = Agent {
    name: "gated",
    version: "1.0.0",
    contract: "",
    script: r#"gate=$(sed -n 's/.*"gate": *"\([^"]*\)".*/\1/p')
while [ ! -e "$gate" ]; do sleep 0.05; done
printf '{"passed": true}'"#,
};

/// Starts children that ignore SIGTERM, one of them by a double fork. Their command lines contain the mark from the
/// input, because in their own process namespace they do not know the process ids that this test sees.
const FORKING: Agent<'static> = Agent {
    name: "forking",
    version: "1.0.0",
    contract: "",
    script: r#"mark=$(sed -n 's/.*"mark": *"\([^"]*\)".*/\1/p')
loop="trap '' TERM; while :; do sleep 1; done # $mark"
trap '' TERM
sh -c "$loop" &
(setsid sh -c "$loop" &)
sh -c "$loop""#,
};

#[tokio::test]
async fn every_acknowledged_job_survives_the_death_of_everything() {
    let folder = tempfile::tempdir().expect("a folder");
    let agents = folder.path().join("agents");
    write_agent(&agents, &QUICK);
    write_agent(&agents, &GATED);
    let gate = folder.path().join("gate");
    let dev = Dev::start(folder.path(), ["--agents", "./agents"]);
    let api = Api::new(dev.server());
    let mut ended = Vec::new();
    for _ in 0..20 {
        let id = api.submit("quick", json!({})).await;
        let job = api.wait(&id).await;
        assert_eq!(job["output_data"], json!({"done": true}), "{job}");
        ended.push((id, job));
    }
    let mut waiting = Vec::new();
    for _ in 0..30 {
        waiting.push(api.submit("gated", json!({"gate": gate})).await);
    }
    dev.kill();
    let dev = Dev::start(folder.path(), ["--agents", "./agents"]);
    let api = Api::new(dev.server());
    for (id, job) in &ended {
        assert_eq!(&api.job(id).await, job, "an acknowledged result reads as before");
    }
    for id in &waiting {
        let job = api.job(id).await;
        assert!(["pending", "running"].contains(&job["status"].as_str().expect("text")), "{job}");
    }
    fs::write(&gate, "").expect("opened");
    for id in &waiting {
        let job = api.wait(id).await;
        assert_eq!((&job["status"], &job["output_data"]), (&json!("completed"), &json!({"passed": true})), "{job}");
    }
}

#[tokio::test]
async fn children_die_with_their_worker_and_the_job_runs_again() {
    let folder = tempfile::tempdir().expect("a folder");
    write_agent(&folder.path().join("agents"), &FORKING);
    let mark = format!("forked-by-{}", std::process::id());
    let three = || Some(()).filter(|()| processes(&mark) == 3);
    let none = || Some(()).filter(|()| processes(&mark) == 0);
    let dev = Dev::start(folder.path(), ["--agents", "./agents"]);
    let id = Api::new(dev.server()).submit("forking", json!({"mark": mark})).await;
    eventually("three processes", LONG, three);
    dev.kill();
    eventually("all children are dead", Duration::from_secs(2), none);
    let dev = Dev::start(folder.path(), ["--agents", "./agents"]);
    eventually("three processes of the next attempt", LONG, three);
    let api = Api::new(dev.server());
    let job = api.job(&id).await;
    assert_eq!((&job["status"], &job["attempt"]), (&json!("running"), &json!(2)), "{job}");
    api.post(&format!("/api/jobs/{id}/cancel"), json!({})).await;
    assert_eq!(api.wait(&id).await["status"], json!("cancelled"));
    eventually("the cancel reached the whole tree", LONG, none);
}

#[tokio::test]
async fn controller_and_worker_die_apart() {
    let folder = tempfile::tempdir().expect("a folder");
    write_agent(folder.path(), &GATED);
    let gate = folder.path().join("gate");
    let controller = Controller::start(folder.path());
    let api = Api::new(&controller.http.to_string());
    api.register(pack(&folder.path().join("gated")).expect("a package").bytes).await;
    let first = worker(folder.path(), &controller);
    let id = api.submit("gated", json!({"gate": gate})).await;
    let attempt = |job: &Value| (job["status"].clone(), job["attempt"].clone());
    running(&api, &id, 1).await;
    // The controller is killed and restarted: the worker's attempt continues.
    let controller = controller.kill_and_restart(folder.path());
    let job = running(&api, &id, 1).await;
    assert_eq!(attempt(&job), (json!("running"), json!(1)), "{job}");
    // The worker is killed, and its attempt is lost; the restarted worker runs the next attempt.
    first.kill();
    let second = worker(folder.path(), &controller);
    let job = running(&api, &id, 2).await;
    assert_eq!(attempt(&job), (json!("running"), json!(2)), "{job}");
    // The controller is killed and restarted during the second attempt; the worker reports the result to the restarted
    // controller.
    let controller = controller.kill_and_restart(folder.path());
    fs::write(&gate, "").expect("opened");
    let job = api.wait(&id).await;
    assert_eq!(attempt(&job), (json!("completed"), json!(2)), "{job}");
    assert_eq!(job["output_data"], json!({"passed": true}));
    assert_eq!(second.end(nix::sys::signal::Signal::SIGTERM), Some(0));
    drop(controller);
}

/// Waits until the job runs in this attempt or a later one; returns the job.
async fn running(api: &Api, id: &str, attempt: u64) -> Value {
    let runs = |job: &Value| job["status"] == "running" && job["attempt"].as_u64() >= Some(attempt);
    eventually_async("the job runs", async || {
        let job = api.job(id).await;
        if runs(&job) { Ok(job) } else { Err(job.to_string()) }
    })
    .await
}

/// The number of processes on this machine with the mark in their command line; a zombie has no command line and does
/// not count.
fn processes(mark: &str) -> usize {
    let commands = fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path().join("cmdline"));
    commands.filter_map(|path| fs::read(path).ok()).filter(|line| String::from_utf8_lossy(line).contains(mark)).count()
}
