//! What goes out with a lease: the credential of the caller, secrets, models, MCP servers, and what policies leave the agent. It is composed when the lease is sent, and kept nowhere.

use atlas_state::State;
use atlas_types::{Attachment, Attachments, Job, Level, NodeId, Place, level};

use crate::secrets::Named;
use crate::{Bearers, Service};

/// A worker that a lease is sent to.
#[derive(Debug, Clone, Copy)]
pub struct Recipient<'a> {
    pub node: &'a NodeId,
    /// The feature level of its program.
    pub level: Level,
    /// Its connection is not readable for others: loopback.
    pub private: bool,
}

/// Why an attempt gets a lease without what it needs, and must fail.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Withheld {
    /// No controller that is left had the credential of the caller.
    #[error(
        "E3015: credential_lost: the credential of the caller was lost with the controllers that held it; submit the job again"
    )]
    CredentialLost,
    /// The worker is connected over a network.
    #[error(
        "E2104: node \"{node}\" is not connected over TLS or loopback, so secrets and credentials are not sent to it"
    )]
    NotPrivate { node: NodeId },
    /// The worker would not know what to do with them.
    #[error(
        "E2104: the worker of node \"{node}\" is too old for secrets, credentials and bounds of policies; upgrade it"
    )]
    TooOld { node: NodeId },
    /// The welcome of the worker has no room for them.
    #[error("E2104: the leases of node \"{node}\" have too many bytes of secrets and credentials to be sent at once")]
    NoRoom { node: NodeId },
    /// The agent is not among the readers.
    #[error("Secret resolution failed: agent \"{agent}\" is not a reader of secret \"{name}\"")]
    NotReader { name: String, agent: String },
    /// A policy does not let agents have it.
    #[error("Secret resolution failed: {}", crate::policy::not_allowed(name))]
    NotAllowed { name: String },
    /// The value is there, and cannot be read.
    #[error("Secret resolution failed: Secret '{name}' cannot be unsealed: {why}")]
    Sealed { name: String, why: String },
}

impl Service {
    /// Credentials of callers.
    pub fn bearers(&self) -> &Bearers {
        &self.shared.bearers
    }

    /// What goes out with a lease of `job`.
    pub fn attachments(&self, state: &State, job: &Job, to: Recipient<'_>) -> Result<Attachments, Withheld> {
        let bearer = match job.bearer {
            true => Some(self.shared.bearers.of(job.id).ok_or(Withheld::CredentialLost)?),
            false => None,
        };
        if let Some(secret) = self.forbidden_secret(state, job) {
            return Err(Withheld::NotAllowed { name: secret.to_owned() });
        }
        let mut named = self.named_by(state, job)?;
        let is_program = job.spec.as_ref().is_some_and(|spec| spec.demand.place == Place::Process);
        if is_program && !to.private {
            named.keep_declared();
        }
        let Named { models, servers, secrets } = named;
        let secrets = (!secrets.is_empty()).then_some(Attachment::Secrets(secrets));
        let models = (!models.is_empty()).then_some(Attachment::Models(models));
        let servers = (!servers.is_empty()).then_some(Attachment::Servers(servers));
        let bearer = bearer.map(Attachment::Bearer);
        let bounds = self.bounds_of(state, job).map(Attachment::Bounds);
        let all = Attachments::new(bearer.into_iter().chain(secrets).chain(models).chain(servers).chain(bounds));
        if !all.is_empty() && to.level < level::ATTACHMENTS {
            return Err(Withheld::TooOld { node: to.node.clone() });
        }
        if all.are_private() && !to.private {
            return Err(Withheld::NotPrivate { node: to.node.clone() });
        }
        Ok(all)
    }
}
