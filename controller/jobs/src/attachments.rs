//! What goes out with a lease: the credential of the caller, secrets, models, MCP servers, and what policies leave the agent. It is composed when the lease is sent, and kept nowhere.

use atlas_state::State;
use atlas_types::{Attachment, Attachments, Job, Level, NodeId, Place, level};
use atlas_vault::{NamedObjects, Withheld};

use crate::Jobs;

/// A worker that a lease is sent to.
#[derive(Debug, Clone, Copy)]
pub struct Recipient<'a> {
    pub node: &'a NodeId,
    /// The feature level of its program.
    pub level: Level,
    /// Its connection is not readable for others: loopback.
    pub private: bool,
}

impl Jobs {
    /// What goes out with a lease of `job`.
    pub fn attachments(&self, state: &State, job: &Job, to: Recipient<'_>) -> Result<Attachments, Withheld> {
        let bearer = match job.bearer {
            true => Some(self.bearers.of(job.id).ok_or(Withheld::CredentialLost)?),
            false => None,
        };
        if let Some(secret) = self.registry.forbidden_secret(state, job) {
            return Err(Withheld::NotAllowed { name: secret.to_owned() });
        }
        let mut named = self.vault.named_by(state, job)?;
        let is_program = job.spec.as_ref().is_some_and(|spec| spec.demand.place == Place::Process);
        if is_program && !to.private {
            named.keep_declared();
        }
        let NamedObjects { models, servers, secrets } = named;
        let secrets = (!secrets.is_empty()).then_some(Attachment::Secrets(secrets));
        let models = (!models.is_empty()).then_some(Attachment::Models(models));
        let servers = (!servers.is_empty()).then_some(Attachment::Servers(servers));
        let bearer = bearer.map(Attachment::Bearer);
        let bounds = self.registry.bounds_of(state, job).map(Attachment::Bounds);
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
