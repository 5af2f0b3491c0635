//! The answers to commands.

use atlas_types::{
    Attempt, ClusterTime, EventSeq, FencingToken, JobId, JobStatus, Level, MemberId, MessageId, NodeEpoch, NodeId,
    Outcome, Rejection, RunId, StepKey, StepKind,
};

use super::table::Field as _;
use super::{fixed, name, required};
use crate::FormatError;
use crate::proto::outcome::Kind;
use crate::proto::{self, RejectionKind};

impl From<&Outcome> for proto::Outcome {
    fn from(outcome: &Outcome) -> Self {
        let kind = match outcome {
            Outcome::Done => Kind::Done(proto::Done {}),
            Outcome::Submitted { job, repeated } => {
                Kind::Submitted(proto::Submitted { job_id: job.0, repeated: *repeated })
            }
            Outcome::Granted { token, attempt } => {
                Kind::Granted(proto::Granted { fencing_token: token.0, attempt: attempt.0 })
            }
            Outcome::Ended { status, retry } => Kind::Ended(proto::Ended {
                status: proto::JobStatus::from(*status).into(),
                retry_job_id: retry.map(|id| id.0),
            }),
            Outcome::Cancelled { accepted } => Kind::Cancelled(proto::Cancelled { accepted: *accepted }),
            Outcome::NodeRegistered { epoch } => Kind::NodeRegistered(proto::NodeRegistered { epoch: epoch.0 }),
            Outcome::Pruned { jobs } => Kind::Pruned(proto::Pruned { jobs: *jobs }),
            Outcome::MemberJoined { member } => Kind::MemberJoined(proto::MemberJoined { member_id: member.0 }),
            Outcome::TokenMade { salt, expires } => {
                Kind::TokenMade(proto::TokenMade { salt: salt.to_be_bytes().to_vec(), expires_us: expires.0 })
            }
            Outcome::Delivered { repeated } => Kind::Delivered(proto::Delivered { repeated: *repeated }),
            Outcome::Parked { ready } => Kind::ParkAnswer(proto::ParkAnswer { ready: *ready }),
            Outcome::ObjectPut { uid, revision } => {
                Kind::ObjectStored(proto::ObjectStored { uid: uid.0, revision: revision.0 })
            }
            Outcome::RunStarted { run } => Kind::RunStarted(proto::RunStarted { run_id: run.0 }),
        };
        Self { kind: Some(kind) }
    }
}

impl TryFrom<proto::Outcome> for Outcome {
    type Error = FormatError;

    fn try_from(outcome: proto::Outcome) -> Result<Self, FormatError> {
        Ok(match required("outcome.kind", outcome.kind)? {
            Kind::Done(proto::Done {}) => Self::Done,
            Kind::Submitted(submitted) => {
                Self::Submitted { job: JobId(submitted.job_id), repeated: submitted.repeated }
            }
            Kind::Granted(granted) => {
                Self::Granted { token: FencingToken(granted.fencing_token), attempt: Attempt(granted.attempt) }
            }
            Kind::Ended(ended) => Self::Ended {
                status: JobStatus::read("ended.status", ended.status)?,
                retry: ended.retry_job_id.map(JobId),
            },
            Kind::Cancelled(cancelled) => Self::Cancelled { accepted: cancelled.accepted },
            Kind::NodeRegistered(registered) => Self::NodeRegistered { epoch: NodeEpoch(registered.epoch) },
            Kind::Pruned(pruned) => Self::Pruned { jobs: pruned.jobs },
            Kind::MemberJoined(joined) => Self::MemberJoined { member: MemberId(joined.member_id) },
            Kind::Delivered(delivered) => Self::Delivered { repeated: delivered.repeated },
            Kind::ParkAnswer(answer) => Self::Parked { ready: answer.ready },
            Kind::TokenMade(made) => Self::TokenMade {
                salt: u128::from_be_bytes(fixed("token_made.salt", &made.salt)?),
                expires: ClusterTime(made.expires_us),
            },
            Kind::ObjectStored(stored) => {
                Self::ObjectPut { uid: EventSeq(stored.uid), revision: EventSeq(stored.revision) }
            }
            Kind::RunStarted(started) => Self::RunStarted { run: RunId(started.run_id) },
        })
    }
}

impl From<&Rejection> for proto::Rejection {
    fn from(rejection: &Rejection) -> Self {
        let plain = |kind: RejectionKind| Self { kind: kind.into(), ..Self::default() };
        let counted = |kind, amount: u64| Self { amount: Some(amount), ..plain(kind) };
        let of_job = |kind, job: &JobId| Self { job_id: Some(job.0), ..plain(kind) };
        match rejection {
            Rejection::QueueFull { active } => counted(RejectionKind::QueueFull, *active),
            Rejection::LimitReached { what, limit } => {
                Self { what: Some((*what).to_owned()), ..counted(RejectionKind::LimitReached, *limit) }
            }
            Rejection::PayloadTooLarge { bytes } => counted(RejectionKind::PayloadTooLarge, *bytes),
            Rejection::RequestConflict => plain(RejectionKind::RequestConflict),
            Rejection::DuplicateJob { job } => of_job(RejectionKind::DuplicateJob, job),
            Rejection::StaleAgent => plain(RejectionKind::StaleAgent),
            Rejection::UnknownAgent => plain(RejectionKind::UnknownAgent),
            Rejection::UnknownJob { job } => of_job(RejectionKind::UnknownJob, job),
            Rejection::WrongStatus { status } => {
                Self { status: proto::JobStatus::from(*status).into(), ..plain(RejectionKind::WrongStatus) }
            }
            Rejection::NotInDoubt { status } => {
                Self { status: proto::JobStatus::from(*status).into(), ..plain(RejectionKind::NotInDoubt) }
            }
            Rejection::LevelTooLow { needed } => counted(RejectionKind::LevelTooLow, needed.0.into()),
            Rejection::Fenced => plain(RejectionKind::Fenced),
            Rejection::UnknownNode { node } => {
                Self { node_id: Some(node.to_string()), ..plain(RejectionKind::UnknownNode) }
            }
            Rejection::NodeUnavailable => plain(RejectionKind::NodeUnavailable),
            Rejection::NodeBusy { leases } => counted(RejectionKind::NodeBusy, *leases),
            Rejection::DoesNotFit => plain(RejectionKind::DoesNotFit),
            Rejection::NotDue => plain(RejectionKind::NotDue),
            Rejection::NotConfirmed => plain(RejectionKind::NotConfirmed),
            Rejection::TokenRefused => plain(RejectionKind::TokenRefused),
            Rejection::SpawnForbidden => plain(RejectionKind::SpawnForbidden),
            Rejection::SpawnTooDeep { depth, max } => {
                Self { bound: Some((*max).into()), ..counted(RejectionKind::SpawnTooDeep, (*depth).into()) }
            }
            Rejection::HardwareHeld => plain(RejectionKind::HardwareHeld),
            Rejection::AgentInService => plain(RejectionKind::AgentInService),
            Rejection::VersionTaken => plain(RejectionKind::VersionTaken),
            Rejection::AgentInUse { jobs } => counted(RejectionKind::AgentInUse, *jobs),
            Rejection::LabelOfWorker { key } => {
                Self { label_key: Some(key.clone()), ..plain(RejectionKind::LabelOfWorker) }
            }
            Rejection::GpuTwice { index } => counted(RejectionKind::GpuTwice, (*index).into()),
            Rejection::StepGap { from, next } => Self { bound: Some(*next), ..counted(RejectionKind::StepGap, *from) },
            Rejection::StepDiffers { step, recorded_kind, recorded, sent_kind, sent } => Self {
                step_recorded: Some(mark_out(*recorded_kind, *recorded)),
                step_sent: Some(mark_out(*sent_kind, *sent)),
                ..counted(RejectionKind::StepDiffers, *step)
            },
            Rejection::StepsFolded { upto, first } => {
                Self { bound: Some(*first), ..counted(RejectionKind::StepsFolded, *upto) }
            }
            Rejection::FoldInline => plain(RejectionKind::FoldInline),
            Rejection::OverBudget { budget, spent } => {
                Self { bound: Some(*budget), ..counted(RejectionKind::OverBudget, *spent) }
            }
            Rejection::BudgetReserved => plain(RejectionKind::BudgetReserved),
            Rejection::NotJournaled => plain(RejectionKind::NotJournaled),
            Rejection::JournalLength { sent, recorded } => {
                Self { bound: Some(*recorded), ..counted(RejectionKind::JournalLength, *sent) }
            }
            Rejection::MessageGap { read, delivered } => {
                Self { bound: Some(*delivered), ..counted(RejectionKind::MessageGap, *read) }
            }
            Rejection::MessageConflict { message } => {
                Self { message_id: Some(message.to_string()), ..plain(RejectionKind::MessageConflict) }
            }
            Rejection::UnknownQuestion => plain(RejectionKind::UnknownQuestion),
            Rejection::QuestionClosed => plain(RejectionKind::QuestionClosed),
            Rejection::NotAnswerer => plain(RejectionKind::NotAnswerer),
            Rejection::Unapproved => plain(RejectionKind::Unapproved),
            Rejection::NothingAwaited => plain(RejectionKind::NothingAwaited),
            Rejection::NeedsRun => plain(RejectionKind::NeedsRun),
            Rejection::NeedsLease => plain(RejectionKind::NeedsLease),
            Rejection::NotCarried => plain(RejectionKind::NotCarried),
            Rejection::RunTaken { job } => of_job(RejectionKind::RunTaken, job),
            Rejection::UnknownRun { run } => Self { run_id: Some(run.0), ..plain(RejectionKind::UnknownRun) },
            Rejection::StaleRun => plain(RejectionKind::StaleRun),
            Rejection::UnknownObject => plain(RejectionKind::UnknownObject),
            Rejection::ObjectChanged { revision } => counted(RejectionKind::ObjectChanged, revision.0),
            Rejection::UnknownObjectKind => plain(RejectionKind::UnknownObjectKind),
            Rejection::ObjectRefused { field } => {
                Self { field: Some(field.clone()), ..plain(RejectionKind::ObjectRefused) }
            }
            Rejection::ObjectInUse { what } => {
                Self { what: Some((*what).to_owned()), ..plain(RejectionKind::ObjectInUse) }
            }
            Rejection::NamespaceLimit { what, limit } => {
                Self { what: Some((*what).to_owned()), ..counted(RejectionKind::NamespaceLimit, *limit) }
            }
            Rejection::RouteOutdated => plain(RejectionKind::RouteOutdated),
            Rejection::Internal => plain(RejectionKind::Internal),
        }
    }
}

impl TryFrom<proto::Rejection> for Rejection {
    type Error = FormatError;

    fn try_from(rejection: proto::Rejection) -> Result<Self, FormatError> {
        let amount = || required("rejection.amount", rejection.amount);
        let job = || required("rejection.job_id", rejection.job_id).map(JobId);
        Ok(match RejectionKind::try_from(rejection.kind).unwrap_or(RejectionKind::Unspecified) {
            RejectionKind::Unspecified => {
                return Err(FormatError::Value { field: "rejection.kind", found: rejection.kind.into() });
            }
            RejectionKind::QueueFull => Self::QueueFull { active: amount()? },
            RejectionKind::LimitReached => {
                Self::LimitReached { what: what(rejection.what.as_deref())?, limit: amount()? }
            }
            RejectionKind::PayloadTooLarge => Self::PayloadTooLarge { bytes: amount()? },
            RejectionKind::RequestConflict => Self::RequestConflict,
            RejectionKind::DuplicateJob => Self::DuplicateJob { job: job()? },
            RejectionKind::StaleAgent => Self::StaleAgent,
            RejectionKind::UnknownAgent => Self::UnknownAgent,
            RejectionKind::UnknownJob => Self::UnknownJob { job: job()? },
            RejectionKind::WrongStatus => {
                Self::WrongStatus { status: JobStatus::read("rejection.status", rejection.status)? }
            }
            RejectionKind::Fenced => Self::Fenced,
            RejectionKind::UnknownNode => {
                let text = required("rejection.node_id", rejection.node_id.as_deref())?;
                Self::UnknownNode { node: name("rejection.node_id", text, NodeId::new)? }
            }
            RejectionKind::NodeUnavailable => Self::NodeUnavailable,
            RejectionKind::NodeBusy => Self::NodeBusy { leases: amount()? },
            RejectionKind::DoesNotFit => Self::DoesNotFit,
            RejectionKind::NotDue => Self::NotDue,
            RejectionKind::NotConfirmed => Self::NotConfirmed,
            RejectionKind::Internal => Self::Internal,
            RejectionKind::RouteOutdated => Self::RouteOutdated,
            RejectionKind::TokenRefused => Self::TokenRefused,
            RejectionKind::NotInDoubt => {
                Self::NotInDoubt { status: JobStatus::read("rejection.status", rejection.status)? }
            }
            RejectionKind::LevelTooLow => Self::LevelTooLow { needed: Level(small(amount()?, "rejection.amount")?) },
            RejectionKind::SpawnForbidden => Self::SpawnForbidden,
            RejectionKind::SpawnTooDeep => Self::SpawnTooDeep {
                depth: small(amount()?, "rejection.amount")?,
                max: small(required("rejection.bound", rejection.bound)?, "rejection.bound")?,
            },
            RejectionKind::HardwareHeld => Self::HardwareHeld,
            RejectionKind::GpuTwice => Self::GpuTwice { index: small(amount()?, "rejection.amount")? },
            RejectionKind::AgentInService => Self::AgentInService,
            RejectionKind::VersionTaken => Self::VersionTaken,
            RejectionKind::AgentInUse => Self::AgentInUse { jobs: amount()? },
            RejectionKind::StepGap => {
                Self::StepGap { from: amount()?, next: required("rejection.bound", rejection.bound)? }
            }
            RejectionKind::StepDiffers => {
                let (recorded_kind, recorded) = mark_in("rejection.step_recorded", rejection.step_recorded.as_ref())?;
                let (sent_kind, sent) = mark_in("rejection.step_sent", rejection.step_sent.as_ref())?;
                Self::StepDiffers { step: amount()?, recorded_kind, recorded, sent_kind, sent }
            }
            RejectionKind::StepsFolded => {
                Self::StepsFolded { upto: amount()?, first: required("rejection.bound", rejection.bound)? }
            }
            RejectionKind::FoldInline => Self::FoldInline,
            RejectionKind::OverBudget => {
                Self::OverBudget { spent: amount()?, budget: required("rejection.bound", rejection.bound)? }
            }
            RejectionKind::BudgetReserved => Self::BudgetReserved,
            RejectionKind::NotJournaled => Self::NotJournaled,
            RejectionKind::JournalLength => {
                Self::JournalLength { sent: amount()?, recorded: required("rejection.bound", rejection.bound)? }
            }
            RejectionKind::MessageGap => {
                Self::MessageGap { read: amount()?, delivered: required("rejection.bound", rejection.bound)? }
            }
            RejectionKind::MessageConflict => {
                let text = required("rejection.message_id", rejection.message_id.as_deref())?;
                Self::MessageConflict { message: name("rejection.message_id", text, MessageId::new)? }
            }
            RejectionKind::UnknownQuestion => Self::UnknownQuestion,
            RejectionKind::QuestionClosed => Self::QuestionClosed,
            RejectionKind::NotAnswerer => Self::NotAnswerer,
            RejectionKind::Unapproved => Self::Unapproved,
            RejectionKind::NothingAwaited => Self::NothingAwaited,
            RejectionKind::NeedsRun => Self::NeedsRun,
            RejectionKind::NeedsLease => Self::NeedsLease,
            RejectionKind::NotCarried => Self::NotCarried,
            RejectionKind::RunTaken => Self::RunTaken { job: job()? },
            RejectionKind::UnknownRun => {
                Self::UnknownRun { run: RunId(required("rejection.run_id", rejection.run_id)?) }
            }
            RejectionKind::StaleRun => Self::StaleRun,
            RejectionKind::UnknownObject => Self::UnknownObject,
            RejectionKind::ObjectChanged => Self::ObjectChanged { revision: EventSeq(amount()?) },
            RejectionKind::UnknownObjectKind => Self::UnknownObjectKind,
            RejectionKind::ObjectRefused => {
                Self::ObjectRefused { field: required("rejection.field", rejection.field)? }
            }
            RejectionKind::ObjectInUse => Self::ObjectInUse { what: what(rejection.what.as_deref())? },
            RejectionKind::NamespaceLimit => {
                Self::NamespaceLimit { what: what(rejection.what.as_deref())?, limit: amount()? }
            }
            RejectionKind::LabelOfWorker => {
                Self::LabelOfWorker { key: required("rejection.label_key", rejection.label_key)? }
            }
        })
    }
}

fn mark_out(kind: StepKind, key: StepKey) -> proto::StepMark {
    proto::StepMark { kind: proto::StepKind::from(kind).into(), key: key.0.to_vec() }
}

fn mark_in(field: &'static str, mark: Option<&proto::StepMark>) -> Result<(StepKind, StepKey), FormatError> {
    let mark = required(field, mark)?;
    Ok((StepKind::read(field, mark.kind)?, StepKey(fixed(field, &mark.key)?)))
}

fn small(amount: u64, field: &'static str) -> Result<u32, FormatError> {
    u32::try_from(amount).map_err(|_| FormatError::Text { field })
}

/// What is bounded: one of the texts that `apply` refuses with.
fn what(text: Option<&str>) -> Result<&'static str, FormatError> {
    let text = required("rejection.what", text)?;
    let known = Rejection::LIMITS.into_iter().find(|&known| known == text);
    known.ok_or(FormatError::Text { field: "rejection.what" })
}
