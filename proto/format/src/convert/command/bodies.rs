//! Commands of agents and jobs that have a message of many fields.

use std::sync::Arc;

use atlas_types::{
    AgentKind, AgentName, AgentPin, CompleteJob, FailJob, Failure, FencingToken, JobId, Micros, Payload, RegisterAgent,
    Resolution, ResolveJob, Spawner, SubmitJob, Timestamp, Verdict,
};

use super::node;
use crate::convert::{EnumField as _, digest, labels_in, labels_out, name, required};
use crate::{FormatError, proto};

impl From<&RegisterAgent> for proto::RegisterAgent {
    fn from(command: &RegisterAgent) -> Self {
        Self {
            name: command.name.to_string(),
            version: Some(command.version.into()),
            digest: command.digest.0.to_vec(),
            package_bytes: command.package_bytes,
            kind: proto::AgentKind::from(command.kind).into(),
            capabilities: command.capabilities.clone(),
            contract: Some((&command.contract).into()),
            spec: Some((&*command.spec).into()),
            labels: labels_out(&command.labels),
        }
    }
}

impl TryFrom<proto::RegisterAgent> for RegisterAgent {
    type Error = FormatError;

    fn try_from(message: proto::RegisterAgent) -> Result<Self, FormatError> {
        Ok(Self {
            name: name("register_agent.name", &message.name, AgentName::new)?,
            version: required("register_agent.version", message.version)?.into(),
            digest: digest("register_agent.digest", &message.digest)?,
            package_bytes: message.package_bytes,
            kind: AgentKind::read("register_agent.kind", message.kind)?,
            capabilities: message.capabilities,
            contract: required("register_agent.contract", message.contract)?.try_into()?,
            spec: Arc::new(required("register_agent.spec", message.spec)?.try_into()?),
            labels: labels_in("register_agent.labels", message.labels)?,
        })
    }
}

impl From<Spawner> for proto::Spawner {
    fn from(spawner: Spawner) -> Self {
        Self { job_id: spawner.job.0, fencing_token: spawner.token.0 }
    }
}

impl From<proto::Spawner> for Spawner {
    fn from(spawner: proto::Spawner) -> Self {
        Self { job: JobId(spawner.job_id), token: FencingToken(spawner.fencing_token) }
    }
}

impl From<&SubmitJob> for proto::SubmitJob {
    fn from(command: &SubmitJob) -> Self {
        use proto::submit_job::Verdict as Found;
        let verdict = match &command.verdict {
            Verdict::Accepted(pin) => Found::Accepted(pin.into()),
            Verdict::Refused { pin, failure } => {
                Found::Refused(proto::Refused { pin: pin.as_ref().map(Into::into), failure: Some(failure.into()) })
            }
        };
        Self {
            job_id: command.id.0,
            agent_name: command.agent.to_string(),
            verdict: Some(verdict),
            input: Some((&command.input).into()),
            priority: command.priority,
            metadata: command.metadata.to_vec(),
            labels: labels_out(&command.labels),
            execution_timeout_us: command.execution_timeout.map(|timeout| timeout.0),
            spawner: command.spawner.map(Into::into),
            not_before_us: command.not_before.map(|time| time.0),
            bearer: command.bearer,
        }
    }
}

impl TryFrom<proto::SubmitJob> for SubmitJob {
    type Error = FormatError;

    fn try_from(message: proto::SubmitJob) -> Result<Self, FormatError> {
        use proto::submit_job::Verdict as Found;
        let verdict = match required("submit_job.verdict", message.verdict)? {
            Found::Accepted(pin) => Verdict::Accepted(pin.try_into()?),
            Found::Refused(refused) => Verdict::Refused {
                pin: refused.pin.map(AgentPin::try_from).transpose()?,
                failure: required("refused.failure", refused.failure)?.try_into()?,
            },
        };
        Ok(Self {
            id: JobId(message.job_id),
            agent: name("submit_job.agent_name", &message.agent_name, AgentName::new)?,
            verdict,
            input: required("submit_job.input", message.input)?.try_into()?,
            priority: message.priority,
            metadata: message.metadata.into(),
            labels: Arc::new(labels_in("submit_job.labels", message.labels)?),
            execution_timeout: message.execution_timeout_us.map(Micros),
            spawner: message.spawner.map(Into::into),
            not_before: message.not_before_us.map(Timestamp),
            bearer: message.bearer,
        })
    }
}

impl From<&CompleteJob> for proto::CompleteJob {
    fn from(command: &CompleteJob) -> Self {
        Self {
            job_id: command.job.0,
            node_id: command.node.to_string(),
            fencing_token: command.token.0,
            output: Some((&command.output).into()),
            usage: Some(command.usage.into()),
            metadata: command.metadata.as_deref().map(<[u8]>::to_vec),
            stream: command.stream.as_ref().map(Into::into),
        }
    }
}

impl TryFrom<proto::CompleteJob> for CompleteJob {
    type Error = FormatError;

    fn try_from(message: proto::CompleteJob) -> Result<Self, FormatError> {
        Ok(Self {
            job: JobId(message.job_id),
            node: node("complete_job.node_id", &message.node_id)?,
            token: FencingToken(message.fencing_token),
            output: required("complete_job.output", message.output)?.try_into()?,
            usage: required("complete_job.usage", message.usage)?.into(),
            metadata: message.metadata.map(Into::into),
            stream: message.stream.map(Payload::try_from).transpose()?,
        })
    }
}

impl From<&FailJob> for proto::FailJob {
    fn from(command: &FailJob) -> Self {
        Self {
            job_id: command.job.0,
            node_id: command.node.to_string(),
            fencing_token: command.token.0,
            failure: Some((&command.failure).into()),
            output: command.output.as_ref().map(Into::into),
            usage: Some(command.usage.into()),
            metadata: command.metadata.as_deref().map(<[u8]>::to_vec),
            stream: command.stream.as_ref().map(Into::into),
        }
    }
}

impl TryFrom<proto::FailJob> for FailJob {
    type Error = FormatError;

    fn try_from(message: proto::FailJob) -> Result<Self, FormatError> {
        Ok(Self {
            job: JobId(message.job_id),
            node: node("fail_job.node_id", &message.node_id)?,
            token: FencingToken(message.fencing_token),
            failure: Failure::try_from(required("fail_job.failure", message.failure)?)?,
            output: message.output.map(Payload::try_from).transpose()?,
            usage: required("fail_job.usage", message.usage)?.into(),
            metadata: message.metadata.map(Into::into),
            stream: message.stream.map(Payload::try_from).transpose()?,
        })
    }
}

impl From<&ResolveJob> for proto::ResolveJob {
    fn from(command: &ResolveJob) -> Self {
        use proto::resolve_job::Resolution as Found;
        let resolution = match &command.resolution {
            Resolution::RunAgain => Found::RunAgain(proto::RunAgain {}),
            Resolution::Completed(output) => Found::Completed(output.into()),
            Resolution::Failed(error) => Found::Failed(error.to_string()),
        };
        Self { job_id: command.job.0, resolution: Some(resolution) }
    }
}

impl TryFrom<proto::ResolveJob> for ResolveJob {
    type Error = FormatError;

    fn try_from(message: proto::ResolveJob) -> Result<Self, FormatError> {
        use proto::resolve_job::Resolution as Found;
        let resolution = match required("resolve_job.resolution", message.resolution)? {
            Found::RunAgain(proto::RunAgain {}) => Resolution::RunAgain,
            Found::Completed(output) => Resolution::Completed(output.try_into()?),
            Found::Failed(error) => Resolution::Failed(error.into()),
        };
        Ok(Self { job: JobId(message.job_id), resolution })
    }
}
