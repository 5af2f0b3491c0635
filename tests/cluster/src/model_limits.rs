//! Limits of a model hold for the whole cluster: over workers, agents and graphs, and over a change of leader.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atlas_env::Env;
use atlas_llm_server::{Reply, Server};
use atlas_package::pack;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::Dev;
use crate::api::Api;
use crate::patience::eventually_async;
use crate::process::Process;
use crate::program::program;
use crate::trio::{leader, trio, worker_command};

/// Jobs of the agent, each with one call, and of the graph, each with two.
const AGENT_JOBS: usize = 20;
const GRAPH_JOBS: usize = 10;
const CALLS: usize = AGENT_JOBS + 2 * GRAPH_JOBS;
const CONCURRENCY: usize = 4;
/// How long each call takes: long enough that those of all jobs would meet.
const CALL: Duration = Duration::from_millis(200);

const AGENT: &str = "agent:
  name: thinker
  version: 1.0.0
  provider: { type: llm, output_format: text }
";
const FLOW: &str = "agent:
  name: flow
  version: 1.0.0
  provider: { type: graph }
";
const GRAPH: &str = "name: flow
start: a
nodes:
  a: {type: llm, prompt: first, next: b}
  b: {type: llm, prompt: second, next: e}
  e: {type: end}
";

fn package(folder: &Path, name: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let agent = folder.join(name);
    fs::create_dir_all(&agent).expect("a folder");
    for (file, text) in files {
        fs::write(agent.join(file), text).expect("a file");
    }
    pack(&agent).expect("a package").bytes
}

/// Adds the model of the tier that both agents have.
async fn add_model(api: &Api, server: &Server, limits: Value) {
    let spec = json!({"provider": "anthropic", "name": "tiny", "base_url": server.base_url(), "key": "${TINY_KEY}", "limits": limits});
    let (status, _, answer) = api.try_put("/api/objects/model/balanced", json!({ "spec": spec })).await;
    assert!((200..300).contains(&status), "{answer}");
}

#[tokio::test]
async fn calls_in_flight_stay_within_the_limit_whoever_leads() {
    let folder = tempfile::tempdir().expect("a folder");
    let answer = |_: &Value, _: usize| Reply::Held(Box::new(Reply::After(CALL, Box::new(Reply::text("done")))));
    let server = Server::start(answer).expect("a server");
    let mut members = trio(folder.path(), &[]).await;
    let api = Api::new(&members[0].http.to_string());
    add_model(&api, &server, json!({ "concurrency": CONCURRENCY })).await;
    api.register(package(folder.path(), "thinker", &[("agent.yaml", AGENT)])).await;
    api.register(package(folder.path(), "flow", &[("agent.yaml", FLOW), ("graph.yaml", GRAPH)])).await;
    let worker = |name: &str| {
        let all: Vec<_> = members.iter().collect();
        let mut command = worker_command(program("atlas-worker"), folder.path(), name, &all);
        Process::start(command.env("TINY_KEY", "key"))
    };
    let workers = [worker("w1"), worker("w2")];
    let mut jobs = Vec::new();
    for number in 0..AGENT_JOBS {
        jobs.push(api.submit("thinker", json!({ "job": number })).await);
    }
    for _ in 0..GRAPH_JOBS {
        jobs.push(api.submit("flow", json!({"message": "go"})).await);
    }
    let dead = leader(&members).await;
    let follower = Api::new(&members[(dead + 1) % members.len()].http.to_string());
    let waits = async || {
        for job in &jobs {
            let job = follower.job(job).await;
            let says = job["waiting_for"].as_str().unwrap_or_default();
            if says.starts_with("waits for model \"balanced\": 4 of 4 calls in flight") {
                return Ok(());
            }
        }
        Err(format!("{} calls have reached the model", server.requests().len()))
    };
    eventually_async("a member that does not lead knows what a job waits for", waits).await;
    members[dead].kill();
    eventually_async("the next leader knows which calls are in flight", waits).await;
    assert_eq!(server.requests().len(), CONCURRENCY);
    server.release();
    for job in &jobs {
        let job = follower.wait(job).await;
        assert_eq!(job["status"], "completed", "{job}");
    }
    assert_eq!(server.most_in_flight(), CONCURRENCY);
    assert_eq!(server.requests().len(), CALLS);
    for worker in workers {
        assert_eq!(worker.end(Signal::SIGTERM), Some(0));
    }
}

/// A limit of a minute of a model, and what each call uses of it.
struct OfAMinute {
    name: &'static str,
    limit: u64,
    of_a_call: u64,
    /// Part of what a job says that waits for it.
    says: &'static str,
}

impl OfAMinute {
    /// Half of the calls come before the leader is killed, and more than the limit allows come after that.
    async fn holds_over_a_change_of_leader(self) {
        let folder = tempfile::tempdir().expect("a folder");
        let (clock, times) = (Env::system().clock, Arc::new(Mutex::new(Vec::new())));
        let noted = Arc::clone(&times);
        let server = Server::start(move |_: &Value, _: usize| {
            noted.lock().expect("not poisoned").push(clock.monotonic());
            Reply::Message { content: vec![json!({"type": "text", "text": "done"})], tokens: [20, 180] }
        });
        let server = server.expect("a server");
        let mut members = trio(folder.path(), &[]).await;
        add_model(&Api::new(&members[0].http.to_string()), &server, json!({ self.name: self.limit })).await;
        let agent = "agent:\n  name: thinker\n  version: 1.0.0\n  provider: { type: llm, output_format: text, max_tokens: 200 }\n";
        let package = package(folder.path(), "thinker", &[("agent.yaml", agent)]);
        Api::new(&members[0].http.to_string()).register(package).await;
        let workers = ["w1", "w2"].map(|name| {
            let all: Vec<_> = members.iter().collect();
            let mut command = worker_command(program("atlas-worker"), folder.path(), name, &all);
            Process::start(command.env("TINY_KEY", "key"))
        });
        let calls = usize::try_from(self.limit / self.of_a_call).expect("a few");
        let dead = leader(&members).await;
        let api = Api::new(&members[(dead + 1) % members.len()].http.to_string());
        let mut jobs = Vec::new();
        for number in 0..calls / 2 {
            jobs.push(api.submit("thinker", json!({ "job": number })).await);
        }
        for job in &jobs {
            assert_eq!(api.wait(job).await["status"], "completed");
        }
        members[dead].kill();
        for number in calls / 2..2 * calls {
            let body = json!({ "agent": "thinker", "input": { "job": number } });
            // Until there is another leader, jobs are refused.
            let id =
                eventually_async("a job is submitted", async || match api.try_post("/api/jobs", body.clone()).await {
                    (200..300, _, job) => Ok(job["id"].as_str().expect("an id").to_owned()),
                    (status, _, answer) => Err(format!("{status}: {answer}")),
                });
            jobs.push(id.await);
        }
        let used = || server.requests().len() as u64 * self.of_a_call;
        eventually_async("the limit is used, and the others wait", async || {
            let mut says = Vec::new();
            for job in &jobs {
                says.extend(api.job(job).await["waiting_for"].as_str().map(str::to_owned));
            }
            let waits = says.iter().any(|says| says.contains(self.says));
            let enough = used() * 100 >= self.limit * 95;
            if waits && enough { Ok(()) } else { Err(format!("{} used, {says:?}", used())) }
        })
        .await;
        for job in &jobs {
            let _ = api.try_post(&format!("/api/jobs/{job}/cancel"), json!({})).await;
            let status = api.wait(job).await["status"].as_str().map(str::to_owned);
            assert!(matches!(status.as_deref(), Some("completed" | "cancelled")), "{status:?}");
        }
        // The calls take their time to arrive, so that they are a little nearer to each other here than when they begin.
        let times = times.lock().expect("not poisoned").clone();
        for (place, begin) in times.iter().enumerate() {
            let near =
                times[place..].iter().take_while(|time| **time - *begin < Duration::from_secs(57)).count() as u64;
            assert!(near * self.of_a_call * 100 <= self.limit * 105, "{near} calls within a minute: {times:?}");
        }
        for worker in workers {
            assert_eq!(worker.end(Signal::SIGTERM), Some(0));
        }
    }
}

#[tokio::test]
async fn requests_of_a_minute_stay_within_the_limit_over_a_change_of_leader() {
    let says = "40 of 40 requests in this minute";
    OfAMinute { name: "requests_per_minute", limit: 40, of_a_call: 1, says }.holds_over_a_change_of_leader().await;
}

#[tokio::test]
async fn tokens_of_a_minute_stay_within_the_limit_over_a_change_of_leader() {
    let says = "of 6000 tokens in this minute";
    OfAMinute { name: "tokens_per_minute", limit: 6_000, of_a_call: 200, says }.holds_over_a_change_of_leader().await;
}

#[tokio::test]
async fn calls_beyond_those_of_a_minute_wait_and_can_be_cancelled() {
    let folder = tempfile::tempdir().expect("a folder");
    let (clock, times) = (Env::system().clock, Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&times);
    let answer = move |_: &Value, _: usize| {
        noted.lock().expect("not poisoned").push(clock.monotonic());
        Reply::text("done")
    };
    let server = Server::start(answer).expect("a server");
    let dev = Dev::start_with(folder.path(), ["--data-dir", "data"], [("TINY_KEY", "key")]);
    let api = Api::new(dev.server());
    add_model(&api, &server, json!({"requests_per_minute": 3})).await;
    api.register(package(folder.path(), "thinker", &[("agent.yaml", AGENT)])).await;
    let mut jobs = Vec::new();
    for number in 0..5 {
        jobs.push(api.submit("thinker", json!({ "job": number })).await);
    }
    let waiting = eventually_async("two jobs say what they wait for", async || {
        let mut waiting = Vec::new();
        for job in &jobs {
            let explained = api.get(&format!("/api/jobs/{job}/explain")).await;
            let says = explained["waiting_for"].as_str().unwrap_or_default().to_owned();
            if says.starts_with("waits for model \"balanced\": 3 of 3 requests in this minute; next in ") {
                waiting.push((job.clone(), says));
            }
        }
        if waiting.len() == 2 { Ok(waiting) } else { Err(format!("{waiting:?}")) }
    })
    .await;
    assert!(waiting.iter().any(|(_, says)| says.ends_with("; 1 call waits before it")), "{waiting:?}");
    for (job, _) in &waiting {
        api.post(&format!("/api/jobs/{job}/cancel"), json!({})).await;
        assert_eq!(api.wait(job).await["status"], "cancelled");
    }
    for job in jobs.iter().filter(|job| waiting.iter().all(|(waits, _)| waits != *job)) {
        assert_eq!(api.wait(job).await["status"], "completed");
    }
    let until_now = times.lock().expect("not poisoned").clone();
    for four in until_now.windows(4) {
        assert!(four[3] - four[0] > Duration::from_secs(57), "four calls within a minute: {until_now:?}");
    }
    // A limit that is removed no longer holds for those that wait.
    let late = api.submit("thinker", json!({"job": 5})).await;
    add_model(&api, &server, json!({})).await;
    assert_eq!(api.wait(&late).await["status"], "completed");
    assert_eq!(dev.interrupt(), Some(0));
}
