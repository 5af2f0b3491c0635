//! The service: the desk and what is kept by subject, which all functions share.

use std::ops::Deref;
use std::sync::{Arc, Mutex, Weak};

use atlas_api::OperationId;
use atlas_artifacts::{Artifacts, Peers, Query, QueryResult};
use atlas_conversations::Conversations;
use atlas_desk::{Audit, Desk, Issuers, Standstill};
use atlas_env::Env;
use atlas_events::Events;
use atlas_history::{Gap, History, Part};
use atlas_identity::{Authentication, Authenticator};
use atlas_jobs::{Jobs, Resolve};
use atlas_lines::{JobLogs, Streams};
use atlas_platform::{ModelLimits, Stats};
use atlas_raft::Handle;
use atlas_records::Records;
use atlas_registry::Registry;
use atlas_state::State;
use atlas_telemetry::Metrics;
use atlas_types::{AgentName, AgentVersion, Digest, EventSeq, JobId, Outcome, Payload, Request};
use atlas_upkeep::Upkeep;
use atlas_vault::{Keys, Vault};
use bytes::Bytes;
use futures::future::BoxFuture;

use crate::externals::Externals;
use crate::kept::{ChainOrchestrators, Deliveries, Needs};
use crate::series::{AGENTS_MAX, Series};
use crate::{Caller, Consistency, Error, Limits, runs};

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
    /// Calls of webhooks that reached this controller.
    pub(crate) deliveries: Deliveries,
}

impl Deref for Shared {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.desk
    }
}

/// What names mean, as the subjects say that jobs do not know.
struct Names(Weak<Shared>);

impl Resolve for Names {
    fn with_chain<'a>(
        &'a self,
        caller: &'a Caller,
        state: &'a State,
        name: &'a AgentName,
        requirement: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<State>, Error>> {
        Box::pin(async move {
            // Without the service nobody waits for the answer.
            let Some(shared) = self.0.upgrade() else { return Err(Error::Internal) };
            Service { shared }.with_chain(caller, state, name, requirement).await
        })
    }

    fn is_made(&self, agent: &AgentVersion) -> bool {
        runs::is_made(agent)
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
        let standstill = Standstill::default();
        let desk = Desk { handle, history, artifacts, peers, metrics, limits, env, audit, standstill };
        let desk = Arc::new(desk);
        let upkeep = Arc::new(Upkeep::new(desk.clone()));
        let logs = JobLogs::new(desk.clone());
        let (model_limits, stats) = (Arc::<ModelLimits>::default(), Stats::default());
        let registry = Arc::new(Registry::new(desk.clone()));
        let records = Records::new(desk.clone(), logs.clone(), model_limits.clone(), stats.clone());
        let records = Arc::new(records);
        let events = Events::new(desk.clone(), records.clone());
        let authenticator = Authenticator::new(desk.clone(), authentication, issuers.clone());
        let vault = Arc::new(Vault::new(desk.clone(), keys, issuers));
        let shared = Arc::new_cyclic(|shared: &Weak<Shared>| {
            let names = Arc::new(Names(shared.clone()));
            let jobs = Arc::new(Jobs::new(desk.clone(), registry.clone(), vault.clone(), names));
            let conversations = Conversations::new(desk.clone(), jobs.clone(), records.clone(), registry.clone());
            Shared {
                upkeep,
                registry,
                desk,
                records,
                events,
                logs,
                stats,
                agent_series: Mutex::new(Series::new(AGENTS_MAX)),
                jobs,
                needs: Needs::default(),
                model_limits,
                vault,
                authenticator,
                chain_orchestrators: ChainOrchestrators::default(),
                externals,
                conversations,
                deliveries: Deliveries::default(),
            }
        });
        Self { shared }
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
