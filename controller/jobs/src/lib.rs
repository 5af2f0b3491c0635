//! Submitting jobs and deciding about them: verdicts and proposals (`submit`, `batch`), credentials that jobs carry (`inbound`, `bearers`), what
//! goes out with a lease (`attachments`), cancels and retries (`again`), forks, jobs in doubt (`resolve`), erasing, and messages. What a
//! job is to others (`relations`) is said by functions behind the doors alone.
//!
//! It knows neither chains nor conversations. What a name means that is not an agent's is told by who wires it ([`Resolve`]).

mod again;
mod attachments;
mod batch;
mod bearers;
mod erase;
mod fork;
mod inbound;
mod messages;
mod named;
pub mod relations;
mod resolve;
mod submission;
mod submit;

use std::sync::Arc;

use atlas_desk::{Caller, Desk, Error};
use atlas_registry::Registry;
use atlas_state::State;
use atlas_types::{AgentName, AgentVersion};
use atlas_vault::Vault;
use futures::future::BoxFuture;

pub use again::RetryRequest;
pub use attachments::Recipient;
pub use batch::Submitted;
pub use bearers::{BearerRefused, Bearers};
pub use fork::{ForkRequest, Set};
pub use inbound::{IntendedJob, passes_on, sweep};
pub use messages::NewMessage;
pub use resolve::Decision;
pub use submission::Submission;
pub use submit::Draft;

/// What a name means that is not only that of versions of an agent.
pub trait Resolve: Send + Sync {
    /// The state with the agent that was made of the stored chain of this name; none if there was nothing to make.
    fn with_chain<'a>(
        &'a self,
        caller: &'a Caller,
        state: &'a State,
        name: &'a AgentName,
        requirement: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<State>, Error>>;

    /// Whether a version was made of a stored chain, and not registered by somebody.
    fn is_made(&self, agent: &AgentVersion) -> bool;
}

/// Submits jobs and decides about them.
pub struct Jobs {
    desk: Arc<Desk>,
    registry: Arc<Registry>,
    vault: Arc<Vault>,
    names: Arc<dyn Resolve>,
    bearers: Bearers,
}

impl Jobs {
    /// For a controller that has just started: it holds no credentials yet.
    pub fn new(desk: Arc<Desk>, registry: Arc<Registry>, vault: Arc<Vault>, names: Arc<dyn Resolve>) -> Self {
        Self { desk, registry, vault, names, bearers: Bearers::default() }
    }

    /// Credentials of callers.
    pub fn bearers(&self) -> &Bearers {
        &self.bearers
    }
}
