//! What a job gets: the models, MCP servers and secrets that its agent names.

use std::collections::BTreeMap;

use atlas_model::{CALL_AGENT, CHAT_AGENT};
use atlas_objects::{SecretProvider, SecretSpec, models_of_tier, with_fallbacks};
use atlas_secrets::{Reference, Template, variable_of};
use atlas_state::State;
use atlas_types::{
    ATTACHED_MODELS_MAX, ATTACHED_SECRETS_MAX, ATTACHED_SERVERS_MAX, AttachedModel, AttachedSecret, AttachedServer,
    Job, NAMED_METADATA, Namespace, NodeId, Object, ObjectKey, ObjectKind, ObjectName, PayloadBody, SecretSource,
};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Vault;
use crate::logins::secret_of_server;
use crate::seal::{UnsealError, unseal};

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
    #[error("Secret resolution failed: {}", not_allowed(name))]
    NotAllowed { name: String },
    /// The value is there, and cannot be read.
    #[error("Secret resolution failed: Secret '{name}' cannot be unsealed: {why}")]
    Sealed { name: String, why: String },
}

/// Why an agent does not get a secret, as Atlas for Python says it.
pub fn not_allowed(secret: &str) -> String {
    format!("Secret '{secret}' is not in the allowed secrets whitelist")
}

impl Vault {
    /// The models and MCP servers of a job, and the secrets that its agent and these name.
    pub fn named_by(&self, state: &State, job: &Job) -> Result<NamedObjects, Withheld> {
        let Some(spec) = &job.spec else { return Ok(NamedObjects::default()) };
        let mut secrets = BTreeMap::new();
        for name in &spec.secrets {
            // A worker looks for a secret without an object in its own environment.
            if let Some(source) = self.source(state, job, name, true)? {
                secrets.insert(name.clone(), AttachedSecret { source, declared: true });
            }
        }
        let models = models_of_job(state, job);
        let asked = asked(state, job);
        let models: Vec<_> = models.iter().filter_map(|key| state.object(key)).take(ATTACHED_MODELS_MAX).collect();
        let servers = servers_of_job(job).filter_map(|key| state.object(&key));
        let servers: Vec<_> = servers.take(ATTACHED_SERVERS_MAX).collect();
        for name in models.iter().chain(&servers).flat_map(|object| references(object)) {
            if secrets.len() >= ATTACHED_SECRETS_MAX || secrets.contains_key(&name) {
                continue;
            }
            if let Some(source) = self.source(state, job, &name, false)? {
                secrets.insert(name, AttachedSecret { source, declared: false });
            }
        }
        let attached = |model: &std::sync::Arc<Object>| AttachedModel {
            name: model.key.name.to_string(),
            spec: model.spec.clone(),
            asked: asked.iter().filter(|(_, first)| *first == model.key).map(|(name, _)| name.clone()).collect(),
        };
        let server = |server: &std::sync::Arc<Object>| AttachedServer {
            name: server.key.name.to_string(),
            spec: server.spec.clone(),
            login: secret_of_server(&server.key).is_ok_and(|secret| state.object(&secret).is_some()),
        };
        let (models, servers) = (models.into_iter().map(attached).collect(), servers.into_iter().map(server).collect());
        Ok(NamedObjects { models, servers, secrets })
    }

    fn source(&self, state: &State, job: &Job, name: &str, declared: bool) -> Result<Option<SecretSource>, Withheld> {
        let (Ok(kind), Ok(object)) = (ObjectKind::new("secret"), ObjectName::new(name)) else { return Ok(None) };
        let key = ObjectKey { namespace: job.namespace.clone(), kind, name: object };
        let Some(object) = state.object(&key) else { return Ok(None) };
        let unsealed = |error: UnsealError| Withheld::Sealed { name: name.to_owned(), why: error.to_string() };
        let spec = SecretSpec::read(&object.spec).map_err(|_| unsealed(UnsealError::Damaged))?;
        if declared && !spec.permits(job.agent.as_str()) {
            return Err(Withheld::NotReader { name: name.to_owned(), agent: job.agent.to_string() });
        }
        Ok(match spec.provider {
            SecretProvider::Environment => {
                Some(SecretSource::Environment { variable: spec.variable.unwrap_or_else(|| variable_of(None, name)) })
            }
            SecretProvider::File => {
                Some(SecretSource::File { path: spec.path.unwrap_or_else(|| name.to_owned()), member: spec.member })
            }
            SecretProvider::Store => match spec.versions.last() {
                Some(sealed) => {
                    let keys = self.keys.as_ref().ok_or_else(|| unsealed(UnsealError::NoKey))?;
                    Some(SecretSource::Value(unseal(keys, &key, sealed).map_err(unsealed)?))
                }
                None => None,
            },
        })
    }
}

/// The models that a job may call.
pub(crate) fn models_of_job(state: &State, job: &Job) -> Vec<ObjectKey> {
    let mut models: Vec<ObjectKey> = Vec::new();
    // Who asks for one call, or for an answer in a conversation, takes that of a fallback, as agents do.
    let falls_back = [CALL_AGENT, CHAT_AGENT].contains(&job.agent.as_str());
    for (_, name) in names_of_models(job) {
        let named = Asks::of(job).models(state, name).into_iter();
        let named = named.flat_map(|key| if falls_back { with_fallbacks(state, &key) } else { vec![key] });
        for key in named {
            if !models.contains(&key) {
                models.push(key);
            }
        }
    }
    models
}

/// The names by which a job with several models calls them, and the first model for each. None for a job with one.
fn asked(state: &State, job: &Job) -> Vec<(String, ObjectKey)> {
    let names: Vec<_> = names_of_models(job).collect();
    if names.len() < 2 {
        return Vec::new();
    }
    let first =
        |(asked, name): (&str, &str)| Some((asked.to_owned(), Asks::of(job).models(state, name).into_iter().next()?));
    names.into_iter().filter_map(first).collect()
}

/// The models and tiers of a job: as its contract names them, and what they are looked up by. A fork can have another one for the first.
fn names_of_models(job: &Job) -> impl Iterator<Item = (&str, &str)> {
    let fork = job.fork.as_ref().and_then(|fork| fork.model.as_ref()).map(|model| model.as_str());
    let spec = job.spec.as_deref();
    let own = spec.and_then(|spec| spec.model.as_deref());
    let first = own.or(fork).map(|own| (own, fork.unwrap_or(own)));
    let others = spec.into_iter().flat_map(|spec| &spec.other_models);
    first.into_iter().chain(others.map(|name| (name.as_str(), name.as_str())))
}

/// What the agent of a job names.
#[derive(Default)]
pub struct NamedObjects {
    pub models: Vec<AttachedModel>,
    pub servers: Vec<AttachedServer>,
    pub secrets: BTreeMap<String, AttachedSecret>,
}

impl NamedObjects {
    /// Leaves the models out, and the secrets that only they name: for programs, which many contracts from Atlas for Python give a model
    /// that they do not call. One that calls it is told that the job has none.
    pub fn keep_declared(&mut self) {
        self.models.clear();
        if self.servers.is_empty() {
            self.secrets.retain(|_, secret| secret.declared);
        }
    }
}

/// The MCP servers that a job may call, whether they exist or not.
pub(crate) fn servers_of_job(job: &Job) -> impl Iterator<Item = ObjectKey> {
    let named = job.spec.as_ref().map(|spec| spec.servers.iter()).into_iter().flatten();
    named.filter_map(|name| Asks::of(job).server(name))
}

/// Where the names of an agent lead: the namespace, and the input for names such as `{input.MEMBER}`.
#[derive(Clone, Copy)]
pub struct Asks<'a> {
    pub namespace: &'a Namespace,
    /// None if it is not known.
    pub input: Option<&'a [u8]>,
}

impl<'a> Asks<'a> {
    fn of(job: &'a Job) -> Self {
        let input = match &job.input.body {
            PayloadBody::Inline(input) => Some(&**input),
            PayloadBody::Artifact { .. } => named_beside(&job.metadata),
        };
        Self { namespace: &job.namespace, input }
    }

    /// The MCP server that an agent names, also as `{input.MEMBER}`.
    pub fn server(self, asked: &str) -> Option<ObjectKey> {
        let named = self.named_in_input(asked);
        let name = ObjectName::new(named.as_deref().unwrap_or(asked)).ok()?;
        Some(ObjectKey { namespace: self.namespace.clone(), kind: ObjectKind::new("mcp-server").ok()?, name })
    }

    /// The models of an agent that asks for a tier, a model, or `{input.MEMBER}`: the model that the input names, without its fallbacks.
    pub fn models(self, state: &State, asked: &str) -> Vec<ObjectKey> {
        if !asked.starts_with("{input.") {
            return models_of_tier(state, self.namespace, asked);
        }
        let name = self.named_in_input(asked).unwrap_or_default();
        let (Ok(kind), Ok(name)) = (ObjectKind::new("model"), ObjectName::new(&name)) else { return Vec::new() };
        vec![ObjectKey { namespace: self.namespace.clone(), kind, name }]
    }

    /// The text in the member of the input that `{input.MEMBER}` names.
    fn named_in_input(self, asked: &str) -> Option<String> {
        let member = asked.strip_prefix("{input.").and_then(|rest| rest.strip_suffix('}'))?;
        let input: Value = serde_json::from_slice(self.input?).ok()?;
        input[member].as_str().map(str::to_owned)
    }
}

/// What the input of a job names, if it is an artifact.
fn named_beside(metadata: &[u8]) -> Option<&[u8]> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_slice(metadata).ok()?;
    members.get(NAMED_METADATA).map(|named| named.get().as_bytes())
}

/// The names of the secrets in the texts of the spec of a model or an MCP server.
fn references(object: &Object) -> Vec<String> {
    fn visit(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(text) => {
                let template = Template::parse(text).ok();
                let names = template.iter().flat_map(Template::references).filter_map(|reference| match reference {
                    Reference::Secret(name) => Some(name.to_owned()),
                    Reference::Variable(_) => None,
                });
                found.extend(names);
            }
            Value::Array(items) => items.iter().for_each(|item| visit(item, found)),
            Value::Object(members) => members.values().for_each(|member| visit(member, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut found = Vec::new();
    let mut spec: Value = serde_json::from_slice(&object.spec).unwrap_or_default();
    // The secret of the client is for controllers.
    spec.as_object_mut().map(|members| members.remove("login"));
    visit(&spec, &mut found);
    found
}
