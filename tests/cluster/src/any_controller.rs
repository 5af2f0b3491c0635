//! Clients that use any controller, and workers that know one controller, while leaders are killed.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atlas_env::{Env, Task};
use atlas_package::pack;
use serde_json::{Value, json};

use crate::api::Api;
use crate::members::{Member, token, voters};
use crate::patience::{LONG, eventually_async};
use crate::process::Process;
use crate::program::program;
use crate::{Agent, write_agent};

/// Returns its input.
const ECHO: Agent<'static> = Agent { name: "echo", version: "1.0.0", contract: "", script: "cat" };
/// Longest wait of a client for one answer while a leader is killed. The benchmark measures elections; this test only
/// checks that no client runs into its timeout, on a machine that may be building at the same time.
const GAP_MAX: Duration = Duration::from_secs(20);
/// Number of killed leaders.
const ROUNDS: usize = 3;

/// Three voters, a worker that was started with the address of the first one only, and an agent.
async fn start(folder: &Path) -> ([Member; 3], Process) {
    write_agent(folder, &ECHO);
    let first = Member::first(folder, "c1");
    Api::new(&first.http.to_string()).register(pack(&folder.join("echo")).expect("a package").bytes).await;
    let second = Member::joining(folder, "c2", &first, &token(&first).await);
    let third = Member::joining(folder, "c3", &first, &token(&first).await);
    voters(&third, &["c1", "c2", "c3"]).await;
    let mut command = Command::new(program("atlas-worker"));
    command.args(["--node", "w1", "--controller", &first.workers.to_string()]);
    command.arg("--data-dir").arg(folder.join("worker"));
    let worker = Process::start(&mut command);
    let api = Api::new(&third.http.to_string());
    let id = api.submit("echo", json!({"first": true})).await;
    assert_eq!(api.wait(&id).await["status"], json!("completed"));
    ([first, second, third], worker)
}

/// The answers to the client of one controller.
#[derive(Debug, Default)]
struct Journal {
    /// The number of each acknowledged job, by its id.
    acknowledged: BTreeMap<String, u64>,
    /// Refusals by a running controller.
    refusals: Vec<String>,
    /// The longest wait for one answer.
    longest: Duration,
}

/// A client that uses one controller only; while the controller is down, the client waits.
struct Client {
    journal: Arc<Mutex<Journal>>,
    stop: Arc<AtomicBool>,
    task: Task<()>,
}

impl Client {
    fn start(controller: SocketAddr) -> Self {
        let journal = Arc::<Mutex<Journal>>::default();
        let stop = Arc::<AtomicBool>::default();
        let (told, stopped) = (Arc::clone(&journal), Arc::clone(&stop));
        let task = Env::system().spawn("client", async move {
            let clock = Env::system().clock;
            // Without pooling, no connection to a killed controller is reused.
            let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).timeout(LONG).build();
            let http = http.expect("a client");
            for number in 0.. {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let name = format!("{}-{number}", controller.port());
                let id = loop {
                    let begun = clock.monotonic();
                    let request = http.post(format!("http://{controller}/api/jobs")).header("Idempotency-Key", &name);
                    let body = json!({"agent": "echo", "input": {"number": number}});
                    let answer = request.json(&body).send().await;
                    // No answer means that the controller was killed; the client repeats the request with the same key.
                    let Ok(answer) = answer else {
                        clock.sleep(Duration::from_millis(20)).await;
                        continue;
                    };
                    let status = answer.status();
                    let Ok(text) = answer.text().await else { continue };
                    let mut journal = told.lock().expect("not poisoned");
                    journal.longest = journal.longest.max(clock.monotonic().saturating_sub(begun));
                    if status.is_success() {
                        let job: Value = serde_json::from_str(&text).expect("JSON");
                        break job["id"].as_str().expect("an id").to_owned();
                    }
                    journal.refusals.push(format!("{status}: {text}"));
                };
                told.lock().expect("not poisoned").acknowledged.insert(id, number);
            }
        });
        Self { journal, stop, task }
    }

    /// Waits until `more` further jobs are acknowledged.
    async fn goes_on(&self, more: usize) {
        let count = || self.journal.lock().expect("not poisoned").acknowledged.len();
        let wanted = count() + more;
        eventually_async(
            "the client is served",
            async || {
                if count() >= wanted { Ok(()) } else { Err(count().to_string()) }
            },
        )
        .await;
    }

    fn longest(&self) -> Duration {
        std::mem::take(&mut self.journal.lock().expect("not poisoned").longest)
    }

    async fn end(self) -> Journal {
        self.stop.store(true, Ordering::Relaxed);
        self.task.join().await.expect("it ends in order");
        std::mem::take(&mut *self.journal.lock().expect("not poisoned"))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_every_controller_see_a_dead_leader_as_latency() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut members, _worker) = start(folder.path()).await;
    let clients = members.each_ref().map(|member| Client::start(member.http));
    for round in 0..ROUNDS {
        for client in &clients {
            client.goes_on(10).await;
            client.longest();
        }
        let leader = voters(&members[round % 3], &["c1", "c2", "c3"]).await;
        let leader = members.iter().position(|member| member.name == leader).expect("a member");
        members[leader].kill();
        for (place, client) in clients.iter().enumerate().filter(|(place, _)| *place != leader) {
            client.goes_on(10).await;
            let longest = client.longest();
            let (dead, at) = (&members[leader].name, &members[place].name);
            assert!(longest < GAP_MAX, "round {round}: {dead} dies, a client of {at} waits {longest:?}");
        }
        members[leader].restart();
    }
    for (client, member) in clients.into_iter().zip(&members) {
        let Journal { acknowledged, refusals, .. } = client.end().await;
        assert_eq!(refusals, Vec::<String>::new(), "{} refused while a majority lived", member.name);
        // Read from a different controller than the one that acknowledged the job.
        let other = members.iter().find(|other| other.name != member.name).expect("three");
        let api = Api::new(&other.http.to_string());
        for (id, number) in acknowledged {
            let job = api.wait(&id).await;
            assert_eq!(job["output_data"]["input"], json!({"number": number}), "{job}");
        }
    }
}

/// The numbers of the events of a stream after event `after`, until there are `count` or the stream breaks.
async fn events(controller: SocketAddr, after: Option<u64>, count: usize) -> Vec<u64> {
    let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().expect("a client");
    let mut request =
        http.get(format!("http://{controller}/api/events?view=full")).header("Accept", "text/event-stream");
    if let Some(after) = after {
        request = request.header("Last-Event-ID", after.to_string());
    }
    let mut answer = request.send().await.expect("an answer");
    let (mut text, mut numbers) = (String::new(), Vec::new());
    while numbers.len() < count
        && let Ok(Ok(Some(piece))) = tokio::time::timeout(LONG, answer.chunk()).await
    {
        text.push_str(&String::from_utf8_lossy(&piece));
        while let Some((line, rest)) = text.split_once('\n').map(|(line, rest)| (line.to_owned(), rest.to_owned())) {
            numbers.extend(
                line.strip_prefix("id: ").or(line.strip_prefix("id:")).and_then(|id| id.trim().parse::<u64>().ok()),
            );
            text = rest;
        }
    }
    numbers.truncate(count);
    numbers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn event_streams_go_on_at_any_controller() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut members, _worker) = start(folder.path()).await;
    let leader = voters(&members[0], &["c1", "c2", "c3"]).await;
    let leader = members.iter().position(|member| member.name == leader).expect("a member");
    let (follower, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let client = Client::start(members[other].http);
    client.goes_on(5).await;
    let following = Env::system().spawn("events", events(members[follower].http, None, 400));
    client.goes_on(20).await;
    members[leader].kill();
    client.goes_on(40).await;
    let told = following.join().await.expect("no panic");
    client.end().await;
    assert!(told.len() >= 200 && told.is_sorted_by(|a, b| a < b), "{} events, each once and in order", told.len());
    // Another controller sends the same events to a client that resumes there.
    let again = events(members[other].http, told.first().copied(), told.len() - 1).await;
    assert_eq!(again, told[1..], "the numbers are the same everywhere");
}
