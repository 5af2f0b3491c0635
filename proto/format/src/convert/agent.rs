//! Agents and how their jobs run.

use atlas_types::{
    AgentKind, AgentPin, AgentRevision, AgentVersion, Effects, Micros, PerKey, Rate, RequiredAgent, RetryRule, RunSpec,
    Timeouts,
};

use super::enum_field;
use super::table::{DefaultIsAbsent, Unless, message, table};
use crate::{FormatError, proto};

enum_field!(AgentKind, proto::AgentKind, { Agent = Agent, Orchestrator = Orchestrator });

enum_field!(Effects, proto::Effects, {
    Pure = Pure,
    Idempotent = Idempotent,
    Reconcilable = Reconcilable,
    Once = Once,
});

table! {
    "run_spec": RunSpec = RunSpec {
        demand = demand,
        effects = effects,
        max_attempts = max_attempts,
        concurrency = concurrency,
        carried = carried,
        durable = durable,
        spawns = spawns,
        requires = requires,
        secrets = secrets,
        model = model,
        other_models = other_models,
        servers = servers,
        rate = rate,
        per_key = per_key,
        failures_max = failures_max,
    }
    part retry: RetryRule {
        max_retries = max_retries,
        backoff_base = backoff_base_us,
    }
    part timeouts: Timeouts {
        queue = queue_timeout_us,
        startup = startup_timeout_us,
        execution = execution_timeout_us,
    }
}

impl From<&Rate> for proto::Rate {
    fn from(Rate { jobs, per, burst }: &Rate) -> Self {
        Self { jobs: *jobs, per_us: per.0, burst: *burst }
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

message!(Rate = Rate);

table! {
    "per_key": PerKey = PerKey {
        key = key,
        concurrency = concurrency,
        rate = rate,
    }
}

table! {
    "required_agent": RequiredAgent = RequiredAgent {
        name = name,
        version = version,
    }
}

table! {
    "agent": AgentVersion = AgentVersion {
        namespace = namespace,
        name = name,
        version = version,
        digest = digest,
        package_bytes = package_bytes,
        kind = kind,
        capabilities = capabilities,
        contract = contract,
        spec = spec,
        labels = labels,
        registered_at = registered_at_us,
        registered_seq = registered_seq,
        retired = retired,
        retired_at = retired_at_us,
        deprecated = deprecated,
        circuit = circuit via DefaultIsAbsent,
        revision = revision via Unless<1>,
        registered_by = registered_by,
        revisions = revisions,
    }
}

table! {
    "agent.revisions": AgentRevision = AgentRevision {
        number = number,
        digest = digest,
        package_bytes = package_bytes,
        registered_at = registered_at_us,
        registered_by = registered_by,
    }
}

table! {
    "pin": AgentPin = AgentPin {
        version = version,
        digest = digest,
    }
}
