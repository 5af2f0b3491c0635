//! The load: jobs of all bundled agents with known results, and other requests.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use atlas_contract::fixture::Fixture;
use atlas_env::Env;
use serde_json::{Value, json};

use crate::rng::Rng;

/// Enough words for an input that is too large to be inline in a log entry.
const LARGE_WORDS: usize = 60_000;

/// Longer than any job of the load on a busy machine.
const JOB_MAX: Duration = Duration::from_secs(60);

/// Longest pause between two jobs of a client in milliseconds; it leaves CPU time to the programs, which share the
/// machine.
const PAUSE_MAX: u64 = 150;

/// A job of an agent with a known result.
struct Case {
    agent: String,
    fixture: Fixture,
}

/// The results of a client.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) jobs: u64,
    pub(super) wrong: Vec<String>,
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.jobs += other.jobs;
        self.wrong.extend(other.wrong);
    }
}

pub(super) struct Load {
    http: reqwest::Client,
    server: String,
    cases: Vec<Case>,
    env: Env,
}

impl Load {
    /// Registers the bundled agents at a controller.
    pub(super) async fn prepare(server: SocketAddr, env: Env) -> Result<Self> {
        let http = reqwest::Client::builder().no_proxy().timeout(JOB_MAX).pool_idle_timeout(Duration::from_secs(5));
        let load = Self { http: http.build()?, server: format!("http://{server}"), cases: cases()?, env };
        for package in atlas_bundled::packages() {
            let request = load.http.post(load.url("/api/agents")).body(package?.bytes);
            request.send().await?.error_for_status().context("an agent is not taken")?;
        }
        Ok(load)
    }

    /// Runs one job after another until `over` is set.
    pub(super) async fn client(&self, mut rng: Rng, over: &AtomicBool) -> Tally {
        let mut tally = Tally::default();
        while !over.load(Ordering::Relaxed) {
            let (what, done) = match rng.below(20) {
                0 => ("a large input", self.large().await),
                1 => ("a job for later, cancelled", self.cancelled().await),
                2 => ("a job that is followed", self.followed().await),
                3 => ("a request that is refused", self.refused().await),
                _ => {
                    let case = &self.cases[rng.below(self.cases.len() as u64) as usize];
                    (case.fixture.name.as_str(), self.case(case).await)
                }
            };
            match done {
                Ok(()) => tally.jobs += 1,
                Err(error) => tally.wrong.push(format!("{what}: {error:#}")),
            }
            self.env.clock.sleep(Duration::from_millis(rng.below(PAUSE_MAX))).await;
        }
        tally
    }

    async fn case(&self, case: &Case) -> Result<()> {
        let id = self.submit(json!({"agent": case.agent, "input": case.fixture.input})).await?;
        let job = self.wait(&id).await?;
        let output = &job["output_data"];
        let ended =
            if job["status"] == "completed" { Ok(output) } else { Err(job["error"].as_str().unwrap_or_default()) };
        case.fixture
            .check(ended)
            .map_err(|wrong| anyhow::anyhow!("{}: {} instead of {}", case.agent, wrong.actual, wrong.expected))
    }

    async fn large(&self) -> Result<()> {
        let text = "word ".repeat(LARGE_WORDS);
        let id = self.submit(json!({"agent": "wordcount", "input": {"text": text}})).await?;
        let job = self.wait(&id).await?;
        anyhow::ensure!(job["output_data"]["words"] == LARGE_WORDS, "ended as {job}");
        Ok(())
    }

    async fn cancelled(&self) -> Result<()> {
        // The job is delayed until the year 2100, longer than any run.
        let id = self.submit(json!({"agent": "echo", "input": {"message": "x"}, "at": 4_102_444_800_u64})).await?;
        let request = self.http.post(self.url(&format!("/api/jobs/{id}/cancel")));
        request.send().await?.error_for_status().context("the cancel is not taken")?;
        let job = self.wait(&id).await?;
        anyhow::ensure!(job["status"] == "cancelled", "ended as {job}");
        Ok(())
    }

    async fn followed(&self) -> Result<()> {
        let id = self.submit(json!({"agent": "exec-echo", "input": {"message": "x"}})).await?;
        let events = self.http.get(self.url(&format!("/api/jobs/{id}/events"))).header("accept", "text/event-stream");
        let text = events.send().await?.error_for_status()?.text().await.context("the events do not end")?;
        anyhow::ensure!(text.contains("completed"), "its events end with {text}");
        Ok(())
    }

    async fn refused(&self) -> Result<()> {
        let request = self.http.post(self.url("/api/jobs")).body("{\"agent\": [1,");
        let status = request.send().await?.status();
        anyhow::ensure!(status == 400, "answered {status}");
        Ok(())
    }

    async fn submit(&self, body: Value) -> Result<String> {
        let answer = self.http.post(self.url("/api/jobs")).json(&body).send().await?;
        let answer: Value = answer.error_for_status().context("the submission is not taken")?.json().await?;
        Ok(answer["id"].as_str().context("a submission is answered with an id")?.to_owned())
    }

    async fn wait(&self, id: &str) -> Result<Value> {
        let path = format!("/api/jobs/{id}/wait?timeout={}", JOB_MAX.as_secs());
        let job: Value = self.http.get(self.url(&path)).send().await?.error_for_status()?.json().await?;
        Ok(job)
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.server)
    }
}

/// The fixtures of the bundled agents.
fn cases() -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for agent in atlas_bundled::bundled() {
        let contract = agent.files.iter().find(|file| file.path == "agent.yaml").context("an agent has a contract")?;
        let name = atlas_contract::parse(&contract.bytes)?.name.to_string();
        for file in agent.files.iter().filter(|file| file.path.starts_with("tests/") && file.path.ends_with(".yaml")) {
            cases.push(Case { agent: name.clone(), fixture: Fixture::parse(&file.bytes)? });
        }
    }
    Ok(cases)
}
