//! Whether what an agent needs answers: MCP servers, and models of which nothing newer is known. Workers ask, by jobs, because only they have
//! the secrets and the network of servers; no call waits for that but `get_health`.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use atlas_desk::on_behalf;
use atlas_jobs::passes_on;
use atlas_mcp_spec::{ServerSpec, Transport};
use atlas_raft::Leadership;
use atlas_state::State;
use atlas_types::{FailureKind, Job, JobStatus, ObjectKey, PayloadBody};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::kept::Verdict;
use crate::probes::{self, OwnAgent, Standing};
use crate::service::Shared;
use crate::{Error, Service};

/// How long an answer counts.
const KEPT: Duration = Duration::from_secs(5);
/// Longest wait for the job that asks: the server has 3 s, and the job may have to wait for a place.
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Most servers that are asked in one round. The next round begins with those after them.
const SERVERS_MAX: usize = 1_000;
/// The priority of a question that somebody waits for.
const ASKED: i64 = 0;
/// The priority of a question that nobody waits for: below all jobs of people.
pub(crate) const UNASKED: i64 = -1_000;

impl Service {
    /// Whether an MCP server answers a handshake. Programs are not started for that: of them nothing is known here.
    pub(crate) async fn server_answers(&self, state: &State, key: &ObjectKey) -> Verdict {
        self.server_answers_by(state, key, ASKED).await
    }

    async fn server_answers_by(&self, state: &State, key: &ObjectKey, priority: i64) -> Verdict {
        let Some(object) = state.object(key) else { return Verdict::Down("there is no such MCP server".to_owned()) };
        match ServerSpec::read(&object.spec) {
            Ok(spec) if spec.transport == Transport::Stdio => Verdict::Up,
            Ok(_) => {
                let input = json!({ "server": key.name.as_str(), "probe": true });
                self.verdict_on(key, probes::check(), &input, priority).await
            }
            Err(error) => Verdict::Down(error.to_string()),
        }
    }

    /// Whether a model can be reached.
    pub(crate) async fn model_answers(&self, key: &ObjectKey) -> Verdict {
        self.verdict_on(key, probes::probe(), &json!({ "model": key.name.as_str() }), ASKED).await
    }

    /// The answer about an object, at most some seconds old.
    async fn verdict_on(
        &self,
        key: &ObjectKey,
        own: Result<&'static OwnAgent, Error>,
        input: &Value,
        priority: i64,
    ) -> Verdict {
        let own = match own {
            Ok(own) => own,
            Err(error) => return Verdict::Unknown(error.to_string()),
        };
        let answer = self.shared.needs.answer(key);
        let mut known = answer.lock().await;
        let clock = &self.shared.env.clock;
        if let Some((_, verdict)) = known.as_ref().filter(|(at, _)| clock.monotonic().saturating_sub(*at) < KEPT) {
            return verdict.clone();
        }
        let verdict = match self.shared.needs.asking.acquire().await {
            Ok(_room) => self
                .ask_about(key, own, input, priority)
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
        own: &'static OwnAgent,
        input: &Value,
        priority: i64,
    ) -> Result<Verdict, Error> {
        let caller = on_behalf::cluster_in(key.namespace.clone());
        let state = self.shared.current().await?;
        match own.standing(&state, &caller.namespace) {
            Standing::Ready => {}
            Standing::Missing => drop(self.register_made(&caller, own.package.clone()).await?),
            Standing::Foreign => {
                self.shared.needs.is_foreign(&caller.namespace, own);
                return Ok(Verdict::Unknown(own.foreign()));
            }
        }
        let shown = self.submit_and_wait(&caller, own.submission(input, priority), WAIT_MAX).await?;
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
    let told = job.failure.as_ref().map(|failure| failure.error.to_string());
    told.unwrap_or_else(|| format!("the job that asks is {}", job.status.as_str()))
}

/// What a probe of a model says. Nothing, if it has not asked; the same holds for a server.
fn of_model(job: &Job, output: Option<Value>) -> Verdict {
    let output = output.unwrap_or_default();
    match output["health"].as_str() {
        _ if job.status != JobStatus::Completed => Verdict::Unknown(error_of(job)),
        Some("failed") => Verdict::Down(output["error"].as_str().unwrap_or_default().to_owned()),
        _ => Verdict::Up,
    }
}

/// Whether a server answered, by the word for what a call of it came to. One that refuses what a credential may do answers, and one that
/// wants the credential of a caller answers also by refusing who has none.
pub(crate) fn answered(word: &str, forwards: bool) -> bool {
    matches!(word, "ok" | "error" | "refused" | "forbidden") || (forwards && word == "unauthorized")
}

/// The server that a job of the agent for it has asked, and whether that answered; none if the job has failed without asking, for example
/// because no node has a place for it.
pub(crate) fn server_asked(state: &State, job: &Job) -> Option<(ObjectKey, bool)> {
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Told {
        #[serde(rename = "_error_kind")]
        kind: String,
    }
    probes::check().ok().filter(|own| own.runs(job))?;
    let PayloadBody::Inline(input) = &job.input.body else { return None };
    let asks = atlas_vault::Asks { namespace: &job.namespace, input: Some(input) };
    let key = asks.server("{input.server}")?;
    let answered = match (job.status, job.failure.as_ref().map(|failure| failure.kind)) {
        (JobStatus::Completed, _) | (JobStatus::Failed, Some(FailureKind::Agent)) => true,
        (JobStatus::Failed, Some(FailureKind::Dependency)) => {
            // What its worker could not be given is missing here, too, and no server was asked then.
            let Told { kind } =
                serde_json::from_slice(&job.metadata).ok().filter(|told: &Told| !told.kind.is_empty())?;
            answered(&kind, state.object(&key).is_some_and(|object| passes_on(object)))
        }
        _ => return None,
    };
    Some((key, answered))
}

/// Asks the servers of agents from time to time while this member leads, so that alerts need no client that asks.
pub(crate) async fn watch(shared: Arc<Shared>) {
    let Some(every) = shared.limits.models_probed_every else { return pending().await };
    let service = Service { shared: Arc::clone(&shared) };
    let mut last = None;
    loop {
        shared.env.clock.sleep(every).await;
        if !matches!(*shared.handle.leadership().borrow(), Leadership::Leader { .. }) {
            continue;
        }
        let state = shared.handle.applied();
        let round = after(&named_by_agents(&state), last.as_ref(), SERVERS_MAX);
        last = round.last().cloned();
        for key in round {
            service.server_answers_by(&state, &key, UNASKED).await;
        }
    }
}

/// The servers that agents name and that exist.
fn named_by_agents(state: &State) -> BTreeSet<ObjectKey> {
    let mut servers = BTreeSet::new();
    for agent in state.agents_everywhere().filter(|agent| !agent.retired) {
        let asks = atlas_vault::Asks { namespace: &agent.namespace, input: None };
        let keys = agent.spec.servers.iter().filter_map(|name| asks.server(name));
        servers.extend(keys.filter(|key| state.object(key).is_some()));
    }
    servers
}

/// The next ones after the last one, and then from the first one on, each once.
fn after<T: Ord + Clone>(all: &BTreeSet<T>, last: Option<&T>, max: usize) -> Vec<T> {
    let is_next = |one: &&T| last.is_none_or(|last| *one > last);
    let next = all.iter().filter(is_next);
    let again = all.iter().filter(|one| !is_next(one));
    next.chain(again).take(max).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_asked_in_turn() {
        let all = BTreeSet::from([1, 2, 3, 4, 5]);
        assert_eq!(after(&all, None, 2), [1, 2]);
        assert_eq!(after(&all, Some(&2), 2), [3, 4]);
        assert_eq!(after(&all, Some(&4), 2), [5, 1]);
        // The last one may be gone.
        assert_eq!(after(&all, Some(&9), 9), [1, 2, 3, 4, 5]);
        assert!(after(&BTreeSet::<u8>::new(), Some(&1), 9).is_empty());
    }

    #[test]
    fn a_server_that_refuses_answers() {
        for (word, alone, forwarding) in [
            ("ok", true, true),
            ("error", true, true),
            ("refused", true, true),
            ("forbidden", true, true),
            ("unauthorized", false, true),
            ("unreachable", false, false),
            ("timeout", false, false),
            ("configuration", false, false),
        ] {
            assert_eq!((answered(word, false), answered(word, true)), (alone, forwarding), "{word}");
        }
    }
}
