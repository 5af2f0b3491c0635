//! Leases: assignments to a worker, and the leases that it reports.

use atlas_types::{
    AgentName, Allocation, AssignedJournal, Assignment, Attachments, Attempt, FencingToken, GpuShare, HeldLease, JobId,
    Namespace, Payload, Place,
};
use bytes::Bytes;

use super::artifact::{digest_in, digest_out};
use super::time::{duration_in, duration_out, trace_in, trace_out};
use super::{ConvertError, bounded, metadata, name, required};
use crate::limits::INVENTORY_ITEMS_MAX;
use crate::proto::worker::v1 as pb;

impl From<Assignment> for pb::Assignment {
    fn from(assignment: Assignment) -> Self {
        Self {
            job_id: assignment.job.0,
            namespace: assignment.namespace.to_string(),
            fencing_token: assignment.token.0,
            attempt: assignment.attempt.0,
            agent_name: assignment.agent.to_string(),
            version: assignment.version.to_string(),
            digest: digest_out(assignment.digest),
            package_bytes: assignment.package_bytes,
            input: Some(assignment.input.into()),
            metadata: Bytes::from_owner(assignment.metadata),
            allocation: Some(assignment.allocation.into()),
            startup_timeout: Some(duration_out(assignment.startup_timeout)),
            execution_timeout: Some(duration_out(assignment.execution_timeout)),
            submitted_timeout: assignment.submitted_timeout.map(duration_out),
            needs_start: assignment.needs_start,
            retry_count: assignment.retry_count,
            traceparent: trace_out(assignment.trace),
            spawn: assignment.spawn.map(Into::into),
            lacks: assignment.lacks.map(|why| why.to_string()).unwrap_or_default(),
            journal: assignment.journal.map(|journal| (*journal).into()),
            attachments: Some(assignment.attachments).filter(|all| !all.is_empty()).map(Into::into),
            budget_nanodollars: assignment.budget_nanodollars,
            context: assignment.context.map(Into::into),
            fork_steps: assignment.fork_steps,
        }
    }
}

impl TryFrom<pb::Assignment> for Assignment {
    type Error = ConvertError;

    fn try_from(assignment: pb::Assignment) -> Result<Self, ConvertError> {
        let version = assignment.version.parse();
        Ok(Self {
            namespace: name("assignment.namespace", &assignment.namespace, Namespace::new)?,
            job: JobId(assignment.job_id),
            token: FencingToken(assignment.fencing_token),
            attempt: Attempt(assignment.attempt),
            agent: name("assignment.agent_name", &assignment.agent_name, AgentName::new)?,
            version: version.map_err(|source| ConvertError::Version { field: "assignment.version", source })?,
            digest: digest_in("assignment.digest", &assignment.digest)?,
            package_bytes: assignment.package_bytes,
            input: required("assignment.input", assignment.input)?.try_into()?,
            metadata: metadata("assignment.metadata", &assignment.metadata)?,
            allocation: required("assignment.allocation", assignment.allocation)?.try_into()?,
            startup_timeout: duration_in("assignment.startup_timeout", assignment.startup_timeout)?,
            execution_timeout: duration_in("assignment.execution_timeout", assignment.execution_timeout)?,
            submitted_timeout: assignment
                .submitted_timeout
                .map(|timeout| duration_in("assignment.submitted_timeout", Some(timeout)))
                .transpose()?,
            needs_start: assignment.needs_start,
            retry_count: assignment.retry_count,
            trace: trace_in("assignment.traceparent", &assignment.traceparent)?,
            spawn: assignment.spawn.map(Into::into),
            lacks: Some(assignment.lacks).filter(|why| !why.is_empty()).map(Into::into),
            journal: assignment.journal.map(AssignedJournal::try_from).transpose()?.map(Box::new),
            attachments: assignment.attachments.map(Attachments::try_from).transpose()?.unwrap_or_default(),
            budget_nanodollars: assignment.budget_nanodollars,
            context: assignment.context.map(Payload::try_from).transpose()?,
            fork_steps: assignment.fork_steps,
        })
    }
}

impl From<Allocation> for pb::Allocation {
    fn from(allocation: Allocation) -> Self {
        let share = |share: GpuShare| pb::GpuShare { index: share.index, vram_bytes: share.vram_bytes };
        let place = match allocation.place {
            Place::Process => pb::Place::Unspecified,
            Place::Llm => pb::Place::Llm,
        };
        Self {
            cores: allocation.cores,
            memory_bytes: allocation.memory_bytes,
            gpus: allocation.gpus.into_iter().map(share).collect(),
            place: place.into(),
        }
    }
}

impl TryFrom<pb::Allocation> for Allocation {
    type Error = ConvertError;

    fn try_from(allocation: pb::Allocation) -> Result<Self, ConvertError> {
        bounded("allocation.gpus", allocation.gpus.len(), INVENTORY_ITEMS_MAX)?;
        let share = |share: pb::GpuShare| GpuShare { index: share.index, vram_bytes: share.vram_bytes };
        let place = match pb::Place::try_from(allocation.place) {
            Ok(pb::Place::Unspecified) => Place::Process,
            Ok(pb::Place::Llm) => Place::Llm,
            Err(unknown) => return Err(ConvertError::Value { field: "allocation.place", found: unknown.0.into() }),
        };
        Ok(Self {
            cores: allocation.cores,
            memory_bytes: allocation.memory_bytes,
            gpus: allocation.gpus.into_iter().map(share).collect(),
            place,
        })
    }
}

impl From<HeldLease> for pb::HeldLease {
    fn from(lease: HeldLease) -> Self {
        Self { job_id: lease.job.0, fencing_token: lease.token.0, attempt: lease.attempt.0 }
    }
}

impl From<pb::HeldLease> for HeldLease {
    fn from(lease: pb::HeldLease) -> Self {
        Self { job: JobId(lease.job_id), token: FencingToken(lease.fencing_token), attempt: Attempt(lease.attempt) }
    }
}
