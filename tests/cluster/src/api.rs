//! The HTTP API as these tests use it; any error fails the test.

use serde_json::{Value, json};

use crate::LONG;

pub(crate) struct Api {
    server: String,
    client: reqwest::Client,
}

impl Api {
    /// The API at an address, with or without `http://`.
    pub(crate) fn new(server: &str) -> Self {
        // Without pooling, no connection to a killed controller is reused.
        let client = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().expect("a client");
        Self { server: format!("http://{}", server.trim_start_matches("http://")), client }
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let answer = self.client.get(format!("{}{path}", self.server)).send().await.expect("an answer");
        answer.error_for_status().expect("a success").json().await.expect("JSON")
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        let answer = self.client.post(format!("{}{path}", self.server)).json(&body).send().await.expect("an answer");
        answer.error_for_status().expect("a success").json().await.expect("JSON")
    }

    /// Like [`Self::post`], with a body whose text counts.
    pub(crate) async fn post_text(&self, path: &str, body: String) -> Value {
        let answer = self.client.post(format!("{}{path}", self.server)).body(body).send().await.expect("an answer");
        answer.json().await.expect("JSON")
    }

    /// Status, error code and body of an answer, also of a refusal.
    pub(crate) async fn try_post(&self, path: &str, body: Value) -> (u16, String, Value) {
        let answer = self.client.post(format!("{}{path}", self.server)).json(&body).send().await.expect("an answer");
        let code =
            answer.headers().get("atlas-error-code").and_then(|code| code.to_str().ok()).unwrap_or("").to_owned();
        (answer.status().as_u16(), code, answer.json().await.unwrap_or_default())
    }

    /// Like [`Self::try_post`], with `PUT`.
    pub(crate) async fn try_put(&self, path: &str, body: Value) -> (u16, String, Value) {
        let answer = self.client.put(format!("{}{path}", self.server)).json(&body).send().await.expect("an answer");
        let code =
            answer.headers().get("atlas-error-code").and_then(|code| code.to_str().ok()).unwrap_or("").to_owned();
        (answer.status().as_u16(), code, answer.json().await.unwrap_or_default())
    }

    /// Registers a package.
    pub(crate) async fn register(&self, package: Vec<u8>) {
        let answer = self.client.post(format!("{}/api/agents?replace=true", self.server)).body(package).send().await;
        answer.expect("an answer").error_for_status().expect("a success");
    }

    /// Deploys the package of a skill.
    pub(crate) async fn deploy_skill(&self, package: Vec<u8>) {
        let answer = self.client.post(format!("{}/api/skills?replace=true", self.server)).body(package).send().await;
        answer.expect("an answer").error_for_status().expect("a success");
    }

    pub(crate) async fn submit(&self, agent: &str, input: Value) -> String {
        let answer = self.post("/api/jobs", json!({"agent": agent, "input": input})).await;
        answer["id"].as_str().expect("an id").to_owned()
    }

    /// The job with all members.
    pub(crate) async fn job(&self, id: &str) -> Value {
        self.get(&format!("/api/jobs/{id}?view=full")).await
    }

    /// Waits for the end of the job; returns the job.
    pub(crate) async fn wait(&self, id: &str) -> Value {
        let job = self.get(&format!("/api/jobs/{id}/wait?timeout={}&view=full", LONG.as_secs())).await;
        assert!(["completed", "failed", "cancelled"].contains(&job["status"].as_str().expect("text")), "{job}");
        job
    }
}
