//! The audit of a controller that is killed: every answered decision is in it, and a changed byte is found.

mod all;
mod machines;
mod unanswered;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use atlas_env::Env;
use atlas_package::pack;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::members::Member;
use crate::patience::eventually_async;
use crate::process::Process;
use crate::program::program;
use crate::{Agent, write_agent};

/// This agent never runs here, because there is no worker.
const WAITING: Agent<'static> = Agent { name: "waiting", version: "1.0.0", contract: "", script: "cat" };
/// In an input and in the value of a secret.
const PRIVATE: &str = "kept-from-records-7f3a";
/// Clients that submit until the controller is killed.
const CLIENTS: usize = 4;
/// Waits for a gate, and spawns itself then.
const NEST: &str = r#"
import asyncio
from pathlib import Path
from atlas.runtime.base import AgentBase

class Nest(AgentBase):
    async def execute(self, input_data):
        while not Path(input_data["gate"]).exists():
            await asyncio.sleep(0.02)
        return (await self.context.spawn("nest", input_data)).output_data
"#;
/// Confirmed jobs before the kill.
const SOME: usize = 40;

struct Rig {
    folder: tempfile::TempDir,
    controller: Member,
    root: String,
    /// Arguments of every controller.
    arguments: Vec<String>,
    client: reqwest::Client,
}

impl Rig {
    async fn start(agent: &Agent<'_>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("root.token");
        let made = Command::new(program("atlasctl")).args(["auth", "root-token"]).arg(&file).output().expect("it runs");
        assert!(made.status.success(), "{made:?}");
        let root = fs::read_to_string(&file).expect("a token").trim().to_owned();
        let mut controller = Member::prepared(folder.path(), "c1");
        let file = file.to_str().expect("text").to_owned();
        // 32 bytes, which seal the values of secrets.
        let key = folder.path().join("secrets.key");
        fs::write(&key, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n").expect("written");
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("private");
        let key = key.to_str().expect("text").to_owned();
        let tokens = ["--auth", "tokens", "--root-token-file", &file, "--secrets-key", &key];
        controller.runs_program(program("atlas-controller"), &tokens);
        controller.restart();
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().expect("a client");
        let arguments = tokens.map(str::to_owned).to_vec();
        let rig = Self { folder, controller, root, arguments, client };
        write_agent(rig.folder.path(), agent);
        rig.register(&rig.folder.path().join(agent.name), Some("reg-1")).await;
        rig
    }

    async fn register(&self, agent: &Path, key: Option<&str>) {
        let package = pack(agent).expect("a package").bytes;
        let sent = self.request(Method::POST, "/api/agents", Some(&self.root), key).body(package).send().await;
        assert!(sent.expect("an answer").status().is_success());
    }

    /// A token of a new principal with a role.
    async fn principal(&self, name: &str, role: &str) -> String {
        let made = self.must(Method::POST, "/api/auth/tokens", &json!({"name": name}), None).await;
        let grants = json!({"spec": {"grants": [{"role": role}]}});
        self.must(Method::PUT, &format!("/api/objects/binding/{name}"), &grants, None).await;
        made["token"].as_str().expect("a token").to_owned()
    }

    /// Another controller of the cluster.
    async fn joined(&self, name: &'static str) -> Member {
        let made = self.must(Method::POST, "/api/cluster/join-tokens", &json!({"kind": "controller"}), None).await;
        let mut member = Member::prepared(self.folder.path(), name);
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        member.runs_program(program("atlas-controller"), &arguments);
        let (peers, token) = (self.controller.peers.to_string(), made["token"].as_str().expect("text"));
        member.restart_with(&["--join", &peers, "--token", token]);
        member
    }

    /// Waits until three controllers vote and the first one leads.
    async fn three_vote(&self) {
        eventually_async("three vote", async || {
            let status = self.must(Method::GET, "/api/cluster", &Value::Null, None).await;
            let members = status["members"].as_array().ok_or("no members")?;
            let voters = members.iter().filter(|member| member["role"] != "learner").count();
            if voters == 3 && status["leader"] == "c1" { Ok(()) } else { Err(status.to_string()) }
        })
        .await;
    }

    /// Submits jobs to one controller, each with its own key, until `stop`; adds the keys of those that are confirmed.
    async fn keeps_submitting(&self, to: (&str, SocketAddr), confirmed: &Mutex<Vec<String>>, stop: &AtomicBool) {
        let (name, address) = to;
        for number in 0.. {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let key = format!("{name}-{number}");
            let request = self.client.post(format!("http://{address}/api/jobs")).bearer_auth(&self.root);
            let request = request.header("Idempotency-Key", &key).json(&json!({"agent": "waiting", "input": {}}));
            match request.send().await {
                Ok(answer) if answer.status().is_success() => confirmed.lock().expect("not poisoned").push(key),
                // It was killed, or there is no leader now.
                _ => Env::system().clock.sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// A request with a token and an idempotency key.
    fn request(&self, method: Method, path: &str, token: Option<&str>, key: Option<&str>) -> reqwest::RequestBuilder {
        let mut request = self.client.request(method, format!("http://{}{path}", self.controller.http));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(key) = key {
            request = request.header("Idempotency-Key", key);
        }
        request
    }

    /// A request of the principal `root` that must be answered.
    async fn must(&self, method: Method, path: &str, body: &Value, key: Option<&str>) -> Value {
        let answer = self.request(method, path, Some(&self.root), key).json(body).send().await.expect("an answer");
        let (status, text) = (answer.status(), answer.text().await.expect("a body"));
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).expect("JSON")
    }

    async fn denied(&self, method: Method, path: &str, token: Option<&str>, key: Option<&str>) -> StatusCode {
        let body = json!({"agent": "waiting", "input": {"text": PRIVATE}});
        self.request(method, path, token, key).json(&body).send().await.expect("an answer").status()
    }

    /// `atlasctl audit …` with the root token: exit code and both outputs.
    fn audit(&self, arguments: &[&str]) -> (i32, String) {
        self.audit_of(&self.controller, arguments)
    }

    fn audit_of(&self, member: &Member, arguments: &[&str]) -> (i32, String) {
        let mut command = Command::new(program("atlasctl"));
        command.env("NO_COLOR", "1").env("HOME", self.folder.path()).current_dir(self.folder.path());
        command.env("ATLAS_TOKEN", &self.root).args(["--server", &format!("http://{}", member.http)]);
        let output = command.arg("audit").args(arguments).output().expect("it runs");
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        (output.status.code().unwrap_or(-1), text)
    }

    /// All records in short: decision, principal, interface, operation, object, key and error code.
    fn records(&self) -> Vec<String> {
        self.records_of(&self.controller)
    }

    fn records_of(&self, member: &Member) -> Vec<String> {
        let (code, text) = self.audit_of(member, &["query", "--member", member.name, "-o", "jsonl"]);
        assert_eq!(code, 0, "{text}");
        let told = |line: &str| {
            let record: Value = serde_json::from_str(line).expect("JSON");
            let part = |name: &str| record[name].as_str().unwrap_or("-").to_owned();
            ["decision", "principal", "door", "verb", "object", "request_id", "code"].map(part).join(" ")
        };
        text.lines().map(told).collect()
    }

    /// The files of the audit.
    fn files(&self) -> Vec<PathBuf> {
        let listed = fs::read_dir(self.folder.path().join("c1/audit")).expect("a folder");
        let mut files: Vec<_> = listed.map(|entry| entry.expect("a file").path()).collect();
        files.sort();
        files
    }
}

/// Changes one byte of the record with a text.
fn change(path: &Path, of: &str, to: &str) {
    let text = fs::read_to_string(path).expect("a text");
    assert!(text.contains(of) && of.len() == to.len(), "{of}");
    fs::write(path, text.replacen(of, to, 1)).expect("written");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_survive_a_kill_and_a_changed_byte_is_found() {
    let mut rig = Rig::start(&WAITING).await;
    let ann = rig.principal("ann", "viewer").await;
    rig.must(Method::PUT, "/api/secrets/db", &json!({"value": PRIVATE}), None).await;
    let input = json!({"agent": "waiting", "input": {"text": PRIVATE}});
    let job = rig.must(Method::POST, "/api/jobs", &input, Some("order-1")).await;
    let job = job["id"].as_str().or(job["job_id"].as_str()).expect("an id").to_owned();
    assert_eq!(rig.denied(Method::POST, "/api/jobs", Some(&ann), Some("order-2")).await, 403);
    let cancel = format!("/api/jobs/{job}/cancel");
    assert_eq!(rig.denied(Method::POST, &cancel, Some(&ann), None).await, 403);
    assert_eq!(rig.denied(Method::GET, "/api/jobs", None, None).await, 401);
    let guessed = format!("{}x", &ann[..ann.len() - 1]);
    assert_eq!(rig.denied(Method::GET, "/api/jobs", Some(&guessed), None).await, 401);
    let rule = json!({"name": "never", "on": ["submit"], "when": "true", "effect": "deny"});
    rig.must(Method::PUT, "/api/objects/policy/night", &json!({"spec": {"rules": [rule]}}), None).await;
    assert_eq!(rig.denied(Method::POST, "/api/jobs", Some(&rig.root), Some("order-4")).await, 403);
    assert_eq!(rig.denied(Method::POST, "/mcp", None, None).await, 401);
    // Nothing waits here: the last answer is recorded when it is there.
    rig.controller.kill();
    rig.controller.restart();

    let expected = [
        "allow root http registerAgent agent/waiting@1.0.0 reg-1 -".to_owned(),
        "allow root http putObject token/ann - -".to_owned(),
        "allow root http putObject binding/ann - -".to_owned(),
        "allow root http putObject secret/db - -".to_owned(),
        format!("allow root http submitJob job/{job} agent/waiting order-1 -"),
        "deny ann http submitJob /api/jobs order-2 E2107".to_owned(),
        format!("deny ann http cancelJob {cancel} - E2107"),
        "deny anonymous http listJobs /api/jobs - E2106".to_owned(),
        "deny anonymous http listJobs /api/jobs - E2106".to_owned(),
        "allow root http putObject policy/night - -".to_owned(),
        "deny root http submitJob agent/waiting order-4 E2111".to_owned(),
        "deny anonymous mcp mcp /mcp - E2106".to_owned(),
    ];
    assert_eq!(rig.records(), expected);
    let (code, text) = rig.audit(&["verify"]);
    assert!(code == 0 && text.contains("verified 12 records of controller 1 (c1), 1 to 12\n"), "{code} {text}");
    for file in rig.files() {
        let text = fs::read_to_string(&file).expect("a text");
        for secret in [PRIVATE, &rig.root, &ann, &guessed, &ann[8..]] {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
    }

    // An export verifies without the controller, and names the record of a changed byte.
    assert_eq!(rig.audit(&["export", "all.jsonl"]).0, 0);
    rig.controller.kill();
    assert_eq!(rig.audit(&["verify", "all.jsonl"]).0, 0);
    change(&rig.folder.path().join("all.jsonl"), "order-2", "order-3");
    let (code, text) = rig.audit(&["verify", "all.jsonl"]);
    assert!(code == 4 && text.contains("E0129") && text.contains("at line 6"), "{code} {text}");
    // The same in the directory of the controller, which goes on with its records.
    change(&rig.files()[0], "\"ann\",", "\"bob\",");
    rig.controller.restart();
    let (code, text) = rig.audit(&["verify"]);
    assert!(code == 4 && text.contains("E0129") && text.contains("at line 6"), "{code} {text}");
    rig.must(Method::DELETE, "/api/objects/secret/db", &Value::Null, None).await;
    assert_eq!(rig.records().last().map(String::as_str), Some("allow root http deleteObject secret/db - -"));
    assert_eq!(rig.controller.end(), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_confirmed_job_is_recorded_before_a_kill() {
    let mut rig = Rig::start(&WAITING).await;
    let (confirm, mut confirmed) = tokio::sync::mpsc::unbounded_channel();
    let submit = async |rig: &Rig, client: usize| {
        for number in 0.. {
            let key = format!("{client}-{number}");
            let request = rig.request(Method::POST, "/api/jobs", Some(&rig.root), Some(&key));
            let Ok(answer) = request.json(&json!({"agent": "waiting", "input": {}})).send().await else { return };
            // On a slow disk, an answer may be that the outcome is unknown.
            if answer.status().is_success() && confirm.send(key).is_err() {
                return;
            }
        }
    };
    let mut keys = Vec::new();
    let pid = rig.controller.pid();
    let clients = futures::future::join_all((0..CLIENTS).map(|client| submit(&rig, client)));
    let kill = async {
        while keys.len() < SOME {
            keys.push(confirmed.recv().await.expect("the clients run"));
        }
        // The clients are in the middle of their requests.
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("killed");
    };
    tokio::time::timeout(crate::LONG, async { tokio::join!(clients, kill) }).await.expect("in time");
    rig.controller.kill();
    rig.controller.restart();
    while let Ok(key) = confirmed.try_recv() {
        keys.push(key);
    }
    let records = rig.records();
    for key in &keys {
        let end = format!(" agent/waiting {key} -");
        assert!(records.iter().any(|record| record.ends_with(&end)), "{key} of {keys:?} is not in {records:#?}");
    }
    assert_eq!(rig.audit(&["verify"]).0, 0);
}

/// The leader of three is killed while all three have clients. Each of them has what it confirmed, and its chain has no gap.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_leader_leaves_no_gap() {
    let mut rig = Rig::start(&WAITING).await;
    let others = [rig.joined("c2").await, rig.joined("c3").await];
    rig.three_vote().await;

    let confirmed: [Mutex<Vec<String>>; 3] = Default::default();
    let stop = AtomicBool::new(false);
    let addresses = [("c1", rig.controller.http), ("c2", others[0].http), ("c3", others[1].http)];
    let count = |at: usize| confirmed[at].lock().expect("not poisoned").len();
    let goes_on = async |at: &[usize]| {
        let before: Vec<usize> = at.iter().map(|&at| count(at)).collect();
        eventually_async("clients are served", async || {
            let enough = at.iter().zip(&before).all(|(&at, before)| count(at) >= before + SOME / 4);
            if enough { Ok(()) } else { Err(format!("{:?}", [count(0), count(1), count(2)])) }
        })
        .await;
    };
    let pid = rig.controller.pid();
    let clients = addresses.iter().zip(&confirmed).map(|(&to, confirmed)| rig.keeps_submitting(to, confirmed, &stop));
    let clients = futures::future::join_all(clients);
    let kill = async {
        goes_on(&[0, 1, 2]).await;
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGKILL).expect("killed");
        goes_on(&[1, 2]).await;
        stop.store(true, Ordering::Relaxed);
    };
    tokio::join!(clients, kill);
    rig.controller.kill();
    rig.controller.restart();

    for (member, confirmed) in [&rig.controller, &others[0], &others[1]].into_iter().zip(&confirmed) {
        let records = rig.records_of(member);
        for key in confirmed.lock().expect("not poisoned").iter() {
            let end = format!(" agent/waiting {key} -");
            assert!(records.iter().any(|record| record.ends_with(&end)), "{key} is not in {records:#?}");
        }
        let (code, text) = rig.audit_of(member, &["verify", "--member", member.name]);
        assert!(code == 0 && text.contains(&format!("verified {} records", records.len())), "{code} {text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_may_no_longer_spawn_is_recorded() {
    let mut rig = Rig::start(&WAITING).await;
    let agent = rig.folder.path().join("nest");
    fs::create_dir(&agent).expect("a folder");
    let contract = "agent: { name: nest, version: 1.0.0, requires: { spawn_agents: true } }";
    fs::write(agent.join("agent.yaml"), contract).expect("written");
    fs::write(agent.join("agent.py"), NEST).expect("written");
    rig.register(&agent, None).await;
    let bob = rig.principal("bob", "operator").await;
    let gate = rig.folder.path().join("gate");
    let body = json!({"agent": "nest", "input": {"gate": gate}});
    let sent = rig.request(Method::POST, "/api/jobs", Some(&bob), None).json(&body).send().await.expect("an answer");
    assert!(sent.status().is_success());
    let job: Value = sent.json().await.expect("JSON");
    let job = job["id"].as_str().or(job["job_id"].as_str()).expect("an id").to_owned();
    let mut worker = Command::new(program("atlas-worker"));
    worker.args(["--node", "w1", "--controller", &rig.controller.workers.to_string()]);
    let _worker = Process::start(worker.arg("--data-dir").arg(rig.folder.path().join("worker")));
    rig.must(Method::DELETE, "/api/objects/binding/bob", &Value::Null, None).await;
    fs::write(&gate, "").expect("written");
    let path = format!("/api/jobs/{job}/wait?timeout=60&view=full");
    let ended = rig.must(Method::GET, &path, &Value::Null, None).await;
    let error = ended["error"].as_str().unwrap_or_default();
    assert_eq!(error, "bob lacks the right jobs.submit in the namespace default", "{ended}");
    rig.controller.kill();
    rig.controller.restart();
    let (code, text) = rig.audit(&["query", "--principal", "bob", "--decision", "deny", "-o", "jsonl"]);
    let record: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {code} {text}"));
    let part = |name: &str| record[name].as_str().unwrap_or_default().to_owned();
    let found = ["on_behalf_of", "door", "verb", "object", "code"].map(part);
    assert_eq!(found, [job.as_str(), "worker", "submitJob", "agent/nest", "E2107"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receipt_verifies_offline_and_names_a_changed_entry() {
    let echo = Agent { name: "echo", version: "1.0.0", contract: "", script: "cat" };
    let mut rig = Rig::start(&echo).await;
    let second = rig.joined("c2").await;
    let rule = json!({"name": "small", "on": ["submit"], "when": "priority > 100", "effect": "deny"});
    rig.must(Method::PUT, "/api/objects/policy/night", &json!({"spec": {"rules": [rule]}}), None).await;
    let input = json!({"agent": "echo", "input": {"text": PRIVATE}});
    let job = rig.must(Method::POST, "/api/jobs", &input, Some("order-1")).await;
    let job = job["id"].as_str().or(job["job_id"].as_str()).expect("an id").to_owned();
    let (code, text) = rig.audit(&["receipt", &job]);
    assert!(code != 0 && text.contains("the job is pending"), "{code} {text}");
    let mut worker = Command::new(program("atlas-worker"));
    worker.args(["--node", "w1", "--controller", &rig.controller.workers.to_string()]);
    let worker = Process::start(worker.arg("--data-dir").arg(rig.folder.path().join("worker")));
    rig.must(Method::GET, &format!("/api/jobs/{job}/wait?timeout=60"), &Value::Null, None).await;

    let (code, text) = rig.audit(&["receipt", &job, "--out", "receipt.json"]);
    assert_eq!(code, 0, "{text}");
    let file = rig.folder.path().join("receipt.json");
    let receipt = fs::read_to_string(&file).expect("a text");
    assert!(!receipt.contains(PRIVATE), "{receipt}");
    let entries: Vec<Value> = receipt.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kinds: Vec<&str> = entries.iter().filter_map(|entry| entry["kind"].as_str()).collect();
    assert_eq!(kinds, ["job", "submission", "agent", "policy", "attempt", "end"], "{receipt}");
    let parts = [&entries[1]["principal"], &entries[3]["name"], &entries[4]["node"], &entries[5]["status"]];
    assert_eq!(parts.map(|part| part.as_str().unwrap_or_default()), ["root", "night", "w1", "completed"]);
    // What `sha256sum` says of the input as it was sent.
    assert_eq!(entries[1]["input"], "sha256:49d533ef4cd475542e5fa3b1980a0008febe9ff655c59191b8868e201d8ea91f");

    // The other controller makes the same one, and the audit of this one has its head.
    let (code, other) = rig.audit_of(&second, &["receipt", &job]);
    assert!(code == 0 && other == receipt, "{other}{receipt}");
    let head = entries[5]["hash"].as_str().expect("a hash");
    let (_, told) = rig.audit(&["query", "--verb", "getReceipt"]);
    assert!(told.contains(&format!("job/{job} receipt {head}")), "{told}");

    drop(worker);
    rig.controller.kill();
    drop(second);
    let (code, text) = rig.audit(&["verify", "receipt.json"]);
    assert!(code == 0 && text.contains("verified 6 entries") && text.contains(head), "{code} {text}");
    for (number, line) in (1..).zip(receipt.lines()) {
        let changed = line.replacen("\"kind\":\"", "\"kind\":\"x", 1);
        fs::write(&file, receipt.replacen(line, &changed, 1)).expect("written");
        let (code, text) = rig.audit(&["verify", "receipt.json"]);
        assert!(code == 4 && text.contains(&format!("damaged at entry {number}:")), "{code} {text}");
    }
}
