//! Steps of journals: what attempts record, and what later ones get of it.

use std::sync::Arc;

use atlas_types::{
    AssignedJournal, FOLDS_MAX, FencingToken, Fold, JobId, Journal, Mail, Payload, PayloadBody, Reservation,
    STEP_BYTES, STEPS_BYTES_MAX, Step, StepKey, StepKind, StepUsage, StepsResult, Timestamp,
};
use bytes::Bytes;

use super::artifact::{digest_in, digest_out};
use super::time::{duration_in, duration_out, timestamp_in, timestamp_out};
use super::{ConvertError, bounded, fixed, required};
use crate::limits::TEXT_BYTES_MAX;
use crate::proto::worker::v1 as pb;
use crate::session::ToLeader;

/// Most steps of one frame: none counts less.
const STEPS_MAX: usize = (STEPS_BYTES_MAX / STEP_BYTES) as usize;

pub(super) fn record_out(
    number: u64,
    job: JobId,
    token: FencingToken,
    from: u64,
    steps: &[Arc<Step>],
) -> pb::RecordSteps {
    pb::RecordSteps { number, job_id: job.0, fencing_token: token.0, from, steps: steps_out(steps) }
}

pub(super) fn record_in(frame: pb::RecordSteps) -> Result<ToLeader, ConvertError> {
    let steps = steps_in("record_steps.steps", frame.steps)?;
    let (job, token) = (JobId(frame.job_id), FencingToken(frame.fencing_token));
    Ok(ToLeader::RecordSteps { number: frame.number, job, token, from: frame.from, steps })
}

pub(super) fn fold_out(number: u64, job: JobId, token: FencingToken, fold: &Fold) -> pb::FoldSteps {
    pb::FoldSteps { number, job_id: job.0, fencing_token: token.0, fold: Some(fold.into()) }
}

pub(super) fn fold_in(frame: pb::FoldSteps) -> Result<ToLeader, ConvertError> {
    let fold = required("fold_steps.fold", frame.fold)?.try_into()?;
    let (job, token) = (JobId(frame.job_id), FencingToken(frame.fencing_token));
    Ok(ToLeader::FoldSteps { number: frame.number, job, token, fold })
}

pub(super) fn reserve_out(number: u64, job: JobId, token: FencingToken, call: Reservation) -> pb::ReserveBudget {
    let Reservation { key, nanodollars } = call;
    pb::ReserveBudget { number, job_id: job.0, fencing_token: token.0, key: key.0.to_vec().into(), nanodollars }
}

pub(super) fn reserve_in(frame: &pb::ReserveBudget) -> Result<ToLeader, ConvertError> {
    let key = StepKey(fixed("reserve_budget.key", &frame.key)?);
    let call = Reservation { key, nanodollars: frame.nanodollars };
    let (job, token) = (JobId(frame.job_id), FencingToken(frame.fencing_token));
    Ok(ToLeader::ReserveBudget { number: frame.number, job, token, call })
}

pub(super) fn ack_out(number: u64, result: StepsResult) -> pb::StepsAck {
    let (mut refusal, mut left) = (None, None);
    let result = match result {
        StepsResult::Applied => pb::StepsResult::Applied,
        StepsResult::Fenced => pb::StepsResult::Fenced,
        StepsResult::Busy => pb::StepsResult::Busy,
        StepsResult::NoRoom => pb::StepsResult::NoRoom,
        StepsResult::Refused { step, why } => {
            refusal = Some(pb::StepsRefusal { step, why });
            pb::StepsResult::Refused
        }
        StepsResult::OverBudget { budget, spent } => {
            left = Some(pb::BudgetLeft { budget, spent });
            pb::StepsResult::OverBudget
        }
    };
    pb::StepsAck { number, result: result.into(), refusal, budget: left }
}

pub(super) fn ack_in(ack: pb::StepsAck) -> Result<(u64, StepsResult), ConvertError> {
    let result = match pb::StepsResult::try_from(ack.result).unwrap_or_default() {
        pb::StepsResult::Unspecified => {
            return Err(ConvertError::Value { field: "steps_ack.result", found: ack.result.into() });
        }
        pb::StepsResult::Applied => StepsResult::Applied,
        pb::StepsResult::Fenced => StepsResult::Fenced,
        pb::StepsResult::Busy => StepsResult::Busy,
        pb::StepsResult::NoRoom => StepsResult::NoRoom,
        pb::StepsResult::Refused => {
            let pb::StepsRefusal { step, why } = required("steps_ack.refusal", ack.refusal)?;
            bounded("steps_refusal.why", why.len(), TEXT_BYTES_MAX)?;
            StepsResult::Refused { step, why }
        }
        pb::StepsResult::OverBudget => {
            let pb::BudgetLeft { budget, spent } = required("steps_ack.budget", ack.budget)?;
            StepsResult::OverBudget { budget, spent }
        }
    };
    Ok((ack.number, result))
}

impl From<AssignedJournal> for pb::AssignedJournal {
    fn from(assigned: AssignedJournal) -> Self {
        let AssignedJournal { journal, unfolded, mail, slept_until } = assigned;
        Self {
            folds: journal.folds.iter().map(pb::Fold::from).collect(),
            steps: steps_out(&journal.steps),
            unfolded: unfolded.as_ref().and_then(artifact_out),
            mail: (mail != Mail::default()).then(|| (&mail).into()),
            slept_until: (slept_until != Timestamp::NOT_YET).then(|| timestamp_out(slept_until)),
        }
    }
}

impl TryFrom<pb::AssignedJournal> for AssignedJournal {
    type Error = ConvertError;

    fn try_from(assigned: pb::AssignedJournal) -> Result<Self, ConvertError> {
        bounded("assigned_journal.folds", assigned.folds.len(), FOLDS_MAX as usize)?;
        let folds = assigned.folds.into_iter().map(Fold::try_from).collect::<Result<_, _>>()?;
        let steps = steps_in("assigned_journal.steps", assigned.steps)?;
        let unfolded = assigned.unfolded.as_ref().map(artifact_in).transpose()?;
        let mail = assigned.mail.map(Mail::try_from).transpose()?.unwrap_or_default();
        let slept_until = match assigned.slept_until {
            Some(at) => timestamp_in("assigned_journal.slept_until", Some(at))?,
            None => Timestamp::NOT_YET,
        };
        // A worker reads the folds, so it needs no sum over them.
        let journal = Arc::new(Journal { folds, steps, ..Journal::default() });
        Ok(Self { journal, unfolded, mail, slept_until })
    }
}

impl From<&Fold> for pb::Fold {
    fn from(fold: &Fold) -> Self {
        Self { upto: fold.upto, artifact: artifact_out(&fold.artifact) }
    }
}

impl TryFrom<pb::Fold> for Fold {
    type Error = ConvertError;

    fn try_from(fold: pb::Fold) -> Result<Self, ConvertError> {
        Ok(Self { upto: fold.upto, artifact: artifact_in(&required("fold.artifact", fold.artifact)?)? })
    }
}

/// None for an inline payload: folded steps are never inline.
fn artifact_out(payload: &Payload) -> Option<pb::Artifact> {
    match payload.body {
        PayloadBody::Artifact { digest, size_bytes } => Some(pb::Artifact { digest: digest_out(digest), size_bytes }),
        PayloadBody::Inline(_) => None,
    }
}

fn artifact_in(artifact: &pb::Artifact) -> Result<Payload, ConvertError> {
    let digest = digest_in("artifact.digest", &artifact.digest)?;
    Ok(Payload { key_id: 0, body: PayloadBody::Artifact { digest, size_bytes: artifact.size_bytes } })
}

fn steps_out(steps: &[Arc<Step>]) -> Vec<pb::Step> {
    steps.iter().map(|step| (&**step).into()).collect()
}

/// Steps that count no more bytes than one command may have.
fn steps_in(field: &'static str, steps: Vec<pb::Step>) -> Result<Vec<Arc<Step>>, ConvertError> {
    bounded(field, steps.len(), STEPS_MAX)?;
    let steps = steps.into_iter().map(|step| step.try_into().map(Arc::new)).collect::<Result<Vec<Arc<Step>>, _>>()?;
    let bytes: u64 = steps.iter().map(|step| step.bytes()).sum();
    bounded(field, usize::try_from(bytes).unwrap_or(usize::MAX), STEPS_BYTES_MAX as usize)?;
    Ok(steps)
}

impl From<&Step> for pb::Step {
    fn from(step: &Step) -> Self {
        Self {
            kind: kind_out(step.kind).into(),
            key: Bytes::copy_from_slice(&step.key.0),
            outcome: Some(step.outcome.clone().into()),
            usage: Some(step.usage.into()),
        }
    }
}

impl TryFrom<pb::Step> for Step {
    type Error = ConvertError;

    fn try_from(step: pb::Step) -> Result<Self, ConvertError> {
        Ok(Self {
            kind: kind_in(step.kind)?,
            key: StepKey(fixed("step.key", &step.key)?),
            outcome: required("step.outcome", step.outcome)?.try_into()?,
            usage: required("step.usage", step.usage)?.try_into()?,
        })
    }
}

impl From<StepUsage> for pb::StepUsage {
    fn from(usage: StepUsage) -> Self {
        Self {
            duration: Some(duration_out(usage.duration)),
            tokens_input: usage.tokens_input,
            tokens_output: usage.tokens_output,
            cost_nanodollars: usage.cost_nanodollars,
        }
    }
}

impl TryFrom<pb::StepUsage> for StepUsage {
    type Error = ConvertError;

    fn try_from(usage: pb::StepUsage) -> Result<Self, ConvertError> {
        Ok(Self {
            duration: duration_in("step_usage.duration", usage.duration)?,
            tokens_input: usage.tokens_input,
            tokens_output: usage.tokens_output,
            cost_nanodollars: usage.cost_nanodollars,
        })
    }
}

fn kind_out(kind: StepKind) -> pb::StepKind {
    match kind {
        StepKind::Start => pb::StepKind::Start,
        StepKind::Model => pb::StepKind::Model,
        StepKind::Tools => pb::StepKind::Tools,
        StepKind::Child => pb::StepKind::Child,
        StepKind::Sleep => pb::StepKind::Sleep,
        StepKind::Question => pb::StepKind::Question,
        StepKind::Intent => pb::StepKind::Intent,
        StepKind::Effect => pb::StepKind::Effect,
        StepKind::Code => pb::StepKind::Code,
    }
}

fn kind_in(found: i32) -> Result<StepKind, ConvertError> {
    let kind = match pb::StepKind::try_from(found).unwrap_or_default() {
        pb::StepKind::Unspecified => return Err(ConvertError::Value { field: "step.kind", found: found.into() }),
        pb::StepKind::Start => StepKind::Start,
        pb::StepKind::Model => StepKind::Model,
        pb::StepKind::Tools => StepKind::Tools,
        pb::StepKind::Child => StepKind::Child,
        pb::StepKind::Sleep => StepKind::Sleep,
        pb::StepKind::Question => StepKind::Question,
        pb::StepKind::Intent => StepKind::Intent,
        pb::StepKind::Effect => StepKind::Effect,
        pb::StepKind::Code => StepKind::Code,
    };
    Ok(kind)
}
