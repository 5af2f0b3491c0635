//! Seeded clients: each sends requests to any controller, records the outcome, and repeats requests with an unknown outcome.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_env::Env;
use atlas_package::{PackFile, pack_files};
use serde_json::{Value, json};

use super::call::{Http, Request};
use super::journal::{Answer, Call, Entry, Journal, Outcome, Seen, Status};
use crate::rng::Rng;

/// An agent that records its side effects; the kinds differ in what follows a lost attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    contract: &'static str,
    /// Maximum number of starts of one job.
    pub(crate) starts_max: u64,
}

/// All agents of the workload.
pub(crate) const KINDS: [Kind; 3] = [
    Kind { name: "again", contract: "", starts_max: 3 },
    Kind { name: "once", contract: "  effects: once\n", starts_max: 1 },
    Kind { name: "single", contract: "  max_attempts: 1\n", starts_max: 1 },
];

/// The package of an agent that runs `program`, which writes to `effects`.
pub(crate) fn package(kind: &Kind, program: &Path, effects: &Path) -> Vec<u8> {
    let command = json!([program, "effect", effects]);
    let contract = format!(
        "agent:\n  name: {}\n  version: 1.0.0\n  description: Writes its side effects down.\n  provider: {{ type: exec, command: {command} }}\n{}",
        kind.name, kind.contract
    );
    let file = PackFile { path: "agent.yaml".to_owned(), bytes: contract.into_bytes(), executable: false };
    pack_files(vec![file]).expect("a package").bytes
}

/// Data that all clients share.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) env: Env,
    pub(crate) controllers: Vec<SocketAddr>,
    pub(crate) journal: Journal,
    /// The jobs that at least one client knows.
    pub(crate) jobs: Arc<Mutex<Vec<String>>>,
    pub(crate) stop: Arc<AtomicBool>,
    /// The TTL of a worker's session; a few jobs take longer than that.
    pub(crate) session_ttl: Duration,
    /// Longest pause of a client between two calls.
    pub(crate) pause_max: Duration,
}

/// One client.
pub(crate) struct Client {
    shared: Shared,
    number: usize,
    rng: Rng,
    http: Http,
    /// The submissions of this client.
    submitted: Vec<Submission>,
    /// The highest log index in the answers so far.
    index: Option<u64>,
}

/// A submission that can be repeated.
#[derive(Debug, Clone)]
struct Submission {
    key: String,
    agent: &'static str,
    body: Value,
}

/// Maximum number of repeats of a submission with an unknown outcome.
const REPEATS: usize = 5;

/// Larger than a payload that fits inline in the log.
const LARGE_BYTES: u64 = 70 << 10;

impl Client {
    pub(crate) fn new(shared: Shared, number: usize, rng: Rng) -> Self {
        Self { shared, number, rng, http: Http::new(), submitted: Vec::new(), index: None }
    }

    /// Sends requests until `stop` is set.
    pub(crate) async fn run(mut self) {
        while !self.shared.stop.load(Ordering::Relaxed) {
            match self.rng.below(100) {
                0..32 => self.submit_new().await,
                32..40 => self.submit_again().await,
                40..75 => self.read(false).await,
                75..82 => self.read(true).await,
                82..90 => self.wait().await,
                90..95 => self.cancel().await,
                _ => self.read(false).await,
            }
            let pause = self.rng.below(self.shared.pause_max.as_micros() as u64 + 1);
            self.shared.env.clock.sleep(Duration::from_micros(pause)).await;
        }
    }

    async fn submit_new(&mut self) {
        let kind = KINDS[[0, 0, 0, 1, 2][self.rng.below(5) as usize]];
        let ttl = self.shared.session_ttl.as_millis() as u64;
        let ms = match self.rng.below(100) {
            0..75 => self.rng.range(1, 120),
            75..95 => self.rng.range(120, ttl / 2),
            _ => self.rng.range(ttl, 3 * ttl),
        };
        let pad = if self.rng.chance(30) { LARGE_BYTES } else { 0 };
        let mut input = json!({"ms": ms, "pad": pad});
        if self.rng.chance(30) {
            input["filler"] = json!("y".repeat(LARGE_BYTES as usize));
        }
        let key = format!("key-{}-{}", self.number, self.submitted.len());
        let submission = Submission { key, agent: kind.name, body: json!({"agent": kind.name, "input": input}) };
        self.submitted.push(submission.clone());
        for _ in 0..=REPEATS {
            match self.submit(&submission).await {
                Outcome::Unknown(_) if !self.shared.stop.load(Ordering::Relaxed) => {}
                _ => return,
            }
        }
    }

    /// Repeats a submission with the same key, which must return the same job.
    async fn submit_again(&mut self) {
        if self.submitted.is_empty() {
            return;
        }
        let index = self.rng.below(self.submitted.len() as u64) as usize;
        let submission = self.submitted[index].clone();
        let _ = self.submit(&submission).await;
    }

    async fn submit(&mut self, submission: &Submission) -> Outcome<Answer> {
        let call = Call::Submit { key: submission.key.clone(), agent: submission.agent };
        let request = Request {
            method: "POST",
            path: "/api/jobs",
            body: Some(submission.body.clone()),
            key: Some(&submission.key),
            ..Request::default()
        };
        let outcome = self.call(call, request, |body| body["id"].as_str().map(|id| Answer::Job(id.to_owned()))).await;
        if let Outcome::Done(Answer::Job(id)) = &outcome {
            self.shared.jobs.lock().unwrap_or_else(PoisonError::into_inner).push(id.clone());
        }
        outcome
    }

    async fn read(&mut self, stale: bool) {
        let Some(job) = self.some_job() else { return };
        let path = format!("/api/jobs/{job}?view=full{}", if stale { "&consistency=stale" } else { "" });
        let request = Request { method: "GET", path: &path, index: self.index, ..Request::default() };
        let _ = self.call(Call::Read { job, stale }, request, |body| seen(body).map(Answer::Seen)).await;
    }

    async fn wait(&mut self) {
        let Some(job) = self.some_job() else { return };
        let path = format!("/api/jobs/{job}/wait?timeout=1&view=full");
        let request = Request { method: "GET", path: &path, index: self.index, ..Request::default() };
        let _ = self.call(Call::Wait { job }, request, |body| seen(body).map(Answer::Seen)).await;
    }

    async fn cancel(&mut self) {
        let Some(job) = self.some_job() else { return };
        let path = format!("/api/jobs/{job}/cancel");
        let request = Request { method: "POST", path: &path, ..Request::default() };
        let _ =
            self.call(Call::Cancel { job }, request, |body| body["cancelled"].as_bool().map(Answer::Cancelled)).await;
    }

    /// A random known job, mostly a recent one, which can still change.
    fn some_job(&mut self) -> Option<String> {
        let jobs = self.shared.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let last = jobs.len().checked_sub(1)? as u64;
        let back = if self.rng.chance(700) { self.rng.below(last.min(15) + 1) } else { self.rng.below(last + 1) };
        Some(jobs[(last - back) as usize].clone())
    }

    async fn call(
        &mut self,
        call: Call,
        request: Request<'_>,
        answer: impl FnOnce(&Value) -> Option<Answer>,
    ) -> Outcome<Answer> {
        let controller = self.rng.below(self.shared.controllers.len() as u64) as usize;
        let clock = &self.shared.env.clock;
        let begun = clock.monotonic();
        let outcome = match self.http.call(self.shared.controllers[controller], request).await {
            Outcome::Done(done) => {
                self.index = self.index.max(done.index);
                match answer(&done.body) {
                    Some(answer) => Outcome::Done(answer),
                    None => Outcome::Unknown(format!("an answer without what was asked for: {}", done.body)),
                }
            }
            Outcome::Refused(refusal) => Outcome::Refused(refusal),
            Outcome::Unknown(why) => Outcome::Unknown(why),
        };
        let entry =
            Entry { client: self.number, controller, begun, ended: clock.monotonic(), call, outcome: outcome.clone() };
        self.shared.journal.write(entry);
        outcome
    }
}

/// The state of a job from its JSON object.
pub(crate) fn seen(body: &Value) -> Option<Seen> {
    let status = Status::parse(body["status"].as_str()?)?;
    Some(Seen { status, attempt: body["attempt"].as_u64()?, digest: status.is_terminal().then(|| digest(body)) })
}

/// A hash of an object; all controllers serialize members in the same order.
pub(crate) fn digest(body: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    body.to_string().hash(&mut hasher);
    hasher.finish()
}
