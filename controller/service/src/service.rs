//! The service: the desk and what is kept by subject, which all functions share.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use atlas_artifacts::{Artifacts, Peers};
use atlas_env::Env;
use atlas_history::History;
use atlas_raft::Handle;
use atlas_state::State;
use atlas_telemetry::Metrics;
use atlas_types::{Digest, EventSeq, Outcome, Payload, PayloadBody, Request};
use bytes::Bytes;
use tokio::sync::Semaphore;

use crate::audit::Audit;
use crate::authentication::Authentication;
use crate::contracts::Contracts;
use crate::desk::Desk;
use crate::externals::Externals;
use crate::issuers::Issuers;
use crate::kept::{
    Bearers, ChainOrchestrators, Deliveries, Evals, EventLog, IssuerKeys, ModelLimits, Needs, Policies, QuestionSignal,
    Turns, Wanted,
};
use crate::seal::Keys;
use crate::series::{AGENTS_MAX, Series};
use crate::stats::Stats;
use crate::streams::Streams;
use crate::waiters::Waiters;
use crate::{Consistency, Error, Limits};

/// Explanations of jobs that are made at one time.
const EXPLANATIONS_MAX: usize = 2;

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

/// The functions behind every door. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    pub(crate) shared: Arc<Shared>,
}

/// The desk, with what this controller keeps in memory for each subject.
pub(crate) struct Shared {
    desk: Desk,
    pub(crate) wanted: Wanted,
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
    pub(crate) needs: Needs,
    pub(crate) model_limits: ModelLimits,
    pub(crate) keys: Option<Keys>,
    pub(crate) authentication: Option<Authentication>,
    pub(crate) issuer_keys: IssuerKeys,
    pub(crate) chain_orchestrators: ChainOrchestrators,
    pub(crate) issuers: Arc<dyn Issuers>,
    pub(crate) externals: Arc<dyn Externals>,
    /// The logins whose tokens are being renewed here.
    pub(crate) renewals: Turns,
    /// The conversations that are being continued here.
    pub(crate) conversations: Turns,
    /// Calls of webhooks that reached this controller.
    pub(crate) deliveries: Deliveries,
}

impl Deref for Shared {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.desk
    }
}

impl Service {
    /// A service. Its tasks are started apart: [`Followers::start`](crate::Followers::start).
    pub fn new(parts: Parts) -> Self {
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
        let shared = Shared {
            desk: Desk { handle, history, artifacts, peers, metrics, limits, env, audit },
            wanted: Wanted::default(),
            contracts: Contracts::default(),
            waiters: Waiters::default(),
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
            needs: Needs::default(),
            model_limits: ModelLimits::default(),
            keys,
            authentication,
            issuer_keys: IssuerKeys::default(),
            chain_orchestrators: ChainOrchestrators::default(),
            issuers,
            externals,
            renewals: Turns::default(),
            conversations: Turns::default(),
            deliveries: Deliveries::default(),
        };
        Self { shared: Arc::new(shared) }
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
