//! Commands of agents and jobs that have a message of many fields.

use std::sync::Arc;

use atlas_types::{
    AgentKind, AgentName, AgentPin, CarriedEnd, CompleteJob, EndCarried, FailJob, Failure, FencingToken, ForkJob,
    JobId, Micros, ObjectName, Payload, RegisterAgent, Resolution, ResolveJob, RunId, SpawnedBy, Spawner, Step,
    StepUsage, SubmitJob, Timestamp, Verdict,
};

use super::super::approval::{asked_in, asked_out};
use super::super::evidence::{policies_in, policies_out};
use super::super::question::{rule_in, rule_out};
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
            immutable: command.immutable,
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
            immutable: message.immutable,
        })
    }
}

impl From<SpawnedBy> for proto::Spawner {
    fn from(spawner: SpawnedBy) -> Self {
        match spawner {
            SpawnedBy::Attempt(Spawner { job, token }) => Self { job_id: job.0, fencing_token: token.0, run_id: None },
            SpawnedBy::Run { job, run } => Self { job_id: job.0, fencing_token: 0, run_id: Some(run.0) },
        }
    }
}

impl TryFrom<proto::Spawner> for SpawnedBy {
    type Error = FormatError;

    fn try_from(spawner: proto::Spawner) -> Result<Self, FormatError> {
        let job = JobId(spawner.job_id);
        match (spawner.run_id, spawner.fencing_token) {
            (None, token) => Ok(Self::Attempt(Spawner { job, token: FencingToken(token) })),
            (Some(run), 0) => Ok(Self::Run { job, run: RunId(run) }),
            (Some(_), token) => Err(FormatError::Value { field: "spawner.fencing_token", found: token.cast_signed() }),
        }
    }
}

/// Who gives up a child: an attempt, never a run.
pub(super) fn attempt(spawner: proto::Spawner) -> Result<Spawner, FormatError> {
    match SpawnedBy::try_from(spawner)? {
        SpawnedBy::Attempt(spawner) => Ok(spawner),
        SpawnedBy::Run { run, .. } => Err(FormatError::Value { field: "spawner.run_id", found: run.0.cast_signed() }),
    }
}

impl From<&EndCarried> for proto::EndCarried {
    fn from(command: &EndCarried) -> Self {
        use proto::end_carried::End;
        let end = match &command.end {
            CarriedEnd::Completed(output) => End::Completed(output.into()),
            CarriedEnd::Failed { failure, output } => End::Failed(proto::CarriedFailed {
                failure: Some(failure.into()),
                output: output.as_ref().map(Into::into),
            }),
        };
        let metadata = command.metadata.as_deref().map(<[u8]>::to_vec);
        Self { job_id: command.job.0, run_id: command.run.0, end: Some(end), metadata }
    }
}

impl TryFrom<proto::EndCarried> for EndCarried {
    type Error = FormatError;

    fn try_from(message: proto::EndCarried) -> Result<Self, FormatError> {
        use proto::end_carried::End;
        let end = match required("end_carried.end", message.end)? {
            End::Completed(output) => CarriedEnd::Completed(output.try_into()?),
            End::Failed(failed) => CarriedEnd::Failed {
                failure: required("carried_failed.failure", failed.failure)?.try_into()?,
                output: failed.output.map(Payload::try_from).transpose()?,
            },
        };
        let (job, run) = (JobId(message.job_id), RunId(message.run_id));
        Ok(Self { job, run, end, metadata: message.metadata.map(Into::into) })
    }
}

impl From<&ForkJob> for proto::ForkJob {
    fn from(command: &ForkJob) -> Self {
        Self {
            job_id: command.job.0,
            new_job_id: command.id.0,
            steps: command.steps,
            pin: Some((&command.pin).into()),
            model: command.model.as_ref().map(ObjectName::to_string),
            cut: command.cut.as_ref().map(Into::into),
            folded: (command.folded != StepUsage::default()).then(|| command.folded.into()),
            added: command.added.as_deref().map(Into::into),
        }
    }
}

impl TryFrom<proto::ForkJob> for ForkJob {
    type Error = FormatError;

    fn try_from(message: proto::ForkJob) -> Result<Self, FormatError> {
        Ok(Self {
            job: JobId(message.job_id),
            id: JobId(message.new_job_id),
            steps: message.steps,
            pin: required("fork_job.pin", message.pin)?.try_into()?,
            model: message.model.map(|model| name("fork_job.model", &model, ObjectName::new)).transpose()?,
            cut: message.cut.map(Payload::try_from).transpose()?,
            folded: message.folded.map_or_else(StepUsage::default, Into::into),
            added: message.added.map(Step::try_from).transpose()?.map(Arc::new),
        })
    }
}

impl From<&SubmitJob> for proto::SubmitJob {
    fn from(command: &SubmitJob) -> Self {
        use proto::submit_job::Verdict as Found;
        let verdict = match &command.verdict {
            Verdict::Accepted(pin) => Found::Accepted(pin.into()),
            Verdict::Asked { pin, asks } => Found::Asked(asked_out(pin, asks)),
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
            budget_nanodollars: command.budget_nanodollars,
            context: command.context.as_ref().map(Into::into),
            questions: rule_out(&command.questions),
            policies: policies_out(&command.policies),
            waits_for_node: command.waits_for_node,
        }
    }
}

impl TryFrom<proto::SubmitJob> for SubmitJob {
    type Error = FormatError;

    fn try_from(message: proto::SubmitJob) -> Result<Self, FormatError> {
        use proto::submit_job::Verdict as Found;
        let verdict = match required("submit_job.verdict", message.verdict)? {
            Found::Accepted(pin) => Verdict::Accepted(pin.try_into()?),
            Found::Asked(asked) => asked_in(asked)?,
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
            spawner: message.spawner.map(SpawnedBy::try_from).transpose()?,
            not_before: message.not_before_us.map(Timestamp),
            bearer: message.bearer,
            budget_nanodollars: message.budget_nanodollars,
            context: message.context.map(Payload::try_from).transpose()?,
            questions: rule_in(message.questions),
            policies: policies_in(message.policies)?,
            waits_for_node: message.waits_for_node,
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
