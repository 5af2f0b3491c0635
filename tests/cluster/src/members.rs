//! Controllers of one cluster as processes on loopback, and clients that keep submitting to any controller that
//! answers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpListener};
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

/// Pause before a client tries the next controller.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest wait of a client for one answer.
const ANSWER_MAX: Duration = Duration::from_secs(8);

/// A signing secret that all controllers of these tests have in their environment, as `ATLAS_WEBHOOK_TEST`.
pub(crate) const WEBHOOK_SECRET: &str = "signed by the tests";

/// A controller that keeps its ports and its data across restarts.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) name: &'static str,
    data: PathBuf,
    /// The program, and arguments for every start.
    program: PathBuf,
    always: Vec<String>,
    process: Option<Process>,
    pub(crate) http: SocketAddr,
    pub(crate) workers: SocketAddr,
    pub(crate) peers: SocketAddr,
}

impl Member {
    /// Creates a controller without starting it, with its data under `folder`.
    pub(crate) fn prepared(folder: &Path, name: &'static str) -> Self {
        let free = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            name,
            data: folder.join(name),
            program: program("atlas-controller"),
            always: Vec::new(),
            process: None,
            http: free,
            workers: free,
            peers: free,
        }
    }

    /// Starts the first controller of a cluster on free ports, with its data under `folder`.
    pub(crate) fn first(folder: &Path, name: &'static str) -> Self {
        Self::first_with(folder, name, &[])
    }

    /// Like [`Self::first`], with additional arguments for this start only.
    pub(crate) fn first_with(folder: &Path, name: &'static str, more: &[&str]) -> Self {
        let mut member = Self::prepared(folder, name);
        member.restart_with(more);
        member
    }

    /// Starts a controller that joins the cluster of `member` with a token.
    pub(crate) fn joining(folder: &Path, name: &'static str, member: &Self, token: &str) -> Self {
        Self::joining_with(folder, name, member, token, &[])
    }

    /// Like [`Self::joining`], with additional arguments for this start only.
    pub(crate) fn joining_with(folder: &Path, name: &'static str, member: &Self, token: &str, more: &[&str]) -> Self {
        let join = ["--join", &member.peers.to_string(), "--token", token];
        Self::first_with(folder, name, &[&join, more].concat())
    }

    /// Starts a controller without waiting for it. Its ports are chosen in advance, because its output is not read yet.
    /// The arguments are for this start only.
    pub(crate) fn begins(folder: &Path, name: &'static str, more: &[&str]) -> Self {
        let mut member = Self::prepared(folder, name);
        let free = [member.http, member.workers, member.peers].map(|any| TcpListener::bind(any).expect("a free port"));
        let [http, workers, peers] = free.each_ref().map(|port| port.local_addr().expect("bound"));
        (member.http, member.workers, member.peers) = (http, workers, peers);
        drop(free);
        member.begin(more);
        member
    }

    /// Starts a controller that no member accepts, and waits until it reports that.
    pub(crate) fn asking_in_vain(folder: &Path, name: &'static str, more: &[&str]) -> Self {
        let mut member = Self::begins(folder, name, more);
        let waits = "no member has accepted this controller yet";
        member.process_mut().says("nobody takes it in", |text| text.contains(waits).then_some(()));
        member
    }

    /// Sets the program for the next starts, with arguments for every start.
    pub(crate) fn runs_program(&mut self, program: PathBuf, always: &[&str]) {
        self.program = program;
        self.always = always.iter().map(|&word| word.to_owned()).collect();
    }

    fn begin(&mut self, more: &[&str]) {
        assert!(self.process.is_none(), "{} runs", self.name);
        let mut command = Command::new(&self.program);
        command.arg("--data-dir").arg(&self.data).args(["--log", "info", "--name", self.name]);
        command.args(["--queue-max-size", "1000000", "--http-listen", &self.http.to_string()]);
        command.args(["--worker-listen", &self.workers.to_string(), "--peer-listen", &self.peers.to_string()]);
        command.env("ATLAS_WEBHOOK_TEST", WEBHOOK_SECRET);
        self.process = Some(Process::start(command.args(&self.always).args(more)));
    }

    fn process_mut(&mut self) -> &mut Process {
        self.process.as_mut().expect("it runs")
    }

    /// Waits until the controller serves, and stores its ports.
    pub(crate) fn has_started(&mut self) {
        let [http, workers, peers] = self.process_mut().says("the controller has started", |text| {
            let line = text.lines().find(|line| line.contains("controller started"))?;
            let field = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse().ok());
            Some([field("http=")?, field("workers=")?, field("peers=")?])
        });
        (self.http, self.workers, self.peers) = (http, workers, peers);
    }

    /// Whether the controller was started and neither killed nor stopped.
    pub(crate) fn runs(&self) -> bool {
        self.process.is_some()
    }

    /// Whether the output on stderr contains `text`.
    pub(crate) fn said(&self, text: &str) -> bool {
        self.text().contains(text)
    }

    /// The output on stderr so far.
    pub(crate) fn text(&self) -> String {
        self.process.as_ref().map(Process::text).unwrap_or_default()
    }

    /// The process id of the running controller.
    pub(crate) fn pid(&self) -> nix::unistd::Pid {
        let process = self.process.as_ref().expect("it runs");
        nix::unistd::Pid::from_raw(i32::try_from(process.pid()).expect("a process id"))
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        self.process.take().expect("it runs").kill();
    }

    /// Sends SIGTERM and waits until the process ends; returns the exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        self.process.take().expect("it runs").end(Signal::SIGTERM)
    }

    /// Whether the process has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.process_mut().ended().is_some()
    }

    /// Waits until the process ends by itself with an error; returns its stderr.
    pub(crate) fn ends_by_itself(&mut self) -> String {
        let process = self.process_mut();
        let code = crate::eventually("it ends by itself", crate::LONG, || process.ended());
        crate::eventually("its last words are read", crate::LONG, || process.is_read().then_some(()));
        let text = process.text();
        self.process = None;
        assert_eq!(code, Some(1), "{text}");
        text
    }

    /// Deletes the data of a controller that does not run.
    pub(crate) fn wipe(&self) {
        assert!(self.process.is_none(), "{} runs", self.name);
        std::fs::remove_dir_all(&self.data).expect("removed");
    }

    /// Starts the controller again with its ports and data.
    pub(crate) fn restart(&mut self) {
        self.restart_with(&[]);
    }

    /// Like [`Self::restart`], with additional arguments for this start only.
    pub(crate) fn restart_with(&mut self, more: &[&str]) {
        self.begin(more);
        self.has_started();
    }

    /// Starts the controller again on data with which it cannot run, and waits until it ends; returns its stderr.
    pub(crate) fn restart_to_its_end(&mut self) -> String {
        self.restart_to_its_end_with(&[])
    }

    /// Like [`Self::restart_to_its_end`], with additional arguments.
    pub(crate) fn restart_to_its_end_with(&mut self, more: &[&str]) -> String {
        self.begin(more);
        self.ends_by_itself()
    }
}

/// Starts a controller that the cluster refuses; returns its stderr.
pub(crate) fn refused(folder: &Path, name: &'static str, member: &Member, token: &str) -> String {
    Member::begins(folder, name, &["--join", &member.peers.to_string(), "--token", token]).ends_by_itself()
}

fn client() -> reqwest::Client {
    // Without pooling, no connection to a killed controller is reused.
    let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).timeout(ANSWER_MAX);
    client.build().expect("a client")
}

/// Sends a GET request to one controller; an error says why there is no answer.
pub(crate) async fn get(member: &Member, path: &str) -> Result<Value, String> {
    let answer =
        client().get(format!("http://{}{path}", member.http)).send().await.map_err(|error| error.to_string())?;
    read(answer).await
}

/// Sends a request to one controller; an error says why it failed.
pub(crate) async fn ask(member: &Member, method: reqwest::Method, path: &str, body: Value) -> Result<Value, String> {
    let request = client().request(method, format!("http://{}{path}", member.http)).json(&body);
    read(request.send().await.map_err(|error| error.to_string())?).await
}

async fn read(answer: reqwest::Response) -> Result<Value, String> {
    let status = answer.status();
    let code = answer.headers().get("atlas-error-code").and_then(|code| code.to_str().ok()).unwrap_or("").to_owned();
    let text = answer.text().await.map_err(|error| error.to_string())?;
    if !status.is_success() {
        return Err(format!("{status} {code}: {text}"));
    }
    serde_json::from_str(&text).map_err(|error| format!("{error}: {text}"))
}

/// Makes this member the leader. The transfer is repeated until it changes nothing, because an election can follow the
/// first one.
pub(crate) async fn made_leader(member: &Member) {
    eventually_async("a transfer to the leader is answered, and no other member is elected", async || {
        let transfer = async || {
            let answer =
                ask(member, reqwest::Method::POST, "/api/cluster/transfer-leader", json!({ "to": member.name }));
            answer.await.map(|answer| (answer["leader"] == member.name, answer["term"].clone()))
        };
        let (first, second, third) = (transfer().await?, transfer().await?, transfer().await?);
        if first.0 && first == second && second == third {
            Ok(())
        } else {
            Err(format!("{first:?}, {second:?}, then {third:?}"))
        }
    })
    .await;
}

/// Creates a token for a controller to join.
pub(crate) async fn token(member: &Member) -> String {
    let made = eventually_async("a token", async || {
        ask(member, reqwest::Method::POST, "/api/cluster/join-tokens", json!({"kind": "controller"})).await
    });
    made.await["token"].as_str().expect("text").to_owned()
}

/// Waits until `member` reports these voters with a leader among them; returns the leader's name.
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

/// Waits until all members report exactly these voters, sorted by name; returns their numbers by name.
pub(crate) async fn agreed(members: &[&Member], wanted: &[&str]) -> BTreeMap<String, u64> {
    eventually_async("all see the same group", async || {
        let mut agreed = None;
        for member in members {
            let status = get(member, "/api/cluster").await?;
            let group =
                group(&status).filter(|group| group.keys().eq(wanted)).ok_or(format!("{}: {status}", member.name))?;
            if agreed.get_or_insert_with(|| group.clone()) != &group {
                return Err(format!("{} sees {group:?}, the first {agreed:?}", member.name));
            }
        }
        agreed.ok_or_else(|| "nobody was asked".to_owned())
    })
    .await
}

/// The numbers of the voters by name; none during a membership change or if there is a learner.
fn group(status: &Value) -> Option<BTreeMap<String, u64>> {
    let members = status["members"].as_array()?;
    let voter = |member: &Value| {
        let votes = member["role"] != "learner";
        votes.then(|| Some((member["name"].as_str()?.to_owned(), member["id"].as_u64()?)))?
    };
    let group: BTreeMap<_, _> = members.iter().map(voter).collect::<Option<_>>()?;
    (group.len() == members.len() && status["changing"] == false && !status["leader"].is_null()).then_some(group)
}

/// The acknowledged jobs of all clients, and their longest wait.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// The id of each acknowledged job, by the client's key.
    pub(crate) acknowledged: BTreeMap<String, String>,
    pub(crate) longest: Duration,
}

/// Clients that submit jobs, each with its own key, to any controller that answers.
pub(crate) struct Load {
    controllers: Arc<Mutex<Vec<SocketAddr>>>,
    journal: Arc<Mutex<Journal>>,
    stop: Arc<AtomicBool>,
    clients: Vec<Task<()>>,
}

impl Load {
    /// Starts `clients` clients that submit jobs of `agent`.
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

    /// Adds a controller to the clients' list.
    pub(crate) fn knows(&self, member: &Member) {
        self.controllers.lock().expect("not poisoned").push(member.http);
    }

    /// Waits until `more` further jobs are acknowledged.
    pub(crate) async fn goes_on(&self, more: usize) {
        let count = || self.journal.lock().expect("not poisoned").acknowledged.len();
        let wanted = count() + more;
        eventually_async(
            "clients are served",
            async || if count() >= wanted { Ok(()) } else { Err(count().to_string()) },
        )
        .await;
    }

    /// The id of each job acknowledged so far, by the client's key.
    pub(crate) fn acknowledged(&self) -> BTreeMap<String, String> {
        self.journal.lock().expect("not poisoned").acknowledged.clone()
    }

    /// Resets the longest wait.
    pub(crate) fn forget_waits(&self) {
        self.journal.lock().expect("not poisoned").longest = Duration::ZERO;
    }

    /// The longest wait of a client.
    pub(crate) fn longest(&self) -> Duration {
        self.journal.lock().expect("not poisoned").longest
    }

    /// Stops the clients, and checks that every controller has all acknowledged jobs; returns their number.
    pub(crate) async fn check(self, members: &[&Member]) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().await.expect("it ends in order");
        }
        let journal = std::mem::take(&mut *self.journal.lock().expect("not poisoned"));
        for member in members {
            let found = jobs(member, "").await;
            for (key, id) in &journal.acknowledged {
                assert!(found.contains(id), "{id} of {key} is not at {}:\n{}", member.name, member.text());
            }
        }
        journal.acknowledged.len()
    }
}

/// The ids of all jobs that a controller lists for a query.
pub(crate) async fn jobs(member: &Member, query: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    loop {
        let path = format!("/api/jobs?limit=1000&offset={}{query}", found.len());
        let page = eventually_async("a list of jobs", async || get(member, &path).await).await;
        let page = page.as_array().expect("an array");
        found.extend(page.iter().map(|job| job["id"].as_str().expect("an id").to_owned()));
        if page.len() < 1000 {
            return found;
        }
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

/// Submits a job; its id.
pub(crate) async fn submit_to(member: &Member, agent: &str, input: Value) -> String {
    let job =
        ask(member, reqwest::Method::POST, "/api/jobs", json!({"agent": agent, "input": input})).await.expect("a job");
    job["id"].as_str().expect("an id").to_owned()
}

/// Waits until a job has this status, and this reason if it is pending.
pub(crate) async fn becomes(member: &Member, id: &str, status: &str, reason: &str) {
    eventually_async(&format!("{id} is {status} {reason}"), async || {
        let job = get(member, &format!("/api/jobs/{id}?view=full")).await?;
        let is = job["status"] == status && (status != "pending" || job["reason"] == reason);
        if is { Ok(()) } else { Err(job.to_string()) }
    })
    .await;
}
