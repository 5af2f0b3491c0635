//! Memory and knowledge for agents whose contracts ask for them (compatibility §20, §22, §23). What a job writes is known by the step that
//! writes it, so a later attempt writes nothing twice.

use atlas_api::types::{KnowledgeChange, KnowledgeDraft};
use atlas_contract::{Knowledge, SharedBy};
use atlas_knowledge::{Acl, ProtectedDomains, SEARCH_LIMIT, memory};
use atlas_library::{
    Library, MemoryScope, WriteKey, WritingJob, knowledge::KnowledgeError, knowledge::KnowledgeFilter,
};
use atlas_registry::KnownContract;
use atlas_types::{CONVERSATION_METADATA, Job, Namespace, StepKey};
use serde_json::{Map, Value, json};

use super::{Call, NoResult};
use crate::service::Shared;
use crate::{Consistency, Error, Service};

/// What the names of these tools begin with.
const MEMORY: &str = "atlas.memory.";
const KNOWLEDGE: &str = "atlas.knowledge.";

/// What agents are told that use knowledge without requiring it.
const NO_KNOWLEDGE: &str = atlas_knowledge::KnowledgeAccess::NOT_ENABLED;

/// Whether it is a tool for memory or knowledge.
pub(super) fn is_one(tool: &str) -> bool {
    tool.starts_with(MEMORY) || tool.starts_with(KNOWLEDGE)
}

impl Service {
    /// Carries out a call of a job.
    pub(super) async fn tool_library(
        &self,
        call: &Call<'_>,
        job: &Job,
        step: StepKey,
        contract: &KnownContract,
    ) -> Result<Value, NoResult> {
        let writer = WritingJob { agent: job.agent.to_string(), job: job.id };
        let key = WriteKey::of_step(job.id, step.0);
        let library = &self.shared.library;
        if let Some(what) = call.tool.strip_prefix(MEMORY) {
            let Some(shared) = contract.value.pointer("/requires/memory").and_then(SharedBy::read) else {
                return Err(NoResult::Refused(memory::NOT_ENABLED.to_owned()));
            };
            let scope = match call.text("scope") {
                "" => scope(shared.as_str(), job)?,
                named => scope(named, job)?,
            };
            return self.tool_memory(call, &scope, key, &writer, what).await;
        }
        let protected = self.shared.protected_domains(&job.namespace).await?;
        let Some(acl) = acl(contract, &protected) else {
            return Err(NoResult::Refused(NO_KNOWLEDGE.to_owned()));
        };
        match call.tool.strip_prefix(KNOWLEDGE) {
            Some("search") => search(library, call, &acl).await,
            Some("get") => {
                let entry = library.entry(&call.caller, call.text("id"), &acl, Consistency::Linearizable).await?;
                Ok(json!({"entry": entry}))
            }
            Some("store") => {
                let draft: KnowledgeDraft = read(&call.arguments, &["id", "content", "domain", "tags", "metadata"])?;
                let entry = library.store(&call.caller, draft, &acl, key, Some(&writer)).await?;
                Ok(json!({"entry": entry}))
            }
            Some("update") => {
                let change: KnowledgeChange = read(&call.arguments, &["content", "tags", "metadata"])?;
                let entry = library.change(&call.caller, call.text("id"), change, &acl, key, Some(&writer)).await?;
                Ok(json!({"entry": entry}))
            }
            _ => Err(NoResult::Refused(format!("Unknown tool: {}", call.tool))),
        }
    }

    async fn tool_memory(
        &self,
        call: &Call<'_>,
        scope: &MemoryScope,
        key: WriteKey,
        writer: &WritingJob,
        what: &str,
    ) -> Result<Value, NoResult> {
        let library = &self.shared.library;
        let text = call.text("text");
        match what {
            "read" => {
                let memory = library.memory(&call.caller, scope, Consistency::Linearizable).await?;
                Ok(json!({"text": memory.text}))
            }
            "append" => {
                library.write_memory(&call.caller, scope, text, false, key, Some(writer)).await?;
                Ok(json!({"status": "appended"}))
            }
            "write" => {
                library.write_memory(&call.caller, scope, text, true, key, Some(writer)).await?;
                Ok(json!({"status": "written"}))
            }
            _ => Err(NoResult::Refused(format!("Unknown tool: {}", call.tool))),
        }
    }
}

impl Shared {
    /// The domains that contracts must name to write them: those of the namespace, and those of the controller's policy.
    pub(crate) async fn protected_domains(&self, namespace: &Namespace) -> Result<ProtectedDomains, Error> {
        let state = self.current().await?;
        let mut protected = self.library.protected().clone();
        let own = state.limits_of(namespace).map(|limits| limits.protected_domains.clone());
        protected.0.extend(own.unwrap_or_default());
        Ok(protected)
    }
}

impl From<KnowledgeError> for NoResult {
    fn from(error: KnowledgeError) -> Self {
        match error {
            KnowledgeError::Cluster(error) => Self::Error(error),
            denied @ KnowledgeError::Domain(_) => Self::Refused(denied.to_string()),
        }
    }
}

async fn search(library: &Library, call: &Call<'_>, acl: &Acl) -> Result<Value, NoResult> {
    let words = |name: &str| {
        let words = call.arguments.get(name).and_then(Value::as_array);
        words.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let domain = call.text("domain");
    let wanted = KnowledgeFilter {
        text: call.text("query").to_owned(),
        domain: (!domain.is_empty()).then(|| domain.to_owned()),
        tags: words("tags"),
    };
    let limit = call.arguments.get("limit").and_then(Value::as_u64).map_or(SEARCH_LIMIT, |limit| limit as usize);
    let found = library.search(&call.caller, &wanted, acl, limit, Consistency::Linearizable).await?;
    Ok(json!({"entries": found}))
}

/// The memory that a job means: that of the namespace, or its own of a kind. It gets no other.
fn scope(word: &str, job: &Job) -> Result<MemoryScope, NoResult> {
    let own = |what: &str| {
        let metadata: Map<String, Value> = serde_json::from_slice(&job.metadata).unwrap_or_default();
        metadata.get(what).and_then(Value::as_str).map(str::to_owned)
    };
    match word {
        "namespace" => Ok(MemoryScope::Namespace),
        "agent" => Ok(MemoryScope::Agent(job.agent.to_string())),
        "user" => Ok(MemoryScope::User(job.principal.to_string())),
        "conversation" => match own(CONVERSATION_METADATA) {
            Some(id) => Ok(MemoryScope::Conversation(id)),
            None => Err(NoResult::Refused("the job belongs to no conversation".to_owned())),
        },
        other => Err(NoResult::Refused(format!(
            "\"{other}\" is no memory of a job; use namespace, agent, user or conversation"
        ))),
    }
}

/// What the contract of an agent lets it read and write; none if it does not require knowledge.
pub(crate) fn acl(contract: &KnownContract, protected: &ProtectedDomains) -> Option<Acl> {
    let knowledge = contract.value.pointer("/requires/knowledge")?;
    let domains = |name: &str| {
        let words = knowledge.get(name).and_then(Value::as_array);
        words.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let knowledge = Knowledge {
        enabled: knowledge.get("enabled") == Some(&Value::Bool(true)),
        read_domains: domains("read_domains"),
        write_domains: domains("write_domains"),
    };
    Acl::of(&knowledge, protected)
}

/// Reads these members of the arguments. Null is as good as nothing, because programs send what they have.
fn read<T: serde::de::DeserializeOwned>(arguments: &Map<String, Value>, known: &[&str]) -> Result<T, NoResult> {
    let is_meant = |(name, value): &(&String, &Value)| known.contains(&name.as_str()) && !value.is_null();
    let members = arguments.iter().filter(is_meant).map(|(name, value)| (name.clone(), value.clone())).collect();
    serde_json::from_value(Value::Object(members)).map_err(|error| NoResult::Error(Error::Malformed(error.to_string())))
}
