//! How a service is put together of its parts and subjects.

use std::sync::{Arc, Mutex, Weak};

use atlas_artifacts::{Artifacts, Peers};
use atlas_bases::Bases;
use atlas_conversations::Conversations;
use atlas_desk::{Audit, Desk, Issuers, Standstill};
use atlas_env::Env;
use atlas_events::Events;
use atlas_history::History;
use atlas_identity::{Authentication, Authenticator};
use atlas_jobs::{Jobs, Resolve};
use atlas_library::{Library, Stores};
use atlas_lines::JobLogs;
use atlas_platform::{ModelLimits, Stats};
use atlas_raft::Handle;
use atlas_records::Records;
use atlas_registry::Registry;
use atlas_state::State;
use atlas_telemetry::Metrics;
use atlas_types::{AgentName, AgentVersion};
use atlas_upkeep::Upkeep;
use atlas_vault::{Keys, Vault};
use futures::future::BoxFuture;

use crate::externals::Externals;
use crate::kept::{ChainOrchestrators, Deliveries, Needs, QuestionVectors};
use crate::series::{AGENTS_MAX, Series};
use crate::service::{Service, Shared};
use crate::{Caller, Error, Limits, runs};

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
    /// The stores of memory and knowledge outside of the cluster.
    pub stores: Stores,
    /// The machine.
    pub env: Env,
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
            stores,
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
            let library = Library::new(desk.clone(), stores);
            let bases = Bases::new(desk.clone());
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
                library,
                bases,
                questions: QuestionVectors::default(),
                deliveries: Deliveries::default(),
            }
        });
        Self { shared }
    }
}
