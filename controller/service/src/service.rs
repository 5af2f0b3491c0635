//! The service: the desk and what is kept by subject, which all functions share.

use std::ops::Deref;
use std::sync::{Arc, Mutex};

use atlas_api::OperationId;
use atlas_artifacts::{Artifacts, Query, QueryResult};
use atlas_bases::Bases;
use atlas_conversations::Conversations;
use atlas_desk::Desk;
use atlas_events::Events;
use atlas_history::{Gap, Part};
use atlas_identity::Authenticator;
use atlas_jobs::Jobs;
use atlas_library::Library;
use atlas_lines::{JobLogs, Streams};
use atlas_platform::{ModelLimits, Stats};
use atlas_raft::Handle;
use atlas_records::Records;
use atlas_registry::Registry;
use atlas_state::State;
use atlas_telemetry::Metrics;
use atlas_types::{Digest, EventSeq, JobId, Outcome, Payload, Request};
use atlas_upkeep::Upkeep;
use atlas_vault::Vault;
use bytes::Bytes;

use crate::externals::Externals;
use crate::kept::{ChainOrchestrators, Deliveries, Needs, QuestionVectors};
use crate::series::Series;
use crate::{Caller, Consistency, Error};

/// The functions behind every door. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    pub(crate) shared: Arc<Shared>,
}

/// The desk, with what this controller keeps in memory for each subject.
pub(crate) struct Shared {
    pub(crate) desk: Arc<Desk>,
    pub(crate) upkeep: Arc<Upkeep>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) records: Arc<Records>,
    pub(crate) events: Events,
    pub(crate) logs: JobLogs,
    pub(crate) stats: Stats,
    /// The agents with series of their own.
    pub(crate) agent_series: Mutex<Series<1>>,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) needs: Needs,
    pub(crate) model_limits: Arc<ModelLimits>,
    pub(crate) vault: Arc<Vault>,
    pub(crate) authenticator: Authenticator,
    pub(crate) chain_orchestrators: ChainOrchestrators,
    pub(crate) externals: Arc<dyn Externals>,
    pub(crate) conversations: Conversations,
    pub(crate) library: Library,
    pub(crate) bases: Bases,
    /// Questions to document bases.
    pub(crate) questions: QuestionVectors,
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
        self.shared.logs.streams()
    }

    /// Instruments.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// The state with the required freshness.
    pub async fn state(&self, consistency: Consistency) -> Result<State, Error> {
        self.shared.state(consistency).await
    }

    /// Proposes one command and waits until its outcome is final.
    pub(crate) async fn propose(&self, request: Request) -> Result<Outcome, Error> {
        self.shared.propose(request).await
    }

    /// Makes a payload from JSON bytes: inline if small, otherwise stored as an artifact first.
    pub async fn payload(&self, bytes: Bytes) -> Result<Payload, Error> {
        self.shared.payload(bytes).await
    }

    /// The bytes of a payload.
    pub(crate) async fn bytes(&self, payload: &Payload) -> Result<Bytes, Error> {
        self.shared.bytes(payload).await
    }

    /// The bytes of an artifact.
    pub async fn artifact(&self, digest: Digest) -> Result<Bytes, Error> {
        self.shared.artifact(digest).await
    }

    /// Refuses a caller that may not use an operation, and the denial goes to the audit under the name of the operation.
    pub async fn admit(&self, caller: &Caller, operation: OperationId, object: &str) -> Result<(), Error> {
        self.shared.admit(caller, operation, object).await
    }

    /// The job that a caller goes on waiting for: one that it submitted, or any if it may read jobs.
    pub async fn awaited_job(&self, caller: &Caller, text: &str) -> Result<JobId, Error> {
        self.shared.awaited_job(caller, text).await
    }
}

/// Answers for peers.
impl Service {
    /// The part that this controller's history can give for a peer's gap.
    pub async fn history_part(&self, gap: Gap) -> Result<Part, Error> {
        self.shared.history_part(gap).await
    }

    /// Answers a peer's question about ended jobs. [`Error::HistoryBehind`] if this history has a gap as well.
    pub async fn history_query(&self, through: EventSeq, query: Query) -> Result<QueryResult, Error> {
        self.shared.history_query(through, query).await
    }
}
