//! The service: data that all functions share, and the tasks that follow the log.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use atlas_env::{Env, Task};
use atlas_history::History;
use atlas_raft::{Answers, Handle, Leadership, Room};
use atlas_state::State;
use atlas_telemetry::Metrics;
use atlas_types::{Digest, EventSeq, Outcome, Payload, PayloadBody, Request, RequestId};
use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::access::Authentication;
use crate::artifacts::{ArtifactError, Artifacts, digest_of};
use crate::attachments::Bearers;
use crate::audit::{Audit, record_unanswered};
use crate::contracts::Contracts;
use crate::events::EventLog;
use crate::fill::Wanted;
use crate::logins::{Issuers, Renewals};
use crate::model_limits::ModelLimits;
use crate::orchestrators::ChainOrchestrators;
use crate::orchestrators::Externals;
use crate::peers::Peers;
use crate::policy::Policies;
use crate::questions::QuestionSignal;
use crate::seal::Keys;
use crate::series::{AGENTS_MAX, Series};
use crate::sign_in::IssuerKeys;
use crate::stats::{self, Stats};
use crate::streams::Streams;
use crate::traces::Evals;
use crate::waiters::Waiters;
use crate::{
    Error, catch_up, collect, conversations, fill, follow, health, inbound, model_health, model_probe, needs,
    orchestrators, runs, scrub, triggers,
};

/// Explanations of jobs that are made at one time.
const EXPLANATIONS_MAX: usize = 2;

/// Limits of the doors. Each is an option of the controller.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The most jobs in one list.
    pub list_max: usize,
    /// The largest package that may be registered.
    pub package_bytes_max: u64,
    /// The number of recent events in memory for readers that are nearly up to date.
    pub events_recent_max: usize,
    /// How long after its last observation a model is asked again whether it can be reached; none for never.
    pub models_probed_every: Option<Duration>,
    /// How long after its last turn a conversation is kept that is not of a connection; none for ever.
    pub conversations_kept: Option<Duration>,
    /// How long a job that continues a conversation waits for the turns before it, before it is refused.
    pub turn_wait_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            list_max: 1_000,
            package_bytes_max: 10 << 20,
            events_recent_max: 8_192,
            models_probed_every: Some(Duration::from_secs(300)),
            conversations_kept: Some(Duration::from_secs(30 * 24 * 3_600)),
            turn_wait_max: Duration::from_secs(20),
        }
    }
}

/// The parts from which a service is made.
pub struct Parts {
    /// The log and the state.
    pub handle: Handle,
    /// The archive.
    pub history: Arc<dyn History>,
    /// Packages and large payloads.
    pub artifacts: Artifacts,
    /// The stores of the other members.
    pub peers: Arc<dyn Peers>,
    /// Instruments.
    pub metrics: Metrics,
    /// Bounds.
    pub limits: Limits,
    /// The keys of secrets; none if this controller has none.
    pub keys: Option<Keys>,
    /// How callers prove who they are; none while everybody may do everything.
    pub authentication: Option<Authentication>,
    /// The records of who did what.
    pub audit: Audit,
    /// The way to issuers of access tokens.
    pub issuers: Arc<dyn Issuers>,
    /// The way to orchestrators outside of the cluster.
    pub externals: Arc<dyn Externals>,
    /// The machine.
    pub env: Env,
}

/// A hash that distinguishes bodies.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = digest_of(bytes).0;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// The required freshness of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consistency {
    /// The answer reflects every write that was acknowledged before the request.
    #[default]
    Linearizable,
    /// The state as this controller has applied it.
    Stale,
}

/// The functions behind every door. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) handle: Handle,
    pub(crate) history: Arc<dyn History>,
    pub(crate) artifacts: Artifacts,
    pub(crate) peers: Arc<dyn Peers>,
    pub(crate) wanted: Wanted,
    pub(crate) metrics: Metrics,
    pub(crate) limits: Limits,
    pub(crate) env: Env,
    pub(crate) contracts: Contracts,
    pub(crate) waiters: Waiters,
    pub(crate) questions: QuestionSignal,
    pub(crate) events: EventLog,
    pub(crate) streams: Streams,
    pub(crate) stats: Stats,
    /// The agents with series of their own.
    pub(crate) agent_series: Mutex<Series<1>>,
    pub(crate) evals: Evals,
    pub(crate) policies: Policies,
    /// One permit for each explanation of a job that is made at one time.
    pub(crate) explanations: Semaphore,
    /// How far the history was when it did not catch up in time.
    pub(crate) stalled_history: Mutex<Option<EventSeq>>,
    pub(crate) bearers: Bearers,
    pub(crate) needs: needs::Needs,
    pub(crate) model_limits: ModelLimits,
    pub(crate) keys: Option<Keys>,
    pub(crate) authentication: Option<Authentication>,
    pub(crate) issuer_keys: IssuerKeys,
    pub(crate) chain_orchestrators: ChainOrchestrators,
    pub(crate) audit: Audit,
    pub(crate) issuers: Arc<dyn Issuers>,
    pub(crate) externals: Arc<dyn Externals>,
    pub(crate) renewals: Renewals,
    /// The conversations that are being continued here.
    pub(crate) conversations: conversations::Places,
    /// Calls of webhooks that reached this controller.
    pub(crate) deliveries: triggers::Deliveries,
}

/// The tasks of a service. Dropping this value ends them.
pub struct Followers(Vec<Task<()>>);

impl Drop for Followers {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

impl Service {
    /// Starts the tasks that follow the log, which serve waiters and readers of events and feed the history, and the
    /// tasks that synchronise the history and artifacts with the other members.
    pub fn start(parts: Parts) -> (Self, Followers) {
        let Parts {
            handle,
            history,
            artifacts,
            peers,
            metrics,
            limits,
            keys,
            authentication,
            audit,
            issuers,
            externals,
            env,
        } = parts;
        let events = EventLog::new(handle.applied().event_seq(), limits.events_recent_max);
        let (contracts, waiters) = (Contracts::default(), Waiters::default());
        let shared = Arc::new(Shared {
            handle,
            history,
            artifacts,
            peers,
            wanted: Wanted::default(),
            metrics,
            limits,
            env: env.clone(),
            contracts,
            waiters,
            questions: QuestionSignal::default(),
            events,
            streams: Streams::default(),
            stats: Stats::default(),
            agent_series: Mutex::new(Series::new(AGENTS_MAX)),
            evals: Evals::default(),
            policies: Policies::default(),
            explanations: Semaphore::new(EXPLANATIONS_MAX),
            stalled_history: Mutex::default(),
            bearers: Bearers::default(),
            needs: needs::Needs::default(),
            model_limits: ModelLimits::default(),
            keys,
            authentication,
            issuer_keys: IssuerKeys::default(),
            chain_orchestrators: ChainOrchestrators::default(),
            audit,
            issuers,
            externals,
            renewals: Renewals::default(),
            conversations: conversations::Places::default(),
            deliveries: triggers::Deliveries::default(),
        });
        let tasks = vec![
            env.spawn_vital("follow-events", follow::events(shared.clone())),
            env.spawn_restarting("keep-statistics", again(&shared, stats::keep)),
            env.spawn_restarting("watch-health", again(&shared, health::watch)),
            env.spawn_vital("follow-history", follow::history(shared.clone())),
            env.spawn_vital("acknowledge-history", follow::acknowledge(shared.clone())),
            env.spawn_restarting("watch-models", again(&shared, model_health::follow)),
            env.spawn_restarting("probe-models", again(&shared, model_probe::probe)),
            env.spawn_restarting("watch-servers", again(&shared, needs::watch)),
            env.spawn_restarting("forget-credentials", again(&shared, inbound::sweep)),
            env.spawn_restarting("expire-conversations", again(&shared, conversations::expire)),
            env.spawn_restarting("catch-up", again(&shared, catch_up::catch_up)),
            env.spawn_restarting("fill-artifacts", again(&shared, fill::fill)),
            env.spawn_restarting("collect-artifacts", again(&shared, collect::collect)),
            env.spawn_restarting("scrub-artifacts", again(&shared, scrub::scrub)),
            env.spawn_restarting("drive-runs", again(&shared, runs::drive)),
            env.spawn_restarting("carry-jobs", again(&shared, runs::carry)),
            env.spawn_restarting("fire-triggers", again(&shared, triggers::fire)),
            env.spawn_restarting("route", again(&shared, orchestrators::run)),
            env.spawn_restarting("audit-approvals", again(&shared, record_unanswered)),
        ];
        (Self { shared }, Followers(tasks))
    }

    /// The log and the state.
    pub fn handle(&self) -> &Handle {
        &self.shared.handle
    }

    /// Packages and large payloads.
    pub fn artifacts(&self) -> &Artifacts {
        &self.shared.artifacts
    }

    /// The log lines of running attempts.
    pub fn streams(&self) -> &Streams {
        &self.shared.streams
    }

    /// Instruments.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// The state with the required freshness.
    pub async fn state(&self, consistency: Consistency) -> Result<State, Error> {
        match consistency {
            Consistency::Linearizable => self.shared.read().await,
            Consistency::Stale => Ok(self.shared.handle.applied()),
        }
    }

    /// Proposes one command and waits until its outcome is final.
    pub(crate) async fn propose(&self, request: Request) -> Result<Outcome, Error> {
        let outcomes = self.shared.propose(vec![request]).await?;
        // One request has one outcome. A leader that returns none is treated as if its answer was lost.
        outcomes.into_iter().next().ok_or(Error::OutcomeUnknown)?.map_err(Error::from)
    }

    /// Makes a payload from JSON bytes: inline if small, otherwise stored as an artifact first.
    pub async fn payload(&self, bytes: Bytes) -> Result<Payload, Error> {
        self.shared.payload(bytes).await.map_err(|error| Error::storing("the payload", error))
    }

    /// Bytes as an artifact, however few they are.
    pub(crate) async fn artifact_of(&self, bytes: Bytes) -> Result<Payload, Error> {
        let size_bytes = bytes.len() as u64;
        self.shared.check_room().map_err(|error| Error::storing("the payload", error))?;
        let stored = self.shared.artifacts.store(bytes).await;
        let digest = stored.map_err(|error| Error::storing("the payload", error))?;
        self.shared.metrics.artifact_bytes.inc_by(size_bytes);
        Ok(Payload { key_id: 0, body: PayloadBody::Artifact { digest, size_bytes } })
    }

    /// The bytes of a payload.
    pub(crate) async fn bytes(&self, payload: &Payload) -> Result<Bytes, Error> {
        match &payload.body {
            PayloadBody::Inline(bytes) => Ok(Bytes::copy_from_slice(bytes)),
            PayloadBody::Artifact { digest, .. } => self.artifact(*digest).await,
        }
    }

    /// The bytes of an artifact.
    pub async fn artifact(&self, digest: Digest) -> Result<Bytes, Error> {
        self.shared.artifacts.read(digest).await.map_err(|error| {
            tracing::error!(error = &error as &dyn std::error::Error, "could not read an artifact");
            Error::Artifact(error)
        })
    }
}

/// The time limit for confirmation by a majority, after which the caller gets an error.
const MAJORITY_MAX: Duration = Duration::from_secs(10);

impl Shared {
    /// The state with everything that was acknowledged before the call.
    pub(crate) async fn read(&self) -> Result<State, Error> {
        let read = tokio::time::timeout(MAJORITY_MAX, self.handle.read()).await;
        Ok(read.map_err(|_| Error::NoLeader)??)
    }

    /// The state for preparing a proposal. At the leader its own state is enough, because `apply` compares the proposal
    /// with it. Elsewhere the state includes everything acknowledged so far.
    pub(crate) async fn current(&self) -> Result<State, Error> {
        if matches!(*self.handle.leadership().borrow(), Leadership::Leader { .. }) {
            return Ok(self.handle.applied());
        }
        self.read().await
    }

    /// Proposes requests. Each without a request id gets one, so that it can be repeated after a change of leadership.
    pub(crate) async fn propose(&self, mut requests: Vec<Request>) -> Result<Answers, Error> {
        if !self.handle.is_alone() {
            for request in requests.iter_mut().filter(|request| request.origin.request_id.is_none()) {
                request.origin.request_id = Some(RequestId::generated(self.env.entropy.u128()));
            }
        }
        let recording = self.audit.begin(&requests)?;
        let propose = async {
            let proposed = tokio::time::timeout(MAJORITY_MAX, self.handle.propose(requests)).await;
            Ok(proposed.map_err(|_| Error::OutcomeUnknown)??)
        };
        // Boxed, because the future of each operation contains this one.
        Box::pin(recording.with(propose)).await
    }

    /// Refuses to store data of clients when the disk is nearly full.
    pub(crate) fn check_room(&self) -> Result<(), ArtifactError> {
        if self.handle.disk().borrow().room == Room::Ample {
            return Ok(());
        }
        Err(ArtifactError::Directory { doing: "write to", source: std::io::ErrorKind::StorageFull.into() })
    }

    pub(crate) async fn payload(&self, bytes: Bytes) -> Result<Payload, ArtifactError> {
        if bytes.len() <= atlas_types::INLINE_BYTES_MAX {
            return Ok(Payload::inline(&bytes));
        }
        let size_bytes = bytes.len() as u64;
        self.check_room()?;
        let digest = self.artifacts.store(bytes).await?;
        self.metrics.artifact_bytes.inc_by(size_bytes);
        Ok(Payload { key_id: 0, body: PayloadBody::Artifact { digest, size_bytes } })
    }
}

/// Returns a function that starts a task on the shared data each time it is called.
fn again<F>(shared: &Arc<Shared>, task: fn(Arc<Shared>) -> F) -> impl Fn() -> F + use<F> {
    let shared = shared.clone();
    move || task(shared.clone())
}
