//! Jobs, and their submission.

use atlas_types::{Carried, ClusterTime, Fork, Job, JobStatus, Reason, Spawned, SubmitJob};

use super::approval::with_agents;
use super::enum_field;
use super::table::{message, table};
use crate::{FormatError, proto};

enum_field!(JobStatus, proto::JobStatus, {
    Pending = Pending,
    Running = Running,
    Completed = Completed,
    Failed = Failed,
    Cancelled = Cancelled,
});

impl From<&Reason> for proto::Reason {
    fn from(reason: &Reason) -> Self {
        let (kind, until_us) = match *reason {
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

message!(Reason = Reason);

table! {
    "job": Job = Job from with_agents {
        namespace = namespace,
        id = job_id,
        agent = agent_name,
        pin = pin,
        spec = spec,
        status = status,
        reason = reason,
        priority = priority,
        queue_seq = queue_seq,
        submitted_seq = submitted_seq,
        input = input,
        output = output,
        failure = failure,
        created_at = created_at_us,
        started_at = started_at_us,
        completed_at = completed_at_us,
        queued_at = queued_at_us,
        warmup = warmup_us,
        execution = execution_us,
        warm = warm,
        attempt = attempt,
        lease = lease,
        carried = carried,
        retry_count = retry_count,
        original = original_job_id,
        successor = successor_job_id,
        metadata = metadata,
        labels = labels,
        execution_timeout = execution_timeout_us,
        principal = principal,
        door = door,
        request_id = request_id,
        trace = trace,
        stream = stream,
        node = node_id,
        spawned = spawned,
        journal = journal,
        parks = parks,
        used = used_us,
        parked = parked,
        slept_until = slept_until_us,
        bearer = bearer,
        budget_nanodollars = budget_nanodollars,
        step = step,
        context = context,
        fork = fork,
        questions = questions,
        route = route,
        evidence = evidence,
        approvals = approvals,
        waits_for_node = waits_for_node,
        title = title,
    }
}

table! {
    "submit_job": SubmitJob = SubmitJob {
        id = job_id,
        agent = agent_name,
        verdict = verdict,
        input = input,
        priority = priority,
        metadata = metadata,
        labels = labels,
        execution_timeout = execution_timeout_us,
        spawner = spawner,
        not_before = not_before_us,
        bearer = bearer,
        budget_nanodollars = budget_nanodollars,
        context = context,
        questions = questions,
        policies = policies,
        waits_for_node = waits_for_node,
        title = title,
    }
}

table! {
    "carried": Carried = Carried {
        run = run_id,
        since = since_us,
    }
}

table! {
    "spawned": Spawned = Spawned {
        by = parent_job_id,
        depth = depth,
        awaited = awaited,
    }
}

table! {
    "fork": Fork = Fork {
        from = job_id,
        steps = steps,
        changed = changed,
        model = model,
    }
}
