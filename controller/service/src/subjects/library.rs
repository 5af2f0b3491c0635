//! Memory and knowledge that agents share.

use atlas_api::types::{KnowledgeAcl, KnowledgeRights};
use atlas_library::Library;

use crate::tools::library::acl;
use crate::{AgentQuery, Caller, Consistency, Error, Service, ShownAgent, Versions};

impl Service {
    /// What agents know together.
    pub fn library(&self) -> &Library {
        &self.shared.library
    }

    /// What agents may do with knowledge: all of them, or one.
    pub async fn knowledge_acl(
        &self,
        caller: &Caller,
        agent: Option<&str>,
        consistency: Consistency,
    ) -> Result<KnowledgeAcl, Error> {
        let protected = self.shared.protected_domains(&caller.namespace).await?;
        let agents = match agent {
            Some(name) => vec![self.agent(caller, name, None, consistency).await?],
            None => {
                let query = AgentQuery { versions: Versions::Latest, ..AgentQuery::default() };
                self.agents(caller, &query, consistency).await?
            }
        };
        let rights = |shown: ShownAgent| {
            let acl = acl(&shown.contract, &protected);
            let enabled = acl.is_some();
            let (read_domains, write_domains) =
                acl.map(|acl| (acl.read_domains, acl.write_domains)).unwrap_or_default();
            let (agent, version) = (shown.agent.name.to_string(), shown.agent.version.to_string());
            KnowledgeRights { agent, version, enabled, read_domains, write_domains }
        };
        let agents = agents.into_iter().map(rights).collect();
        Ok(KnowledgeAcl { protected_domains: protected.0.iter().cloned().collect(), agents })
    }
}
