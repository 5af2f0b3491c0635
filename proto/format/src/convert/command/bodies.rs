//! Commands of agents and jobs that have a message of many fields.

use atlas_types::{
    AgentPin, CarriedEnd, CompleteJob, EndCarried, FailJob, FencingToken, ForkJob, JobId, Payload, RegisterAgent,
    Resolution, ResolveJob, RunId, SpawnedBy, Spawner, Verdict,
};

use super::super::approval::{asked_in, asked_out};
use crate::convert::required;
use crate::convert::table::{DefaultIsAbsent, Field, message, table};
use crate::{FormatError, proto};

table! {
    "register_agent": RegisterAgent = RegisterAgent {
        name = name,
        version = version,
        digest = digest,
        package_bytes = package_bytes,
        kind = kind,
        capabilities = capabilities,
        contract = contract,
        spec = spec,
        labels = labels,
        immutable = immutable,
    }
}

impl From<&SpawnedBy> for proto::Spawner {
    fn from(spawner: &SpawnedBy) -> Self {
        match *spawner {
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

message!(SpawnedBy = Spawner);

/// Who gives up a child: an attempt, never a run.
impl Field<Option<proto::Spawner>> for Spawner {
    fn write(&self) -> Option<proto::Spawner> {
        SpawnedBy::Attempt(*self).write()
    }

    fn read(field: &'static str, stored: Option<proto::Spawner>) -> Result<Self, FormatError> {
        match SpawnedBy::read(field, stored)? {
            SpawnedBy::Attempt(spawner) => Ok(spawner),
            SpawnedBy::Run { run, .. } => {
                Err(FormatError::Value { field: "spawner.run_id", found: run.0.cast_signed() })
            }
        }
    }
}

table! {
    "end_carried": EndCarried = EndCarried {
        job = job_id,
        run = run_id,
        end = end,
        metadata = metadata,
    }
}

impl From<&CarriedEnd> for proto::end_carried::End {
    fn from(end: &CarriedEnd) -> Self {
        match end {
            CarriedEnd::Completed(output) => Self::Completed(output.into()),
            CarriedEnd::Failed { failure, output } => Self::Failed(proto::CarriedFailed {
                failure: Some(failure.into()),
                output: output.as_ref().map(Into::into),
            }),
        }
    }
}

impl TryFrom<proto::end_carried::End> for CarriedEnd {
    type Error = FormatError;

    fn try_from(end: proto::end_carried::End) -> Result<Self, FormatError> {
        use proto::end_carried::End;
        Ok(match end {
            End::Completed(output) => Self::Completed(output.try_into()?),
            End::Failed(failed) => Self::Failed {
                failure: required("carried_failed.failure", failed.failure)?.try_into()?,
                output: failed.output.map(Payload::try_from).transpose()?,
            },
        })
    }
}

table! {
    "fork_job": ForkJob = ForkJob {
        job = job_id,
        id = new_job_id,
        steps = steps,
        pin = pin,
        model = model,
        cut = cut,
        folded = folded via DefaultIsAbsent,
        added = added,
    }
}

impl From<&Verdict> for proto::submit_job::Verdict {
    fn from(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Accepted(pin) => Self::Accepted(pin.into()),
            Verdict::Asked { pin, asks } => Self::Asked(asked_out(pin, asks)),
            Verdict::Refused { pin, failure } => {
                Self::Refused(proto::Refused { pin: pin.as_ref().map(Into::into), failure: Some(failure.into()) })
            }
        }
    }
}

impl TryFrom<proto::submit_job::Verdict> for Verdict {
    type Error = FormatError;

    fn try_from(verdict: proto::submit_job::Verdict) -> Result<Self, FormatError> {
        use proto::submit_job::Verdict as Found;
        Ok(match verdict {
            Found::Accepted(pin) => Self::Accepted(pin.try_into()?),
            Found::Asked(asked) => asked_in(asked)?,
            Found::Refused(refused) => Self::Refused {
                pin: refused.pin.map(AgentPin::try_from).transpose()?,
                failure: required("refused.failure", refused.failure)?.try_into()?,
            },
        })
    }
}

table! {
    "complete_job": CompleteJob = CompleteJob {
        job = job_id,
        node = node_id,
        token = fencing_token,
        output = output,
        usage = usage,
        metadata = metadata,
        stream = stream,
    }
}

table! {
    "fail_job": FailJob = FailJob {
        job = job_id,
        node = node_id,
        token = fencing_token,
        failure = failure,
        output = output,
        usage = usage,
        metadata = metadata,
        stream = stream,
    }
}

table! {
    "resolve_job": ResolveJob = ResolveJob {
        job = job_id,
        resolution = resolution,
    }
}

impl From<&Resolution> for proto::resolve_job::Resolution {
    fn from(resolution: &Resolution) -> Self {
        match resolution {
            Resolution::RunAgain => Self::RunAgain(proto::RunAgain {}),
            Resolution::Completed(output) => Self::Completed(output.into()),
            Resolution::Failed(error) => Self::Failed(error.to_string()),
        }
    }
}

impl TryFrom<proto::resolve_job::Resolution> for Resolution {
    type Error = FormatError;

    fn try_from(resolution: proto::resolve_job::Resolution) -> Result<Self, FormatError> {
        use proto::resolve_job::Resolution as Found;
        Ok(match resolution {
            Found::RunAgain(proto::RunAgain {}) => Self::RunAgain,
            Found::Completed(output) => Self::Completed(output.try_into()?),
            Found::Failed(error) => Self::Failed(error.into()),
        })
    }
}

message!(CarriedEnd = end_carried::End, Resolution = resolve_job::Resolution, Verdict = submit_job::Verdict);
