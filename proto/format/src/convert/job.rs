//! Jobs.

use std::sync::Arc;

use atlas_types::{
    AgentName, AgentPin, Attempt, Carried, ClusterTime, Door, Evidence, Failure, Fork, Job, JobId, JobStatus, Journal,
    Lease, Micros, Namespace, NodeId, ObjectName, Parked, Payload, Principal, Reason, RequestId, Route, RunId, RunSpec,
    Seq, Spawned, Timestamp, TraceContext,
};

use super::approval::approvals_in;
use super::question::{rule_in, rule_out};
use super::{EnumField as _, enum_field, labels_in, labels_out, name, origin, required};
use crate::{FormatError, proto};

enum_field!(JobStatus, proto::JobStatus, {
    Pending = Pending,
    Running = Running,
    Completed = Completed,
    Failed = Failed,
    Cancelled = Cancelled,
});

impl From<Reason> for proto::Reason {
    fn from(reason: Reason) -> Self {
        let (kind, until_us) = match reason {
            Reason::Queued => (proto::ReasonKind::Queued, 0),
            Reason::Backoff { until } => (proto::ReasonKind::Backoff, until.0),
            Reason::Lost => (proto::ReasonKind::Lost, 0),
            Reason::Parked => (proto::ReasonKind::Parked, 0),
            Reason::InDoubt => (proto::ReasonKind::InDoubt, 0),
            Reason::Running => (proto::ReasonKind::Running, 0),
            Reason::Cancelling => (proto::ReasonKind::Cancelling, 0),
            Reason::Delayed { until } => (proto::ReasonKind::Delayed, until.0),
            Reason::Routing { until } => (proto::ReasonKind::Routing, until.0),
            Reason::Approval => (proto::ReasonKind::Approval, 0),
        };
        Self { kind: kind.into(), until_us }
    }
}

impl TryFrom<proto::Reason> for Reason {
    type Error = FormatError;

    fn try_from(reason: proto::Reason) -> Result<Self, FormatError> {
        let kind = proto::ReasonKind::try_from(reason.kind).unwrap_or(proto::ReasonKind::Unspecified);
        let read = match kind {
            proto::ReasonKind::Unspecified => {
                return Err(FormatError::Value { field: "reason.kind", found: reason.kind.into() });
            }
            kind if !matches!(
                kind,
                proto::ReasonKind::Backoff | proto::ReasonKind::Delayed | proto::ReasonKind::Routing
            ) && reason.until_us != 0 =>
            {
                return Err(FormatError::Value { field: "reason.until_us", found: reason.until_us.cast_signed() });
            }
            proto::ReasonKind::Queued => Self::Queued,
            proto::ReasonKind::Backoff => Self::Backoff { until: ClusterTime(reason.until_us) },
            proto::ReasonKind::Routing => Self::Routing { until: ClusterTime(reason.until_us) },
            proto::ReasonKind::Approval => Self::Approval,
            proto::ReasonKind::Lost => Self::Lost,
            proto::ReasonKind::InDoubt => Self::InDoubt,
            proto::ReasonKind::Parked => Self::Parked,
            proto::ReasonKind::Running => Self::Running,
            proto::ReasonKind::Cancelling => Self::Cancelling,
            proto::ReasonKind::Delayed => Self::Delayed { until: ClusterTime(reason.until_us) },
        };
        Ok(read)
    }
}

impl From<&Job> for proto::Job {
    fn from(job: &Job) -> Self {
        Self {
            namespace: job.namespace.to_string(),
            job_id: job.id.0,
            agent_name: job.agent.to_string(),
            pin: job.pin.as_ref().map(Into::into),
            spec: job.spec.as_deref().map(Into::into),
            status: proto::JobStatus::from(job.status).into(),
            reason: Some(job.reason.into()),
            priority: job.priority,
            queue_seq: job.queue_seq,
            submitted_seq: job.submitted_seq.0,
            input: Some((&job.input).into()),
            output: job.output.as_ref().map(Into::into),
            failure: job.failure.as_ref().map(Into::into),
            created_at_us: job.created_at.0,
            started_at_us: job.started_at.0,
            completed_at_us: job.completed_at.0,
            queued_at_us: job.queued_at.0,
            warmup_us: job.warmup.0,
            execution_us: job.execution.0,
            warm: job.warm,
            attempt: job.attempt.0,
            lease: job.lease.as_deref().map(Into::into),
            carried: job.carried.map(|carried| proto::Carried { run_id: carried.run.0, since_us: carried.since.0 }),
            retry_count: job.retry_count,
            original_job_id: job.original.map(|id| id.0),
            successor_job_id: job.successor.map(|id| id.0),
            metadata: job.metadata.to_vec(),
            labels: labels_out(&job.labels),
            execution_timeout_us: job.execution_timeout.map(|timeout| timeout.0),
            principal: job.principal.to_string(),
            door: proto::Door::from(job.door).into(),
            request_id: job.request_id.as_ref().map(RequestId::to_string),
            trace: job.trace.map(Into::into),
            stream: job.stream.as_ref().map(Into::into),
            node_id: job.node.as_ref().map(NodeId::to_string),
            spawned: job.spawned.map(|spawned| proto::Spawned {
                parent_job_id: spawned.by.0,
                depth: spawned.depth,
                awaited: spawned.awaited,
            }),
            journal: job.journal.as_deref().map(Into::into),
            parks: job.parks,
            used_us: job.used.0,
            parked: job.parked.as_deref().map(Into::into),
            slept_until_us: job.slept_until.0,
            bearer: job.bearer,
            budget_nanodollars: job.budget_nanodollars,
            step: job.step.map(Into::into),
            context: job.context.as_ref().map(Into::into),
            fork: job.fork.as_deref().map(Into::into),
            questions: rule_out(&job.questions),
            route: job.route.as_deref().map(Into::into),
            evidence: job.evidence.as_deref().map(Into::into),
            approvals: job.approvals.as_deref().map(Into::into),
            waits_for_node: job.waits_for_node,
        }
    }
}

impl From<&Fork> for proto::Fork {
    fn from(fork: &Fork) -> Self {
        let model = fork.model.as_ref().map(ObjectName::to_string);
        Self { job_id: fork.from.0, steps: fork.steps, changed: fork.changed, model }
    }
}

impl TryFrom<proto::Fork> for Fork {
    type Error = FormatError;

    fn try_from(fork: proto::Fork) -> Result<Self, FormatError> {
        let model = fork.model.map(|model| name("fork.model", &model, ObjectName::new)).transpose()?;
        Ok(Self { from: JobId(fork.job_id), steps: fork.steps, changed: fork.changed, model })
    }
}

impl TryFrom<proto::Job> for Job {
    type Error = FormatError;

    fn try_from(job: proto::Job) -> Result<Self, FormatError> {
        let agent = name("job.agent_name", &job.agent_name, AgentName::new)?;
        let approvals = job.approvals.map(|approvals| approvals_in(approvals, &agent));
        Ok(Self {
            namespace: name("job.namespace", &job.namespace, Namespace::new)?,
            id: JobId(job.job_id),
            agent,
            pin: job.pin.map(AgentPin::try_from).transpose()?,
            spec: job.spec.map(RunSpec::try_from).transpose()?.map(Arc::new),
            status: JobStatus::read("job.status", job.status)?,
            reason: required("job.reason", job.reason)?.try_into()?,
            priority: job.priority,
            queue_seq: job.queue_seq,
            submitted_seq: Seq(job.submitted_seq),
            input: required("job.input", job.input)?.try_into()?,
            output: job.output.map(Payload::try_from).transpose()?,
            failure: job.failure.map(Failure::try_from).transpose()?,
            created_at: Timestamp(job.created_at_us),
            started_at: Timestamp(job.started_at_us),
            completed_at: Timestamp(job.completed_at_us),
            queued_at: ClusterTime(job.queued_at_us),
            warmup: Micros(job.warmup_us),
            execution: Micros(job.execution_us),
            warm: job.warm,
            attempt: Attempt(job.attempt),
            lease: job.lease.map(Lease::try_from).transpose()?.map(Arc::new),
            carried: job
                .carried
                .map(|carried| Carried { run: RunId(carried.run_id), since: ClusterTime(carried.since_us) }),
            retry_count: job.retry_count,
            original: job.original_job_id.map(JobId),
            successor: job.successor_job_id.map(JobId),
            metadata: job.metadata.into(),
            labels: Arc::new(labels_in("job.labels", job.labels)?),
            execution_timeout: job.execution_timeout_us.map(Micros),
            principal: name("job.principal", &job.principal, Principal::new)?,
            door: Door::read("job.door", job.door)?,
            request_id: origin::request_id("job.request_id", job.request_id.as_deref())?,
            trace: job.trace.map(TraceContext::try_from).transpose()?,
            stream: job.stream.map(Payload::try_from).transpose()?,
            node: job.node_id.map(|node| name("job.node_id", &node, NodeId::new)).transpose()?,
            spawned: job.spawned.map(|spawned| Spawned {
                by: JobId(spawned.parent_job_id),
                depth: spawned.depth,
                awaited: spawned.awaited,
            }),
            journal: job.journal.map(Journal::try_from).transpose()?.map(Arc::new),
            parks: job.parks,
            used: Micros(job.used_us),
            parked: job.parked.map(Parked::try_from).transpose()?.map(Arc::new),
            slept_until: Timestamp(job.slept_until_us),
            bearer: job.bearer,
            budget_nanodollars: job.budget_nanodollars,
            step: job.step.map(Into::into),
            context: job.context.map(Payload::try_from).transpose()?,
            fork: job.fork.map(Fork::try_from).transpose()?.map(Arc::new),
            questions: rule_in(job.questions),
            route: job.route.map(Route::try_from).transpose()?.map(Arc::new),
            evidence: job.evidence.map(Evidence::try_from).transpose()?.map(Arc::new),
            approvals: approvals.transpose()?.map(Arc::new),
            waits_for_node: job.waits_for_node,
        })
    }
}
