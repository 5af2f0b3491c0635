//! A controller that knows people, a worker, and a policy that asks about the jobs of one agent.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use atlas_package::pack;
use reqwest::Method;
use serde_json::{Value, json};

use crate::pair::{Controller, worker};
use crate::patience::eventually_async;
use crate::process::Process;
use crate::{Agent, write_agent};

pub(super) struct Rig {
    pub(super) folder: tempfile::TempDir,
    pub(super) controller: Controller,
    pub(super) root: String,
    client: reqwest::Client,
    _worker: Process,
}

impl Rig {
    /// The agent `mail` notes its inputs. Its jobs wait for an approval, that of whoever submitted it only if `own`.
    pub(super) async fn start(own: bool) -> Self {
        Self::start_with(own, &[]).await
    }

    /// Like [`Self::start`], with more options of the controller.
    pub(super) async fn start_with(own: bool, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, root) = (folder.path().join("root.token"), format!("atl_root_{}", "2e".repeat(32)));
        fs::write(&file, &root).expect("written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("private");
        let file = file.display().to_string();
        let options = [&["--auth", "tokens", "--root-token-file", &file], options].concat();
        let controller = Controller::start_with(folder.path(), &options);
        let worker = worker(folder.path(), &controller);
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let rig = Self { folder, controller, root, client, _worker: worker };
        let script = format!("cat >> {0}; echo >> {0}; echo '{{\"sent\": true}}'", rig.runs_file().display());
        rig.register(&Agent { name: "mail", version: "1.0.0", contract: "", script: &script }).await;
        let rule = json!({
            "name": "mails", "on": ["submit"], "when": "agent.name == 'mail'", "effect": "ask", "ask": { "self": own }
        });
        rig.put("policy/base", json!({ "rules": [rule] })).await;
        rig
    }

    fn runs_file(&self) -> PathBuf {
        self.folder.path().join("runs")
    }

    /// The inputs of the jobs that ran.
    pub(super) fn runs(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.runs_file()).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["input"].clone()).collect()
    }

    pub(super) async fn register(&self, agent: &Agent<'_>) {
        write_agent(self.folder.path(), agent);
        self.deploy(agent.name).await;
    }

    /// Registers the agent in a folder of the rig.
    pub(super) async fn deploy(&self, name: &str) {
        let package = pack(&self.folder.path().join(name)).expect("a package").bytes;
        let sent = self.request(Method::POST, "/api/agents", &self.root).body(package).send().await;
        assert!(sent.expect("an answer").status().is_success());
    }

    /// The token of a new principal with these rights.
    pub(super) async fn person(&self, name: &str, rights: &[&str]) -> String {
        self.put(&format!("role/{name}"), json!({ "rights": rights })).await;
        self.put(&format!("binding/{name}"), json!({ "grants": [{ "role": name }] })).await;
        let made = self.ask(Method::POST, "/api/auth/tokens", &self.root, json!({ "name": name })).await;
        made.1["token"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned()
    }

    pub(super) async fn put(&self, object: &str, spec: Value) {
        let path = format!("/api/objects/{object}");
        let (status, answer) = self.ask(Method::PUT, &path, &self.root, json!({ "spec": spec })).await;
        assert_eq!(status, 200, "{object}: {answer}");
    }

    fn request(&self, method: Method, path: &str, token: &str) -> reqwest::RequestBuilder {
        let url = format!("http://{}{path}", self.controller.http);
        self.client.request(method, url).bearer_auth(token)
    }

    /// Makes a request; its status and answer.
    pub(super) async fn ask(&self, method: Method, path: &str, token: &str, body: Value) -> (u16, Value) {
        let answer = self.request(method, path, token).json(&body).send().await.expect("an answer");
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    pub(super) async fn get(&self, path: &str) -> Value {
        self.ask(Method::GET, path, &self.root, Value::Null).await.1
    }

    pub(super) async fn job(&self, id: &str) -> Value {
        self.get(&format!("/api/jobs/{id}?view=full")).await
    }

    /// Waits for a status and a reason of a job; the job.
    pub(super) async fn becomes(&self, id: &str, status: &str, reason: &str) -> Value {
        eventually_async(&format!("{id} is {status} because of {reason:?}"), async || {
            let job = self.job(id).await;
            let is = job["status"] == status && job["reason"] == reason;
            if is { Ok(job) } else { Err(job.to_string()) }
        })
        .await
    }

    /// Answers the only question of a job.
    pub(super) async fn answer(&self, token: &str, job: &str, text: &str) -> (u16, Value) {
        let job = self.job(job).await;
        let question = job["needs_approval"][0]["question"].as_str().unwrap_or_else(|| panic!("{job}"));
        let path = format!("/api/questions/{question}/answer");
        self.ask(Method::POST, &path, token, json!({ "text": text })).await
    }
}
