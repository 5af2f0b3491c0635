//! Whether what an agent needs answers: MCP servers, and models of which nothing newer is known. Workers ask, by jobs, because only they have
//! the secrets and the network of servers; no call waits for that but `get_health`.

use std::collections::{BTreeSet, HashMap};
use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use atlas_mcp_spec::{CHECK_AGENT, CHECK_CONTRACT, ServerSpec, Transport};
use atlas_model::{PROBE_AGENT, PROBE_CONTRACT};
use atlas_package::PackFile;
use atlas_raft::Leadership;
use atlas_state::State;
use atlas_types::{AgentName, Door, FailureKind, Job, JobStatus, ObjectKey, PayloadBody};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{Mutex as AsyncMutex, Semaphore};

use crate::inbound::passes_on;
use crate::service::Shared;
use crate::{Caller, Error, Service, Submission};

/// How long an answer counts.
const KEPT: Duration = Duration::from_secs(5);
/// Longest wait for the job that asks: the server has 3 s, and the job may have to wait for a place.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Most jobs that ask at one time.
const ASKING_MAX: usize = 16;
/// Most answers that are kept.
const ANSWERS_MAX: usize = 1_024;
/// Most agents whose needs are looked at in one round.
const AGENTS_MAX: usize = 1_000;

/// What is known of something that an agent needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    Up,
    /// It does not answer, or refuses; why.
    Down(String),
    /// Nobody could ask; why.
    Unknown(String),
}

type Answer = Arc<AsyncMutex<Option<(Duration, Verdict)>>>;

/// The answers of a while ago.
pub(crate) struct Needs {
    answers: Mutex<HashMap<ObjectKey, Answer>>,
    asking: Semaphore,
}

impl Default for Needs {
    fn default() -> Self {
        Self { answers: Mutex::default(), asking: Semaphore::new(ASKING_MAX) }
    }
}

impl Needs {
    /// Where the answer about an object is. Who locks it asks, and the others wait for that.
    fn answer(&self, key: &ObjectKey) -> Answer {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= ANSWERS_MAX && !answers.contains_key(key) {
            answers.retain(|_, answer| Arc::strong_count(answer) > 1);
        }
        answers.entry(key.clone()).or_default().clone()
    }
}

impl Service {
    /// Whether an MCP server answers a handshake. Programs are not started for that: of them nothing is known here.
    pub(crate) async fn server_answers(&self, state: &State, key: &ObjectKey) -> Verdict {
        let Some(object) = state.object(key) else { return Verdict::Down("there is no such MCP server".to_owned()) };
        match ServerSpec::read(&object.spec) {
            Ok(spec) if spec.transport == Transport::Stdio => Verdict::Up,
            Ok(_) => {
                self.verdict_on(
                    key,
                    (CHECK_AGENT, CHECK_CONTRACT),
                    json!({ "server": key.name.as_str(), "probe": true }),
                )
                .await
            }
            Err(error) => Verdict::Down(error.to_string()),
        }
    }

    /// Whether a model can be reached.
    pub(crate) async fn model_answers(&self, key: &ObjectKey) -> Verdict {
        self.verdict_on(key, (PROBE_AGENT, PROBE_CONTRACT), json!({ "model": key.name.as_str() })).await
    }

    /// The answer about an object, at most some seconds old.
    async fn verdict_on(&self, key: &ObjectKey, (agent, contract): (&str, &str), input: Value) -> Verdict {
        let answer = self.shared.needs.answer(key);
        let mut known = answer.lock().await;
        let clock = &self.shared.env.clock;
        if let Some((_, verdict)) = known.as_ref().filter(|(at, _)| clock.monotonic().saturating_sub(*at) < KEPT) {
            return verdict.clone();
        }
        let verdict = match self.shared.needs.asking.acquire().await {
            Ok(_room) => self
                .ask_about(key, (agent, contract), &input)
                .await
                .unwrap_or_else(|error| Verdict::Unknown(error.to_string())),
            Err(_) => return Verdict::Unknown("the controller stops".to_owned()),
        };
        *known = Some((clock.monotonic(), verdict.clone()));
        verdict
    }

    async fn ask_about(
        &self,
        key: &ObjectKey,
        (agent, contract): (&str, &str),
        input: &Value,
    ) -> Result<Verdict, Error> {
        let caller = Caller { namespace: key.namespace.clone(), ..Caller::cluster(Door::Duty) };
        let name = AgentName::new(agent)?;
        let state = self.shared.handle.applied();
        if state.agent_latest(&caller.namespace, &name).is_none() {
            let file = PackFile { path: "agent.yaml".to_owned(), bytes: contract.into(), executable: false };
            let package =
                atlas_package::pack_files(vec![file]).map_err(|error| Error::internal("pack an agent", &error))?;
            self.register_made(&caller, package.bytes.into()).await?;
        }
        let submission = Submission { refuse: true, ..Submission::new(name, Bytes::from(input.to_string())) };
        let shown = self.submit_and_wait(&caller, submission, WAIT_MAX).await?;
        let job = shown.job();
        if !job.status.is_terminal() {
            self.cancel(&caller, job.id, true).await?;
            return Ok(Verdict::Unknown(format!("no worker has asked it within {} s", WAIT_MAX.as_secs())));
        }
        Ok(match server_asked(&state, job) {
            Some((_, true)) => Verdict::Up,
            Some((_, false)) => Verdict::Down(error_of(job)),
            None => of_model(job, shown.output()),
        })
    }
}

fn error_of(job: &Job) -> String {
    job.failure.as_ref().map(|failure| failure.error.to_string()).unwrap_or_default()
}

/// What a probe of a model says.
fn of_model(job: &Job, output: Option<Value>) -> Verdict {
    let output = output.unwrap_or_default();
    match output["health"].as_str() {
        _ if job.status != JobStatus::Completed => Verdict::Down(error_of(job)),
        Some("failed") => Verdict::Down(output["error"].as_str().unwrap_or_default().to_owned()),
        _ => Verdict::Up,
    }
}

/// The server that a job of the agent for it has asked, and whether that answered. One that wants the credential of a caller answers also
/// by refusing who has none.
pub(crate) fn server_asked(state: &State, job: &Job) -> Option<(ObjectKey, bool)> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Told {
        #[serde(rename = "_error_kind")]
        kind: String,
    }
    if job.agent.as_str() != CHECK_AGENT {
        return None;
    }
    let PayloadBody::Inline(input) = &job.input.body else { return None };
    let asks = crate::secrets::Asks { namespace: &job.namespace, input: Some(input) };
    let key = asks.server("{input.server}")?;
    let answered = match (job.status, job.failure.as_ref().map(|failure| failure.kind)) {
        (JobStatus::Completed, _) | (JobStatus::Failed, Some(FailureKind::Agent)) => true,
        (JobStatus::Failed, Some(FailureKind::Dependency)) => {
            let Told { kind } = serde_json::from_slice(&job.metadata).unwrap_or_default();
            kind == "unauthorized" && state.object(&key).is_some_and(|object| passes_on(object))
        }
        _ => return None,
    };
    Some((key, answered))
}

/// Asks the servers of agents from time to time while this member leads, so that alerts need no client that asks.
pub(crate) async fn watch(shared: Arc<Shared>) {
    let Some(every) = shared.limits.models_probed_every else { return pending().await };
    let service = Service { shared: Arc::clone(&shared) };
    loop {
        shared.env.clock.sleep(every).await;
        if !matches!(*shared.handle.leadership().borrow(), Leadership::Leader { .. }) {
            continue;
        }
        let state = shared.handle.applied();
        let mut servers: BTreeSet<ObjectKey> = BTreeSet::new();
        let named = state.agents_everywhere().filter(|agent| !agent.retired && !agent.spec.servers.is_empty());
        for agent in named.take(AGENTS_MAX) {
            let asks = crate::secrets::Asks { namespace: &agent.namespace, input: None };
            let keys = agent.spec.servers.iter().filter_map(|name| asks.server(name));
            servers.extend(keys.filter(|key| state.object(key).is_some()));
        }
        for key in servers {
            service.server_answers(&state, &key).await;
        }
    }
}
