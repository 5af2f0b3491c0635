//! Controllers of one cluster as processes on loopback, and clients that keep submitting to whichever answers.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atlas_env::{Env, Task};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::patience::eventually_async;
use crate::process::Process;
use crate::program::program;

/// A pause before a client tries the next controller.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest that a client waits for one answer.
const ANSWER_MAX: Duration = Duration::from_secs(8);

/// A controller that keeps its ports and its data over restarts.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: &'static str,
    data: PathBuf,
    process: Option<Process>,
    pub(crate) http: SocketAddr,
    pub(crate) workers: SocketAddr,
    pub(crate) peers: SocketAddr,
}

impl Member {
    /// Starts the first controller of a cluster on free ports, with its data under `folder`.
    pub(crate) fn first(folder: &Path, name: &'static str) -> Self {
        Self::first_with(folder, name, &[])
    }

    /// The same with more arguments, which it has in this life only.
    pub(crate) fn first_with(folder: &Path, name: &'static str, more: &[&str]) -> Self {
        let more: Vec<String> = more.iter().map(|&word| word.to_owned()).collect();
        Self::start_at(folder.join(name), name, [SocketAddr::from(([127, 0, 0, 1], 0)); 3], &more)
    }

    /// Whether it wrote this to stderr.
    pub(crate) fn said(&self, text: &str) -> bool {
        self.process.as_ref().is_some_and(|process| process.text().contains(text))
    }

    /// Starts a controller that joins the cluster of `member` with a token.
    pub(crate) fn joining(folder: &Path, name: &'static str, member: &Self, token: &str) -> Self {
        let more = ["--join", &member.peers.to_string(), "--token", token].map(str::to_owned);
        Self::start_at(folder.join(name), name, [SocketAddr::from(([127, 0, 0, 1], 0)); 3], &more)
    }

    /// Starts a controller that nobody takes in, and waits until it says so.
    pub(crate) fn asking_in_vain(folder: &Path, name: &'static str, more: &[&str]) -> Self {
        let (data, free) = (folder.join(name), [SocketAddr::from(([127, 0, 0, 1], 0)); 3]);
        let more: Vec<String> = more.iter().map(|&word| word.to_owned()).collect();
        let mut process = Process::start(&mut command(&data, name, free, &more));
        let waits = "no member has taken this controller in yet";
        process.says("nobody takes it in", |text| text.contains(waits).then_some(()));
        let [http, workers, peers] = free;
        Self { name, data, process: Some(process), http, workers, peers }
    }

    fn start_at(data: PathBuf, name: &'static str, [http, workers, peers]: [SocketAddr; 3], more: &[String]) -> Self {
        let mut process = Process::start(&mut command(&data, name, [http, workers, peers], more));
        let [http, workers, peers] = process.says("the controller has started", |text| {
            let line = text.lines().find(|line| line.contains("controller started"))?;
            let field = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse().ok());
            Some([field("http=")?, field("workers=")?, field("peers=")?])
        });
        Self { name, data, process: Some(process), http, workers, peers }
    }

    /// What it wrote to stderr so far.
    pub(crate) fn text(&self) -> String {
        self.process.as_ref().map(Process::text).unwrap_or_default()
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.process.take().expect("it runs").kill();
    }

    /// Asks it to end and waits; returns the exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        self.process.take().expect("it runs").end(Signal::SIGTERM)
    }

    /// Loses its data; it does not run.
    pub(crate) fn wipe(&self) {
        assert!(self.process.is_none(), "{} runs", self.name);
        std::fs::remove_dir_all(&self.data).expect("removed");
    }

    /// Starts it again on its ports and data.
    pub(crate) fn restart(&mut self) {
        self.restart_with(&[]);
    }

    /// The same with more arguments, which it has in this life only.
    pub(crate) fn restart_with(&mut self, more: &[&str]) {
        let more: Vec<String> = more.iter().map(|&word| word.to_owned()).collect();
        let again = Self::start_at(self.data.clone(), self.name, [self.http, self.workers, self.peers], &more);
        self.process = again.process;
    }

    /// Starts it again on its data, with which it cannot go on: it ends by itself. Returns what it said.
    pub(crate) fn restart_to_its_end(&mut self) -> String {
        self.restart_to_its_end_with(&[])
    }

    /// The same with more arguments.
    pub(crate) fn restart_to_its_end_with(&mut self, more: &[&str]) -> String {
        let ports = [self.http, self.workers, self.peers];
        let more: Vec<String> = more.iter().map(|&word| word.to_owned()).collect();
        let mut process = Process::start(&mut command(&self.data, self.name, ports, &more));
        let code = crate::eventually("it ends by itself", crate::LONG, || process.ended());
        assert_eq!(code, Some(1), "{}", process.text());
        process.text()
    }
}

fn command(data: &Path, name: &str, [http, workers, peers]: [SocketAddr; 3], more: &[String]) -> Command {
    let mut command = Command::new(program("atlas-controller"));
    command.arg("--data-dir").arg(data).args(["--log", "info", "--name", name, "--queue-max-size", "1000000"]);
    command.args(["--http-listen", &http.to_string(), "--worker-listen", &workers.to_string()]);
    command.args(["--peer-listen", &peers.to_string()]).args(more);
    command
}

/// Starts a controller that the cluster does not take in; returns what it said.
pub(crate) fn refused(folder: &Path, name: &str, member: &Member, token: &str) -> String {
    let free = [SocketAddr::from(([127, 0, 0, 1], 0)); 3];
    let more = ["--join", &member.peers.to_string(), "--token", token].map(str::to_owned);
    let mut process = Process::start(&mut command(&folder.join(name), name, free, &more));
    let code = crate::eventually("it ends by itself", crate::LONG, || process.ended());
    assert_eq!(code, Some(1), "{}", process.text());
    process.text()
}

fn client() -> reqwest::Client {
    // A connection to a controller that was killed must not be used again.
    let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).timeout(ANSWER_MAX);
    client.build().expect("a client")
}

/// Asks one controller; an error says why it gave no answer.
pub(crate) async fn get(member: &Member, path: &str) -> Result<Value, String> {
    get_by(&client(), member, path).await
}

async fn get_by(client: &reqwest::Client, member: &Member, path: &str) -> Result<Value, String> {
    let answer = client.get(format!("http://{}{path}", member.http)).send().await.map_err(|error| error.to_string())?;
    read(answer).await
}

/// Asks one controller to do something; an error says why it did not.
pub(crate) async fn ask(member: &Member, method: reqwest::Method, path: &str, body: Value) -> Result<Value, String> {
    let request = client().request(method, format!("http://{}{path}", member.http)).json(&body);
    read(request.send().await.map_err(|error| error.to_string())?).await
}

async fn read(answer: reqwest::Response) -> Result<Value, String> {
    let status = answer.status();
    let text = answer.text().await.map_err(|error| error.to_string())?;
    if !status.is_success() {
        return Err(format!("{status}: {text}"));
    }
    serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))
}

/// A token with which a controller joins.
pub(crate) async fn token(member: &Member) -> String {
    let made = eventually_async("a token", async || {
        ask(member, reqwest::Method::POST, "/api/cluster/join-tokens", json!({"kind": "controller"})).await
    });
    made.await["token"].as_str().expect("text").to_owned()
}

/// Waits until `member` sees these voters, and the leader among them; returns the leader's name.
pub(crate) async fn voters(member: &Member, wanted: &[&str]) -> String {
    eventually_async("the voters", async || {
        let status = get(member, "/api/cluster").await?;
        let members = status["members"].as_array().expect("an array").iter();
        let mut found: Vec<_> =
            members.filter(|member| member["role"] != "learner").map(|member| &member["name"]).collect();
        found.sort_by_key(|name| name.as_str().map(str::to_owned));
        let leader = status["leader"].as_str().map(str::to_owned);
        leader.filter(|_| json!(found) == json!(wanted) && status["changing"] == json!(false)).ok_or(status.to_string())
    })
    .await
}

/// What clients were told, and how long they had to wait for it at most.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// The id of each job that was acknowledged, by the client's key.
    pub(crate) acknowledged: BTreeMap<String, String>,
    pub(crate) longest: Duration,
}

/// Clients that submit jobs, each with a key of its own, to whichever controller answers.
pub(crate) struct Load {
    controllers: Arc<Mutex<Vec<SocketAddr>>>,
    journal: Arc<Mutex<Journal>>,
    stop: Arc<AtomicBool>,
    clients: Vec<Task<()>>,
}

impl Load {
    /// Starts `clients` that submit jobs of `agent`.
    pub(crate) fn start(agent: &'static str, clients: usize, member: &Member) -> Self {
        let controllers = Arc::new(Mutex::new(vec![member.http]));
        let (journal, stop): (Arc<Mutex<Journal>>, Arc<AtomicBool>) = Default::default();
        let run = |client| {
            let (controllers, journal, stop) = (Arc::clone(&controllers), Arc::clone(&journal), Arc::clone(&stop));
            Env::system().spawn("client", submit(agent, client, controllers, journal, stop))
        };
        let clients = (0..clients).map(run).collect();
        Self { controllers, journal, stop, clients }
    }

    /// Clients know one controller more.
    pub(crate) fn knows(&self, member: &Member) {
        self.controllers.lock().expect("not poisoned").push(member.http);
    }

    /// Waits until so many more jobs are acknowledged.
    pub(crate) async fn goes_on(&self, more: usize) {
        let count = || self.journal.lock().expect("not poisoned").acknowledged.len();
        let wanted = count() + more;
        eventually_async(
            "clients are served",
            async || if count() >= wanted { Ok(()) } else { Err(count().to_string()) },
        )
        .await;
    }

    /// The id of each job that was acknowledged so far, by the client's key.
    pub(crate) fn acknowledged(&self) -> BTreeMap<String, String> {
        self.journal.lock().expect("not poisoned").acknowledged.clone()
    }

    /// Forgets how long clients had to wait so far.
    pub(crate) fn forget_waits(&self) {
        self.journal.lock().expect("not poisoned").longest = Duration::ZERO;
    }

    /// How long a client had to wait at most.
    pub(crate) fn longest(&self) -> Duration {
        self.journal.lock().expect("not poisoned").longest
    }

    /// Stops the clients and compares what they were told with what each controller has.
    pub(crate) async fn check(self, members: &[&Member]) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().await.expect("it ends in order");
        }
        let journal = std::mem::take(&mut *self.journal.lock().expect("not poisoned"));
        for member in members {
            // One connection for all: they are many.
            let client = reqwest::Client::builder().no_proxy().timeout(ANSWER_MAX).build().expect("a client");
            for (key, id) in &journal.acknowledged {
                let job = eventually_async("an acknowledged job is there", async || {
                    let found = get_by(&client, member, &format!("/api/jobs/{id}")).await;
                    found.map_err(|error| format!("{id} of {key} at {}: {error}\n{}", member.name, member.text()))
                });
                assert_eq!(job.await["id"], json!(id));
            }
        }
        journal.acknowledged.len()
    }
}

async fn submit(
    agent: &'static str,
    client: usize,
    controllers: Arc<Mutex<Vec<SocketAddr>>>,
    journal: Arc<Mutex<Journal>>,
    stop: Arc<AtomicBool>,
) {
    let (http, clock) = (self::client(), Env::system().clock);
    let mut turn = client;
    for number in 0.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        let (key, begun) = (format!("{client}-{number}"), clock.monotonic());
        let id = loop {
            let controller = {
                let known = controllers.lock().expect("not poisoned");
                known[turn % known.len()]
            };
            let request = http.post(format!("http://{controller}/api/jobs")).header("Idempotency-Key", &key);
            match request.json(&json!({"agent": agent, "input": {}})).send().await {
                Ok(answer) if answer.status().is_success() => {
                    if let Ok(job) = answer.json::<Value>().await {
                        break job["id"].as_str().expect("an id").to_owned();
                    }
                }
                Ok(answer) if answer.status().is_client_error() => panic!("{:?}", answer.text().await),
                Ok(_) | Err(_) => {}
            }
            turn += 1;
            clock.sleep(PAUSE).await;
        };
        let mut journal = journal.lock().expect("not poisoned");
        journal.longest = journal.longest.max(clock.monotonic().saturating_sub(begun));
        journal.acknowledged.insert(key, id);
    }
}
