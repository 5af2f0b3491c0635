//! Secrets: setting values, and finding those that go out with a lease.

use std::collections::BTreeMap;

use atlas_desk::{ShownObject, with_revision};
use atlas_objects::{SealedVersion, SecretProvider, SecretSpec, VERSIONS_MAX, models_of_tier};
use atlas_secrets::{Reference, Template, variable_of};
use atlas_state::State;
use atlas_types::{
    ATTACHED_MODELS_MAX, ATTACHED_SECRETS_MAX, ATTACHED_SERVERS_MAX, AttachedModel, AttachedSecret, AttachedServer,
    Job, Namespace, Object, ObjectKey, ObjectKind, ObjectName, PayloadBody, SECRET_BYTES_MAX, SPEC_BYTES_MAX,
    SecretSource, SecretText,
};
use serde_json::Value;

use crate::attachments::Withheld;
use crate::logins::secret_of_server;
use crate::seal::UnsealError;
use crate::{Caller, Consistency, Error, Service};

/// How often a value is set again after another client changed the secret at the same time.
const TRIES_MAX: usize = 5;

/// What a client wants to set.
pub struct NewSecret {
    pub name: String,
    pub value: SecretText,
    /// Only a new version of a secret that exists.
    pub rotate: bool,
}

impl Service {
    /// Sets the value of a secret as a new version, and makes the secret if there is none.
    pub async fn set_secret(&self, caller: &Caller, new: &NewSecret) -> Result<ShownObject, Error> {
        let key = secret_key(caller, &new.name)?;
        for tried in 1.. {
            let state = self.state(Consistency::Linearizable).await?;
            let old = state.object(&key);
            if old.is_none() && new.rotate {
                return Err(Error::UnknownObject(format!("no such secret: \"{}\"", key.name)));
            }
            let mut spec = match old {
                Some(object) => {
                    SecretSpec::read(&object.spec).map_err(|error| Error::internal("read a secret", &error))?
                }
                None => SecretSpec::default(),
            };
            if spec.provider != SecretProvider::Store {
                let text = format!("the value of secret \"{}\" is with the workers, not in the store", key.name);
                return Err(Error::Malformed(text));
            }
            self.add_version(&key, &mut spec, &new.value)?;
            match self.write_secret(caller, &key, old.map(|object| &**object), &mut spec).await {
                Err(Error::ObjectChanged { .. }) if tried < TRIES_MAX => {}
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        let state = self.state(Consistency::Linearizable).await?;
        state.object(&key).map(with_revision).ok_or_else(|| Error::UnknownObject("the secret was deleted".to_owned()))
    }

    /// Seals a value as the newest version.
    pub(crate) fn add_version(&self, key: &ObjectKey, spec: &mut SecretSpec, value: &SecretText) -> Result<(), Error> {
        if value.expose().len() > SECRET_BYTES_MAX {
            return Err(Error::TooLarge { what: "the value of a secret", limit: SECRET_BYTES_MAX as u64 });
        }
        let keys = self.shared.keys.as_ref().ok_or(Error::NoSecretsKey)?;
        let version = spec.versions.last().map_or(1, |last| last.version.saturating_add(1));
        let created = u64::try_from(self.shared.env.clock.wall().0 / 1_000_000).unwrap_or(0);
        spec.versions.push(keys.seal(key, version, value, self.nonce(), created).ok_or(Error::Internal)?);
        Ok(())
    }

    pub(crate) fn nonce(&self) -> [u8; 24] {
        let mut nonce = [0; 24];
        for part in nonce.chunks_mut(8) {
            part.copy_from_slice(&self.shared.env.entropy.u64().to_le_bytes());
        }
        nonce
    }

    /// The models and MCP servers of a job, and the secrets that its agent and these name.
    pub(crate) fn named_by(&self, state: &State, job: &Job) -> Result<Named, Withheld> {
        let Some(spec) = &job.spec else { return Ok(Named::default()) };
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
        Ok(Named { models, servers, secrets })
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
                    let keys = self.shared.keys.as_ref().ok_or_else(|| unsealed(UnsealError::NoKey))?;
                    Some(SecretSource::Value(keys.unseal(&key, sealed).map_err(unsealed)?))
                }
                None => None,
            },
        })
    }
}

/// The models that a job may call.
pub(crate) fn models_of_job(state: &State, job: &Job) -> Vec<ObjectKey> {
    let mut models: Vec<ObjectKey> = Vec::new();
    for (_, name) in names_of_models(job) {
        for key in Asks::of(job).models(state, name) {
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
pub(crate) struct Named {
    pub(crate) models: Vec<AttachedModel>,
    pub(crate) servers: Vec<AttachedServer>,
    pub(crate) secrets: BTreeMap<String, AttachedSecret>,
}

impl Named {
    /// Leaves the models out, and the secrets that only they name: for programs, which many contracts from Atlas for Python give a model
    /// that they do not call. One that calls it is told that the job has none.
    pub(crate) fn keep_declared(&mut self) {
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
pub(crate) struct Asks<'a> {
    pub(crate) namespace: &'a Namespace,
    /// None for an input that is an artifact.
    pub(crate) input: Option<&'a [u8]>,
}

impl<'a> Asks<'a> {
    fn of(job: &'a Job) -> Self {
        let input = match &job.input.body {
            PayloadBody::Inline(input) => Some(&**input),
            PayloadBody::Artifact { .. } => None,
        };
        Self { namespace: &job.namespace, input }
    }

    /// The MCP server that an agent names, also as `{input.MEMBER}`.
    pub(crate) fn server(self, asked: &str) -> Option<ObjectKey> {
        let named = self.named_in_input(asked);
        let name = ObjectName::new(named.as_deref().unwrap_or(asked)).ok()?;
        Some(ObjectKey { namespace: self.namespace.clone(), kind: ObjectKind::new("mcp-server").ok()?, name })
    }

    /// The models of an agent that asks for a tier, a model, or `{input.MEMBER}`: the model that the input names, without its fallbacks.
    pub(crate) fn models(self, state: &State, asked: &str) -> Vec<ObjectKey> {
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

fn secret_key(caller: &Caller, name: &str) -> Result<ObjectKey, Error> {
    let kind = ObjectKind::new("secret")?;
    Ok(ObjectKey { namespace: caller.namespace.clone(), kind, name: ObjectName::new(name)? })
}

/// The canonical spec with as many of the newest versions as have room.
pub(crate) fn fitting(spec: &mut SecretSpec) -> Result<Vec<u8>, Error> {
    loop {
        if spec.versions.len() > VERSIONS_MAX {
            spec.versions.remove(0);
            continue;
        }
        let value = serde_json::to_value(&*spec).map_err(|error| Error::internal("write a secret", &error))?;
        let bytes = atlas_objects::canonical(&value).map_err(|error| Error::internal("write a secret", &error))?;
        if bytes.len() <= SPEC_BYTES_MAX || spec.versions.len() <= 1 {
            return Ok(bytes);
        }
        let _oldest: SealedVersion = spec.versions.remove(0);
    }
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
