//! Agents and how their jobs run.

use std::sync::Arc;

use atlas_types::{
    AgentKind, AgentName, AgentPin, AgentRevision, AgentVersion, ClusterTime, Effects, Micros, Namespace, PerKey,
    Principal, Rate, RequiredAgent, RetryRule, RunSpec, Seq, Timeouts, Timestamp,
};

use super::circuit::{circuit_in, circuit_out};
use super::{EnumField as _, digest, enum_field, labels_in, labels_out, name, required};
use crate::{FormatError, proto};

enum_field!(AgentKind, proto::AgentKind, { Agent = Agent, Orchestrator = Orchestrator });

enum_field!(Effects, proto::Effects, {
    Pure = Pure,
    Idempotent = Idempotent,
    Reconcilable = Reconcilable,
    Once = Once,
});

impl From<&RunSpec> for proto::RunSpec {
    fn from(spec: &RunSpec) -> Self {
        Self {
            demand: Some((&spec.demand).into()),
            effects: proto::Effects::from(spec.effects).into(),
            max_attempts: spec.max_attempts,
            concurrency: spec.concurrency,
            max_retries: spec.retry.max_retries,
            backoff_base_us: spec.retry.backoff_base.0,
            queue_timeout_us: spec.timeouts.queue.map(|timeout| timeout.0),
            startup_timeout_us: spec.timeouts.startup.0,
            execution_timeout_us: spec.timeouts.execution.0,
            carried: spec.carried,
            spawns: spec.spawns,
            requires: spec.requires.iter().map(Into::into).collect(),
            secrets: spec.secrets.clone(),
            model: spec.model.clone(),
            other_models: spec.other_models.clone(),
            servers: spec.servers.clone(),
            rate: spec.rate.map(Into::into),
            per_key: spec.per_key.as_ref().map(Into::into),
            failures_max: spec.failures_max,
        }
    }
}

impl From<Rate> for proto::Rate {
    fn from(Rate { jobs, per, burst }: Rate) -> Self {
        Self { jobs, per_us: per.0, burst }
    }
}

impl TryFrom<proto::Rate> for Rate {
    type Error = FormatError;

    fn try_from(proto::Rate { jobs, per_us, burst }: proto::Rate) -> Result<Self, FormatError> {
        if jobs == 0 || burst == 0 {
            return Err(FormatError::Missing { field: "rate.jobs" });
        }
        Ok(Self { jobs, per: Micros(per_us), burst })
    }
}

impl From<&PerKey> for proto::PerKey {
    fn from(PerKey { key, concurrency, rate }: &PerKey) -> Self {
        Self { key: key.to_string(), concurrency: *concurrency, rate: rate.map(Into::into) }
    }
}

impl TryFrom<proto::PerKey> for PerKey {
    type Error = FormatError;

    fn try_from(proto::PerKey { key, concurrency, rate }: proto::PerKey) -> Result<Self, FormatError> {
        Ok(Self { key: key.into(), concurrency, rate: rate.map(TryInto::try_into).transpose()? })
    }
}

impl From<&RequiredAgent> for proto::RequiredAgent {
    fn from(RequiredAgent { name, version }: &RequiredAgent) -> Self {
        Self { name: name.clone(), version: version.clone() }
    }
}

impl From<proto::RequiredAgent> for RequiredAgent {
    fn from(proto::RequiredAgent { name, version }: proto::RequiredAgent) -> Self {
        Self { name, version }
    }
}

impl TryFrom<proto::RunSpec> for RunSpec {
    type Error = FormatError;

    fn try_from(spec: proto::RunSpec) -> Result<Self, FormatError> {
        Ok(Self {
            demand: required("run_spec.demand", spec.demand)?.try_into()?,
            effects: Effects::read("run_spec.effects", spec.effects)?,
            max_attempts: spec.max_attempts,
            concurrency: spec.concurrency,
            retry: RetryRule { max_retries: spec.max_retries, backoff_base: Micros(spec.backoff_base_us) },
            timeouts: Timeouts {
                queue: spec.queue_timeout_us.map(Micros),
                startup: Micros(spec.startup_timeout_us),
                execution: Micros(spec.execution_timeout_us),
            },
            carried: spec.carried,
            spawns: spec.spawns,
            requires: spec.requires.into_iter().map(Into::into).collect(),
            secrets: spec.secrets,
            model: spec.model,
            other_models: spec.other_models,
            servers: spec.servers,
            rate: spec.rate.map(TryInto::try_into).transpose()?,
            per_key: spec.per_key.map(TryInto::try_into).transpose()?,
            failures_max: spec.failures_max,
        })
    }
}

impl From<&AgentVersion> for proto::AgentVersion {
    fn from(agent: &AgentVersion) -> Self {
        Self {
            namespace: agent.namespace.to_string(),
            name: agent.name.to_string(),
            version: Some(agent.version.into()),
            digest: agent.digest.0.to_vec(),
            package_bytes: agent.package_bytes,
            kind: proto::AgentKind::from(agent.kind).into(),
            capabilities: agent.capabilities.clone(),
            contract: Some((&agent.contract).into()),
            spec: Some((&*agent.spec).into()),
            labels: labels_out(&agent.labels),
            registered_at_us: agent.registered_at.0,
            registered_seq: agent.registered_seq.0,
            retired: agent.retired,
            deprecated: agent.deprecated.as_deref().map(str::to_owned),
            retired_at_us: agent.retired_at.map(|at| at.0),
            circuit: circuit_out(agent.circuit),
            revision: (agent.revision > 1).then_some(agent.revision),
            registered_by: agent.registered_by.as_ref().map(ToString::to_string),
            revisions: agent.revisions.iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<proto::AgentVersion> for AgentVersion {
    type Error = FormatError;

    fn try_from(agent: proto::AgentVersion) -> Result<Self, FormatError> {
        Ok(Self {
            namespace: name("agent.namespace", &agent.namespace, Namespace::new)?,
            name: name("agent.name", &agent.name, AgentName::new)?,
            version: required("agent.version", agent.version)?.into(),
            digest: digest("agent.digest", &agent.digest)?,
            package_bytes: agent.package_bytes,
            kind: AgentKind::read("agent.kind", agent.kind)?,
            capabilities: agent.capabilities,
            contract: required("agent.contract", agent.contract)?.try_into()?,
            spec: Arc::new(required("agent.spec", agent.spec)?.try_into()?),
            labels: labels_in("agent.labels", agent.labels)?,
            registered_at: Timestamp(agent.registered_at_us),
            registered_seq: Seq(agent.registered_seq),
            retired: agent.retired,
            retired_at: agent.retired_at_us.map(ClusterTime),
            deprecated: agent.deprecated.map(Into::into),
            circuit: circuit_in(agent.circuit)?,
            revision: agent.revision.unwrap_or(1),
            registered_by: principal(agent.registered_by.as_deref())?,
            revisions: agent.revisions.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?,
        })
    }
}

impl From<&AgentRevision> for proto::AgentRevision {
    fn from(revision: &AgentRevision) -> Self {
        Self {
            number: revision.number,
            digest: revision.digest.0.to_vec(),
            package_bytes: revision.package_bytes,
            registered_at_us: revision.registered_at.0,
            registered_by: revision.registered_by.as_ref().map(ToString::to_string),
        }
    }
}

impl TryFrom<proto::AgentRevision> for AgentRevision {
    type Error = FormatError;

    fn try_from(revision: proto::AgentRevision) -> Result<Self, FormatError> {
        Ok(Self {
            number: revision.number,
            digest: digest("agent.revisions.digest", &revision.digest)?,
            package_bytes: revision.package_bytes,
            registered_at: Timestamp(revision.registered_at_us),
            registered_by: principal(revision.registered_by.as_deref())?,
        })
    }
}

fn principal(text: Option<&str>) -> Result<Option<Principal>, FormatError> {
    text.map(|text| name("agent.registered_by", text, Principal::new)).transpose()
}

impl From<&AgentPin> for proto::AgentPin {
    fn from(pin: &AgentPin) -> Self {
        Self { version: Some(pin.version.into()), digest: pin.digest.0.to_vec() }
    }
}

impl TryFrom<proto::AgentPin> for AgentPin {
    type Error = FormatError;

    fn try_from(pin: proto::AgentPin) -> Result<Self, FormatError> {
        Ok(Self { version: required("pin.version", pin.version)?.into(), digest: digest("pin.digest", &pin.digest)? })
    }
}
