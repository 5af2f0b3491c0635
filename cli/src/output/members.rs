//! The members of the API's objects. With them, a misspelt name is distinguished from a member that an object lacks.

use atlas_api::types::{
    Agent, AgentRevision, Base, BaseDocument, ChainRun, Conversation, Id, Job, JobQuestion, KnowledgeDomain,
    KnowledgeEntry, KnowledgeRights, Member, MemoryEntry, Node, Object, Shape, Trace, Trigger, of,
};

/// The members that objects of a kind can have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Members {
    /// Those of a type of the interface.
    Of(Shape),
    /// Those of what the command itself puts together.
    These(&'static [&'static str]),
}

/// Members of a job with `view=full`.
pub(crate) const JOB: Members = Members::Of(of::<Job>());

/// Members of a trigger with `view=full`.
pub(crate) const TRIGGER: Members = Members::Of(of::<Trigger>());

/// Members of a trace.
pub(crate) const TRACE: Members = Members::Of(of::<Trace>());

/// Members of an agent version with `view=full`.
pub(crate) const AGENT: Members = Members::Of(of::<Agent>());

/// Members of a package of an agent version.
pub(crate) const AGENT_REVISION: Members = Members::Of(of::<AgentRevision>());

/// Members of a node.
pub(crate) const NODE: Members = Members::Of(of::<Node>());

/// Members of a GPU, with its node.
pub(crate) const GPU: Members =
    Members::These(&["node", "index", "uuid", "healthy", "mig_profile", "model", "memory_bytes", "free_bytes"]);

/// Members of a model, with its tiers.
pub(crate) const MODEL: Members = Members::These(&["kind", "metadata", "spec", "status", "tiers"]);

/// Members of what names a secret.
pub(crate) const READER: Members = Members::These(&["kind", "name", "allowed", "why"]);

/// Members of a row of the price list.
pub(crate) const PRICE: Members =
    Members::These(&["model", "provider", "from", "input", "output", "cache_read", "cache_write"]);

/// Members of a conversation.
pub(crate) const CONVERSATION: Members = Members::Of(of::<Conversation>());

/// Members of an entry of a memory.
pub(crate) const MEMORY: Members = Members::Of(of::<MemoryEntry>());

/// Members of a piece of knowledge.
pub(crate) const KNOWLEDGE: Members = Members::Of(of::<KnowledgeEntry>());

/// Members of a document base.
pub(crate) const BASE: Members = Members::Of(of::<Base>());

/// Members of a document of a base.
pub(crate) const DOCUMENT: Members = Members::Of(of::<BaseDocument>());

/// Members of a domain of knowledge.
pub(crate) const KNOWLEDGE_DOMAIN: Members = Members::Of(of::<KnowledgeDomain>());

/// Members of what an agent may do with knowledge.
pub(crate) const KNOWLEDGE_RIGHTS: Members = Members::Of(of::<KnowledgeRights>());

/// Members of a run of a chain.
pub(crate) const RUN: Members = Members::Of(of::<ChainRun>());

/// Members of a question.
pub(crate) const QUESTION: Members = Members::Of(of::<JobQuestion>());

/// Members of a controller.
pub(crate) const CONTROLLER: Members = Members::Of(of::<Member>());

/// Members of an answer that contains only the id of the created object.
pub(crate) const ID: Members = Members::Of(of::<Id>());

/// Members of an object of a kind that the controllers know.
pub(crate) const OBJECT: Members = Members::Of(of::<Object>());

impl Members {
    /// Whether objects of the kind can have this member.
    pub(crate) fn has(self, name: &str) -> bool {
        self.names().contains(&name)
    }

    /// All of them.
    pub(crate) fn names(self) -> Vec<&'static str> {
        match self {
            Self::Of(shape) => shape.members().collect(),
            Self::These(names) => names.to_vec(),
        }
    }
}
